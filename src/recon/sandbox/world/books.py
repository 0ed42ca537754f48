"""What the books have of the gateway's batches and of what arrived at the bank.

Every pay-out, fee and reserve of a batch and every arrival is booked, but for what is planted, each
once and only where the gateway had the time to be booked.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from recon.model.business_date import BusinessCalendar
from recon.model.words import REVERSAL_SUFFIX, BreakCode, EntryType, Flag
from recon.sandbox.world.banks import LEAST_PLANTED, Arrival, BankMonth
from recon.sandbox.world.records import BOOKING_GRACE, LedgerLine, Planted, SettlementLine
from recon.sandbox.world.settlement import PAYOUT

BOOKED_AT = time(9, tzinfo=UTC)
"""When the books have a batch, on the day after it was settled."""
ARRIVAL_BOOKED_AT = time(17, tzinfo=UTC)
"""When the books have what arrived, on its day."""
OTHER_FEE, OTHER_PAYOUT, OTHER_RESERVE = 300, 450, 200
"""Minor units by which an entry differs where that is planted."""
NEVER_PAID, NEVER_PAID_MINOR_UNITS = "CHF", 45_000
"""A pay-out that only the books have."""
UNASSIGNED = "unassigned"
"""What the books name no batch of."""


class _Plant(NamedTuple):
    """What happens to the first entry of a kind and currency that fits."""

    code: BreakCode
    kind: EntryType
    currency: str
    more: int | None
    """Minor units that are booked too much; None: nothing is booked."""
    why: str


_FEE, _RESERVE = EntryType.FEE, EntryType.RESERVE
_PLANTS = (
    _Plant(BreakCode.FEE_NOT_BOOKED, _FEE, "EUR", None, "the fee of a batch is forgotten"),
    _Plant(BreakCode.FEE_BOOKED_DIFFERS, _FEE, "EUR", OTHER_FEE, "another fee was booked"),
    _Plant(BreakCode.RESERVE_NOT_BOOKED, _RESERVE, "GBP", None, "kept back, and not booked"),
    _Plant(
        BreakCode.RESERVE_BOOKED_DIFFERS,
        _RESERVE,
        "EUR",
        OTHER_RESERVE,
        "another reserve was booked",
    ),
    _Plant(BreakCode.PAYOUT_NOT_BOOKED, EntryType.PAYOUT, "GBP", None, "the pay-out is forgotten"),
    _Plant(
        BreakCode.PAYOUT_AMOUNT_MISMATCH,
        EntryType.PAYOUT,
        "USD",
        OTHER_PAYOUT,
        "another pay-out was booked",
    ),
    _Plant(BreakCode.BANK_NOT_BOOKED, EntryType.BANK, "GBP", None, "arrived, and not booked"),
)


def books_of(
    lines: Sequence[SettlementLine],
    *,
    month: BankMonth,
    charges: Sequence[LedgerLine],
    day: date,
) -> tuple[list[LedgerLine], list[Planted]]:
    """What the books have of batches before a business date, and what is planted into them.

    Args:
        lines: the settlement lines of these batches with their pay-out rows.
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
    for plant in _PLANTS:
        chosen = next(
            (
                entry
                for entry in entries
                if (entry.entry_type, entry.currency) == (plant.kind, plant.currency)
                and entry.amount >= (1 if plant.kind is _FEE else LEAST_PLANTED)
                and (plant.kind in {_FEE, _RESERVE} or entry.reference_no in calm)
                and _key(entry) not in used
                and _is_late(entry, day=day)
            ),
            None,
        )
        if chosen is None:
            continue
        used.add(_key(chosen))
        at, more = entries.index(chosen), plant.more
        entries[at : at + 1] = (
            [] if more is None else [replace(chosen, amount=chosen.amount + more)]
        )
        missing = chosen.amount if more is None else -more
        # Of the bank what comes in is positive; what the gateway keeps or pays out is below 0.
        effect = missing if plant.kind is EntryType.BANK else -missing
        about = (_key(chosen), chosen.currency)
        planted.append(Planted(plant.code, plant.why, *about, effect))
    if never := _never_paid(lines, day=day):
        entries.append(never)
        why, key = "a pay-out was booked that the gateway never made", f"payout:{never.currency}"
        code = BreakCode.LEDGER_PAYOUT_ONLY
        planted.append(Planted(code, why, key, never.currency, never.amount))
    return entries, planted


def _key(entry: LedgerLine) -> str:
    """Of the group in which an entry stands; reserves are one balance."""
    words = {EntryType.FEE.value: "fees", EntryType.RESERVE.value: "reserves"}
    word = f"{words.get(entry.entry_type, 'payout')}:{entry.currency}"
    return word if entry.entry_type == EntryType.RESERVE else f"{word}:{entry.reference_no}"


def _never_paid(lines: Sequence[SettlementLine], *, day: date) -> LedgerLine | None:
    """A pay-out in a currency that no batch has: in another one it stands with what is young.

    It is booked with the newest that is late: what is booked in the first days of a settlement may
    be of a batch from before.
    """
    kind, amount = EntryType.PAYOUT.value, NEVER_PAID_MINOR_UNITS
    payouts = (
        _entry(replace(line, batch_id="", currency=NEVER_PAID), kind=kind, amount=amount)
        for line in lines
        if line.entry_type == PAYOUT
    )
    late = [entry for entry in payouts if _is_late(entry, day=day)]
    if not late or NEVER_PAID in {line.currency for line in lines}:
        return None
    return replace(max(late, key=lambda entry: entry.booked_at), entry_id=f"LPO-{NEVER_PAID}")


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
        lines: settlement lines with their pay-out rows, to be booked now.
        arrived: what came to the bank, to be booked now.
        paid: the pay-out rows of what arrived.
    """
    for entry in (*_of_batches(lines), *_of_arrivals(arrived, lines=paid)):
        day = f"{entry.booked_at:%y%m%d}"
        yield replace(entry, entry_id=f"{entry.entry_id}-{entry.currency}-{day}")


def _of_batches(lines: Iterable[SettlementLine]) -> Iterator[LedgerLine]:
    """An entry for each pay-out and each reserve, and one for the fees of each batch."""
    for line in lines:
        if line.entry_type == EntryType.RESERVE:
            yield _entry(line, kind=EntryType.RESERVE, amount=-line.gross)
        elif line.entry_type == PAYOUT:
            paid = EntryType.PAYOUT.value + (REVERSAL_SUFFIX if line.net < 0 else "")
            for kind, amount in ((paid, abs(line.net)), (EntryType.FEE.value, line.fee)):
                if amount:
                    yield _entry(line, kind=kind, amount=amount)


def _entry(line: SettlementLine, *, kind: str, amount: int) -> LedgerLine:
    settled = date.fromisoformat(line.settled_on)
    prefix = {EntryType.FEE.value: "LFB", EntryType.RESERVE.value: "LRS"}.get(kind, "LPO")
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
    """An entry for each arrival of these batches, in the currency of the pay-out."""
    rows = [line for line in lines if line.entry_type == PAYOUT]
    of_batch = {(line.batch_id, line.currency): line for line in rows}
    for number, arrival in enumerate(arrivals, start=1):
        line = of_batch.get((arrival.batch_id, arrival.currency))
        if line is not None:
            back = REVERSAL_SUFFIX if arrival.amount < 0 else ""
            yield replace(
                _entry(line, kind=EntryType.BANK.value + back, amount=abs(arrival.amount)),
                entry_id=f"LBK-{number}-{line.batch_id}",
                booked_at=datetime.combine(arrival.day, ARRIVAL_BOOKED_AT),
            )
