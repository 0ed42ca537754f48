"""The Journals sheet: what would put the books right, and what became of every break.

Nothing here books. What was handed out stands here until the ledger shows it. The totals of the
proposals are formulas over their lines; the movements are the rows that the roll-forward on Control
totals adds up.
"""

from dataclasses import asdict
from typing import Any

from recon.model.figures import NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.listing import Column, Row, field, put_list
from reports.drawing.page import print_on, protect, put_header, put_heading
from reports.sheets.state_words import in_words
from reports.sheets.totals import Rows, Totals, sum_of
from reports.sheets.words import words_of

TITLES = ("Currency", "", "", "", ">Debit", ">Credit", ">Difference", "Check")
FIRST_ROW = 4
_HANDED_OUT = ": `recon journals export` hands each one out once"


def _became(row: Row) -> str:
    return MOVEMENT_WORDS.get(row["movement"], str(row["movement"]))


def _title(code: str) -> str:
    return words_of(code).title if code else ""


MOVEMENT_WORDS = {
    "new": "New tonight",
    "reopened": "Open again: it had closed",
    "returned": "Open again: it was out of sight",
    "stays": "Still open",
    "revalued": "Still open, another amount",
    "reclassified": "Still open, another code",
    "matched late": "Closed: the missing side came",
    "resolved": "Closed: the sides agree now",
    "written off": "Closed: written off",
    "pending": "Waits for a side again",
    "unverified": "Cannot be judged tonight",
    "explained": "Another break says it now",
    "not seen": "No row of tonight speaks of it, or its books were not read",
}

JOURNALS = (
    Column("Journal", 36, "text", field("journal_id"), "jrnKey"),
    Column("Date", 12, "day", field("date")),
    Column("Account of the books", 27, "text", field("account")),
    Column("Ccy", 6, "text", field("currency"), "jrnCcy"),
    Column("Debit", 16, "amount", field("debit"), "jrnDebit"),
    Column("Credit", 16, "amount", field("credit"), "jrnCredit"),
    Column("Order no", 24, "text", field("order_no")),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Break key", 18, "text", field("break_id")),
    Column("What for", 42, "text", field("text")),
)
OUT = (
    Column("Journal", 36, "text", field("journal_id"), "outKey"),
    Column("Handed out (UTC)", 12, "text", field("handed_out")),
    Column("Of run", 27, "text", field("run_id")),
    Column("Ccy", 6, "text", field("currency")),
    Column("Books still lack", 16, "amount", field("amount")),
    Column("", 16, "text", field("nothing")),
    Column("Order no", 24, "text", field("order_no")),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Break key", 18, "text", field("break_id")),
)
MOVEMENTS = (
    Column("What became of it", 36, "text", _became),
    Column("Ccy before", 12, "text", field("currency_before"), "movCcyBefore"),
    Column("It was", 27, "text", in_words("code_before", _title)),
    Column("Ccy", 6, "text", field("currency"), "movCcy"),
    Column(
        "At risk before",
        16,
        "amount",
        field("exposure_before"),
        "movBefore",
        currency="currency_before",
    ),
    Column("At risk now", 16, "amount", field("exposure"), "movNow"),
    Column("Order no", 24, "text", field("order_no")),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Break key", 18, "text", field("break_id"), "movKey"),
    Column("It is", 42, "text", in_words("code", _title)),
    Column("Counts as", 14, "text", field("counts_as"), "movCountsAs"),
)


def draw_journals(
    draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows, totals: Totals
) -> None:
    """Totals per currency, the lines of the proposals, then the movements."""
    put_heading(
        draft,
        sheet,
        title="Journals",
        sentence="Proposed journals: what would put the books right, two lines for each kind of "
        f"entry. Nothing is booked from here{'' if figures.of_plain_files else _HANDED_OUT}.",
    )
    row = _put_totals(draft, sheet, rows=rows, totals=totals)
    draft.text(sheet, (row, 1), f"Lines of the proposals ({len(rows.journals)})", looks.HEADING)
    _, last = put_list(draft, sheet, columns=JOURNALS, rows=rows.journals, top=row + 1)
    if not rows.journals:
        draft.text(sheet, (last, 1), "None.", looks.NOTE)
    row = _put_out(draft, sheet, figures=figures, top=last + 2)
    title = f"What became of each break since the night before ({len(rows.movements)})"
    draft.text(sheet, (row, 1), title, looks.HEADING)
    _, last = put_list(draft, sheet, columns=MOVEMENTS, rows=rows.movements, top=row + 1)
    if not rows.movements:
        draft.text(sheet, (last, 1), "None.", looks.NOTE)
    sheet.freeze_panes = "A4"
    print_on(sheet, run_id=figures.run_id)
    protect(sheet)


def _put_out(draft: Draft, sheet: Any, *, figures: NightFigures, top: int) -> int:
    """What was handed out and is not yet seen in the books; the next free row."""
    out = [
        {**asdict(journal), "handed_out": f"{journal.handed_out_at:%Y-%m-%d}", "nothing": ""}
        for journal in figures.handed_out
    ]
    title = f"Handed out, not yet seen in the books ({len(out)})"
    draft.text(sheet, (top, 1), title, looks.HEADING)
    _, last = put_list(draft, sheet, columns=OUT, rows=out, top=top + 1)
    if not out:
        draft.text(sheet, (last, 1), "None.", looks.NOTE)
    return last + 2


def _put_totals(draft: Draft, sheet: Any, *, rows: Rows, totals: Totals) -> int:
    """Debit and credit per currency; the next free row."""
    draft.text(sheet, (FIRST_ROW, 1), "Proposed per currency", looks.HEADING)
    put_header(draft, sheet, row=FIRST_ROW + 1, titles=TITLES)
    row = FIRST_ROW + 2
    for currency in sorted({line["currency"] for line in rows.journals}):
        _put_total(draft, sheet, row, (currency, rows, currency not in totals.text_currencies))
        row += 1
    if not rows.journals:
        draft.text(sheet, (row, 1), "No journal is proposed.", looks.NOTE)
        row += 1
    colour_checks(sheet, f"H{FIRST_ROW + 2}:H{row - 1}")
    return row + 1


def _put_total(draft: Draft, sheet: Any, row: int, of: tuple[str, Rows, bool]) -> None:
    currency, rows, live = of
    debit, credit = (
        sum_of(rows.journals, name=name, currency=currency) for name in ("debit", "credit")
    )
    draft.text(sheet, (row, 1), currency, looks.LABEL)
    word = CHECK if debit != credit else OK
    written = {
        5: (f"SUMIFS(jrnDebit,jrnCcy,$A{row})", debit),
        6: (f"SUMIFS(jrnCredit,jrnCcy,$A{row})", credit),
        7: (f"E{row}-F{row}", debit - credit),
    }
    for column, (formula, amount) in written.items():
        if live:
            draft.money_formula(sheet, (row, column), (formula, amount, currency))
        else:
            draft.amount(sheet, (row, column), amount, currency)
    if live:
        draft.formula(sheet, (row, 8), (f'=IF(G{row}=0,"{OK}","{CHECK}")', word), looks.CHECK)
    else:
        draft.text(sheet, (row, 8), word, looks.CHECK)
