"""T16: decides which bank statements count, and up to which day they prove that nothing is missing.

Two statements are versions of one where account, number and the year of their last day agree and
their days overlap, or their openings are equal. Where a bank restarts its numbers, always writes 0
or repeats an Id, the statements are different ones: their balances chain, and all of them count.

Each statement was proven by its own balances when it was read (T15). Here they are compared with
each other: a repeated one counts once, a corrected one replaces the first, and the chain ends where
a balance, a number or a business day is missing. Later statements do not count yet.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property

from recon.config.rules import Rules
from recon.matching.frames.bank_sources import (
    DETAILS,
    REPORT,
    STATEMENT,
    BankSource,
    BankStatement,
    content_digest,
)
from recon.model.business_date import BusinessCalendar
from recon.model.money import format_minor_units
from recon.privacy.displayed_text import redacted


@dataclass(frozen=True, slots=True)
class Cover:
    """The days that the statements of one bank prove."""

    bank: str
    first_day: str = ""
    """The first day that a statement covers, "" without any."""
    to_day: str = ""
    """The last day up to which nothing is missing."""
    counted: tuple[int, ...] = ()
    """Statements that count, in their order, by their number in the source."""
    proven: bool = True
    """False where a statement has no balances, so that nothing proves it."""


@dataclass(frozen=True)
class ClassifiedStatements:
    """All statements, with those that count."""

    covers: Mapping[str, Cover]
    """Bank -> cover, for every bank that the rules name."""
    problems: tuple[str, ...]
    """Why something of a bank does not count, in sentences with what to do."""
    reports: tuple[int, ...] = ()
    """Reports of a day that is not over: nothing that they lack is missing."""
    details: tuple[int, ...] = ()
    banks: Mapping[int, str] = field(default_factory=dict)
    """Statement -> bank, for all statements of a known account."""

    @cached_property
    def counted(self) -> frozenset[int]:
        """The statements that count."""
        return frozenset(number for cover in self.covers.values() for number in cover.counted)


def classify_statements(source: BankSource, *, rules: Rules, day: date) -> ClassifiedStatements:
    """Decide which statements count, up to which day.

    Args:
        source: as it was read.
        rules: the merchant's banks and their calendar.
        day: the business date; a statement of a later day is refused.
    """
    problems = [*(refusal.why for refusal in source.refused)]
    banks = _banks(source, rules=rules, day=day, problems=problems)
    covers = {}
    for name in rules.bank if source.night is None else source.night.banks:
        mine = [
            number
            for number, bank in banks.items()
            if bank == name and source.statements[number].form == STATEMENT
        ]
        chosen = _once(source, numbers=mine, problems=problems)
        covers[name] = _chain(
            source, name=name, numbers=chosen, calendar=rules.bank_calendar, problems=problems
        )
    by_form = {
        form: tuple(bank for bank in banks if source.statements[bank].form == form)
        for form in (REPORT, DETAILS)
    }
    return ClassifiedStatements(covers, tuple(problems), by_form[REPORT], by_form[DETAILS], banks)


def named(statement: BankStatement) -> str:
    """Return the name of a statement for sentences."""
    number, file = redacted(statement.statement_no), redacted(statement.source)
    return f"statement {number or 'without a number'} ({file})"


def _banks(source: BankSource, *, rules: Rules, day: date, problems: list[str]) -> dict[int, str]:
    """Return statement -> bank, for those of our banks, in their currency and not in the future."""
    known = {bank.iban: name for name, bank in rules.bank.items()}
    banks: dict[int, str] = {}
    for number, statement in enumerate(source.statements):
        bank = known.get(statement.iban)
        problem = ""
        if bank is not None and source.night is not None and bank not in source.night.banks:
            problem = f"is of the bank {bank}; move it to the folder of that bank"
        elif bank is None:
            problem = (
                f"is of the account {redacted(statement.iban)}, which no [bank] of the rules "
                "names; name it there, or take the file away"
            )
        elif statement.currency != rules.bank[bank].currency:
            problem = (
                f"is in {statement.currency}, and the bank {bank} in {rules.bank[bank].currency}; "
                "give this account a [bank] of its own"
            )
        elif statement.to_date > day.isoformat():
            problem = (
                f"ends on {statement.to_date}, after the business date {day.isoformat()}; "
                "it counts on a later night"
            )
        if problem:
            problems.append(f"{named(statement)} {problem}; nothing of it counts.")
        elif bank is not None:
            banks[number] = bank
    return banks


def _once(source: BankSource, *, numbers: Iterable[int], problems: list[str]) -> list[int]:
    """Choose the newest version of each statement; of two that nothing tells apart none."""
    chosen = []
    for several in _versions(source.statements, numbers=[*numbers]):
        newest = max(source.statements[number].created for number in several)
        latest = [number for number in several if source.statements[number].created == newest]
        if len(latest) > 1 and len({content_of(source, number) for number in latest}) > 1:
            names = " and ".join(named(source.statements[number]) for number in sorted(latest))
            problems.append(
                f"{names} have one number and other content, and neither says that it is newer; "
                "neither counts: ask the bank which of them holds."
            )
        else:
            chosen.append(min(latest, key=lambda number: source.statements[number].sha256))
    return chosen


def _versions(
    statements: Sequence[BankStatement], *, numbers: Sequence[int]
) -> Iterator[list[int]]:
    """Yield the statements of one bank, grouped into versions of one statement."""
    ordered = sorted(numbers, key=lambda number: _place(statements[number]))
    behind = {
        number
        for number in ordered
        if _is_behind_another(number, among=ordered, statements=statements)
    }
    groups: dict[tuple[str, str], list[list[int]]] = {}
    for number in ordered:
        own = statements[number]
        of_number = groups.setdefault((own.to_date[:4], own.statement_no), [])
        for versions in of_number:
            if any(
                _is_version(statements[known], own, apart=number in behind) for known in versions
            ):
                versions.append(number)
                break
        else:
            of_number.append([number])
    for of_number in groups.values():
        yield from of_number


def _is_behind_another(
    number: int, *, among: Sequence[int], statements: Sequence[BankStatement]
) -> bool:
    """Return whether a statement opens with the closing balance of the last ones before it."""
    own = statements[number]
    before = [
        statements[other]
        for other in among
        if other != number and statements[other].to_date <= own.from_date
    ]
    last = max((statement.to_date for statement in before), default="")
    return own.opening is not None and any(
        statement.closing == own.opening for statement in before if statement.to_date == last
    )


def _is_version(earlier: BankStatement, later: BankStatement, *, apart: bool) -> bool:
    """Return whether two statements of one number cover the same days.

    Args:
        earlier: the one of the two that ends first.
        later: the other one.
        apart: whether it continues from another statement's closing balance.
    """
    balances = (earlier.opening, earlier.closing) == (later.opening, later.closing)
    days = (earlier.from_date, earlier.to_date) == (later.from_date, later.to_date)
    if balances and days:
        return True
    if apart and earlier.to_date <= later.from_date:
        return False
    overlap = earlier.from_date <= later.to_date and later.from_date <= earlier.to_date
    return overlap or (earlier.opening is not None and earlier.opening == later.opening)


def content_of(source: BankSource, number: int, /) -> tuple[object, ...]:
    """Return the content by which two statements of one number are equal, whatever their format."""
    statement = source.statements[number]
    digest = statement.content or content_digest(
        source.entries[source.entries["statement"].eq(number)]
    )
    return (statement.to_date, statement.opening, statement.closing, digest)


def _chain(
    source: BankSource,
    *,
    name: str,
    numbers: list[int],
    calendar: BusinessCalendar,
    problems: list[str],
) -> Cover:
    """Return the cover of a bank: its statements from the first one up to the first gap."""
    statements = source.statements
    ordered = sorted(numbers, key=lambda number: _place(statements[number]))
    chain: list[int] = []
    for number in ordered:
        if not chain:
            chain.append(number)
            continue
        before, after = statements[chain[-1]], statements[number]
        if after.from_date < before.to_date:
            problems.append(
                f"{named(after)} of {name} begins on {after.from_date}, within {named(before)}, "
                f"which ends on {before.to_date}; nothing of it counts: ask the bank which holds."
            )
            continue
        gap = _gap(before, after, calendar=calendar)
        if gap:
            problems.append(
                f"the statements of {name} have a gap behind {before.to_date}: {gap}; what is "
                "later does not count: ask the bank for what is missing."
            )
            break
        chain.append(number)
    if not chain:
        return Cover(name)
    proven = all(statements[number].opening is not None for number in chain)
    if not proven:
        bare = next(statements[number] for number in chain if statements[number].opening is None)
        problems.append(
            f"{named(bare)} of {name} has no balances, so nothing proves that it is whole; ask "
            "the bank for statements with opening and closing balance."
        )
    return Cover(
        name, statements[chain[0]].from_date, statements[chain[-1]].to_date, tuple(chain), proven
    )


def _place(statement: BankStatement) -> tuple[str, str, tuple[int, int], str]:
    return (
        statement.to_date,
        statement.from_date,
        _numbers(statement.statement_no) or (0, 0),
        statement.statement_no,
    )


def _gap(before: BankStatement, statement: BankStatement, *, calendar: BusinessCalendar) -> str:
    """Return what is missing between two statements, "" when nothing is."""
    if (
        before.closing is not None
        and statement.opening is not None
        and before.closing != statement.opening
    ):
        amounts = [
            f"{format_minor_units(amount, currency=statement.currency)} {statement.currency}"
            for amount in (before.closing, statement.opening)
        ]
        return (
            f"{named(before)} closes with {amounts[0]}, {named(statement)} opens with {amounts[1]}"
        )
    if not _follows(before, statement):
        return f"{named(statement)} follows on {named(before)}"
    day = date.fromisoformat(before.to_date) + timedelta(days=1)
    last = date.fromisoformat(statement.from_date)
    while day < last and not calendar.is_business_day(day):
        day += timedelta(days=1)
    if day < last:
        return f"no statement covers {day.isoformat()}, a day on which banks work"
    return ""


def _follows(before: BankStatement, statement: BankStatement) -> bool:
    """Return whether the numbers are consecutive; they may restart where the balances chain."""
    earlier, later = _numbers(before.statement_no), _numbers(statement.statement_no)
    if earlier is None or later is None:
        return True
    if later == (earlier[0], earlier[1] + 1) or later == (earlier[0] + 1, 1):
        return True
    if before.closing is not None and before.closing == statement.opening:
        return later <= earlier  # numbers that restart, or are not used
    return later == (1, 1) and statement.to_date[:4] > before.from_date[:4]


def _numbers(statement_no: str) -> tuple[int, int] | None:
    """Return number and page of a plain statement number."""
    number, _, page = statement_no.partition("/")
    plain = all(text.isascii() and text.isdecimal() for text in (number, page or "1"))
    return (int(number), int(page or 1)) if plain else None
