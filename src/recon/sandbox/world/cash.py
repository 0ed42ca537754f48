"""Settlements, payouts, bank statements and ledger entries of the sandbox's gateway.

The true movements are generated first, then what each file reports of them, so that every injected
discrepancy (`stories.toml`) is known. The fee is the sandbox's own choice. Earlier batches are true
except for what is injected: one is paid out less a held-back amount, and the first large batches in
some currencies have a reserve withheld. Each bank books a payout one to three business days later.
A payout goes to the bank with its currency, else to the first one, which exchanges it. Statements
follow real formats (camt.053, MT940, CSV); MT940 has no field for charges or for the ordered amount
in another currency, so statements that need one have no MT940 file. Every payout, fee and reserve
of a batch and every arrival is booked once, as soon as there was time to book it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import groupby
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple

from recon.model.business_date import BusinessCalendar
from recon.model.money import exponent, format_minor_units
from recon.model.terms import REVERSAL_SUFFIX, BreakCode, EntryType, Flag
from recon.sandbox.database import Effect, ids_of
from recon.sandbox.wire import rendered
from recon.sandbox.world.night import (
    BOOKING_GRACE,
    DAYS_BEFORE,
    PAYOUT,
    STEPS,
    STORIES,
    Injected,
    LedgerLine,
    SettlementLine,
    cells_of,
    columns_of,
    csv_text,
    finding_of,
    instant_of,
)

PAYER = "Gateway Settlements Ltd"
"""Name of the party that pays the payouts."""
STRANGERS = (
    ("Harbour Property Management", "Rent November, contract 77-1204"),
    ("Maria Lindqvist", "Salary, personal"),
    ("Brightside Stationery", "Invoice 20261104-7, thank you"),
    ("City Tax Office", "VAT Q3 reference 88/1204/99"),
)
"""Counterparties unrelated to the merchant's payments; only their amounts may be stored."""
LEAST_INJECTED = 1_000
"""Minor units below which nothing is injected into a payout."""
UNKNOWN_AMOUNT = 7_710
RATES: Mapping[str, str] = {"JPY": "0.0061", "KWD": "2.97"}
"""Units of the first bank's currency per unit of a currency that no bank here has."""
DATED_RATES: Mapping[str, Mapping[str, str]] = {
    "JPY": {"2026-11-02": "0.0060", "2026-11-16": "0.0061"}
}
"""Rates in the demo's rules, by currency and the day from which they apply."""
BELOW_THE_RATE = 73
"""Minor units by which an exchange without an ordered amount is below the dated rate."""
EXCHANGED_AFTER = 2
"""Business days until an exchanged payout arrives."""
OTHER_RATE = "0.9"
"""The rate of any other currency, which only payments by hand have."""


class SandboxBank(NamedTuple):
    """One of the merchant's bank accounts."""

    name: str
    iban: str
    currency: str


BANKS = (
    SandboxBank("main", "DE89370400440532013000", "EUR"),
    SandboxBank("pounds", "GB29NWBK60161331926819", "GBP"),
    SandboxBank("usd", "NL91ABNA0417164300", "USD"),
)
"""In order of their names: a payout in a currency that no bank has goes to the first."""


LastStatements = Mapping[str, tuple[int, int]]
"""Number and closing balance of each bank's last statement, by name; the next one follows it."""
BEFORE_THE_FIRST = (200, 2_500_000)


@dataclass(frozen=True, slots=True)
class BankEntry:
    """One entry as the bank books it; minor units, positive for money received."""

    day: date
    amount: int
    party: str
    text: str
    number: str = ""
    charges: int = 0
    ordered: tuple[str, int] | None = None
    """Currency and amount ordered by the payer, where the bank exchanged it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The statement of one account for one business day."""

    number: int
    day: date
    opening: int
    closing: int
    entries: tuple[BankEntry, ...]
    created: str
    """When the bank created it; a later one is a correction."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Amount of a batch that arrived at a bank, in the currency of the payout."""

    batch_id: str
    currency: str
    day: date
    amount: int


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """An entry that a bank books after the day of its last statement."""

    bank: str
    entry: BankEntry
    arrival: Arrival | None


@dataclass(slots=True)
class BankMonth:
    """The statements of every bank, and what was injected: breaks, and matches with a flag."""

    statements: dict[str, tuple[Statement, ...]] = field(default_factory=dict)
    """Name of the bank -> its statements, one per business day."""
    injected: list[Injected] = field(default_factory=list)
    arrived: list[Arrival] = field(default_factory=list)
    """Excludes exchanged payouts whose entry does not name the ordered amount."""
    coming: list[OnItsWay] = field(default_factory=list)

    def last_statements(self) -> LastStatements:
        """Last statement of each bank, from which the next one continues."""
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
    """Generate the statements of every bank up to a business date.

    Args:
        payouts: the payout rows of all batches, by day and currency.
        day: the business date; its statements are included.
        seed: of the sandbox.
        since: the business date of the last statements, which the new ones continue; all payouts
            then arrive in full and identifiable. None injects every discrepancy.
        coming: the entries in transit at `since`.
        last: the last statement of each bank.
    """
    month, calendar = BankMonth(), BusinessCalendar.of()
    first = since or day - timedelta(days=DAYS_BEFORE + 1)
    every = (first + timedelta(days=after) for after in range(1, (day - first).days + 1))
    days = [each for each in every if calendar.is_business_day(each)]
    abroad = sorted({line.currency for line in payouts} - {bank.currency for bank in BANKS})
    for bank in BANKS:
        book = _BankLedger(bank, days=days, month=month)
        for each in coming:
            if each.bank == bank.name:
                book.enter(each)
        for currency in (bank.currency, *(abroad if bank is BANKS[0] else ())):
            scenarios = STORIES["banks"].get(currency, STORIES["banks"]["otherwise"])
            if since:
                scenarios = [{} if currency == bank.currency else {"explain": "exchanged"}]
            mine = [line for line in payouts if line.currency == currency and line.net]
            book.play(mine, scenarios=[_Scenario(**scenario) for scenario in scenarios])
        if not since and bank is BANKS[0] and payouts and days:
            # A payment by the gateway that belongs to no batch.
            entry = BankEntry(days[-1], UNKNOWN_AMOUNT, PAYER, "Goodwill, see our letter")
            book.entries.append(entry)
            code, why = BreakCode.BANK_RECEIPT_UNKNOWN, "the gateway paid what no batch comes to"
            month.injected.append(Injected(code, why, "", bank.currency, UNKNOWN_AMOUNT))
        after = (last or {}).get(bank.name, BEFORE_THE_FIRST)
        book.close(Random(f"bank {seed} {bank.name} {day}"), after=after)
    return month


class _Credit(NamedTuple):
    """An entry for a payout that arrives, or is returned."""

    after: int = 1
    """Business days after the settlement of the batch."""
    sign: int = 1
    less: int = 0
    cells: Mapping[str, Any] = {}
    """Other fields of the entry; `{batch}` in the text is replaced."""


class _Scenario(NamedTuple):
    """What a bank does with the next `takes` payouts, and the expected finding."""

    finding: str = ""
    why: str = ""
    credits: Sequence[Mapping[str, Any]] = ({},)
    of_net: int = 0
    """The expected effect is this multiple of the payout plus `more`."""
    more: int = 0
    days: int = 1
    """Business days after the last payout by which all of it is on a statement."""
    takes: int = 1
    explain: str = ""
    """Key of `_EXPLAINS` for a method that books the payouts in place of `credits`."""


class _BankLedger:
    """The entries of one account while they are being generated."""

    def __init__(self, bank: SandboxBank, *, days: Sequence[date], month: BankMonth) -> None:
        self.bank = bank
        self.days = days
        self.month = month
        self.entries: list[BankEntry] = []

    def has(self, day: date) -> bool:
        """Whether the statements reach this day."""
        return bool(self.days) and day <= self.days[-1]

    def booked(self, line: SettlementLine, amount: int, *, after: int = 1, **cells: Any) -> None:
        """Book an entry for a payout; it is in transit if its day is after the last statement."""
        words = {"party": PAYER, "text": f"Settlement {line.batch_id}", **cells}
        entry = BankEntry(_later(line, after), amount, **words)
        arrival = None
        if line.currency == self.bank.currency or entry.ordered is not None:
            arrived = entry.ordered[1] if entry.ordered else amount
            arrival = Arrival(line.batch_id, line.currency, entry.day, arrived)
        self.enter(OnItsWay(self.bank.name, entry, arrival))

    def enter(self, each: OnItsWay) -> None:
        """Add an entry to the statement of its day, or to those in transit."""
        if not self.has(each.entry.day):
            self.month.coming.append(each)
            return
        self.entries.append(each.entry)
        if each.arrival is not None:
            self.month.arrived.append(each.arrival)

    def play(self, lines: Sequence[SettlementLine], *, scenarios: Sequence[_Scenario]) -> None:
        """Apply each scenario to the first payouts it fits, the last scenario to all others."""
        left, (*once, rest) = list(lines), scenarios
        while left:
            scenario = next((each for each in once if self._fits(each, left[: each.takes])), rest)
            if scenario is not rest:
                once.remove(scenario)
            mine, left = left[: scenario.takes], left[scenario.takes :]
            if scenario.explain:
                _EXPLAINS[scenario.explain](self, mine)
            for credit in (_Credit(**each) for each in scenario.credits if not scenario.explain):
                cells = dict(credit.cells)
                if "text" in cells:
                    cells["text"] = cells["text"].format(batch=mine[0].batch_id)
                amount = credit.sign * (mine[0].net - credit.less)
                self.booked(mine[0], amount, after=credit.after, **cells)
            finding, come = finding_of(scenario.finding), self.has(_later(mine[-1], scenario.days))
            # A match is expected only once it is on a statement.
            if isinstance(finding, BreakCode) or (come and isinstance(finding, Flag)):
                for line in mine:
                    effect = scenario.of_net * line.net + scenario.more
                    injected = Injected(finding, scenario.why, line.batch_id, line.currency, effect)
                    self.month.injected.append(injected)

    def _fits(self, scenario: _Scenario, lines: Sequence[SettlementLine]) -> bool:
        return (
            len(lines) == scenario.takes
            and all(line.net >= LEAST_INJECTED for line in lines)
            and self.has(_later(lines[-1], scenario.days))
        )

    def joined(self, lines: Sequence[SettlementLine]) -> None:
        """Pay two payouts in one credit."""
        first, last = lines
        text = f"Settlements {first.batch_id} and {last.batch_id}"
        self.booked(last, first.net + last.net, text=text)

    def exchanged(self, lines: Sequence[SettlementLine]) -> None:
        """Exchange a payout; the entry names the ordered amount."""
        (line,) = lines
        ordered = (line.currency, line.net)
        self.booked(line, _in_euros(line), after=EXCHANGED_AFTER, ordered=ordered)

    def exchanged_silently(self, lines: Sequence[SettlementLine]) -> None:
        """Exchange without the ordered amount, and below the dated rate where there is one."""
        (line,) = lines
        day = _later(line, EXCHANGED_AFTER).isoformat()
        rates = DATED_RATES.get(line.currency, {})
        since = max((each for each in rates if each <= day), default="")
        why = "exchanged, and the bank does not say from what"
        booked, effect = _in_euros(line), 0
        if since:
            booked, effect = _in_euros(line, rate=rates[since]) - BELOW_THE_RATE, -BELOW_THE_RATE
            why += ": less than by the rate of the day"
        self.booked(line, booked, after=EXCHANGED_AFTER)
        code, about = BreakCode.BANK_FX_DIFFERENCE, (line.batch_id, self.bank.currency)
        self.month.injected.append(Injected(code, why, *about, effect))

    def close(self, chance: Random, *, after: tuple[int, int]) -> None:
        """Create a statement for each business day, adding entries of unrelated parties."""
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


_EXPLAINS: Mapping[str, Callable[[_BankLedger, Sequence[SettlementLine]], None]] = {
    "joined": _BankLedger.joined,
    "exchanged": _BankLedger.exchanged,
    "exchanged silently": _BankLedger.exchanged_silently,
}


def _later(line: SettlementLine, steps: int) -> date:
    """The day this many business days after a batch was settled."""
    settled = date.fromisoformat(line.settled_on)
    return BusinessCalendar.of().business_day_after(settled, days=steps)


def _in_euros(line: SettlementLine, *, rate: str = "") -> int:
    """Amount credited by the first bank in its currency, rounded half to even."""
    per_unit = Decimal(rate or RATES.get(line.currency, OTHER_RATE))
    exact = Decimal(line.net).scaleb(-exponent(line.currency)) * per_unit
    return int(exact.scaleb(exponent(BANKS[0].currency)).to_integral_value(ROUND_HALF_EVEN))


FIELD_CHARACTERS = 27
"""Length of one text field in MT940."""
CSV_HEADER = (
    *("iban", "statement_no", "from_date", "to_date", "opening", "closing", "entry_no"),
    *("booked_on", "value_on", "currency", "amount", "counterparty", "text", "charges"),
    *("instructed_currency", "instructed_amount"),
)
Statements = Sequence[Statement]


def _camt(bank: SandboxBank, statements: Statements) -> str:
    """Render one camt.053.001.08 document with a statement for each day."""

    def plain(amount: int, currency: str) -> str:
        return format_minor_units(abs(amount), currency=currency)

    return rendered("camt053", bank=bank, statements=statements, plain=plain) + "\n"


def _mt940(bank: SandboxBank, statements: Statements) -> str:
    """Render all days in one MT940 file, texts split into fields."""

    def swift(amount: int) -> str:
        return format_minor_units(abs(amount), currency=bank.currency).replace(".", ",")

    def fields(text: str) -> list[str]:
        return [text[at : at + FIELD_CHARACTERS] for at in range(0, len(text), FIELD_CHARACTERS)]

    used = {"swift": swift, "fields": fields, "a_day": timedelta(days=1)}
    lines = rendered("mt940", bank=bank, statements=statements, **used).splitlines()
    return "".join(f"{line}\r\n" for line in lines)


def _rows(bank: SandboxBank, statements: Statements) -> Iterator[list[str]]:
    """Yield one CSV row per entry, repeating the columns of its statement."""

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
    """Name -> text of the statement files that the banks can send; none without statements."""
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


FEE_BASIS_POINTS = 140
FEE_FIXED_MINOR_UNITS = 25
SETTLED = {"capture": 1, "refund": -1, "chargeback": -1, PAYOUT: -1}
"""Operations in a settlement, and the sign of their gross amount."""
HELD_MINOR_UNITS = 2_000
"""Amount held back from the payout of the first large batch in HELD_CURRENCY."""
HELD_CURRENCY = "EUR"
RESERVE_MINOR_UNITS = 1_000
"""Amount withheld as a security from one batch in each of RESERVE_CURRENCIES."""
RESERVE_CURRENCIES = ("EUR", "GBP", "USD")
LEAST_OF_RESERVE = 10 * RESERVE_MINOR_UNITS
"""Batch total that must be exceeded for a reserve."""


@dataclass(frozen=True, slots=True)
class InjectedDiscrepancy:
    """One discrepancy: the true line, and the line in the file."""

    code: BreakCode
    why: str
    true: SettlementLine | None
    shown: SettlementLine | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """The lines of a settlement file with its payout rows last, and what was injected into them."""

    lines: tuple[SettlementLine, ...]
    true: tuple[SettlementLine, ...]
    """The lines without any discrepancy."""
    injected: tuple[InjectedDiscrepancy, ...]


def settlement_of(
    effects: Iterable[Effect], *, account_id: str, day: date, seed: int, spared: Collection[str]
) -> Settlement:
    """The settlement of one business date; the same effects and seed give the same lines.

    Nothing is injected for the order numbers in `spared`: they have another discrepancy.
    """
    settled = _settled_between(effects, day, day, account_id=account_id)
    true = [_line(effect, day=day) for effect in settled]
    free = [line for line in true if line.order_no not in spared]
    injected = _plants(free, rng=Random(f"settlement {seed} {day}"))
    shown_as = {fault.true: fault.shown for fault in injected if fault.true is not None}
    added = [fault.shown for fault in injected if fault.true is None]
    all_shown = (*(shown_as.get(line, line) for line in true), *added)
    shown = [line for line in all_shown if line is not None]
    return Settlement((*shown, *pay_outs_of(shown)), (*true, *pay_outs_of(true)), tuple(injected))


def _settled_between(
    effects: Iterable[Effect], first: date, last: date, *, account_id: str
) -> Iterator[Effect]:
    """Effects that an account's settlements of these business dates contain."""
    calendar = BusinessCalendar.of()
    opens = calendar.closes_at(first - timedelta(days=1)).timestamp()
    closes = calendar.closes_at(last).timestamp()
    for effect in effects:
        own = effect.account_id == account_id and effect.operation in SETTLED
        if own and opens <= effect.committed_at < closes:
            yield effect


def _line(effect: Effect, *, day: date) -> SettlementLine:
    """The line of one effect in the settlement of `day`."""
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
    """The line in a batch of its currency alone: its id then identifies one payout at the bank."""
    line = _line(effect, day=day)
    return replace(line, batch_id=f"{line.batch_id}-{line.currency}")


def pay_outs_of(lines: Sequence[SettlementLine]) -> list[SettlementLine]:
    """One payout row per currency, in order: the totals of a day's lines."""
    rows: list[SettlementLine] = []
    for currency in sorted({line.currency for line in lines}):
        mine = [line for line in lines if line.currency == currency]
        gross, fee = sum(line.gross for line in mine), sum(line.fee for line in mine)
        rows.append(_of_no_payment(mine[0], PAYOUT, gross=gross, fee=fee))
    return rows


def _of_no_payment(line: SettlementLine, kind: str, *, gross: int, fee: int = 0) -> SettlementLine:
    """A line of the same batch that belongs to no payment."""
    line = replace(line, entry_type=kind, gross=gross, fee=fee, net=gross - fee)
    return replace(line, order_no="", transaction_id="", reference_no="", own_reference="")


def _plants(lines: Sequence[SettlementLine], *, rng: Random) -> list[InjectedDiscrepancy]:
    """Inject one discrepancy per kind into captures without other movements that day."""
    times = Counter(line.transaction_id for line in lines)
    captures = [
        line for line in lines if line.entry_type == "capture" and times[line.transaction_id] == 1
    ]
    plants = STORIES["settlement"]
    chosen = rng.sample(captures, min(len(plants), len(captures)))
    injected = []
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
        injected.append(InjectedDiscrepancy(code, plant["why"], true, shown))
    return injected


def settlement_key(settlement: Settlement) -> list[dict[str, Any]]:
    """Every injected discrepancy of a settlement, amounts as text."""

    def table(line: SettlementLine | None) -> dict[str, str] | None:
        return dict(zip(columns_of(SettlementLine), cells_of(line), strict=True)) if line else None

    return [
        {
            "code": fault.code.value,
            "why": fault.why,
            "true": table(fault.true),
            "shown": table(fault.shown),
        }
        for fault in settlement.injected
    ]


def paid_batches(
    effects: Iterable[Effect], *, account_id: str, day: date, unmentioned: Collection[str]
) -> tuple[list[SettlementLine], list[Injected]]:
    """The batches of the days before `day`, one per day and currency, and what they hold back.

    Args:
        effects: the ground truth.
        account_id: the account of the batches.
        day: the business date; its own batch is that of `settlement_of`.
        unmentioned: transactions excluded from every batch: partial refunds, whose amount no query
            shows and which has to stay unknown.

    Returns:
        Settlement lines, each day's payout rows after its lines; and the held-back payouts.
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
    held: list[Injected] = []
    reserved: set[str] = set()
    for settled_on, group in groupby(mine, key=attrgetter("settled_on")):
        batch = list(group)
        for currency in RESERVE_CURRENCIES:
            own = [line for line in batch if line.currency == currency]
            if currency not in reserved and sum(line.net for line in own) > LEAST_OF_RESERVE:
                reserved.add(currency)
                reserve = _of_no_payment(own[0], EntryType.RESERVE, gross=-RESERVE_MINOR_UNITS)
                batch.append(reserve)
        payouts = pay_outs_of(batch)
        for number, payout in enumerate(payouts):
            # Settled long enough ago to be due, and large enough.
            late = settled_on <= str(first + timedelta(days=1))
            large = payout.currency == HELD_CURRENCY and payout.net > 2 * HELD_MINOR_UNITS
            if late and large and not held:
                gross, net = payout.gross - HELD_MINOR_UNITS, payout.net - HELD_MINOR_UNITS
                payouts[number] = replace(payout, gross=gross, net=net)
                why, about = "paid out in part", (payout.batch_id, payout.currency)
                held.append(Injected(BreakCode.HELD_BACK, why, *about, HELD_MINOR_UNITS))
        lines += [*batch, *payouts]
    return lines, held


BOOKED_AT = time(9, tzinfo=UTC)
"""Time at which the ledger has a batch, on the day after it was settled."""
ARRIVAL_BOOKED_AT = time(17, tzinfo=UTC)
"""Time at which the ledger has an arrival, on its day."""
NEVER_PAID, NEVER_PAID_MINOR_UNITS = "CHF", 45_000
"""A payout that only the ledger has."""
UNASSIGNED = "unassigned"
"""In place of a batch id, for fees that name no batch."""
_FEE, _RESERVE, _BANK = EntryType.FEE.value, EntryType.RESERVE.value, EntryType.BANK.value


def ledger_of(
    lines: Sequence[SettlementLine],
    *,
    month: BankMonth,
    charges: Sequence[LedgerLine],
    day: date,
) -> tuple[list[LedgerLine], list[Injected]]:
    """Ledger entries of the batches before a business date, and what is injected into them.

    Args:
        lines: the settlement lines of these batches with their payout rows.
        month: what arrived at the banks.
        charges: fee entries that name no batch.
        day: the business date.
    """
    entries = [*_of_batches(lines), *_of_arrivals(month.arrived, lines=lines)]
    injected: list[Injected] = []
    if charges and lines:
        why, currency = "monthly charges were booked that no batch has", charges[0].currency
        key, effect = f"fees:{currency}:{UNASSIGNED}", sum(entry.amount for entry in charges)
        injected.append(Injected(BreakCode.FEE_BOOKED_DIFFERS, why, key, currency, effect))
    # Batches that arrived complete, once and alone: their break concerns the ledger only.
    troubled = {
        each.about for each in month.injected if each.is_break or each.finding == Flag.JOINED
    }
    untroubled = {arrival.batch_id for arrival in month.arrived} - troubled
    used: set[str] = set()
    for plant in STORIES["ledger"]:
        kind, more = plant["kind"], plant.get("more")
        fitting = (
            entry
            for entry in entries
            if (entry.entry_type, entry.currency) == (kind, plant["currency"])
            and entry.amount >= (1 if kind == _FEE else LEAST_INJECTED)
            and (kind in {_FEE, _RESERVE} or entry.reference_no in untroubled)
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
        # Bank entries are positive for receipts; what the gateway keeps or pays out is negative.
        effect = missing if kind == _BANK else -missing
        about = (_key(chosen), chosen.currency)
        injected.append(Injected(BreakCode(plant["finding"]), plant["why"], *about, effect))
    # A payout in a currency without batches: in any other it would be grouped with recent entries.
    # It takes the booking time of the newest overdue payout, since an entry of the first days of a
    # settlement could belong to an earlier batch.
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
        injected.append(Injected(code, why, key, NEVER_PAID, NEVER_PAID_MINOR_UNITS))
    return entries, injected


def _key(entry: LedgerLine) -> str:
    """Key of the group of an entry; all reserves form one group."""
    if entry.entry_type == _RESERVE:
        return f"reserves:{entry.currency}"
    word = "fees" if entry.entry_type == _FEE else "payout"
    return f"{word}:{entry.currency}:{entry.reference_no}"


def _is_late(entry: LedgerLine, *, day: date) -> bool:
    """Whether the entry's grace ends by the close of the business date."""
    calendar = BusinessCalendar.of()
    return calendar.due_at(entry.booked_at, grace=BOOKING_GRACE) <= calendar.closes_at(day)


def plain_ledger(
    lines: Sequence[SettlementLine],
    *,
    arrived: Sequence[Arrival],
    paid: Sequence[SettlementLine],
) -> Iterator[LedgerLine]:
    """Ledger entries of batches and arrivals without discrepancies, each with a unique id.

    Args:
        lines: settlement lines with their payout rows, to be booked now.
        arrived: what arrived at the bank, to be booked now.
        paid: the payout rows of what arrived.
    """
    for entry in (*_of_batches(lines), *_of_arrivals(arrived, lines=paid)):
        day = f"{entry.booked_at:%y%m%d}"
        yield replace(entry, entry_id=f"{entry.entry_id}-{entry.currency}-{day}")


def _of_batches(lines: Iterable[SettlementLine]) -> Iterator[LedgerLine]:
    """Yield an entry for each payout and each reserve, and one for the fees of each batch."""
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
    """Yield an entry for each arrival of these batches, in the currency of the payout."""
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
