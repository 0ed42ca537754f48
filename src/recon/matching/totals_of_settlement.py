"""What the totals need of payouts and settlement files, straight from the sources; and T11."""

from collections.abc import Iterator

import pandas as pd

from recon.matching.settlement_side import PAY_OUT
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
        rows = sources.settlement[sources.settlement["entry_type"].eq(PAY_OUT)]
        parts.append(rows.assign(amount=-rows["net"]))
    return _as_items(parts, source="payouts")


def settlement_totals(settlement: pd.DataFrame | None) -> Iterator[ControlTotal]:
    """T11: gross less fees of the lines of each batch = its pay-out, where a row names one."""
    if settlement is None:
        return
    lines = settlement[settlement["entry_type"].ne(PAY_OUT)]
    paid = settlement[settlement["entry_type"].eq(PAY_OUT)]
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


def _as_items(parts: list[pd.DataFrame], *, source: str) -> pd.DataFrame:
    nothing = pd.DataFrame({name: pd.Series(dtype="str") for name in ACCOUNT_CURRENCY})
    rows = pd.concat([*parts], ignore_index=True) if parts else nothing.assign(amount=0)
    items: pd.DataFrame = rows.assign(source=source)[_COLUMNS].astype({"amount": "int64"})
    return items
