"""The batches that the gateway settled and paid out on the days before a business date.

They are true but for what is planted: one is paid out less a part that is held back. The books
have every pay-out and every fee of them.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from operator import attrgetter

from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.model.words import REVERSAL_SUFFIX, BreakCode, EntryType
from recon.sandbox.ground.book_records import Effect
from recon.sandbox.pages.planted_settlement import (
    PAYOUT,
    SETTLED,
    SettlementLine,
    pay_outs_of,
    settled_line,
)
from recon.sandbox.sample_night.records import LedgerLine

DAYS_BEFORE = 8
"""Calendar days before the business date whose batches are told."""
HELD_MINOR_UNITS = 2_000
"""What the first large batch in the currency of HELD_CURRENCY is paid out less."""
HELD_CURRENCY = "EUR"
BOOKED_AT = time(9, tzinfo=UTC)
"""When the books have a batch, on the day after it was settled."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A pay-out that is less than its batch, and long enough ago to be asked for."""

    payout: SettlementLine
    amount: int
    code: BreakCode = BreakCode.HELD_BACK


@dataclass(frozen=True, slots=True)
class PaidBatches:
    """What was settled, what was paid out of it, and what the books have of both."""

    lines: tuple[SettlementLine, ...]
    """Settlement lines, each day's pay-out rows behind its lines."""
    booked: tuple[LedgerLine, ...]
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
        _of_one_currency(settled_line(effect, day=calendar.business_date_of(_instant(effect))))
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
    for settled_on, group in groupby(mine, key=attrgetter("settled_on")):
        batch = list(group)
        settled = date.fromisoformat(settled_on)
        rows = pay_outs_of(batch, merchant_id=merchant_id, account_id=account_id, day=settled)
        payouts = [*map(_of_one_currency, rows)]
        for number, payout in enumerate(payouts):
            if not held and settled_on <= str(last_held) and _can_hold(payout):
                payouts[number] = _less(payout, HELD_MINOR_UNITS)
                held.append(HeldBack(payouts[number], HELD_MINOR_UNITS))
        lines += [*batch, *payouts]
    return PaidBatches(tuple(lines), tuple(_booked(lines)), tuple(held))


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


def _of_one_currency(line: SettlementLine) -> SettlementLine:
    """A batch of its own for each currency: a bank that names it names one pay-out."""
    return replace(line, batch_id=f"{line.batch_id}-{line.currency}")


def _instant(effect: Effect) -> datetime:
    return datetime.fromtimestamp(effect.committed_at, UTC)


def _can_hold(payout: SettlementLine) -> bool:
    return payout.currency == HELD_CURRENCY and payout.net > 2 * HELD_MINOR_UNITS


def _booked(lines: Sequence[SettlementLine]) -> list[LedgerLine]:
    """A ledger entry for each pay-out, and one for the fees of each batch and currency."""
    entries: list[LedgerLine] = []
    for line in lines:
        if line.entry_type != PAYOUT:
            continue
        paid = EntryType.PAYOUT.value + (REVERSAL_SUFFIX if line.net < 0 else "")
        for kind, amount in ((paid, abs(line.net)), (EntryType.FEE.value, line.fee)):
            if amount:
                entries.append(_entry(line, kind=kind, amount=amount))
    return entries


def _entry(line: SettlementLine, *, kind: str, amount: int) -> LedgerLine:
    settled = date.fromisoformat(line.settled_on)
    short = "LFB" if kind == EntryType.FEE else "LPO"
    return LedgerLine(
        entry_id=f"{short}-{line.batch_id}",
        merchant_id=line.merchant_id,
        account_id=line.account_id,
        order_no="",
        entry_type=kind,
        currency=line.currency,
        amount=amount,
        booked_at=datetime.combine(settled + timedelta(days=1), BOOKED_AT),
        reference_no=line.batch_id,
    )
