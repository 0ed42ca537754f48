"""DATEV's Buchungsstapel, EXTF 700, version 13: one file for one month and one currency.

A row books one account against another, so the debits of a journal are set against its credits
until both are used up; the sums by account stay what they are.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from recon.config.rules import DatevExport
from recon.model.errors import UsageError
from recon.model.money import exponent, format_minor_units
from recon.privacy.shown_text import defused
from recon.steps.month.book_lines import BookLine, journals_of, one_line

DECIMALS = 2
DIGITS_MAX = 10
"""Before the comma of an amount."""
REFERENCE_CHARACTERS_MAX = 36
TEXT_CHARACTERS_MAX = 60
NOTE_CHARACTERS_MAX = 210
ENCODING = "cp1252"
"""What it does not have is refused: a text that was changed on the way names nothing any more."""
OPEN = "0"
"""Not locked (Festschreibung): a row that leaves it open is locked by the import."""
_KEY = re.compile(r"[0-9]{1,4}", re.ASCII)
KEY_DIGITS = 4
_ACCOUNT = re.compile(r"(?!0+$)[0-9]+", re.ASCII)
_NO_REFERENCE = re.compile(r"[^A-Za-z0-9$%&*+/-]")


@dataclass(frozen=True, slots=True)
class _Rate:
    """How much of a batch's currency is one of the base currency."""

    base: str
    rate: Decimal


def datev_text(
    lines: Sequence[BookLine],
    *,
    books: DatevExport,
    keys: Mapping[str, str],
    written_at: datetime,
) -> str:
    """One batch; its lines are of one month and one currency. `keys`: account -> its tax key.

    Raises:
        UsageError: an account or its tax key is none of these books, a rate is missing, or a cell
            does not fit.
    """
    for line in lines:
        _refuse_strange(line.account, books=books)
    rate = _rate(lines[0], books=books)
    rows = [row for _, own in journals_of(lines) for row in _rows(own, keys=keys, rate=rate)]
    head = _head(lines, books=books, written_at=written_at)
    return "".join(f"{';'.join(row)}\r\n" for row in (head, EMPTY, *rows))


def datev_bytes(text: str) -> bytes:
    """A batch as DATEV reads it.

    Raises:
        UsageError: a character that it cannot read, named with its row.
    """
    try:
        return text.encode(ENCODING)
    except UnicodeEncodeError as error:
        row = text.count("\r\n", 0, error.start) + 1
        reference = text[: error.start].rsplit("\r\n", 1)[-1]
        character = text[error.start]
        named = f"U+{ord(character):04X}" + (f" ({character})" if character.isprintable() else "")
        msg = (
            f"row {row} of the batch, {_reference(reference)}: DATEV's files cannot hold the "
            f"character {named}, they are {ENCODING}; nothing is written: take another format for "
            "these journals, or correct the text and close the month anew"
        )
        raise UsageError(msg) from error


def _reference(before: str) -> str:
    """Which journal a row is of, by what stands in it before its text."""
    cells = before.split(";")
    at = [*EMPTY].index(REFERENCE)
    return f"journal {cells[at].strip(chr(34))}" if len(cells) > at else "its head"


def _head(
    lines: Sequence[BookLine], *, books: DatevExport, written_at: datetime
) -> tuple[str, ...]:
    first = lines[0].day.replace(day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    currency = books.base_currency or lines[0].currency
    began = first.year - (first.month < books.fiscal_year_month)
    return (
        *('"EXTF"', "700", "21", '"Buchungsstapel"', "13"),
        *(f"{written_at:%Y%m%d%H%M%S}000", "", '"RE"', '""', '""'),
        *(str(books.consultant), str(books.client)),
        *(_day(date(began, books.fiscal_year_month, 1)), str(books.account_digits)),
        *(_day(first), _day(last), _quoted(f"recon {first:%Y-%m}"), '""', "1", "0", OPEN),
        *(_quoted(currency), "", '""', "", "", '""', "", "", '""', '""'),
    )


def _rate(line: BookLine, *, books: DatevExport) -> _Rate | None:
    """What the month's amounts in a currency are converted at; None in the base currency.

    Raises:
        UsageError: the books have a base currency, and no rate of this one for the month.
    """
    base, month = books.base_currency, f"{line.day:%Y-%m}"
    if base is None or line.currency == base:
        return None
    rate = books.rates.get(month, {}).get(line.currency)
    if rate is None:
        msg = (
            f"[journal.export.datev] rates names none of {line.currency} for {month}, and the "
            f"books are kept in {base}; nothing is written: declare how much {line.currency} is "
            f"one {base}, or take --currency for the others"
        )
        raise UsageError(msg)
    return _Rate(base, rate)


def _rows(
    own: Sequence[BookLine], *, keys: Mapping[str, str], rate: _Rate | None
) -> Iterator[tuple[str, ...]]:
    for debit, credit, amount in _pairs(own):
        reference = _NO_REFERENCE.sub("", debit.journal_id)[-REFERENCE_CHARACTERS_MAX:]
        row = {
            **EMPTY,
            AMOUNT: _amount(amount, currency=debit.currency),
            SIDE: _quoted("S"),
            CURRENCY: _quoted(debit.currency),
            **({} if rate is None else _in_base(amount, of=debit, rate=rate)),
            ACCOUNT: debit.account,
            CONTRA_ACCOUNT: credit.account,
            TAX_KEY: _quoted(_tax_key(debit, credit, keys=keys)),
            DAY: f"{debit.day:%d%m}",
            REFERENCE: _quoted(reference),
            LABEL: _quoted(defused(one_line(debit.text))[:TEXT_CHARACTERS_MAX]),
            **_notes(debit, reference=reference),
            LOCKED: OPEN,
        }
        yield tuple(row.values())


def _in_base(minor_units: int, *, of: BookLine, rate: _Rate) -> dict[str, str]:
    """The rate, and the amount in the base currency, rounded half up to its minor units.

    Raises:
        UsageError: that is nothing, or does not fit.
    """
    units = Decimal(minor_units).scaleb(exponent(rate.base) - exponent(of.currency))
    based = int((units / rate.rate).to_integral_value(ROUND_HALF_UP))
    if not based:
        msg = (
            f"journal {of.journal_id}: {format_minor_units(minor_units, currency=of.currency)} "
            f"{of.currency} is nothing in {rate.base}, and DATEV takes no amount of 0; nothing is "
            "written: take another format for this currency, and --currency for the others"
        )
        raise UsageError(msg)
    whole, _, fraction = f"{rate.rate:f}".partition(".")
    return {
        RATE: f"{whole},{fraction.rstrip('0').ljust(DECIMALS, '0')}",
        BASE_AMOUNT: _amount(based, currency=rate.base),
        BASE_CURRENCY: _quoted(rate.base),
    }


def _tax_key(debit: BookLine, credit: BookLine, *, keys: Mapping[str, str]) -> str:
    """The one key of a row: that of either account.

    Raises:
        UsageError: it is none of DATEV's, or the two accounts have different ones.
    """
    declared = {
        line.account: keys[line.account] for line in (debit, credit) if line.account in keys
    }
    for account, key in declared.items():
        if not _KEY.fullmatch(key):
            msg = (
                f"the tax code {key!r} of account {account} is no tax key of DATEV's (one to "
                f"{KEY_DIGITS} digits); nothing is written: [journal.export] tax_codes declares it"
            )
            raise UsageError(msg)
    if len({key.zfill(KEY_DIGITS) for key in declared.values()}) > 1:
        msg = (
            f"journal {debit.journal_id}: {' and '.join(declared)} have the tax keys "
            f"{' and '.join(declared.values())}, and a row of DATEV's has one; nothing is written: "
            "[journal.export] tax_codes declares a key for one of the two"
        )
        raise UsageError(msg)
    return next(iter(declared.values()), "").zfill(KEY_DIGITS) if declared else ""


def _notes(line: BookLine, *, reference: str) -> dict[str, str]:
    """The journal's id, order and text, where the row's own fields have not all of them."""
    text = one_line(line.text)
    whole = {
        "Journal": "" if reference == line.journal_id else one_line(line.journal_id),
        "Order": one_line(line.order_no),
        "Text": text if len(defused(text)) > TEXT_CHARACTERS_MAX else "",
    }
    notes = [(kind, part) for kind, words in whole.items() for part in _parts(words)]
    if len(notes) > NOTES_MAX:
        msg = (
            f"journal {line.journal_id}: DATEV has no room for a text of {len(text)} characters; "
            "nothing is written: take another format for these journals"
        )
        raise UsageError(msg)
    columns = (note(number) for number in range(1, NOTES_MAX + 1))
    return {
        column: _quoted(cell)
        for names, cells in zip(columns, notes, strict=False)
        for column, cell in zip(names, cells, strict=True)
    }


def _parts(text: str) -> Iterator[str]:
    """A text in as many pieces as its length asks for, none of them a formula."""
    while text:
        size = NOTE_CHARACTERS_MAX
        while len(part := defused(text[:size])) > NOTE_CHARACTERS_MAX:
            size -= 1
        yield part
        text = text[size:]


def _pairs(own: Sequence[BookLine]) -> Iterator[tuple[BookLine, BookLine, int]]:
    """Debit, credit and what of both is booked against each other."""
    to_use = [(line, line.credit) for line in own if line.credit]
    for debit in own:
        left = debit.debit
        while left:
            credit, open_still = to_use.pop(0)
            used = min(left, open_still)
            yield debit, credit, used
            left -= used
            if open_still > used:
                to_use.insert(0, (credit, open_still - used))


def _amount(minor_units: int, *, currency: str) -> str:
    """With two decimals and a comma, whatever the currency.

    Raises:
        UsageError: it has a third decimal, or too many digits.
    """
    text = format_minor_units(minor_units, currency=currency)
    whole, _, fraction = text.partition(".")
    if fraction[DECIMALS:].strip("0") or len(whole) > DIGITS_MAX:
        msg = (
            f"{text} {currency} does not fit DATEV's amounts ({DIGITS_MAX} digits, {DECIMALS} "
            f"decimals; {currency} has {exponent(currency)}); nothing is written: take another "
            "format for this currency, and --currency for the others"
        )
        raise UsageError(msg)
    return f"{whole},{fraction[:DECIMALS].ljust(DECIMALS, '0')}"


def _refuse_strange(account: str, *, books: DatevExport) -> None:
    if not _ACCOUNT.fullmatch(account) or len(account) > books.account_digits + 1:
        msg = (
            f"{one_line(account)!r} is no account of DATEV's books with {books.account_digits} "
            "digits (a person's has one more); nothing is written: [journal.accounts] names the "
            "accounts, [journal.export.datev] account_digits says how long they are"
        )
        raise UsageError(msg)


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


TEXT, OTHER = '""', ""

AMOUNT, SIDE, CURRENCY = "Umsatz (ohne Soll/Haben-Kz)", "Soll/Haben-Kennzeichen", "WKZ Umsatz"
ACCOUNT, CONTRA_ACCOUNT = "Konto", "Gegenkonto (ohne BU-Schlüssel)"
RATE, BASE_AMOUNT, BASE_CURRENCY = "Kurs", "Basis-Umsatz", "WKZ Basis-Umsatz"
DAY, REFERENCE, LABEL = "Belegdatum", "Belegfeld 1", "Buchungstext"
TAX_KEY = "BU-Schlüssel"
LOCKED = "Festschreibung"
NOTES_MAX = 20


def note(number: int) -> tuple[str, str]:
    """The columns of one note (Zusatzinformation): what it is, and what it says."""
    return f"Zusatzinformation - Art {number}", f"Zusatzinformation- Inhalt {number}"


_GROUPS = (
    (OTHER, (AMOUNT,)),
    (TEXT, (SIDE, CURRENCY)),
    (OTHER, (RATE, BASE_AMOUNT)),
    (TEXT, (BASE_CURRENCY,)),
    (OTHER, (ACCOUNT, CONTRA_ACCOUNT)),
    (TEXT, (TAX_KEY,)),
    (OTHER, (DAY,)),
    (TEXT, (REFERENCE, "Belegfeld 2")),
    (OTHER, ("Skonto",)),
    (TEXT, (LABEL,)),
    (OTHER, ("Postensperre",)),
    (TEXT, ("Diverse Adressnummer",)),
    (OTHER, ("Geschäftspartnerbank", "Sachverhalt", "Zinssperre")),
    (TEXT, ("Beleglink",)),
    *((TEXT, (f"Beleginfo - Art {n}", f"Beleginfo - Inhalt {n}")) for n in range(1, 9)),
    (TEXT, ("KOST1 - Kostenstelle", "KOST2 - Kostenstelle")),
    (OTHER, ("Kost-Menge",)),
    (TEXT, ("EU-Land u. UStID (Bestimmung)",)),
    (OTHER, ("EU-Steuersatz (Bestimmung)",)),
    (TEXT, ("Abw. Versteuerungsart",)),
    (OTHER, ("Sachverhalt L+L", "Funktionsergänzung L+L", "BU 49 Hauptfunktionstyp")),
    (OTHER, ("BU 49 Hauptfunktionsnummer", "BU 49 Funktionsergänzung")),
    *((TEXT, note(n)) for n in range(1, NOTES_MAX + 1)),
    (OTHER, ("Stück", "Gewicht", "Zahlweise")),
    (TEXT, ("Forderungsart",)),
    (OTHER, ("Veranlagungsjahr", "Zugeordnete Fälligkeit", "Skontotyp")),
    (TEXT, ("Auftragsnummer", "Buchungstyp")),
    (OTHER, ("USt-Schlüssel (Anzahlungen)",)),
    (TEXT, ("EU-Land (Anzahlungen)",)),
    (OTHER, ("Sachverhalt L+L (Anzahlungen)", "EU-Steuersatz (Anzahlungen)")),
    (OTHER, ("Erlöskonto (Anzahlungen)",)),
    (TEXT, ("Herkunft-Kz", "Buchungs GUID")),
    (OTHER, ("KOST-Datum",)),
    (TEXT, ("SEPA-Mandatsreferenz",)),
    (OTHER, ("Skontosperre",)),
    (TEXT, ("Gesellschaftername",)),
    (OTHER, ("Beteiligtennummer",)),
    (TEXT, ("Identifikationsnummer", "Zeichnernummer")),
    (OTHER, ("Postensperre bis",)),
    (TEXT, ("Bezeichnung SoBil-Sachverhalt",)),
    (OTHER, ("Kennzeichen SoBil-Buchung", LOCKED, "Leistungsdatum")),
    (OTHER, ("Datum Zuord. Steuerperiode", "Fälligkeit")),
    (TEXT, ("Generalumkehr (GU)",)),
    (OTHER, ("Steuersatz",)),
    (TEXT, ("Land", "Abrechnungsreferenz")),
    (OTHER, ("BVV-Position",)),
    (TEXT, ("EU-Land u. UStID (Ursprung)",)),
    (OTHER, ("EU-Steuersatz (Ursprung)", "Abw. Skontokonto")),
)
EMPTY: Mapping[str, str] = {name: empty for empty, names in _GROUPS for name in names}
"""Column -> how it is written with nothing in it, in the order of the file."""
