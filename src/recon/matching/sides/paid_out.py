"""What each batch of a settlement pays out: what the books and the bank are held against."""

import pandas as pd

from recon.matching.frames.arrays import text_column
from recon.matching.frames.coding import placed, sums_of
from recon.matching.frames.grouping import amounts_of
from recon.matching.sides.settlement_side import pay_outs

BATCH = ("merchant_id", "account_id", "currency", "batch_id")
PAID_OUT_COLUMNS = (*BATCH, "settled_on", "paid")


def paid_out(settlement: pd.DataFrame) -> pd.DataFrame:
    """One row per batch and currency with a pay-out row (PAID_OUT_COLUMNS), sorted by BATCH.

    `paid` is the sum of its pay-out rows, minor units: more than 0 to the merchant, less than 0
    collected from it. `settled_on` is the last of their days.

    Args:
        settlement: SETTLEMENT_COLUMNS.
    """
    rows = settlement[pay_outs(settlement)]
    groups, batches = placed(rows, by=BATCH)
    paid = sums_of(amounts_of(rows["net"]), groups=groups, size=len(batches)).tolist()
    days = [""] * len(batches)
    for group, day in zip(groups.tolist(), rows["settled_on"].tolist(), strict=True):
        days[group] = max(days[group], day)
    table = sorted(
        (*batch, day, amounts) for batch, day, amounts in zip(batches, days, paid, strict=True)
    )
    columns = [[row[at] for row in table] for at in range(len(PAID_OUT_COLUMNS))]
    texts = {name: text_column(columns[at]) for at, name in enumerate((*BATCH, "settled_on"))}
    return pd.DataFrame({**texts, "paid": pd.Series(columns[-1], dtype="int64")})
