"""What the books have of the gateway's batches and of what arrived at the bank.

Written from the truth outwards: every pay-out, fee and reserve of a batch and every arrival is
booked, but for what is planted, each once and only where the gateway had the time to be booked.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.model.words import REVERSAL_SUFFIX, BreakCode, EntryType, Flag
from recon.sandbox.pages.bank_book import Arrival, BankMonth
from recon.sandbox.pages.planted_settlement import PAYOUT
from recon.sandbox.pages.planted_statements import LEAST_PLANTED
from recon.sandbox.world.records import BOOKING_GRACE, LedgerLine, SettlementLine

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


@dataclass(frozen=True, slots=True)
class PlantedInBooks:
    """What must be found of one group of the books; minor units."""

    code: BreakCode
    why: str
    key: str
    """Of the group, as rules.md has it."""
    currency: str
    effect: int
    """What is true less what the books have, as the books sign it."""


@dataclass(frozen=True, slots=True)
class PlantedBooks:
    """The entries, and what is planted into them."""

    entries: tuple[LedgerLine, ...]
    planted: tuple[PlantedInBooks, ...]


def books_of(
    lines: Sequence[SettlementLine],
    *,
    month: BankMonth,
    charges: Sequence[LedgerLine],
    day: date,
) -> PlantedBooks:
    """What the books have of batches before a business date.

    Args:
        lines: the settlement lines of these batches with their pay-out rows.
        month: what arrived at the banks.
        charges: entries of fees that name no batch.
        day: the business date.
    """
    entries = [*_of_batches(lines), *_of_arrivals(month.arrived, lines=lines)]
    calm, used = _calm_batches(month), set[str]()
    planted = [*_unassigned(charges, lines=lines)]
    for plant in _PLANTS:
        fitting = (
            entry
            for entry in entries
            if plant.fits(entry, calm=calm) and _key(entry) not in used and _is_late(entry, day=day)
        )
        chosen = next(fitting, None)
        if chosen is not None:
            used.add(_key(chosen))
            instead = plant.instead(chosen)
            at = entries.index(chosen)
            entries[at : at + 1] = [instead] if instead else []
            planted.append(_found(plant, chosen, instead))
    for entry in _never_paid(lines, day=day):
        entries.append(entry)
        why = "a pay-out was booked that the gateway never made"
        code, key = BreakCode.LEDGER_PAYOUT_ONLY, f"{entry.entry_type}:{entry.currency}"
        planted.append(PlantedInBooks(code, why, key, entry.currency, entry.amount))
    return PlantedBooks(tuple(entries), tuple(planted))


def books_key(books: PlantedBooks) -> list[dict[str, str]]:
    """The answer key, amounts as text."""
    return [
        {
            "code": planted.code.value,
            "key": planted.key,
            "currency": planted.currency,
            "effect_ledger": format_minor_units(planted.effect, currency=planted.currency),
            "why": planted.why,
        }
        for planted in books.planted
    ]


@dataclass(frozen=True, slots=True)
class _Plant:
    """What happens to the first entry of a kind and currency that fits."""

    code: BreakCode
    kind: EntryType
    currency: str
    more: int | None
    """Minor units that are booked too much; None: nothing is booked."""
    why: str

    def fits(self, entry: LedgerLine, *, calm: Collection[str]) -> bool:
        """An entry large enough to be asked for, of which no bank says anything else."""
        least = 1 if self.kind == EntryType.FEE else LEAST_PLANTED
        same = entry.entry_type == self.kind and entry.currency == self.currency
        alone = self.kind not in _IN_ONE_BREAK or entry.reference_no in calm
        return same and alone and entry.amount >= least

    def instead(self, entry: LedgerLine) -> LedgerLine | None:
        """What the books have instead."""
        return None if self.more is None else replace(entry, amount=entry.amount + self.more)


_IN_ONE_BREAK = frozenset({EntryType.PAYOUT, EntryType.BANK})
"""Kinds whose break is that of the pay-out, whatever the bank says of it."""
_PLANTS = (
    _Plant(BreakCode.FEE_NOT_BOOKED, EntryType.FEE, "EUR", None, "the fee of a batch is forgotten"),
    _Plant(BreakCode.FEE_BOOKED_DIFFERS, EntryType.FEE, "EUR", OTHER_FEE, "another fee was booked"),
    _Plant(
        BreakCode.RESERVE_NOT_BOOKED, EntryType.RESERVE, "GBP", None, "kept back, and not booked"
    ),
    _Plant(
        BreakCode.RESERVE_BOOKED_DIFFERS,
        EntryType.RESERVE,
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
_WORDS = {EntryType.FEE.value: "fees", EntryType.RESERVE.value: "reserves"}
"""First word of the key of a group; a pay-out and its arrival share theirs."""


def _key(entry: LedgerLine) -> str:
    """Of the group in which an entry stands; reserves are one balance."""
    word = f"{_WORDS.get(entry.entry_type, 'payout')}:{entry.currency}"
    return word if entry.entry_type == EntryType.RESERVE else f"{word}:{entry.reference_no}"


def _found(plant: _Plant, true: LedgerLine, shown: LedgerLine | None) -> PlantedInBooks:
    missing = true.amount - (shown.amount if shown else 0)
    # Of the bank what comes in is positive; what the gateway keeps or pays out is below 0.
    effect = missing if plant.kind == EntryType.BANK else -missing
    return PlantedInBooks(plant.code, plant.why, _key(true), true.currency, effect)


def _unassigned(
    charges: Sequence[LedgerLine], *, lines: Sequence[SettlementLine]
) -> Iterator[PlantedInBooks]:
    """Charges of a month that no batch has: booked, and never taken."""
    if charges and lines:
        currency = charges[0].currency
        why = "monthly charges were booked that no batch has"
        key = f"fees:{currency}:{UNASSIGNED}"
        effect = sum(entry.amount for entry in charges)
        yield PlantedInBooks(BreakCode.FEE_BOOKED_DIFFERS, why, key, currency, effect)


def _never_paid(lines: Sequence[SettlementLine], *, day: date) -> Iterator[LedgerLine]:
    """A pay-out in a currency that no batch has: in another one it stands with what is young.

    It is booked with the newest that is late: what is booked in the first days of a settlement may
    be of a batch from before.
    """
    if NEVER_PAID in {line.currency for line in lines}:
        return
    payouts = (
        _entry(
            replace(line, batch_id="", currency=NEVER_PAID),
            kind=EntryType.PAYOUT.value,
            amount=NEVER_PAID_MINOR_UNITS,
        )
        for line in lines
        if line.entry_type == PAYOUT
    )
    late = [entry for entry in payouts if _is_late(entry, day=day)]
    if late:
        newest = max(late, key=lambda entry: entry.booked_at)
        yield replace(newest, entry_id=f"LPO-{NEVER_PAID}")


def _calm_batches(month: BankMonth) -> set[str]:
    """Batches that arrived whole, once and alone: their break is one of the books only."""
    troubled = {
        planted.batch_id
        for planted in month.planted
        if planted.code is not None or planted.flag == Flag.JOINED
    }
    return {arrival.batch_id for arrival in month.arrived} - troubled


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
        reserve = line.entry_type == EntryType.RESERVE
        if reserve:
            yield _entry(line, kind=EntryType.RESERVE, amount=-line.gross)
        elif line.entry_type == PAYOUT:
            paid = EntryType.PAYOUT.value + (REVERSAL_SUFFIX if line.net < 0 else "")
            for kind, amount in ((paid, abs(line.net)), (EntryType.FEE.value, line.fee)):
                if amount:
                    yield _entry(line, kind=kind, amount=amount)


_SHORT = {EntryType.FEE.value: "LFB", EntryType.RESERVE.value: "LRS"}
"""First letters of the entries of a batch; a pay-out has LPO."""


def _entry(line: SettlementLine, *, kind: str, amount: int) -> LedgerLine:
    settled = date.fromisoformat(line.settled_on)
    return LedgerLine(
        entry_id=f"{_SHORT.get(kind, 'LPO')}-{line.batch_id}",
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
