"""The sample night, assembled: which payment gets which story. Same seed, same night.

Input is what truly happened at the gateway; output is everything the merchant's files say (orders
that the gateway does not know and rows that cannot be read among them) and what a correct
reconciliation must find in them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import islice
from random import Random

from recon.model.business_date import BusinessCalendar
from recon.model.words import (
    BreakCode,
    EntryType,
    Flag,
    GatewayState,
    OrderStatus,
    UnverifiedReason,
)
from recon.sandbox.sample_night.plants import (
    BOOKING_TIME,
    CHECKOUT_TIME,
    Tell,
    account_plants,
    authorisation_expired,
    entries_of,
    order_of,
    plain_story,
    refunded_amount_unknown,
    shares,
)
from recon.sandbox.sample_night.records import (
    ORDER_HEADER,
    LedgerLine,
    OrderLine,
    Story,
    Wants,
    all_of,
    breaks,
    cells_of,
    effects_of,
    flagged,
    in_state,
    of_account,
    past_grace,
    pending,
    unverified,
)
from recon.sandbox.sample_night.true_payments import Effect, TruePayment, payments_of


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


def bad_rows(lines: Sequence[OrderLine]) -> list[UnreadableRow]:
    """One row of each kind; every row needs a line that nobody else uses."""
    rows = [_mistaken(mistake, line) for mistake, line in zip(_MISTAKES, lines, strict=False)]
    rest = lines[len(rows) :]
    return rows + [make(line) for make, line in zip(_MISSHAPEN, rest, strict=False)]


DOUBLE_FROM_PAYMENTS = 1_000
"""From so many payments on, each discrepancy is planted twice."""
REFUNDED_ELSEWHERE_MAX = 5
"""Partly refunded payments in the files: the query shows no amount, so each is unverified."""
QUARANTINED_PAYMENTS_MAX = 3
"""Unreadable rows of payments that exist; the others speak of orders nobody knows."""
UNREADABLE_FIRST_NUMBER = 9_500_001
FEES = 5
FEE_MINOR_UNITS = 1_250


@dataclass(frozen=True, slots=True)
class Account:
    """The account of the night, and the merchant's other one."""

    merchant_id: str
    account_id: str
    other_account: str


@dataclass(frozen=True, slots=True)
class SampleNight:
    """Everything the merchant's files say, and what must be found in them."""

    business_date: date
    account: Account
    seed: int
    stories: tuple[Story, ...]
    bad_rows: tuple[UnreadableRow, ...]
    fees: tuple[LedgerLine, ...]
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
        chosen = list(islice((payment for payment in self.left if wants(payment)), times))
        used = {payment.transaction_id for payment in chosen}
        if used:
            self.left = [payment for payment in self.left if payment.transaction_id not in used]
        return chosen

    def tell(self, tell: Tell, wants: Wants, *, times: int) -> list[Story]:
        """Give up to `times` fitting payments this story."""
        return [tell(payment, self.rng) for payment in self.take(wants, times=times)]

    def count(self, wants: Wants) -> int:
        """How many payments would fit."""
        return sum(1 for payment in self.left if wants(payment))


def sample_night(
    effects: Iterable[Effect], *, account: Account, business_date: date, seed: int
) -> SampleNight:
    """The night of `account`, written from the effects of origin `seed`."""
    closes_at = BusinessCalendar.of().closes_at(business_date)
    payments = payments_of(effects, now=closes_at)
    times = 2 if len(payments) >= DOUBLE_FROM_PAYMENTS else 1
    pool = _Pool(payments, rng=Random(f"sample night {seed}"))
    stories = _planted(pool, account=account, closes_at=closes_at, times=times)
    rows, quarantined = _unreadable(pool, account=account, closes_at=closes_at)
    stories += quarantined
    for tell, wants, per_mille in shares(account.account_id):
        stories += pool.tell(tell, wants, times=pool.count(wants) * per_mille // 1000)
    elsewhere = in_state(GatewayState.PARTIALLY_REFUNDED)
    stories += pool.tell(refunded_amount_unknown, elsewhere, times=REFUNDED_ELSEWHERE_MAX)
    stories += [plain_story(payment) for payment in pool.left if not elsewhere(payment)]
    return SampleNight(
        business_date=business_date,
        account=account,
        seed=seed,
        stories=tuple(stories),
        bad_rows=tuple(rows),
        fees=_fees(account, closes_at=closes_at),
        left_out=pool.count(elsewhere),
    )


def _planted(pool: _Pool, *, account: Account, closes_at: datetime, times: int) -> list[Story]:
    """Everything that does not simply match, in both accounts."""
    stories: list[Story] = []
    plants = account_plants(
        account.account_id, other_account=account.other_account, closes_at=closes_at
    )
    for tell, wants in plants:
        stories += pool.tell(tell, wants, times=times)
    expired = all_of(of_account(account.other_account), in_state(GatewayState.EXPIRED))
    stories += pool.tell(authorisation_expired, expired, times=times)
    return stories + invented_stories(
        pool.rng,
        merchant_id=account.merchant_id,
        account_id=account.account_id,
        closes_at=closes_at,
        times=times,
    )


def _unreadable(
    pool: _Pool, *, account: Account, closes_at: datetime
) -> tuple[list[UnreadableRow], list[Story]]:
    """Rows that cannot be read, and the orders that are in quarantine because of them."""
    settled = all_of(
        of_account(account.account_id), in_state(GatewayState.PAID), past_grace(closes_at)
    )
    payments = pool.take(settled, times=QUARANTINED_PAYMENTS_MAX)
    invented = [
        _unknown_line(number, account=account, closes_at=closes_at)
        for number in range(rows_needed() - len(payments))
    ]
    rows = bad_rows([*map(order_of, payments), *invented])
    ledger = {payment.order_no: entries_of(payment) for payment in payments}
    stories = [
        Story(
            ledger=ledger.get(row.line.order_no, ()),
            expected=unverified(row.line, row.kind, reason=UnverifiedReason.ROW_QUARANTINED),
        )
        for row in rows
        if row.key_readable
    ]
    return rows, stories


def _unknown_line(number: int, *, account: Account, closes_at: datetime) -> OrderLine:
    return OrderLine(
        merchant_id=account.merchant_id,
        account_id=account.account_id,
        order_no=f"SO{UNREADABLE_FIRST_NUMBER + number}",
        currency="EUR",
        amount=1_000 + 37 * number,
        status=OrderStatus.AUTHORISED,
        ordered_at=closes_at - timedelta(days=2, minutes=number),
        action="capture",
    )


def _fees(account: Account, *, closes_at: datetime) -> tuple[LedgerLine, ...]:
    """Monthly charges of the gateway: no order, compared with nothing here."""
    first = LedgerLine(
        entry_id="LF-1",
        merchant_id=account.merchant_id,
        account_id=account.account_id,
        order_no="",
        entry_type=EntryType.FEE,
        currency="EUR",
        amount=FEE_MINOR_UNITS,
        booked_at=closes_at,
    )
    return tuple(
        replace(first, entry_id=f"LF-{number}", booked_at=closes_at - timedelta(days=4 + number))
        for number in range(1, FEES + 1)
    )


Cells = dict[str, str]

WHOLE_ROW = "(row)"
"""Column of a reject whose cells cannot be told apart: then no key is believed either."""


@dataclass(frozen=True, slots=True)
class _Mistake:
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


def rows_needed() -> int:
    """How many lines `bad_rows` can spoil."""
    return len(_MISTAKES) + len(_MISSHAPEN)


def _mistaken(mistake: _Mistake, line: OrderLine) -> UnreadableRow:
    cells = {**_cells(line), mistake.column: mistake.written}
    return UnreadableRow(
        tuple(cells.values()), mistake.column, mistake.kind, line, mistake.key_readable
    )


def _short(line: OrderLine) -> UnreadableRow:
    cells = tuple(_cells(line).values())[:5]
    return UnreadableRow(cells, WHOLE_ROW, "row cut short", line, key_readable=False)


def _long(line: OrderLine) -> UnreadableRow:
    cells = (*_cells(line).values(), "surplus")
    return UnreadableRow(cells, WHOLE_ROW, "one cell too many", line, key_readable=False)


def _header_again(line: OrderLine) -> UnreadableRow:
    """The words of the header read as ids, so this is a row of a merchant who does not exist."""
    meant = replace(line, merchant_id="merchant_id", account_id="account_id", order_no="order_no")
    return UnreadableRow(ORDER_HEADER, "currency", "header repeated", meant, key_readable=True)


def _part_without_amount(line: OrderLine) -> UnreadableRow:
    cells = {**_cells(line), "status": "partially_refunded", "refund_amount": ""}
    kind = "refunded in part without an amount"
    return UnreadableRow(tuple(cells.values()), "refund_amount", kind, line, key_readable=True)


_MISSHAPEN: tuple[Callable[[OrderLine], UnreadableRow], ...] = (
    _short,
    _long,
    _header_again,
    _part_without_amount,
)


def _cells(line: OrderLine) -> Cells:
    return dict(zip(ORDER_HEADER, cells_of(line), strict=True))


FIRST_NUMBER = 9_000_001
"""Far above every order number of the population."""
AMOUNT_MIN = 1_000
AMOUNT_MAX = 30_000


def invented_stories(
    rng: Random, *, merchant_id: str, account_id: str, closes_at: datetime, times: int
) -> list[Story]:
    """One story of each kind, `times` over; kinds differ by age and by what is booked."""
    stories: list[Story] = []
    for number in range(times):
        for kind in (_never_arrived, _booked_only, _in_ledger_only, _just_placed, _unpaid, _stale):
            line = OrderLine(
                merchant_id=merchant_id,
                account_id=account_id,
                order_no=f"SO{FIRST_NUMBER + len(stories)}",
                currency=("EUR", "GBP", "USD")[number % 3],
                amount=rng.randint(AMOUNT_MIN, AMOUNT_MAX),
                status=OrderStatus.PAID,
                ordered_at=closes_at
                - timedelta(days=rng.randint(5, 9), minutes=rng.randint(1, 600)),
            )
            stories.append(kind(line, closes_at))
    return stories


def _never_arrived(line: OrderLine, _closes_at: datetime) -> Story:
    effects = effects_of(line, gateway=0, order=line.amount, ledger=0)
    why = "paid order that the gateway never saw"
    expected = breaks(line, why, code=BreakCode.MISSING_AT_GATEWAY, effects=effects)
    return Story((line,), (), expected)


def _booked_only(line: OrderLine, _closes_at: datetime) -> Story:
    effects = effects_of(line, gateway=0, order=line.amount, ledger=line.amount)
    why = "paid and booked order that the gateway never saw"
    expected = breaks(line, why, code=BreakCode.BOOKED_NOT_AT_GATEWAY, effects=effects)
    return Story((line,), (_capture_of(line),), expected)


def _in_ledger_only(line: OrderLine, _closes_at: datetime) -> Story:
    effects = effects_of(line, gateway=0, order=0, ledger=line.amount)
    expected = breaks(line, "booked only", code=BreakCode.LEDGER_ONLY, effects=effects)
    return Story((), (_capture_of(line),), expected)


def _just_placed(line: OrderLine, closes_at: datetime) -> Story:
    line = _moved(line, ordered_at=closes_at - timedelta(hours=4), status=OrderStatus.PAID)
    return Story((line,), (), pending(line, "placed four hours before the cut-off"))


def _unpaid(line: OrderLine, closes_at: datetime) -> Story:
    line = _moved(line, ordered_at=closes_at - timedelta(days=2), status=OrderStatus.PENDING)
    return Story((line,), (), pending(line, "not yet paid"))


def _stale(line: OrderLine, closes_at: datetime) -> Story:
    line = _moved(line, ordered_at=closes_at - timedelta(days=20), status=OrderStatus.PENDING)
    return Story((line,), (), flagged(line, "never paid", flag=Flag.NEVER_PAID))


def _moved(line: OrderLine, *, ordered_at: datetime, status: OrderStatus) -> OrderLine:
    return replace(line, ordered_at=ordered_at, status=status)


def _capture_of(line: OrderLine) -> LedgerLine:
    return LedgerLine(
        entry_id=f"LC-{line.order_no}",
        merchant_id=line.merchant_id,
        account_id=line.account_id,
        order_no=line.order_no,
        entry_type=EntryType.CAPTURE,
        currency=line.currency,
        amount=line.amount,
        booked_at=line.ordered_at + CHECKOUT_TIME + BOOKING_TIME,
    )
