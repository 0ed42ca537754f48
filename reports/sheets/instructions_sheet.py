"""The Instructions sheet: what was to be moved tonight, what came of it, in which batches."""

from collections.abc import Iterable, Sequence
from typing import Any

from recon.model.figures import NightFigures
from reports.drawing.blocks import Column, Listing, Part, Row, Sheet, TextLine
from reports.sheets.totals import GROUP_ORDER, Rows
from reports.sheets.words import state_words, worded

COLUMNS = (
    Column("Instruction", 36, "instruction_id"),
    Column("Kind", 18, "kind"),
    Column("Result", 14, "group", tone=lambda row: "bad" if row["group"] == "in doubt" else ""),
    Column("Order no", 24, "order_no"),
    Column("Payment", 24, "transaction_id"),
    Column("Ccy", 9, "currency"),
    Column("Amount", 16, "amount", "money"),
    Column("State", 20, worded("state", state_words)),
    Column("Outcome", 11, "outcome"),
    Column("Code", 10, "code"),
    Column("Message", 40, "message", wrap=True),
    Column("Refund reference", 22, "refund_reference_id"),
    Column("Batch", 36, "batch_id"),
    Column("Attempt", 9, "attempt", "count"),
    Column("Approved by", 18, "approved_by"),
    Column("Sent", 19, "sent_at", "instant"),
    Column("Outcome at", 19, "outcome_at", "instant"),
    Column("In doubt since", 19, "in_doubt_since", "instant"),
    Column("File", 26, "source"),
    Column("Line", 8, "line", "count"),
)
TOTALS = (
    Column("Kind", 36, "kind"),
    Column("Ccy", 18, "currency"),
    Column("Result", 14, "group", tone=COLUMNS[2].tone),
    Column("Instructions", 24, "count", "count"),
    Column("Amount", 24, "amount", "money"),
)
BATCHES = (
    Column("Batch", 36, "batch_id"),
    Column("Kind", 18, "kind"),
    Column("In doubt", 14, "in_doubt", "count"),
    Column("Sent", 24, "sent_at", "instant"),
    Column("SHA-256 of the request", 24, "body_sha256"),
    Column("Ccy", 9, "currency"),
    Column("Amount", 16, "amount", "money"),
    Column("Rows", 20, "rows", "count"),
    Column("Confirmed", 11, "confirmed", "count"),
    Column("Rejected", 10, "rejected", "count"),
    Column("Gateway's message", 40, "message"),
    Column("Not sent", 22, "not_sent", "count"),
    Column("Return status", 36, "return_status"),
)


def instructions_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """Totals per kind and currency, every batch, every instruction (doubt first)."""
    blocks: list[Part] = [TextLine(figures.stopped, "bad", 11)] if figures.stopped else []
    blocks += [
        Listing(
            TOTALS,
            _totals(rows.instructions),
            title="Totals per kind and currency",
            nothing="No instruction was given.",
        ),
        TextLine(),
        Listing(
            BATCHES, rows.batches, title="Batches as they were sent", nothing="Nothing was sent."
        ),
        TextLine(),
        Listing(
            COLUMNS,
            rows.instructions,
            title="Every instruction, what is in doubt first",
            nothing="",
            is_list=True,
        ),
    ]
    return Sheet(
        "Instructions",
        blocks,
        heading="Instructions",
        about="What was to be moved. In doubt means that nobody knows yet whether it took "
        f"effect: it is never sent again. Times in {figures.timezone}.",
        widths=[column.width for column in COLUMNS],
        paper_columns=11,
    )


def kinds_of(rows: Iterable[Row]) -> list[str]:
    """The kinds that occur, captures and refunds first."""
    first = ("capture", "refund", "cancel")
    kinds = {str(row["kind"]) for row in rows}
    return [*(kind for kind in first if kind in kinds), *sorted(kinds - set(first))]


def _totals(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Count and amount per kind, currency and result."""
    sums: dict[tuple[str, str, int], tuple[int, int]] = {}
    for row in rows:
        key = (str(row["kind"]), str(row["currency"]), GROUP_ORDER.index(row["group"]))
        count, amount = sums.get(key, (0, 0))
        sums[key] = count + 1, amount + (row["amount"] or 0)
    return [
        {"kind": kind, "currency": currency, "group": GROUP_ORDER[place]}
        | {"count": count, "amount": amount}
        for (kind, currency, place), (count, amount) in sorted(sums.items())
    ]
