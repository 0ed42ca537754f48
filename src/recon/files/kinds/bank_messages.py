"""camt and MT940 as typed entries: amounts in minor units, signed from the merchant's account."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any

from recon.files.formats.bank_records import RawBalance, RawEntry, RawStatement
from recon.files.kinds.bank_amounts import StatementPlace, signs_turned, units_of
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BOOKED,
    DETAILS,
    PENDING,
    STATEMENT,
    BankSource,
    BankStatement,
)
from recon.matching.frames.sources import frame_of
from recon.model.errors import AmountError
from recon.model.money import exponent
from recon.privacy.shown_text import scrubbed

Row = dict[str, Any]
ID_CHARACTERS_MAX = 64
"""Of a statement's number, its account and the number of an entry; no format of banks has more."""


def typed_statements(
    statements: Iterable[RawStatement], *, name: str, sha256: str, ibans: Collection[str]
) -> BankSource:
    """The statements of one file, each proven by its balances where it has them.

    Args:
        statements: as the format has them.
        name: of the file.
        sha256: of its content.
        ibans: the merchant's own accounts: some banks name an account without its IBAN.

    Raises:
        SourceUnreadableError: one of them does not add up, or says what cannot be.
    """
    rows: list[Row] = []
    known: list[BankStatement] = []
    notes: list[str] = []
    for raw in _whole(statements):
        where = StatementPlace(name, raw.account, raw.number)
        _refuse_impossible(raw, where=where)
        typed = _typed(raw, where=where, number=len(known), notes=notes)
        rows += typed
        known.append(_statement(raw, rows=typed, where=where, sha256=sha256, ibans=ibans))
    frame = frame_of(rows, columns=BANK_ENTRY_COLUMNS)
    return BankSource(entries=frame, statements=tuple(known), notes=tuple(notes))


def _refuse_impossible(raw: RawStatement, *, where: StatementPlace) -> None:
    """Days that no calendar has, and numbers longer than any that a bank writes."""
    days = {day for entry in raw.entries for day in (entry.booked_on, entry.value_on)}
    days |= {raw.from_day, raw.to_day}
    days |= {balance.day for balance in (raw.opening, raw.closing) if balance is not None}
    for day in sorted(days - {""}):
        try:
            date.fromisoformat(day)
        except ValueError:
            where.refuse(f"it says {day}, which is no date")
    numbers = (raw.number, raw.account, *(entry.entry_no for entry in raw.entries))
    if any(len(number) > ID_CHARACTERS_MAX for number in numbers):
        where.refuse(
            f"its number, its account or the number of an entry has more than {ID_CHARACTERS_MAX} "
            "characters"
        )


def _whole(statements: Iterable[RawStatement]) -> Iterator[RawStatement]:
    """Pages that only together have both balances, as one statement."""
    page: RawStatement | None = None
    for further in statements:
        if page is not None and _goes_on(page, further):
            page.entries += further.entries
            page.closing, page.last_page = further.closing, further.last_page
            page.to_day = further.to_day or page.to_day
            continue
        if page is not None:
            yield page
        page = further
    if page is not None:
        yield page


def _goes_on(page: RawStatement, further: RawStatement) -> bool:
    named = (page.account, page.number, page.form)
    same = named == (further.account, further.number, further.form)
    return same and page.form == STATEMENT and page.closing is None and further.opening is None


def _typed(raw: RawStatement, *, where: StatementPlace, number: int, notes: list[str]) -> list[Row]:
    """The rows of one statement, their signs decided by its balances."""
    currency = _currency(raw, where=where)
    rows = [_row(entry, currency=currency, where=where) for entry in raw.entries]
    booked = [row for row in rows if row["status"] == BOOKED]
    proven = raw.form == STATEMENT
    turned = signs_turned(
        opening=_signed(raw.opening, currency=currency, where=where) if proven else None,
        closing=_signed(raw.closing, currency=currency, where=where) if proven else None,
        plain=sum(row["amount"] for row in booked if not row["reversal"]),
        reversals=sum(row["amount"] for row in booked if row["reversal"]),
        statement=where,
        currency=currency,
    )
    if turned:
        notes.append(
            f"{scrubbed(where.name)}, {where}: its reversed entries are marked as what they "
            "reverse; they count the other way round, as its balances prove."
        )
    rows_of_entry: list[Row] = []
    times: Counter[str] = Counter()
    for at, (row, entry) in enumerate(zip(rows, raw.entries, strict=True), start=1):
        own = row["entry_no"] or str(at)
        times[own] += 1  # some banks give one reference to several entries
        own = own if times[own] == 1 else f"{own}#{times[own]}"
        row |= {"statement": number, "entry_no": own, "part": 0}
        row["amount"] *= -1 if turned and row["reversal"] else 1
        rows_of_entry += [row, *_parts(entry, of=row, where=where, turned=turned, notes=notes)]
    return rows_of_entry


def _row(entry: RawEntry, *, currency: str, where: StatementPlace) -> Row:
    if entry.currency != currency:
        where.refuse(
            f"line {entry.line} is an entry in {scrubbed(entry.currency) or 'no currency'}, "
            f"its account is in {currency}"
        )
    if entry.booked and not entry.booked_on:
        where.refuse(f"line {entry.line} is a booked entry without a day of booking")
    instructed = entry.instructed_currency
    return {
        "booked_on": entry.booked_on,
        "value_on": entry.value_on,
        "currency": currency,
        "amount": _with_sign(entry, currency=currency, where=where),
        "end_to_end_id": entry.end_to_end_id,
        "reference": entry.reference,
        "counterparty": entry.counterparty,
        "text": entry.text,
        "status": BOOKED if entry.booked else PENDING,
        "charges": sum(
            (1 if credit else -1) * units_of(amount, currency=currency, statement=where)
            for amount, of, credit in entry.charges
            if of == currency
        ),
        "instructed_currency": instructed,
        "instructed_amount": units_of(entry.instructed_amount, currency=instructed, statement=where)
        if instructed
        else None,
        "entry_no": entry.entry_no,
        "reversal": entry.reversal,
    }


def _with_sign(entry: RawEntry, *, currency: str, where: StatementPlace) -> int:
    amount = units_of(entry.amount, currency=currency, statement=where)
    return amount if entry.credit else -amount


def _parts(
    entry: RawEntry, *, of: Row, where: StatementPlace, turned: bool, notes: list[str]
) -> list[Row]:
    """The payments of one entry; the entry alone counts where they do not come to it."""
    if not entry.details:
        return []
    whole = replace(entry, details=())
    same = all(detail.amount and detail.currency == whole.currency for detail in entry.details)
    parts = [_row(detail, currency=of["currency"], where=where) for detail in entry.details if same]
    for row in parts:
        row["amount"] *= -1 if turned and row["reversal"] else 1
    if not same or sum(row["amount"] for row in parts) != of["amount"]:
        notes.append(
            f"{scrubbed(where.name)}, {where}: the payments listed in the entry of line "
            f"{entry.line} do not come to it; the entry counts, the list does not."
        )
        return []
    return [
        row | {"statement": of["statement"], "entry_no": of["entry_no"], "part": at}
        for at, row in enumerate(parts, start=1)
    ]


def _statement(
    raw: RawStatement,
    *,
    rows: list[Row],
    where: StatementPlace,
    sha256: str,
    ibans: Collection[str],
) -> BankStatement:
    currency = _currency(raw, where=where)
    booked = [row for row in rows if row["status"] == BOOKED and not row["part"]]
    first, last = _days(raw, booked=booked)
    if raw.form != DETAILS and not (first and last):
        where.refuse("neither a period, a balance nor an entry says of which days it is")
    proven = raw.form == STATEMENT
    return BankStatement(
        source=where.name,
        sha256=sha256,
        iban=own_account(raw.account, ibans=ibans),
        statement_no=raw.number if raw.page == 1 else f"{raw.number}/{raw.page}",
        currency=currency,
        from_date=first,
        to_date=last,
        form=raw.form,
        opening=_signed(raw.opening, currency=currency, where=where) if proven else None,
        closing=_signed(raw.closing, currency=currency, where=where) if proven else None,
        booked=sum(row["amount"] for row in booked),
        entries=len(booked),
        created=raw.created,
        days_given=bool(raw.from_day and raw.to_day),
    )


def _days(raw: RawStatement, *, booked: list[Row]) -> tuple[str, str]:
    """The days that a statement tells of, by its own word, else by balances and entries."""
    if raw.from_day and raw.to_day:
        return raw.from_day, raw.to_day
    days = sorted(row["booked_on"] for row in booked)
    opened = raw.opening.day if raw.opening else ""
    closed = raw.closing.day if raw.closing else ""
    known = sorted(filter(None, (*days[:1], *days[-1:], opened, closed)))
    return (known[0], closed or known[-1]) if known else ("", "")


def _currency(raw: RawStatement, *, where: StatementPlace) -> str:
    balances = [balance.currency for balance in (raw.opening, raw.closing) if balance is not None]
    entries = [entry.currency for entry in raw.entries]
    named = next(filter(None, (raw.currency, *balances, *entries)), "")
    if any(balance != named for balance in balances):
        where.refuse("its balances are in two currencies")
    try:
        exponent(named)
    except AmountError as error:
        where.refuse(scrubbed(str(error)))
    return named


def _signed(balance: RawBalance | None, *, currency: str, where: StatementPlace) -> int | None:
    if balance is None:
        return None
    amount = units_of(balance.amount, currency=currency, statement=where)
    return amount if balance.credit else -amount


def own_account(account: str, *, ibans: Collection[str]) -> str:
    """The IBAN that a bank means by bank code and number, or with a currency behind it."""
    for iban in ibans:
        if account in {iban, f"{iban}{account[len(iban) :]}"} and len(account) <= len(iban) + 3:
            return iban
        code, separator, number = account.partition("/")
        inner = iban[4:]
        digits = number.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ").lstrip("0")
        rest = inner.removeprefix(code).removesuffix(digits)
        if (
            separator
            and code
            and digits
            and inner == f"{code}{rest}{digits}"
            and not rest.strip("0")
        ):
            return iban
    return account
