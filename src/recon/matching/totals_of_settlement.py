"""What the totals need of payouts and settlement files, straight from the sources; and T11."""

from collections.abc import Iterator

import pandas as pd

from recon.matching.settlement_side import pay_outs
from recon.matching.sources import Sources
from recon.matching.total_rows import ACCOUNT_CURRENCY, compared_sums
from recon.model import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    ControlTotal,
    InstructionKind,
)

_COLUMNS = [*ACCOUNT_CURRENCY, "amount", "source"]


def paid_items(sources: Sources) -> pd.DataFrame:
    """Every payout that was sent, instructed or by settlement; `amount` as leg B counts it."""
    parts = []
    if sources.instructions is not None:
        rows = sources.instructions
        sent = rows["state"].isin(CONFIRMED_STATES | DOUBTFUL_STATES | REJECTED_STATES)
        rows = rows[rows["kind"].eq(InstructionKind.PAYOUT) & sent]
        sure = rows["state"].isin(CONFIRMED_STATES)
        parts.append(rows.assign(amount=-rows["amount"].where(sure, 0)))
    if sources.settlement is not None:
        rows = sources.settlement[pay_outs(sources.settlement)]
        parts.append(rows.assign(amount=-rows["net"]))
    return _as_items(parts, source="payouts")


def settlement_totals(sources: Sources) -> Iterator[ControlTotal]:
    """T11: gross less fees of the lines of each batch = its pay-out, where a row names one.

    A night proves the batches that its own files tell of.
    """
    settlement = batches_to_prove(sources)
    if settlement is None:
        return
    sums = pay_outs(settlement)
    lines, paid = settlement[~sums], settlement[sums]
    for merchant, batch in sorted({*zip(paid["merchant_id"], paid["batch_id"], strict=True)}):
        name = f"settlement {batch}: gross - fees = pay-out"
        left, right = (
            rows[rows["batch_id"].eq(batch) & rows["merchant_id"].eq(merchant)]
            for rows in (lines, paid)
        )
        yield from compared_sums(
            "T11",
            name,
            left=left.assign(amount=left["gross"] - left["fee"]),
            right=right.assign(amount=right["net"]),
        )


def batches_to_prove(sources: Sources) -> pd.DataFrame | None:
    """The lines of all batches that are proven tonight; None: settlement has no source."""
    lines, days = sources.settlement, sources.settled
    if lines is None or days is None:
        return lines
    return lines[lines["batch_id"].isin(days.batches)]


def _as_items(parts: list[pd.DataFrame], *, source: str) -> pd.DataFrame:
    nothing = pd.DataFrame({name: pd.Series(dtype="str") for name in ACCOUNT_CURRENCY})
    rows = pd.concat([*parts], ignore_index=True) if parts else nothing.assign(amount=0)
    items: pd.DataFrame = rows.assign(source=source)[_COLUMNS].astype({"amount": "int64"})
    return items
