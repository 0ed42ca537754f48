"""T10: what the books wrote off is what two people agreed to, whatever became of its set.

A write-off gives money up, and it is booked outside. So its entries are counted one by one, also
where no break ever showed, none shows yet, or the set is pending or unverified.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from recon.matching.breaks.result_rows import identities
from recon.matching.frames.arrays import text_column
from recon.matching.frames.digest import id_of_text
from recon.matching.frames.grouping import Ints, amounts_of
from recon.matching.frames.sources import AgreedWriteOffs, Previous, Sources
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY, ITEMS, compared_rows, paired, sums
from recon.matching.frames.versions import NEW
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.ledger_side import entry_versions, ledger_items
from recon.matching.sides.settlement_side import one_by_one
from recon.model.errors import SourceUnreadableError
from recon.model.words import REVERSAL_SUFFIX, ControlTotal, EntryType

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


def refuse_beyond_sums(sources: Sources, *, parts: Sums | None = None) -> None:
    """Give up on a night whose sums could not be exact.

    `parts`: what rows come to that are not among these.

    Raises:
        SourceUnreadableError: the amounts of a column come to more than SUM_MAX.
    """
    counted = Counter(parts or {})
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
    """What the amounts of every column come to without their signs."""
    frames = {source: _by_themselves(getattr(sources, source)) for source in _COLUMNS}
    return {
        (source, name): _without_signs(amounts_of(frame[name]))
        for source, frame in frames.items()
        if frame is not None and not frame.empty
        for name in _COLUMNS[source]
    }


def _by_themselves(frame: pd.DataFrame | None) -> pd.DataFrame | None:
    """Without sums of settlement lines: where those lines stood they were bounded."""
    return None if frame is None else one_by_one(frame)


def _without_signs(amounts: Ints) -> int:
    greatest = max(int(amounts.max()), -int(amounts.min()))
    if len(amounts) * greatest > SUM_MAX:
        return sum(map(abs, amounts.tolist()))
    return int(np.abs(amounts).sum())


NAME = "write-offs in the books = those that two people agreed to"
TYPES = (EntryType.WRITE_OFF.value, EntryType.WRITE_OFF.value + REVERSAL_SUFFIX)
SHOWN_MAX = 50
"""Sets whose write-off is beyond what was agreed that are named one by one."""


def write_off_totals(
    sources: Sources, *, joined: Joined, previous: Previous | None
) -> Iterator[ControlTotal]:
    """T10 by count and by amount, and each write-off beyond what was agreed under its own name.

    The left side comes from the ledger's rows, the right one from the sets and the list of what
    people agreed to; nothing is asked where nobody keeps such a list.
    """
    agreed = sources.agreed_write_offs
    if agreed is None or sources.ledger is None:
        return
    booked = booked_write_offs(sources.ledger)
    known = _known(joined, agreed=agreed, previous=previous)
    fitting = known[known["amount"].eq(known["agreed"])]
    yield from compared_rows("T10", NAME, left=booked, right=fitting)
    allowed = known.assign(amount=known["agreed"])
    yield from paired("T10", NAME, left=sums(booked), right=sums(allowed), measure="amount")
    beyond = known[known["amount"].ne(known["agreed"])].head(SHOWN_MAX)
    columns = (beyond[name] for name in (*ACCOUNT_CURRENCY, "key", "amount", "agreed"))
    for merchant, account, currency, key, amount, allows in zip(*columns, strict=True):
        name = f"write-off of {key} = agreed"
        account_currency = str(merchant), str(account), str(currency)
        yield ControlTotal("T10", name, *account_currency, "amount", int(amount), int(allows))


def booked_write_offs(ledger: pd.DataFrame) -> pd.DataFrame:
    """The write-offs of the books: merchant, account, currency, entry_id, amount.

    Minor units, a reversal negative; repeats of a row count once, and an entry that is told in two
    ways not at all: it is refused.
    """
    ids = ledger.loc[ledger["entry_type"].isin(TYPES), "entry_id"]
    rows = ledger[ledger["entry_id"].isin(ids)].reset_index(drop=True)
    rows = rows[(entry_versions(rows) == NEW) & rows["entry_type"].isin(TYPES).to_numpy()]
    rows = rows.reset_index(drop=True)
    items = ledger_items(rows)
    return pd.DataFrame(
        {
            "merchant_id": rows["merchant_id"],
            "account_id": rows["account_id"],
            "currency": text_column(items["currency"]),
            "entry_id": text_column(items["entry_id"]),
            "amount": items["forward"],
        }
    )


def _known(joined: Joined, *, agreed: AgreedWriteOffs, previous: Previous | None) -> pd.DataFrame:
    """One row per set and currency with write-offs: how many, how much, how much was agreed."""
    every = joined.ledger.items
    every = every.take(every["kind"] == EntryType.WRITE_OFF.value)
    # An entry that is told in two ways counts nowhere.
    conflict = joined.sets["entry_conflict"][every["set"]]
    every = every.take(~(conflict & (every["forward"] == 0)))
    earlier = agreed.entries or {}
    before = [
        amount if earlier.get(entry) == (money, amount) else 0
        for entry, money, amount in every.rows("entry_id", "currency", "forward")
    ]
    columns = {name: every[name] for name in ("set", "currency", "forward")}
    items = pd.DataFrame({**columns, "before": np.array(before, dtype=np.int64), ITEMS: 1})
    groups = items.groupby(["set", "currency"], sort=True)
    sums = groups[["forward", "before", ITEMS]].sum().reset_index()
    for name in ("merchant_id", "account_id", "key"):
        sums[name] = text_column(joined.sets[name][sums["set"].to_numpy()])
    first = identities(joined.sets)[sums["set"].to_numpy()] if len(sums) else []
    closed = frozenset() if previous is None else previous.closed
    by_people = [
        _agreed_to(
            set_key, first=str(break_id), currency=str(money), agreed=agreed.breaks, closed=closed
        )
        for set_key, break_id, money in zip(
            zip(*(sums[name] for name in ("merchant_id", "account_id", "key")), strict=True),
            first,
            sums["currency"],
            strict=True,
        )
    ]
    allowed = sums["before"] + np.array(by_people, dtype=np.int64)
    # Less than was agreed may be booked; a reversal alone gives nothing up.
    agreed_to = np.minimum(sums["forward"], np.maximum(allowed, 0))
    return pd.DataFrame({**sums, "amount": sums["forward"], "agreed": agreed_to})


def _agreed_to(
    set_key: tuple[object, ...],
    *,
    first: str,
    currency: str,
    agreed: Mapping[str, tuple[str, int]],
    closed: frozenset[str],
) -> int:
    """Minor units that people agreed to over all breaks of one key, whatever number they had."""
    total, number, break_id = 0, 1, first
    while True:
        money, amount = agreed.get(break_id, (currency, 0))
        total += amount if money == currency else 0
        if break_id not in closed and break_id not in agreed:
            return total
        number += 1
        break_id = id_of_text("\x1f".join((*map(str, set_key), str(number))))
