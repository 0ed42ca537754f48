"""The Fees sheet: what the contract says of the gateway's fees, line by line, and what differs.

The sums per currency are formulas; what the contract leaves out is told by name.
"""

from collections.abc import Sequence
from typing import Any

from recon.model.charged_fees import ChargedFees
from recon.model.figures import NightFigures
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.highlight import CHECK, OK, colour_checks
from reports.drawing.listing import Column, Row, field, put_list, rows_of
from reports.drawing.page import print_on, protect, put_header, put_heading

TITLE = "Fees"
MONTHS_TITLE = "What months came to"
DIFFERING_SHOWN_MAX = 50_000
"""Payments that are listed; the claim file has all that is claimed."""
BY_LINE = (
    Column("Contract", 24, "text", field("name")),
    Column("Type", 12, "text", field("type")),
    Column("Holds for", 24, "text", field("holds_for")),
    Column("Days", 24, "text", field("days")),
    Column("Price", 34, "text", field("price")),
    Column("Ccy", 12, "text", field("currency"), "feeCcy"),
    Column("Lines", 12, "count", field("lines")),
    Column("Base", 16, "amount", field("base")),
    Column("Expected", 16, "amount", field("expected"), "feeExpected"),
    Column("Charged", 16, "amount", field("charged"), "feeCharged"),
    Column("Difference", 16, "amount", field("difference"), "feeDifference"),
    Column("Too much", 16, "amount", field("over")),
    Column("Too little", 16, "amount", field("under")),
)
OUTSIDE = (
    Column("Why", 24, "text", field("reason")),
    *(Column("", 12, "text", field("blank")) for _ in range(4)),
    Column("Ccy", 12, "text", field("currency"), "feeOutCcy"),
    Column("Lines", 12, "count", field("lines")),
    *(Column("", 16, "text", field("blank")) for _ in range(2)),
    Column("Charged", 16, "amount", field("charged"), "feeOut"),
)
DIFFERING = (
    Column("Contract", 24, "text", field("contract_line")),
    Column("Type", 12, "text", field("entry_type")),
    Column("Order no", 24, "text", field("order_no")),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Batch", 34, "text", field("batch_id")),
    Column("Ccy", 12, "text", field("currency")),
    Column("Settled on", 12, "day", field("settled_on")),
    Column("Base", 16, "amount", field("base")),
    Column("Expected", 16, "amount", field("expected")),
    Column("Charged", 16, "amount", field("charged")),
    Column("Difference", 16, "amount", field("difference")),
    Column("Given back", 16, "amount", field("given_back")),
    Column("Claimed", 16, "amount", field("claimed")),
)
MONTHS = (
    Column("Contract", 24, "text", field("name")),
    Column("Month", 12, "text", field("month")),
    Column("Account", 24, "text", field("account")),
    Column("", 24, "text", field("blank")),
    Column("Reaches", 34, "text", field("reached")),
    Column("Ccy", 12, "text", field("currency")),
    Column("Lines", 12, "count", field("lines")),
    Column("Base", 16, "amount", field("base")),
    Column("Late lines", 16, "count", field("late_lines")),
    Column("Late base", 16, "amount", field("late_base")),
    Column("Priced anew", 16, "count", field("otherwise")),
)
_SUMS = ("Ccy", ">By contract", ">Outside", ">All fees", "Adds up")


def draw_fees(draft: Draft, sheet: Any, *, figures: NightFigures) -> None:
    """The contract, what it leaves out, the sums, every payment that differs."""
    fees = figures.fees
    if fees is None:
        return
    put_heading(
        draft,
        sheet,
        title=TITLE,
        sentence="What each line of the fee contract expects of the settlement, and what the "
        "gateway charged. What no line holds for stands below it by name.",
    )
    lines = [
        {**row, "difference": row["charged"] - row["expected"]} for row in rows_of(fees.by_line)
    ]
    top = _put(draft, sheet, "Contract", lines, columns=BY_LINE, top=4)
    outside = [{**row, "blank": ""} for row in rows_of(fees.outside)]
    top = _put(draft, sheet, "Outside the contract", outside, columns=OUTSIDE, top=top)
    top = _put_sums(draft, sheet, fees, top=top)
    if len(fees.months):
        months = [{**row, "blank": ""} for row in rows_of(fees.months)]
        top = _put(draft, sheet, MONTHS_TITLE, months, columns=MONTHS, top=top)
    differing = fees.differing.head(DIFFERING_SHOWN_MAX)
    title = f"Payments with another fee ({len(fees.differing)})"
    _put(draft, sheet, title, rows_of(differing), columns=DIFFERING, top=top)
    if len(fees.differing) > DIFFERING_SHOWN_MAX:
        words = f"The first {DIFFERING_SHOWN_MAX:,}; the claim file has all that is claimed."
        draft.text(sheet, (top, 4), words, looks.NOTE)
    for letter, column in zip("ABCDEFGHIJKLM", BY_LINE, strict=True):
        sheet.column_dimensions[letter].width = column.width
    sheet.freeze_panes = "A4"
    print_on(sheet, run_id=figures.run_id)
    protect(sheet)


def _put(
    draft: Draft,
    sheet: Any,
    title: str,
    rows: Sequence[Row],
    *,
    columns: Sequence[Column],
    top: int,
) -> int:
    """A list under its title; the row where the next one may begin."""
    draft.text(sheet, (top, 1), title, looks.HEADING)
    _, last = put_list(draft, sheet, columns=columns, rows=rows, top=top + 1)
    if not rows:
        draft.text(sheet, (last, 1), "None.", looks.NOTE)
    return last + 2


def _put_sums(draft: Draft, sheet: Any, fees: ChargedFees, *, top: int) -> int:
    """By contract + outside = all fees of the settlement, each from a sum of its own."""
    draft.text(sheet, (top, 1), "All fees of the settlement", looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=_SUMS)
    first = at = top + 2
    for currency, charged in fees.totals:
        draft.text(sheet, (at, 1), currency, looks.BODY_TEXT)
        inside, outside = (_sum(frame, currency) for frame in (fees.by_line, fees.outside))
        formula = f"SUMIFS(feeCharged,feeCcy,A{at})"
        draft.money_formula(sheet, (at, 2), (formula, inside, currency))
        formula = f"SUMIFS(feeOut,feeOutCcy,A{at})"
        draft.money_formula(sheet, (at, 3), (formula, outside, currency))
        draft.amount(sheet, (at, 4), charged, currency)
        formula = f'=IF(ROUND(B{at}+C{at}-D{at},3)=0,"{OK}","{CHECK}")'
        word = OK if inside + outside == charged else CHECK
        draft.formula(sheet, (at, 5), (formula, word), looks.CHECK)
        at += 1
    colour_checks(sheet, f"E{first}:E{max(at - 1, first)}")
    return at + 1


def _sum(frame: Any, currency: str) -> int:
    return int(frame.loc[frame["currency"] == currency, "charged"].sum())
