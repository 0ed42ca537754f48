"""One account of the merchant at a bank, day by day: entries, statements, what is on its way.

Statements as banks write them: camt.053, MT940, CSV; and as they go wrong on the way.

MT940 has no field for charges and for what was ordered in another currency: what needs one of them
is told by the other two only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from random import Random
from typing import Any
from xml.sax.saxutils import escape

from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.model.words import BreakCode, Flag
from recon.sandbox.world.records import SettlementLine, csv_text

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


FIELD_CHARACTERS = 27
"""Of one field of text in MT940."""
LATE_ENTRY_MINOR_UNITS = 333
"""What the first version of a corrected statement had too much."""
CSV_HEADER = (
    *("iban", "statement_no", "from_date", "to_date", "opening", "closing", "entry_no"),
    *("booked_on", "value_on", "currency", "amount", "counterparty", "text", "charges"),
    *("instructed_currency", "instructed_amount"),
)
Statements = Sequence[Statement]


def camt(bank: SandboxBank, statements: Statements) -> str:
    """One document of camt.053.001.08, a statement for each day."""
    parts = [_camt_statement(bank, statement) for statement in statements]
    head = "<Document xmlns='urn:iso:std:iso:20022:tech:xsd:camt.053.001.08'>"
    return f"{head}<BkToCstmrStmt>\n{''.join(parts)}</BkToCstmrStmt></Document>\n"


def _camt_statement(bank: SandboxBank, statement: Statement) -> str:
    balances = "".join(
        f"<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp>{_camt_amount(bank, amount)}"
        f"<Dt><Dt>{statement.day}</Dt></Dt></Bal>\n"
        for kind, amount in (("OPBD", statement.opening), ("CLBD", statement.closing))
    )
    return (
        f"<Stmt><Id>{bank.name}-{statement.number}</Id><ElctrncSeqNb>{statement.number}</ElctrncSeqNb>"
        f"<CreDtTm>{statement.created}</CreDtTm>"
        f"<FrToDt><FrDtTm>{statement.day}T00:00:00</FrDtTm><ToDtTm>{statement.day}T23:59:59</ToDtTm></FrToDt>"
        f"<Acct><Id><IBAN>{bank.iban}</IBAN></Id><Ccy>{bank.currency}</Ccy></Acct>\n"
        f"{balances}{''.join(_camt_entry(bank, entry) for entry in statement.entries)}</Stmt>\n"
    )


def _camt_amount(bank: SandboxBank, amount: int) -> str:
    text = _plain(amount, bank.currency)
    sign = "DBIT" if amount < 0 else "CRDT"
    return f"<Amt Ccy='{bank.currency}'>{text}</Amt><CdtDbtInd>{sign}</CdtDbtInd>"


def _camt_entry(bank: SandboxBank, entry: BankEntry) -> str:
    side = "Cdtr" if entry.amount < 0 else "Dbtr"
    taken = ordered = ""
    if entry.charges:
        taken = f"<Chrgs><Rcrd>{_camt_amount(bank, entry.charges)}</Rcrd></Chrgs>"
    if entry.ordered:
        currency, amount = entry.ordered
        text = _plain(amount, currency)
        ordered = f"<AmtDtls><InstdAmt><Amt Ccy='{currency}'>{text}</Amt></InstdAmt></AmtDtls>"
    return (
        f"<Ntry><NtryRef>{entry.number}</NtryRef>{_camt_amount(bank, entry.amount)}"
        f"<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{entry.day}</Dt></BookgDt>"
        f"<ValDt><Dt>{entry.day}</Dt></ValDt>{taken}<NtryDtls><TxDtls>{ordered}"
        f"<RltdPties><{side}><Pty><Nm>{escape(entry.party)}</Nm></Pty></{side}></RltdPties>"
        f"<RmtInf><Ustrd>{escape(entry.text)}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>\n"
    )


def mt940(bank: SandboxBank, statements: Statements) -> str:
    """All days in one file, texts cut into fields."""
    lines: list[str] = []
    for statement in statements:
        before = statement.day - timedelta(days=1)
        opening, closing = (
            _swift_balance(bank, amount_of) for amount_of in (statement.opening, statement.closing)
        )
        lines += [":20:STATEMENT", f":25:{bank.iban}", f":28C:{statement.number}/1"]
        lines.append(f":60F:{opening[0]}{before:%y%m%d}{opening[1:]}")
        for entry in statement.entries:
            sign, amount = "D" if entry.amount < 0 else "C", _swift(entry.amount, bank.currency)
            day = f"{statement.day:%y%m%d}{statement.day:%m%d}"
            lines.append(f":61:{day}{sign}{amount}NTRFNONREF//{entry.number}")
            starts = range(0, len(entry.text), FIELD_CHARACTERS)
            cut = [entry.text[at : at + FIELD_CHARACTERS] for at in starts]
            fields = "".join(f"?{20 + at}{piece}" for at, piece in enumerate(cut))
            lines.append(f":86:166?00TRANSFER{fields}?32{entry.party}")
        lines += [f":62F:{closing[0]}{statement.day:%y%m%d}{closing[1:]}", "-"]
    return "".join(f"{line}\r\n" for line in lines)


def _swift_balance(bank: SandboxBank, amount: int) -> str:
    return f"{'D' if amount < 0 else 'C'}{bank.currency}{_swift(amount, bank.currency)}"


def _swift(amount: int, currency: str) -> str:
    return _plain(amount, currency).replace(".", ",")


def table(bank: SandboxBank, statements: Statements) -> str:
    """One row an entry, the columns of its statement repeated."""
    return csv_text(CSV_HEADER, _rows(bank, statements))


def _rows(bank: SandboxBank, statements: Statements) -> Iterator[tuple[str, ...]]:
    for statement in statements:
        balances = [
            format_minor_units(amount_of, currency=bank.currency)
            for amount_of in (statement.opening, statement.closing)
        ]
        head = [bank.iban, str(statement.number), str(statement.day), str(statement.day), *balances]
        if not statement.entries:
            yield (*head, "", "", "", bank.currency, *[""] * 6)
        for entry in statement.entries:
            yield (*head, *_cells(bank, entry))


def _cells(bank: SandboxBank, entry: BankEntry) -> list[str]:
    currency, ordered = entry.ordered or ("", 0)
    return [
        *(entry.number, str(entry.day), str(entry.day), bank.currency),
        format_minor_units(entry.amount, currency=bank.currency),
        *(entry.party, entry.text),
        format_minor_units(entry.charges, currency=bank.currency) if entry.charges else "",
        currency,
        format_minor_units(ordered, currency=currency) if currency else "",
    ]


def _plain(amount: int, currency: str) -> str:
    return format_minor_units(abs(amount), currency=currency)


FORMS: Mapping[str, Callable[[SandboxBank, Statements], str]] = {
    "xml": camt,
    "sta": mt940,
    "csv": table,
}
"""Ending of a file's name -> how it is written."""


def forms_of(statements: Statements) -> tuple[str, ...]:
    """The formats that can tell all of these statements."""
    entries = [entry for statement in statements for entry in statement.entries]
    in_full = any(entry.charges or entry.ordered for entry in entries)
    return tuple(form for form in FORMS if form != "sta" or not in_full)


def lost(statements: Statements) -> Statements:
    """The second one never arrived: the bank is covered to the first."""
    return [*statements[:1], *statements[2:]]


def repeated(statements: Statements) -> Statements:
    """The second one comes twice; it counts once."""
    return [*statements[:2], *statements[1:]]


def corrected(statements: Statements) -> Statements:
    """The last one comes with an entry too much, and then as it is (camt: only it has a time)."""
    if not statements:
        return statements
    last = statements[-1]
    amount = LATE_ENTRY_MINOR_UNITS
    # By the gateway's own name, so that who takes the first version finds a receipt too much.
    extra = BankEntry(last.day, amount, PAYER, "booked by mistake", f"{last.day:%y%m%d}9999")
    first = replace(
        last,
        entries=(*last.entries, extra),
        closing=last.closing + amount,
        created=f"{last.day}T20:00:00",
    )
    return [*statements[:-1], first, last]


FAULTS: Mapping[str, Callable[[Statements], Statements]] = {
    "lost": lost,
    "repeated": repeated,
    "corrected": corrected,
}
"""What goes wrong with statements on the way, by the word in a file's name."""


def statement_files(bank: SandboxBank, statements: Statements, *, day: str) -> Mapping[str, str]:
    """Name -> text of everything that a bank can send of these statements; of none nothing."""
    if not statements:
        return {}
    files = {
        f"statements-{bank.name}-{day}.{form}": FORMS[form](bank, statements)
        for form in forms_of(statements)
    }
    return files | {
        f"statements-{bank.name}-{day}-{word}.xml": camt(bank, spoil(statements))
        for word, spoil in FAULTS.items()
    }
