"""One account of the merchant at a bank, day by day: entries, statements, what is on its way."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from random import Random
from typing import Any

from recon.model.business_date import BusinessCalendar
from recon.model.words import BreakCode, Flag
from recon.sandbox.pages.planted_settlement import SettlementLine

PAYER = "Gateway Settlements Ltd"
"""Whose name stands on what the gateway pays out."""
OPENING = 2_500_000
"""Minor units on each account before the first statement."""
FIRST_NUMBER = 201
"""Of the first statement of each bank."""
STRANGERS = (
    ("Harbour Property Management", "Rent November, contract 77-1204"),
    ("Maria Lindqvist", "Salary, personal"),
    ("Brightside Stationery", "Invoice 20261104-7, thank you"),
    ("City Tax Office", "VAT Q3 reference 88/1204/99"),
)
"""Other people on the same accounts; nothing of them but the amount may be kept."""


@dataclass(frozen=True, slots=True)
class SandboxBank:
    """One account of the merchant at a bank."""

    name: str
    iban: str
    currency: str


BANKS = (
    SandboxBank("main", "DE89370400440532013000", "EUR"),
    SandboxBank("pounds", "GB29NWBK60161331926819", "GBP"),
    SandboxBank("usd", "NL91ABNA0417164300", "USD"),
)
"""In the order of their names, as a bank is chosen for a currency that none has."""


@dataclass(frozen=True, slots=True)
class LastStatement:
    """Where the next statement of a bank goes on."""

    number: int
    closing: int


BEFORE_THE_FIRST = LastStatement(FIRST_NUMBER - 1, OPENING)


@dataclass(frozen=True, slots=True)
class BankEntry:
    """One entry as the bank books it; minor units, what came in is positive."""

    day: date
    amount: int
    party: str
    text: str
    number: str = ""
    charges: int = 0
    ordered: tuple[str, int] | None = None
    """Currency and amount that the payer ordered, where the bank exchanged it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One business day of one account."""

    number: int
    day: date
    opening: int
    closing: int
    entries: tuple[BankEntry, ...]
    created: str
    """When the bank wrote it; a later one corrects."""


@dataclass(frozen=True, slots=True)
class PlantedAtBank:
    """What must be found of a pay-out, or of an entry that nobody expects."""

    code: BreakCode | None
    """None: it matches, with this flag."""
    why: str
    batch_id: str
    currency: str
    effect: int
    flag: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What arrived of a batch, in the currency in which it was paid out."""

    batch_id: str
    currency: str
    day: date
    amount: int


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """What a bank books on a later day than its last statement tells of."""

    bank: str
    entry: BankEntry
    arrival: Arrival | None


@dataclass(slots=True)
class BankMonth:
    """What every bank has, and what was planted."""

    statements: dict[str, tuple[Statement, ...]] = field(default_factory=dict)
    """Name of the bank -> its statements, one a business day."""
    planted: list[PlantedAtBank] = field(default_factory=list)
    arrived: list[Arrival] = field(default_factory=list)
    """But for what was exchanged without a word of what was ordered."""
    coming: list[OnItsWay] = field(default_factory=list)


def currencies_of(bank: SandboxBank, payouts: Sequence[SettlementLine]) -> list[str]:
    """Its own, and of the first bank those that none has: it exchanges them."""
    own = {each.currency for each in BANKS}
    others = sorted({line.currency for line in payouts} - own) if bank is BANKS[0] else []
    return [bank.currency, *others]


class BankBook:
    """One account while its entries are made."""

    def __init__(self, bank: SandboxBank, *, days: Sequence[date], month: BankMonth) -> None:
        self.bank = bank
        self.planted = month.planted
        self.month = month
        self.entries: list[BankEntry] = []
        self._calendar = BusinessCalendar.of()
        self.days = days

    def later(self, line: SettlementLine, steps: int) -> date:
        """So many business days after a batch was settled."""
        return self._calendar.business_day_after(date.fromisoformat(line.settled_on), days=steps)

    def has(self, day: date) -> bool:
        """Whether a statement tells of this day, or of a later one."""
        return bool(self.days) and day <= self.days[-1]

    def came(self, line: SettlementLine, amount: int, *, after: int = 1, **cells: Any) -> None:
        """The bank books it; what comes behind the last statement is in transit."""
        words = {"party": PAYER, "text": f"Settlement {line.batch_id}", **cells}
        entry = BankEntry(self.later(line, after), amount, **words)
        arrival = None
        if line.currency == self.bank.currency:
            arrival = Arrival(line.batch_id, line.currency, entry.day, amount)
        elif entry.ordered is not None:
            arrival = Arrival(line.batch_id, line.currency, entry.day, entry.ordered[1])
        self.enter(OnItsWay(self.bank.name, entry, arrival))

    def enter(self, each: OnItsWay) -> None:
        """Onto the statement of its day, or it is on its way still."""
        if not self.has(each.entry.day):
            self.month.coming.append(each)
            return
        self.entries.append(each.entry)
        if each.arrival is not None:
            self.month.arrived.append(each.arrival)

    def note(
        self, line: SettlementLine, code: BreakCode, effect: int, *, why: str, currency: str = ""
    ) -> None:
        """What must be found of a pay-out; its effect is in its own currency unless another is."""
        of = currency or line.currency
        self.planted.append(PlantedAtBank(code, why, line.batch_id, of, effect))

    def calm(self, line: SettlementLine, flag: Flag, *, why: str) -> None:
        """What matches, with a flag, when it has come."""
        self.planted.append(
            PlantedAtBank(None, why, line.batch_id, line.currency, 0, flag=flag.value)
        )

    def statements(
        self, chance: Random, *, after: LastStatement = BEFORE_THE_FIRST
    ) -> tuple[Statement, ...]:
        """One a business day, with other people's entries among ours."""
        statements: list[Statement] = []
        balance = after.closing
        for number, day in enumerate(self.days, start=after.number + 1):
            mine = [entry for entry in self.entries if entry.day == day]
            for party, text in chance.sample(STRANGERS, chance.randrange(len(STRANGERS))):
                mine.append(BankEntry(day, -chance.randrange(1_000, 90_000), party, text))
            chance.shuffle(mine)
            entries = tuple(
                replace(entry, number=f"{day:%y%m%d}{position:04}")
                for position, entry in enumerate(mine, start=1)
            )
            closing = balance + sum(entry.amount for entry in entries)
            created = f"{day}T22:00:00"
            statements.append(Statement(number, day, balance, closing, entries, created))
            balance = closing
        return tuple(statements)
