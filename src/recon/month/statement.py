"""The inputs and the result of a month's statement: figures, equations and lists of one account.

Each row has one name for console, files and workbook, in the order in which people read them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from recon.config.rules import JournalAccounts
from recon.model.business_date import BusinessCalendar, BusinessMonth
from recon.model.money import format_minor_units

AROUND_DAYS = 400
"""Days before and after a month by which moments are dated; anything older gets the first day."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def days_around(
    month: BusinessMonth, *, calendar: BusinessCalendar
) -> Iterator[tuple[str, datetime]]:
    """Yield business dates around a month and when each opens; it closes when the next opens."""
    days = (month.last - month.first).days + 2 * AROUND_DAYS + 1
    start = month.first - timedelta(days=AROUND_DAYS)
    yield start.isoformat(), _EPOCH
    for number in range(1, days):
        day = start + timedelta(days=number)
        yield day.isoformat(), calendar.closes_at(day - timedelta(days=1))


OPENING, MOVED, CLOSING = "opening", "moved", "closing"
"""The time of a figure: the close of the day before the month, the month, its last close."""
OPEN, WAITS, GROUPS = "open", ("not_in_batch", "not_booked"), ("fees", "payouts")
"""Why ledger and gateway differ: still open, an adjustment that waits for its other half, a sum of
many entries."""
LATE, VANISHED = "late", "entry_vanished"
ALONE = "lines that stood alone in a night, of payments that none settles there"
COUNT, AMOUNT = "count", "amount"
ORDERS_DISPLAYED_MAX = 5
"""Orders named in one sentence."""


@dataclass(frozen=True, slots=True)
class MonthNight:
    """A night as its sealed files."""

    number: int
    """Its position among the nights read; the oldest is 0."""
    run_id: str
    business_date: str
    rules_digest: str
    files: Mapping[str, Path]
    """Schema name -> the file with its rows; a night need not have all of them."""
    predecessor: str = ""
    """The run whose open breaks it carries forward; "" for none."""
    ledger_since: tuple[datetime, datetime] | None = None
    """Since when its ledger is complete: entries of orders, and those of fees, reserves and
    payouts; None without a ledger, or if rows of it were refused."""


@dataclass(frozen=True, slots=True)
class ClosedPeriod:
    """A month that two people closed; what nights after `known_by` report of it counts as later."""

    month: BusinessMonth
    known_by: str
    """Business date of the newest night that was known."""


@dataclass(frozen=True, slots=True)
class MonthFrame:
    """The inputs of a statement apart from its nights: days, and the accounts of the ledger."""

    month: BusinessMonth
    account: tuple[str, str]
    calendar: BusinessCalendar
    """Time zone and cut-off of the newest night's rules."""
    due: Sequence[str] = ()
    """ISO business dates of the month on which a night was due by now."""
    accounts: JournalAccounts | None = None
    """From the newest night's rules; if None, or without a fee account, nothing is accrued."""
    closed: Sequence[ClosedPeriod] = ()
    """Earlier months that two people closed: their figures stay."""
    earlier: Sequence[MonthNight] = ()
    """Nights before those of the statement, numbered below 0; see `earlier_query`."""


@dataclass(frozen=True, slots=True)
class MonthFigure:
    """One figure of a statement."""

    currency: str
    of: str
    """gateway (what it owes), reserve (held + or released -), outside (before the settlement
    begins), transit, ledger."""
    at: str
    """OPENING, MOVED or CLOSING."""
    name: str
    """A class of open items, a kind of movement, or a type of entry."""
    count: int
    amount: int
    """Minor units, signed as it changes what the merchant is due."""


@dataclass(frozen=True, slots=True)
class MonthEquation:
    """Two sides that must be equal, each a number of rows or minor units."""

    id: str
    name: str
    currency: str
    measure: str
    left: int
    right: int

    @property
    def both_sides(self) -> str:
        """Both sides as text for people, with money in major units."""
        return " and ".join(
            format_minor_units(side, currency=self.currency)
            if self.measure == AMOUNT and self.currency
            else f"{side}"
            for side in (self.left, self.right)
        )

    @property
    def holds(self) -> bool:
        """Whether both sides are equal."""
        return self.left == self.right


class UnknownRefund(NamedTuple):
    """A payment refunded in part by an amount that no instruction and no settlement line shows."""

    payment: str
    order_no: str
    currency: str


class UnreportedRefunds(NamedTuple):
    """The unknown refunds of one currency, with a sentence for a person."""

    currency: str
    payments: int
    sentence: str


def sums_of(figures: Iterable[MonthFigure]) -> Counter[tuple[str, str, str]]:
    """Sum the figures by currency, of and at, in minor units."""
    sums: Counter[tuple[str, str, str]] = Counter()
    for each in figures:
        sums[each.currency, each.of, each.at] += each.amount
    return sums


@dataclass(frozen=True, slots=True)
class MonthStatement:
    """The statement of one month of one account."""

    month: BusinessMonth
    account: tuple[str, str]
    figures: Sequence[MonthFigure]
    equations: Sequence[MonthEquation]
    opening_items: pd.DataFrame
    """what, currency, key, order_no, since, amount of what is open at the close of the day before
    (grain: item)."""
    closing_items: pd.DataFrame
    """The same at the month's last close."""
    transit: pd.DataFrame | None
    """finding, currency, amount, batch_id, since, state, code of what is in transit at the last
    close; None: no bank is covered."""
    before_bank: Mapping[str, int]
    """Currency -> payouts from before the bank's first statement, which the bank need not show."""
    ledger: pd.DataFrame | None
    """what, currency, key, amount, shown: why ledger and gateway differ at the last close, and what
    the nights show of it (grain: key and reason); None without a ledger."""
    straddling: pd.DataFrame
    """what, currency, key, order_no, first_on, then_on, amount (grain: item and class)."""
    facts: pd.DataFrame
    """kind, currency, amount, event_on, order_no, payment, batch_id, dated_by, reported,
    is_outside, own_on, reported_on, is_late (grain: fact of the month): amount as it changes the
    receivable; reported: the number of the night that reported it first; is_outside: in
    nobody's receivable; event_on: the day by which it counts, own_on that of its event."""
    unknown_refunds: Sequence[UnknownRefund]
    is_settled: bool
    """Whether the newest night had a settlement; without it the gateway's side is incomplete."""
    known_by: str
    """Business date of the newest night."""
    reported: pd.DataFrame
    """night, currency, count, amount: what each night reported of the month's facts."""
    breaks: pd.DataFrame
    """The open breaks of the last night before the close, as in its folder."""
    journals: pd.DataFrame
    """kind, journal_id, date, account, debit, credit, currency, order_no, break_id, text: what is
    to be booked in the ledger (grain: line of a journal)."""
    estimates: Mapping[str, int]
    """Currency -> fees of captures that no line settled: an estimate, in no sum."""
    lost_batches: Sequence[tuple[str, str]] = ()
    """settled_on and name of batches whose sums changed once the nights had only their sums."""
    sql: str = field(default="", repr=False)
    """All of it as one script, for use with the nights' folders and the program `duckdb`."""

    @property
    def currencies(self) -> list[str]:
        """The currencies in which anything moved or is open, sorted."""
        return sorted({figure.currency for figure in self.figures})

    @property
    def closing_text(self) -> str:
        """The time of the closing figures: the last close, or what is known so far."""
        if self.known_by < self.month.last.isoformat():
            return f"so far, by the night of {self.known_by}"
        return f"at the close of {self.month.last}"

    @property
    def holds(self) -> bool:
        """Whether every equation holds."""
        return all(each.holds for each in self.equations)

    def sum_of(self, currency: str, *, of: str, at: str) -> int:
        """Return the sum of the matching figures, in minor units."""
        return sums_of(self.figures)[currency, of, at]


def age_of_month(month: BusinessMonth, *, calendar: BusinessCalendar, newest: str) -> int:
    """Return the age in business days from which a break is surely of the month or older.

    Measured on the newest night. Days off right after the month have the same age as its last day.
    """
    age = calendar.business_days_between(month.last, end=date.fromisoformat(newest))
    return age if calendar.business_days_between(month.last, end=month.after.first) else age + 1


def prior_items(facts: pd.DataFrame) -> pd.DataFrame:
    """Return facts of a closed month reported after its close, which count on another day."""
    return facts[facts["own_on"].ne(facts["event_on"])].reset_index(drop=True)


def unreported_refunds(refunds: Sequence[UnknownRefund]) -> Iterator[UnreportedRefunds]:
    """Yield by currency how many refunds are unknown, of which orders, and where to find out."""
    for currency in sorted({refund.currency for refund in refunds}):
        own = [refund for refund in refunds if refund.currency == currency]
        named = [refund.order_no or refund.payment for refund in own][:ORDERS_DISPLAYED_MAX]
        more = [f"{len(own) - len(named)} more"] if len(own) > len(named) else []
        yield UnreportedRefunds(
            currency,
            len(own),
            "Refunded in part by an amount that nothing states: order "
            f"{', '.join([*named, *more])} ({currency}); the gateway's portal knows how much",
        )


MOVEMENTS: Mapping[str, str] = {
    "capture": "Captures",
    "refund": "Refunds",
    "chargeback": "Chargebacks",
    "won_back": "Chargebacks won back",
    "fee_on_captures": "Fees on captures",
    "fee_on_refunds": "Fees on refunds, returned",
    "fee_on_chargebacks": "Fees on chargebacks",
    "fee_of_account": "Fees in lines of their own",
    "fee_on_others": "Other fees",
    "adjustment": "Adjustments",
    "payee": "Paid to payees for us",
    "pay_out": "Payouts",
}
"""Kinds of movements in the order of a statement."""
ITEMS: Mapping[str, str] = {
    "not_settled": "Captured or refunded, not settled",
    "never_shown": "Settled, never shown by the gateway",
    "opening": "Owed from before the first line",
    "no_payout": "Settled, not paid out",
    "item": "Held back",
    "debt": "Owed to the gateway",
    "beyond": "Paid beyond what there was",
    "reserve": "Reserve",
}
"""Classes of open items in the order of a statement."""
TRANSIT: Mapping[str, str] = {
    "paid": "Paid out",
    "received": "At the bank",
    "returned": "Returned by the bank",
    "kept": "Kept or exchanged by the bank",
}
IN_TRANSIT: Mapping[str, str] = {
    "coming": "On the way to the bank",
    "taken": "To be taken from the bank by the gateway",
    "missing": "Missing at the bank: see the breaks",
    "beyond": "At the bank, beyond what was paid out: see the breaks",
}
"""Classes of what is in transit: never netted, or what came twice would hide what never came."""
DIFFERENCES: Mapping[str, str] = {
    "booked_later": "Took place by then, booked later",
    "booked_earlier": "Booked by then, took place later",
    "open": "Open: see the breaks and what waits",
    "fees": "Fees charged by then, less those booked",
    "payouts": "Paid out by then, less what is booked of it",
    "not_in_batch": "Adjustments booked, in no batch of the gateway yet",
    "not_booked": "Adjustments of the gateway, not booked yet",
}
STRADDLES: Mapping[str, str] = {
    "sold": "Sold in one month, captured in another",
    "settled": "Captured in one month, settled in another",
    "at_bank": "Paid out in one month, at the bank in another",
    "old_sale": "Refund of an earlier month's sale",
    "late": "Told after the month's last night",
    "prior": "Of a closed month, reported after its close",
    "entry_vanished": "Ledger entries deleted, not reversed",
}
RESERVE_MOVED = "Reserve: kept (+), released (-)"
OUTSIDE = "Before the first settled day, settled by no line: not counted"
BEFORE_BANK = "Paid out before the bank's first statement: not asked for"


def entry_label(entry_type: str) -> str:
    """Return the label of an entry type, as shown to people.

    >>> entry_label("capture_reversal")
    'Capture reversal'
    """
    return entry_type.replace("_", " ").capitalize()


GATEWAY, BANK, LEDGER = "gateway", "transit", "ledger"


@dataclass(frozen=True, slots=True)
class StatementRow:
    """One row of a statement."""

    kind: str
    """open, move, close, listed or note; a note is in no sum."""
    name: str
    """The name of a movement or class; "" for sums."""
    label: str
    count: int | None
    amount: int

    @property
    def depth(self) -> int:
        """The indentation level of the row."""
        return {"open": 0, "close": 0, "move": 1, "listed": 2, "note": 1}[self.kind]


def blocks_of(statement: MonthStatement, *, currency: str) -> list[list[StatementRow]]:
    """Return the blocks: the gateway, then cash in transit and the ledger where covered."""
    own = [figure for figure in statement.figures if figure.currency == currency]
    figures = {(each.of, each.at, each.name): each for each in own}
    sums = sums_of(own)
    day, by_then = statement.month.before, statement.closing_text
    outside = [each for each in own if each.of == "outside"]

    def end(kind: str, label: str, amount: int) -> StatementRow:
        return StatementRow(kind, "", label, None, amount)

    def rows(kind: str, of: str, at: str, words: Mapping[str, str]) -> Iterator[StatementRow]:
        for name, label in words.items():
            if (figure := figures.get((of, at, name))) is not None:
                yield StatementRow(kind, name, label, figure.count, figure.amount)

    def not_counted(kind: str) -> Iterator[StatementRow]:
        if outside:
            count, amount = (sum(each.count for each in outside), sum(x.amount for x in outside))
            yield StatementRow(kind, "outside", OUTSIDE, count, amount)

    opening, owed = (sums[currency, GATEWAY, at] for at in (OPENING, CLOSING))
    blocks = [
        [
            end("open", f"The gateway owed at the close of {day}", opening),
            *rows("move", GATEWAY, MOVED, MOVEMENTS),
            end("close", f"The gateway owes {by_then}", owed),
            *rows("listed", GATEWAY, CLOSING, ITEMS),
            *rows("note", "reserve", MOVED, {"reserve": RESERVE_MOVED}),
            *not_counted("note"),
        ]
    ]
    if statement.transit is not None:
        before = statement.before_bank.get(currency, 0)
        blocks.append(
            [
                end(
                    "open",
                    f"In transit to the bank at the close of {day}",
                    sums[currency, BANK, OPENING],
                ),
                *rows("move", BANK, MOVED, TRANSIT),
                end("close", f"In transit to the bank {by_then}", sums[currency, BANK, CLOSING]),
                *rows("listed", BANK, CLOSING, IN_TRANSIT),
                *[StatementRow("note", "before", BEFORE_BANK, None, before)][: bool(before)],
            ]
        )
    if statement.ledger is not None:
        # The ledger balance, derived from the gateway's balance and what was open between the two.
        booked = opening + sums[currency, LEDGER, OPENING]
        moves = sorted(name for of, at, name in figures if (of, at) == (LEDGER, MOVED))
        words = {
            name: STRADDLES.get(name) or f"Booked: {entry_label(name).lower()}" for name in moves
        }
        closing = booked + sums[currency, LEDGER, MOVED]
        blocks.append(
            [
                end("open", f"The ledger, derived, at the close of {day}", booked),
                *rows("move", LEDGER, MOVED, words),
                end("close", f"The ledger, derived, {by_then}", closing),
                StatementRow("listed", "owed", "The gateway owes", None, owed),
                *rows("listed", LEDGER, CLOSING, DIFFERENCES),
                *not_counted("listed"),
            ]
        )
    return blocks
