"""The Pending sheet: sets that wait for a side within their grace, and sets nobody could judge."""

from typing import Any

from recon.model.figures import NightFigures
from recon.model.words import UnverifiedReason
from reports.drawing.draft import Draft
from reports.drawing.listing import Column, Row, field, put_list
from reports.drawing.page import print_first_rows, print_on, protect, put_heading
from reports.sheets.state_words import flag_words, in_words, state_words
from reports.sheets.totals import NOT_VERIFIED, Rows
from reports.sheets.words import UNVERIFIED_WORDS

HEADER_ROW = 4
PAPER_COLUMNS = 12
"""Up to Why: one page wide."""


def _why(row: Row) -> str:
    if row["result"] == NOT_VERIFIED:
        if row["reason"] == UnverifiedReason.ROW_QUARANTINED and row.get("told"):
            return str(row["told"])
        return UNVERIFIED_WORDS.get(row["reason"], str(row["reason"]))
    return f"The {row['expected_side'] or 'other'} side may still come." if row["order_no"] else ""


COLUMNS = (
    Column("Result", 14, "text", field("result"), "opnResult"),
    Column("Order no", 24, "text", field("order_no")),
    Column("Order says", 17, "text", in_words("state_orders", state_words)),
    Column("Gateway says", 17, "text", in_words("state_gateway", state_words)),
    Column("Ccy", 6, "text", field("currency"), "opnCcy"),
    Column("Orders", 15, "amount", field("order_amount")),
    Column("Gateway", 15, "amount", field("gateway_amount")),
    Column("Ledger", 15, "amount", field("ledger_amount"), of_ledger=True),
    Column("Gateway − orders", 15, "amount", field("effect_orders"), "opnEffectOrders"),  # noqa: RUF001 - a minus
    Column(
        "Gateway − ledger",  # noqa: RUF001 - a minus
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


def draw_open(draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows) -> None:
    """Everything that is neither matched nor a break."""
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
        rows=rows.open,
        top=HEADER_ROW,
        ledger_covered=figures.ledger_covered,
    )
    sheet.auto_filter.ref = f"A{HEADER_ROW}:{sheet.cell(extent[1], len(COLUMNS)).coordinate}"
    sheet.freeze_panes = sheet.cell(row=HEADER_ROW + 1, column=3)
    print_on(sheet, run_id=figures.run_id, title_rows=f"{HEADER_ROW}:{HEADER_ROW}")
    print_first_rows(draft, sheet, columns=PAPER_COLUMNS, rows=extent)
    protect(sheet)
