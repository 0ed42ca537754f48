"""Input of the engine: typed frames, one row per accepted source row.

Columns and types are the contract between the readers (files, store) and the engine, as
archive/schemas.toml declares them for the files of a run. Text is pandas `str` with "" for "not
given"; required amounts are int64 minor units, optional ones nullable Int64; instants are
datetime64[us, UTC] with NaT for "not given".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import pandas as pd
from pandas.api.extensions import ExtensionArray

from recon.config.fee_contract import FACTS
from recon.config.rules import Rules
from recon.matching.frames.arrays import columns_of
from recon.matching.frames.bank_sources import BankSource
from recon.matching.frames.grouping import microseconds
from recon.model.business_date import AHEAD_MAX, BusinessCalendar
from recon.model.terms import Quarantined, Reject, SourceFile, SourceKind

TEXT = "str"
MINOR_UNITS = "int64"
MINOR_UNITS_OR_BLANK = "Int64"
INSTANT = "datetime64[us, UTC]"

PLACE_COLUMNS: Mapping[str, str] = {"source": TEXT, "line": "int64"}
"""Where a row came from; shown in findings only, never part of a comparison."""

ORDER_COLUMNS: Mapping[str, str] = columns_of("orders")
"""One row per accepted order row, repeats included."""
GATEWAY_COLUMNS: Mapping[str, str] = columns_of("answers")
"""One row per answer of the gateway; amount is blank unless the answer is `found`."""
LEDGER_COLUMNS: Mapping[str, str] = columns_of("ledger")
"""One row per ledger entry; amounts positive as written, adjustments may be signed."""

FEE_GAP = "fee_gap"
"""Column of priced settlement lines: fee charged less fee expected, minor units. It needs all lines
of a run together."""
VANISHED_COLUMNS: Mapping[str, str] = {
    name: LEDGER_COLUMNS[name]
    for name in ("entry_id", "merchant_id", "account_id", "order_no", "currency", "amount")
}
"""One row per ledger entry that is no longer in the ledger file, as it was written."""
INSTRUCTION_COLUMNS: Mapping[str, str] = columns_of("instructions")
"""One row per instruction; for a refund the amount is the refunded one."""
SETTLEMENT_COLUMNS: Mapping[str, str] = {**columns_of("settlement"), **dict.fromkeys(FACTS, TEXT)}
"""One row per line of a settlement file; signed, the payout row of a batch has its total. FACTS
describe the payment; only a fee contract uses them."""
VOLUME_COLUMNS: Mapping[str, str] = columns_of("volumes")
"""Daily totals of whole settlement files; late is 1 for lines reported after a later day was."""
KEY_COLUMNS: Mapping[str, str] = columns_of("universe")


@dataclass(frozen=True, slots=True)
class Sources:
    """All data that one reconciliation compares."""

    orders: pd.DataFrame
    gateway: pd.DataFrame
    ledger: pd.DataFrame | None
    """None: the ledger is not covered; the verdict is never better than INCOMPLETE."""
    instructions: pd.DataFrame | None
    """None: instructions are not compared."""
    rejects: tuple[Reject, ...] = ()
    files: tuple[SourceFile, ...] = ()
    universe: pd.DataFrame | None = None
    """KEY_COLUMNS of the keys that a run queried; None where the gateway file is complete."""
    merged_rows: Mapping[str, "LoadCounts"] = field(default_factory=dict)
    """Counts of how the store took a run's accepted rows, for T2; empty for plain files."""
    arrived: Mapping[SourceKind, Mapping[str, int]] = field(default_factory=dict)
    """Source -> step (proof.ledger_bridge) -> rows, from the files' rows to the rows compared."""
    reported: Mapping[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    """Merchant, account and currency -> count and net of the settlement lines that the files of a
    plain run report, for T2; empty where one file has them all, and of a night."""
    ledger_sums: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Currency -> step (proof.ledger_bridge) -> minor units, from the ledger file to `ledger`."""
    exported: tuple["Exported", ...] = ()
    """Journals that were exported by earlier runs."""
    agreed_write_offs: "AgreedWriteOffs | None" = None
    """Approved write-offs; None: no such list is kept."""
    opening_balance: tuple["LeftOut", ...] = ()
    """What was left out as older than the window; none of it is a break."""
    settlement: pd.DataFrame | None = None
    """None: settlement, its fees and its payouts are not covered."""
    volumes: pd.DataFrame | None = None
    """VOLUME_COLUMNS, where the fee contract has tiers by month."""
    unpriced: Mapping[str, int] = field(default_factory=dict)
    """Reason -> settlement lines whose expected fee is unknown, once they are priced."""
    bank: BankSource | None = None
    """None: no bank statements were given."""
    settled: "SettledDays | None" = None
    """The days that a run's settlement files cover; None: the given files are complete."""
    ledger_since: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Merchant and account -> the first day of its ledger, where it may begin after the settlement
    lines; empty for a nightly run, whose ledger covers its whole window."""
    unread_batches: frozenset[tuple[str, str, str, str]] | None = None
    """Merchant, account, currency and batch of settlement lines of any run that could not be read
    and were not delivered again, "" for an unreadable cell; None: taken from the rejects."""
    quarantined: tuple[Quarantined, ...] = ()
    """Order rows of any run that could not be read and were not delivered again."""
    orders_lack_since: datetime | None = None
    """A missing order file may contain payments from this instant on; None: no file is missing."""
    first_days: Mapping[tuple[str, ...], str] | None = None
    """Of a bucket: merchant and account -> the first day in the settlement of all rows."""
    rows_before: Mapping[str, int] = field(default_factory=dict)
    """Of what is compared last: source -> rows that were compared in buckets."""
    answers_before: frozenset[str] = frozenset()
    """Kinds of the gateway's answers among these (see KeyAnswer)."""

    @property
    def is_bucket(self) -> bool:
        """Whether this is one bucket; settlement groups are classified later over all buckets."""
        return self.first_days is not None


@dataclass(frozen=True, slots=True)
class AgreedWriteOffs:
    """Approved write-offs, each with its currency and minor units."""

    breaks: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Break id -> its exposure when two people approved the write-off."""
    entries: Mapping[str, tuple[str, int]] | None = None
    """Entry id -> what the ledger had written off before it could be approved here; None: no ledger
    has been read yet."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records of one kind and currency that are older than the window and were not queried."""

    what: str
    """`ledger entries`, `payments`."""
    currency: str
    count: int
    amount: int
    """Their net, minor units."""


@dataclass(frozen=True, slots=True)
class SettledDays:
    """The days that the settlement files of one account cover, as ISO dates."""

    first: str
    """The first day of the oldest file, "" without any; no payment before it is expected."""
    last: str
    """The files are complete up to this day; a missing line that is due later proves nothing."""
    waits_for: str = ""
    """The first missing file, where one ends the covered days early."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A proposed journal that was exported, and whether it is booked."""

    break_id: str
    currency: str
    version: int
    booked: bool


@dataclass(frozen=True, slots=True)
class LoadCounts:
    """Counts for T2 of one source: what became of its accepted rows when they were stored."""

    accepted: int
    new: int
    repeat: int
    superseding: int


@dataclass(frozen=True, slots=True)
class Previous:
    """The state that an earlier run left open."""

    as_of: datetime
    breaks: pd.DataFrame
    """result.BREAK_COLUMNS of the earlier run; ids, first seen and roll-forward come from here."""
    chargebacks: pd.DataFrame
    """KEY_COLUMNS of the keys that were once answered `chargeback`."""
    closed: frozenset[str] = frozenset()
    """Ids of closed breaks; if one breaks again, it is a new break that refers to the old one."""
    away: Mapping[str, str] = field(default_factory=dict)
    """Id -> first seen, for breaks that went out of sight without closing."""
    vanished: pd.DataFrame = field(default_factory=lambda: frame_of((), columns=VANISHED_COLUMNS))
    """Ledger entries of the newest earlier ledger that this run's ledger neither has nor
    reverses."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a comparison rests on besides the rows."""

    rules: Rules
    as_of: datetime
    """The instant that closes the business date; no other time is used."""
    previous: Previous | None = None
    """What an earlier run left open, for ids, first seen and the roll-forward."""

    @property
    def calendar(self) -> BusinessCalendar:
        """The merchant's calendar."""
        return self.rules.business_calendar

    @property
    def now(self) -> int:
        """The instant in microseconds since 1970, as frames count it."""
        return microseconds(self.as_of)

    @property
    def today(self) -> date:
        """The business date that closes at the instant (or contains it)."""
        return self.calendar.business_date_of(self.as_of - timedelta(microseconds=1))

    @property
    def last_day(self) -> str:
        """The last plausible day, ISO date; no grace runs from a date after it."""
        return self.calendar.local_date(self.as_of + AHEAD_MAX).isoformat()


def frame_of(rows: Iterable[Mapping[str, object]], *, columns: Mapping[str, str]) -> pd.DataFrame:
    """Build a typed frame of exactly these columns from row mappings; missing cells are blank."""
    records = list(rows)
    return pd.DataFrame(
        {name: _column([row.get(name) for row in records], kind) for name, kind in columns.items()}
    )


def _column(values: list[Any], kind: Any) -> ExtensionArray:
    if kind == TEXT:
        values = ["" if value is None else value for value in values]
    if kind == INSTANT:
        values = [pd.NaT if value is None else pd.Timestamp(value) for value in values]
    # An array takes a third of the time of a series, and a frame needs no more than the array.
    column: ExtensionArray = pd.array(values, dtype=kind)
    return column
