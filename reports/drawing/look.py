"""How cells look and what they hold: colours, fonts, number formats, exact amounts, safe text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Literal
from zoneinfo import ZoneInfo

from recon.model.errors import AmountError
from recon.model.money import Money, exponent, format_minor_units

Kind = Literal[
    "text", "money", "count", "days", "share", "date", "instant", "link", "check", "input", "key"
]
NAVY, INK, GREY, LINE, WHITE = "1F3864", "262626", "7F7F7F", "D9D9D9", "FFFFFF"
CREAM, INPUT_INK = "FFF9E5", "0000FF"
GOOD = {"bg_color": "C6EFCE", "font_color": "006100"}
WARN = {"bg_color": "FFEB9C", "font_color": "7F6000"}
BAD = {"bg_color": "FFC7CE", "font_color": "9C0006"}
BOLD = {"bold": True}
Tone = str
"""A key of TONES."""
TONES: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "good": GOOD | BOLD,
    "warn": WARN,
    "bad": BAD | BOLD,
    "note": {"font_color": GREY, "italic": True},
    "muted": {"font_color": GREY},
    "strong": BOLD,
    "total": BOLD | {"top": 1, "top_color": NAVY},
    "severe": BOLD | {"font_color": BAD["font_color"]},
    "amber": BOLD | {"font_color": WARN["font_color"]},
    "title": BOLD | {"font_size": 14, "font_color": NAVY},
    "heading": BOLD | {"font_size": 11, "font_color": NAVY},
    "verdict good": GOOD | BOLD | {"font_size": 12},
    "verdict warn": WARN | BOLD | {"font_size": 12},
    "verdict bad": BAD | BOLD | {"font_size": 12},
}
"""A colour never carries information that the text next to it does not."""
HEADER = {"bold": True, "font_color": WHITE, "bg_color": NAVY, "text_wrap": True, "valign": "top"}
BAND = {"bold": True, "font_color": NAVY, "bg_color": "DDE3EE", "align": "center_across"}
HEADER_INPUT = HEADER | {"bg_color": WARN["font_color"]}
RIGHT = frozenset({"money", "count", "days", "share"})
"""Right-aligned kinds."""
NUMBER_MINOR_UNITS_MAX = 10**15 - 1
"""A spreadsheet keeps 15 digits; a larger amount is written as text, exactly."""
TEXT_CHARACTERS_MAX = 1_000
"""A cell holds 32,767; nobody reads more than this, and the database has the whole text."""
NOT_COVERED = "not covered"
OK, CHECK = "OK", "CHECK"
"""The text of a check."""
REPLACEMENT = "\ufffd"
_BREAKS = re.compile(r"\r\n|[\r\n\t\u2028\u2029]")
# Control characters break the file; bidirectional overrides make text look like other text.
_UNWANTED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_ESCAPED = re.compile(r"_x005F_(?=x[0-9A-Fa-f]{4}_)")


@dataclass(frozen=True, slots=True)
class CellLink:
    """A text linked to a cell of this workbook (`'Breaks'!A7`) or to a file next to it."""

    text: str
    target: str
    is_file: bool = False


def cell_text(text: str) -> tuple[str, int]:
    """The text made safe for a cell, and the number of characters that had to be replaced."""
    if len(text) <= TEXT_CHARACTERS_MAX and text.isprintable():
        return text, 0
    clean, replaced = _UNWANTED.subn(REPLACEMENT, _BREAKS.sub(" ", text))
    if len(clean) > TEXT_CHARACTERS_MAX:
        clean = clean[: TEXT_CHARACTERS_MAX - 1] + "…"
    return clean, replaced


def read_text(value: Any) -> str:
    """The text of a cell that was read back, without the escapes that the file format adds."""
    return "" if value is None else _ESCAPED.sub("_", str(value))


@cache
def decimals_of(currency: str) -> int:
    """Decimals of a currency; 0 for rows without one."""
    try:
        return exponent(currency)
    except AmountError:
        return 0


def with_currency(minor_units: int, currency: str) -> str:
    """Format an amount for people, such as "-1,234.50 EUR"; the number alone without a currency."""
    return (
        str(Money.of_minor_units(minor_units, currency=currency))
        if currency
        else f"{minor_units:,}"
    )


def grouped_amount(minor_units: int, currency: str) -> str:
    """Format an amount without its currency, such as "-1,234.50"."""
    return with_currency(minor_units, currency).removesuffix(f" {currency}")


def amount_cell(minor_units: int, currency: str) -> Decimal | str:
    """The value of a cell with an amount: a number if it has at most 15 digits, else text."""
    if abs(minor_units) > NUMBER_MINOR_UNITS_MAX:
        return format_minor_units(minor_units, currency=currency) if currency else f"{minor_units}"
    return Decimal(minor_units).scaleb(-decimals_of(currency))


def local_instant(value: datetime, *, timezone: str) -> datetime:
    """An instant in the report's time zone, made naive because Excel has no zones."""
    if value.tzinfo is None:
        return value.replace(microsecond=0)
    return value.astimezone(ZoneInfo(timezone)).replace(tzinfo=None, microsecond=0)


def day_of(value: Any) -> date | None:
    """A date from a date, an instant or ISO text; None when blank or anything else."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value)[:10]) if value else None
    except ValueError:
        return None


def text_width(text: str) -> int:
    """Display width of a text; East Asian wide characters count as two."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def number_format(kind: str, currency: str) -> str:
    """The number format of a kind of cell: red minus, zero as an en dash."""
    places = decimals_of(currency) if kind == "money" else 0
    digits = "#,##0" + (f".{'0' * places}" if places else "")
    counted = f'{digits};[Red]-{digits};"–"'  # noqa: RUF001 - zero is shown as an en dash
    others = {"days": "0", "share": "0.00%", "date": "d mmm yyyy", "instant": "d mmm yyyy hh:mm"}
    return others.get(kind, counted if kind in {"money", "count"} else "@")


def properties(kind: str, currency: str) -> dict[str, Any]:
    """Format properties for XlsxWriter, before the tone is applied."""
    base = {"font_name": "Calibri", "font_size": 10, "font_color": INK, "valign": "vcenter"}
    base |= {"bottom": 1, "bottom_color": LINE, "num_format": number_format(kind, currency)}
    if kind in RIGHT:
        return base | {"align": "right"}
    if kind == "check":
        return base | {"align": "center", "bold": True}
    base |= {"align": "left", "indent": 1}
    if kind == "link":
        return base | {"font_color": NAVY, "underline": 1}
    return base
