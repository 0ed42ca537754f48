"""How cells look: one value per combination, made into an openpyxl style once per workbook.

Colours, fonts and number formats of the whole workbook stand here and nowhere else.
"""

from dataclasses import dataclass, replace
from functools import cache

from openpyxl.styles import Alignment, Border, Font, PatternFill, Protection, Side

from recon.model.errors import AmountError
from recon.model.money import exponent

FONT = "Calibri"
NAVY = "1F3864"
LINE = "D9D9D9"
GREY_TEXT = "7F7F7F"
ENGINE_FILL = "F2F2F2"
INPUT_FILL = "FFF9E5"
INPUT_TEXT = "0000FF"
GOOD = ("C6EFCE", "006100")
WARN = ("FFEB9C", "7F6000")
BAD = ("FFC7CE", "9C0006")
LINK_TEXT = "1F3864"
AGE_COLOURS = ("BDD7EE", "9DC3E6", "FFE699", "F4B183", "C00000")
"""One per ageing bucket, youngest first."""
HEAT = "F8CBAD"

COUNT_FORMAT = '#,##0;[Red]-#,##0;"–"'  # noqa: RUF001 - zero is shown as an en dash
DAYS_FORMAT = "0"
TILE_FORMAT = "#,##0"
SHARE_FORMAT = "0.00%"
DATE_FORMAT = "yyyy-mm-dd"
INSTANT_FORMAT = "yyyy-mm-dd hh:mm"
TEXT_FORMAT = "@"
GENERAL_FORMAT = "General"


@dataclass(frozen=True, slots=True)
class Look:
    """A combination of style properties."""

    number_format: str = GENERAL_FORMAT
    bold: bool = False
    italic: bool = False
    underline: bool = False
    size: int = 10
    colour: str = "000000"
    fill: str = ""
    align: str = ""
    indent: int = 0
    wrap: bool = False
    top: bool = False
    line: str = ""
    """"" none, "thin" below, "total" thin above and double below."""
    unlocked: bool = False
    quoted: bool = False
    """Editing the cell keeps it text (a leading = + - @ of foreign text)."""

    def but(self, **changes: object) -> "Look":
        """The same look with some properties changed; the same changes give the same look."""
        key = (id(self), *changes.items())
        known = _CHANGED.get(key)
        if known is None:
            made = replace(self, **changes)  # type: ignore[arg-type]  # names are checked by replace
            # The look itself is kept beside its change, so that its id stays its own.
            known = _CHANGED[key] = (self, _SHARED.setdefault(made, made))
        return known[1]


_CHANGED: dict[tuple[object, ...], tuple[Look, Look]] = {}
"""A look by the one it was made from and what was changed: lists ask once for each of their cells.

As many as a workbook has looks and currencies: looks are made of constants of this package."""
_SHARED: dict[Look, Look] = {}
"""Equal looks are one."""


TITLE = Look(bold=True, size=20, colour=NAVY)
SUBTITLE = Look(colour=GREY_TEXT)
HEADING = Look(bold=True, size=12, colour=NAVY)
HEADER = Look(bold=True, colour="FFFFFF", fill=NAVY, wrap=True, align="left", indent=1)
HEADER_RIGHT = HEADER.but(align="right", indent=0)
HEADER_CENTRE = HEADER.but(align="center", indent=0)
HEADER_INPUT = HEADER.but(fill="7F6000")
BODY = Look(line="thin")
BODY_TEXT = BODY.but(number_format=TEXT_FORMAT, align="left", indent=1)
NUMBER = BODY.but(number_format=COUNT_FORMAT, align="right")
LABEL = BODY.but(bold=True, align="left", indent=1)
LINK = BODY.but(underline=True, colour=LINK_TEXT, align="left", indent=1)
INPUT = BODY.but(fill=INPUT_FILL, colour=INPUT_TEXT, unlocked=True, wrap=True)
NOTE = Look(colour=GREY_TEXT, italic=True)
PLAIN = Look()
TILE_LABEL = Look(fill=ENGINE_FILL, colour=GREY_TEXT, align="center")
TILE_NUMBER = Look(fill=ENGINE_FILL, colour=NAVY, bold=True, size=20, align="center")
CHECK = BODY.but(bold=True, align="center")


@cache
def money_format(currency: str) -> str:
    """The number format of a currency's amounts: its decimals, red minus, zero as en dash."""
    places = decimals_of(currency)
    digits = "#,##0" + (f".{'0' * places}" if places else "")
    return f'{digits};[Red]-{digits};"–"'  # noqa: RUF001 - zero is shown as an en dash


@cache
def decimals_of(currency: str) -> int:
    """Decimals of a currency; 0 for rows that name none."""
    try:
        return exponent(currency)
    except AmountError:
        return 0


def font_of(look: Look) -> Font:
    """The openpyxl font."""
    return Font(
        name=FONT,
        size=look.size,
        bold=look.bold,
        italic=look.italic,
        color=look.colour,
        underline="single" if look.underline else None,
    )


def fill_of(look: Look) -> PatternFill:
    """The openpyxl fill; none when the look has none."""
    return PatternFill("solid", start_color=look.fill) if look.fill else PatternFill()


def border_of(look: Look) -> Border:
    """The openpyxl border."""
    if look.line == "thin":
        return Border(bottom=Side("thin", color=LINE))
    if look.line == "total":
        return Border(top=Side("thin", color="000000"), bottom=Side("double", color="000000"))
    return Border()


def alignment_of(look: Look) -> Alignment:
    """The openpyxl alignment."""
    return Alignment(
        horizontal=look.align or None,
        vertical="top" if look.top else "center",
        indent=look.indent,
        wrap_text=look.wrap or None,
    )


def protection_of(look: Look) -> Protection:
    """Locked unless a person may write there."""
    return Protection(locked=not look.unlocked)
