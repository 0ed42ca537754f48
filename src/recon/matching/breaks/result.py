"""The result of a reconciliation: four frames, the effects, the control totals and a verdict.

Column names and order are those of the CSV files in the contract of reconciliation (§2, §7), as
archive/schemas.toml declares them; amounts are nullable Int64 minor units of the row's currency,
blank when the side is absent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar

import pandas as pd
import pyarrow as pa

from recon.matching.frames.arrays import columns_of
from recon.model.errors import Defect
from recon.model.gateway_holds import GatewayHolds
from recon.model.terms import ControlTotal, Verdict

Value_co = TypeVar("Value_co", covariant=True)

SECTIONS: Mapping[str, str] = {
    "break": "breaks",
    "match": "matches",
    "pending": "pending",
    "unverified": "unverified",
}
"""Section of a result as totals name it -> its frame, and its file in the run's folder."""
BREAK_COLUMNS = (*columns_of("breaks"),)
COUNTED, PAID, RECEIVED, EXPLAINED = BANK_TABLES = ("counted", "paid", "received", "explained")
"""Frames of a result with bank statements."""
BANKED = "banked"
"""Frame of a result whose ledger books bank receipts."""
EFFECT_COLUMNS = (*columns_of("effects"),)
MATCH_COLUMNS = (*columns_of("matches"),)
PENDING_COLUMNS = (*columns_of("pending"),)
UNVERIFIED_COLUMNS = (*columns_of("unverified"),)
MOVEMENT_COLUMNS = (*columns_of("movements"),)
"""One row per break of the previous run or of this one; exposures in minor units, 0 when absent;
reopens is the closed break that an open one continues, "" for most."""
JOURNAL_COLUMNS = (*columns_of("journals"),)
"""One row per line of a proposed journal; debit and credit in minor units, one of them 0."""
HELD_COLUMNS = (*columns_of("held"),)
"""One row per amount that the gateway holds; debts and what was paid beyond are below 0."""
AMOUNT_COLUMNS = (
    "order_amount",
    "gateway_amount",
    "ledger_amount",
    "effect_orders",
    "effect_ledger",
    "exposure",
    "bank_amount",
    "effect_bank",
    "amount",
    "debit",
    "credit",
)


def subject_of(row: Mapping[str, Any]) -> str:
    """Return what identifies a break's row for display: its order, else its batch or entry."""
    return str(row["order_no"] or row["about"] or "")


def alike_by(row: Mapping[str, Any]) -> str:
    """Return what groups breaks that people answer together: the shared cause, else the code."""
    return str(row["cause"] or row["code"])


class Deferred(Generic[Value_co]):
    """A large value that not every caller needs: read once, when first requested."""

    def __init__(self, make: Callable[[], Value_co]) -> None:
        self._make = cache(make)

    def get(self) -> Value_co:
        """Return the value."""
        return self._make()


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The complete result of one reconciliation."""

    as_of: datetime
    verdict: Verdict
    breaks: pd.DataFrame
    effects: pd.DataFrame
    every_match: Deferred[pd.DataFrame]
    """See `matches`."""
    pending: pd.DataFrame
    unverified: pd.DataFrame
    control_totals: tuple[ControlTotal, ...]
    sides: pd.DataFrame
    """source (orders, gateway, ledger), merchant_id, account_id, currency, state, count, amount."""
    unmapped_codes: tuple[Mapping[str, str | int], ...]
    """field (payment_status, query_result), code, count, sample order_no."""
    not_covered: tuple[str, ...]
    """Comparisons and controls without a source, as text."""
    scope_of_assurance: tuple[Mapping[str, str | int], ...]
    """statement, currency, count, amount: what was proven, what was not, what cannot be seen."""
    rules_digest: str
    words_digest: str
    """Of the sentences of the table of codes: a change is shown and decides nothing."""
    digest: str
    """SHA-256 over the four frames and the effects: the same inputs, the same digest."""
    movements: pd.DataFrame = field(default_factory=lambda: _empty(MOVEMENT_COLUMNS))
    """MOVEMENT_COLUMNS: the roll-forward from the previous run; all `new` without one."""
    held: pd.DataFrame = field(default_factory=lambda: _empty(HELD_COLUMNS))
    """HELD_COLUMNS: what the gateway holds, none without a settlement."""
    gateway_holds: GatewayHolds | None = None
    """The same by account and currency, with the fees; None without a settlement, and in a result
    read from a run's folder."""
    journals: pd.DataFrame = field(default_factory=lambda: _empty(JOURNAL_COLUMNS))
    """JOURNAL_COLUMNS: proposed by this run; empty unless the rules name the accounts."""

    bank: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """BANK_TABLES and BANKED by name; empty where no bank statement was given."""
    bank_lacks: tuple[str, ...] = ()
    """Bank data that does not count, as text; empty in a result read from a run's folder."""
    items: pa.Table = field(default_factory=lambda: pa.table({}))
    """Allocation of every classified row, with the columns of `items` in archive.schemas; without
    columns in a result read from a run's folder."""
    matched_rows: int | None = None
    """Number of matches of a result that released its rows."""

    @property
    def matches(self) -> pd.DataFrame:
        """MATCH_COLUMNS: every matched set, sorted; a run of a million orders has a million."""
        return self.every_match.get()

    def rows_of(self, section: str) -> int:
        """Return the number of rows of a section (breaks, matches, pending, unverified)."""
        return self.matched if section == "matches" else len(getattr(self, section))

    @property
    def matched(self) -> int:
        """Number of matched sets."""
        return len(self.matches) if self.matched_rows is None else self.matched_rows

    def without_rows(self) -> "Reconciliation":
        """Return the result without matches and items, once its files are written.

        The number of matches and the digest over everything stay.
        """
        every_match = Deferred[pd.DataFrame](_released)
        return replace(self, every_match=every_match, items=pa.table({}), matched_rows=self.matched)


def _released() -> Any:
    msg = "the rows of this result were written and released: read them from the night's folder"
    raise Defect(msg)


def _empty(columns: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype="str") for name in columns})
