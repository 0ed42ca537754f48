"""What a bank statement says before anybody typed it: text, the mark of a sign, and where it stood.

Every format of banks is read into these; a sign is a mark beside an amount, never part of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recon.matching.frames.bank_sources import STATEMENT
from recon.matching.frames.grouping import Bools

ENTRIES_MAX = 1_000_000
"""Entries of one file."""
STATEMENTS_MAX = 10_000
"""Statements of one file."""
BLOCK_ROWS = 8_192
"""Entries that are columns together."""
TEXT_CHARACTERS_MAX = 4_000
"""Of the words that one entry carries; what is longer is cut: a reference stands before that."""


@dataclass(frozen=True, slots=True)
class RawBalance:
    """One balance."""

    amount: str
    """Unsigned, with a point."""
    currency: str
    credit: bool
    day: str
    """ISO date."""
    intermediate: bool = False
    """Of a page that is not the first (opening) or the last (closing)."""


@dataclass(slots=True)
class RawEntry:
    """One entry of a statement."""

    line: int
    amount: str
    """Unsigned, with a point."""
    currency: str
    credit: bool
    """The mark as it stands, before anything is said about reversals."""
    booked_on: str
    value_on: str
    reversal: bool = False
    entry_no: str = ""
    booked: bool = True
    end_to_end_id: str = ""
    reference: str = ""
    counterparty: str = ""
    text: str = ""
    charges: tuple[tuple[str, str, bool], ...] = ()
    """Amount, currency and whether they are a credit."""
    instructed_currency: str = ""
    instructed_amount: str = ""
    details: tuple["RawEntry", ...] = ()
    """Payments that one entry stands for."""


BLOCK_TEXTS = (
    *("amount", "currency", "booked_on", "value_on", "entry_no", "end_to_end_id", "reference"),
    *("counterparty", "text"),
)
"""Columns of a block, as the fields of an entry."""


_POOL = pa.system_memory_pool()
REPEATED = ("currency", "booked_on", "value_on")
"""Those of which many entries have one: each different text is held once."""


@dataclass(frozen=True, slots=True)
class EntryBlock:
    """Many entries as columns; none of them has charges, another currency or payments in it."""

    texts: Mapping[str, pa.Array]
    """BLOCK_TEXTS: text, of REPEATED as a dictionary."""
    credit: Bools
    reversal: Bools
    booked: Bools
    lines: npt.NDArray[np.int32]
    """Where each of them begins."""

    def __len__(self) -> int:
        """How many entries."""
        return len(self.credit)


def block_of(entries: Sequence[RawEntry]) -> EntryBlock:
    """Entries as columns, without what only few of them have."""
    # In other memory than Arrow's own pool, which gives back little of what it took.
    texts = {
        name: pa.array([getattr(entry, name) for entry in entries], pa.string(), memory_pool=_POOL)
        for name in BLOCK_TEXTS
    }
    texts |= {name: texts[name].dictionary_encode() for name in REPEATED}
    marks = [(entry.credit, entry.reversal, entry.booked) for entry in entries]
    turned = np.array(marks, dtype=np.bool_).reshape(-1, 3)
    credit, reversal, booked = np.ascontiguousarray(turned.T)
    lines = np.array([entry.line for entry in entries], dtype=np.int32)
    return EntryBlock(texts, credit, reversal, booked, lines)


def is_odd(entry: RawEntry) -> bool:
    """Whether an entry says more than columns do."""
    return bool(entry.details or entry.charges or entry.instructed_currency)


@dataclass(slots=True)
class Gathered:
    """Entries of one statement as they come; so many plain ones together become columns."""

    entries: list[RawEntry | EntryBlock] = field(default_factory=list)
    rows: int = 0
    _plain: list[RawEntry] = field(default_factory=list)
    """The last ones, as far as columns can hold them."""

    def add(self, entry: RawEntry, /) -> None:
        """The next entry."""
        self.rows += 1
        if is_odd(entry):
            self.entries += [*self._plain, entry]
            self._plain = []
            return
        self._plain.append(entry)
        if len(self._plain) == BLOCK_ROWS:
            self.entries.append(block_of(self._plain))
            self._plain = []

    def whole(self) -> list[RawEntry | EntryBlock]:
        """All of them; of the last ones not so many that they are columns."""
        return [*self.entries, *self._plain]

    def in_currency(self, currency: str, /) -> list[RawEntry | EntryBlock]:
        """The same of a format that says their currency once, behind them."""
        words = pa.array([currency], pa.string())
        entries = self.whole()
        for at, entry in enumerate(entries):
            if isinstance(entry, RawEntry):
                entry.currency = currency
                continue
            indices = entry.texts["currency"].indices
            own = pa.DictionaryArray.from_arrays(indices, words)
            entries[at] = replace(entry, texts={**entry.texts, "currency": own})
        return entries


@dataclass(slots=True)
class RawStatement:
    """One statement of one account."""

    account: str
    number: str
    currency: str = ""
    form: str = STATEMENT
    page: int = 1
    last_page: bool = True
    from_day: str = ""
    """ISO date; "" where the document names no period and only its balances have days."""
    to_day: str = ""
    created: str = ""
    opening: RawBalance | None = None
    closing: RawBalance | None = None
    entries: list[RawEntry | EntryBlock] = field(default_factory=list)
    line: int = 1
