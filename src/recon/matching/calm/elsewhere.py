"""What is known of all rows of a night while only some of them are looked at.

Ids that several rows have stand here as numbers (see frames.fingerprints): a row may be taken for
one of them that is not, and then is left for the one place where all such rows stand together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from recon.matching.frames.fingerprints import Words, are_among, numbers_of, shared_numbers
from recon.matching.frames.grouping import Bools
from recon.matching.frames.sources import Sources


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a part must know of all others."""

    words: frozenset[str]
    """See spoken_sets.loose_words."""
    entries: Words
    """Numbers of ids that several entries of the ledger may have, sorted."""
    transactions: Words
    """Numbers of transactions that several answers may name, sorted."""
    first_days: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Merchant and account -> the first day that the settlement tells of."""
    refunds: pd.DataFrame | None = None
    """Settlement lines that tell a refund of a payment under another order number than its own."""

    def marked(self, sources: Sources, *, alone: str, shared: str) -> Sources:
        """Some rows of a night, each saying whether another one has its id.

        Args:
            sources: the rows.
            alone: column of the ledger: no other entry has its id.
            shared: column of the answers: another one may name the same transaction.
        """
        ledger = sources.ledger
        if ledger is not None:
            several = are_among(numbers_of(ledger["entry_id"]), self.entries)
            ledger = ledger.assign(**{alone: ~several})
        gateway = sources.gateway
        named = gateway["transaction_id"].ne("").to_numpy(dtype=np.bool_)
        named = named & are_among(numbers_of(gateway["transaction_id"]), self.transactions)
        return replace(sources, gateway=gateway.assign(**{shared: named}), ledger=ledger)


class SeenIds:
    """The numbers of the ids of one column, stretch by stretch."""

    def __init__(self) -> None:
        self._parts: list[Words] = []

    def see(self, ids: "pd.Series[str]") -> None:
        """Another stretch of rows."""
        self._parts.append(numbers_of(ids))

    def shared(self) -> Words:
        """Those that several rows may have, sorted."""
        return shared_numbers(self._parts)

    def stretches_with(self, several: Words) -> list[int]:
        """In which stretches, counted from 0, a row has one of these."""
        return [n for n, part in enumerate(self._parts) if are_among(part, several).any()]


def rows_with(ids: "pd.Series[str]", several: Words) -> Bools:
    """The rows whose id may be one of these."""
    return are_among(numbers_of(ids), several)
