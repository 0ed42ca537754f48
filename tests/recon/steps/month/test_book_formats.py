"""What each format asks for, refuses and splits; csv and plain text books are read back here."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from recon.config.rules import DatevExport, JournalExport
from recon.model.errors import UsageError
from recon.steps.month.book_formats import FORMATS, XERO_LINES_MAX, WantedBooks, book_files
from recon.steps.month.book_lines import BookLine
from recon.steps.month.datev_batch import note

AT = datetime(2026, 12, 1, 8, 30, tzinfo=UTC)
LAST, NEXT = date(2026, 11, 30), date(2026, 12, 1)
DATEV = DatevExport(consultant=29098, client=55003, fiscal_year_month=1, account_digits=4)
DECIMALS = {"EUR": 100, "JPY": 1, "KWD": 1000}
Sums = Counter[tuple[str, str]]
"""Account and currency -> debits less credits, in thousandths of the currency's whole unit."""


def pair(name: str, amount: int, *, currency: str = "EUR", text: str = "a text") -> list[BookLine]:
    """A journal of two lines: the books owe the clearing account a sale."""
    about = {"order_no": "o-1", "break_id": "b-1", "text": text}
    debit, credit = ("1360", "8400") if amount > 0 else ("8400", "1360")
    day = LAST if amount > 0 else NEXT
    return [
        BookLine("permanent", name, day, debit, abs(amount), 0, currency, **about),
        BookLine("permanent", name, day, credit, 0, abs(amount), currency, **about),
    ]


LINES = [
    *pair("b1-EUR-1", 12345),
    *pair("b2-EUR-1", -12005, text='=HYPERLINK("http://x";"y")'),
    *pair("b3-EUR-1", 7, text='two\nlines; and a "quote" \\ behind'),
    *pair("b4-JPY-1", 1200, currency="JPY", text="+1+cmd|' /C calc'!A0"),
    *pair("b5-JPY-1", -1, currency="JPY", text="@sum"),
    BookLine("accrual", "a-EUR", LAST, "4970", 1000, 0, "EUR"),
    BookLine("accrual", "a-EUR", LAST, "4971", 500, 0, "EUR"),
    BookLine("accrual", "a-EUR", LAST, "1360", 0, 1500, "EUR"),
]
KWD = [*pair("b6-KWD-1", 12345678, currency="KWD"), *pair("b7-KWD-1", -1, currency="KWD")]


def given(lines: Sequence[BookLine]) -> Sums:
    """What the lines come to."""
    sums: Sums = Counter()
    for line in lines:
        sums[line.account, line.currency] += (
            (line.debit - line.credit) * 1000 // DECIMALS[line.currency]
        )
    return sums


def thousandths(text: str) -> int:
    """An amount as a strict reader takes it: digits, one point, no grouping."""
    assert re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", text), text
    return int(Decimal(text) * 1000)


def rows_of(content: bytes) -> list[dict[str, str]]:
    """A comma separated file with a header; no cell is a formula or on two lines."""
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True))
    for cell in (cell for row in rows for cell in row.values()):
        assert re.fullmatch(r"-?[0-9.]+", cell) or cell[:1] not in {"=", "+", "-", "@"}, cell
        assert cell.isprintable()
    return rows


Entry = tuple[str, str, int]
"""Account, currency, thousandths."""


def sides(row: dict[str, str], *, debit: str, credit: str) -> int:
    """One of both is given."""
    assert (row[debit] == "") != (row[credit] == "")
    return thousandths(row[debit]) if row[debit] else -thousandths(row[credit])


def from_csv(content: bytes, _: str) -> Iterator[Entry]:
    """Our own columns."""
    for row in rows_of(content):
        date.fromisoformat(row["date"])
        yield row["account"], row["currency"], sides(row, debit="debit", credit="credit")


_STRING = r'"(?:[^"\\\n]|\\["\\])*"'
_BEANCOUNT = re.compile(
    rf"(?P<head>2026-(?:11-30|12-01) \* {_STRING})"
    rf"|  journal: (?P<journal>{_STRING})"
    r"|  Equity:Unmapped:(?P<account>[0-9]+)  (?P<amount>-?[0-9]+(?:\.[0-9]+)?) (?P<of>[A-Z]{3})"
)
_HLEDGER = re.compile(
    r"(?P<head>2026-(?:11-30|12-01) \* \((?P<journal>[^)]+)\)[^;]*)"
    r"|    (?P<account>[0-9]+)  (?P<amount>-?[0-9]+(?:\.[0-9]+)?) (?P<of>[A-Z]{3})"
)


def transactions(lines: Sequence[str], *, grammar: re.Pattern[str]) -> Iterator[Entry]:
    """Every line fits the grammar, every transaction adds up to nothing."""
    for block in "\n".join(lines).strip("\n").split("\n\n"):
        total = 0
        for number, line in enumerate(block.split("\n")):
            match = grammar.fullmatch(line)
            assert match, line
            assert (match["head"] is not None) == (number == 0), block
            if match["account"]:
                amount = thousandths(match["amount"])
                total += amount
                yield match["account"], match["of"], amount
        assert total == 0, block


def from_beancount(content: bytes, _: str) -> Iterator[Entry]:
    """Accounts of the books that are none of beancount's stand below one name."""
    yield from transactions(content.decode().split("\n"), grammar=_BEANCOUNT)


def from_hledger(content: bytes, _: str) -> Iterator[Entry]:
    """The decimal mark is said first."""
    first, *lines = content.decode().split("\n")
    assert first == "decimal-mark ."
    yield from transactions(lines, grammar=_HLEDGER)


READERS: dict[str, Callable[[bytes, str], Iterator[Entry]]] = {
    "csv": from_csv,
    "beancount": from_beancount,
    "hledger": from_hledger,
}


def written(lines: Sequence[BookLine], *, kind: str) -> dict[str, bytes]:
    """The files of November."""
    codes = JournalExport(tax_code="Tax Exempt", company_code="1000", datev=DATEV)
    return book_files(lines, wanted=WantedBooks("journals", kind, AT, codes))


@pytest.mark.parametrize("kind", READERS)
def test_each_format_reads_back_to_the_same_sum_per_account_and_currency(kind: str) -> None:
    """Same sums, same count of lines; KWD with its three decimals."""
    lines = [*LINES, *KWD]

    entries = [
        entry
        for name, content in written(lines, kind=kind).items()
        for entry in READERS[kind](content, name)
    ]

    sums: Sums = Counter()
    for account, currency, amount in entries:
        sums[account, currency] += amount
    assert sums == given(lines)
    assert len(entries) == len(lines)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_journal_that_does_not_balance_is_written_in_no_format(kind: str) -> None:
    """In one currency and on one day."""
    lines = [*LINES, BookLine("permanent", "off", LAST, "1360", 1, 0, "EUR")]

    with pytest.raises(UsageError, match=r"journal off does not balance: .* 0\.01 EUR"):
        written(lines, kind=kind)


@pytest.mark.parametrize("kind", ["csv", "xero", "netsuite", "datev"])
def test_a_journal_of_two_days_is_two_in_a_file(kind: str) -> None:
    """The later part has its day behind its number: no import takes both for one."""
    parts = [*pair("b1-EUR-1", 900)]
    parts += [replace(line, day=NEXT) for line in pair("b1-EUR-1", 300)]

    text = b"".join(written(parts, kind=kind).values()).decode("cp1252")

    assert text.count("b1-EUR-1-2026-12-01") == text.count("b1-EUR-1") / 2 > 0


def test_two_journals_of_a_break_have_two_references_in_sap() -> None:
    """Their numbers begin alike for as long as a reference may be; each is as long at the most."""
    names = [f"0123456789abcdef-{currency}-{n}" for currency in ("EUR", "USD") for n in (1, 2)]
    lines = [line for name in names for line in pair(name, 500)]

    (content,) = written(lines, kind="sap-csv").values()

    references = {row["Reference"] for row in rows_of(content)}
    assert len(references) == len(names)
    assert {len(reference) for reference in references} == {16}


def test_a_line_on_both_sides_is_refused() -> None:
    """It would balance by itself, and stand in no format that has one amount a line."""
    with pytest.raises(UsageError, match="on both sides"):
        written([BookLine("permanent", "both", LAST, "1360", 1, 1, "EUR")], kind="xero")


def test_the_same_lines_are_the_same_bytes() -> None:
    """However they are ordered: a file that was lost is written again as it was."""
    for kind in FORMATS:
        turned = [line for name in ("b3-EUR-1", "b1-EUR-1") for line in _of(name)]
        assert written(turned, kind=kind) == written(
            [*_of("b1-EUR-1"), *_of("b3-EUR-1")], kind=kind
        )


def _of(name: str) -> list[BookLine]:
    return [line for line in LINES if line.journal_id == name]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (KWD, r"0.001 KWD does not fit DATEV's amounts|12345.678 KWD does not fit"),
        (
            [
                BookLine("permanent", "x", LAST, "Assets:Bank", 1, 0, "EUR"),
                BookLine("permanent", "x", LAST, "1360", 0, 1, "EUR"),
            ],
            "'Assets:Bank' is no account of DATEV's books with 4 digits",
        ),
    ],
)
def test_what_datev_cannot_hold_is_refused_by_name(lines: list[BookLine], sentence: str) -> None:
    """A third decimal, and accounts that are no numbers: nothing is rounded or renamed."""
    with pytest.raises(UsageError, match=sentence):
        written(lines, kind="datev")


def test_datev_has_a_file_for_each_month_and_currency() -> None:
    """A row has a day and no year: the reversal of the next month stands in a file of its own."""
    assert sorted(written(LINES, kind="datev")) == [
        "EXTF_journals-EUR-2026-11.csv",
        "EXTF_journals-EUR-2026-12.csv",
        "EXTF_journals-JPY-2026-11.csv",
        "EXTF_journals-JPY-2026-12.csv",
    ]


def test_datev_names_journal_and_order_in_its_notes_from_the_first_on() -> None:
    """An order in the second of twenty would be looked for in the first."""
    (content,) = written(pair("b1-EUR-1" * 9, 100), kind="datev").values()

    _, head, row, *_ = csv.reader(content.decode("cp1252").split("\r\n"), delimiter=";")
    told = dict(zip(head, row, strict=True))
    notes = [told[name] for number in (1, 2, 3) for name in note(number)]
    assert notes == ["Journal", "b1-EUR-1" * 9, "Order", "o-1", "", ""]


@pytest.mark.parametrize("kind", ["beancount", "hledger"])
def test_a_journal_is_named_by_the_text_of_its_first_line(kind: str) -> None:
    first, second = pair("b1-EUR-1", 100)

    (content,) = written([replace(first, text="Refund of o-1"), second], kind=kind).values()

    assert "Refund of o-1" in content.decode()


def test_xero_gets_no_more_lines_than_it_takes_and_journals_stay_whole() -> None:
    """151 journals of two lines are two files."""
    many = [line for number in range(151) for line in pair(f"n{number:03}-EUR-1", 100)]

    files = written(many, kind="xero")

    counts = [len(rows_of(content)) for content in files.values()]
    assert counts == [XERO_LINES_MAX, 2]


def test_accounts_of_beancount_keep_their_names_and_two_never_become_one() -> None:
    """Another one stands below Equity:Unmapped, which no books have opened."""
    lines = [
        BookLine("permanent", "x", LAST, "Assets:Clearing", 1, 0, "EUR"),
        BookLine("permanent", "x", LAST, "Sales", 0, 1, "EUR"),
    ]
    (text,) = written(lines, kind="beancount").values()
    assert b"  Assets:Clearing  0.01 EUR\n  Equity:Unmapped:Sales  -0.01 EUR\n" in text

    alike = [
        BookLine("permanent", "x", LAST, "13 60", 1, 0, "EUR"),
        BookLine("permanent", "x", LAST, "13.60", 0, 1, "EUR"),
    ]
    with pytest.raises(UsageError, match="would both be Equity:Unmapped:13-60"):
        written(alike, kind="beancount")


@pytest.mark.parametrize("account", ["(1360)", "1360  x", "13;60", ""])
def test_an_account_that_hledger_reads_otherwise_is_refused(account: str) -> None:
    """Brackets are virtual postings, two spaces end an account, a semicolon begins a comment."""
    lines = [
        BookLine("permanent", "x", LAST, account, 1, 0, "EUR"),
        BookLine("permanent", "x", LAST, "1361", 0, 1, "EUR"),
    ]
    with pytest.raises(UsageError, match="is no name of hledger's"):
        written(lines, kind="hledger")


def test_another_format_is_refused_with_those_that_there_are() -> None:
    """By name."""
    with pytest.raises(UsageError, match="--format is one of csv, datev"):
        written(LINES, kind="qif")


def test_xero_takes_the_tax_rate_that_is_declared_for_each_account() -> None:
    """The account's own, else the one of all; without one the account is named."""
    codes = JournalExport(tax_code="Tax Exempt", tax_codes={"8400": "20% (VAT on Income)"})
    wanted = WantedBooks("x", "xero", AT, codes=codes)
    (content,) = book_files(pair("b1-EUR-1", 5), wanted=wanted).values()
    rates = {row["*AccountCode"]: row["*TaxRate"] for row in rows_of(content)}

    assert rates == {"1360": "Tax Exempt", "8400": "20% (VAT on Income)"}
    bare = WantedBooks("x", "xero", AT, codes=JournalExport(tax_codes={"8400": "V0"}))
    with pytest.raises(UsageError, match="none is declared for 1360; nothing is written"):
        book_files(LINES[:2], wanted=bare)


def test_sap_and_netsuite_name_the_company_that_is_declared() -> None:
    """SAP books nothing without one; NetSuite has the column only where there is one."""
    codes = JournalExport(tax_codes={"8400": "A0"}, company_code="1000")
    (sap,) = book_files(LINES[:2], wanted=WantedBooks("x", "sap-csv", AT, codes=codes)).values()
    (suite,) = book_files(LINES[:2], wanted=WantedBooks("x", "netsuite", AT, codes=codes)).values()
    (single,) = book_files(LINES[:2], wanted=WantedBooks("x", "netsuite", AT)).values()

    assert {row["Company Code"] for row in rows_of(sap)} == {"1000"}
    assert {row["G/L Account"]: row["Tax Code"] for row in rows_of(sap)} == {
        "1360": "",
        "8400": "A0",
    }
    assert {row["Subsidiary"] for row in rows_of(suite)} == {"1000"}
    assert "Subsidiary" not in rows_of(single)[0]
    with pytest.raises(UsageError, match="company code, and none is declared; nothing is written"):
        book_files(LINES, wanted=WantedBooks("x", "sap-csv", AT))


def test_a_character_that_datev_cannot_read_is_named_with_its_row() -> None:
    """No question mark stands for it, and what cp1252 has goes through."""
    fine = book_files(pair("b1-EUR-1", 5, text="Größe €"), wanted=of("datev"))
    assert "Größe €".encode("cp1252") in next(iter(fine.values()))

    lines = [*pair("b1-EUR-1", 5), *pair("b2-EUR-1", 6, text="Łódź")]
    with pytest.raises(UsageError, match=r"row 4 of the batch, journal b2-EUR-1: .*U\+0141 \(Ł\)"):
        book_files(lines, wanted=of("datev"))


def of(kind: str) -> WantedBooks:
    """A format with all that it may need."""
    return WantedBooks(
        "x", kind, AT, JournalExport(tax_code="V0", company_code="1000", datev=DATEV)
    )
