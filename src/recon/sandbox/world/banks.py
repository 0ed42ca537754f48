"""The merchant's banks: what arrived of every pay-out, what is planted into it, and the statements.

First what the gateway paid out, then what each bank booked of it, one to three business days later,
so that every planted discrepancy is known. A pay-out goes to the bank of its currency; without one
to the first, which exchanges it. Statements are written as banks write them (camt.053, MT940, CSV)
and as they go wrong on the way; MT940 has no field for charges and for what was ordered in another
currency: what needs one of them is told by the other two only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from random import Random
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from recon.model.business_date import BusinessCalendar
from recon.model.money import exponent, format_minor_units
from recon.model.words import BreakCode, Flag
from recon.sandbox.world.records import Planted, SettlementLine, csv_text
from recon.sandbox.world.settlement import DAYS_BEFORE

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
"""Minor units below which nothing is planted into a pay-out."""
CHARGES = 500
"""Minor units that a bank keeps of an arriving amount, and says so."""
SHORT = 1_240
"""Minor units by which a planted arrival differs without a word."""
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
"""Business days until a pay-out arrives that the bank exchanges."""
OTHER_RATE = "0.9"
"""The same of every currency that only people pay in, beside the sandbox's own payments."""


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


BEFORE_THE_FIRST = LastStatement(number=200, closing=2_500_000)


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
    """What every bank has, and what was planted into pay-outs: breaks, and matches with a flag."""

    statements: dict[str, tuple[Statement, ...]] = field(default_factory=dict)
    """Name of the bank -> its statements, one a business day."""
    planted: list[Planted] = field(default_factory=list)
    arrived: list[Arrival] = field(default_factory=list)
    """But for what was exchanged without a word of what was ordered."""
    coming: list[OnItsWay] = field(default_factory=list)

    def last_statements(self) -> dict[str, LastStatement]:
        """Where the next statement of each bank goes on."""
        return {
            name: LastStatement(statements[-1].number, statements[-1].closing)
            for name, statements in self.statements.items()
            if statements
        }


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

    def close(self, chance: Random, *, after: LastStatement = BEFORE_THE_FIRST) -> None:
        """A statement for each business day, with other people's entries among ours."""
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
        self.month.statements[self.bank.name] = tuple(statements)


def _later(line: SettlementLine, steps: int) -> date:
    """So many business days after a batch was settled."""
    settled = date.fromisoformat(line.settled_on)
    return BusinessCalendar.of().business_day_after(settled, days=steps)


def _currencies_of(bank: SandboxBank, payouts: Sequence[SettlementLine]) -> list[str]:
    """Its own, and of the first bank those that none has: it exchanges them."""
    own = {each.currency for each in BANKS}
    others = sorted({line.currency for line in payouts} - own) if bank is BANKS[0] else []
    return [bank.currency, *others]


def _business_days(first: date, last: date) -> list[date]:
    every = (first + timedelta(days=after) for after in range((last - first).days + 1))
    return [day for day in every if BusinessCalendar.of().is_business_day(day)]


def bank_month(payouts: Sequence[SettlementLine], *, day: date, seed: int) -> BankMonth:
    """The statements of every bank up to a business date, with everything planted into them.

    Args:
        payouts: the pay-out rows of all batches, by day and currency.
        day: the business date; its statements have come.
        seed: of the sandbox.
    """
    month = BankMonth()
    days = _business_days(day - timedelta(days=DAYS_BEFORE), day)
    for bank in BANKS:
        book = _BankBook(bank, days=days, month=month)
        for currency in _currencies_of(bank, payouts):
            mine = [line for line in payouts if line.currency == currency and line.net]
            _play(mine, stories=_STORIES.get(currency, _ABROAD), book=book)
        if bank is BANKS[0] and payouts and days:
            # The gateway pays something that no batch comes to.
            entry = BankEntry(days[-1], UNKNOWN_AMOUNT, PAYER, "Goodwill, see our letter")
            book.entries.append(entry)
            code, why = BreakCode.BANK_RECEIPT_UNKNOWN, "the gateway paid what no batch comes to"
            month.planted.append(Planted(code, why, "", bank.currency, UNKNOWN_AMOUNT))
        book.close(Random(f"bank {seed} {bank.name} {day}"))
    return month


def next_statements(
    payouts: Sequence[SettlementLine],
    *,
    coming: Sequence[OnItsWay],
    last: Mapping[str, LastStatement],
    since: date,
    day: date,
    seed: int,
) -> BankMonth:
    """Every business day after one, of every bank; all arrives whole and with a word of it.

    Args:
        payouts: the pay-out rows of the batches since.
        coming: what was on its way.
        last: name of each bank -> its last statement.
        since: the business date of these.
        day: the business date.
        seed: of the sandbox.
    """
    month = BankMonth()
    for bank in BANKS:
        book = _BankBook(bank, days=_business_days(since + timedelta(days=1), day), month=month)
        for each in coming:
            if each.bank == bank.name:
                book.enter(each)
        for currency in _currencies_of(bank, payouts):
            for line in payouts:
                if line.currency == currency and line.net:
                    if currency == bank.currency:
                        book.came(line, line.net)
                    else:
                        _exchanged(book, [line])
        book.close(Random(f"bank {seed} {bank.name} {day}"), after=last[bank.name])
    return month


class _Credit(NamedTuple):
    """What arrives of a pay-out, or goes back."""

    after: int = 1
    """Business days after the batch was settled."""
    sign: int = 1
    less: int = 0
    cells: Mapping[str, Any] = {}
    """What the entry says otherwise; `{batch}` is filled."""


class _Story(NamedTuple):
    """What a bank does with so many pay-outs in a row, and what must be found of it."""

    finding: BreakCode | Flag | None = None
    why: str = ""
    credits: Sequence[_Credit] = (_Credit(),)
    of_net: int = 0
    """The effect: so many times the pay-out, and so much more."""
    more: int = 0
    days: int = 1
    """Business days after the last of them by which all of it stands on a statement."""
    takes: int = 1
    tell: "Callable[[_BankBook, Sequence[SettlementLine]], None] | None" = None
    """Instead of the credits and the effect."""


def _play(lines: Sequence[SettlementLine], *, stories: Sequence[_Story], book: _BankBook) -> None:
    """Each story once, on the first pay-outs that it fits; the last one to all others."""
    left, (*once, rest) = list(lines), stories
    while left:
        story = next((each for each in once if _fits(each, left[: each.takes], book=book)), rest)
        if story is not rest:
            once.remove(story)
        mine, left = left[: story.takes], left[story.takes :]
        if story.tell:
            story.tell(book, mine)
        for credit in story.credits if not story.tell else ():
            words = {
                name: value.format(batch=mine[0].batch_id) if name == "text" else value
                for name, value in credit.cells.items()
            }
            amount = credit.sign * (mine[0].net - credit.less)
            book.came(mine[0], amount, after=credit.after, **words)
        come = book.has(_later(mine[-1], story.days))
        # What matches is told when it has come.
        if story.finding is not None and (come or isinstance(story.finding, BreakCode)):
            for line in mine:
                effect = story.of_net * line.net + story.more
                about = (line.batch_id, line.currency)
                book.month.planted.append(Planted(story.finding, story.why, *about, effect))


def _fits(story: _Story, lines: Sequence[SettlementLine], *, book: _BankBook) -> bool:
    return (
        len(lines) == story.takes
        and all(line.net >= LEAST_PLANTED for line in lines)
        and book.has(_later(lines[-1], story.days))
    )


def _joined(book: _BankBook, lines: Sequence[SettlementLine]) -> None:
    first, last = lines
    text = f"Settlements {first.batch_id} and {last.batch_id}"
    book.came(last, first.net + last.net, text=text)


def _exchanged(book: _BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    ordered = (line.currency, line.net)
    book.came(line, _in_euros(line), after=EXCHANGED_AFTER, ordered=ordered)


def _exchanged_silently(book: _BankBook, lines: Sequence[SettlementLine]) -> None:
    (line,) = lines
    day = _later(line, EXCHANGED_AFTER).isoformat()
    rates = DATED_RATES.get(line.currency, {})
    since = max((each for each in rates if each <= day), default="")
    why = "exchanged, and the bank does not say from what"
    came, effect = _in_euros(line), 0
    if since:
        came, effect = _in_euros(line, rate=rates[since]) - BELOW_THE_RATE, -BELOW_THE_RATE
        why += ": less than by the rate of the day"
    book.came(line, came, after=EXCHANGED_AFTER)
    code, currency = BreakCode.BANK_FX_DIFFERENCE, book.bank.currency
    book.month.planted.append(Planted(code, why, line.batch_id, currency, effect))


def _in_euros(line: SettlementLine, *, rate: str = "") -> int:
    """What the first bank gives for it, half to even."""
    per_unit = Decimal(rate or RATES.get(line.currency, OTHER_RATE))
    exact = Decimal(line.net).scaleb(-exponent(line.currency)) * per_unit
    return int(exact.scaleb(exponent(BANKS[0].currency)).to_integral_value(ROUND_HALF_EVEN))


_UNNAMED = {"text": "Credit transfer"}
_BACK = {"text": "Return of {batch}, account closed"}
_KEPT = {"charges": -CHARGES}
_STORIES: Mapping[str, Sequence[_Story]] = {
    "EUR": (
        # Four business days behind it a pay-out is due and covered.
        _Story(BreakCode.PAYOUT_NOT_AT_BANK, "never arrived", (), of_net=-1, days=4),
        _Story(Flag.JOINED, "two batches in one credit", takes=2, tell=_joined),
        _Story(
            BreakCode.PAYOUT_TWICE_AT_BANK,
            "arrived on two days",
            (_Credit(), _Credit(2)),
            of_net=1,
            days=2,
        ),
        _Story(
            BreakCode.BANK_AMOUNT_DIFFERS, "arrived with less", (_Credit(less=SHORT),), more=-SHORT
        ),
        _Story(
            Flag.BANK_CHARGES,
            "the bank kept its charges and says so",
            (_Credit(less=CHARGES, cells=_KEPT),),
        ),
        _Story(),
    ),
    "GBP": (
        _Story(
            BreakCode.AMBIGUOUS_MATCH,
            "two credits of its amount, and none names it",
            (_Credit(cells=_UNNAMED), _Credit(2, cells=_UNNAMED)),
            of_net=1,
            days=2,
        ),
        _Story(Flag.BY_AMOUNT, "arrived without a word of its batch", (_Credit(cells=_UNNAMED),)),
    ),
    "USD": (
        _Story(
            BreakCode.PAYOUT_RETURNED,
            "arrived and went back",
            (_Credit(), _Credit(2, sign=-1, cells=_BACK)),
            of_net=-1,
            days=2,
        ),
        _Story(
            Flag.REPAID,
            "went back and came again",
            (_Credit(), _Credit(2, sign=-1), _Credit(3)),
            days=3,
        ),
        _Story(),
    ),
}
"""Currency of a bank -> what happens once each; the last to all other pay-outs."""
_ABROAD = (
    _Story(tell=_exchanged_silently, days=2),
    _Story(
        Flag.EXCHANGED, "exchanged, and the bank says what was ordered", tell=_exchanged, days=2
    ),
)


def answer_key(month: BankMonth) -> dict[str, Any]:
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
LATE_ENTRY_MINOR_UNITS = 333
"""What the first version of a corrected statement had too much."""
CSV_HEADER = (
    *("iban", "statement_no", "from_date", "to_date", "opening", "closing", "entry_no"),
    *("booked_on", "value_on", "currency", "amount", "counterparty", "text", "charges"),
    *("instructed_currency", "instructed_amount"),
)
Statements = Sequence[Statement]


def _camt(bank: SandboxBank, statements: Statements) -> str:
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
    sign = "DBIT" if amount < 0 else "CRDT"
    text = _plain(amount, bank.currency)
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


def _mt940(bank: SandboxBank, statements: Statements) -> str:
    """All days in one file, texts cut into fields."""

    def swift(amount: int) -> str:
        return _plain(amount, bank.currency).replace(".", ",")

    def balance(amount: int, day: date) -> str:
        return f"{'D' if amount < 0 else 'C'}{day:%y%m%d}{bank.currency}{swift(amount)}"

    lines: list[str] = []
    for statement in statements:
        before = statement.day - timedelta(days=1)
        lines += [":20:STATEMENT", f":25:{bank.iban}", f":28C:{statement.number}/1"]
        lines.append(f":60F:{balance(statement.opening, before)}")
        for entry in statement.entries:
            sign = "D" if entry.amount < 0 else "C"
            day = f"{statement.day:%y%m%d}{statement.day:%m%d}"
            lines.append(f":61:{day}{sign}{swift(entry.amount)}NTRFNONREF//{entry.number}")
            starts = range(0, len(entry.text), FIELD_CHARACTERS)
            cut = [entry.text[at : at + FIELD_CHARACTERS] for at in starts]
            fields = "".join(f"?{20 + at}{piece}" for at, piece in enumerate(cut))
            lines.append(f":86:166?00TRANSFER{fields}?32{entry.party}")
        lines += [f":62F:{balance(statement.closing, statement.day)}", "-"]
    return "".join(f"{line}\r\n" for line in lines)


def _table(bank: SandboxBank, statements: Statements) -> str:
    """One row an entry, the columns of its statement repeated."""
    return csv_text(CSV_HEADER, _rows(bank, statements))


def _rows(bank: SandboxBank, statements: Statements) -> Iterator[list[str]]:
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


def _plain(amount: int, currency: str) -> str:
    return format_minor_units(abs(amount), currency=currency)


def _lost(statements: Statements) -> Statements:
    """The second one never arrived: the bank is covered to the first."""
    return [*statements[:1], *statements[2:]]


def _repeated(statements: Statements) -> Statements:
    """The second one comes twice; it counts once."""
    return [*statements[:2], *statements[1:]]


def _corrected(statements: Statements) -> Statements:
    """The last one comes with an entry too much, and then as it is (camt: only it has a time)."""
    last, amount = statements[-1], LATE_ENTRY_MINOR_UNITS
    # By the gateway's own name, so that who takes the first version finds a receipt too much.
    extra = BankEntry(last.day, amount, PAYER, "booked by mistake", f"{last.day:%y%m%d}9999")
    first = replace(
        last,
        entries=(*last.entries, extra),
        closing=last.closing + amount,
        created=f"{last.day}T20:00:00",
    )
    return [*statements[:-1], first, last]


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
        files[f"{stem}.csv"] = _table(bank, statements)
        files[f"{stem}-lost.xml"] = _camt(bank, _lost(statements))
        files[f"{stem}-repeated.xml"] = _camt(bank, _repeated(statements))
        files[f"{stem}-corrected.xml"] = _camt(bank, _corrected(statements))
    return files
