"""One file of a bank, in whatever form it comes: camt.05x, MT940, CSV or XLSX.

camt and MT940 become typed entries: amounts in minor units, signed from the merchant's account. CSV
and XLSX hold a bank's entries as a table, in the columns of the contract or by a layout.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.formats.bank_records import (
    TEXT_CHARACTERS_MAX,
    RawBalance,
    RawEntry,
    RawStatement,
)
from recon.files.formats.camt import camt_statements
from recon.files.formats.mt940 import mt940_statements
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import refuse
from recon.files.kinds.bank_batches import (
    DAYS,
    ENTRY_SCHEMA,
    WORDS,
    Row,
    TypedEntries,
    frame_of_batches,
)
from recon.files.kinds.bank_columns import (
    EntryColumns,
    StatementPlace,
    amounts_of,
    columns_of,
    days_of,
    different,
    longest_number,
    numbers_of,
    refuse_unbalanced,
    refuse_unfit,
    signs_turned,
    units_of,
)
from recon.files.typing.amounts import exact_sum
from recon.files.typing.instants import what_is_wrong_with_day
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.table_schema import BANK
from recon.files.typing.typed_table import proven_table
from recon.matching.frames.bank_sources import (
    BOOKED,
    DETAILS,
    PENDING,
    STATEMENT,
    BankSource,
    BankStatement,
)
from recon.model.errors import AmountError
from recon.model.money import exponent
from recon.model.words import SourceFile, SourceKind
from recon.privacy.shown_text import scrubbed

ID_CHARACTERS_MAX = 64
"""Of a statement's number, its account and the number of an entry; no format of banks has more."""


@dataclass(frozen=True, slots=True)
class TypedStatement:
    """One statement with its entries, typed."""

    statement: BankStatement
    entries: TypedEntries
    notes: tuple[str, ...]
    """What was read otherwise than it stands, in sentences."""


def typed_statements(
    statements: Iterable[RawStatement], *, name: str, sha256: str, ibans: Collection[str]
) -> list[TypedStatement]:
    """The statements of one file, each proven by its balances where it has them.

    Args:
        statements: as the format has them.
        name: of the file.
        sha256: of its content.
        ibans: the merchant's own accounts: some banks name an account without its IBAN.

    Raises:
        SourceUnreadableError: one of them does not add up, or says what cannot be.
    """
    known: list[TypedStatement] = []
    for raw in _whole(statements):
        where = StatementPlace(name, raw.account, raw.number)
        columns = columns_of(raw.entries)
        raw.entries.clear()  # each stands in memory once
        _refuse_impossible(raw, columns=columns, where=where)
        notes: list[str] = []
        entries = _typed(raw, columns=columns, where=where, number=len(known), notes=notes)
        own = _statement(raw, entries=entries, where=where, sha256=sha256, ibans=ibans)
        known.append(TypedStatement(own, entries, tuple(notes)))
    return known


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
) -> TypedEntries:
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
    numbers = numbers_of(columns)
    parts: dict[int, list[Row]] = {}
    for row, entry in columns.odd.items():
        if entry.details:
            own = {"statement": number, "entry_no": numbers[row].as_py()}
            own |= {"currency": currency, "amount": int(amounts[row])}
            own |= {"charges": more[row]["charges"]}
            parts[row] = _parts(entry, of=own, where=where, turned=turned, notes=notes)
            if not parts[row]:
                more[row] |= _words_of_all(entry)
    return TypedEntries(number, currency, columns, amounts, numbers, more, parts)


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
        **{name: getattr(entry, name) for name in (*DAYS, *WORDS)},
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
    listed = sum(row["amount"] for row in parts)
    # What the bank took off the sum is said beside each payment, or once beside the entry.
    charged = sum(row["charges"] for row in parts) or of["charges"]
    if not same or of["amount"] not in {listed, listed + charged}:
        notes.append(
            f"{scrubbed(where.name)}, {where}: the payments listed in the entry of line "
            f"{entry.line} do not come to it; the entry counts with all their words, the list "
            "does not."
        )
        return []
    return [
        row | {"statement": of["statement"], "entry_no": of["entry_no"], "part": at}
        for at, row in enumerate(parts, start=1)
    ]


def _words_of_all(entry: RawEntry) -> dict[str, str]:
    """What an entry and all payments behind it say, where their list cannot be counted."""
    every = (entry, *entry.details)
    return {
        name: "\n".join(dict.fromkeys(filter(None, (getattr(one, name) for one in every))))[
            :TEXT_CHARACTERS_MAX
        ]
        for name in WORDS
    }


def _statement(
    raw: RawStatement,
    *,
    entries: TypedEntries,
    where: StatementPlace,
    sha256: str,
    ibans: Collection[str],
) -> BankStatement:
    columns, booked = entries.columns, entries.amounts[entries.columns.booked]
    first, last = _days(raw, booked=different(columns, DAYS[0], among=columns.booked))
    if raw.form != DETAILS and not (first and last):
        where.refuse("neither a period, a balance nor an entry says of which days it is")
    proven = raw.form == STATEMENT
    return BankStatement(
        source=where.name,
        sha256=sha256,
        iban=own_account(raw.account, ibans=ibans),
        statement_no=raw.number if raw.page == 1 else f"{raw.number}/{raw.page}",
        currency=entries.currency,
        from_date=first,
        to_date=last,
        form=raw.form,
        opening=_signed(raw.opening, currency=entries.currency, where=where) if proven else None,
        closing=_signed(raw.closing, currency=entries.currency, where=where) if proven else None,
        booked=exact_sum(booked),
        entries=len(booked),
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
    entries = different(columns, "currency")
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


TABLES = frozenset({".csv", ".xlsx"})
MESSAGES = frozenset({".sta", ".940", ".mt940", ".swi", ".txt"})
ENDINGS = tuple(sorted((".xml", *TABLES, *MESSAGES)))
"""Of the names of a bank's files."""
HEAD_BYTES = 4_096
"""Within which a document says what it is."""


@dataclass(frozen=True, slots=True)
class BankFile:
    """One file of a bank, read; its entries are made whole a batch at a time."""

    batches: Callable[[], Iterator[pa.RecordBatch]]
    """ENTRY_SCHEMA."""
    statements: tuple[BankStatement, ...]
    notes: tuple[str, ...]
    source_file: SourceFile

    @property
    def source(self) -> BankSource:
        """With all entries in memory."""
        return BankSource(frame_of_batches(self.batches()), self.statements, notes=self.notes)


def bank_file_of(file: FileBytes, *, rules: Rules, layout: FileLayout = STANDARD) -> BankFile:
    """The statements of a file; all of them, or it is refused.

    Raises:
        SourceUnreadableError: it is none, a row or entry cannot be read, or T15 fails.
    """
    if file.path.suffix.lower() in TABLES:
        return _table(file, rules=rules, layout=layout)
    name = file.path.name
    if file.content[:HEAD_BYTES].removeprefix(BOM_UTF8).lstrip()[:1] == b"<":
        raw = camt_statements(file)
    elif file.path.suffix.lower() in MESSAGES:
        raw = mt940_statements(file)
    else:
        known = ", ".join(ENDINGS)
        refuse(name, f"is no bank statement that is known: XML (camt), or one of {known}")
    ibans = [bank.iban for bank in rules.bank.values()]
    typed = typed_statements(raw, name=name, sha256=file.sha256, ibans=ibans)
    return BankFile(
        lambda: (batch for each in typed for batch in each.entries.batches()),
        tuple(each.statement for each in typed),
        tuple(note for each in typed for note in each.notes),
        _source_file(file, rows=sum(len(each.entries.amounts) for each in typed)),
    )


def _table(file: FileBytes, *, rules: Rules, layout: FileLayout) -> BankFile:
    table = bank_table(file, rules=rules, layout=layout)
    rows, skipped = len(table.entries), table.source.rows_skipped
    source = replace(table.source, rows_read=rows + skipped, rows_accepted=rows)
    return BankFile(lambda: iter(table.entries.to_batches()), table.statements, (), source)


def _source_file(file: FileBytes, *, rows: int) -> SourceFile:
    size = len(file.content)
    return SourceFile(SourceKind.BANK, file.path.name, file.sha256, size, rows, rows, 0, 0)


_OF_STATEMENT = ["iban", "statement_no", "from_date", "to_date"]
Key = tuple[str, str, str, str]
"""IBAN, number, first and last day."""


class BankTable(NamedTuple):
    """The statements of a table, and their entries in ENTRY_SCHEMA."""

    statements: tuple[BankStatement, ...]
    entries: pa.Table
    source: SourceFile
    """Its rows: entries and statements that have none."""


def bank_table(file: FileBytes, *, rules: Rules, layout: FileLayout) -> BankTable:
    """The statements of a table, each proven by its balances where it has them.

    Raises:
        SourceUnreadableError: a row cannot be read, or a statement does not add up.
    """
    name = file.path.name
    raw = raw_of(file, wanted=read_of(BANK, layout=layout), layout=layout)
    table = proven_table(file.path, raw, schema=BANK, rules=rules, layout=layout)
    if table.rejects:
        first = table.rejects[0]
        refuse(
            name,
            f"has {len(table.rejects)} rows that cannot be read, and a statement is whole or "
            f"nothing; the first is line {first.line}, {first.column}: {first.reason}",
        )
    frame = table.frame
    frame["status"] = frame["status"].where(frame["status"].ne(""), BOOKED)
    frame["charges"] = frame["charges"].fillna(0)
    frame["statement"] = np.zeros(len(frame), dtype=np.int64)
    frame["part"] = 0
    statements = []
    for number, (key, rows) in enumerate(frame.groupby(_OF_STATEMENT).indices.items()):
        named: Key = key  # type: ignore[assignment] # of four columns
        frame.loc[rows, "statement"] = number
        where = StatementPlace(name, named[0], named[1])
        own = frame.iloc[rows]
        statements.append(_statement_of_rows(own, key=named, where=where, sha256=file.sha256))
    entries = frame.loc[frame["amount"].notna(), ENTRY_SCHEMA.names]
    return BankTable(
        tuple(statements),
        pa.Table.from_pandas(entries, schema=ENTRY_SCHEMA, preserve_index=False),
        table.source_file,
    )


def _statement_of_rows(
    rows: pd.DataFrame, *, key: Key, where: StatementPlace, sha256: str
) -> BankStatement:
    once: dict[str, Any] = {}
    for name in ("opening", "closing", "currency"):
        cells = rows[name].unique()
        if len(cells) > 1:
            where.refuse(f"its rows have more than one {name}")
        once[name] = None if pd.isna(cells[0]) else cells[0]
    entries = rows[rows["amount"].notna()]
    if len(entries) < len(rows) and len(rows) > 1:
        where.refuse("it has entries, and a row that says it has none")
    if entries["entry_no"].duplicated().any():
        where.refuse("it has two entries of one number (entry_no)")
    opening, closing, currency = once["opening"], once["closing"], str(once["currency"])
    booked = entries.loc[entries["status"].eq(BOOKED), "amount"]
    total = sum(booked.tolist())
    if (opening is None) != (closing is None):
        where.refuse("it has only one of its two balances")
    if opening is not None and opening + total != closing:
        refuse_unbalanced(int(opening), total, int(closing), statement=where, currency=currency)
    if key[2] > key[3]:
        where.refuse("its from_date is behind its to_date")
    return BankStatement(
        source=where.name,
        sha256=sha256,
        iban=where.account,
        statement_no=where.number,
        currency=currency,
        from_date=key[2],
        to_date=key[3],
        opening=None if opening is None else int(opening),
        closing=None if closing is None else int(closing),
        booked=total,
        entries=len(booked),
    )
