"""Sheets declared as blocks, which XlsxWriter writes row by row in constant memory.

A sheet is a list of blocks: a sentence; a list with title, columns, rows and a total; or two lists
side by side. `look` defines how cells look and what they hold; nothing is positioned by hand, and
every cell holds a value: no sheet has a formula.
"""

import filecmp
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, BinaryIO

import pandas as pd

from recon.model.durable import flush_folder
from recon.model.errors import Defect, OutputError
from recon.privacy.own_files import GROUP
from reports.drawing.look import (
    BAND,
    CHECK,
    CREAM,
    GREY,
    HEADER,
    HEADER_INPUT,
    INPUT_INK,
    LINE,
    NOT_COVERED,
    OK,
    RIGHT,
    TONES,
    CellLink,
    Kind,
    Tone,
    amount_cell,
    cell_text,
    day_of,
    decimals_of,
    local_instant,
    properties,
    read_text,
    text_width,
)

VERSIONS_MAX = 99


def put_in_place(content: bytes, *, path: Path) -> Path:
    """Like `written_in_place`, for content in memory."""

    def write(file: BinaryIO) -> None:
        file.write(content)

    return written_in_place(write, path=path)


def written_in_place(write: Callable[[BinaryIO], None], *, path: Path) -> Path:
    """Write a file at `path`, or as -v2, -v3 ... when that is open or has other content.

    It is written under a temporary name, flushed to disk, then renamed. An existing equal file is
    left as it is.

    Raises:
        OutputError: there are too many versions already.
        OSError: the folder cannot be written.
    """
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".part")
    staged = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        staged.chmod(GROUP)
        target = _free_name(path, like=staged)
        if target.exists():
            staged.unlink()
        else:
            staged.replace(target)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    flush_folder(target.parent)
    return target


def _free_name(path: Path, *, like: Path) -> Path:
    """The first version not open elsewhere that does not exist, or has the same content."""
    for version in range(1, VERSIONS_MAX + 1):
        target = path if version == 1 else _versioned(path, version=version)
        if _is_open(target):
            continue
        if not target.exists() or filecmp.cmp(target, like, shallow=False):
            return target
    msg = (
        f"{path.name} and {VERSIONS_MAX - 1} later versions are in {path.parent} already; the "
        "result is kept in the database: move old workbooks away, then write the report again"
    )
    raise OutputError(msg)


def _versioned(path: Path, *, version: int) -> Path:
    """Insert the version before the suffix; a compressed file has two."""
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    return path.with_name(f"{path.name.removesuffix(ending)}-v{version}{ending}")


def _is_open(path: Path) -> bool:
    """Whether Excel (~$name) or LibreOffice (.~lock.name#) has the file open."""
    locks = (path.with_name(f"~${path.name}"), path.with_name(f".~lock.{path.name}#"))
    return any(lock.exists() for lock in locks)


Row = Mapping[str, Any]
PAPER_A4 = 9
PAPER_ROWS_MAX = 40
"""Maximum number of rows printed of a long list, which is meant to be read on the screen."""
LINE_POINTS = 13
LINES_MAX = 8
ROWS_MAX = 1_048_576
"""Maximum number of rows of a sheet."""
SEAL_CHARACTERS = 12
FIRST_INPUT_DAY = date(2000, 1, 1)
_FORMULA_STARTS = ("=", "+", "-", "@")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list."""

    title: str
    width: int
    """In characters; blocks that share the widths of a page use those instead."""
    value: str | Callable[[Row], Any]
    """A field name, or a function from a row to its cell."""
    kind: Kind = "text"
    currency: str = "currency"
    """The field with an amount's currency."""
    wrap: bool = False
    """Wrap the text over several lines."""
    span: int = 1
    """Number of sheet columns that it occupies."""
    tone: Tone | Callable[[Row], Tone] = ""
    is_hidden: bool = False
    """Grouped and collapsed, at the right end of the sheet."""
    choices: tuple[str, ...] = ()
    characters_max: int = 0
    """Maximum length of an input cell; one without this and without choices takes a date."""
    is_covered: bool = True
    """False: each cell says that its source is not covered."""
    over: str = ""
    """Heading above it and the adjacent columns with the same one."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list: title, header, rows, total."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str | CellLink = ""
    total: Row | None = None
    nothing: str = "None."
    """Text in place of rows when there are none."""
    is_list: bool = False
    """Whether it is the main list of its sheet: filtered, repeated header, shortened in print."""
    name: str = ""
    """Defined name of its first cell, for links from other sheets."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text; "" is a blank line."""

    text: str | CellLink | Callable[[int], str] = ""
    """A function gets the number of characters that had to be replaced so far."""
    tone: Tone = ""
    span: int = 1
    """Number of columns with its colour; a longer text is wrapped over several."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two lists side by side; the second starts `at` columns from the left."""

    left: Listing
    right: Listing
    at: int


Block = Listing | TextLine | SideBySide


@dataclass(frozen=True, slots=True)
class Sheet:
    """Content of one sheet, and how it is printed."""

    title: str
    blocks: Sequence[Block]
    heading: str = ""
    about: str = ""
    """One sentence below the heading."""
    widths: Sequence[int] = ()
    """Column widths of blocks that share them; by default those of the first list."""
    frozen: tuple[int, int] = (3, 0)
    """Number of rows and columns that do not scroll."""
    paper_columns: int = 0
    """Number of columns to print; 0: all."""
    pages: tuple[int, int] = (1, 0)
    """Pages wide and high; 0: as many as needed."""
    is_upright: bool = False
    is_locked: bool = True
    is_hidden: bool = False
    colour: str = ""


@dataclass(frozen=True, slots=True)
class Workbook:
    """Sheets and the properties of the file."""

    title: str
    sheets: Sequence[Sheet]
    written: datetime
    footer: str = ""
    """Footer of each printed page; "": the title."""
    subject: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    timezone: str = "UTC"

    def write(self, target: IO[bytes]) -> None:
        """Write the file; the same workbook gives the same bytes."""
        # Imported here: most commands that import this module write no workbook.
        from xlsxwriter import Workbook as Writer

        book = Writer(target, {"constant_memory": True})
        created = self.written.astimezone(UTC) if self.written.tzinfo else self.written
        book.set_properties(
            {
                "title": self.title,
                "subject": self.subject,
                "author": "recon",
                "created": created.replace(tzinfo=None, microsecond=0),
            }
        )
        for name, fact in self.facts.items():
            book.set_custom_property(name, fact, "text")
        drawn = _Drawn(book, timezone=self.timezone, footer=self.footer or self.title)
        for sheet in self.sheets:
            drawn.draw(sheet)
        book.close()

    def content(self) -> bytes:
        """The bytes of the file, for small workbooks."""
        target = BytesIO()
        self.write(target)
        return target.getvalue()


def saved(book: Workbook, *, path: Path, what: str, advice: str) -> Path:
    """Write a small workbook as `put_in_place` does.

    Args:
        book: the workbook.
        path: its preferred path.
        what: what the error message calls it.
        advice: end of the error message: what is not lost, and what to do.

    Raises:
        OutputError: the folder cannot be written, or there are too many versions already.
    """
    try:
        return put_in_place(book.content(), path=path)
    except OSError as error:
        msg = f"{what} cannot be written to {path.parent} ({error.strerror}){advice}"
        raise OutputError(msg) from error


def list_sheet(
    title: str, columns: Sequence[Column], rows: Sequence[Row], *, about: str, heading: str = ""
) -> Sheet:
    """A sheet that consists of one list."""
    heading = heading or title
    block = Listing(columns, rows)
    return Sheet(title, [block], heading=heading, about=about, frozen=(4, 0))


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame as plain values."""
    if not len(frame):
        return []
    columns = [[plain(value) for value in frame[name].tolist()] for name in frame.columns]
    return [dict(zip(frame.columns, cells, strict=True)) for cells in zip(*columns, strict=True)]


def plain(value: Any) -> Any:
    """A value of a frame as int, str, datetime or None; NA, NaT and NaN are None."""
    if value is None or isinstance(value, str):
        return value
    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)
    if isinstance(value, date):
        return value
    # A column that lost its dtype has NaN for blank; only NaN differs from itself.
    return None if value != value else int(value)  # noqa: PLR0124 - the test for NaN


def seal_of(cells: Iterable[Any]) -> str:
    """Twelve hex digits of the digest of a row's cells, the same when written and read back."""
    text = "\x1f".join(map(_canonical, cells))
    return hashlib.sha256(text.encode()).hexdigest()[:SEAL_CHARACTERS]


def _canonical(cell: Any) -> str:
    if cell is None or isinstance(cell, str):
        return cell_text(read_text(cell))[0]
    if isinstance(cell, date):
        return cell.isoformat()[:10]
    return f"{Decimal(f'{cell:.15g}').normalize():f}"


def check_of(*, holds: bool) -> str:
    """The text of a check."""
    return OK if holds else CHECK


@dataclass(slots=True)
class _Line:
    """Cells of one row: (column, span, content, kind, currency, look)."""

    cells: list[tuple[int, int, Any, str, str, Mapping[str, Any]]]
    points: int = 0


class _Drawn:
    """A workbook being drawn, with a cache of its formats."""

    def __init__(self, book: Any, *, timezone: str, footer: str) -> None:
        self.book, self.timezone, self.footer = book, timezone, footer
        self.replaced = 0
        self._formats: dict[tuple[Any, ...], tuple[Any, Mapping[str, Any]]] = {}

    def draw(self, sheet: Sheet) -> None:
        """Draw one sheet, from the first row to the last."""
        page = self.book.add_worksheet(sheet.title)
        first = next((each for each in sheet.blocks if isinstance(each, Listing)), None)
        grid = sheet.widths or [column.width for column in (first.columns if first else ())]
        for number, width in enumerate(grid):
            page.set_column(number, number, width)
        listed = next((e for e in sheet.blocks if isinstance(e, Listing) and e.is_list), None)
        row, printed = 0, 0
        head = _head(sheet, listed)
        for number, block in enumerate((*head, *sheet.blocks)):
            # Leave a gap above each list, except at the top.
            row += number > len(head) and not isinstance(block, TextLine)
            top = row
            if isinstance(block, Listing) and block.name:
                self.book.define_name(block.name, f"='{sheet.title}'!$A${top + 1}")
            for line in self._lines(block, grid):
                self._put(page, row, line)
                row += 1
                if row > ROWS_MAX:
                    msg = f"{sheet.title} has more rows than a sheet"
                    raise Defect(msg)
            if block is listed:
                header = top + bool(listed.title)
                self._set_up(page, listed, header=header, last=max(header + 1, row - 1))
                printed = header + 1 + PAPER_ROWS_MAX
        self._set_up_page(page, sheet, grid=grid, last=min(row, printed) if printed else row)

    def _lines(self, block: Block, grid: Sequence[int]) -> Iterator[_Line]:
        """The rows of a block, starting at column 0."""
        if isinstance(block, TextLine):
            yield from self._sentence(block, grid)
            return
        if isinstance(block, SideBySide):
            pairs = zip_longest(self._lines(block.left, grid), self._lines(block.right, grid))
            for left, right in pairs:
                moved = [(at + block.at, *rest) for at, *rest in right.cells] if right else []
                both = [*(left.cells if left else ()), *moved]
                yield _Line(both, max(each.points for each in (left, right) if each))
            return
        if block.title:
            yield from self._sentence(TextLine(block.title, "heading"), grid)
        starts = [sum(c.span for c in block.columns[:n]) for n in range(len(block.columns))]
        titles = [
            (at, each.span, each.title, "text", "", _header_look(each))
            for at, each in zip(starts, block.columns, strict=True)
        ]
        if any(each.over for each in block.columns):
            yield _Line([*_bands(block.columns, starts)])
        high = any(
            len(each.title) > _room(each, grid, at)
            for at, each in zip(starts, block.columns, strict=True)
        )
        yield _Line(titles, 30 if high or block.is_list else 0)
        plan = [self._plan(each, at, grid) for at, each in zip(starts, block.columns, strict=True)]
        for each in block.rows:
            yield self._row(plan, each)
        if block.total is not None:
            yield self._row(plan, block.total, tone="total")
        if not block.rows and block.nothing:
            yield from self._sentence(TextLine(block.nothing, "note"), grid)

    def _sentence(self, sentence: TextLine, grid: Sequence[int]) -> Iterator[_Line]:
        content = sentence.text(self.replaced) if callable(sentence.text) else sentence.text
        kind, text = ("link", content.text) if isinstance(content, CellLink) else ("text", content)
        look = {**TONES[sentence.tone], **_BARE, "text_wrap": sentence.span > 1}
        lines = _lines_in(text, sum(grid[: sentence.span])) if sentence.span > 1 else 1
        points = _SENTENCE_POINTS.get(sentence.tone, 0) if lines == 1 else LINE_POINTS * lines + 3
        yield _Line([(0, sentence.span, content, kind, "", _shared(look))], points)

    def _plan(self, column: Column, at: int, grid: Sequence[int]) -> tuple[Any, ...]:
        """What the rows need to know of a column, computed once."""
        value = itemgetter(column.value) if isinstance(column.value, str) else column.value
        room = _room(column, grid, at) if column.wrap and not column.is_hidden else 0
        base = _INPUT if column.kind == "input" else {"text_wrap": column.wrap}
        looks = {tone: _shared({**base, **look}) for tone, look in TONES.items()}
        return (at, column, value, looks, room)

    def _row(self, plan: Iterable[tuple[Any, ...]], row: Row, *, tone: str = "") -> _Line:
        line, high = _Line([]), 1
        sealed: list[Any] = []
        for at, column, value, looks, room in plan:
            kind, currency = column.kind, ""
            content: Any = value(row) if column.is_covered else NOT_COVERED
            if not column.is_covered:
                kind = "text"
                looks = _UNCOVERED  # noqa: PLW2901 - of another kind
            elif isinstance(content, CellLink):
                kind = "link"
            elif kind == "money":
                currency = row.get(column.currency) or ""
                if content is not None:
                    content = amount_cell(content, currency)
            elif kind == "date" or (kind == "input" and not isinstance(content, str)):
                content = day_of(content)
            elif kind == "instant" and content is not None:
                content = local_instant(content, timezone=self.timezone)
            if kind == "key":
                content = f"{content}.{seal_of([content, *sealed])}"
            elif kind != "input":
                sealed.append(content)
            text = content.text if isinstance(content, CellLink) else content
            own = column.tone if isinstance(column.tone, str) else column.tone(row)
            if kind == "check" and content:
                own = {OK: "good", CHECK: "bad"}.get(content, "muted")
            if kind == "input" and _is_day(column):
                kind = "date"
            line.cells.append((at, column.span, content, kind, currency, looks[own or tone]))
            if room and isinstance(text, str) and len(text) > room:
                high = max(high, _lines_in(text, room))
        if high > 1:
            line.points = LINE_POINTS * min(high, LINES_MAX) + 3
        return line

    def _put(self, page: Any, row: int, line: _Line) -> None:
        """Write one row, left to right."""
        if line.points:
            page.set_row(row, line.points)
        for at, span, content, kind, currency, look in line.cells:
            style = self._format(kind, currency, look)
            if span > 1 and look.get("text_wrap"):
                page.merge_range(row, at, row, at + span - 1, "", style)
            elif span > 1:
                for column in range(at + 1, at + span):
                    page.write_blank(row, column, None, style)
            if content is None or content == "":
                page.write_blank(row, at, None, style)
            elif isinstance(content, str):
                text, replaced = cell_text(content)
                self.replaced += replaced
                if text.startswith(_FORMULA_STARTS):
                    style = self._format(kind, currency, _quoted(look))
                page.write_string(row, at, text, style)
            elif isinstance(content, CellLink):
                page.write_url(row, at, _url(content), style)
            elif isinstance(content, date):
                page.write_datetime(row, at, content, style)
            else:
                page.write_number(row, at, content, style)

    def _format(self, kind: str, currency: str, look: Mapping[str, Any]) -> Any:
        known = self._formats.get((kind, decimals_of(currency), id(look)))
        if known is None:
            made = self.book.add_format(properties(kind, currency) | dict(look))
            # The look is stored with its format, so that its id is not reused.
            known = self._formats[kind, decimals_of(currency), id(look)] = (made, look)
        return known[0]

    def _set_up(self, page: Any, block: Listing, *, header: int, last: int) -> None:
        """Set up filter, repeated header, groups and the validation of input cells."""
        page.autofilter(header, 0, last, sum(column.span for column in block.columns) - 1)
        page.repeat_rows(header)
        if not any(column.kind == "input" for column in block.columns):
            return
        cream = self.book.add_format({"bg_color": CREAM, "border": 1, "border_color": LINE})
        for number, column in enumerate(block.columns):
            options = {"level": 1, "hidden": True} if column.is_hidden else {}
            if column.kind == "input":
                every = {"type": "formula", "criteria": "=TRUE", "format": cream}
                page.conditional_format(header + 1, number, last, number, every)
            page.set_column(number, number, column.width, None, options)
            page.data_validation(header + 1, number, last, number, _rule(column))
        if block.columns[-1].is_hidden:
            page.set_column(len(block.columns), len(block.columns), 3, None, {"collapsed": True})

    def _set_up_page(self, page: Any, sheet: Sheet, *, grid: Sequence[int], last: int) -> None:
        page.hide_gridlines(2)
        page.freeze_panes(*sheet.frozen)
        if sheet.colour:
            page.set_tab_color(sheet.colour)
        if not sheet.is_upright:
            page.set_landscape()
        page.set_paper(PAPER_A4)
        page.set_margins(left=0.4, right=0.4, top=0.4, bottom=0.6)
        page.fit_to_pages(*sheet.pages)
        if not sheet.is_hidden:  # a sheet with a print area is printed even when hidden
            page.print_area(0, 0, max(last, 1) - 1, (sheet.paper_columns or max(len(grid), 1)) - 1)
        footer = self.footer.replace("&", "&&")
        page.set_footer(f"&L&8{footer}&C&8&A&R&8Page &P of &N")
        # Long numbers stored as text are intended: suppress the warning triangles.
        page.ignore_errors({"number_stored_as_text": "A1:AZ1048576"})
        if sheet.is_locked:
            free = {"autofilter": True, "sort": True, "format_columns": True, "format_rows": True}
            page.protect("", free)
        if sheet.is_hidden:
            page.very_hidden()


def _url(link: CellLink) -> Any:
    from xlsxwriter.url import Url

    url = Url(f"{'external' if link.is_file else 'internal'}:{link.target}")
    url.text = link.text
    if link.is_file:
        # Set verbatim: the library would convert it to a Windows path.
        url._link = url._relationship_link = link.target  # noqa: SLF001 - there is no other way
    return url


def _head(sheet: Sheet, listed: Listing | None) -> list[TextLine]:
    """Rows 1 to 3: heading, description, and what is not printed."""
    if not sheet.heading:
        return []
    count = len(listed.rows) if listed else 0
    left_out = (
        f"On paper: of the list of {count:,} rows the first {PAPER_ROWS_MAX}; the file has all."
        if count > PAPER_ROWS_MAX
        else ""
    )
    return [TextLine(sheet.heading, "title"), TextLine(sheet.about, "muted"), TextLine(left_out)]


_BARE = {"bottom": 0, "indent": 0}
_SENTENCE_POINTS = {"title": 22, "heading": 18} | dict.fromkeys(
    (tone for tone in TONES if tone.startswith("verdict")), 22
)
_INPUT = {"font_color": INPUT_INK, "locked": False, "text_wrap": True}
_LOOKS: dict[frozenset[tuple[str, Any]], Mapping[str, Any]] = {}
"""Equal looks are one object, so that a format is found by its look's id."""


def _shared(look: Mapping[str, Any]) -> Mapping[str, Any]:
    return _LOOKS.setdefault(frozenset(look.items()), look)


def _quoted(look: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep the cell a text when it is edited."""
    return _shared({**look, "quote_prefix": True})


_UNCOVERED = dict.fromkeys(TONES, _shared({"font_color": GREY, "align": "right"}))


def _header_look(column: Column) -> Mapping[str, Any]:
    if column.kind == "input":
        return _shared({**HEADER_INPUT, "align": "left"})
    align = "right" if column.kind in RIGHT else "center" if column.kind == "check" else "left"
    wrap = column.span == 1
    return _shared({**HEADER, "align": align, "indent": int(align == "left"), "text_wrap": wrap})


def _bands(columns: Sequence[Column], starts: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Cells above the titles, one for adjacent columns with the same heading."""
    both = zip(starts, columns, strict=True)
    for over, group in groupby(both, key=lambda each: each[1].over):
        (first, _), *_ = own = [*group]
        if over:
            span = sum(each.span for _, each in own)
            yield (first, span, over, "text", "", _shared(BAND))


def _room(column: Column, grid: Sequence[int], at: int) -> int:
    """Number of characters in a line of a column."""
    return max(sum(grid[at : at + column.span]) * 11 // 10 - 1, 4)


def _lines_in(text: str, room: int) -> int:
    """Number of lines of a text at this width in characters."""
    lines, left = 1, room
    for label in text.split(" "):
        width = text_width(label)
        if width > left:
            lines, left = lines + max(1, -(-width // room) if width > room else 1), room
        left -= width + 1
    return lines


def _is_day(column: Column) -> bool:
    """Whether an input column takes a date: it has neither choices nor a text length."""
    return column.kind == "input" and not column.choices and not column.characters_max


def _rule(column: Column) -> dict[str, Any]:
    """Data validation of a cell; one that is not an input accepts nothing."""
    rule: dict[str, Any] = {"error_title": column.title[:32], "ignore_blank": True}
    if column.kind != "input":
        message = "This cell is not read back: answer in the cream columns."
        return rule | {"validate": "custom", "value": "=FALSE", "error_message": message}
    if column.choices:
        message = "Choose from the list."
        return rule | {
            "validate": "list",
            "source": [*column.choices],
            "error_message": message,
        }
    if column.characters_max:
        length = {"validate": "length", "criteria": "<=", "value": column.characters_max}
        return rule | length | {"error_message": f"At most {column.characters_max} characters."}
    day = {"validate": "date", "criteria": ">", "value": FIRST_INPUT_DAY}
    return rule | day | {"error_message": "Write a date, such as 2026-11-21."}
