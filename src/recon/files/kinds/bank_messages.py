"""camt and MT940 as typed entries: amounts in minor units, signed from the merchant's account."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from recon.files.formats.bank_records import RawBalance, RawEntry, RawStatement
from recon.files.kinds.bank_amounts import StatementPlace, signs_turned, units_of
from recon.files.kinds.bank_columns import (
    EntryColumns,
    amounts_of,
    columns_of,
    days_of,
    longest_number,
    numbers_of,
    refuse_unfit,
)
from recon.files.typing.amounts import exact_sum
from recon.files.typing.days import what_is_wrong_with_day
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BOOKED,
    DETAILS,
    PENDING,
    STATEMENT,
    BankSource,
    BankStatement,
    no_entries,
)
from recon.matching.frames.grouping import Bools, Ints
from recon.matching.frames.sources import frame_of
from recon.model.errors import AmountError
from recon.model.money import exponent
from recon.privacy.shown_text import scrubbed

Row = dict[str, Any]
ID_CHARACTERS_MAX = 64
"""Of a statement's number, its account and the number of an entry; no format of banks has more."""
_WORDS = ("end_to_end_id", "reference", "counterparty", "text")


@dataclass(frozen=True, slots=True)
class _Typed:
    """The entries of one statement, typed."""

    currency: str
    frame: pd.DataFrame
    """BANK_ENTRY_COLUMNS."""
    booked: Bools
    """Of its entries without their payments."""
    amounts: Ints
    days: list[str]
    """On which its booked entries were booked; each once, in their order."""


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
    frames: list[pd.DataFrame] = []
    known: list[BankStatement] = []
    notes: list[str] = []
    for raw in _whole(statements):
        where = StatementPlace(name, raw.account, raw.number)
        columns = columns_of(raw.entries)
        raw.entries.clear()  # each stands in memory once
        _refuse_impossible(raw, columns=columns, where=where)
        typed = _typed(raw, columns=columns, where=where, number=len(known), notes=notes)
        if len(typed.frame):
            frames.append(typed.frame)
        known.append(_statement(raw, typed=typed, where=where, sha256=sha256, ibans=ibans))
    frame = pd.concat(frames, ignore_index=True) if frames else no_entries()
    return BankSource(entries=frame, statements=tuple(known), notes=tuple(notes))


def _refuse_impossible(raw: RawStatement, *, columns: EntryColumns, where: StatementPlace) -> None:
    """Days that no calendar has, and numbers longer than any that a bank writes."""
    days = {raw.from_day, raw.to_day, *days_of(columns)}
    days |= {balance.day for balance in (raw.opening, raw.closing) if balance is not None}
    for day in sorted(days - {""}):
        if why := what_is_wrong_with_day(day):
            where.refuse(f"it says {day}, which {why}")
    longest = max(len(raw.number), len(raw.account), longest_number(columns))
    if longest > ID_CHARACTERS_MAX:
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


def _typed(
    raw: RawStatement,
    *,
    columns: EntryColumns,
    where: StatementPlace,
    number: int,
    notes: list[str],
) -> _Typed:
    """The entries of one statement, their signs decided by its balances."""
    currency = _currency(raw, columns=columns, where=where)
    refuse_unfit(columns, currency=currency, where=where)
    amounts = amounts_of(columns, currency=currency, where=where)
    booked, reversal = columns.booked, columns.reversal
    proven = raw.form == STATEMENT
    turned = signs_turned(
        opening=_signed(raw.opening, currency=currency, where=where) if proven else None,
        closing=_signed(raw.closing, currency=currency, where=where) if proven else None,
        plain=exact_sum(amounts[booked & ~reversal]),
        reversals=exact_sum(amounts[booked & reversal]),
        statement=where,
        currency=currency,
    )
    if turned:
        notes.append(
            f"{scrubbed(where.name)}, {where}: its reversed entries are marked as what they "
            "reverse; they count the other way round, as its balances prove."
        )
        amounts = np.where(reversal, -amounts, amounts)
    more = {row: _more(entry, currency=currency, where=where) for row, entry in columns.odd.items()}
    frame = _frame(columns, amounts=amounts, currency=currency, number=number, more=more)
    parts: list[Row] = []
    numbers = frame["entry_no"].tolist() if columns.odd else []
    for row, entry in columns.odd.items():
        if entry.details:
            own = {"statement": number, "entry_no": numbers[row]}
            own |= {"currency": currency, "amount": int(amounts[row])}
            parts += _parts(entry, of=own, where=where, turned=turned, notes=notes)
    days = pd.unique(frame["booked_on"][booked])
    return _Typed(currency, _with_parts(frame, parts=parts), booked, amounts, [*days])


def _frame(
    columns: EntryColumns,
    *,
    amounts: Ints,
    currency: str,
    number: int,
    more: Mapping[int, Row],
) -> pd.DataFrame:
    """BANK_ENTRY_COLUMNS of the entries, without their payments."""
    size = len(amounts)
    charges, instructed = np.zeros(size, dtype=np.int64), [""] * size
    ordered: list[Any] = [pd.NA] * size
    for row, cells in more.items():
        charges[row], instructed[row] = cells["charges"], cells["instructed_currency"]
        ordered[row] = pd.NA if cells["instructed_amount"] is None else cells["instructed_amount"]
    texts = {name: pd.Series(pd.array(columns.texts[name], dtype="str")) for name in _WORDS}
    days = {name: pd.Series(pd.array(columns.texts[name], dtype="str")) for name in _DAYS}
    cells = {
        "statement": np.full(size, number, dtype=np.int64),
        "entry_no": numbers_of(columns),
        "part": np.zeros(size, dtype=np.int64),
        **days,
        "currency": pd.Series([currency] * size, dtype="str"),
        "amount": amounts,
        **texts,
        "status": pd.Series(np.where(columns.booked, BOOKED, PENDING), dtype="str"),
        "charges": charges,
        "instructed_currency": pd.Series(instructed, dtype="str"),
        "instructed_amount": pd.Series(ordered, dtype="Int64"),
    }
    return pd.DataFrame({name: cells[name] for name in BANK_ENTRY_COLUMNS})


_DAYS = ("booked_on", "value_on")


def _with_parts(frame: pd.DataFrame, *, parts: list[Row]) -> pd.DataFrame:
    """The payments of entries, each behind its entry."""
    if not parts:
        return frame
    more = frame_of(parts, columns=BANK_ENTRY_COLUMNS)
    places = {entry_no: at for at, entry_no in enumerate(frame["entry_no"].tolist())}
    both = pd.concat([frame, more], ignore_index=True)
    at = both["entry_no"].map(places).to_numpy(dtype=np.int64)
    order = np.lexsort((both["part"].to_numpy(dtype=np.int64), at))
    return both.iloc[order].reset_index(drop=True)


def _more(entry: RawEntry, *, currency: str, where: StatementPlace) -> Row:
    """What only few entries say: charges, and what was ordered in another currency."""
    instructed = entry.instructed_currency
    return {
        "charges": sum(
            (1 if credit else -1) * units_of(amount, currency=currency, statement=where)
            for amount, of, credit in entry.charges
            if of == currency
        ),
        "instructed_currency": instructed,
        "instructed_amount": units_of(entry.instructed_amount, currency=instructed, statement=where)
        if instructed
        else None,
    }


def _row(entry: RawEntry, *, currency: str, where: StatementPlace) -> Row:
    """One payment of an entry."""
    amount = units_of(entry.amount, currency=currency, statement=where)
    return {
        **{name: getattr(entry, name) for name in (*_DAYS, *_WORDS)},
        "currency": currency,
        "amount": amount if entry.credit else -amount,
        "status": BOOKED if entry.booked else PENDING,
        **_more(entry, currency=currency, where=where),
        "reversal": entry.reversal,
    }


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
    typed: _Typed,
    where: StatementPlace,
    sha256: str,
    ibans: Collection[str],
) -> BankStatement:
    first, last = _days(raw, booked=typed.days)
    if raw.form != DETAILS and not (first and last):
        where.refuse("neither a period, a balance nor an entry says of which days it is")
    proven = raw.form == STATEMENT
    return BankStatement(
        source=where.name,
        sha256=sha256,
        iban=own_account(raw.account, ibans=ibans),
        statement_no=raw.number if raw.page == 1 else f"{raw.number}/{raw.page}",
        currency=typed.currency,
        from_date=first,
        to_date=last,
        form=raw.form,
        opening=_signed(raw.opening, currency=typed.currency, where=where) if proven else None,
        closing=_signed(raw.closing, currency=typed.currency, where=where) if proven else None,
        booked=exact_sum(typed.amounts[typed.booked]),
        entries=int(typed.booked.sum()),
        created=raw.created,
        days_given=bool(raw.from_day and raw.to_day),
    )


def _days(raw: RawStatement, *, booked: list[str]) -> tuple[str, str]:
    """The days that a statement tells of, by its own word, else by balances and entries."""
    if raw.from_day and raw.to_day:
        return raw.from_day, raw.to_day
    days = sorted(booked)
    opened = raw.opening.day if raw.opening else ""
    closed = raw.closing.day if raw.closing else ""
    known = sorted(filter(None, (*days[:1], *days[-1:], opened, closed)))
    return (known[0], closed or known[-1]) if known else ("", "")


def _currency(raw: RawStatement, *, columns: EntryColumns, where: StatementPlace) -> str:
    balances = [balance.currency for balance in (raw.opening, raw.closing) if balance is not None]
    entries = columns.texts["currency"].unique().to_pylist()
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
