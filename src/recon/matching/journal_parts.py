"""What each break lacks in the books, by the kind of entry that would put it right."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from recon.matching.grouping import Ints
from recon.matching.joined_sets import Joined
from recon.model import EntryType

PARTS = ("sales", "refunds", "chargebacks", "payouts")
"""Accounts of the rules, each for one kind of entry."""
_OF_LEDGER: Mapping[str, str] = {
    EntryType.CAPTURE.value: "sales",
    EntryType.ADJUSTMENT.value: "sales",
    EntryType.REFUND.value: "refunds",
    EntryType.CHARGEBACK.value: "chargebacks",
    EntryType.PAYOUT.value: "payouts",
}


def parts_of(joined: Joined, *, break_sets: pd.DataFrame) -> pd.DataFrame:
    """What is to be booked, minor units (columns break_id, currency, part, amount; never 0).

    The sum of the parts of a break and currency is gateway less ledger. Each part is what the
    gateway shows of one kind of movement less what is booked of that kind, so a refund that is
    booked twice is put right as a refund, whatever the break is called.

    Args:
        joined: the sets with their items.
        break_sets: which set each break is (columns set, break_id).
    """
    ids = break_sets.set_index("set")["break_id"]
    rows = pd.concat([_shown(joined), _paid_out(joined), _booked(joined)], ignore_index=True)
    rows = rows[rows["set"].isin(ids.index)]
    by = ["set", "currency", "part"]
    sums = rows.groupby(by, sort=True)["amount"].sum().reset_index()
    sums = sums[sums["amount"].ne(0)]
    sums["break_id"] = sums["set"].map(ids).astype("str")
    return sums[["break_id", "currency", "part", "amount"]].reset_index(drop=True)


def _shown(joined: Joined) -> pd.DataFrame:
    items = joined.gateway.items
    captured, refunded, net = (
        items[name].to_numpy(dtype=np.int64) for name in ("captured", "refunded", "net")
    )
    # What is left of a payment that was charged back is neither its capture nor a refund of it.
    kinds = {"sales": captured, "refunds": -refunded, "chargebacks": net - captured + refunded}
    return pd.concat([_part(items, part=part, amount=amount) for part, amount in kinds.items()])


def _paid_out(joined: Joined) -> pd.DataFrame:
    return _part(
        joined.payouts, part="payouts", amount=joined.payouts["net"].to_numpy(dtype=np.int64)
    )


def _booked(joined: Joined) -> pd.DataFrame:
    items = joined.ledger.items
    part = items["kind"].map(_OF_LEDGER).fillna("")
    return items.assign(part=part, amount=-items["net"])[["set", "currency", "part", "amount"]]


def _part(items: pd.DataFrame, *, part: str, amount: Ints) -> pd.DataFrame:
    return items[["set", "currency"]].assign(part=part, amount=amount)
