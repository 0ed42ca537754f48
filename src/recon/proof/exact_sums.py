"""Refuses a run whose sums would not be exact in int64."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from recon.matching.frames.grouping import Ints, amounts_of
from recon.matching.frames.sources import Sources
from recon.matching.sides.settlement_side import one_by_one
from recon.model.errors import SourceUnreadableError

SUM_MAX = 2**60
"""Minor units of one column of one source, without signs; sums of several stay in int64."""

Sums = Mapping[tuple[str, str], int]
"""Source and column -> minor units."""
_COLUMNS = {
    "orders": ("amount", "expected_captured_amount", "refund_amount"),
    "gateway": ("amount", "captured_amount", "refunded_amount", "authorised_amount"),
    "ledger": ("amount", "transaction_amount"),
    "settlement": ("gross", "fee", "net"),
    "instructions": ("amount",),
}


def refuse_beyond_sums(sources: Sources, *, counted_sums: Sums | None = None) -> None:
    """Refuse a run whose sums could not be exact.

    `counted_sums`: sums of rows that are not in `sources`.

    Raises:
        SourceUnreadableError: the amounts of a column sum to more than SUM_MAX.
    """
    counted = Counter(counted_sums or {})
    counted.update(sums_of_amounts(sources))
    for (source, name), amount in counted.items():
        if amount > SUM_MAX:
            msg = (
                f"the {source} of this night come to more than {SUM_MAX} minor units in "
                f"{name}, so their sums would not be exact; nothing was compared: "
                "look for amounts that are wrong"
            )
            raise SourceUnreadableError(msg)


def sums_of_amounts(sources: Sources) -> Sums:
    """Return the sum of absolute amounts of every column."""
    frames = {source: getattr(sources, source) for source in _COLUMNS}
    # Summed settlement lines were checked where they were read.
    single = {source: one_by_one(each) for source, each in frames.items() if each is not None}
    return {
        (source, name): _without_signs(amounts_of(frame[name]))
        for source, frame in single.items()
        if not frame.empty
        for name in _COLUMNS[source]
    }


def _without_signs(amounts: Ints) -> int:
    greatest = max(int(amounts.max()), -int(amounts.min()))
    if len(amounts) * greatest > SUM_MAX:
        return sum(map(abs, amounts.tolist()))
    return int(np.abs(amounts).sum())
