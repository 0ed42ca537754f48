"""The sample run: payments, the scenario of each, and the merchant's files about them.

`stories.toml` lists what is injected: which payments a scenario fits, the finding, and what is
changed in files that agree with the gateway. Effects are calculated from what each side holds, not
by the engine. Order files come from several channels; the ledger is a CSV file and an SQL table.
Field names of rows are the columns of their files, in order; amounts are minor units. The same seed
gives the same bytes.
"""

import csv
import io
import sqlite3
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from itertools import islice
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from recon.model.business_date import BusinessCalendar, Grace
from recon.model.money import format_minor_units
from recon.model.terms import (
    BreakCode,
    EntryType,
    Flag,
    GatewayState,
    OrderStatus,
    UnverifiedReason,
)
from recon.model.terms import UnverifiedReason as Reason
from recon.sandbox.database import Effect, ids_of

BOOKING_GRACE = Grace(2, "bd")
"""Time the ledger has to book a movement, as in the bundled rules."""
DAYS_BEFORE = 8
"""Calendar days before the business date that batches and statements cover."""
PAYOUT = "payout"
AUTHORISATION_LIVES = timedelta(days=7)
"""The sandbox's own choice; older authorisations without a capture are expired."""
STORIES: Mapping[str, Any] = tomllib.loads(
    files("recon.sandbox.world").joinpath("stories.toml").read_text("utf-8")
)
"""The discrepancies to inject."""

Finding = BreakCode | Flag | UnverifiedReason | Literal["pending"]
"""A break, a match with a flag, an unverified set, or a set still within its grace."""


def finding_of(word: str) -> Finding | None:
    """The finding that a row of stories.toml names; None for ""."""
    for kind in (BreakCode, Flag, UnverifiedReason):
        if word in {*kind}:
            return kind(word)
    return "pending" if word == "pending" else None


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One row of an inbox order file."""

    merchant_id: str
    account_id: str
    order_no: str
    currency: str
    amount: int
    status: str
    ordered_at: datetime
    transaction_id: str = ""
    expected_captured_amount: int | None = None
    refund_amount: int | None = None
    updated_at: datetime | None = None
    action: str = ""
    action_amount: int | None = None
    action_reason: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One ledger entry."""

    entry_id: str
    merchant_id: str
    account_id: str
    order_no: str
    entry_type: str
    currency: str
    amount: int
    booked_at: datetime
    transaction_id: str = ""
    reference_no: str = ""
    reverses_entry_id: str = ""


@dataclass(frozen=True, slots=True)
class SettlementLine:
    """One row of a settlement file; amounts are signed."""

    batch_id: str
    merchant_id: str
    account_id: str
    settled_on: str
    entry_type: str
    order_no: str
    transaction_id: str
    reference_no: str
    currency: str
    gross: int
    fee: int
    net: int
    own_reference: str = ""
    """The merchant's name of a refund or payout; "" on the payout row of a batch."""


@dataclass(frozen=True, slots=True)
class Injected:
    """Expected finding about a batch, a payout, or a group of ledger entries."""

    finding: BreakCode | Flag
    """A break, or the flag of a match."""
    why: str
    about: str
    """The batch, or the key of the group as in rules.md."""
    currency: str
    effect: int

    @property
    def is_break(self) -> bool:
        """Whether it is a break and not a match with a flag."""
        return isinstance(self.finding, BreakCode)

    def table(self, about: str, effect: str) -> dict[str, str]:
        """Format it for the answer key; `about` and `effect` are the names of two of its keys."""
        row = {about: self.about, "currency": self.currency, "why": self.why}
        if not self.is_break:
            return {**row, "flag": self.finding.value}
        text = format_minor_units(self.effect, currency=self.currency)
        return {"code": self.finding.value, **row, effect: text}


Line = OrderLine | LedgerLine | SettlementLine
Row = Sequence[str]


def columns_of(kind: type[Line]) -> tuple[str, ...]:
    """The header of a file of such rows."""
    return tuple(field.name for field in fields(kind))


def cells_of(line: Line) -> tuple[str, ...]:
    """A row as text cells."""

    def text(value: str | int | datetime | None) -> str:
        if isinstance(value, datetime):
            return value.isoformat(timespec="seconds")
        if isinstance(value, int):
            return format_minor_units(value, currency=line.currency)
        return value or ""

    return tuple(text(getattr(line, name)) for name in columns_of(type(line)))


def csv_text(header: Row, rows: Iterable[Row]) -> str:
    """Render a CSV file with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def file_text(kind: type[Line], lines: Iterable[Line]) -> str:
    """Render rows of one kind as a CSV file."""
    return csv_text(columns_of(kind), map(cells_of, lines))


@dataclass(frozen=True, slots=True)
class TruePayment:
    """The true state of one payment of the population before the run."""

    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    currency: str
    state: GatewayState
    authorised: int
    authorised_at: datetime
    last_at: datetime
    """When the latest effect happened."""
    captured: int = 0
    captured_at: datetime | None = None
    refunded: int = 0
    refund_reference_id: str = ""

    @property
    def net(self) -> int:
        """Money that the gateway holds for the merchant, as its query can show it."""
        if self.state is GatewayState.CHARGEBACK:
            return 0
        return self.captured - self.refunded


def payments_of(effects: Iterable[Effect], *, now: datetime) -> tuple[TruePayment, ...]:
    """The seeded payments that have effects, ordered by authorisation."""
    truth: dict[str, TruePayment] = {}
    for effect in effects:
        if effect.origin == "seed":
            key = effect.transaction_id
            truth[key] = _after(truth.get(key), effect)
    for key, payment in truth.items():
        lapsed = payment.authorised_at + AUTHORISATION_LIVES <= now
        if payment.state is GatewayState.AUTHORISED and lapsed:
            truth[key] = replace(payment, state=GatewayState.EXPIRED)
    return tuple(sorted(truth.values(), key=attrgetter("authorised_at", "order_no")))


def instant_of(effect: Effect) -> datetime:
    """When the effect took place, UTC."""
    return datetime.fromtimestamp(effect.committed_at, UTC)


def _after(payment: TruePayment | None, effect: Effect) -> TruePayment:
    """The payment after one more effect; its first effect authorises it."""
    at, amount = instant_of(effect), effect.amount or 0
    if payment is None:
        ids = (effect.merchant_id, effect.account_id, effect.order_no, effect.transaction_id)
        return TruePayment(*ids, effect.currency, GatewayState.AUTHORISED, amount, at, at)
    changes: dict[str, Any] = {"last_at": max(at, payment.last_at)}
    match effect.operation:
        case "capture":
            changes |= {"state": GatewayState.PAID, "captured": amount, "captured_at": at}
        case "refund":
            refunded = payment.refunded + amount
            whole = refunded == payment.captured
            state = GatewayState.REFUNDED if whole else GatewayState.PARTIALLY_REFUNDED
            changes |= {"state": state, "refunded": refunded}
            changes["refund_reference_id"] = effect.refund_reference_id
        case "cancel":
            changes["state"] = GatewayState.CANCELLED
        case "chargeback":
            changes["state"] = GatewayState.CHARGEBACK
    return replace(payment, **changes)


CHECKOUT_TIME = timedelta(seconds=40)
"""From placing an order to its authorisation."""
BOOKING_TIME = timedelta(minutes=25)
"""From a movement to its ledger entry."""
REFUND_REASONS = ("returned goods", "price correction", "late delivery", "damaged on arrival")
STEPS = (100, 400)
"""Range in minor units by which an injected amount differs; every seeded amount is larger."""
OTHER_CURRENCY = {"EUR": "USD", "USD": "GBP", "GBP": "EUR"}
"""Currencies with equal decimals, so that the same digits are a valid amount in both."""
ROUNDING_CURRENCY = "EUR"
"""The only currency with a tolerance in the sample's rules."""

DOUBLE_FROM_PAYMENTS = 1_000
"""From this many payments on, each discrepancy is injected twice."""
REFUNDED_OUTSIDE_MAX = 5
"""Maximum number of partial refunds in the files; unverified, as no query shows the amount."""
QUARANTINED_PAYMENTS_MAX = 3
"""Maximum number of unreadable rows of existing payments; the others name unknown orders."""
UNREADABLE_FIRST_NUMBER = 9_500_001
INVENTED_FIRST_NUMBER = 9_000_001
"""Beyond every order number of the population."""
INVENTED_AMOUNTS = (1_000, 30_000)
FEES, FEE_MINOR_UNITS = 5, 1_250

ORDER_HEADER = columns_of(OrderLine)
CHANNELS = ("web", "app", "stores")
LATE_CHANNEL = "web-corrections"
"""The last file: repeats, newer versions, second rows."""
SPOILT_CHANNEL = "marketplace"
"""The partner whose file has unreadable rows."""
GOOD_ROWS_BETWEEN = 2
"""Number of readable rows between two unreadable ones."""
LEDGER_TABLE = "ledger_entries"
LEDGER_QUERY = "select * from ledger_entries"
NOT_DISPLAYED: Mapping[BreakCode, str] = {
    BreakCode(code): why for why, codes in STORIES["not_shown"].items() for code in codes
}
"""Codes that a sample run cannot show, and why."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account of the run, and the merchant's other account."""

    merchant_id: str
    account_id: str
    other_account: str


class BreakEffect(NamedTuple):
    """The money of a break: on leg "orders" gateway less order, on "ledger" gateway less ledger."""

    leg: str
    account_id: str
    currency: str
    amount: int


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected finding about one order."""

    merchant_id: str
    account_id: str
    order_no: str
    transaction_id: str
    why: str
    """Description of the change made to the files."""
    finding: Finding
    effects: tuple[BreakEffect, ...] = ()
    alone: tuple[tuple[BreakCode, BreakEffect], ...] = ()
    """Findings of a run over one account, where only both accounts show the whole."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """All rows about one order in the merchant's files, and the expectation."""

    orders: tuple[OrderLine, ...] = ()
    ledger: tuple[LedgerLine, ...] = ()
    expected: Expectation | None = None
    """None: the order matches without a flag."""
    later: tuple[OrderLine, ...] = ()
    """Rows in another file: repeats, newer versions."""


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """One unreadable row: its cells as written, and what is wrong with it."""

    cells: tuple[str, ...]
    column: str
    """The first invalid column; WHOLE_ROW when the row has the wrong shape."""
    kind: str
    line: OrderLine
    """The intended content of the row."""
    key_readable: bool
    """Merchant, account and order number are readable: the order is quarantined."""


@dataclass(frozen=True, slots=True)
class SampleNight:
    """The content of the merchant's files, and the expected findings."""

    business_date: date
    account: Account
    seed: int
    scenarios: tuple[Scenario, ...]
    bad_rows: tuple[UnreadableRow, ...]
    fees: tuple[LedgerLine, ...]
    """Entries without an order."""
    left_out: int
    """Number of payments in no file: partial refunds, whose amount no query shows."""


def expecting(
    scenario: Scenario,
    finding: Finding,
    why: str,
    *,
    of: TruePayment | OrderLine,
    payment: TruePayment | None = None,
) -> Scenario:
    """The scenario with an expectation; `payment` is the gateway's payment, if any."""
    effects: tuple[BreakEffect, ...] = ()
    if isinstance(finding, BreakCode):
        effects = tuple(_effects(scenario, of=of, payment=payment))
    ids = (of.merchant_id, of.account_id, of.order_no, of.transaction_id)
    return replace(scenario, expected=Expectation(*ids, why, finding, effects))


_SIGNS = {EntryType.CAPTURE.value: 1, EntryType.REFUND.value: -1, EntryType.CHARGEBACK.value: -1}


def _effects(
    scenario: Scenario, *, of: TruePayment | OrderLine, payment: TruePayment | None
) -> Iterator[BreakEffect]:
    """Non-zero differences between gateway and each side, by account and currency."""
    gateway = Counter[tuple[str, str]]()
    held = {leg: Counter[tuple[str, str]]() for leg in ("orders", "ledger")}
    if payment:
        gateway[payment.account_id, payment.currency] = payment.net
    for line in (*scenario.orders, *scenario.later):
        claimed = {
            OrderStatus.PAID.value: line.amount,
            OrderStatus.PARTIALLY_REFUNDED.value: line.amount - (line.refund_amount or 0),
        }
        held["orders"][line.account_id, line.currency] += claimed.get(line.status, 0)
    for entry in scenario.ledger:
        signed = _SIGNS.get(entry.entry_type, 0) * entry.amount
        held["ledger"][entry.account_id, entry.currency] += signed
    for place in dict.fromkeys(((of.account_id, of.currency), *gateway, *held["orders"])):
        for leg, sums in held.items():
            if amount := gateway[place] - sums[place]:
                yield BreakEffect(leg, place[0], place[1], amount)


_STATUS_OF: Mapping[GatewayState, OrderStatus] = {
    GatewayState.AUTHORISED: OrderStatus.AUTHORISED,
    GatewayState.PAID: OrderStatus.PAID,
    GatewayState.PARTIALLY_REFUNDED: OrderStatus.PARTIALLY_REFUNDED,
    GatewayState.REFUNDED: OrderStatus.REFUNDED,
    GatewayState.CANCELLED: OrderStatus.CANCELLED,
    GatewayState.EXPIRED: OrderStatus.FAILED,
    GatewayState.CHARGEBACK: OrderStatus.PAID,
}
"""The shop's status for a payment in each state; it is not informed of chargebacks."""
_PREFIX = {"capture": "LC", "refund": "LR", "chargeback": "LB", "write_off": "LW"}


def order_of(payment: TruePayment) -> OrderLine:
    """The order row that agrees with the payment."""
    part = payment.state is GatewayState.PARTIALLY_REFUNDED
    return OrderLine(
        **ids_of(payment),
        amount=payment.authorised,
        status=_STATUS_OF[payment.state],
        ordered_at=payment.authorised_at - CHECKOUT_TIME,
        refund_amount=payment.refunded if part else None,
    )


def _entry(
    payment: TruePayment, kind: str, amount: int, *, at: datetime | None = None
) -> LedgerLine:
    """The ledger entry of one movement of the payment, by default at its latest effect."""
    return LedgerLine(
        **ids_of(payment),
        entry_id=f"{_PREFIX[kind]}-{payment.order_no}",
        entry_type=kind,
        amount=amount,
        booked_at=(at or payment.last_at) + BOOKING_TIME,
        reference_no=payment.refund_reference_id if kind == EntryType.REFUND else "",
    )


def _capture(payment: TruePayment, *, more: int = 0) -> LedgerLine:
    return _entry(payment, "capture", payment.captured + more, at=payment.captured_at)


def entries_of(payment: TruePayment) -> tuple[LedgerLine, ...]:
    """Ledger entries of every movement of the payment."""
    entries = [_capture(payment)] if payment.captured else []
    if payment.refunded:
        entries.append(_entry(payment, "refund", payment.refunded))
    if payment.state is GatewayState.CHARGEBACK:
        entries.append(_entry(payment, "chargeback", payment.captured))
    return tuple(entries)


def _step(rng: Random) -> int:
    return rng.randint(*STEPS)


_CELLS: Mapping[str, Callable[[TruePayment, OrderLine, Random], object]] = {
    "a step": lambda _payment, _line, rng: _step(rng),
    "a step more": lambda payment, _line, rng: payment.authorised + _step(rng),
    "a step less": lambda payment, _line, rng: payment.authorised - _step(rng),
    "a cent less": lambda payment, _line, _rng: payment.captured - 1,
    "a part": lambda payment, _line, rng: rng.randint(1, payment.captured - 1),
    "a reason": lambda _payment, _line, rng: rng.choice(REFUND_REASONS),
    "an id": lambda payment, _line, _rng: f"RF-{payment.order_no}",
    "another currency": lambda payment, _line, _rng: OTHER_CURRENCY[payment.currency],
    "another transaction": lambda payment, _line, _rng: f"{payment.transaction_id}X",
    "as asked": lambda _payment, line, _rng: line.action_amount,
    "its authorisation": lambda payment, _line, _rng: payment.authorised_at,
    "after its last movement": lambda payment, _line, _rng: payment.last_at + timedelta(seconds=1),
}
"""Values of order cells by their name in stories.toml; other texts are used verbatim."""
_ENTRIES: Mapping[str, Callable[[TruePayment, OrderLine, Random], LedgerLine]] = {
    "capture": lambda payment, _line, _rng: _capture(payment),
    "capture again": lambda payment, _line, _rng: replace(
        _capture(payment), entry_id=f"LC-{payment.order_no}-2"
    ),
    "another capture": lambda payment, _line, rng: _capture(payment, more=_step(rng)),
    "refund": lambda payment, _line, rng: _entry(payment, "refund", _step(rng)),
    "chargeback": lambda payment, _line, _rng: _entry(payment, "chargeback", payment.captured),
    "write-off": lambda payment, line, _rng: _entry(
        payment, "write_off", payment.captured - line.amount
    ),
}
"""Ledger entries by their name in stories.toml."""


class _Plant(NamedTuple):
    """One row of the payment scenarios in stories.toml."""

    fits: str
    age: Literal["any", "old", "young"] = "any"
    currencies: Collection[str] = ()
    """Empty for any."""
    finding: str = ""
    why: str = ""
    order: Mapping[str, str] = {}
    half: Mapping[str, str] = {}
    """Further changes, made to a random half of the orders."""
    ordered: bool = True
    ledger: Sequence[str] | None = None
    """None for every movement of the payment."""
    later: Mapping[str, str] | None = None
    per_mille: int = 0


def _scenario(plant: _Plant, payment: TruePayment, *, rng: Random, account: Account) -> Scenario:

    def changed(line: OrderLine, cells: Mapping[str, str]) -> OrderLine:
        # In cell order: cells draw random numbers, and one may depend on earlier ones.
        for name, word in cells.items():
            written: Any = _CELLS[word](payment, line, rng) if word in _CELLS else word
            line = replace(line, **{name: written})
        return line

    in_other_account = plant.order.get("account_id") == "another account"
    cells = {**plant.order, **({"account_id": account.other_account} if in_other_account else {})}
    line = changed(order_of(payment), cells)
    if plant.half and not rng.randrange(2):
        line = changed(line, plant.half)
    entries = entries_of(payment)
    if plant.ledger is not None:
        entries = tuple(_ENTRIES[word](payment, line, rng) for word in plant.ledger)
    later = () if plant.later is None else (changed(line, plant.later),)
    scenario = Scenario((line,) * plant.ordered, entries, later=later)
    if (finding := finding_of(plant.finding)) is None:
        return scenario
    of = line if in_other_account else payment
    scenario = expecting(scenario, finding, plant.why, of=of, payment=payment)
    if in_other_account and scenario.expected:
        there, here = scenario.expected.effects
        alone = ((BreakCode.MISSING_IN_ORDERS, here), (BreakCode.MISSING_AT_GATEWAY, there))
        scenario = replace(scenario, expected=replace(scenario.expected, alone=alone))
    return scenario


def sample_night(
    payments: Sequence[TruePayment], *, account: Account, business_date: date, seed: int
) -> SampleNight:
    """The sample run of `account`, generated from the true payments."""
    calendar = BusinessCalendar.of()
    closes_at = calendar.closes_at(business_date)
    times = 2 if len(payments) >= DOUBLE_FROM_PAYMENTS else 1
    rng = Random(f"sample night {seed}")
    left = list(payments)
    """Payments without a scenario so far."""
    rng.shuffle(left)

    def is_due(at: datetime) -> bool:
        return calendar.due_at(at, grace=BOOKING_GRACE) <= closes_at

    def fits(plant: _Plant, payment: TruePayment, account_id: str) -> bool:
        of_age = plant.age == "any" or (
            is_due(payment.last_at) if plant.age == "old" else not is_due(payment.authorised_at)
        )
        return (
            account_id in {"", payment.account_id}
            and payment.state == plant.fits
            and (not plant.currencies or payment.currency in plant.currencies)
            and of_age
        )

    def drawn(plant: _Plant, most: int, account_id: str = account.account_id) -> list[TruePayment]:
        """Take up to `most` fitting payments out of `left`."""
        chosen = list(islice((each for each in left if fits(plant, each, account_id)), most))
        dropped = set(map(id, chosen))
        left[:] = [each for each in left if id(each) not in dropped]
        return chosen

    def stories_of(plant: _Plant, chosen: Iterable[TruePayment]) -> list[Scenario]:
        return [_scenario(plant, each, rng=rng, account=account) for each in chosen]

    scenarios: list[Scenario] = []
    for plant in (_Plant(**row) for row in STORIES["payments"]):
        scenarios += stories_of(plant, drawn(plant, times))
    expired = _Plant(**STORIES["expired"])
    scenarios += stories_of(expired, drawn(expired, times, account.other_account))
    scenarios += _invented(rng, account=account, closes_at=closes_at, times=times)
    settled = _Plant(GatewayState.PAID, "old")
    quarantined = drawn(settled, QUARANTINED_PAYMENTS_MAX)
    rows = _unreadable(quarantined, account=account, closes_at=closes_at)
    ledger = {payment.order_no: entries_of(payment) for payment in quarantined}
    for row in rows:
        if row.key_readable:
            scenario = Scenario(ledger=ledger.get(row.line.order_no, ()))
            scenarios.append(expecting(scenario, Reason.ROW_QUARANTINED, row.kind, of=row.line))
    for plant in (_Plant(**row) for row in STORIES["shares"]):
        count = sum(1 for each in left if fits(plant, each, account.account_id))
        scenarios += stories_of(plant, drawn(plant, count * plant.per_mille // 1000))
    part = _Plant(**STORIES["refunded_outside"])
    scenarios += stories_of(part, drawn(part, REFUNDED_OUTSIDE_MAX, ""))
    plain = [payment for payment in left if not fits(part, payment, "")]
    scenarios += [Scenario((order_of(payment),), entries_of(payment)) for payment in plain]
    # The gateway's monthly charges: they have no order and are not compared here.
    fees = tuple(
        LedgerLine(
            *(f"LF-{number}", account.merchant_id, account.account_id, "", EntryType.FEE, "EUR"),
            amount=FEE_MINOR_UNITS,
            booked_at=closes_at - timedelta(days=4 + number),
        )
        for number in range(1, FEES + 1)
    )
    left_out = len(left) - len(plain)
    return SampleNight(business_date, account, seed, tuple(scenarios), tuple(rows), fees, left_out)


WHOLE_ROW = "(row)"
"""Column of a reject of the wrong shape; the key of a truncated row is not trusted."""
_MISSHAPEN = 4
"""Number of rows that are malformed as a whole."""


def _unreadable(
    payments: Sequence[TruePayment], *, account: Account, closes_at: datetime
) -> list[UnreadableRow]:
    """One row per mistake, first for existing payments, then for unknown orders."""
    mistakes = STORIES["unreadable"]
    lines = [order_of(payment) for payment in payments]
    for number in range(len(mistakes) + _MISSHAPEN - len(payments)):
        ids = (account.merchant_id, account.account_id, f"SO{UNREADABLE_FIRST_NUMBER + number}")
        amount, at = 1_000 + 37 * number, closes_at - timedelta(days=2, minutes=number)
        line = OrderLine(*ids, "EUR", amount, OrderStatus.AUTHORISED, at, action="capture")
        lines.append(line)

    def cells(line: OrderLine, **written: str) -> tuple[str, ...]:
        return tuple({**dict(zip(ORDER_HEADER, cells_of(line), strict=True)), **written}.values())

    *mistaken, short, long, repeated, part = lines
    rows = [
        UnreadableRow(cells(line, **{column: written}), column, kind, line, column != "order_no")
        for (kind, column, written), line in zip(mistakes, mistaken, strict=True)
    ]
    # The header's names parse as ids, so this is a row of a merchant that does not exist.
    header = replace(
        repeated, merchant_id="merchant_id", account_id="account_id", order_no="order_no"
    )
    no_amount = cells(part, status="partially_refunded", refund_amount="")
    why = "refunded in part without an amount"
    surplus = (*cells(long), "surplus")
    return [
        *rows,
        UnreadableRow(cells(short)[:5], WHOLE_ROW, "row cut short", short, key_readable=False),
        UnreadableRow(surplus, WHOLE_ROW, "one cell too many", long, key_readable=True),
        UnreadableRow(ORDER_HEADER, "currency", "header repeated", header, key_readable=True),
        UnreadableRow(no_amount, "refund_amount", why, part, key_readable=True),
    ]


def _invented(
    rng: Random, *, account: Account, closes_at: datetime, times: int
) -> Iterator[Scenario]:
    """Orders unknown to the gateway: one scenario of each kind, `times` over."""
    kinds = STORIES["invented"]
    for number in range(times * len(kinds)):
        kind = kinds[number % len(kinds)]
        amount = rng.randint(*INVENTED_AMOUNTS)
        age = timedelta(days=rng.randint(5, 9), minutes=rng.randint(1, 600))
        if "age_hours" in kind:
            age = timedelta(hours=kind["age_hours"])
        ids = (account.merchant_id, account.account_id, f"SO{INVENTED_FIRST_NUMBER + number}")
        currency = ("EUR", "GBP", "USD")[number // len(kinds) % 3]
        status = kind.get("status", OrderStatus.PAID)
        line = OrderLine(*ids, currency, amount, status, closes_at - age)
        entry = LedgerLine(
            **ids_of(line),
            entry_id=f"LC-{line.order_no}",
            entry_type=EntryType.CAPTURE,
            amount=amount,
            booked_at=line.ordered_at + CHECKOUT_TIME + BOOKING_TIME,
        )
        orders = (line,) * kind.get("ordered", True)
        scenario, finding = Scenario(orders, (entry,) * kind.get("booked", False)), kind["finding"]
        yield expecting(scenario, finding_of(finding) or "pending", kind["why"], of=line)


def order_rows(night: SampleNight) -> dict[str, list[tuple[str, ...]]]:
    """Channel -> rows of its file, with unreadable rows spread among readable ones."""
    rng = Random(f"channels {night.seed}")
    lines = [line for scenario in night.scenarios for line in scenario.orders]
    lines.sort(key=lambda line: (line.ordered_at, line.order_no))
    spoilt_count = GOOD_ROWS_BETWEEN * len(night.bad_rows)
    spoilt = set(rng.sample(range(len(lines)), min(spoilt_count, len(lines))))
    rows: dict[str, list[tuple[str, ...]]] = {
        channel: [] for channel in (*CHANNELS, SPOILT_CHANNEL, LATE_CHANNEL)
    }
    for number, line in enumerate(lines):
        channel = SPOILT_CHANNEL if number in spoilt else rng.choice(CHANNELS)
        rows[channel].append(cells_of(line))
    for number, bad in enumerate(night.bad_rows, start=1):
        rows[SPOILT_CHANNEL].insert(number * (GOOD_ROWS_BETWEEN + 1) - 1, bad.cells)
    rows[LATE_CHANNEL] = [cells_of(line) for scenario in night.scenarios for line in scenario.later]
    return rows


def _file_name(night: SampleNight, channel: str) -> str:
    return f"orders-{night.business_date}-{channel}.csv"


def inbox_texts(night: SampleNight) -> dict[str, str]:
    """Name -> text of each order file that has rows."""
    return {
        _file_name(night, channel): csv_text(ORDER_HEADER, rows)
        for channel, rows in order_rows(night).items()
        if rows
    }


def ledger_lines(night: SampleNight) -> list[LedgerLine]:
    """The ledger entries in booking order."""
    lines = [line for scenario in night.scenarios for line in scenario.ledger]
    return sorted([*lines, *night.fees], key=lambda line: (line.booked_at, line.entry_id))


def add_to_ledger_table(ledger_csv: str, *, path: Path) -> str:
    """Add ledger entries to the table `ledger_entries` of an SQLite file, each once.

    Returns:
        The whole table as CSV, in booking order.
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


def answer_key(night: SampleNight) -> dict[str, Any]:
    """What a correct reconciliation must find, with the location of each unreadable row.

    Amounts are text with the currency's decimals.
    """
    expected = [scenario.expected for scenario in night.scenarios if scenario.expected is not None]
    expected.sort(key=lambda expectation: (expectation.account_id, expectation.order_no))
    found = {
        kind: [each for each in expected if isinstance(each.finding, kind)]
        for kind in (BreakCode, Reason, Flag)
    }
    waiting = [each for each in expected if each.finding == "pending"]
    requested = [
        (line.action, scenario)
        for scenario in night.scenarios
        for line in scenario.orders
        if line.action
    ]
    held = sum(1 for _, s in requested if s.expected and s.expected.finding == "pending")
    name = _file_name(night, SPOILT_CHANNEL)
    # Line 1 is the header.
    lines = {row: line for line, row in enumerate(order_rows(night)[SPOILT_CHANNEL], start=2)}
    return {
        "business_date": night.business_date.isoformat(),
        "seed": night.seed,
        "merchant_id": night.account.merchant_id,
        "account_id": night.account.account_id,
        # Instructions of each kind in the files, repeats counted once.
        "instructions": dict(sorted(Counter(action for action, _ in requested).items()))
        | {"of_these_waiting": held},
        "breaks": [_who(each) | _break(each) for each in found[BreakCode]],
        "unverified": [_who(each) | {"reason": each.finding} for each in found[Reason]],
        "matched_with_flag": [_who(each) | {"flag": each.finding} for each in found[Flag]],
        "pending": [_who(each) for each in waiting],
        "not_shown": {code.value: why for code, why in NOT_DISPLAYED.items()},
        "payments_left_out": night.left_out,
        "rejected_rows": [
            {"file": name, "line": lines[bad.cells], "column": bad.column, "kind": bad.kind}
            for bad in night.bad_rows
        ],
    }


def _who(expectation: Expectation) -> dict[str, Any]:
    names = ("merchant_id", "account_id", "order_no", "transaction_id", "why")
    return {name: getattr(expectation, name) for name in names}


def _break(expectation: Expectation) -> dict[str, Any]:
    def shown(effect: BreakEffect) -> dict[str, str]:
        text = format_minor_units(effect.amount, currency=effect.currency)
        return {**effect._asdict(), "amount": text}

    entry: dict[str, Any] = {"code": expectation.finding}
    entry["effects"] = [shown(effect) for effect in expectation.effects]
    if expectation.alone:
        entry["in_a_night_of_one_account"] = [
            {"account_id": effect.account_id, "code": code, "effects": [shown(effect)]}
            for code, effect in expectation.alone
        ]
    return entry
