"""The sample night, assembled: which payment gets which story. Same seed, same night.

Input is what truly happened at the gateway; output is everything the merchant's files say and what
a correct reconciliation must find in them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import islice
from random import Random

from recon.model.business_date import BusinessCalendar
from recon.model.words import EntryType, GatewayState, OrderStatus, UnverifiedReason
from recon.sandbox.sample_night.bad_rows import UnreadableRow, bad_rows, rows_needed
from recon.sandbox.sample_night.calm_finds import refunded_amount_unknown
from recon.sandbox.sample_night.expecting import unverified
from recon.sandbox.sample_night.fitting import Wants, all_of, in_state, of_account, past_grace
from recon.sandbox.sample_night.invented_orders import invented_stories
from recon.sandbox.sample_night.order_breaks import authorisation_expired
from recon.sandbox.sample_night.plain_orders import entries_of, order_of, plain_story
from recon.sandbox.sample_night.plants import Tell, account_plants, shares
from recon.sandbox.sample_night.records import LedgerLine, OrderLine, Story
from recon.sandbox.sample_night.true_payments import Effect, TruePayment, payments_of

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
