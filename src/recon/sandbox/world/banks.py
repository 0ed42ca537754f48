"""The merchant's banks: what arrived of every payout, what is planted into it, and the statements.

First what the gateway paid out, then what each bank booked of it, one to three business days later,
so that every planted discrepancy (`stories.toml`) is known. A payout goes to the bank of its
currency; without one to the first, which exchanges it. Statements are written as banks write them
(camt.053, MT940, CSV); MT940 has no field for charges and for what was ordered in another currency:
what needs one of them is told by the other two only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from random import Random
from typing import Any, NamedTuple

from recon.model.business_date import BusinessCalendar
from recon.model.money import exponent, format_minor_units
from recon.model.words import BreakCode, Flag
from recon.sandbox.wire import rendered
from recon.sandbox.world.records import (
    DAYS_BEFORE,
    STORIES,
    Planted,
    SettlementLine,
    csv_text,
    finding_of,
)

PAYER = "Gateway Settlements Ltd"
"""Whose name stands on what the gateway pays out."""
STRANGERS = (
    ("Harbour Property Management", "Rent November, contract 77-1204"),
    ("Maria Lindqvist", "Salary, personal"),
    ("Brightside Stationery", "Invoice 20261104-7, thank you"),
    ("City Tax Office", "VAT Q3 reference 88/1204/99"),
)
"""Other people on the same accounts; nothing of them but the amount may be kept."""
LEAST_PLANTED = 1_000
"""Minor units below which nothing is planted into a payout."""
UNKNOWN_AMOUNT = 7_710
RATES: Mapping[str, str] = {"JPY": "0.0061", "KWD": "2.97"}
"""What the first bank gives for a unit of a currency that no bank here has, in its own."""
DATED_RATES: Mapping[str, Mapping[str, str]] = {
    "JPY": {"2026-11-02": "0.0060", "2026-11-16": "0.0061"}
}
"""What the demo's rules say that a unit is worth, from that day on."""
BELOW_THE_RATE = 73
"""Minor units by which an exchange without a word is worse than the rate of its day."""
EXCHANGED_AFTER = 2
"""Business days until a payout arrives that the bank exchanges."""
OTHER_RATE = "0.9"
"""The same of every currency that only people pay in, beside the sandbox's own payments."""


class SandboxBank(NamedTuple):
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


LastStatements = Mapping[str, tuple[int, int]]
"""Where the next statement of each bank goes on: by its name number and closing of the last one."""
BEFORE_THE_FIRST = (200, 2_500_000)


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
    """What every bank has, and what was planted into payouts: breaks, and matches with a flag."""

    statements: dict[str, tuple[Statement, ...]] = field(default_factory=dict)
    """Name of the bank -> its statements, one a business day."""
    planted: list[Planted] = field(default_factory=list)
    arrived: list[Arrival] = field(default_factory=list)
    """But for what was exchanged without a word of what was ordered."""
    coming: list[OnItsWay] = field(default_factory=list)

    def last_statements(self) -> LastStatements:
        """Where the next statement of each bank goes on."""
        newest = {name: each[-1] for name, each in self.statements.items() if each}
        return {name: (last.number, last.closing) for name, last in newest.items()}


def bank_month(
    payouts: Sequence[SettlementLine],
    *,
    day: date,
    seed: int,
    since: date | None = None,
    coming: Sequence[OnItsWay] = (),
    last: LastStatements | None = None,
) -> BankMonth:
    """The statements of every bank up to a business date.

    Args:
        payouts: the payout rows of all batches, by day and currency.
        day: the business date; its statements have come.
        seed: of the sandbox.
        since: the business date of the last statements, from which the next ones go on; without
            one everything is planted, otherwise all arrives whole and with a word of it.
        coming: what was on its way then.
        last: the last statement of each bank.
    """
    month, calendar = BankMonth(), BusinessCalendar.of()
    first = since or day - timedelta(days=DAYS_BEFORE + 1)
    every = (first + timedelta(days=after) for after in range(1, (day - first).days + 1))
    days = [each for each in every if calendar.is_business_day(each)]
    abroad = sorted({line.currency for line in payouts} - {bank.currency for bank in BANKS})
    for bank in BANKS:
        book = _BankBook(bank, days=days, month=month)
        for each in coming:
            if each.bank == bank.name:
                book.enter(each)
        for currency in (bank.currency, *(abroad if bank is BANKS[0] else ())):
            stories = STORIES["banks"].get(currency, STORIES["banks"]["otherwise"])
            if since:
                stories = [{} if currency == bank.currency else {"tell": "exchanged"}]
            mine = [line for line in payouts if line.currency == currency and line.net]
            book.play(mine, stories=[_Story(**story) for story in stories])
        if not since and bank is BANKS[0] and payouts and days:
            # The gateway pays something that no batch comes to.
            entry = BankEntry(days[-1], UNKNOWN_AMOUNT, PAYER, "Goodwill, see our letter")
            book.entries.append(entry)
            code, why = BreakCode.BANK_RECEIPT_UNKNOWN, "the gateway paid what no batch comes to"
            month.planted.append(Planted(code, why, "", bank.currency, UNKNOWN_AMOUNT))
        after = (last or {}).get(bank.name, BEFORE_THE_FIRST)
        book.close(Random(f"bank {seed} {bank.name} {day}"), after=after)
    return month


class _Credit(NamedTuple):
    """What arrives of a payout, or goes back."""

    after: int = 1
    """Business days after the batch was settled."""
    sign: int = 1
    less: int = 0
    cells: Mapping[str, Any] = {}
    """What the entry says otherwise; `{batch}` is filled."""


class _Story(NamedTuple):
    """What a bank does with so many payouts in a row, and what must be found of it."""

    finding: str = ""
    why: str = ""
    credits: Sequence[Mapping[str, Any]] = ({},)
    of_net: int = 0
    """The effect: so many times the payout, and so much more."""
    more: int = 0
    days: int = 1
    """Business days after the last of them by which all of it stands on a statement."""
    takes: int = 1
    tell: str = ""
    """Instead of the credits."""


class _BankBook:
    """One account while its entries are made."""

    def __init__(self, bank: SandboxBank, *, days: Sequence[date], month: BankMonth) -> None:
        self.bank = bank
        self.days = days
        self.month = month
        self.entries: list[BankEntry] = []

    def has(self, day: date) -> bool:
        """Whether a statement tells of this day, or of a later one."""
        return bool(self.days) and day <= self.days[-1]

    def came(self, line: SettlementLine, amount: int, *, after: int = 1, **cells: Any) -> None:
        """The bank books it; what comes behind the last statement is in transit."""
        words = {"party": PAYER, "text": f"Settlement {line.batch_id}", **cells}
        entry = BankEntry(_later(line, after), amount, **words)
        arrival = None
        if line.currency == self.bank.currency or entry.ordered is not None:
            arrived = entry.ordered[1] if entry.ordered else amount
            arrival = Arrival(line.batch_id, line.currency, entry.day, arrived)
        self.enter(OnItsWay(self.bank.name, entry, arrival))

    def enter(self, each: OnItsWay) -> None:
        """Onto the statement of its day, or it is on its way still."""
        if not self.has(each.entry.day):
            self.month.coming.append(each)
            return
        self.entries.append(each.entry)
        if each.arrival is not None:
            self.month.arrived.append(each.arrival)

    def play(self, lines: Sequence[SettlementLine], *, stories: Sequence[_Story]) -> None:
        """Each story once, on the first payouts that it fits; the last one to all others."""
        left, (*once, rest) = list(lines), stories
        while left:
            story = next((each for each in once if self._fits(each, left[: each.takes])), rest)
            if story is not rest:
                once.remove(story)
            mine, left = left[: story.takes], left[story.takes :]
            if story.tell:
                _TELLS[story.tell](self, mine)
            for credit in (_Credit(**each) for each in story.credits if not story.tell):
                cells = dict(credit.cells)
                if "text" in cells:
                    cells["text"] = cells["text"].format(batch=mine[0].batch_id)
                amount = credit.sign * (mine[0].net - credit.less)
                self.came(mine[0], amount, after=credit.after, **cells)
            finding, come = finding_of(story.finding), self.has(_later(mine[-1], story.days))
            # What matches is told when it has come.
            if isinstance(finding, BreakCode) or (come and isinstance(finding, Flag)):
                for line in mine:
                    effect = story.of_net * line.net + story.more
                    planted = Planted(finding, story.why, line.batch_id, line.currency, effect)
                    self.month.planted.append(planted)

    def _fits(self, story: _Story, lines: Sequence[SettlementLine]) -> bool:
        return (
            len(lines) == story.takes
            and all(line.net >= LEAST_PLANTED for line in lines)
            and self.has(_later(lines[-1], story.days))
        )

    def joined(self, lines: Sequence[SettlementLine]) -> None:
        """Two payouts in one credit."""
        first, last = lines
        text = f"Settlements {first.batch_id} and {last.batch_id}"
        self.came(last, first.net + last.net, text=text)

    def exchanged(self, lines: Sequence[SettlementLine]) -> None:
        """A payout in another currency, and the bank says what was ordered."""
        (line,) = lines
        ordered = (line.currency, line.net)
        self.came(line, _in_euros(line), after=EXCHANGED_AFTER, ordered=ordered)

    def exchanged_silently(self, lines: Sequence[SettlementLine]) -> None:
        """The same without a word; for less than by the rate of the day, where there is one."""
        (line,) = lines
        day = _later(line, EXCHANGED_AFTER).isoformat()
        rates = DATED_RATES.get(line.currency, {})
        since = max((each for each in rates if each <= day), default="")
        why = "exchanged, and the bank does not say from what"
        came, effect = _in_euros(line), 0
        if since:
            came, effect = _in_euros(line, rate=rates[since]) - BELOW_THE_RATE, -BELOW_THE_RATE
            why += ": less than by the rate of the day"
        self.came(line, came, after=EXCHANGED_AFTER)
        code, about = BreakCode.BANK_FX_DIFFERENCE, (line.batch_id, self.bank.currency)
        self.month.planted.append(Planted(code, why, *about, effect))

    def close(self, chance: Random, *, after: tuple[int, int]) -> None:
        """A statement for each business day, with other people's entries among ours."""
        statements: list[Statement] = []
        before, balance = after
        for number, day in enumerate(self.days, start=before + 1):
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
        self.month.statements[self.bank.name] = tuple(statements)


_TELLS: Mapping[str, Callable[[_BankBook, Sequence[SettlementLine]], None]] = {
    "joined": _BankBook.joined,
    "exchanged": _BankBook.exchanged,
    "exchanged silently": _BankBook.exchanged_silently,
}


def _later(line: SettlementLine, steps: int) -> date:
    """So many business days after a batch was settled."""
    settled = date.fromisoformat(line.settled_on)
    return BusinessCalendar.of().business_day_after(settled, days=steps)


def _in_euros(line: SettlementLine, *, rate: str = "") -> int:
    """What the first bank gives for it, half to even."""
    per_unit = Decimal(rate or RATES.get(line.currency, OTHER_RATE))
    exact = Decimal(line.net).scaleb(-exponent(line.currency)) * per_unit
    return int(exact.scaleb(exponent(BANKS[0].currency)).to_integral_value(ROUND_HALF_EVEN))


def bank_key(month: BankMonth) -> dict[str, Any]:
    """Every planted break and every match with a flag, amounts as text."""
    key: dict[str, list[dict[str, str]]] = {"breaks": [], "matched_with_flag": []}
    for each in sorted(
        month.planted,
        key=lambda each: (each.currency, each.about, each.finding if each.is_break else ""),
    ):
        row = {"batch_id": each.about, "currency": each.currency, "why": each.why}
        if each.is_break:
            row |= {"code": each.finding.value, "effect_bank": each.text}
        else:
            row["flag"] = each.finding.value
        key["breaks" if each.is_break else "matched_with_flag"].append(row)
    return key


FIELD_CHARACTERS = 27
"""Of one field of text in MT940."""
CSV_HEADER = (
    *("iban", "statement_no", "from_date", "to_date", "opening", "closing", "entry_no"),
    *("booked_on", "value_on", "currency", "amount", "counterparty", "text", "charges"),
    *("instructed_currency", "instructed_amount"),
)
Statements = Sequence[Statement]


def _camt(bank: SandboxBank, statements: Statements) -> str:
    """One document of camt.053.001.08, a statement for each day."""

    def plain(amount: int, currency: str) -> str:
        return format_minor_units(abs(amount), currency=currency)

    return rendered("camt053", bank=bank, statements=statements, plain=plain) + "\n"


def _mt940(bank: SandboxBank, statements: Statements) -> str:
    """All days in one file, texts cut into fields."""

    def swift(amount: int) -> str:
        return format_minor_units(abs(amount), currency=bank.currency).replace(".", ",")

    def fields(text: str) -> list[str]:
        return [text[at : at + FIELD_CHARACTERS] for at in range(0, len(text), FIELD_CHARACTERS)]

    used = {"swift": swift, "fields": fields, "a_day": timedelta(days=1)}
    lines = rendered("mt940", bank=bank, statements=statements, **used).splitlines()
    return "".join(f"{line}\r\n" for line in lines)


def _rows(bank: SandboxBank, statements: Statements) -> Iterator[list[str]]:
    """One row an entry, the columns of its statement repeated."""

    def text(amount: int, currency: str = bank.currency) -> str:
        return format_minor_units(amount, currency=currency)

    for each in statements:
        head = [bank.iban, str(each.number), str(each.day), str(each.day)]
        head += [text(each.opening), text(each.closing)]
        if not each.entries:
            yield [*head, "", "", "", bank.currency, *[""] * 6]
        for entry in each.entries:
            currency, ordered = entry.ordered or ("", 0)
            yield [
                *(*head, entry.number, str(entry.day), str(entry.day), bank.currency),
                *(text(entry.amount), entry.party, entry.text),
                text(entry.charges) if entry.charges else "",
                *((currency, text(ordered, currency)) if currency else ("", "")),
            ]


def statement_files(month: BankMonth, *, day: date) -> dict[str, str]:
    """Name -> text of everything that the banks can send of their statements; of none nothing."""
    files: dict[str, str] = {}
    for bank in BANKS:
        statements = month.statements[bank.name]
        if not statements:
            continue
        stem = f"statements-{bank.name}-{day}"
        entries = [entry for statement in statements for entry in statement.entries]
        files[f"{stem}.xml"] = _camt(bank, statements)
        if not any(entry.charges or entry.ordered for entry in entries):
            files[f"{stem}.sta"] = _mt940(bank, statements)
        files[f"{stem}.csv"] = csv_text(CSV_HEADER, _rows(bank, statements))
    return files
