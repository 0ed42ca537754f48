"""What books are handed says what the journals say, to the letter; what each format refuses."""

import csv
import hashlib
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from recon.config.rules import DatevExport, JournalExport
from recon.model.errors import UsageError
from recon.month.journal_formats import FORMATS, JournalFiles, JournalLine, journal_files, note
from tests.recon.steps.month.journal_readers import (
    DECIMALS,
    NETSUITE,
    READERS,
    SAP,
    SAP_CHARACTERS_MAX,
    XERO,
    Entry,
    RefusedError,
    comma_rows,
    datev_keys,
    sums_of,
)

AT = datetime(2026, 12, 1, 8, 30, tzinfo=UTC)
LAST, NEXT = date(2026, 11, 30), date(2026, 12, 1)
DATEV = DatevExport(consultant=29098, client=55003, fiscal_year_month=7, account_digits=4)
CODES = JournalExport(tax_code="V0", company_code="1000", datev=DATEV)
LONG = 'Auszahlung "Müller & Söhne"; Rückstellung für Größe 42, siehe Anhang · ' * 9
"""More than two notes of DATEV's hold."""


def journal(name, *accounts, currency="EUR", text="", day=LAST):
    """Its lines, debits positive, in minor units."""
    return [
        JournalLine(
            *("permanent", name, day, account, max(amount, 0), max(-amount, 0), currency),
            text=text,
        )
        for account, amount in accounts
    ]


BOOKS = [
    *journal("b01-EUR-1", ("1360", 12345), ("8400", -12345), text="Größe 42, „schön“, 5 €"),
    *journal("b02-EUR-1", ("1360", 7), ("8400", -7), text='he said "now"; then, or | later'),
    *journal("b03-EUR-1", ("10000", 99), ("1360", -99), text=LONG.strip()),
    *journal("b04-EUR-1", ("8400", 12005), ("1360", -12005), text='=HYPERLINK("http://x";"y")'),
    *journal("b05_x.y-EUR-1", ("1200", 1), ("1360", -1), text='"'),
    *journal("b06-JPY-1", ("1360", 1200), ("8400", -1200), currency="JPY", text="+1, -1"),
    *journal("b07-KWD-1", ("1360", 12340), ("8400", -12340), currency="KWD", text="dinar"),
    *journal("b09-EUR-1", ("1360", 123456789012), ("8400", -123456789012), text="ten digits"),
    *journal("reserve-USD", ("1370", 50001), ("1360", -50001), currency="USD", text="reserve"),
    *journal("fees-EUR", ("4970", 1000), ("4971", 500), ("1360", -1500), text="Gebühren, Nov."),
    *journal("fees-EUR-r", ("1360", 1500), ("4970", -1000), ("4971", -500), day=NEXT, text="@ r"),
    *journal("b10-EUR-1", ("1360", 7), ("8400", -7), text='two\nlines; and a "quote" \\ behind'),
    *journal("card-EUR", ("1360", 600), ("1361", 400), ("8400", -700), ("8401", -300), text="x"),
]
THIRD_DECIMAL = journal("b08-KWD-1", ("1360", 12345), ("8400", -12345), currency="KWD")


def all_journals(kind):
    """All that the format can hold."""
    return BOOKS if kind == "datev" else [*BOOKS, *THIRD_DECIMAL]


def written(lines, *, kind, codes=CODES):
    return journal_files(lines, layout=JournalFiles("journals", kind, AT, codes))


def read(files, *, kind):
    return [entry for name, content in files.items() for entry in READERS[kind](content, name)]


def shown(text):
    return f"'{text}" if text[:1] in {*"=+-@"} else text


def expected(line, *, kind):
    """A line as the format has room for it."""
    thousandths = line.amount * 10 ** (3 - DECIMALS[line.currency])
    name, text = line.journal_id, " ".join(line.text.split())
    if kind == "hledger":
        text = text.replace(";", ",")
    elif kind != "beancount":
        text = shown(text)
    if kind == "sap-csv":
        room = SAP_CHARACTERS_MAX["Reference"]
        digits = hashlib.sha256(name.encode()).hexdigest()[:8]
        name = name if len(name) <= room else f"{name[: room - 9]}~{digits}"
        text = text[: SAP_CHARACTERS_MAX["Item Text"]]
    return Entry(name, line.day, line.account, line.currency, thousandths, text)


def by_journal(entries):
    """Journal, day, account, currency and text -> what it moved there."""
    moved: Counter[tuple[str, ...]] = Counter()
    for entry in entries:
        moved[entry.journal, str(entry.day), entry.account, entry.currency, entry.text] += (
            entry.amount
        )
    return moved


@pytest.mark.parametrize("kind", READERS)
def test_each_file_says_the_sums_dates_and_texts_of_the_journals(kind):
    wanted = [expected(line, kind=kind) for line in all_journals(kind)]

    entries = read(written(all_journals(kind), kind=kind), kind=kind)

    assert sums_of(entries) == sums_of(wanted)
    assert by_journal(entries) == by_journal(wanted)


SPOILT = {
    "datev": [
        *((b'"EXTF"', b'"EXTX"'), (b";700;21;", b";510;21;"), (b";13;2026", b";12;2026")),
        *((b"29098;55003", b"29098;0"), (b";20260701;4;", b";20261201;4;")),
        *((b";20260701;4;", b";20250701;4;"), (b";20260701;4;", b";;4;")),
        *((b";20260701;4;", b";20260701;3;"), (b"20261130", b"20261131")),
        *((b"0;0;", b"0;1;"), (b"Skonto;Buchungstext", b"Buchungstext;Skonto")),
        *((b"\r\n123,45;", b"\r\n-123,45;"), (b"\r\n123,45;", b"\r\n123.45;")),
        *((b"\r\n123,45;", b"\r\n0,00;"), (b"\r\n123,45;", b"\r\n1.123,45;")),
        *((b'"S";"EUR"', b'"D";"EUR"'), (b'"S";"EUR"', b'"S";"USD"'), (b'"S";', b"S;")),
        *((b";1360;8400;", b";1360;0000;"), (b";1360;8400;", b";136000;8400;")),
        *((b'"";3011;', b'"";3111;'), (b'"";3011;', b'"";3010;'), (b'"";3011;', b'"";30112026;')),
        *((b'"b01-EUR-1"', b'"b01 EUR"'), (b'""now""', b'"now"'), (b"now", b"n\now")),
        *((b";0;;;;", b";;;;;"), (b";0;;;;", b";1;;;;"), (b'"Text";"', b'"";"')),
        *((b"\r\n0,07;", b"\r\n;"), (b";\r\n", b";;\r\n"), (b"\r\n", b"\n")),
    ],
    "xero": [
        *((b"*Narration,", b"Narration,"), (b"123.45", b"123.46"), (b"123.45", b"123,45")),
        *((b"123.45", b"123.450"), (b"30 Nov 2026", b"30/11/2026"), (b"30 Nov", b"31 Nov")),
        *((b",V0,", b",,"), (b",1360,", b",,"), (b'""now""', b'"now"'), (b"now", b"n\now")),
        *((b"'=HYP", b"=HYP"), (b"\r\n", b"\n"), (b"Gr\xc3\xb6", b"Gr\xf6"), (b",V0,123", b",123")),
    ],
    "netsuite": [
        *((b"Line Memo", b"Memo"), (b"123.45", b"123.46"), (b",123.45,,", b",123.45,123.45,")),
        *((b",123.45,,", b",,,"), (b",123.45,,", b",-123.45,,"), (b"2026-11-30", b"30.11.2026")),
        *((b"2026-11-30", b"2026-11-31"), (b",EUR,", b",EUX,"), (b",1360,", b",,")),
        *((b"1000,b01-EUR-1", b"1000,"), (b"1000,b01", b",b01"), (b'""now""', b'"now"')),
        *((b"'=HYP", b"=HYP"), (b"\r\n", b"\n"), (b"Gr\xc3\xb6", b"Gr\xf6")),
    ],
    "sap-csv": [
        *((b"Posting Key,", b"Key,"), (b"123.45", b"123.46"), (b"123.45", b"-123.45")),
        *((b"\r\n2,1000,", b"\r\n3,1000,"), (b"\r\n2,1000,", b"\r\n1,1000,")),
        *((b"1,1000,", b"1,,"), (b",SA,", b",KR,"), (b",20261130,20261130,", b",20261130,,")),
        *((b",20261130,20261130,", b",20261131,20261131,"), (b",40,", b",50,"), (b",40,", b",41,")),
        *((b",8400,", b",,"), (b'""now""', b'"now"'), (b"'=HYP", b"=HYP"), (b"\r\n", b"\n")),
        *((b"b01-EUR-1,", b"b01-EUR-1-and-more,"), (b"reserve\r\n", b"reserve " * 9 + b"\r\n")),
    ],
}
"""What stands in a file, and what is to be refused in its place."""


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [(kind, good, bad) for kind, pairs in SPOILT.items() for good, bad in pairs],
)
def test_a_spoilt_file_is_refused_by_its_reader(kind, good, bad):
    """Each reader can fail, else what it reads proves nothing."""
    files = written(all_journals(kind), kind=kind)
    name = next(name for name, content in files.items() if good in content)

    with pytest.raises(RefusedError):
        read({name: files[name].replace(good, bad, 1)}, kind=kind)


RATES = {"2026-11": {"USD": Decimal("1.085"), "JPY": Decimal("162.345678"), "KWD": Decimal(4)}}
BASED = DATEV.model_copy(update={"base_currency": "EUR", "rates": RATES})


def based(lines):
    return written(lines, kind="datev", codes=CODES.model_copy(update={"datev": BASED}))


def test_books_in_one_currency_are_told_each_amount_in_it_at_the_rate_of_the_month():
    """Rate, amount and currency of the ledger in every row of another currency, and in no other."""
    files = based(BOOKS)

    read_back = read(files, kind="datev")

    assert sums_of(read_back) == sums_of([expected(line, kind="datev") for line in BOOKS])
    rows = {
        currency: files[f"EXTF_journals-{currency}-2026-11.csv"].decode("cp1252").split("\r\n")[2]
        for currency in ("EUR", "JPY", "KWD", "USD")
    }
    cells = {currency: row.split(";")[:6] for currency, row in rows.items()}
    assert cells["USD"] == ["500,01", '"S"', '"USD"', "1,085", "460,84", '"EUR"']
    assert cells["JPY"] == ["1200,00", '"S"', '"JPY"', "162,345678", "7,39", '"EUR"']
    assert cells["KWD"] == ["12,34", '"S"', '"KWD"', "4,00", "3,09", '"EUR"']
    assert cells["EUR"][3:] == ["", "", '""']


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b";1,085;460,84;", b";1,085;460,85;"),
        (b";1,085;460,84;", b";0,922;460,84;"),
        (b";1,085;460,84;", b";1,085;;"),
        (b';460,84;"EUR"', b';460,84;"USD"'),
        (b';460,84;"EUR"', b';460,84;""'),
    ],
)
def test_a_spoilt_rate_is_refused_by_the_reader(good, bad):
    """It reckons the amount of the ledger for itself."""
    ((name, content),) = based([line for line in BOOKS if line.currency == "USD"]).items()
    assert good in content

    with pytest.raises(RefusedError):
        read({name: content.replace(good, bad, 1)}, kind="datev")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (journal("x-GBP-1", ("1360", 5), ("8400", -5), currency="GBP"), "names none of GBP for"),
        (
            journal("x-USD-1", ("1360", 5), ("8400", -5), currency="USD", day=NEXT),
            "none of USD for 2026-12, and the ledger is kept in EUR; nothing is written: declare",
        ),
        (
            journal("y-KWD-1", ("1360", 10), ("8400", -10), currency="KWD"),
            "journal y-KWD-1: 0.010 KWD is nothing in EUR",
        ),
    ],
)
def test_an_amount_that_has_none_in_the_books_currency_is_refused_by_name(lines, sentence):
    with pytest.raises(UsageError, match=re.escape(sentence)):
        based(lines)


@pytest.mark.parametrize(
    ("month", "begins"),
    [(1, "20260101"), (7, "20260701"), (11, "20261101"), (12, "20251201")],
)
def test_datev_is_told_the_fiscal_year_that_the_batch_is_of(month, begins):
    """The newest that has begun with the batch's month, which gives its rows their year."""
    datev = DATEV.model_copy(update={"fiscal_year_month": month})
    codes = CODES.model_copy(update={"datev": datev})

    files = written(BOOKS, kind="datev", codes=codes)

    head = files["EXTF_journals-EUR-2026-11.csv"].split(b"\r\n")[0].decode()
    assert head.split(";")[10:16] == ["29098", "55003", begins, "4", "20261101", "20261130"]
    assert by_journal(read(files, kind="datev")) == by_journal(
        [expected(line, kind="datev") for line in BOOKS]
    )


def test_datev_is_told_the_order_that_a_journal_is_about():
    """In a note; nothing else of the row has room for it."""
    about = [replace(line, order_no="2026-11-30/7") for line in BOOKS[:2]]

    (content,) = written(about, kind="datev").values()

    assert b';"Order";"2026-11-30/7";"";"";' in content


def test_datev_gets_no_more_rows_than_it_takes(monkeypatch):
    """The next journals stand in a file of the same month and currency."""
    monkeypatch.setitem(FORMATS["datev"], "lines_max", 4)
    lines = [line for n in range(5) for line in journal(f"b{n}-EUR-1", ("8400", 1), ("1360", -1))]

    files = written(lines, kind="datev")

    assert [*files] == [
        "EXTF_journals-EUR-2026-11.csv",
        "EXTF_journals-EUR-2026-11-2.csv",
        "EXTF_journals-EUR-2026-11-3.csv",
    ]
    assert sums_of(read(files, kind="datev")) == {("8400", "EUR"): 50, ("1360", "EUR"): -50}


def keyed(keys, *journals):
    """DATEV's one file of some journals, with tax keys by account."""
    codes = JournalExport(tax_code="V0", tax_codes=keys, datev=DATEV)
    lines = [line for own in journals for line in own]
    ((name, content),) = journal_files(lines, layout=JournalFiles("x", "datev", AT, codes)).items()
    return name, content


def test_a_row_of_datev_has_the_tax_key_that_is_declared_for_one_of_its_accounts():
    """Four digits, whichever side it stands on; the code of all accounts is no key of DATEV's."""
    journals = (
        journal("b01-EUR-1", ("1360", 500), ("8400", -500)),
        journal("fees-EUR", ("4970", 10), ("4971", 5), ("1360", -15)),
    )
    name, content = keyed({"8400": "3", "4971": "0401"}, *journals)

    assert datev_keys(content, name) == [
        ("1360", "8400", "0003"),
        ("4970", "1360", ""),
        ("4971", "1360", "0401"),
    ]
    expected = Counter({("1360", "EUR"): 4850, ("8400", "EUR"): -5000})
    expected += Counter({("4970", "EUR"): 100, ("4971", "EUR"): 50})
    read = sums_of([*READERS["datev"](content, name)])
    assert read == {**expected, ("8400", "EUR"): -5000}


def sale(name, amount, *, text="a text"):
    """The books owe the clearing account a sale in euros."""
    return journal(name, ("1360", amount), ("8400", -amount), text=text)


def in_account(account, other="1360"):
    return journal("b-EUR-1", (account, 1), (other, -1))


OFF = [*BOOKS, JournalLine("permanent", "off", LAST, "1360", 1, 0, "EUR")]
NO_ACCOUNT = "is no account of DATEV's ledger with 4 digits"
REFUSED: dict[str, tuple[str, list[JournalLine], str]] = {
    **{
        f"out of balance in {kind}": (kind, OFF, r"journal off does not balance: .* 0\.01 EUR")
        for kind in FORMATS
    },
    # It would balance by itself, and stand in no format that has one amount a line.
    "a line on both sides": (
        "xero",
        [JournalLine("permanent", "both", LAST, "1360", 1, 1, "EUR")],
        "on both sides",
    ),
    # One digit more is a person's; two more, and nothing but zeros, are no account.
    **{
        f"account {account!r} in DATEV": ("datev", in_account(account), NO_ACCOUNT)
        for account in ("136000", "0000", "", "Bank", "Assets:Bank")
    },
    "a third decimal in DATEV": (
        *("datev", THIRD_DECIMAL),
        "12.345 KWD does not fit DATEV's amounts",
    ),
    "a text that fills all notes of DATEV": (
        "datev",
        sale("b-EUR-1", 1, text="long " * 900),
        "journal b-EUR-1: DATEV has no room for a text of 4499",
    ),
    # No question mark stands for it.
    "a character that DATEV cannot read": (
        "datev",
        [*sale("b1-EUR-1", 5), *sale("b2-EUR-1", 6, text="Łódź")],
        r"row 4 of the batch, journal b2-EUR-1: .*U\+0141 \(Ł\)",
    ),
    "two accounts that beancount would take for one": (
        *("beancount", in_account("13 60", "13.60")),
        "would both be Equity:Unmapped:13-60",
    ),
    # Brackets are virtual postings, two spaces end an account, a semicolon begins a comment.
    **{
        f"account {account!r} in hledger": ("hledger", in_account(account), "is no name of hledger")
        for account in ("(1360)", "1360  x", "13;60", "")
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_format_cannot_hold_is_refused_by_name(name):
    """Nothing is rounded, cut or renamed, and nothing is written."""
    kind, lines, sentence = REFUSED[name]

    with pytest.raises(UsageError, match=sentence):
        written(lines, kind=kind)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"8400": "A0"}, "the tax code 'A0' of account 8400 is no tax key of DATEV's"),
        ({"8400": "12345"}, "the tax code '12345' of account 8400 is no tax key"),
        ({"8400": "3", "1360": "9"}, "b01-EUR-1: 1360 and 8400 have the tax keys 9 and 3"),
    ],
)
def test_a_tax_key_that_datev_cannot_hold_is_refused_by_name(keys, sentence):
    with pytest.raises(UsageError, match=sentence):
        keyed(keys, journal("b01-EUR-1", ("1360", 500), ("8400", -500)))


@pytest.mark.parametrize("kind", ["csv", "xero", "netsuite", "datev"])
def test_a_journal_of_two_days_is_two_in_a_file(kind):
    parts = [*sale("b1-EUR-1", 900)]
    parts += [replace(line, day=NEXT) for line in sale("b1-EUR-1", 300)]

    text = b"".join(written(parts, kind=kind).values()).decode("cp1252")

    assert text.count("b1-EUR-1-2026-12-01") == text.count("b1-EUR-1") / 2 > 0


def test_two_journals_of_a_break_have_two_references_in_sap():
    """Their numbers begin alike for as long as a reference may be; each is as long at the most."""
    names = [f"0123456789abcdef-{currency}-{n}" for currency in ("EUR", "USD") for n in (1, 2)]
    lines = [line for name in names for line in sale(name, 500)]

    (content,) = written(lines, kind="sap-csv").values()

    references = {row["Reference"] for row in comma_rows(content, SAP)}
    assert len(references) == len(names)
    assert {len(reference) for reference in references} == {16}


def test_the_same_lines_are_the_same_bytes():
    for kind in FORMATS:
        turned = [line for name in ("b02-EUR-1", "b01-EUR-1") for line in _of(name)]
        assert written(turned, kind=kind) == written(
            [*_of("b01-EUR-1"), *_of("b02-EUR-1")], kind=kind
        )


def _of(name):
    return [line for line in BOOKS if line.journal_id == name]


def test_datev_names_a_long_journal_in_its_first_note():
    (content,) = written(sale("b1-EUR-1" * 9, 100), kind="datev").values()

    _, head, row, *_ = csv.reader(content.decode("cp1252").split("\r\n"), delimiter=";")
    told = dict(zip(head, row, strict=True))
    notes = [told[name] for number in (1, 2, 3) for name in note(number)]
    assert notes == ["Journal", "b1-EUR-1" * 9, "", "", "", ""]


@pytest.mark.parametrize("kind", ["beancount", "hledger"])
def test_a_journal_is_named_by_the_text_of_its_first_line(kind):
    first, second = sale("b1-EUR-1", 100)

    (content,) = written([replace(first, text="Refund of o-1"), second], kind=kind).values()

    assert "Refund of o-1" in content.decode()


def test_xero_gets_no_more_lines_than_it_takes_and_journals_stay_whole():
    """151 journals of two lines are two files."""
    many = [line for number in range(151) for line in sale(f"n{number:03}-EUR-1", 100)]

    files = written(many, kind="xero")

    counts = [len([*comma_rows(content, XERO)]) for content in files.values()]
    assert counts == [FORMATS["xero"]["lines_max"], 2]


def test_accounts_of_beancount_keep_their_names():
    """Another one stands below Equity:Unmapped, which no books have opened."""
    lines = journal("x", ("Assets:Clearing", 1), ("Sales", -1))
    (text,) = written(lines, kind="beancount").values()
    assert b"  Assets:Clearing  0.01 EUR\n  Equity:Unmapped:Sales  -0.01 EUR\n" in text


def test_xero_takes_the_tax_rate_that_is_declared_for_each_account():
    """The account's own, else the one of all."""
    codes = JournalExport(tax_code="Tax Exempt", tax_codes={"8400": "20% (VAT on Income)"})
    wanted = JournalFiles("x", "xero", AT, codes=codes)
    (content,) = journal_files(sale("b1-EUR-1", 5), layout=wanted).values()
    rates = {row["*AccountCode"]: row["*TaxRate"] for row in comma_rows(content, XERO)}

    assert rates == {"1360": "Tax Exempt", "8400": "20% (VAT on Income)"}


def test_sap_and_netsuite_name_the_company_that_is_declared():
    """NetSuite has the column only where there is one."""
    codes = JournalExport(tax_codes={"8400": "A0"}, company_code="1000")
    (sap,) = journal_files(BOOKS[:2], layout=JournalFiles("x", "sap-csv", AT, codes=codes)).values()
    (suite,) = journal_files(
        BOOKS[:2], layout=JournalFiles("x", "netsuite", AT, codes=codes)
    ).values()
    (single,) = journal_files(BOOKS[:2], layout=JournalFiles("x", "netsuite", AT)).values()

    assert {row["Company Code"] for row in comma_rows(sap, SAP)} == {"1000"}
    assert {row["G/L Account"]: row["Tax Code"] for row in comma_rows(sap, SAP)} == {
        "1360": "",
        "8400": "A0",
    }
    assert {row["Subsidiary"] for row in comma_rows(suite, ("Subsidiary", *NETSUITE))} == {"1000"}
    assert [*comma_rows(single, NETSUITE)]


def test_what_cp1252_has_goes_through_to_datev():
    fine = written(sale("b1-EUR-1", 5, text="Größe €"), kind="datev")
    assert "Größe €".encode("cp1252") in next(iter(fine.values()))
