"""Strict readers of the files that books import, by what their makers publish.

Nothing of the product is imported: what a writer got wrong must not be read the same wrong way.
Each ends with `RefusedError` at the first byte that is not as it is published.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import NamedTuple

DECIMALS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}
THOUSANDTHS_DECIMALS = 3
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class RefusedError(ValueError):
    """A file that is not as its maker publishes it."""


class Entry(NamedTuple):
    """One account moved by one journal."""

    journal: str
    day: date
    account: str
    currency: str
    amount: int
    """Thousandths of the currency's whole unit; debit positive."""
    text: str


def ensure(holds: object, what: object) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise RefusedError(str(what))


def match_of(pattern: re.Pattern[str] | str, text: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text)
    if match is None:
        raise RefusedError(text)
    return match


def day_of(year: str, month: str, day: str) -> date:
    try:
        return date(int(year), int(month), int(day))
    except ValueError as error:
        msg = f"no day: {year} {month} {day}"
        raise RefusedError(msg) from error


def lines_of(content: bytes, *, encoding: str) -> list[str]:
    """Lines that each end with CR LF, and no other control character anywhere."""
    try:
        *lines, rest = content.decode(encoding).split("\r\n")
    except UnicodeDecodeError as error:
        raise RefusedError(encoding) from error
    ensure(rest == "", f"the last line has no end: {rest!r}")
    for line in lines:
        ensure(line.isprintable(), f"a control character: {line!r}")
    return lines


def amount_in(text: str, *, currency: str, sign: str = "") -> int:
    """All decimals of the currency, no grouping, never 0."""
    decimals = DECIMALS[currency]
    fraction = rf"\.[0-9]{{{decimals}}}" if decimals else ""
    ensure(re.fullmatch(rf"{sign}(?:0|[1-9][0-9]*){fraction}", text), f"{text!r} {currency}")
    amount = int(text.replace(".", "")) * 10 ** (THOUSANDTHS_DECIMALS - decimals)
    ensure(amount, f"an amount of nothing: {text!r}")
    return amount


def balanced(entries: Sequence[Entry], what: str) -> Sequence[Entry]:
    """The lines of one journal: one day, one currency, nothing left over."""
    days = {(entry.day, entry.currency) for entry in entries}
    ensure(len(days) == 1, f"{what} is of several days or currencies: {days}")
    ensure(sum(entry.amount for entry in entries) == 0, f"{what} does not balance")
    return entries


_CELL = r'"(?:[^"]|"")*"|[^",]*'
_ROW = re.compile(rf"(?:{_CELL})(?:,(?:{_CELL}))*")


def comma_rows(content: bytes, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """RFC 4180 in UTF-8 without a mark, exactly these columns, no cell that a spreadsheet runs."""
    head, *lines = lines_of(content, encoding="utf-8")
    ensure(head == ",".join(columns), f"columns {head!r}")
    ensure(lines, "no line")
    for line in lines:
        ensure(_ROW.fullmatch(line), f"quotes: {line!r}")
        cells = [
            cell[1:-1].replace('""', '"') if cell.startswith('"') else cell
            for cell in re.findall(rf"(?:^|(?<=,))({_CELL})(?=,|$)", line)
        ]
        ensure(len(cells) == len(columns), f"{len(cells)} cells: {line!r}")
        for cell in cells:
            number = re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", cell)
            ensure(number or cell[:1] not in {*"=+-@"}, f"a formula: {cell!r}")
        yield dict(zip(columns, cells, strict=True))


def named(row: Mapping[str, str], *columns: str) -> None:
    for column in columns:
        ensure(row[column], f"{column} is empty: {row}")


XERO = ("*Narration", "*Date", "Description", "*AccountCode", "*TaxRate", "*Amount")
XERO_LINES_MAX = 300


def from_xero(content: bytes, name: str) -> Iterator[Entry]:
    """Manual journals: lines of one narration and date are one journal, debits are positive."""
    currency = match_of(r".+-xero-([A-Z]{3})-[1-9][0-9]*\.csv", name)[1]
    journals: defaultdict[str, list[Entry]] = defaultdict(list)
    for row in comma_rows(content, XERO):
        named(row, "*Narration", "*AccountCode", "*TaxRate")
        written = match_of(r"([0-3][0-9]) ([A-Z][a-z]{2}) (20[0-9]{2})", row["*Date"])
        ensure(written[2] in MONTHS, f"month {written[2]!r}")
        day = day_of(written[3], str(MONTHS.index(written[2]) + 1), written[1])
        amount = amount_in(row["*Amount"], currency=currency, sign="-?")
        journal = row["*Narration"]
        entry = Entry(journal, day, row["*AccountCode"], currency, amount, row["Description"])
        journals[journal].append(entry)
    ensure(sum(map(len, journals.values())) <= XERO_LINES_MAX, "more lines than Xero takes")
    for journal, entries in journals.items():
        yield from balanced(entries, journal)


NETSUITE = ("External ID", "Date", "Currency", "Account", "Debit", "Credit", "Memo", "Line Memo")


def from_netsuite(content: bytes, _: str) -> Iterator[Entry]:
    """Journal entries: lines of one external id belong together, one of debit and credit a line."""
    several = content.startswith(b"Subsidiary,")
    journals: defaultdict[str, list[Entry]] = defaultdict(list)
    for row in comma_rows(content, ("Subsidiary", *NETSUITE) if several else NETSUITE):
        named(row, "External ID", "Account", "Memo", *(("Subsidiary",) if several else ()))
        written = match_of(r"(20[0-9]{2})-([01][0-9])-([0-3][0-9])", row["Date"])
        ensure(row["Currency"] in DECIMALS, row["Currency"])
        ensure((row["Debit"] == "") != (row["Credit"] == ""), f"not one side: {row}")
        amount = amount_in(row["Debit"] or row["Credit"], currency=row["Currency"])
        entry = Entry(
            *(row["External ID"], day_of(*written.groups()), row["Account"]),
            *(row["Currency"], amount if row["Debit"] else -amount, row["Line Memo"]),
        )
        journals[entry.journal].append(entry)
    for journal, entries in journals.items():
        yield from balanced(entries, journal)


SAP = (
    *("Document", "Company Code", "Document Type", "Document Date", "Posting Date", "Currency"),
    *("Posting Key", "G/L Account", "Amount", "Tax Code", "Assignment", "Reference", "Item Text"),
)
SAP_CHARACTERS_MAX = {"Assignment": 18, "Reference": 16, "Item Text": 50}
SAP_SIGNS = {"40": 1, "50": -1}
_YYYYMMDD = r"(20[0-9]{2})([0-9]{2})([0-9]{2})"


def from_sap(content: bytes, _: str) -> Iterator[Entry]:
    """General ledger documents, numbered from 1; posting key 40 is a debit, 50 a credit."""
    documents: list[list[Entry]] = []
    for row in comma_rows(content, SAP):
        named(row, "Company Code", "G/L Account", "Reference")
        ensure(row["Document Type"] == "SA", row["Document Type"])
        ensure(row["Posting Key"] in SAP_SIGNS, row["Posting Key"])
        for column, most in SAP_CHARACTERS_MAX.items():
            ensure(len(row[column]) <= most, f"{column} is longer than {most}: {row[column]!r}")
        written = match_of(_YYYYMMDD, row["Posting Date"])
        ensure(row["Document Date"] == written[0], f"two dates: {row}")
        day = day_of(*written.groups())
        amount = amount_in(row["Amount"], currency=row["Currency"]) * SAP_SIGNS[row["Posting Key"]]
        if row["Document"] == str(len(documents) + 1):
            documents.append([])
        ensure(row["Document"] == str(len(documents)), f"document {row['Document']}")
        documents[-1].append(
            Entry(
                *(row["Reference"], day, row["G/L Account"]),
                *(row["Currency"], amount, row["Item Text"]),
            )
        )
    for number, entries in enumerate(documents, start=1):
        yield from balanced(entries, f"document {number}")


OWN = (
    *("kind", "journal_id", "date", "account", "debit", "credit", "currency"),
    *("order_no", "break_id", "text"),
)


def from_csv(content: bytes, _: str) -> Iterator[Entry]:
    """Our own columns: one of debit and credit a line."""
    journals: defaultdict[str, list[Entry]] = defaultdict(list)
    for row in comma_rows(content, OWN):
        written = match_of(r"(20[0-9]{2})-([01][0-9])-([0-3][0-9])", row["date"])
        ensure((row["debit"] == "") != (row["credit"] == ""), f"not one side: {row}")
        amount = amount_in(row["debit"] or row["credit"], currency=row["currency"])
        sided = amount if row["debit"] else -amount
        entry = (day_of(*written.groups()), row["account"], row["currency"], sided, row["text"])
        journals[row["journal_id"]].append(Entry(row["journal_id"], *entry))
    for journal, entries in journals.items():
        yield from balanced(entries, journal)


def _text(most: int) -> str:
    return rf'"(?:[^"\x00-\x1f]|""){{0,{most}}}"'


_DAY = r"(?:(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])20\d\d)?"
_TAX = r"(?:\d{1,2},\d{2})?"
_DATEV_AMOUNT = r"(?!0+,00)\d{1,10},\d{2}"
_DATEV_ACCOUNT = r"(?!0+;)\d{1,9}"
DATEV_FIELDS = (
    *(_DATEV_AMOUNT, '"[SH]"', '"[A-Z]{3}"', r"(?:[1-9]\d{0,3},\d{2,6})?"),
    *(rf"(?:{_DATEV_AMOUNT})?", '"(?:[A-Z]{3})?"', _DATEV_ACCOUNT, _DATEV_ACCOUNT, r'"(?:\d{4})?"'),
    *(r"(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])", r'"[A-Za-z0-9_$%&*+/-]{0,36}"'),
    *(r'"[A-Za-z0-9_$%&*+/-]{0,12}"', r"(?:[1-9]\d{0,7},\d{2})?", _text(60)),
    *("[01]?", r'"\w{0,9}"', r"(?:\d{3})?", r"(?:\d{2})?", "[01]?", _text(210)),
    *((_text(20), _text(210)) * 8),
    *(_text(36), _text(36), r"(?:\d{12},\d{4})?", _text(15), _TAX, '"[IKPS]?"'),
    *(r"(?:[1-9]\d{0,2})?", r"\d{0,3}", r"\d?", r"\d{0,2}", r"\d{0,3}"),
    *((_text(20), _text(210)) * 20),
    *(r"\d{0,8}", r"(?:\d{1,8},\d{2})?", r"\d{0,2}", _text(10), r"(?:20\d\d)?", _DAY, r"\d?"),
    *(_text(30), '"(?:[A-Z]{2})?"', r"\d{0,4}", '"(?:[A-Z]{2})?"', r"\d{0,3}", _TAX),
    *(r"(?:\d{4,8})?", '"(?:[A-Z]{2})?"', _text(36), _DAY, _text(35), "[01]?", _text(76)),
    *(r"(?:\d{4})?", _text(11), _text(20), _DAY, _text(30), r"\d{0,2}", "[01]", _DAY, _DAY, _DAY),
    *('"[01G]?"', _TAX, '"(?:[A-Z]{2})?"', _text(50), "[1-5]?", _text(15), _TAX, r"(?:\d{1,9})?"),
)
"""The 125 fields of a Buchungsstapel of version 13, one by one, as developer.datev.de has them;
Festschreibung (114) must be given: DATEV locks a batch at once whose rows leave it open."""
_DATEV_ROW = re.compile("".join(rf"({field});" for field in DATEV_FIELDS))
_DATEV_HEAD = re.compile(
    r'"EXTF";700;21;"Buchungsstapel";13;20\d{15};;"[A-Z]{2}";"";"";'
    r"(?P<consultant>[1-9]\d{3,6});(?P<client>[1-9]\d{0,4});(?P<year>20\d{6});(?P<digits>[4-8]);"
    r'(?P<first>20\d{6});(?P<last>20\d{6});"[^"]{0,30}";"";1;0;(?P<locked>[01]);'
    r'"(?P<currency>[A-Z]{3})";;"";;;"";;;"";""'
)
DATEV_COLUMNS_BY_NUMBER = {
    1: "Umsatz (ohne Soll/Haben-Kz)",
    2: "Soll/Haben-Kennzeichen",
    3: "WKZ Umsatz",
    7: "Konto",
    8: "Gegenkonto (ohne BU-Schlüssel)",
    10: "Belegdatum",
    11: "Belegfeld 1",
    14: "Buchungstext",
    20: "Beleglink",
    36: "Beleginfo - Inhalt 8",
    39: "Kost-Menge",
    48: "Zusatzinformation - Art 1",
    87: "Zusatzinformation- Inhalt 20",
    95: "Auftragsnummer",
    114: "Festschreibung",
    118: "Generalumkehr (GU)",
    125: "Abw. Skontokonto",
}
DATEV_ROWS_MAX = 99_999


def from_datev(content: bytes, name: str) -> Iterator[Entry]:
    """A Buchungsstapel in Windows-1252: head, names, rows; the year is that of the fiscal year."""
    ensure(re.fullmatch(r"EXTF_.+\.csv", name), name)
    head, columns, *rows = lines_of(content, encoding="cp1252")
    fields = match_of(_DATEV_HEAD, head).groupdict()
    year, first, last = (
        day_of(*match_of(_YYYYMMDD, fields[key]).groups()) for key in ("year", "first", "last")
    )
    ensure(year.day == 1 and year <= first <= last, f"fiscal year {year}, batch {first} to {last}")
    ensure((last.year - year.year) * 12 + last.month - year.month < 12, f"{last} is a year later")
    names = columns.split(";")
    ensure(len(names) == len(DATEV_FIELDS), f"{len(names)} columns")
    for number, column in DATEV_COLUMNS_BY_NUMBER.items():
        ensure(names[number - 1] == column, f"column {number} is {names[number - 1]!r}")
    ensure(0 < len(rows) <= DATEV_ROWS_MAX, f"{len(rows)} rows")
    for row in rows:
        cells = match_of(_DATEV_ROW, f"{row};").groups()
        yield from _from_datev_row(cells, head=fields, days=(year, first, last))


def _from_datev_row(
    cells: Sequence[str], *, head: Mapping[str, str], days: tuple[date, date, date]
) -> Iterator[Entry]:
    year, first, last = days
    cell = dict(enumerate((_unquoted(each) for each in cells), start=1))
    _ensure_base(cell, base=head["currency"])
    ensure(cell[114] == head["locked"], "the row is locked otherwise than its batch")
    for account in (cell[7], cell[8]):
        ensure(len(account) <= int(head["digits"]) + 1, f"account {account} is too long")
    written, month = cell[10][:2], cell[10][2:]
    day = day_of(str(year.year + (int(month) < year.month)), month, written)
    ensure(first <= day <= last, f"{day} is not of the batch")
    notes: defaultdict[str, list[str]] = defaultdict(list)
    for number in range(48, 88, 2):
        ensure(bool(cell[number]) == bool(cell[number + 1]), "a note with one half")
        notes[cell[number]].append(cell[number + 1])
    journal = "".join(notes["Journal"]) or cell[11]
    text = "".join(notes["Text"]) or cell[14]
    ensure(cell[14].rstrip() == text[: len(cell[14])].rstrip(), f"{cell[14]!r} begins no {text!r}")
    thousandths = int(cell[1].replace(",", "")) * 10
    signed = thousandths if cell[2] == "S" else -thousandths
    yield Entry(journal, day, cell[7], cell[3], signed, text)
    yield Entry(journal, day, cell[8], cell[3], -signed, text)


def _ensure_base(cell: Mapping[int, str], *, base: str) -> None:
    """Rate, amount and currency of the ledger: all three, or none, of the batch's own currency."""
    given = [bool(cell[number]) for number in (4, 5, 6)]
    ensure(all(given) or not any(given), f"a rate without its amount: {cell[4]} {cell[5]}")
    ensure((cell[6] or cell[3]) == base, f"currency {cell[3]}, {cell[6]}")
    if all(given):
        ensure(cell[3] != base, f"a rate of {base} in {base}")
        amount, rate, based = (Fraction(cell[number].replace(",", ".")) for number in (1, 4, 5))
        ensure(abs(amount / rate - based) <= Fraction(1, 200), f"{amount} at {rate} is not {based}")


def datev_keys(content: bytes, name: str) -> list[tuple[str, str, str]]:
    """Account, contra account and tax key of each row of a Buchungsstapel that is read whole."""
    ensure([*from_datev(content, name)], "no row")
    rows = lines_of(content, encoding="cp1252")[2:]
    cells = [match_of(_DATEV_ROW, f"{row};").groups() for row in rows]
    return [(each[6], each[7], _unquoted(each[8])) for each in cells]


def _unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


READERS: Mapping[str, Callable[[bytes, str], Iterator[Entry]]] = {
    "datev": from_datev,
    "xero": from_xero,
    "netsuite": from_netsuite,
    "sap-csv": from_sap,
    "csv": from_csv,
}


def sums_of(entries: Sequence[Entry]) -> Counter[tuple[str, str]]:
    """Account and currency -> what all entries come to."""
    sums: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        sums[entry.account, entry.currency] += entry.amount
    return sums
