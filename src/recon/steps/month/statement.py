"""What a month is asked with, and what it came to: figures, equations and lists of one account.

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
"""Days before and after a month that instants are dated by; what is older has the first."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def days_around(
    month: BusinessMonth, *, calendar: BusinessCalendar
) -> Iterator[tuple[str, datetime]]:
    """Business dates around a month and when each opens; one closes when the next one opens."""
    days = (month.last - month.first).days + 2 * AROUND_DAYS + 1
    start = month.first - timedelta(days=AROUND_DAYS)
    yield start.isoformat(), _EPOCH
    for number in range(1, days):
        day = start + timedelta(days=number)
        yield day.isoformat(), calendar.closes_at(day - timedelta(days=1))


OPENING, MOVED, CLOSING = "opening", "moved", "closing"
"""When a figure is of: the close of the day before the month, the month, its last close."""
OPEN, WAITS, GROUPS = "open", ("not_in_batch", "not_booked"), ("fees", "payouts")
"""Why books and gateway differ: open by now, an adjustment that waits for its other half, a sum of
many entries."""
LATE, VANISHED = "late", "entry_vanished"
ALONE = "lines that stood alone in a night, of payments that none settles there"
COUNT, AMOUNT = "count", "amount"
ORDERS_SHOWN_MAX = 5
"""Orders that one sentence names."""


@dataclass(frozen=True, slots=True)
class MonthNight:
    """A night as its sealed files."""

    number: int
    """Its place among the nights that are read, the oldest is 0."""
    run_id: str
    business_date: str
    rules_digest: str
    files: Mapping[str, Path]
    """Name of a schema -> the file with its rows; a night need not have all."""
    predecessor: str = ""
    """The run whose open breaks it carries forward; "" for none."""
    books_since: tuple[datetime, datetime] | None = None
    """Since when its books are whole: entries of orders, and those of fees, reserves and payouts;
    None where it has none, or where rows of them were refused."""


@dataclass(frozen=True, slots=True)
class ClosedPeriod:
    """A month that two people closed: what a later night than `known_by` tells of it is later."""

    month: BusinessMonth
    known_by: str
    """Business date of the newest night that was known."""


@dataclass(frozen=True, slots=True)
class MonthFrame:
    """What a month is asked with, beside its nights: days, and the accounts of the books."""

    month: BusinessMonth
    account: tuple[str, str]
    calendar: BusinessCalendar
    """Zone and cut-off of the newest night's rules."""
    due: Sequence[str] = ()
    """ISO business dates of the month on which a night was due by now."""
    accounts: JournalAccounts | None = None
    """Of the newest night's rules; None, or without one of fees: nothing is accrued."""
    closed: Sequence[ClosedPeriod] = ()
    """Months before it that two people closed: their figures stay."""
    earlier: Sequence[MonthNight] = ()
    """Nights before those of the statement, numbered below 0; see `asked_earlier`."""


@dataclass(frozen=True, slots=True)
class MonthFigure:
    """One figure of a statement."""

    currency: str
    of: str
    """gateway (what it owes), reserve (kept + or released -), outside (before the settlement
    begins), transit, books."""
    at: str
    """OPENING, MOVED or CLOSING."""
    name: str
    """A class of open items, a kind of movement, a type of entry."""
    count: int
    amount: int
    """Minor units, as it moves what the merchant has to get."""


@dataclass(frozen=True, slots=True)
class MonthEquation:
    """Two sides that must be equal: rows, or minor units."""

    id: str
    name: str
    currency: str
    measure: str
    left: int
    right: int

    @property
    def both_sides(self) -> str:
        """Both sides, as people read them: money in major units."""
        return " and ".join(
            format_minor_units(side, currency=self.currency)
            if self.measure == AMOUNT and self.currency
            else f"{side}"
            for side in (self.left, self.right)
        )

    @property
    def holds(self) -> bool:
        """Whether they are."""
        return self.left == self.right


class UnknownRefund(NamedTuple):
    """A payment refunded in part by an amount that neither an instruction nor a line tells."""

    payment: str
    order_no: str
    currency: str


class UnreportedRefunds(NamedTuple):
    """Those of one currency, for a person."""

    currency: str
    payments: int
    sentence: str


def sums_of(figures: Iterable[MonthFigure]) -> Counter[tuple[str, str, str]]:
    """Currency, of and at -> the sum of these figures, minor units."""
    sums: Counter[tuple[str, str, str]] = Counter()
    for each in figures:
        sums[each.currency, each.of, each.at] += each.amount
    return sums


@dataclass(frozen=True, slots=True)
class MonthStatement:
    """What a month came to, of one account."""

    month: BusinessMonth
    account: tuple[str, str]
    figures: Sequence[MonthFigure]
    equations: Sequence[MonthEquation]
    opening_items: pd.DataFrame
    """what, currency, key, order_no, since, amount of what is open at the close of the day before
    (grain: item)."""
    closing_items: pd.DataFrame
    """The same at the last close."""
    transit: pd.DataFrame | None
    """finding, currency, amount, batch_id, since, state, code of what is in transit at the last
    close; None: no bank is covered."""
    before_bank: Mapping[str, int]
    """Currency -> payouts from before the bank's first statement: it is not asked for them."""
    books: pd.DataFrame | None
    """what, currency, key, amount, shown: why books and gateway differ at the last close, and what
    the nights show of it (grain: key and reason); None without a ledger."""
    straddling: pd.DataFrame
    """what, currency, key, order_no, first_on, then_on, amount (grain: item and class)."""
    facts: pd.DataFrame
    """kind, currency, amount, event_on, order_no, payment, batch_id, dated_by, told, is_outside,
    own_on, told_on, is_late (grain: fact of the month): amount as it moves the receivable; told:
    the number of the night that told it first; is_outside: nobody's receivable; event_on: the day
    by which it counts, own_on that of its event."""
    unknown_refunds: Sequence[UnknownRefund]
    is_settled: bool
    """Whether the newest night was given a settlement; without it the gateway's side is a part."""
    known_by: str
    """Business date of the newest night."""
    told: pd.DataFrame
    """night, currency, count, amount: what each night told of the month's facts."""
    breaks: pd.DataFrame
    """What the last night by the close shows as open, as its folder has it."""
    journals: pd.DataFrame
    """kind, journal_id, date, account, debit, credit, currency, order_no, break_id, text: what the
    books are to be told (grain: line of a journal)."""
    estimates: Mapping[str, int]
    """Currency -> fees of captures that no line settled: an estimate, in no sum."""
    lost_batches: Sequence[tuple[str, str]] = ()
    """settled_on and name of batches whose sums changed once the nights had them as sums alone."""
    sql: str = field(default="", repr=False)
    """All of it as one script, for whoever has the nights' folders and the program `duckdb`."""

    @property
    def currencies(self) -> list[str]:
        """Sorted; those in which anything moved or is open."""
        return sorted({figure.currency for figure in self.figures})

    @property
    def closing_text(self) -> str:
        """When the closing is of: the last close, or what is known so far."""
        if self.known_by < self.month.last.isoformat():
            return f"so far, by the night of {self.known_by}"
        return f"at the close of {self.month.last}"

    @property
    def holds(self) -> bool:
        """Whether every equation does."""
        return all(each.holds for each in self.equations)

    def sum_of(self, currency: str, *, of: str, at: str) -> int:
        """The amount of some figures."""
        return sums_of(self.figures)[currency, of, at]


def age_of_month(month: BusinessMonth, *, calendar: BusinessCalendar, newest: str) -> int:
    """Business days from which a break of the newest night is surely of the month or older.

    Days off right after the month share their age with its last day.
    """
    age = calendar.business_days_between(month.last, end=date.fromisoformat(newest))
    return age if calendar.business_days_between(month.last, end=month.after.first) else age + 1


def prior_items(facts: pd.DataFrame) -> pd.DataFrame:
    """Facts of a closed month that were told after its close: they count by another day."""
    return facts[facts["own_on"].ne(facts["event_on"])].reset_index(drop=True)


def unreported_refunds(refunds: Sequence[UnknownRefund]) -> Iterator[UnreportedRefunds]:
    """By currency: how many, of which orders, and who knows."""
    for currency in sorted({refund.currency for refund in refunds}):
        own = [refund for refund in refunds if refund.currency == currency]
        named = [refund.order_no or refund.payment for refund in own][:ORDERS_SHOWN_MAX]
        more = [f"{len(own) - len(named)} more"] if len(own) > len(named) else []
        yield UnreportedRefunds(
            currency,
            len(own),
            "Refunded in part by an amount that nothing tells: order "
            f"{', '.join([*named, *more])} ({currency}); the gateway's portal knows how much",
        )


MOVEMENTS: Mapping[str, str] = {
    "capture": "Captures",
    "refund": "Refunds",
    "chargeback": "Chargebacks",
    "won_back": "Chargebacks won back",
    "fee_on_captures": "Fees on captures",
    "fee_on_refunds": "Fees on refunds, given back",
    "fee_on_chargebacks": "Fees on chargebacks",
    "fee_of_account": "Fees in lines of their own",
    "fee_on_others": "Other fees",
    "adjustment": "Adjustments",
    "payee": "Paid to payees for us",
    "pay_out": "Payouts",
}
"""Kinds of movements in the order of a statement."""
ITEMS: Mapping[str, str] = {
    "not_settled": "Captured or given back, not settled",
    "never_shown": "Settled, never shown by the gateway",
    "opening": "Owed from before the first line",
    "no_payout": "Settled, not paid out",
    "item": "Held back",
    "debt": "Owed to the gateway",
    "beyond": "Paid beyond what there was",
    "reserve": "Reserve",
}
"""Classes of what is open, in the order of a statement."""
TRANSIT: Mapping[str, str] = {
    "paid": "Paid out",
    "received": "At the bank",
    "returned": "Returned by the bank",
    "kept": "Kept or exchanged by the bank",
}
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
    "prior": "Of a closed month, told after its close",
    "entry_vanished": "Ledger entries deleted, not reversed",
}
RESERVE_MOVED = "Reserve: kept (+), released (-)"
OUTSIDE = "Before the first settled day, settled by no line: not counted"
BEFORE_BANK = "Paid out before the bank's first statement: not asked for"


def entry_label(entry_type: str) -> str:
    """The type of an entry as people read it.

    >>> entry_label("capture_reversal")
    'Capture reversal'
    """
    return entry_type.replace("_", " ").capitalize()


GATEWAY, BANK, BOOKS = "gateway", "transit", "books"


@dataclass(frozen=True, slots=True)
class StatementRow:
    """One row of a statement."""

    kind: str
    """open, move, close, listed or note: a note is in no sum."""
    name: str
    """Of a movement or class; "" for sums."""
    label: str
    count: int | None
    amount: int

    @property
    def depth(self) -> int:
        """How far it stands to the right."""
        return {"open": 0, "close": 0, "move": 1, "listed": 2, "note": 1}[self.kind]


def blocks_of(statement: MonthStatement, *, currency: str) -> list[list[StatementRow]]:
    """The gateway's account, cash in transit where a bank is covered, the books where they are."""
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
                *[StatementRow("note", "before", BEFORE_BANK, None, before)][: bool(before)],
            ]
        )
    if statement.books is not None:
        # The balance that entries come to, from the gateway's and what was open between the two.
        booked = opening + sums[currency, BOOKS, OPENING]
        moves = sorted(name for of, at, name in figures if (of, at) == (BOOKS, MOVED))
        words = {
            name: STRADDLES.get(name) or f"Booked: {entry_label(name).lower()}" for name in moves
        }
        closing = booked + sums[currency, BOOKS, MOVED]
        blocks.append(
            [
                end("open", f"The books, derived, at the close of {day}", booked),
                *rows("move", BOOKS, MOVED, words),
                end("close", f"The books, derived, {by_then}", closing),
                StatementRow("listed", "owed", "The gateway owes", None, owed),
                *rows("listed", BOOKS, CLOSING, DIFFERENCES),
                *not_counted("listed"),
            ]
        )
    return blocks
