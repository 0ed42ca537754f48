"""How far back a night looks, and which older orders it queries again.

Records that are older than the window and not queried are opening balance: they are reported, never
a break. Orders that are queried for another reason are compared however old they are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.coding import equals, is_among
from recon.matching.frames.grouping import Ints
from recon.matching.frames.sources import LeftOut
from recon.matching.sides.ledger_side import CLOSERS, is_base_type
from recon.matching.sides.settlement_side import as_earlier
from recon.model.business_date import midnight
from recon.model.terms import (
    CONFIRMED_STATES,
    REJECTED_STATES,
    EntryType,
    InstructionKind,
)
from recon.store.nights.runs import Run

LOOK_BACK_DAYS = (1, 7, 30, 90, 180)
"""Ages at which an order is queried again, whatever its state: what changed opens a break."""
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
"""Start of a span without a lower limit."""
ENTRIES, PAYMENTS = "ledger entries", "payments"
OF_WINDOW = (
    *("merchant_id", "account_id", "order_no"),
    *("transaction_id", "entry_type", "booked_at"),
)
"""Columns that decide whose a ledger entry is, and whether it is in the window."""
_OF_GATEWAY = (EntryType.FEE, EntryType.RESERVE, EntryType.PAYOUT)


def window_start(run: Run, *, rules: Rules) -> datetime:
    """Orders before this instant are compared only if they are queried for another reason."""
    return _start(run, days=rules.window.orders_days, rules=rules)


def ledger_start(run: Run, *, rules: Rules) -> datetime:
    """Ledger entries before this instant cause no queries."""
    return _start(run, days=rules.window.ledger_days, rules=rules)


def settled_since(run: Run, *, rules: Rules) -> str:
    """First day (ISO) whose lines a night compares; older lines only of payments it asks about."""
    return ledger_start(run, rules=rules).date().isoformat()


def _start(run: Run, *, days: int, rules: Rules) -> datetime:
    first = opening(rules)
    start = run.as_of - timedelta(days=days)
    return start if first is None else max(start, first)


def opening(rules: Rules) -> datetime | None:
    """The first instant that is reconciled; None when the rules name no opening date."""
    day = rules.window.opening_date
    return None if day is None else midnight(day, zone=rules.business_calendar.zone).astimezone(UTC)


def looked_back(run: Run, *, before: Run | None) -> Iterator[tuple[datetime, datetime]]:
    """Spans (after, up to) of order times reaching a LOOK_BACK_DAYS age since the last night."""
    since = run.as_of - timedelta(days=1) if before is None else before.as_of
    for days in LOOK_BACK_DAYS:
        age = timedelta(days=days)
        yield since - age, run.as_of - age


def in_window(
    parts: Iterable[pd.DataFrame],
    *,
    since: datetime,
    queried: "Iterable[str] | pd.Series[str]",
    settled_from: datetime | None = None,
) -> Iterator[pd.DataFrame]:
    """The entries booked since an instant, and older ones of keys that are queried.

    Fees, reserves and payouts are compared with all that was ever settled: all of them since its
    first day (`settled_from`, None without a settlement) are included, and none from before. Bank
    entries of the ledger are compared with every statement since the opening, and always included;
    so are entries that close a group of these by its name and belong to no payment.

    `parts` are batches of ledger entries; what was booked before `since` comes last.
    """
    old: list[pd.DataFrame] = []
    for part in parts:
        # For entries booked since, whether their key is queried makes no difference.
        is_recent = part["booked_at"] >= since
        yield _of_window(part[is_recent], saved=is_recent[is_recent], settled_from=settled_from)
        old.append(part[~is_recent])
    if any(map(len, old)):
        before = pd.concat(old, ignore_index=True)
        is_queried = is_among(before["order_no"], queried) & (before["order_no"] != "")
        yield _of_window(before, saved=is_queried, settled_from=settled_from)


def _of_window(
    ledger: pd.DataFrame, *, saved: "pd.Series[bool]", settled_from: datetime | None
) -> pd.DataFrame:
    if settled_from is not None:
        of_gateway = is_base_type(ledger["entry_type"], *_OF_GATEWAY)
        saved = (saved & ~of_gateway) | (of_gateway & (ledger["booked_at"] >= settled_from))
    saved = saved | is_base_type(ledger["entry_type"], EntryType.BANK)
    closes = is_base_type(ledger["entry_type"], *CLOSERS)
    saved |= closes & (ledger["order_no"] == "") & (ledger["transaction_id"] == "")
    return ledger[saved].reset_index(drop=True)


def in_question(
    instructions: pd.DataFrame, *, queried: "Iterable[str] | pd.Series[str]"
) -> pd.DataFrame:
    """Instructions of queried orders, those without a final state, and those without a payment.

    No answer of tonight could confirm or deny any others. Payouts are compared with what was
    settled and booked, cancelled subscriptions with nothing else.
    """
    ended = equals(instructions["state"], *CONFIRMED_STATES, *REJECTED_STATES)
    of_none = equals(
        instructions["kind"], InstructionKind.PAYOUT, InstructionKind.CANCEL_SUBSCRIPTION
    )
    saved = is_among(instructions["order_no"], queried) | ~ended | of_none
    return instructions[saved].reset_index(drop=True)


@dataclass(frozen=True, slots=True)
class BeforeOpening:
    """Orders paid before the opening date that are known only from the gateway."""

    order_nos: frozenset[str] = frozenset()
    payments: frozenset[str] = frozenset()
    """Ids of their payments at the gateway."""

    def without(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows of all other orders."""
        if not self.order_nos:
            return frame
        return frame[~is_among(frame["order_no"], self.order_nos)].reset_index(drop=True)

    def lines(self, settlement: pd.DataFrame) -> pd.DataFrame:
        """Settlement lines; those of these orders become earlier ones without order and payment."""
        if not self.order_nos:
            return settlement
        old = self._are_named(settlement)
        return as_earlier(_naming_none(settlement, rows=old), rows=old.to_numpy(dtype=bool))

    def entries(self, ledger: pd.DataFrame, *, is_settled: bool) -> pd.DataFrame:
        """Ledger entries without those of these orders.

        What the gateway settled stays (see `lines`), and with it the ledger's entries of that: the
        fees, without a payment on both sides, the reserves and the payouts.
        """
        if not self.order_nos:
            return ledger
        dropped = is_among(ledger["order_no"], self.order_nos)
        if is_settled:
            dropped &= ~is_base_type(ledger["entry_type"], *_OF_GATEWAY)
            is_fee = is_base_type(ledger["entry_type"], EntryType.FEE)
            ledger = _naming_none(ledger, rows=self._are_named(ledger) & is_fee)
        return ledger[~dropped].reset_index(drop=True)

    def _are_named(self, rows: pd.DataFrame) -> "pd.Series[bool]":
        by_order = is_among(rows["order_no"], self.order_nos)
        return by_order | is_among(rows["transaction_id"], self.payments)


NOTHING_BEFORE = BeforeOpening()


def left_out(what: str, *, currency: "pd.Series[str]", net: Ints) -> tuple[LeftOut, ...]:
    """Number and net sum of omitted records by currency (grain of both columns: record)."""
    frame = pd.DataFrame({"currency": currency.to_numpy(), "net": net})
    sums = frame.groupby("currency")["net"].agg(["size", "sum"])
    return tuple(
        LeftOut(what, str(currency), int(n), int(worth)) for currency, n, worth in sums.itertuples()
    )


def _naming_none(frame: pd.DataFrame, *, rows: "pd.Series[bool]") -> pd.DataFrame:
    """The frame with order and payment blank in the marked rows."""
    return frame.assign(
        **{name: frame[name].where(~rows, "") for name in ("order_no", "transaction_id")}
    )
