"""The batches that the gateway settled and paid out on the days before a business date.

They are true but for what is planted: one is paid out less a part that is held back. Of the first
batches in some currencies a reserve is kept back, too.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter

from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, EntryType
from recon.sandbox.ground.book_records import Effect
from recon.sandbox.pages.planted_settlement import (
    PAYOUT,
    SETTLED,
    SettlementLine,
    pay_outs_of,
    settled_line,
)

DAYS_BEFORE = 8
"""Calendar days before the business date whose batches are told."""
HELD_MINOR_UNITS = 2_000
"""What the first large batch in the currency of HELD_CURRENCY is paid out less."""
HELD_CURRENCY = "EUR"
RESERVE_MINOR_UNITS = 1_000
"""What is kept back as a security of one batch in each of RESERVE_CURRENCIES."""
RESERVE_CURRENCIES = ("EUR", "GBP", "USD")
LEAST_OF_RESERVE = 10 * RESERVE_MINOR_UNITS
"""What the batch must come to."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A pay-out that is less than its batch, and long enough ago to be asked for."""

    payout: SettlementLine
    amount: int
    code: BreakCode = BreakCode.HELD_BACK


@dataclass(frozen=True, slots=True)
class PaidBatches:
    """What was settled, and what was paid out of it."""

    lines: tuple[SettlementLine, ...]
    """Settlement lines, each day's pay-out rows behind its lines."""
    planted: tuple[HeldBack, ...]

    @property
    def payouts(self) -> tuple[SettlementLine, ...]:
        """The pay-out rows, by day and currency."""
        return tuple(line for line in self.lines if line.entry_type == PAYOUT and line.net)


def paid_batches(
    effects: Iterable[Effect],
    *,
    merchant_id: str,
    account_id: str,
    day: date,
    unmentioned: Collection[str] = (),
) -> PaidBatches:
    """The batches of the days before `day`, one a day with a pay-out of each currency.

    Args:
        effects: the truth.
        merchant_id: whose batches.
        account_id: of the merchant.
        day: the business date; its own batch is that of `settlement_of`.
        unmentioned: transactions that no batch here has: what was refunded in part, and by how
            much no query shows, stays as unknown as it was.
    """
    calendar = BusinessCalendar.of()
    first = day - timedelta(days=DAYS_BEFORE)
    last_held = first + timedelta(days=1)
    opens = calendar.closes_at(first - timedelta(days=1)).timestamp()
    closes = calendar.closes_at(day - timedelta(days=1)).timestamp()
    mine = [
        of_one_currency(settled_line(effect, day=calendar.business_date_of(_instant(effect))))
        for effect in effects
        if effect.account_id == account_id
        and effect.operation in SETTLED
        and effect.operation != PAYOUT
        and effect.transaction_id not in unmentioned
        and opens <= effect.committed_at < closes
    ]
    mine.sort(key=attrgetter("settled_on"))
    lines: list[SettlementLine] = []
    held: list[HeldBack] = []
    reserved: set[str] = set()
    for settled_on, group in groupby(mine, key=attrgetter("settled_on")):
        batch = list(group)
        settled = date.fromisoformat(settled_on)
        kept = [*_reserves(batch, without=reserved)]
        reserved |= {line.currency for line in kept}
        batch += kept
        rows = pay_outs_of(batch, merchant_id=merchant_id, account_id=account_id, day=settled)
        payouts = [*map(of_one_currency, rows)]
        for number, payout in enumerate(payouts):
            if not held and settled_on <= str(last_held) and _can_hold(payout):
                payouts[number] = _less(payout, HELD_MINOR_UNITS)
                held.append(HeldBack(payouts[number], HELD_MINOR_UNITS))
        lines += [*batch, *payouts]
    return PaidBatches(tuple(lines), tuple(held))


def _reserves(
    batch: Sequence[SettlementLine], *, without: Collection[str]
) -> Iterator[SettlementLine]:
    """A line of what is kept back of a batch that is large enough, once a currency."""
    for currency in RESERVE_CURRENCIES:
        mine = [line for line in batch if line.currency == currency]
        enough = sum(line.net for line in mine) > LEAST_OF_RESERVE
        if enough and currency not in without:
            yield replace(
                mine[0],
                entry_type=EntryType.RESERVE,
                order_no="",
                transaction_id="",
                reference_no="",
                own_reference="",
                gross=-RESERVE_MINOR_UNITS,
                fee=0,
                net=-RESERVE_MINOR_UNITS,
            )


def held_key(batches: PaidBatches) -> list[dict[str, str]]:
    """The answer key of what is held back, amounts as text."""
    return [
        {
            "code": held.code.value,
            "batch_id": held.payout.batch_id,
            "currency": held.payout.currency,
            "held_back": format_minor_units(held.amount, currency=held.payout.currency),
        }
        for held in batches.planted
    ]


def _less(payout: SettlementLine, amount: int) -> SettlementLine:
    return replace(payout, gross=payout.gross - amount, net=payout.net - amount)


def of_one_currency(line: SettlementLine) -> SettlementLine:
    """A batch of its own for each currency: a bank that names it names one pay-out."""
    return replace(line, batch_id=f"{line.batch_id}-{line.currency}")


def _instant(effect: Effect) -> datetime:
    return datetime.fromtimestamp(effect.committed_at, UTC)


def _can_hold(payout: SettlementLine) -> bool:
    return payout.currency == HELD_CURRENCY and payout.net > 2 * HELD_MINOR_UNITS
