"""The Pending sheet: sets that wait for a side within their grace, and sets nobody could judge.

Of more than a person reads, it has their sums by reason, then those with most money at risk.
"""

from dataclasses import replace
from typing import Any

from recon.model.figures import MATCHES, NightFigures
from recon.model.words import UnverifiedReason
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.listing import Column, Row, field, put_list
from reports.drawing.page import print_first_rows, print_on, protect, put_heading
from reports.sheets.named_files import added_up
from reports.sheets.open_rows import NOT_VERIFIED, RISK
from reports.sheets.state_words import flag_words, in_words, state_words
from reports.sheets.totals import Rows
from reports.sheets.words import UNVERIFIED_WORDS

HEADER_ROW = 4
PAPER_COLUMNS = 12
"""Up to Why: one page wide."""


def _why(row: Row) -> str:
    if row["result"] == NOT_VERIFIED:
        if row["reason"] == UnverifiedReason.ROW_QUARANTINED and row.get("told"):
            return str(row["told"])
        return UNVERIFIED_WORDS.get(row["reason"], str(row["reason"]))
    return str(row["told"] or _comes(row)) if row["order_no"] else ""


def _comes(row: Row) -> str:
    return f"The {row['expected_side'] or 'other'} side may still come."


def _why_all(row: Row) -> str:
    if row["result"] == NOT_VERIFIED:
        return UNVERIFIED_WORDS.get(row["reason"], str(row["reason"]))
    return _comes(row)


EFFECTS = ("Gateway − orders", "Gateway − ledger")  # noqa: RUF001 - a minus
COLUMNS = (
    Column("Result", 14, "text", field("result"), "opnResult"),
    Column("Order no", 24, "text", field("order_no")),
    Column("Order says", 17, "text", in_words("state_orders", state_words)),
    Column("Gateway says", 17, "text", in_words("state_gateway", state_words)),
    Column("Ccy", 6, "text", field("currency"), "opnCcy"),
    Column("Orders", 15, "amount", field("order_amount")),
    Column("Gateway", 15, "amount", field("gateway_amount")),
    Column("Ledger", 15, "amount", field("ledger_amount"), of_ledger=True),
    Column(EFFECTS[0], 15, "amount", field("effect_orders"), "opnEffectOrders"),
    Column(
        EFFECTS[1],
        15,
        "amount",
        field("effect_ledger"),
        "opnEffectLedger",
        of_ledger=True,
    ),
    Column("Late from", 17, "instant", field("due_at")),
    Column("Why", 48, "text", _why, wrap=True),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Ledger entry", 20, "text", field("entry_id")),
    Column("Reason code", 26, "text", field("reason")),
    Column("Flags", 24, "text", in_words("flags", flag_words)),
    Column("Account", 14, "text", field("account_id")),
)


SETS = "Sets"
_BY_TITLE = {column.title: column for column in COLUMNS}
SUMMED = tuple(_BY_TITLE[title] for title in ("Orders", "Gateway", "Ledger", *EFFECTS))
GROUP_COLUMNS = (
    _BY_TITLE["Result"],
    _BY_TITLE["Reason code"],
    _BY_TITLE["Account"],
    Column(SETS, 17, "count", field("rows"), "opnRows"),
    _BY_TITLE["Ccy"],
    *SUMMED,
    Column("Money at risk", 17, "amount", field(RISK)),
    Column("Why", 48, "text", _why_all, wrap=True),
)
"""Sums of all rows, where not all are listed; each stands above the column as wide as it needs."""
ROW_COLUMNS = tuple(replace(column, range_name="") for column in COLUMNS)


def draw_open(draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows) -> None:
    """Everything that is neither matched nor a break."""
    if rows.open.is_cut:
        _draw_sums(draft, sheet, figures=figures, rows=rows)
        return
    put_heading(
        draft,
        sheet,
        title="Pending",
        sentence="Waiting: one side may still come and is not late yet. Not verified: no usable "
        f"answer or row; it is judged when one comes. Times in {figures.timezone}.",
    )
    extent = put_list(
        draft,
        sheet,
        columns=COLUMNS,
        rows=rows.open.shown,
        top=HEADER_ROW,
        ledger_covered=figures.ledger_covered,
    )
    sheet.auto_filter.ref = f"A{HEADER_ROW}:{sheet.cell(extent[1], len(COLUMNS)).coordinate}"
    sheet.freeze_panes = sheet.cell(row=HEADER_ROW + 1, column=3)
    print_on(sheet, run_id=figures.run_id, title_rows=f"{HEADER_ROW}:{HEADER_ROW}")
    print_first_rows(draft, sheet, columns=PAPER_COLUMNS, rows=extent)
    protect(sheet)


def _draw_sums(draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows) -> None:
    """The sums of all rows, and below them the first rows by money at risk."""
    sets = f"{rows.open.count():,} sets that wait or could not be verified"
    named = [file for section, file in figures.files_named().items() if section != MATCHES]
    put_heading(draft, sheet, title="Pending", sentence=added_up(sets, named=named))
    covered = figures.ledger_covered
    _, last = put_list(
        draft,
        sheet,
        columns=GROUP_COLUMNS,
        rows=rows.open.groups,
        top=HEADER_ROW,
        ledger_covered=covered,
    )
    title = f"The first {len(rows.open.shown):,} by money at risk; times in {figures.timezone}"
    draft.text(sheet, (last + 2, 1), title, looks.HEADING)
    extent = put_list(
        draft,
        sheet,
        columns=ROW_COLUMNS,
        rows=rows.open.shown,
        top=last + 3,
        ledger_covered=covered,
    )
    sheet.auto_filter.ref = f"A{last + 3}:{sheet.cell(extent[1], len(COLUMNS)).coordinate}"
    print_on(sheet, run_id=figures.run_id)
    print_first_rows(draft, sheet, columns=PAPER_COLUMNS, rows=(HEADER_ROW + 1, extent[1]))
    protect(sheet)
