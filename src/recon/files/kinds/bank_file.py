"""Bank statement files in every supported format: camt.05x, MT940, CSV or XLSX.

camt and MT940 become typed entries: amounts in minor units, signed from the merchant's account. CSV
and XLSX hold a bank's entries as a table, in our own columns or those of a layout.

T15 is checked for each statement as it is read: opening plus booked entries must equal closing.
Some banks invert the mark of a reversed entry and others do not, so a statement with reversals is
tried both ways: the one that fits its balances is used, and if neither does the whole file is
refused.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

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
from recon.files.typing.instants import what_is_wrong_with_day
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.table_schema import BANK
from recon.files.typing.typed_table import proven_table
from recon.matching.frames.bank_sources import (
    BOOKED,
    DETAILS,
    PENDING,
    STATEMENT,
    BankStatement,
    no_entries,
)
from recon.model.errors import AmountError
from recon.model.money import exponent, format_minor_units, parse_minor_units
from recon.model.terms import SourceFile, SourceKind
from recon.privacy.displayed_text import redacted

ID_CHARACTERS_MAX = 64
"""Maximum length of statement, account and entry numbers; no bank format has longer ones."""
ASK_AGAIN = "nothing of the file counts: ask the bank for the statement again"
TABLES = frozenset({".csv", ".xlsx"})
MESSAGES = frozenset({".sta", ".940", ".mt940", ".swi", ".txt"})
ENDINGS = tuple(sorted((".xml", *TABLES, *MESSAGES)))
"""File name suffixes of bank files."""
HEAD_BYTES = 4_096
"""The type of a document must be recognisable within this many bytes."""
BATCH_ROWS = 8_192
"""Entries per record batch; the payments of an entry are in the same batch."""
ENTRY_SCHEMA: pa.Schema = pa.Schema.from_pandas(no_entries(), preserve_index=False)
"""BANK_ENTRY_COLUMNS as an Arrow schema."""
Row = dict[str, Any]
_WORDS = ("end_to_end_id", "reference", "counterparty", "text")
_TEXTS = ("booked_on", "value_on", *_WORDS)
_NUMBER = re.compile(r"(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]*))?", re.ASCII)
_OF_STATEMENT = ["iban", "statement_no", "from_date", "to_date"]


class BankFacts(NamedTuple):
    """Everything but the entries of a bank file."""

    statements: tuple[BankStatement, ...]
    notes: tuple[str, ...]
    """Sentences on what was not read literally."""
    source_file: SourceFile


def bank_file_of(
    file: FileBytes, *, rules: Rules, layout: FileLayout = STANDARD
) -> tuple[BankFacts, Iterable[pa.RecordBatch]]:
    """Read all statements of a bank file; it is refused if any of them cannot be read.

    Also returns the entries in batches of ENTRY_SCHEMA, built one at a time.

    Raises:
        SourceUnreadableError: no known format, a row or entry is unreadable, or T15 fails.
    """
    name = file.path.name
    if file.path.suffix.lower() in TABLES:
        return _table(file, rules=rules, layout=layout)
    if file.content[:HEAD_BYTES].removeprefix(BOM_UTF8).lstrip()[:1] == b"<":
        raw = camt_statements(file)
    elif file.path.suffix.lower() in MESSAGES:
        raw = mt940_statements(file)
    else:
        known = ", ".join(ENDINGS)
        refuse(name, f"is no bank statement that is known: XML (camt), or one of {known}")
    ibans = [bank.iban for bank in rules.bank.values()]
    typed = [
        _Statement(own, number=number, name=name) for number, own in enumerate(_whole_pages(raw))
    ]
    statements = tuple(each.proven(sha256=file.sha256, ibans=ibans) for each in typed)
    rows = sum(len(each.entries) for each in typed)
    notes = tuple(note for each in typed for note in each.notes)
    source = SourceFile(SourceKind.BANK, name, file.sha256, len(file.content), rows, rows, 0, 0)
    batches = (batch for each in typed for batch in each.batches())
    return BankFacts(statements, notes, source), batches


def _whole_pages(statements: Iterable[RawStatement]) -> Iterator[RawStatement]:
    """Merge consecutive pages that have both balances only together into one statement."""
    page: RawStatement | None = None
    for further in statements:
        if (
            page is not None
            and (page.account, page.number, page.form)
            == (further.account, further.number, further.form)
            and page.form == STATEMENT
            and page.closing is None
            and further.opening is None
        ):
            page.entries += further.entries
            page.closing, page.last_page = further.closing, further.last_page
            page.to_day = further.to_day or page.to_day
            continue
        if page is not None:
            yield page
        page = further
    if page is not None:
        yield page


class _Statement:
    """One statement of a message while its entries are typed."""

    def __init__(self, raw: RawStatement, *, number: int, name: str) -> None:
        self.raw, self.number, self.name = raw, number, name
        self.entries: Sequence[RawEntry] = raw.entries
        self.where = f"statement {redacted(raw.number) or 'without a number'} of account "
        self.where += redacted(raw.account)
        self.notes: list[str] = []
        self.currency = ""
        self._amounts: list[int] = []
        """Signed minor units of each entry."""
        self._odd: dict[int, Row] = {}
        """Entry index -> values that few entries have: charges, instructed amount, joined texts."""
        self._parts: dict[int, list[Row]] = {}
        """Entry index -> the payments of a batched entry, if they add up to it."""

    def proven(self, *, sha256: str, ibans: Collection[str]) -> BankStatement:
        """Type the entries and check them against the balances, where there are any.

        Raises:
            SourceUnreadableError: it does not add up, or holds impossible values.
        """
        raw, booked = self.raw, [entry for entry in self.entries if entry.booked]
        self._refuse_impossible()
        self._take_currency()
        opening, closing = (
            self._signed(balance) if balance is not None and raw.form == STATEMENT else None
            for balance in (raw.opening, raw.closing)
        )
        self._amounts = [self._signed(entry) for entry in self.entries]
        negated = self._signs_are_negated(opening, closing)
        if negated:
            self._note(
                "its reversed entries are marked as what they reverse; they count the other way "
                "round, as its balances prove.",
            )
            self._amounts = [
                -amount if entry.reversal else amount
                for entry, amount in zip(self.entries, self._amounts, strict=True)
            ]
        for at, entry in enumerate(self.entries):
            if entry.details or entry.charges or entry.instructed_currency:
                self._take_odd(at, entry, negated=negated)
        first, last = _days(raw, booked=booked)
        if raw.form != DETAILS and not (first and last):
            self._refuse("neither a period, a balance nor an entry says of which days it is")
        return BankStatement(
            source=self.name,
            sha256=sha256,
            iban=own_account(raw.account, ibans=ibans),
            statement_no=raw.number if raw.page == 1 else f"{raw.number}/{raw.page}",
            currency=self.currency,
            from_date=first,
            to_date=last,
            form=raw.form,
            opening=opening,
            closing=closing,
            booked=sum(self._booked_amounts()),
            entries=len(booked),
            created=raw.created,
            days_given=bool(raw.from_day and raw.to_day),
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the entries in batches of ENTRY_SCHEMA, each followed by its payments."""
        times: dict[str, int] = {}
        rows: list[Row] = []
        for at, entry in enumerate(self.entries):
            own = entry.entry_no or str(at + 1)  # its position if the bank gives no number
            times[own] = time = times.get(own, 0) + 1
            named = {"statement": self.number, "currency": self.currency}
            named["entry_no"] = own if time == 1 else f"{own}#{time}"
            row = self._row(entry, amount=self._amounts[at]) | self._odd.get(at, {})
            rows.append(row | named | {"part": 0})
            parts = self._parts.get(at, ())
            rows += [part | named | {"part": place} for place, part in enumerate(parts, start=1)]
            if len(rows) >= BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema=ENTRY_SCHEMA)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=ENTRY_SCHEMA)

    def _booked_amounts(self) -> Iterator[int]:
        pairs = zip(self.entries, self._amounts, strict=True)
        return (amount for entry, amount in pairs if entry.booked)

    def _refuse_impossible(self) -> None:
        """Refuse invalid dates, and numbers longer than any bank uses."""
        raw, longest = self.raw, max(len(self.raw.number), len(self.raw.account))
        days = {raw.from_day, raw.to_day}
        days |= {balance.day for balance in (raw.opening, raw.closing) if balance is not None}
        for entry in self.entries:
            days |= {entry.booked_on, entry.value_on}
            longest = max(longest, len(entry.entry_no))
        for day in sorted(days - {""}):
            if why := what_is_wrong_with_day(day):
                self._refuse(f"it says {day}, which {why}")
        if longest > ID_CHARACTERS_MAX:
            self._refuse(
                "its number, its account or the number of an entry has more than "
                f"{ID_CHARACTERS_MAX} characters"
            )

    def _take_currency(self) -> None:
        """Set the statement's currency; every entry must be in it, and have a date once booked."""
        raw = self.raw
        balances = [each.currency for each in (raw.opening, raw.closing) if each is not None]
        known = (raw.currency, *balances, *(entry.currency for entry in self.entries))
        self.currency = next(filter(None, known), "")
        if any(balance != self.currency for balance in balances):
            self._refuse("its balances are in two currencies")
        try:
            exponent(self.currency)
        except AmountError as error:
            self._refuse(redacted(str(error)))
        for entry in self.entries:
            if entry.currency != self.currency:
                own = redacted(entry.currency) or "no currency"
                self._refuse(
                    f"line {entry.line} is an entry in {own}, its account is in {self.currency}"
                )
            if entry.booked and not entry.booked_on:
                self._refuse(f"line {entry.line} is a booked entry without a day of booking")

    def _signs_are_negated(self, opening: int | None, closing: int | None) -> bool:
        """Return whether the balances prove that reversals carry the mark they reverse."""
        booked, reversals = sum(self._booked_amounts()), 0
        for entry, amount in zip(self.entries, self._amounts, strict=True):
            reversals += amount if entry.booked and entry.reversal else 0
        if opening is None or closing is None or opening + booked == closing:
            return False
        if not reversals or opening + booked - 2 * reversals != closing:
            where = f"{self.name} ({self.where})"
            _refuse_unbalanced(opening, booked, closing, currency=self.currency, where=where)
        return True

    def _take_odd(self, at: int, entry: RawEntry, *, negated: bool) -> None:
        """Collect an entry's rare values; drop its payments if they do not add up to it."""
        more = self._odd[at] = self._more(entry)
        if not entry.details:
            return
        parts = []
        if all(each.amount and each.currency == entry.currency for each in entry.details):
            for detail in entry.details:
                signed = self._signed(detail) * (-1 if negated and detail.reversal else 1)
                parts.append(self._row(detail, amount=signed) | self._more(detail))
        listed = sum(row["amount"] for row in parts)
        # Charges deducted from the sum are given with each payment, or once with the entry.
        charged = sum(row["charges"] for row in parts) or more["charges"]
        if parts and self._amounts[at] in {listed, listed + charged}:
            self._parts[at] = parts
            return
        self._note(
            f"the payments listed in the entry of line {entry.line} do not come to it; the entry "
            "counts with all their words, the list does not."
        )
        every = (entry, *entry.details)
        for name in _WORDS:
            words = "\n".join(dict.fromkeys(filter(None, (getattr(one, name) for one in every))))
            more[name] = words[:TEXT_CHARACTERS_MAX]

    def _row(self, entry: RawEntry, *, amount: int) -> Row:
        row = {name: getattr(entry, name) for name in _TEXTS}
        status = BOOKED if entry.booked else PENDING
        nothing = {"charges": 0, "instructed_currency": "", "instructed_amount": None}
        return row | {"amount": amount, "status": status} | nothing

    def _more(self, entry: RawEntry) -> Row:
        """Return charges, and the amount instructed in another currency."""
        instructed = entry.instructed_currency
        charges = sum(
            self._units(amount) * (1 if credit else -1)
            for amount, of, credit in entry.charges
            if of == self.currency
        )
        ordered = self._units(entry.instructed_amount, currency=instructed) if instructed else None
        return {
            "charges": charges,
            "instructed_currency": instructed,
            "instructed_amount": ordered,
        }

    def _signed(self, of: RawEntry | RawBalance) -> int:
        amount = self._units(of.amount)
        return amount if of.credit else -amount

    def _units(self, text: str, *, currency: str = "") -> int:
        """Parse a bank's amount into minor units; trailing decimal zeros may be missing."""
        currency = currency or self.currency
        known = _NUMBER.fullmatch(text)
        if known is None:
            self._refuse(f"{redacted(text)!r} is no amount")
        try:
            fraction = (known["fraction"] or "").ljust(exponent(currency), "0")
            exact = f"{known['whole']}.{fraction}" if fraction else known["whole"]
            return parse_minor_units(exact, currency=currency)
        except AmountError as error:
            self._refuse(redacted(str(error)))

    def _note(self, what: str) -> None:
        self.notes.append(f"{redacted(self.name)}, {self.where}: {what}")

    def _refuse(self, problem: str) -> NoReturn:
        _refuse_statement(f"{self.name} ({self.where})", problem)


def _refuse_statement(where: str, problem: str) -> NoReturn:
    refuse(f"{where}:", f"{problem}; {ASK_AGAIN}")


def _refuse_unbalanced(
    opening: int, booked: int, closing: int, *, currency: str, where: str
) -> NoReturn:
    gap = abs(opening + booked - closing)
    began, moved, received, ended, apart = (
        f"{format_minor_units(amount, currency=currency)} {currency}"
        for amount in (opening, booked, opening + booked, closing, gap)
    )
    _refuse_statement(
        where,
        f"opening {began} and booked entries of {moved} come to {received}, but its closing "
        f"balance is {ended}: the two are {apart} apart",
    )


def _days(raw: RawStatement, *, booked: Sequence[RawEntry]) -> tuple[str, str]:
    """Return first and last day of a statement: as stated, else from its balances and entries."""
    if raw.from_day and raw.to_day:
        return raw.from_day, raw.to_day
    opened = raw.opening.day if raw.opening else ""
    closed = raw.closing.day if raw.closing else ""
    known = sorted({opened, closed, *(entry.booked_on for entry in booked)} - {""})
    return (known[0], closed or known[-1]) if known else ("", "")


def own_account(account: str, *, ibans: Collection[str]) -> str:
    """Return the IBAN of an account given as bank code and number, or with a currency appended."""
    for iban in ibans:
        if account in {iban, f"{iban}{account[len(iban) :]}"} and len(account) <= len(iban) + 3:
            return iban
        code, separator, number = account.partition("/")
        inner = iban[4:]
        digits = number.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ").lstrip("0")
        rest = inner.removeprefix(code).removesuffix(digits)
        fits = separator and code and digits and inner == f"{code}{rest}{digits}"
        if fits and not rest.strip("0"):
            return iban
    return account


def _table(
    file: FileBytes, *, rules: Rules, layout: FileLayout
) -> tuple[BankFacts, Iterable[pa.RecordBatch]]:
    """Read the statements of a table, each checked against its balances where it has them."""
    name = file.path.name
    raw = raw_of(file, columns_read=read_of(BANK, layout=layout), layout=layout)
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
    groups = frame.groupby(_OF_STATEMENT)
    frame["statement"] = groups.ngroup().astype("int64")
    frame["part"] = 0
    statements = [
        _statement_of_rows(own, key=key, name=name, sha256=file.sha256) for key, own in groups
    ]
    with_amount = frame.loc[frame["amount"].notna(), ENTRY_SCHEMA.names]
    entries = pa.Table.from_pandas(with_amount, schema=ENTRY_SCHEMA, preserve_index=False)
    rows = len(entries)
    source = table.source_file
    source = replace(source, rows_read=rows + source.rows_skipped, rows_accepted=rows)
    return BankFacts(tuple(statements), (), source), entries.to_batches()


def _statement_of_rows(rows: pd.DataFrame, *, key: Any, name: str, sha256: str) -> BankStatement:
    """Build a statement from its rows; `key` is IBAN, number, first and last day."""
    iban, number, first, last = key
    where = f"{name} (statement {redacted(number)} of account {redacted(iban)})"
    once: Mapping[str, list[Any]] = {
        of: rows[of].unique().tolist() for of in ("opening", "closing", "currency")
    }
    for of, cells in once.items():
        if len(cells) > 1:
            _refuse_statement(where, f"its rows have more than one {of}")
    entries = rows[rows["amount"].notna()]
    if len(entries) < len(rows) and len(rows) > 1:
        _refuse_statement(where, "it has entries, and a row that says it has none")
    if entries["entry_no"].duplicated().any():
        _refuse_statement(where, "it has two entries of one number (entry_no)")
    opening, closing = (
        None if pd.isna(once[of][0]) else int(once[of][0]) for of in ("opening", "closing")
    )
    currency = str(once["currency"][0])
    booked = entries.loc[entries["status"].eq(BOOKED), "amount"].tolist()
    if (opening is None) != (closing is None):
        _refuse_statement(where, "it has only one of its two balances")
    if opening is not None and closing is not None and opening + sum(booked) != closing:
        _refuse_unbalanced(opening, sum(booked), closing, currency=currency, where=where)
    if first > last:
        _refuse_statement(where, "its from_date is behind its to_date")
    return BankStatement(
        source=name,
        sha256=sha256,
        iban=iban,
        statement_no=number,
        currency=currency,
        from_date=first,
        to_date=last,
        opening=opening,
        closing=closing,
        booked=sum(booked),
        entries=len(booked),
    )
