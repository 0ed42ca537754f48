"""The gateway's batches: what was settled, what is paid out of it, and what the books have of both.

First what was settled, then what the file says of it, so that every planted discrepancy is known.
The fee is the sandbox's own choice. Earlier batches are true but for what is planted: one is paid
out less a part that is held back, and of the first batches in some currencies a reserve is kept.
Every payout, fee and reserve of a batch and every arrival is booked, but for what is planted
(`stories.toml`), each once and only where the gateway had the time to be booked.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import Any

from recon.model.business_date import BusinessCalendar
from recon.model.words import REVERSAL_SUFFIX, BreakCode, EntryType, Flag
from recon.sandbox.book import Effect, ids_of
from recon.sandbox.world.banks import LEAST_PLANTED, Arrival, BankMonth
from recon.sandbox.world.records import (
    BOOKING_GRACE,
    DAYS_BEFORE,
    PAYOUT,
    STORIES,
    LedgerLine,
    Planted,
    SettlementLine,
    cells_of,
    columns_of,
    instant_of,
)

FEE_BASIS_POINTS = 140
FEE_FIXED_MINOR_UNITS = 25
SETTLED = {"capture": 1, "refund": -1, "chargeback": -1, PAYOUT: -1}
"""What a settlement is made of, and the sign of its gross amount."""
STEPS = (100, 400)
"""Minor units by which a planted amount differs."""
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
    """The lines of the file, its payout rows last, and what was planted into them."""

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
    settled = _settled_between(effects, day, day, account_id=account_id)
    true = [_line(effect, day=day) for effect in settled]
    free = [line for line in true if line.order_no not in spared]
    planted = _plants(free, rng=Random(f"settlement {seed} {day}"))
    shown_as = {fault.true: fault.shown for fault in planted if fault.true is not None}
    added = [fault.shown for fault in planted if fault.true is None]
    all_shown = (*(shown_as.get(line, line) for line in true), *added)
    shown = [line for line in all_shown if line is not None]
    return Settlement((*shown, *pay_outs_of(shown)), (*true, *pay_outs_of(true)), tuple(planted))


def _settled_between(
    effects: Iterable[Effect], first: date, last: date, *, account_id: str
) -> Iterator[Effect]:
    """What an account's settlements of these business dates are made of."""
    calendar = BusinessCalendar.of()
    opens = calendar.closes_at(first - timedelta(days=1)).timestamp()
    closes = calendar.closes_at(last).timestamp()
    for effect in effects:
        own = effect.account_id == account_id and effect.operation in SETTLED
        if own and opens <= effect.committed_at < closes:
            yield effect


def _line(effect: Effect, *, day: date) -> SettlementLine:
    """What a settlement of `day` says of one effect."""
    amount = effect.amount or 0
    gross = SETTLED[effect.operation] * amount
    agreed = amount * FEE_BASIS_POINTS // 10_000 + FEE_FIXED_MINOR_UNITS
    fee = agreed if gross > 0 else 0
    return SettlementLine(
        **ids_of(effect),
        batch_id=f"S{day:%Y%m%d}",
        settled_on=day.isoformat(),
        entry_type=effect.operation,
        reference_no=effect.refund_reference_id,
        gross=gross,
        fee=fee,
        net=gross - fee,
        own_reference=effect.refund_reference or effect.request_id,
    )


def of_one_currency(effect: Effect, *, day: date) -> SettlementLine:
    """The line in a batch of its currency alone: a bank that names it names one payout."""
    line = _line(effect, day=day)
    return replace(line, batch_id=f"{line.batch_id}-{line.currency}")


def pay_outs_of(lines: Sequence[SettlementLine]) -> list[SettlementLine]:
    """One row for each currency, in their order: what the lines of a day come to."""
    rows: list[SettlementLine] = []
    for currency in sorted({line.currency for line in lines}):
        mine = [line for line in lines if line.currency == currency]
        gross, fee = sum(line.gross for line in mine), sum(line.fee for line in mine)
        rows.append(_of_no_payment(mine[0], PAYOUT, gross=gross, fee=fee))
    return rows


def _of_no_payment(line: SettlementLine, kind: str, *, gross: int, fee: int = 0) -> SettlementLine:
    """A line of the same batch that names no payment."""
    line = replace(line, entry_type=kind, gross=gross, fee=fee, net=gross - fee)
    return replace(line, order_no="", transaction_id="", reference_no="", own_reference="")


def _plants(lines: Sequence[SettlementLine], *, rng: Random) -> list[PlantedDiscrepancy]:
    """One of each kind, on captures that nothing else happened to that day; fewer without them."""
    times = Counter(line.transaction_id for line in lines)
    captures = [
        line for line in lines if line.entry_type == "capture" and times[line.transaction_id] == 1
    ]
    plants = STORIES["settlement"]
    chosen = rng.sample(captures, min(len(plants), len(captures)))
    planted = []
    for plant, line in zip(plants, chosen, strict=False):
        step = rng.randint(*STEPS)
        steps = {"a step more": step, "a step less": -step}
        cells = {
            name: getattr(line, name) + steps[cell] if cell in steps else cell
            for name, cell in plant.get("shown", {}).items()
        }
        code = BreakCode(plant["finding"])
        true = None if code is BreakCode.UNEXPECTED_RECEIPT else line
        shown = replace(line, **cells) if cells else None
        planted.append(PlantedDiscrepancy(code, plant["why"], true, shown))
    return planted


def settlement_key(settlement: Settlement) -> list[dict[str, Any]]:
    """Every planted discrepancy of a settlement, amounts as text."""

    def table(line: SettlementLine | None) -> dict[str, str] | None:
        return dict(zip(columns_of(SettlementLine), cells_of(line), strict=True)) if line else None

    return [
        {
            "code": fault.code.value,
            "why": fault.why,
            "true": table(fault.true),
            "shown": table(fault.shown),
        }
        for fault in settlement.planted
    ]


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
        Settlement lines, each day's payout rows behind its lines.
    """
    calendar, first = BusinessCalendar.of(), day - timedelta(days=DAYS_BEFORE)
    mine = [
        of_one_currency(effect, day=calendar.business_date_of(instant_of(effect)))
        for effect in _settled_between(
            effects, first, day - timedelta(days=1), account_id=account_id
        )
        if effect.operation != PAYOUT and effect.transaction_id not in unmentioned
    ]
    mine.sort(key=attrgetter("settled_on"))
    lines: list[SettlementLine] = []
    held: list[Planted] = []
    reserved: set[str] = set()
    for settled_on, group in groupby(mine, key=attrgetter("settled_on")):
        batch = list(group)
        for currency in RESERVE_CURRENCIES:
            own = [line for line in batch if line.currency == currency]
            if currency not in reserved and sum(line.net for line in own) > LEAST_OF_RESERVE:
                reserved.add(currency)
                kept = _of_no_payment(own[0], EntryType.RESERVE, gross=-RESERVE_MINOR_UNITS)
                batch.append(kept)
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


BOOKED_AT = time(9, tzinfo=UTC)
"""When the books have a batch, on the day after it was settled."""
ARRIVAL_BOOKED_AT = time(17, tzinfo=UTC)
"""When the books have what arrived, on its day."""
NEVER_PAID, NEVER_PAID_MINOR_UNITS = "CHF", 45_000
"""A payout that only the books have."""
UNASSIGNED = "unassigned"
"""What the books name no batch of."""
_FEE, _RESERVE, _BANK = EntryType.FEE.value, EntryType.RESERVE.value, EntryType.BANK.value


def books_of(
    lines: Sequence[SettlementLine],
    *,
    month: BankMonth,
    charges: Sequence[LedgerLine],
    day: date,
) -> tuple[list[LedgerLine], list[Planted]]:
    """What the books have of batches before a business date, and what is planted into them.

    Args:
        lines: the settlement lines of these batches with their payout rows.
        month: what arrived at the banks.
        charges: entries of fees that name no batch.
        day: the business date.
    """
    entries = [*_of_batches(lines), *_of_arrivals(month.arrived, lines=lines)]
    planted: list[Planted] = []
    if charges and lines:
        why, currency = "monthly charges were booked that no batch has", charges[0].currency
        key, effect = f"fees:{currency}:{UNASSIGNED}", sum(entry.amount for entry in charges)
        planted.append(Planted(BreakCode.FEE_BOOKED_DIFFERS, why, key, currency, effect))
    # Batches that arrived whole, once and alone: their break is one of the books only.
    troubled = {
        each.about for each in month.planted if each.is_break or each.finding == Flag.JOINED
    }
    calm = {arrival.batch_id for arrival in month.arrived} - troubled
    used: set[str] = set()
    for plant in STORIES["books"]:
        kind, more = plant["kind"], plant.get("more")
        fitting = (
            entry
            for entry in entries
            if (entry.entry_type, entry.currency) == (kind, plant["currency"])
            and entry.amount >= (1 if kind == _FEE else LEAST_PLANTED)
            and (kind in {_FEE, _RESERVE} or entry.reference_no in calm)
            and _key(entry) not in used
            and _is_late(entry, day=day)
        )
        chosen = next(fitting, None)
        if chosen is None:
            continue
        used.add(_key(chosen))
        at = entries.index(chosen)
        booked = [] if more is None else [replace(chosen, amount=chosen.amount + more)]
        entries[at : at + 1] = booked
        missing = chosen.amount if more is None else -more
        # Of the bank what comes in is positive; what the gateway keeps or pays out is below 0.
        effect = missing if kind == _BANK else -missing
        about = (_key(chosen), chosen.currency)
        planted.append(Planted(BreakCode(plant["finding"]), plant["why"], *about, effect))
    # A payout in a currency that no batch has: in another one it stands with what is young. It is
    # booked with the newest that is late: what is booked in the first days of a settlement may be
    # of a batch from before.
    payouts = (
        _entry(replace(line, batch_id="", currency=NEVER_PAID), PAYOUT, NEVER_PAID_MINOR_UNITS)
        for line in lines
        if line.entry_type == PAYOUT
    )
    late = [entry for entry in payouts if _is_late(entry, day=day)]
    if late and NEVER_PAID not in {line.currency for line in lines}:
        never = max(late, key=attrgetter("booked_at"))
        entries.append(replace(never, entry_id=f"LPO-{NEVER_PAID}"))
        why, key = "a payout was booked that the gateway never made", f"payout:{NEVER_PAID}"
        code = BreakCode.LEDGER_PAYOUT_ONLY
        planted.append(Planted(code, why, key, NEVER_PAID, NEVER_PAID_MINOR_UNITS))
    return entries, planted


def _key(entry: LedgerLine) -> str:
    """Of the group in which an entry stands; reserves are one balance."""
    if entry.entry_type == _RESERVE:
        return f"reserves:{entry.currency}"
    word = "fees" if entry.entry_type == _FEE else "payout"
    return f"{word}:{entry.currency}:{entry.reference_no}"


def _is_late(entry: LedgerLine, *, day: date) -> bool:
    """Whether nobody would wait for it any more; it was to be booked by then."""
    calendar = BusinessCalendar.of()
    return calendar.due_at(entry.booked_at, grace=BOOKING_GRACE) <= calendar.closes_at(day)


def plain_books(
    lines: Sequence[SettlementLine],
    *,
    arrived: Sequence[Arrival],
    paid: Sequence[SettlementLine],
) -> Iterator[LedgerLine]:
    """What the books have of some batches and arrivals, each under a number of its own.

    Args:
        lines: settlement lines with their payout rows, to be booked now.
        arrived: what came to the bank, to be booked now.
        paid: the payout rows of what arrived.
    """
    for entry in (*_of_batches(lines), *_of_arrivals(arrived, lines=paid)):
        day = f"{entry.booked_at:%y%m%d}"
        yield replace(entry, entry_id=f"{entry.entry_id}-{entry.currency}-{day}")


def _of_batches(lines: Iterable[SettlementLine]) -> Iterator[LedgerLine]:
    """An entry for each payout and each reserve, and one for the fees of each batch."""
    for line in lines:
        if line.entry_type == _RESERVE:
            yield _entry(line, _RESERVE, -line.gross)
        elif line.entry_type == PAYOUT:
            paid = PAYOUT + (REVERSAL_SUFFIX if line.net < 0 else "")
            for kind, amount in ((paid, abs(line.net)), (_FEE, line.fee)):
                if amount:
                    yield _entry(line, kind, amount)


def _entry(line: SettlementLine, kind: str, amount: int) -> LedgerLine:
    settled = date.fromisoformat(line.settled_on)
    prefix = {_FEE: "LFB", _RESERVE: "LRS"}.get(kind, "LPO")
    return LedgerLine(
        entry_id=f"{prefix}-{line.batch_id}",
        merchant_id=line.merchant_id,
        account_id=line.account_id,
        order_no="",
        entry_type=kind,
        currency=line.currency,
        amount=amount,
        booked_at=datetime.combine(settled + timedelta(days=1), BOOKED_AT),
        reference_no=line.batch_id,
    )


def _of_arrivals(
    arrivals: Iterable[Arrival], *, lines: Sequence[SettlementLine]
) -> Iterator[LedgerLine]:
    """An entry for each arrival of these batches, in the currency of the payout."""
    rows = [line for line in lines if line.entry_type == PAYOUT]
    of_batch = {(line.batch_id, line.currency): line for line in rows}
    for number, arrival in enumerate(arrivals, start=1):
        line = of_batch.get((arrival.batch_id, arrival.currency))
        if line is not None:
            back = REVERSAL_SUFFIX if arrival.amount < 0 else ""
            yield replace(
                _entry(line, _BANK + back, abs(arrival.amount)),
                entry_id=f"LBK-{number}-{line.batch_id}",
                booked_at=datetime.combine(arrival.day, ARRIVAL_BOOKED_AT),
            )
