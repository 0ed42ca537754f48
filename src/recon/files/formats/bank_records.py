"""What a bank statement says before anybody typed it: text, the mark of a sign, and where it stood.

Every format of banks is read into these; a sign is a mark beside an amount, never part of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from recon.matching.frames.bank_sources import STATEMENT
from recon.matching.frames.grouping import Bools

ENTRIES_MAX = 2_000_000
"""Entries of one file."""
STATEMENTS_MAX = 10_000
"""Statements of one file."""
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


@dataclass(frozen=True, slots=True)
class EntryBlock:
    """Many entries as columns; none of them has charges, another currency or payments in it."""

    texts: Mapping[str, pa.LargeStringArray]
    """BLOCK_TEXTS."""
    credit: Bools
    reversal: Bools
    booked: Bools
    line_of: Callable[[int], int]
    """Row -> the line where it begins."""

    def __len__(self) -> int:
        """How many entries."""
        return len(self.credit)


def block_of_texts(
    columns: Mapping[str, Sequence[str]],
    *,
    marks: Sequence[tuple[bool, bool, bool]],
    order: Sequence[int],
    line_of: Callable[[int], int],
) -> EntryBlock:
    """A block of columns that stand in another order.

    Args:
        columns: BLOCK_TEXTS.
        marks: credit, reversal and booked of each.
        order: the row of each.
        line_of: row -> line.
    """
    turned = np.argsort(np.array(order, dtype=np.int64))
    rows = pa.array(turned)
    texts = {name: pa.array(cells, pa.large_string()).take(rows) for name, cells in columns.items()}
    credit, reversal, booked = np.array(marks, dtype=np.bool_).reshape(-1, 3)[turned].T
    return EntryBlock(texts, credit, reversal, booked, line_of)


def block_of(entries: Sequence[RawEntry]) -> EntryBlock:
    """Entries as columns, without what only few of them have."""
    columns = {name: [getattr(entry, name) for entry in entries] for name in BLOCK_TEXTS}
    marks = [(entry.credit, entry.reversal, entry.booked) for entry in entries]
    lines = [entry.line for entry in entries]
    order = range(len(lines))
    return block_of_texts(columns, marks=marks, order=order, line_of=lines.__getitem__)


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
