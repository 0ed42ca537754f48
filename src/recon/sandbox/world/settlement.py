"""The gateway's settlement of one day and of the batches before: gross, fee, net, what is paid out.

First what was settled, then what the file says of it, so that every planted discrepancy is known.
The fee is the sandbox's own choice. Earlier batches are true but for what is planted: one is paid
out less a part that is held back, and of the first batches in some currencies a reserve is kept.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import Any

from recon.model.business_date import BusinessCalendar
from recon.model.words import BreakCode, EntryType
from recon.sandbox.ground.book import Effect
from recon.sandbox.world.records import Planted, SettlementLine, cells_of, columns_of, instant_of

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
    effects: Iterable[Effect], *, account_id: str, day: date, seed: int, spared: Collection[str]
) -> Settlement:
    """The settlement of one business date; the same effects and seed give the same lines.

    `spared` are order numbers about which nothing is planted, because something else is.
    """
    calendar = BusinessCalendar.of()
    opens = calendar.closes_at(day - timedelta(days=1)).timestamp()
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
    shown_as = {fault.true: fault.shown for fault in planted if fault.true is not None}
    added = [fault.shown for fault in planted if fault.true is None]
    all_shown = (*(shown_as.get(line, line) for line in true), *added)
    shown = [line for line in all_shown if line is not None]
    return Settlement((*shown, *pay_outs_of(shown)), (*true, *pay_outs_of(true)), tuple(planted))


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


def of_one_currency(effect: Effect, *, day: date) -> SettlementLine:
    """The same in a batch of its currency alone: a bank that names it names one pay-out."""
    line = settled_line(effect, day=day)
    return replace(line, batch_id=f"{line.batch_id}-{line.currency}")


def _agreed(captured: int) -> int:
    """The fee of a captured amount."""
    return captured * FEE_BASIS_POINTS // 10_000 + FEE_FIXED_MINOR_UNITS


def pay_outs_of(lines: Sequence[SettlementLine]) -> list[SettlementLine]:
    """One row for each currency, in their order: what the lines of a day come to."""
    rows: list[SettlementLine] = []
    for currency in sorted({line.currency for line in lines}):
        mine = [line for line in lines if line.currency == currency]
        gross, fee = sum(line.gross for line in mine), sum(line.fee for line in mine)
        rows.append(_of_no_payment(mine[0], PAYOUT, gross=gross, fee=fee))
    return rows


def _of_no_payment(line: SettlementLine, kind: str, *, gross: int, fee: int) -> SettlementLine:
    """A line of the same batch that names no payment."""
    line = replace(line, entry_type=kind, gross=gross, fee=fee, net=gross - fee)
    return replace(line, order_no="", transaction_id="", reference_no="", own_reference="")


_PLANTS: Sequence[tuple[BreakCode, str, Callable[[SettlementLine, int], SettlementLine | None]]] = (
    (BreakCode.SETTLEMENT_MISSING, "captured and not settled", lambda _line, _by: None),
    (
        BreakCode.SETTLEMENT_AMOUNT_MISMATCH,
        "settled with less",
        lambda line, by: replace(line, gross=line.gross - by, net=line.net - by),
    ),
    (
        BreakCode.FEE_VARIANCE,
        "charged a higher fee than agreed",
        lambda line, by: replace(line, fee=line.fee + by, net=line.net - by),
    ),
    (
        BreakCode.UNEXPECTED_RECEIPT,
        "settled for a payment unknown",
        lambda line, _by: replace(
            line,
            order_no=UNKNOWN_ORDER,
            transaction_id=UNKNOWN_TRANSACTION,
            reference_no="",
            gross=UNKNOWN_GROSS,
            fee=_agreed(UNKNOWN_GROSS),
            net=UNKNOWN_GROSS - _agreed(UNKNOWN_GROSS),
        ),
    ),
)


def _plants(lines: Sequence[SettlementLine], *, rng: Random) -> list[PlantedDiscrepancy]:
    """One of each kind, on captures that nothing else happened to that day; fewer without them."""
    times = Counter(line.transaction_id for line in lines)
    captures = [
        line for line in lines if line.entry_type == "capture" and times[line.transaction_id] == 1
    ]
    chosen = rng.sample(captures, min(len(_PLANTS), len(captures)))
    planted = []
    for (code, why, shown), line in zip(_PLANTS, chosen, strict=False):
        true = None if code is BreakCode.UNEXPECTED_RECEIPT else line
        by = rng.randint(STEP_MIN, STEP_MAX)
        planted.append(PlantedDiscrepancy(code, why, true, shown(line, by)))
    return planted


def answer_key(settlement: Settlement) -> list[dict[str, Any]]:
    """Every planted discrepancy, amounts as text."""
    return [
        {"code": fault.code.value, "why": fault.why}
        | {"true": _as_table(fault.true), "shown": _as_table(fault.shown)}
        for fault in settlement.planted
    ]


def _as_table(line: SettlementLine | None) -> dict[str, str] | None:
    if line is None:
        return None
    return dict(zip(columns_of(SettlementLine), cells_of(line), strict=True))


def paid_batches(
    effects: Iterable[Effect], *, account_id: str, day: date, unmentioned: Collection[str]
) -> tuple[list[SettlementLine], list[Planted]]:
    """The batches of the days before `day`, one a day and currency, and what is held back of them.

    Args:
        effects: the truth.
        account_id: whose batches.
        day: the business date; its own batch is that of `settlement_of`.
        unmentioned: transactions that no batch here has: what was refunded in part, and by how
            much no query shows, stays as unknown as it was.

    Returns:
        Settlement lines, each day's pay-out rows behind its lines.
    """
    calendar = BusinessCalendar.of()
    first = day - timedelta(days=DAYS_BEFORE)
    opens = calendar.closes_at(first - timedelta(days=1)).timestamp()
    closes = calendar.closes_at(day - timedelta(days=1)).timestamp()
    mine = [
        of_one_currency(effect, day=calendar.business_date_of(instant_of(effect)))
        for effect in effects
        if effect.account_id == account_id
        and effect.operation in SETTLED
        and effect.operation != PAYOUT
        and effect.transaction_id not in unmentioned
        and opens <= effect.committed_at < closes
    ]
    mine.sort(key=attrgetter("settled_on"))
    lines: list[SettlementLine] = []
    held: list[Planted] = []
    for settled_on, group in groupby(mine, key=attrgetter("settled_on")):
        batch = list(group)
        batch += _reserves(batch, before=lines)
        payouts = pay_outs_of(batch)
        for number, payout in enumerate(payouts):
            # Long enough ago to be asked for, and large enough.
            late = settled_on <= str(first + timedelta(days=1))
            large = payout.currency == HELD_CURRENCY and payout.net > 2 * HELD_MINOR_UNITS
            if late and large and not held:
                gross, net = payout.gross - HELD_MINOR_UNITS, payout.net - HELD_MINOR_UNITS
                payouts[number] = replace(payout, gross=gross, net=net)
                about = (payout.batch_id, payout.currency)
                held.append(Planted(BreakCode.HELD_BACK, "", *about, HELD_MINOR_UNITS))
        lines += [*batch, *payouts]
    return lines, held


def _reserves(
    batch: Sequence[SettlementLine], *, before: Sequence[SettlementLine]
) -> Iterator[SettlementLine]:
    """A line of what is kept back of a batch that is large enough, once a currency."""
    reserved = {line.currency for line in before if line.entry_type == EntryType.RESERVE}
    for currency in RESERVE_CURRENCIES:
        mine = [line for line in batch if line.currency == currency]
        enough = sum(line.net for line in mine) > LEAST_OF_RESERVE
        if enough and currency not in reserved:
            yield _of_no_payment(mine[0], EntryType.RESERVE, gross=-RESERVE_MINOR_UNITS, fee=0)
