"""What all amounts of a night may come to: no sum of them may leave int64 and come back wrong."""

import pandas as pd

from recon.matching.frames.grouping import Ints, amounts_of
from recon.matching.frames.sources import Sources
from recon.model.errors import SourceUnreadableError

SUM_MAX = 2**60
"""Minor units of one column of one source, without signs; sums of several stay in int64."""

_COLUMNS = {
    "orders": ("amount", "expected_captured_amount", "refund_amount"),
    "gateway": ("amount", "captured_amount", "refunded_amount", "authorised_amount"),
    "ledger": ("amount", "transaction_amount"),
    "settlement": ("gross", "fee", "net"),
    "instructions": ("amount",),
}


def refuse_beyond_sums(sources: Sources) -> None:
    """Give up on a night whose sums could not be exact.

    Raises:
        SourceUnreadableError: the amounts of a column come to more than SUM_MAX.
    """
    for source, names in _COLUMNS.items():
        frame: pd.DataFrame | None = getattr(sources, source)
        if frame is None or frame.empty:
            continue
        for name in names:
            if _is_beyond(amounts_of(frame[name])):
                msg = (
                    f"the {source} of this night come to more than {SUM_MAX} minor units in "
                    f"{name}, so their sums would not be exact; nothing was compared: "
                    "look for amounts that are wrong"
                )
                raise SourceUnreadableError(msg)


def _is_beyond(amounts: Ints) -> bool:
    greatest = max(int(amounts.max()), -int(amounts.min()))
    return len(amounts) * greatest > SUM_MAX and sum(map(abs, amounts.tolist())) > SUM_MAX
