"""What the engine reads: typed frames, one row per accepted source row.

Columns and types are the contract between the readers (files, store) and the engine, as
archive/schemas.toml declares them for the files of a night.
Text is pandas `str` with "" for "not given"; required amounts are int64 minor units, optional ones
nullable Int64; instants are datetime64[us, UTC] with NaT for "not given".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import pandas as pd
from pandas.api.extensions import ExtensionArray

from recon.config.fee_contract import FACTS
from recon.matching.frames.arrays import columns_of
from recon.matching.frames.bank_sources import BankSource
from recon.model.terms import Quarantined, Reject, SourceFile, SourceKind

TEXT = "str"
MINOR_UNITS = "int64"
MINOR_UNITS_OR_BLANK = "Int64"
INSTANT = "datetime64[us, UTC]"

PLACE_COLUMNS: Mapping[str, str] = {"source": TEXT, "line": "int64"}
"""Where a row came from; for findings only, never part of a comparison."""

ORDER_COLUMNS: Mapping[str, str] = columns_of("orders")
"""One row per accepted order row, repeats included."""
GATEWAY_COLUMNS: Mapping[str, str] = columns_of("answers")
"""One row per answer of the gateway; amount is blank unless the answer is `found`."""
LEDGER_COLUMNS: Mapping[str, str] = columns_of("ledger")
"""One row per ledger entry; positive as written, adjustments may be signed."""

FEE_GAP = "fee_gap"
"""Column of settlement lines that were priced: minor units that the fee differs by, which only all
lines together can tell."""
VANISHED_COLUMNS: Mapping[str, str] = {
    name: LEDGER_COLUMNS[name]
    for name in ("entry_id", "merchant_id", "account_id", "order_no", "currency", "amount")
}
"""One row per ledger entry that is no longer there; as it was written."""
INSTRUCTION_COLUMNS: Mapping[str, str] = columns_of("instructions")
"""One row per instruction; for a refund the amount is the refunded one."""
SETTLEMENT_COLUMNS: Mapping[str, str] = {**columns_of("settlement"), **dict.fromkeys(FACTS, TEXT)}
"""One row per line of a settlement file; signed, the payout row of a batch says its sum. FACTS are
of the payment; only a fee contract asks for them."""
VOLUME_COLUMNS: Mapping[str, str] = columns_of("volumes")
"""What whole settlement files come to, day by day; late 1: told after a later day was."""
KEY_COLUMNS: Mapping[str, str] = columns_of("universe")


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything one reconciliation compares."""

    orders: pd.DataFrame
    gateway: pd.DataFrame
    ledger: pd.DataFrame | None
    """None: no ledger is covered; the verdict is never better than INCOMPLETE."""
    instructions: pd.DataFrame | None
    """None: nothing about instructions is judged."""
    rejects: tuple[Reject, ...] = ()
    files: tuple[SourceFile, ...] = ()
    universe: pd.DataFrame | None = None
    """KEY_COLUMNS of the keys a night asked for; None when a gateway file is complete by itself."""
    merged_rows: Mapping[str, "LoadCounts"] = field(default_factory=dict)
    """How the store took the accepted rows of a night, for T2; empty for plain files."""
    arrived: Mapping[SourceKind, Mapping[str, int]] = field(default_factory=dict)
    """Source -> step (proof.books_bridge) -> rows, from what files brought to what is compared."""
    books: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Currency -> step (proof.books_bridge) -> minor units, from the ledger file to `ledger`."""
    exported: tuple["Exported", ...] = ()
    """Journals that were handed out on earlier nights."""
    agreed_write_offs: "AgreedWriteOffs | None" = None
    """What may be written off; None: nobody keeps such a list."""
    opening_balance: tuple["LeftOut", ...] = ()
    """What was left out as older than the window; none of it is a break."""
    settlement: pd.DataFrame | None = None
    """None: what was settled, its fees and its payouts are not covered."""
    volumes: pd.DataFrame | None = None
    """VOLUME_COLUMNS, where the fee contract has tiers by a month."""
    bank: BankSource | None = None
    """None: no statements of a bank were given."""
    settled: "SettledDays | None" = None
    """What a night knows of its settlement files; None: the given files are complete."""
    books_since: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Merchant and account -> the first day of its books, where they may begin after the lines of
    the settlement; empty for a night, whose books are those of its whole window."""
    unread_batches: frozenset[tuple[str, str, str, str]] | None = None
    """Merchant, account, currency and batch of settlement lines of any night that could not be read
    and that nobody brought again since, "" where the cell could not; None: the rejects say it."""
    quarantined: tuple[Quarantined, ...] = ()
    """Order rows of any night that could not be read and that nobody brought again since."""
    orders_lack_since: datetime | None = None
    """An order file is lacking that may tell of payments since then; None: none is lacking."""
    first_days: Mapping[tuple[str, ...], str] | None = None
    """Of a part: merchant and account -> the first day that the settlement of all rows tells of."""

    @property
    def is_part(self) -> bool:
        """Whether groups of the settlement are judged elsewhere, with what is left of all parts."""
        return self.first_days is not None


@dataclass(frozen=True, slots=True)
class AgreedWriteOffs:
    """What may be written off: currency and minor units."""

    breaks: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Break id -> its exposure when two people agreed to write it off."""
    entries: Mapping[str, tuple[str, int]] | None = None
    """Entry id -> what the books had written off before anybody could agree to it here; None: the
    books were not seen yet."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records of one kind and currency that are older than the window and asked about by nobody."""

    what: str
    """`ledger entries`, `payments`."""
    currency: str
    count: int
    amount: int
    """Their net, minor units."""


@dataclass(frozen=True, slots=True)
class SettledDays:
    """Which days the settlement files of one account tell of, ISO dates."""

    first: str
    """The first day of the oldest file, "" without any: older payments are not its business."""
    last: str
    """Up to here nothing is missing; of what is due later a missing line says nothing."""
    waits_for: str = ""
    """The file that is missing, where one ends the proof early."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A journal that was handed out, as it is known."""

    break_id: str
    currency: str
    version: int
    booked: bool


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """T2 of one source: what became of its accepted rows when they were stored."""

    accepted: int
    new: int
    repeat: int
    superseding: int


@dataclass(frozen=True, slots=True)
class Previous:
    """What an earlier run left open."""

    as_of: datetime
    breaks: pd.DataFrame
    """result.BREAK_COLUMNS of the earlier run; ids, first seen and roll-forward come from here."""
    chargebacks: pd.DataFrame
    """KEY_COLUMNS of the keys that were once answered `chargeback`."""
    closed: frozenset[str] = frozenset()
    """Ids of breaks that closed: what is broken again is a new break that points to the old."""
    away: Mapping[str, str] = field(default_factory=dict)
    """Id -> first seen of breaks that went out of sight without closing."""
    vanished: pd.DataFrame = field(default_factory=lambda: frame_of((), columns=VANISHED_COLUMNS))
    """Ledger entries that the newest earlier books had, that tonight's have no more and reverse by
    none."""


def frame_of(rows: Iterable[Mapping[str, object]], *, columns: Mapping[str, str]) -> pd.DataFrame:
    """A typed frame of exactly these columns, from row mappings; missing cells become blank."""
    records = list(rows)
    if not records:
        return _no_rows(tuple(columns.items())).copy()
    return pd.DataFrame(
        {name: _column([row.get(name) for row in records], kind) for name, kind in columns.items()}
    )


@cache
def _no_rows(columns: tuple[tuple[str, str], ...]) -> pd.DataFrame:
    """A night has many frames without a row, and each column is slow to make."""
    return pd.DataFrame({name: _column([], kind) for name, kind in columns})


def _column(values: list[Any], kind: Any) -> ExtensionArray:
    if kind == TEXT:
        values = ["" if value is None else value for value in values]
    if kind == INSTANT:
        values = [pd.NaT if value is None else pd.Timestamp(value) for value in values]
    # An array costs a third of a series, of which a frame takes nothing more.
    column: ExtensionArray = pd.array(values, dtype=kind)
    return column
