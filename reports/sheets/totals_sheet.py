"""The Control totals sheet: does everything tie, per currency, and which proofs hold.

Grey cells are the engine's; white ones are formulas over the rows of the other sheets. The names
`chkLegs`, `chkProofs` and `chkRoll` are what the verdict on page one reads.
"""

from dataclasses import dataclass
from typing import Any

from openpyxl.utils import get_column_letter

from recon.model.figures import NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import NOT_COVERED, Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.page import (
    PAPER_ROWS_MAX,
    column_range,
    print_on,
    protect,
    put_header,
    put_heading,
    set_widths,
)
from reports.sheets.books_block import BOOKS_CHECKS, put_books
from reports.sheets.open_rows import NOT_VERIFIED, WAITING
from reports.sheets.proofs_block import put_every_check, put_questions
from reports.sheets.roll_forward import ROLL_CHECKS, put_roll_forward
from reports.sheets.totals import GATEWAY_SIDES, LegTotal, Rows, Totals
from reports.sheets.totals_blocks import (
    BRIDGE_CHECKS,
    put_bridge,
    put_elsewhere,
    put_nights,
    put_results,
    put_sides,
)

WIDTHS = (13, 22, 16, 16, 16, 18, 15, 15, 18, 17, 16, 15, 10, 19)
PAPER_PAGES = 2
LEG_TITLES = (
    "Currency",
    "Compared",
    ">Gateway",
    ">Other side",
    ">Difference",
    ">Explained by breaks",
    ">by what waits",
    ">by not verified",
    ">by flagged matches",
    ">elsewhere (below)",
    ">All explained",
    ">Unexplained",
    "Check",
    ">Breaks without signs",
)
LEG_NAMES = {"orders": "Gateway − orders", "ledger": "Gateway − ledger"}  # noqa: RUF001 - a minus
LEG_CHECKS, PROOF_CHECKS = "chkLegs", "chkProofs"
LEG_SUFFIX = {"orders": "Orders", "ledger": "Ledger"}


@dataclass(frozen=True, slots=True)
class Places:
    """Where page one finds what it links to."""

    legs: dict[tuple[str, str], int]
    """(currency, leg) -> row."""
    results: dict[str, int]
    """Result -> row of its count (column B)."""
    trend: tuple[int, int]
    """First and last row of the nights (columns from NIGHT_COLUMN)."""
    checks: dict[str, int]
    """Name of a range of checks -> how many of them say CHECK."""
    books: int
    """Row of the way from the ledger file to the ledger compared."""

    @property
    def failed_checks(self) -> int:
        """How many checks on this sheet say CHECK."""
        return sum(self.checks.values())


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
    failing, row = put_questions(draft, sheet, figures=figures, top=row)
    failed = {LEG_CHECKS: sum(leg.unexplained != 0 for leg in totals.legs)}
    failed[PROOF_CHECKS] = len(failing)
    results, below_results = put_results(draft, sheet, rows=rows, top=row)
    trend, below_nights = put_nights(draft, sheet, figures=figures, top=row)
    if figures.bridge:  # a run of an earlier version kept no way of its rows
        failed[BRIDGE_CHECKS], row = put_bridge(draft, sheet, figures=figures, rows=rows, top=row)
    row = max(row, below_results, below_nights)
    below_proofs = row
    more, below, books = _put_ways(draft, sheet, figures=figures, rows=rows, totals=totals, top=row)
    texts = totals.text_currencies
    row = put_sides(draft, sheet, rows=rows.sides, text_currencies=texts, top=below)
    elsewhere = row
    row = put_elsewhere(draft, sheet, rows=rows.elsewhere, top=row)
    last_failing = put_every_check(draft, sheet, figures=figures, top=row)
    last_on_paper = last_failing if failing else min(row - 2, elsewhere + PAPER_ROWS_MAX)
    sheet.freeze_panes = "A4"
    print_on(sheet, run_id=figures.run_id, pages=(1, 0 if failing else PAPER_PAGES))
    right = get_column_letter(len(LEG_TITLES))
    # Two areas are two pages: everything that is checked on the first, what it rests on below.
    sheet.print_area = f"A1:{right}{below_proofs - 2},A{below_proofs}:{right}{last_on_paper}"
    protect(sheet)
    return Places(legs, results, trend, {**failed, **more}, books)


def _put_ways(
    draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows, totals: Totals, top: int
) -> tuple[dict[str, int], int, int]:
    """From the night before to tonight, and from the ledger file to the ledger compared.

    Name of the checks -> how many fail, the next free row, and where the second block stands.
    """
    row, failed = top, {}
    if rows.movements or not rows.breaks:  # a run of an earlier version kept no movements
        failed[ROLL_CHECKS], row = put_roll_forward(draft, sheet, rows=rows, totals=totals, top=row)
    books = row
    if figures.ledger_covered:
        failed[BOOKS_CHECKS], row = put_books(
            draft, sheet, figures=figures, rows=rows, totals=totals, top=row
        )
    return failed, row, books


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
    _name_checks(draft, sheet, LEG_CHECKS, column=13, rows=(6, row - 1))
    return places, row + 1


def _put_leg(draft: Draft, sheet: Any, leg: LegTotal, at: tuple[int, frozenset[str]]) -> None:
    row, text_currencies = at
    live = leg.currency not in text_currencies
    draft.text(sheet, (row, 1), leg.currency, looks.LABEL)
    draft.text(sheet, (row, 2), LEG_NAMES[leg.leg], looks.BODY_TEXT)
    effect = LEG_SUFFIX[leg.leg]
    waiting, unverified = f'opnResult,"{WAITING}"', f'opnResult,"{NOT_VERIFIED}"'
    gateway, other = (
        "+".join(f'SUMIFS(sidAmount,sidSource,"{source}",sidCcy,$A{row})' for source in sources)
        for sources in (GATEWAY_SIDES[leg.leg], (leg.leg,))
    )
    formulas = (
        (gateway, leg.gateway),
        (other, leg.other),
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
    draft: Draft, sheet: Any, cell: tuple[int, int], written: tuple[str, int, str], *, live: bool
) -> None:
    if live:
        draft.money_formula(sheet, cell, written)
    else:
        draft.amount(sheet, cell, written[1], written[2])


def _put_uncovered(draft: Draft, sheet: Any, *, row: int, currency: str) -> None:
    grey = looks.BODY.but(colour=looks.GREY_TEXT, align="right")
    draft.text(sheet, (row, 1), currency, looks.LABEL)
    draft.text(sheet, (row, 2), LEG_NAMES["ledger"], looks.BODY_TEXT)
    for column in range(3, len(LEG_TITLES) + 1):
        draft.text(sheet, (row, column), NOT_COVERED, grey)


def _name_checks(
    draft: Draft, sheet: Any, name: str, *, column: int, rows: tuple[int, int]
) -> None:
    """Name a range of checks and colour it by its words."""
    draft.name(name, column_range(sheet, column=column, rows=rows))
    letter = get_column_letter(column)
    colour_checks(sheet, f"{letter}{rows[0]}:{letter}{rows[1]}")
