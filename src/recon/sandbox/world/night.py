"""The sample night: which payment gets which story, the merchant's files of it, and the answer key.

Order files of several channels, and a ledger as a CSV file and as a table behind SQL. Among the
orders are some that the gateway does not know and rows that cannot be read. Same seed, same bytes.
"""

import csv
import io
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, EntryType, Flag, GatewayState, OrderStatus
from recon.model.words import UnverifiedReason as Reason
from recon.sandbox.world.records import (
    LedgerLine,
    OrderLine,
    TruePayment,
    cells_of,
    columns_of,
    csv_text,
    file_text,
)
from recon.sandbox.world.stories import (
    AUTHORISATION_EXPIRED,
    BOOKING_TIME,
    CHECKOUT_TIME,
    REFUNDED_ELSEWHERE,
    SETTLED,
    SHARES,
    BreakEffect,
    Expectation,
    Finding,
    Fit,
    Story,
    Tell,
    Wants,
    account_plants,
    entries_of,
    expecting,
    fitting,
    order_of,
    plain_story,
)

ORDER_HEADER = columns_of(OrderLine)
DOUBLE_FROM_PAYMENTS = 1_000
"""From so many payments on, each discrepancy is planted twice."""
REFUNDED_ELSEWHERE_MAX = 5
"""Partly refunded payments in the files: the query shows no amount, so each is unverified."""
QUARANTINED_PAYMENTS_MAX = 3
"""Unreadable rows of payments that exist; the others speak of orders nobody knows."""
UNREADABLE_FIRST_NUMBER = 9_500_001
INVENTED_FIRST_NUMBER = 9_000_001
"""Far above every order number of the population."""
INVENTED_AMOUNTS = (1_000, 30_000)
FEES, FEE_MINOR_UNITS = 5, 1_250

CHANNELS = ("web", "app", "stores")
LATE_CHANNEL = "web-corrections"
"""Comes last: repeats, newer versions, second rows."""
SPOILT_CHANNEL = "marketplace"
"""The partner whose rows cannot all be read."""
GOOD_ROWS_BETWEEN = 2
"""Readable rows between two unreadable ones."""
LEDGER_TABLE = "ledger_entries"
LEDGER_QUERY = "select * from ledger_entries"


@dataclass(frozen=True, slots=True)
class Account:
    """The account of the night, and the merchant's other one."""

    merchant_id: str
    account_id: str
    other_account: str


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """One unreadable row: its cells as written, and what is wrong with it."""

    cells: tuple[str, ...]
    column: str
    """The first bad column; WHOLE_ROW when it has the wrong shape."""
    kind: str
    line: OrderLine
    """What the row was meant to say."""
    key_readable: bool
    """Merchant, account and order number can still be read: the order is in quarantine."""


@dataclass(frozen=True, slots=True)
class SampleNight:
    """Everything the merchant's files say, and what must be found in them."""

    business_date: date
    account: Account
    seed: int
    stories: tuple[Story, ...]
    bad_rows: tuple[UnreadableRow, ...]
    fees: tuple[LedgerLine, ...]
    """Entries of no order."""
    left_out: int
    """Seeded payments that no file mentions: refunded in part, by an amount no query shows."""


class _Pool:
    """Payments that have no story yet."""

    def __init__(self, payments: Iterable[TruePayment], *, rng: Random) -> None:
        self.rng = rng
        self.left = list(payments)
        rng.shuffle(self.left)

    def take(self, wants: Wants, *, times: int) -> list[TruePayment]:
        """Up to `times` fitting payments; nobody else gets them."""
        chosen: list[TruePayment] = []
        left: list[TruePayment] = []
        for payment in self.left:
            mine = len(chosen) < times and wants(payment)
            (chosen if mine else left).append(payment)
        self.left = left
        return chosen

    def tell(self, tell: Tell, wants: Wants, *, times: int) -> list[Story]:
        """Give up to `times` fitting payments this story."""
        return [tell(payment, self.rng) for payment in self.take(wants, times=times)]

    def count(self, wants: Wants) -> int:
        """How many payments would fit."""
        return sum(1 for payment in self.left if wants(payment))


def sample_night(
    payments: Sequence[TruePayment], *, account: Account, business_date: date, seed: int
) -> SampleNight:
    """The night of `account`, written from the payments that there truly are."""
    closes_at = BusinessCalendar.of().closes_at(business_date)
    times = 2 if len(payments) >= DOUBLE_FROM_PAYMENTS else 1
    pool = _Pool(payments, rng=Random(f"sample night {seed}"))

    def of_account(fit: Fit, account_id: str = account.account_id) -> Wants:
        return fitting(fit, account_id=account_id, closes_at=closes_at)

    stories: list[Story] = []
    for fit, tell in account_plants(other_account=account.other_account):
        stories += pool.tell(tell, of_account(fit), times=times)
    expired = of_account(Fit(GatewayState.EXPIRED), account.other_account)
    stories += pool.tell(AUTHORISATION_EXPIRED, expired, times=times)
    stories += _invented(pool.rng, account=account, closes_at=closes_at, times=times)
    quarantined = pool.take(of_account(SETTLED), times=QUARANTINED_PAYMENTS_MAX)
    rows = _unreadable(quarantined, account=account, closes_at=closes_at)
    ledger = {payment.order_no: entries_of(payment) for payment in quarantined}
    stories += [
        expecting(
            Story(ledger=ledger.get(row.line.order_no, ())),
            Reason.ROW_QUARANTINED,
            row.kind,
            of=row.line,
        )
        for row in rows
        if row.key_readable
    ]
    for fit, tell, per_mille in SHARES:
        wants = of_account(fit)
        stories += pool.tell(tell, wants, times=pool.count(wants) * per_mille // 1000)

    def elsewhere(payment: TruePayment) -> bool:
        return payment.state is GatewayState.PARTIALLY_REFUNDED

    stories += pool.tell(REFUNDED_ELSEWHERE, elsewhere, times=REFUNDED_ELSEWHERE_MAX)
    stories += [plain_story(payment) for payment in pool.left if not elsewhere(payment)]
    return SampleNight(
        business_date,
        account,
        seed,
        stories=tuple(stories),
        bad_rows=tuple(rows),
        fees=_fees(account, closes_at=closes_at),
        left_out=pool.count(elsewhere),
    )


def _fees(account: Account, *, closes_at: datetime) -> tuple[LedgerLine, ...]:
    """Monthly charges of the gateway: no order, compared with nothing here."""
    return tuple(
        LedgerLine(
            entry_id=f"LF-{number}",
            merchant_id=account.merchant_id,
            account_id=account.account_id,
            order_no="",
            entry_type=EntryType.FEE,
            currency="EUR",
            amount=FEE_MINOR_UNITS,
            booked_at=closes_at - timedelta(days=4 + number),
        )
        for number in range(1, FEES + 1)
    )


WHOLE_ROW = "(row)"
"""Column of a reject of the wrong shape: one too short has no key that anybody believes."""


class _Mistake(NamedTuple):
    kind: str
    column: str
    written: str
    """What stands in the column instead."""
    key_readable: bool = True


_MISTAKES = (
    _Mistake("decimal comma", "amount", "12,50"),
    _Mistake("too few decimals", "amount", "10.5"),
    _Mistake("too many decimals", "amount", "10.505"),
    _Mistake("negative amount", "amount", "-5.00"),
    _Mistake("scientific notation", "amount", "1e3"),
    _Mistake("grouped thousands", "amount", "1 250.00"),
    _Mistake("unknown currency", "currency", "EUX"),
    _Mistake("lower-case currency", "currency", "eur"),
    _Mistake("unknown status", "status", "shipped"),
    _Mistake("no such date", "ordered_at", "2026-02-30T10:00:00+00:00"),
    _Mistake("blank date", "ordered_at", ""),
    _Mistake("space in the order number", "order_no", "SO 42", key_readable=False),
    _Mistake("blank order number", "order_no", "", key_readable=False),
    _Mistake("unknown action", "action", "void"),
)
_MISSHAPEN = 4
"""Rows that are wrong as a whole."""


def _unreadable(
    payments: Sequence[TruePayment], *, account: Account, closes_at: datetime
) -> list[UnreadableRow]:
    """A row of each kind, the first of payments that exist, the others of orders nobody knows."""
    lines = [order_of(payment) for payment in payments]
    for number in range(len(_MISTAKES) + _MISSHAPEN - len(payments)):
        line = OrderLine(
            merchant_id=account.merchant_id,
            account_id=account.account_id,
            order_no=f"SO{UNREADABLE_FIRST_NUMBER + number}",
            currency="EUR",
            amount=1_000 + 37 * number,
            status=OrderStatus.AUTHORISED,
            ordered_at=closes_at - timedelta(days=2, minutes=number),
            action="capture",
        )
        lines.append(line)
    *mistaken, short, long, repeated, part = lines
    rows = [
        UnreadableRow(_with(line, **{column: written}), column, kind, line, readable)
        for (kind, column, written, readable), line in zip(_MISTAKES, mistaken, strict=True)
    ]
    cut, surplus = cells_of(short)[:5], (*cells_of(long), "surplus")
    # The words of the header read as ids, so this is a row of a merchant who does not exist.
    header = replace(
        repeated, merchant_id="merchant_id", account_id="account_id", order_no="order_no"
    )
    no_amount = _with(part, status="partially_refunded", refund_amount="")
    why = "refunded in part without an amount"
    return [
        *rows,
        UnreadableRow(cut, WHOLE_ROW, "row cut short", short, key_readable=False),
        UnreadableRow(surplus, WHOLE_ROW, "one cell too many", long, key_readable=True),
        UnreadableRow(ORDER_HEADER, "currency", "header repeated", header, key_readable=True),
        UnreadableRow(no_amount, "refund_amount", why, part, key_readable=True),
    ]


def _with(line: OrderLine, **written: str) -> tuple[str, ...]:
    return tuple({**dict(zip(ORDER_HEADER, cells_of(line), strict=True)), **written}.values())


class _Invented(NamedTuple):
    """An order that the gateway never saw."""

    finding: Finding
    why: str
    ordered: bool = True
    booked: bool = False
    status: OrderStatus = OrderStatus.PAID
    age: timedelta | None = None
    """None: some days, so that nothing waits for it any more."""


_INVENTED = (
    _Invented(BreakCode.MISSING_AT_GATEWAY, "paid order that the gateway never saw"),
    _Invented(
        BreakCode.BOOKED_NOT_AT_GATEWAY,
        "paid and booked order that the gateway never saw",
        booked=True,
    ),
    _Invented(BreakCode.LEDGER_ONLY, "booked only", ordered=False, booked=True),
    _Invented("pending", "placed four hours before the cut-off", age=timedelta(hours=4)),
    _Invented("pending", "not yet paid", status=OrderStatus.PENDING, age=timedelta(days=2)),
    _Invented(Flag.NEVER_PAID, "never paid", status=OrderStatus.PENDING, age=timedelta(days=20)),
)


def _invented(rng: Random, *, account: Account, closes_at: datetime, times: int) -> Iterable[Story]:
    """One story of each kind, `times` over."""
    for number in range(times * len(_INVENTED)):
        kind = _INVENTED[number % len(_INVENTED)]
        amount = rng.randint(*INVENTED_AMOUNTS)
        age = timedelta(days=rng.randint(5, 9), minutes=rng.randint(1, 600))
        line = OrderLine(
            merchant_id=account.merchant_id,
            account_id=account.account_id,
            order_no=f"SO{INVENTED_FIRST_NUMBER + number}",
            currency=("EUR", "GBP", "USD")[number // len(_INVENTED) % 3],
            amount=amount,
            status=kind.status,
            ordered_at=closes_at - (kind.age or age),
        )
        entry = LedgerLine(
            entry_id=f"LC-{line.order_no}",
            merchant_id=line.merchant_id,
            account_id=line.account_id,
            order_no=line.order_no,
            entry_type=EntryType.CAPTURE,
            currency=line.currency,
            amount=amount,
            booked_at=line.ordered_at + CHECKOUT_TIME + BOOKING_TIME,
        )
        story = Story((line,) * kind.ordered, (entry,) * kind.booked)
        yield expecting(story, kind.finding, kind.why, of=line)


def order_file_names(night: SampleNight) -> dict[str, str]:
    """Channel -> name of its order file."""
    channels = (*CHANNELS, SPOILT_CHANNEL, LATE_CHANNEL)
    return {channel: f"orders-{night.business_date}-{channel}.csv" for channel in channels}


def order_rows(night: SampleNight) -> dict[str, list[tuple[str, ...]]]:
    """Channel -> the rows of its file, unreadable ones spread among the readable ones."""
    rng = Random(f"channels {night.seed}")
    lines = [line for story in night.stories for line in story.orders]
    lines.sort(key=lambda line: (line.ordered_at, line.order_no))
    spoilt_count = GOOD_ROWS_BETWEEN * len(night.bad_rows)
    spoilt = set(rng.sample(range(len(lines)), min(spoilt_count, len(lines))))
    rows: dict[str, list[tuple[str, ...]]] = {channel: [] for channel in order_file_names(night)}
    for number, line in enumerate(lines):
        channel = SPOILT_CHANNEL if number in spoilt else rng.choice(CHANNELS)
        rows[channel].append(cells_of(line))
    for number, bad in enumerate(night.bad_rows, start=1):
        rows[SPOILT_CHANNEL].insert(number * (GOOD_ROWS_BETWEEN + 1) - 1, bad.cells)
    rows[LATE_CHANNEL] = [cells_of(line) for story in night.stories for line in story.later]
    return rows


def inbox_texts(night: SampleNight) -> dict[str, str]:
    """Name -> text of each order file that has rows."""
    names, rows = order_file_names(night), order_rows(night)
    return {
        names[channel]: csv_text(ORDER_HEADER, rows[channel]) for channel in rows if rows[channel]
    }


def ledger_lines(night: SampleNight) -> list[LedgerLine]:
    """The ledger, in the order of booking."""
    lines = [line for story in night.stories for line in story.ledger]
    return sorted([*lines, *night.fees], key=lambda line: (line.booked_at, line.entry_id))


def ledger_csv_text(night: SampleNight) -> str:
    """The ledger as CSV."""
    return file_text(LedgerLine, ledger_lines(night))


def add_to_ledger_table(ledger_csv: str, *, path: Path) -> str:
    """Add a ledger's entries to the table `ledger_entries` of an SQLite file, each once.

    Returns:
        The whole as CSV, in the order of booking.
    """
    header, *rows = csv.reader(io.StringIO(ledger_csv))
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = ", ".join(f"{name} TEXT NOT NULL" for name in header)
        connection.execute(f"CREATE TABLE IF NOT EXISTS {LEDGER_TABLE} ({columns})")
        known = {row[0] for row in connection.execute(LEDGER_QUERY)}
        connection.executemany(
            f"INSERT INTO {LEDGER_TABLE} VALUES ({', '.join('?' * len(header))})",  # noqa: S608
            [row for row in rows if row[0] not in known],
        )
        every = connection.execute(f"{LEDGER_QUERY} order by booked_at, entry_id, rowid")
        return csv_text(header, every)


_ONE_PAYMENT = "an order number is used once at the gateway"
_NO_AMOUNT = "the query shows neither captured nor refunded sums"
_NO_FAULT = "the sandbox answers every call here; it takes a fault plan to leave a doubt"
_NOT_SENT = "what the gateway would refuse is seen before it is sent, and waits for a person"
_NO_SOURCE = "the sample night has no source for it (payouts, settlement files, rates, reviews)"
_NO_BANK = "the sample night has no statements of a bank"

NOT_SHOWN: Mapping[BreakCode, str] = {
    BreakCode.DUPLICATE_PAYMENT: _ONE_PAYMENT,
    BreakCode.SPLIT_INCOMPLETE: _ONE_PAYMENT,
    BreakCode.AMBIGUOUS_MATCH: _ONE_PAYMENT,
    BreakCode.OVER_REFUND: _NO_AMOUNT,
    BreakCode.OVER_CAPTURE: _NO_AMOUNT,
    BreakCode.PARTIAL_CAPTURE_UNEXPECTED: _NO_AMOUNT,
    BreakCode.CAPTURE_UNCONFIRMED: _NO_FAULT,
    BreakCode.CANCEL_UNCONFIRMED: _NO_FAULT,
    BreakCode.REFUND_UNCONFIRMED: _NO_FAULT,
    BreakCode.CAPTURE_REJECTED: _NOT_SENT,
    BreakCode.CANCEL_REJECTED: _NOT_SENT,
    BreakCode.REFUND_REJECTED: _NOT_SENT,
    BreakCode.REFUND_FAILED_AFTER_ACCEPT: "an accepted refund fails only on a later night",
    BreakCode.CHARGEBACK_REVERSED_NOT_BOOKED: "it takes an earlier night",
    BreakCode.CHARGEBACK_AFTER_REFUND: "no seeded payment is both refunded and charged back",
    BreakCode.STATUS_UNMAPPED: "the sample's rules map every code of the sandbox",
    BreakCode.STALE_PENDING: "the truth lists no payment that is pending at the gateway",
    BreakCode.FX_DIFFERENCE: _NO_SOURCE,
    BreakCode.PAYOUT_UNCONFIRMED: _NO_SOURCE,
    BreakCode.PAYOUT_FAILED: _NO_SOURCE,
    BreakCode.PAYOUT_NOT_BOOKED: _NO_SOURCE,
    BreakCode.PAYOUT_AMOUNT_MISMATCH: _NO_SOURCE,
    BreakCode.LEDGER_PAYOUT_ONLY: _NO_SOURCE,
    BreakCode.SETTLEMENT_MISSING: _NO_SOURCE,
    BreakCode.SETTLEMENT_AMOUNT_MISMATCH: _NO_SOURCE,
    BreakCode.FEE_VARIANCE: _NO_SOURCE,
    BreakCode.UNEXPECTED_RECEIPT: _NO_SOURCE,
    BreakCode.HELD_BACK: _NO_SOURCE,
    BreakCode.FEE_NOT_BOOKED: _NO_SOURCE,
    BreakCode.FEE_BOOKED_DIFFERS: _NO_SOURCE,
    BreakCode.RESERVE_NOT_BOOKED: _NO_SOURCE,
    BreakCode.RESERVE_BOOKED_DIFFERS: _NO_SOURCE,
    BreakCode.PAYOUT_TWICE_AT_BANK: _NO_BANK,
    BreakCode.PAYOUT_RETURNED: _NO_BANK,
    BreakCode.BANK_AMOUNT_DIFFERS: _NO_BANK,
    BreakCode.BANK_FX_DIFFERENCE: _NO_BANK,
    BreakCode.PAYOUT_NOT_AT_BANK: _NO_BANK,
    BreakCode.BANK_RECEIPT_UNKNOWN: _NO_BANK,
    BreakCode.BANK_NOT_BOOKED: _NO_BANK,
    BreakCode.REVIEW_STUCK: _NO_SOURCE,
    BreakCode.SUBSCRIPTION_NOT_ENDED: "the sample night instructs no end of a subscription",
}
"""Codes that a sample night cannot show, and why."""


def answer_key(night: SampleNight) -> dict[str, Any]:
    """What a correct reconciliation must find, with the place of each unreadable row.

    Amounts are text with the currency's decimals.
    """
    expected = [story.expected for story in night.stories if story.expected is not None]
    expected.sort(key=lambda expectation: (expectation.account_id, expectation.order_no))
    name = order_file_names(night)[SPOILT_CHANNEL]
    # Line 1 is the header.
    lines = {row: line for line, row in enumerate(order_rows(night)[SPOILT_CHANNEL], start=2)}
    return {
        "business_date": night.business_date.isoformat(),
        "seed": night.seed,
        "merchant_id": night.account.merchant_id,
        "account_id": night.account.account_id,
        "instructions": _instructions(night),
        "breaks": [_break(each) for each in expected if isinstance(each.finding, BreakCode)],
        "unverified": [
            _who(each) | {"reason": each.finding}
            for each in expected
            if isinstance(each.finding, Reason)
        ],
        "matched_with_flag": [
            _who(each) | {"flag": each.finding}
            for each in expected
            if isinstance(each.finding, Flag)
        ],
        "pending": [_who(each) for each in expected if each.finding == "pending"],
        "not_shown": {code.value: why for code, why in NOT_SHOWN.items()},
        "payments_left_out": night.left_out,
        "rejected_rows": [
            {"file": name, "line": lines[bad.cells], "column": bad.column, "kind": bad.kind}
            for bad in night.bad_rows
        ],
    }


def _instructions(night: SampleNight) -> dict[str, int]:
    """How many instructions of each kind the files carry, repeats counted once."""
    asked = [
        (line.action, story) for story in night.stories for line in story.orders if line.action
    ]
    held = sum(1 for _, s in asked if s.expected and s.expected.finding == "pending")
    counts = Counter(action for action, _ in asked)
    return dict(sorted(counts.items())) | {"of_these_waiting": held}


def _who(expectation: Expectation) -> dict[str, Any]:
    return {
        "merchant_id": expectation.merchant_id,
        "account_id": expectation.account_id,
        "order_no": expectation.order_no,
        "transaction_id": expectation.transaction_id,
        "why": expectation.why,
    }


def _break(expectation: Expectation) -> dict[str, Any]:
    effects = [_effect(effect) for effect in expectation.effects]
    entry = _who(expectation) | {"code": expectation.finding, "effects": effects}
    if expectation.alone:
        entry["in_a_night_of_one_account"] = [
            {
                "account_id": alone.account_id,
                "code": alone.code,
                "effects": [_effect(effect) for effect in alone.effects],
            }
            for alone in expectation.alone
        ]
    return entry


def _effect(effect: BreakEffect) -> dict[str, str]:
    leg, account_id, currency, amount = astuple(effect)
    text = format_minor_units(amount, currency=currency)
    return {"leg": leg, "account_id": account_id, "currency": currency, "amount": text}
