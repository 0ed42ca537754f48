"""The Control totals sheet: does everything tie, per currency, and which proofs hold.

Grey cells are the engine's; white ones are formulas over the rows of the other sheets. The names
`chkLegs`, `chkProofs` and `chkRoll` are what the verdict on page one reads.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from openpyxl.utils import get_column_letter

from recon.figures import NightFigures
from recon.model import ControlTotal
from reports import look as looks
from reports.draft import NOT_COVERED, NUMBER_MINOR_UNITS_MAX, Draft
from reports.highlight import when_equal
from reports.matched_sheet import is_pivot
from reports.page import column_range, print_on, protect, put_header, put_heading, set_widths
from reports.proof_words import proof_words
from reports.roll_forward import ROLL_CHECKS, put_roll_forward
from reports.totals import NOT_VERIFIED, WAITING, LegTotal, Rows, Totals

WIDTHS = (14, 58, 17, 17, 17, 17, 15, 15, 15, 15, 17, 15, 10, 17)
OK, CHECK = "OK", "CHECK"
NIGHTS_BEFORE = 13
"""With tonight: two weeks."""
LEG_TITLES = (
    "Currency",
    "Compared",
    ">Gateway",
    ">Other side",
    ">Difference",
    ">of it breaks",
    ">waiting",
    ">not verified",
    ">matched, flagged",
    ">elsewhere",
    ">Explained",
    ">Unexplained",
    "Check",
    ">Gross breaks",
)
LEG_NAMES = {"orders": "Gateway − orders", "ledger": "Gateway − ledger"}  # noqa: RUF001 - a minus
LEG_SUFFIX = {"orders": "Orders", "ledger": "Ledger"}
PROOF_TITLES = (
    "Proof",
    "What must be equal",
    "Account",
    "Currency",
    "Measured by",
    ">Left",
    ">Right",
    ">Difference",
    "Check",
)


@dataclass(frozen=True, slots=True)
class Places:
    """Where page one finds what it links to."""

    legs: dict[tuple[str, str], int]
    """(currency, leg) -> row."""
    results: dict[str, int]
    """Result -> row of its count (column B)."""
    trend: tuple[int, int]
    """First and last row of the nights (columns A and B)."""
    failed_checks: int
    """How many checks on this sheet say CHECK."""
    checks: tuple[str, ...]
    """The names of the ranges they stand in."""


def draw_totals(
    draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows, totals: Totals
) -> Places:
    """All blocks of the sheet, top to bottom."""
    set_widths(sheet, WIDTHS)
    put_heading(
        draft,
        sheet,
        title="Control totals",
        sentence="White cells are computed from the rows of this workbook, grey ones come from "
        "the engine. Every check must say OK; unexplained must be nothing in each currency.",
    )
    legs, row = _put_legs(draft, sheet, figures=figures, totals=totals)
    proofs_failed, row = _put_proofs(draft, sheet, figures=figures, top=row)
    rolled = bool(rows.movements) or not rows.breaks
    if rolled:  # a run of an earlier version kept no movements
        roll_failed, row = put_roll_forward(draft, sheet, rows=rows, totals=totals, top=row)
        proofs_failed += roll_failed
    results, row = _put_results(draft, sheet, rows=rows, top=row)
    row = _put_sides(draft, sheet, rows=rows.sides, top=row)
    row = _put_elsewhere(draft, sheet, rows=rows.elsewhere, top=row)
    trend = _put_trend(draft, sheet, figures=figures, top=row)
    sheet.freeze_panes = "A4"
    print_on(sheet, run_id=figures.run_id)
    protect(sheet)
    failed = proofs_failed + sum(leg.unexplained != 0 for leg in totals.legs)
    checks = ("chkLegs", "chkProofs", *((ROLL_CHECKS,) if rolled else ()))
    return Places(legs, results, trend, failed, checks)


def _put_legs(
    draft: Draft, sheet: Any, *, figures: NightFigures, totals: Totals
) -> tuple[dict[tuple[str, str], int], int]:
    draft.text(sheet, (4, 1), "Differences per currency, and what explains them", looks.HEADING)
    put_header(draft, sheet, row=5, titles=LEG_TITLES)
    sheet.row_dimensions[5].height = 30
    row, places = 6, {}
    for leg in totals.legs:
        places[leg.currency, leg.leg] = row
        _put_leg(draft, sheet, leg, (row, totals.text_currencies))
        row += 1
        if not figures.ledger_covered:
            _put_uncovered(draft, sheet, row=row, currency=leg.currency)
            row += 1
    if row == 6:  # noqa: PLR2004 - nothing was written below the header
        draft.text(sheet, (row, 1), "No amounts in any source.", looks.NOTE)
        row += 1
    _name_checks(draft, sheet, "chkLegs", column=13, rows=(6, row - 1))
    return places, row + 1


def _put_leg(draft: Draft, sheet: Any, leg: LegTotal, at: tuple[int, frozenset[str]]) -> None:
    row, text_currencies = at
    live = leg.currency not in text_currencies
    draft.text(sheet, (row, 1), leg.currency, looks.LABEL)
    draft.text(sheet, (row, 2), LEG_NAMES[leg.leg], looks.BODY_TEXT)
    effect = LEG_SUFFIX[leg.leg]
    waiting, unverified = f'opnResult,"{WAITING}"', f'opnResult,"{NOT_VERIFIED}"'
    formulas = (
        (f'SUMIFS(sidAmount,sidSource,"gateway",sidCcy,$A{row})', leg.gateway),
        (f'SUMIFS(sidAmount,sidSource,"{leg.leg}",sidCcy,$A{row})', leg.other),
        (f"C{row}-D{row}", leg.difference),
        (f"SUMIFS(brkEffect{effect},brkCcy,$A{row})", leg.parts["breaks"]),
        (f"SUMIFS(opnEffect{effect},opnCcy,$A{row},{waiting})", leg.parts["waiting"]),
        (f"SUMIFS(opnEffect{effect},opnCcy,$A{row},{unverified})", leg.parts["not verified"]),
        (f"SUMIFS(matEffect{effect},matCcy,$A{row})", leg.parts["matched"]),
        (f'SUMIFS(elsAmount,elsLeg,"{leg.leg}",elsCcy,$A{row})', leg.elsewhere),
        (f"SUM(F{row}:J{row})", leg.explained),
        (f"E{row}-K{row}", leg.unexplained),
    )
    for column, (formula, amount) in enumerate(formulas, 3):
        _put_money(draft, sheet, (row, column), (formula, amount, leg.currency), live=live)
    word = CHECK if leg.unexplained else OK
    if live:
        draft.formula(sheet, (row, 13), (f'=IF(L{row}=0,"{OK}","{CHECK}")', word), looks.CHECK)
    else:
        draft.text(sheet, (row, 13), word, looks.CHECK)
    gross = f"SUMPRODUCT((brkCcy=$A{row})*ABS(brkEffect{effect}))"
    # One amount that is text would spoil this formula in every currency.
    written = (gross, leg.gross, leg.currency)
    _put_money(draft, sheet, (row, 14), written, live=not text_currencies)


def _put_money(
    draft: Draft, sheet: Any, place: tuple[int, int], written: tuple[str, int, str], *, live: bool
) -> None:
    if live:
        draft.money_formula(sheet, place, written)
    else:
        draft.amount(sheet, place, written[1], written[2])


def _put_uncovered(draft: Draft, sheet: Any, *, row: int, currency: str) -> None:
    grey = looks.BODY.but(colour=looks.GREY_TEXT, align="right")
    draft.text(sheet, (row, 1), currency, looks.LABEL)
    draft.text(sheet, (row, 2), LEG_NAMES["ledger"], looks.BODY_TEXT)
    for column in range(3, len(LEG_TITLES) + 1):
        draft.text(sheet, (row, column), NOT_COVERED, grey)


def _put_proofs(draft: Draft, sheet: Any, *, figures: NightFigures, top: int) -> tuple[int, int]:
    """The control totals T0 to T14; how many failed, and the next free row."""
    draft.text(sheet, (top, 1), "Proofs: both sides are computed separately", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=PROOF_TITLES)
    proofs = sorted(figures.control_totals, key=_proof_order)
    failing = sum(not proof.passed for proof in proofs)
    draft.text(sheet, (top, 8), "Failing", looks.PLAIN.but(bold=True, align="right"))
    count = (f'=COUNTIF(chkProofs,"{CHECK}")', failing)
    draft.formula(sheet, (top, 9), count, looks.PLAIN.but(bold=True, align="center"))
    for row, proof in enumerate(proofs, top + 2):
        _put_proof(draft, sheet, row, proof)
    last = top + 1 + max(1, len(proofs))
    _name_checks(draft, sheet, "chkProofs", column=9, rows=(top + 2, last))
    row = last + 1
    for sentence in figures.not_covered:
        draft.text(sheet, (row, 1), f"Not covered: {sentence}", looks.NOTE)
        row += 1
    return failing, row + 1


def _put_proof(draft: Draft, sheet: Any, row: int, proof: ControlTotal) -> None:
    for column, text in enumerate(
        (proof.id, proof_words(proof.name), proof.account_id, proof.currency, proof.measure), 1
    ):
        draft.text(sheet, (row, column), text, looks.BODY_TEXT)
    currency = proof.currency if proof.measure == "amount" else ""
    grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
    draft.amount_as(sheet, (row, 6), (proof.left, currency), grey)
    draft.amount_as(sheet, (row, 7), (proof.right, currency), grey)
    word = OK if proof.passed else CHECK
    sides = (proof.left, proof.right, proof.difference)
    if max(map(abs, sides)) > NUMBER_MINOR_UNITS_MAX:
        draft.amount(sheet, (row, 8), proof.difference, currency)
        draft.text(sheet, (row, 9), word, looks.CHECK)
        return
    draft.money_formula(sheet, (row, 8), (f"F{row}-G{row}", proof.difference, currency))
    draft.formula(sheet, (row, 9), (f'=IF(H{row}=0,"{OK}","{CHECK}")', word), looks.CHECK)


def _proof_order(proof: ControlTotal) -> tuple[bool, int, str, str, str, str]:
    """What fails first, then T0 to T14."""
    digits = re.search(r"[0-9]+", proof.id)
    number = int(digits.group()) if digits else 0
    return (proof.passed, number, proof.id, proof.account_id, proof.name, proof.currency)


def _put_results(draft: Draft, sheet: Any, *, rows: Rows, top: int) -> tuple[dict[str, int], int]:
    """How many sets came to what."""
    draft.text(sheet, (top, 1), "Sets by result", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=("Result", ">Sets"))
    waiting = sum(row["result"] == WAITING for row in rows.open)
    matched = "=SUM(matRows)" if is_pivot(rows.matched.count) else "=COUNTA(matKey)"
    counts = {
        "Matched": (matched, rows.matched.count),
        WAITING: (f'=COUNTIF(opnResult,"{WAITING}")', waiting),
        NOT_VERIFIED: (f'=COUNTIF(opnResult,"{NOT_VERIFIED}")', len(rows.open) - waiting),
        "Breaks": ("=COUNTA(brkKey)", len(rows.breaks)),
    }
    first = top + 2
    places = {}
    for row, (result, written) in enumerate(counts.items(), first):
        draft.text(sheet, (row, 1), result, looks.LABEL)
        draft.formula(sheet, (row, 2), written)
        places[result] = row
    last = first + len(counts)
    draft.text(sheet, (last, 1), "All", looks.LABEL.but(line="total"))
    everything = (f"=SUM(B{first}:B{last - 1})", sum(value for _, value in counts.values()))
    draft.formula(sheet, (last, 2), everything, looks.NUMBER.but(line="total", bold=True))
    places["All"] = last
    return places, last + 2


def _put_sides(draft: Draft, sheet: Any, *, rows: Sequence[dict[str, Any]], top: int) -> int:
    """What each source says, by result: the engine's figures."""
    draft.text(sheet, (top, 1), "What each source says (net of refunds)", looks.HEADING)
    titles = ("Source", "Account", "Currency", "Result", ">Records", ">Amount")
    put_header(draft, sheet, row=top + 1, titles=titles)
    grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
    for number, row in enumerate(rows, top + 2):
        for column, name in enumerate(("source", "account_id", "currency", "state"), 1):
            draft.text(sheet, (number, column), str(row[name] or ""), looks.BODY_TEXT)
        draft.number(sheet, (number, 5), row["count"], grey)
        draft.amount_as(sheet, (number, 6), (row["amount"], row["currency"] or ""), grey)
    extent = (top + 2, top + 1 + max(1, len(rows)))
    for name, column in (("sidSource", 1), ("sidCcy", 3), ("sidAmount", 6)):
        draft.name(name, column_range(sheet, column=column, rows=extent))
    return extent[1] + 2


def _put_elsewhere(draft: Draft, sheet: Any, *, rows: Sequence[dict[str, Any]], top: int) -> int:
    """Effects that no row of Breaks can show."""
    title = "Elsewhere: effects of a break in a second currency or account"
    draft.text(sheet, (top, 1), title, looks.HEADING)
    titles = ("Account", "Break key", "Compared", "Currency", ">Amount")
    put_header(draft, sheet, row=top + 1, titles=titles)
    for number, row in enumerate(rows, top + 2):
        for column, name in enumerate(("account_id", "break_id", "leg", "currency"), 1):
            draft.text(sheet, (number, column), str(row[name]), looks.BODY_TEXT)
        grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
        draft.amount_as(sheet, (number, 5), (row["amount"], row["currency"]), grey)
    if not rows:
        draft.text(sheet, (top + 2, 1), "None.", looks.NOTE)
    extent = (top + 2, top + 1 + max(1, len(rows)))
    for name, column in (("elsLeg", 3), ("elsCcy", 4), ("elsAmount", 5)):
        draft.name(name, column_range(sheet, column=column, rows=extent))
    return extent[1] + 2


def _put_trend(draft: Draft, sheet: Any, *, figures: NightFigures, top: int) -> tuple[int, int]:
    """Open breaks of the last nights, tonight last."""
    draft.text(sheet, (top, 1), "Open breaks by night", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=("Business day", ">Open breaks"))
    row = top + 2
    for point in figures.trend[-NIGHTS_BEFORE:]:
        draft.text(sheet, (row, 1), f"{point.business_date:%d %b}", looks.BODY_TEXT)
        draft.number(sheet, (row, 2), point.open_breaks)
        row += 1
    draft.text(sheet, (row, 1), f"{figures.business_date:%d %b}", looks.BODY_TEXT)
    draft.formula(sheet, (row, 2), ("=COUNTA(brkKey)", len(figures.breaks)))
    return top + 2, row


def _name_checks(
    draft: Draft, sheet: Any, name: str, *, column: int, rows: tuple[int, int]
) -> None:
    """Name a range of checks and colour it by its words."""
    draft.name(name, column_range(sheet, column=column, rows=rows))
    letter = get_column_letter(column)
    for word, colours in {OK: looks.GOOD, CHECK: looks.BAD}.items():
        rule = when_equal(word, colours=colours)
        sheet.conditional_formatting.add(f"{letter}{rows[0]}:{letter}{rows[1]}", rule)
