"""How a merchant's files are written (`layouts` of merchants.toml), as it is declared.

Without a layout a file has the columns of the contract, in UTF-8, separated by commas. A layout
says what is different: names, words, constants, separators, dates and units. Nothing is guessed
from the bytes of a file.
"""

import re
from fnmatch import fnmatchcase
from typing import Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

MENDED_PREFIX = "mended-"
"""Files of rejected rows that a person mended: always in the columns of the contract."""

INSTRUCTIONS_PREFIX = "instructions-"
"""Files of the inbox that only instruct."""

TIME_PARTS = {
    "%Y": r"([0-9]{4})",
    "%m": r"([0-9]{2})",
    "%d": r"([0-9]{2})",
    "%H": r"([0-9]{2})",
    "%M": r"([0-9]{2})",
    "%S": r"([0-9]{2})",
    "%f": r"([0-9]{1,6})",
    "%z": r"(Z|[+-][0-9]{2}:?[0-9]{2})",
}
"""What a `times` pattern is made of; every part has a fixed form, so that nothing is guessed."""

_DATE = ("%Y", "%m", "%d")
_CLOCK = ("%H", "%M", "%S", "%f")
_PART = re.compile("%.")


class Trailer(BaseModel):
    """The last record of a CSV file, which says what stood before it. Places count from 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    word: str = Field(min_length=1, max_length=40)
    """Its first cell."""
    rows: int = Field(default=0, ge=0, le=256)
    """The cell with the number of rows; 0: none."""
    amount: int = Field(default=0, ge=0, le=256)
    """The cell with the sum of the amounts of a file of one currency; 0: none."""


class FileLayout(BaseModel):
    """How files of some names are written."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    files: str = Field(default="*", min_length=1, max_length=200)
    """Which names: a pattern with * and ?; upper and lower case differ."""
    format: Literal["", "csv", "xlsx", "parquet", "jsonl", "xml"] = ""
    """Empty: as the ending of the name says."""
    delimiter: Literal[",", ";", "\t", "|"] = ","
    quote: Literal['"', "'"] = '"'
    encoding: Literal[
        "utf-8", "utf-16", "iso-8859-1", "iso-8859-15", "windows-1250", "windows-1252"
    ] = "utf-8"
    record: str = Field(default="", max_length=100)
    """XML: the name of the element that is one row."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Our column name -> theirs; absent means the same name."""
    constants: dict[str, str] = Field(default_factory=dict)
    """Our column name -> what every row has there."""
    words: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Our column name -> their word -> ours; other words are refused."""
    decimal_sign: Literal[".", ","] = "."
    thousands_sign: Literal["", ".", ",", "'", "\u2019", " ", "\u00a0", "\u202f"] = ""
    """What may stand between groups of three digits of an amount; empty: nothing may."""
    units: Literal["major", "minor"] = "major"
    """Minor: amounts are whole numbers of the smallest unit."""
    times: str = Field(default="", max_length=60)
    """Such as "%d.%m.%Y %H:%M"; empty: ISO 8601."""
    zone: str = ""
    """Of times without an offset, such as Europe/Lisbon; empty: UTC."""
    whole_file: bool = False
    """One unreadable row refuses the whole file."""
    trailer: Trailer | None = None
    control_file: str = Field(default="", pattern=r"^(\.[A-Za-z0-9]{1,12})?$")
    """Ending of the file beside it (`orders.csv.control`) with its counts and sums."""
    done_file: str = Field(default="", pattern=r"^(\.[A-Za-z0-9]{1,12})?$")
    """Ending of the file that says it is complete (`orders.csv.done`)."""

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            return name if not name or ZoneInfo(name) else ""
        except (ZoneInfoNotFoundError, ValueError, OSError):
            msg = f"{name!r} is no time zone such as Europe/Lisbon"
            raise ValueError(msg) from None

    @field_validator("times")
    @classmethod
    def _readable_times(cls, pattern: str) -> str:
        parts = _PART.findall(pattern)
        unknown = [part for part in parts if part not in TIME_PARTS]
        if unknown:
            msg = f"{unknown[0]} is none of {' '.join(TIME_PARTS)}"
            raise ValueError(msg)
        if pattern and (len(set(parts)) < len(parts) or not set(_DATE) <= set(parts)):
            msg = "needs %Y, %m and %d, each part once"
            raise ValueError(msg)
        clock = [part in parts for part in _CLOCK]
        if clock != sorted(clock, reverse=True) or ("%H" in parts and "%M" not in parts):
            msg = "has a part of the clock without the larger ones (%H, %M, %S, %f)"
            raise ValueError(msg)
        return pattern

    @model_validator(mode="after")
    def _meant_once(self) -> Self:
        both = sorted(set(self.columns) & set(self.constants))
        if both:
            msg = f"constants and columns both give {', '.join(both)}"
            raise ValueError(msg)
        if self.thousands_sign == self.decimal_sign:
            msg = f"thousands_sign and decimal_sign are both {self.decimal_sign!r}"
            raise ValueError(msg)
        if self.trailer is not None and self.format not in {"", "csv"}:
            msg = f"trailer: only CSV has one, not {self.format}"
            raise ValueError(msg)
        return self


STANDARD = FileLayout()
"""The columns of the contract, as the contract writes them."""


def layout_of(name: str, *, layouts: tuple[FileLayout, ...]) -> FileLayout:
    """The first layout whose pattern fits the name of a file, else the standard one."""
    if name.removeprefix(INSTRUCTIONS_PREFIX).startswith(MENDED_PREFIX):
        return STANDARD
    return next((layout for layout in layouts if fnmatchcase(name, layout.files)), STANDARD)
