"""The Fees sheet: what the contract says of the gateway's fees, line by line, and what differs.

What the contract leaves out is told by name.
"""

from typing import Any

from recon.model.charged_fees import ChargedFees
from reports.drawing.blocks import Column, Listing, Part, Sheet, TextLine, check_of, rows_of

TITLE = "Fees"
MONTHS_TITLE = "What months came to"
DIFFERING_SHOWN_MAX = 50_000
"""Payments that are listed; the claim file has all that is claimed."""
BY_LINE = (
    Column("Contract", 24, "name"),
    Column("Type", 12, "type"),
    Column("Holds for", 24, "holds_for"),
    Column("Days", 24, "days"),
    Column("Price", 34, "price"),
    Column("Ccy", 12, "currency"),
    Column("Lines", 12, "lines", "count"),
    Column("Base", 16, "base", "money"),
    Column("Expected", 16, "expected", "money"),
    Column("Charged", 16, "charged", "money"),
    Column("Difference", 16, "difference", "money"),
    Column("Too much", 16, "over", "money"),
    Column("Too little", 16, "under", "money"),
)
OUTSIDE = (
    Column("Why", 24, "reason", span=5),
    Column("Ccy", 12, "currency"),
    Column("Lines", 12, "lines", "count"),
    Column("Charged", 16, "charged", "money"),
)
DIFFERING = (
    Column("Contract", 24, "contract_line"),
    Column("Type", 12, "entry_type"),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Batch", 34, "batch_id"),
    Column("Ccy", 12, "currency"),
    Column("Settled on", 12, "settled_on", "date"),
    Column("Base", 16, "base", "money"),
    Column("Expected", 16, "expected", "money"),
    Column("Charged", 16, "charged", "money"),
    Column("Difference", 16, "difference", "money"),
    Column("Given back", 16, "given_back", "money"),
    Column("Claimed", 16, "claimed", "money"),
)
MONTHS = (
    Column("Contract", 24, "name"),
    Column("Month", 12, "month"),
    Column("Account", 24, "account", span=2),
    Column("Reaches", 34, "reached"),
    Column("Ccy", 12, "currency"),
    Column("Lines", 12, "lines", "count"),
    Column("Base", 16, "base", "money"),
    Column("Late lines", 16, "late_lines", "count"),
    Column("Late base", 16, "late_base", "money"),
    Column("Priced anew", 16, "otherwise", "count"),
)
SUMS = (
    Column("Currency", 24, "currency", tone="strong"),
    Column("By contract", 12, "inside", "money"),
    Column("Outside", 24, "outside", "money"),
    Column("All fees", 24, "charged", "money"),
    Column("Adds up", 34, "check", "check"),
)


def fees_sheet(fees: ChargedFees) -> Sheet:
    """The contract, what it leaves out, the sums, every payment that differs."""
    lines = [
        {**row, "difference": row["charged"] - row["expected"]} for row in rows_of(fees.by_line)
    ]
    differing = fees.differing.head(DIFFERING_SHOWN_MAX)
    title = f"Payments with another fee ({len(fees.differing)})"
    if len(fees.differing) > DIFFERING_SHOWN_MAX:
        title += f": the first {DIFFERING_SHOWN_MAX:,}; the claim file has all that is claimed."
    blocks: list[Part] = [
        Listing(BY_LINE, lines, title="Contract"),
        TextLine(),
        Listing(OUTSIDE, rows_of(fees.outside), title="Outside the contract"),
        TextLine(),
        Listing(SUMS, _sums(fees), title="All fees of the settlement", nothing=""),
        TextLine(),
    ]
    if len(fees.months):
        blocks += [Listing(MONTHS, rows_of(fees.months), title=MONTHS_TITLE), TextLine()]
    blocks.append(Listing(DIFFERING, rows_of(differing), title=title))
    return Sheet(
        TITLE,
        blocks,
        heading=TITLE,
        about="What each line of the fee contract expects of the settlement, and what the "
        "gateway charged. What no line holds for stands below it by name.",
        widths=[column.width for column in BY_LINE],
    )


def _sums(fees: ChargedFees) -> list[dict[str, Any]]:
    """By contract + outside = all fees of the settlement, each from a sum of its own."""
    sums = []
    for currency, charged in fees.totals:
        inside, outside = (_sum(frame, currency) for frame in (fees.by_line, fees.outside))
        sums.append(
            {"currency": currency, "inside": inside, "outside": outside, "charged": charged}
            | {"check": check_of(holds=inside + outside == charged)}
        )
    return sums


def _sum(frame: Any, currency: str) -> int:
    return int(frame.loc[frame["currency"] == currency, "charged"].sum())
