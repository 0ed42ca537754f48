"""The gateway's settlement of one day and of the batches before: gross, fee, net, what is paid out.

Like the sample night it is written from the truth outwards: first what was settled, then what the
file says of it, so that every planted discrepancy is known. The fee is the sandbox's own choice.
Earlier batches are true but for what is planted: one is paid out less a part that is held back, and
of the first batches in some currencies a reserve is kept back.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import Any

from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, EntryType
from recon.sandbox.ground.book_records import Effect
from recon.sandbox.world.records import SettlementLine, cells_of, columns_of

FEE_BASIS_POINTS = 140
FEE_FIXED_MINOR_UNITS = 25
SETTLED = {"capture": 1, "refund": -1, "chargeback": -1, "payout": -1}
"""What a settlement is made of, and the sign of its gross amount."""

PAYOUT = "payout"
UNKNOWN_ORDER = "SO9900001"
UNKNOWN_TRANSACTION = "90000000000000009901"
UNKNOWN_GROSS = 4_321
STEP_MIN, STEP_MAX = 100, 400
"""Minor units by which a planted amount differs."""


@dataclass(frozen=True, slots=True)
class PlantedDiscrepancy:
    """One discrepancy: what was true, and what the file says."""

    code: BreakCode
    why: str
    true: SettlementLine | None
    shown: SettlementLine | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """The lines of the file, its pay-out rows last, and what was planted into them."""

    lines: tuple[SettlementLine, ...]
    true: tuple[SettlementLine, ...]
    """The same without anything planted."""
    planted: tuple[PlantedDiscrepancy, ...]


def settlement_of(
    effects: Iterable[Effect],
    *,
    merchant_id: str,
    account_id: str,
    day: date,
    seed: int,
    spared: Collection[str] = (),
) -> Settlement:
    """The settlement of one business date; the same effects and seed give the same lines.

    `spared` are order numbers about which nothing is planted, because something else is.
    """
    calendar = BusinessCalendar.of()
    opens = calendar.closes_at(date.fromordinal(day.toordinal() - 1)).timestamp()
    closes = calendar.closes_at(day).timestamp()
    true = [
        settled_line(effect, day=day)
        for effect in effects
        if effect.account_id == account_id
        and effect.operation in SETTLED
        and opens <= effect.committed_at < closes
    ]
    free = [line for line in true if line.order_no not in spared]
    planted = _plants(free, rng=Random(f"settlement {seed} {day}"))
    sums = partial(pay_outs_of, merchant_id=merchant_id, account_id=account_id, day=day)
    shown = _as_shown(true, planted=planted)
    return Settlement((*shown, *sums(shown)), (*true, *sums(true)), tuple(planted))


def _agreed(captured: int) -> int:
    """The fee of a captured amount."""
    return captured * FEE_BASIS_POINTS // 10_000 + FEE_FIXED_MINOR_UNITS


def settled_line(effect: Effect, *, day: date) -> SettlementLine:
    """What a settlement of `day` says of one effect."""
    amount = effect.amount or 0
    gross = SETTLED[effect.operation] * amount
    fee = _agreed(amount) if gross > 0 else 0
    return SettlementLine(
        batch_id=f"S{day:%Y%m%d}",
        merchant_id=effect.merchant_id,
        account_id=effect.account_id,
        settled_on=day.isoformat(),
        entry_type=effect.operation,
        order_no=effect.order_no,
        transaction_id=effect.transaction_id,
        reference_no=effect.refund_reference_id,
        currency=effect.currency,
        gross=gross,
        fee=fee,
        net=gross - fee,
        own_reference=effect.refund_reference or effect.request_id,
    )


def _plants(lines: Sequence[SettlementLine], *, rng: Random) -> list[PlantedDiscrepancy]:
    """One of each kind, on captures that nothing else happened to that day; fewer without them."""
    times = Counter(line.transaction_id for line in lines)
    captures = [
        line for line in lines if line.entry_type == "capture" and times[line.transaction_id] == 1
    ]
    chosen = rng.sample(captures, min(4, len(captures)))
    return [
        plant(line, rng.randint(STEP_MIN, STEP_MAX))
        for plant, line in zip(_PLANTS, chosen, strict=False)
    ]


def _left_out(line: SettlementLine, _step: int) -> PlantedDiscrepancy:
    why = "captured and not settled"
    return PlantedDiscrepancy(BreakCode.SETTLEMENT_MISSING, why, line, None)


def _other_amount(line: SettlementLine, step: int) -> PlantedDiscrepancy:
    shown = replace(line, gross=line.gross - step, net=line.net - step)
    return PlantedDiscrepancy(
        BreakCode.SETTLEMENT_AMOUNT_MISMATCH, "settled with less", line, shown
    )


def _other_fee(line: SettlementLine, step: int) -> PlantedDiscrepancy:
    shown = replace(line, fee=line.fee + step, net=line.net - step)
    return PlantedDiscrepancy(
        BreakCode.FEE_VARIANCE, "charged a higher fee than agreed", line, shown
    )


def _unexpected(line: SettlementLine, _step: int) -> PlantedDiscrepancy:
    """A receipt in the currency of the line, of a payment that nobody knows."""
    shown = replace(
        line,
        order_no=UNKNOWN_ORDER,
        transaction_id=UNKNOWN_TRANSACTION,
        reference_no="",
        gross=UNKNOWN_GROSS,
        fee=_agreed(UNKNOWN_GROSS),
        net=UNKNOWN_GROSS - _agreed(UNKNOWN_GROSS),
    )
    return PlantedDiscrepancy(
        BreakCode.UNEXPECTED_RECEIPT, "settled for a payment unknown", None, shown
    )


_PLANTS = (_left_out, _other_amount, _other_fee, _unexpected)


def _as_shown(
    lines: Sequence[SettlementLine], *, planted: Sequence[PlantedDiscrepancy]
) -> list[SettlementLine]:
    shown_as = {fault.true: fault.shown for fault in planted if fault.true is not None}
    shown = [shown_as.get(line, line) for line in lines]
    added = [fault.shown for fault in planted if fault.true is None]
    return [line for line in (*shown, *added) if line is not None]


def pay_outs_of(
    lines: Sequence[SettlementLine], *, merchant_id: str, account_id: str, day: date
) -> list[SettlementLine]:
    """One row for each currency: what the lines above come to, in the order of the currencies."""
    rows: list[SettlementLine] = []
    for currency in sorted({line.currency for line in lines}):
        mine = [line for line in lines if line.currency == currency]
        gross, fee = sum(line.gross for line in mine), sum(line.fee for line in mine)
        batch = f"S{day:%Y%m%d}"
        names = (batch, merchant_id, account_id, day.isoformat(), PAYOUT, "", "", "")
        rows.append(SettlementLine(*names, currency, gross, fee, gross - fee))
    return rows


def answer_key(settlement: Settlement) -> list[dict[str, Any]]:
    """Every planted discrepancy, amounts as text."""
    return [
        {"code": fault.code.value, "why": fault.why}
        | {"true": _as_table(fault.true), "shown": _as_table(fault.shown)}
        for fault in settlement.planted
    ]


def _as_table(line: SettlementLine | None) -> dict[str, str] | None:
    return (
        None if line is None else dict(zip(columns_of(SettlementLine), cells_of(line), strict=True))
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
