"""The 125 columns of a row of DATEV's Buchungsstapel, version 13, and how each is written empty.

An empty text has its quotes, every other field nothing.
"""

from collections.abc import Mapping

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
