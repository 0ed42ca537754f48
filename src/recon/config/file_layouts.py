"""The formats of a merchant's files, as declared by `layouts` of merchants.toml.

Without a layout a file has the columns of the contract, in UTF-8, separated by commas. A layout
states the differences: names, words, constants, separators, dates and units. Nothing is guessed
from the content of a file.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from recon.config.declared import DeclaredTable, checked_by
from recon.model.business_date import zone_of
from recon.model.errors import ConfigurationError
from recon.model.terms import SourceKind

MENDED_PREFIX = "mended-"
"""Files of rejected rows that a person corrected: always in the columns of the contract."""

INSTRUCTIONS_PREFIX = "instructions-"
"""Inbox files with instructions only."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

TIME_PARTS = {
    "%Y": r"([0-9]{4})",
    "%m": r"([0-9]{2})",
    "%d": r"([0-9]{2})",
    "%H": r"([0-9]{2})",
    "%M": r"([0-9]{2})",
    "%S": r"([0-9]{2})",
    "%f": r"([0-9]{1,6})",
    "%z": r"(Z|[+-][0-9]{2}:?[0-9]{2})",
    "%y": r"([0-9]{2})",
    "%b": "(" + "|".join(f"[{name[0]}{name[0].lower()}]{name[1:]}" for name in MONTHS) + ")",
    "%I": r"([0-9]{1,2})",
    "%p": r"([AaPp][Mm])",
    "%-m": r"([0-9]{1,2})",
    "%-d": r"([0-9]{1,2})",
    "%-H": r"([0-9]{1,2})",
}
"""Parts of a `times` pattern; every part has a fixed form, so that nothing is guessed."""

COUNTED_TIMES = frozenset({"serial", "unix"})
"""Times given as counts: spreadsheet days since 1899-12-30, seconds since 1970."""

CODECS = {
    "utf-8": "utf-8",
    "utf-16": "utf-16",
    "iso-8859-1": "latin_1",
    "iso-8859-15": "iso8859_15",
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    # As browsers and Windows define it, with characters that the standard lacks.
    "shift_jis": "cp932",
}
"""Encodings of CSV files -> Python's names for them."""

SUMMANDS_MAX = 16
"""Maximum number of columns of one sum."""

_ONE_OF = (("%Y", "%y"), ("%m", "%-m", "%b"), ("%d", "%-d"))
"""Year, month and day."""
_CLOCK = (("%H", "%-H", "%I"), ("%M",), ("%S",), ("%f",))
_PART = re.compile("%-?.")


class Trailer(DeclaredTable):
    """The last record of a CSV file or row of a workbook, which says what stood before it.

    Places count from 1.
    """

    word: str = Field(min_length=1, max_length=40)
    """Its first cell that is not blank."""
    place: int = Field(default=1, ge=1, le=256)
    """Which cell that is."""
    rows: int = Field(default=0, ge=0, le=256)
    """The cell with the number of rows; 0: none."""
    amount: int = Field(default=0, ge=0, le=256)
    """The cell with the sum of the amounts of a CSV file of one currency; 0: none."""


class SignColumn(DeclaredTable):
    """A column that says whether an amount is added or subtracted, such as Soll and Haben."""

    column: str = Field(min_length=1, max_length=200)
    plus: str = Field(max_length=40)
    minus: str = Field(min_length=1, max_length=40)


class WrittenNumbers(DeclaredTable):
    """What order numbers of a file have that those of the other sides have not, or lack."""

    prefix: str = Field(default="", max_length=20)
    """Taken off where it stands in front, such as `#` or `SHOP-`."""
    suffix: str = Field(default="", max_length=20)
    """Taken off where it stands behind, such as `.0`."""
    digits: int = Field(default=0, ge=0, le=50)
    """Of numbers of digits alone: so many, with 0 in front and no more of them; 0: as written."""


class SkippedRows(DeclaredTable):
    """Rows that are no records, such as subtotals and headings, told by a term in a column."""

    column: str = Field(min_length=1, max_length=200)
    words: tuple[Annotated[str, Field(min_length=1, max_length=80)], ...] = Field(min_length=1)
    """A whole cell each, or, with `*` at its end, how a cell begins."""


class ItemLines(DeclaredTable):
    """Rows under the first line of an order, which alone is its record."""

    column: str = Field(min_length=1, max_length=200)
    first: str = Field(default="", max_length=40)
    """What only the first line has there, such as 1; empty: the column is blank in the others."""


class FileLayout(DeclaredTable):
    """How files of some names are written."""

    files: str = Field(default="*", min_length=1, max_length=200)
    """Which names: a pattern with * and ?; upper and lower case differ."""
    format: Literal["", "csv", "xlsx", "parquet", "jsonl", "xml"] = ""
    """Empty: as the ending of the name says."""
    delimiter: Literal[",", ";", "\t", "|"] = ","
    quote: Literal['"', "'"] = '"'
    encoding: str = "utf-8"
    """One of CODECS; of CSV files."""
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
    minus: Literal["before", "behind", "brackets", "DR"] = "before"
    """How an amount below zero is written: `-1.00`, `1.00-`, `(1.00)`, or `1.00 DR` beside CR."""
    currency_sign: str = Field(default="", max_length=4, pattern=r"^[^\s0-9.,'()+-]*$")
    """What may stand before or behind an amount, such as `$` or `€`; it says no currency."""
    debit: dict[str, str] = Field(default_factory=dict)
    """Our column of a signed amount -> their second column for it, of what is subtracted."""
    sums: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Our amount column -> their columns of which it is the sum, each read as an amount."""
    net: Literal["", "gross_less_fee"] = ""
    """Of settlement files without a column of nets: what it is."""
    currencies: dict[str, str] = Field(default_factory=dict)
    """Our amount column -> their column with its currency, which must be that of its row."""
    debit_minus: bool = False
    """Whether what is subtracted bears a minus of its own in its column."""
    sign: dict[str, SignColumn] = Field(default_factory=dict)
    """Our amount column -> the column with its sign, which it has not itself; of a ledger: S, H."""
    negated: tuple[str, ...] = ()
    """Our amount columns whose sign is the opposite of ours."""
    negated_rows: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Entry type of settled rows -> our amount columns whose sign is the opposite in these."""
    captures: Literal["", "plus", "minus"] = ""
    """Of a ledger whose amounts have a sign or two sides: that of captures; empty: none has one."""
    order_numbers: WrittenNumbers | None = None
    """What becomes of the order numbers, of any kind of file; absent: nothing."""
    decimals: Literal["full", "as_written"] = "full"
    """As written: zeros at the end of an amount may be left out, `12.5` and `12` of EUR."""
    units: Literal["major", "minor"] = "major"
    """Minor: amounts are whole numbers of the smallest unit."""
    times: str = Field(default="", max_length=60)
    """Such as "%d.%m.%Y %H:%M", or one of COUNTED_TIMES; empty: ISO 8601."""
    clock: dict[str, str] = Field(default_factory=dict)
    """Our column of a time -> their column with its time of day, read as `day clock`."""
    zone: Annotated[str, checked_by(lambda name: name and zone_of(name))] = ""
    """Of times without an offset, such as Europe/Lisbon; empty: UTC."""
    preamble: int = Field(default=0, ge=0, le=100)
    """Lines of a CSV file, or rows of a workbook, before the header."""
    newest_file_counts: bool = False
    """Of order files without `updated_at`: what a later file of these names says of an order takes
    the place of what earlier ones say, as if it came again under their name."""
    whole_file: bool = False
    """One unreadable row refuses the whole file."""
    trailer: Trailer | None = None
    skip: tuple[SkippedRows, ...] = Field(default=(), max_length=16)
    lines: ItemLines | None = None
    control_file: str = Field(default="", pattern=r"^(\.[A-Za-z0-9]{1,12})?$")
    """Ending of the file beside it (`orders.csv.control`) with its counts and sums."""
    done_file: str = Field(default="", pattern=r"^(\.[A-Za-z0-9]{1,12})?$")
    """Ending of the file that says it is complete (`orders.csv.done`)."""

    def of_all_rows(self) -> "FileLayout":
        """The same layout without the rules that leave rows out."""
        return self.model_copy(update={"skip": (), "lines": None})

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, name: str) -> str:
        if name not in CODECS:
            msg = f"{name!r} is none of {', '.join(CODECS)}"
            raise ValueError(msg)
        return name

    @field_validator("times")
    @classmethod
    def _readable_times(cls, pattern: str) -> str:
        if pattern in COUNTED_TIMES:
            return pattern
        parts = _PART.findall(pattern)
        unknown = [part for part in parts if part not in TIME_PARTS]
        if unknown:
            msg = f"{unknown[0]} is none of {' '.join(TIME_PARTS)}"
            raise ValueError(msg)
        days, clock = ([_how_often(parts, of) for of in names] for names in (_ONE_OF, _CLOCK))
        if pattern and (len(set(parts)) < len(parts) or days != [1, 1, 1]):
            msg = "needs %Y, %m and %d (or %y; %-m, %b; %-d), each part once"
            raise ValueError(msg)
        late = clock != sorted(clock, reverse=True) or clock[:2] == [1, 0] or max(clock) > 1
        if late or ("%I" in parts) != ("%p" in parts):
            clocks = "%H, %M, %S, %f; %I only with %p"
            msg = f"has a part of the clock without the larger ones ({clocks})"
            raise ValueError(msg)
        return pattern

    @model_validator(mode="after")
    def _meant_once(self) -> Self:
        given = {*self.columns, *self.debit, *self.clock, *self.negated}
        both = sorted(given & set(self.constants))
        if both:
            msg = f"constants and columns both give {', '.join(both)}"
            raise ValueError(msg)
        again = sorted({*self.columns, *self.debit, *self.constants} & set(self.sums))
        if again:
            msg = f"sums and another key both give {', '.join(again)}"
            raise ValueError(msg)
        for name, parts in self.sums.items():
            if not 1 < len(set(parts)) == len(parts) <= SUMMANDS_MAX:
                msg = f"sums.{name}: needs 2 to {SUMMANDS_MAX} columns, each once"
                raise ValueError(msg)
        negated = {name for names in self.negated_rows.values() for name in names}
        if self.net and "net" in {*given, *self.constants, *self.sums, *self.sign, *negated}:
            msg = "net: what is reckoned has no column, constant, sum or sign of its own"
            raise ValueError(msg)
        if self.thousands_sign == self.decimal_sign:
            msg = f"thousands_sign and decimal_sign are both {self.decimal_sign!r}"
            raise ValueError(msg)
        if self.trailer is not None and self.format not in {"", "csv", "xlsx"}:
            msg = f"trailer: only CSV and XLSX have one, not {self.format}"
            raise ValueError(msg)
        if self.preamble and self.format not in {"", "csv", "xlsx"}:
            msg = f"preamble: only CSV and XLSX have one, not {self.format}"
            raise ValueError(msg)
        return self


def _how_often(parts: list[str], of: tuple[str, ...]) -> int:
    return sum(part in of for part in parts)


STANDARD = FileLayout()
"""The columns of the contract, in its standard format."""


def layout_of(name: str, *, layouts: tuple[FileLayout, ...]) -> FileLayout:
    """The first layout whose pattern matches the name of a file, else the standard one."""
    if name.removeprefix(INSTRUCTIONS_PREFIX).startswith(MENDED_PREFIX):
        return STANDARD
    return next((layout for layout in layouts if fnmatchcase(name, layout.files)), STANDARD)


@dataclass(frozen=True, slots=True)
class GivenLayout:
    """One layout, and where it is declared."""

    kind: SourceKind
    owner: str
    """The account or bank that the files belong to."""
    layout: FileLayout
    source: str
    """The file that declares it."""


@dataclass(frozen=True, slots=True)
class GivenLayouts:
    """The layouts for plain files."""

    given: tuple[GivenLayout, ...] = ()

    def of(self, path: Path, *, kind: SourceKind) -> FileLayout:
        """The first layout that matches a file of a kind, else the standard one.

        Raises:
            ConfigurationError: layouts of several accounts match it.
        """
        fitting = [
            each
            for each in self.given
            if each.kind is kind and fnmatchcase(path.name, each.layout.files)
        ]
        owners = sorted({each.owner for each in fitting})
        if len(owners) > 1:
            msg = (
                f"{path.name}: layouts of {' and '.join(owners)} fit it as a file of {kind}; give "
                "each a pattern in `files` that only its own files fit"
            )
            raise ConfigurationError(msg)
        return fitting[0].layout if fitting else STANDARD


OURS = GivenLayouts()
"""The standard layout for every file."""
