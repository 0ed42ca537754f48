"""Reading our workbooks back: the totals of their sheets (T13), and cells that differ."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from openpyxl import load_workbook
from openpyxl.utils import get_column_letter
from openpyxl.utils.exceptions import InvalidFileException

from recon.files.formats.xlsx_book import refuse_unfit_form
from recon.model.errors import OutputError, SourceUnreadableError
from recon.proof.totals_in_sql import BY_RULE, in_file
from recon.steps.compare.sheets_proven import CHECKS, SheetTotals
from reports.drawing.look import CHECK, decimals_of, read_text
from reports.sheets.assurance import TITLE as ASSURANCE
from reports.sheets.assurance import named_in
from reports.sheets.breaks_sheet import (
    ANSWERED_BY,
    ANSWERS,
    COLUMNS,
    EFFECT,
    HEADER_ROW,
    KEY,
    KEY_AT,
    break_of,
)
from reports.sheets.breaks_sheet import TITLE as BREAKS
from reports.sheets.labels import rule_of
from reports.sheets.lists import CURRENCY, MATCHED_ROWS, RESULT, RULE, SETS
from reports.sheets.page_one import (
    ATTENTION_AT,
    NEXT,
    NO_OWNER,
    SEVERE_LINE,
    SIGN_OFF,
    SIGNED_FILE,
)
from reports.sheets.page_one import TITLE as SUMMARY
from reports.sheets.totals import NOT_VERIFIED, WAITING, companions_of
from reports.sheets.totals import TITLE as RUN_TITLE

MATCHES = "match"
RESULTS = {WAITING: "pending", NOT_VERIFIED: "unverified"}
"""Result of a row of the sheet Pending -> its section."""
AMOUNT_TYPE = pa.decimal128(24, 4)
"""Major units, exact: no currency has more than four decimals."""
SUMMED = "effect_orders"
READ_BYTES = 8 * 1024 * 1024
"""Bytes of a file that are held in memory while it is read back."""
UNREADABLE = (BadZipFile, InvalidFileException, KeyError, OSError, SyntaxError, ValueError)
"""Exceptions of openpyxl for files that are not workbooks of ours."""
Cells = Sequence[Any]


@contextmanager
def opened(file: Path | IO[bytes]) -> Iterator[Any]:
    """Open a workbook for reading row by row."""
    book = load_workbook(file, read_only=True)
    try:
        yield book
    finally:
        book.close()


def rows_in(book: Any, title: str) -> Iterator[Cells]:
    """The values of a sheet from A1 on, "" for empty cells."""
    for cells in book[title].iter_rows(values_only=True):
        yield ["" if c is None else read_text(c) if isinstance(c, str) else c for c in cells]


def sheet_totals(path: Path, *, companions: Mapping[str, Path] | None = None) -> SheetTotals:
    """Row counts and sums of each list as they are in the file.

    Args:
        path: The workbook.
        companions: Paths of files that it names and that do not have their final names yet.

    Raises:
        OutputError: the file cannot be read, or a list is not where it should be.
    """
    try:
        with opened(path) as book:
            named = companions_of(workbook_facts(book))
            files = {name: path.with_name(name) for _, _, name in named} | dict(companions or {})
            pending = [*list_rows(book, "Pending", (RESULT, SETS))]
            matched = [*list_rows(book, "Matched", (RULE, MATCHED_ROWS))]
            # Files that replace rows, with the row count that the sheet states for each.
            listed = list_rows(book, ASSURANCE, ("Kind", "Name", "Rows"), optional=True)
            totals = {
                "break": _summed(list_rows(book, "Breaks", (KEY, CURRENCY))),
                "instruction": _summed(
                    list_rows(book, "Instructions", ("Instruction", CURRENCY)), summed="Amount"
                ),
                **{
                    section: _summed(row for row in pending if row[RESULT] == result)
                    for result, section in RESULTS.items()
                },
                MATCHES: _summed(matched),
                **{
                    f"{BY_RULE}{rule_of(rule)}": _summed(r for r in matched if str(r[RULE]) == rule)
                    for rule in dict.fromkeys(str(row[RULE]) for row in matched)
                },
                **{in_file(of, sha256=digest): (rows, {}) for of, rows, digest in named_in(listed)},
            }
            for _, _, name in named:
                totals |= _unlike(totals, companions=files[name])
            # Number of failing checks, which makes page one NOT PROVEN.
            failing = sum(cell == CHECK for cells in rows_in(book, ASSURANCE) for cell in cells)
            return {**totals, CHECKS: (failing, {})}
    except UNREADABLE as error:
        msg = f"{path} cannot be read back ({error}); the result is kept: write the report again"
        raise OutputError(msg) from error


def list_rows(
    book: Any, title: str, named: tuple[str, ...], *, optional: bool = False
) -> Iterator[dict[str, Any]]:
    """Rows of a list, from the line with these titles to the first row without its first field."""
    positions: dict[str, int] = {}
    for cells in rows_in(book, title):
        if not positions:
            if set(named) <= set(cells):
                positions = {str(name): column for column, name in reversed([*enumerate(cells)])}
            continue
        if cells[positions[named[0]]] == "":
            return
        yield {name: cells[column] for name, column in positions.items()}
    if not positions and not optional:
        msg = f"the sheet {title} has no list with a column {named[0]!r}; write the report again"
        raise OutputError(msg)


def _summed(
    rows: Iterable[Mapping[str, Any]], *, summed: str = EFFECT
) -> tuple[int, Mapping[str, int]]:
    """Row count and sums by currency; a row of an aggregated list states its own count."""
    count, sums = 0, Counter[str]()
    for row in rows:
        count += int(row.get(SETS, row.get(MATCHED_ROWS, 1)))
        sums[str(row[CURRENCY])] += minor_units_of(row[summed], currency=str(row[CURRENCY]))
    return count, dict(sums)


def _unlike(totals: SheetTotals, *, companions: Path) -> SheetTotals:
    """Totals of the file with all matches, empty when they are those of the sheet."""
    rows, majors = totals_in(companions)
    minor_units = {
        currency: int(sum_.scaleb(decimals_of(currency))) for currency, sum_ in majors.items()
    }
    return {} if (rows, minor_units) == totals[MATCHES] else {MATCHES: (rows, minor_units)}


def companion_problems(path: Path) -> Iterator[str]:
    """Problems with the files that accompany a workbook, as sentences.

    Raises:
        OutputError: the workbook cannot be read.
    """
    try:
        with opened(path) as book:
            facts = workbook_facts(book)
    except UNREADABLE as error:
        msg = f"{path} cannot be read ({error}): it is not a workbook of ours"
        raise OutputError(msg) from error
    for rows, digest, name in companions_of(facts):
        file = path.with_name(name)
        again = "`recon workbook` writes it again"
        if not file.is_file():
            yield f"{file}, which holds the {rows} matched rows of {path.name}, is gone; {again}"
        elif sha256_of(file) != digest:
            yield f"{file} is not the file that {path.name} names: it was changed since; {again}"


def workbook_facts(book: Any) -> dict[str, str]:
    """The facts of the run on the hidden sheet."""
    rows = rows_in(book, RUN_TITLE)
    return {str(cells[0]): str(cells[1]) for cells in rows if len(cells) > 1 and cells[0]}


def minor_units_of(cell: Any, *, currency: str) -> int:
    """A cell's amount in minor units, exactly; blank is 0.

    Raises:
        OutputError: the cell holds no amount of the currency.
    """
    if cell == "":
        return 0
    try:
        # repr of the float is the shortest text for it: the digits that were written.
        amount = Decimal(repr(cell) if not isinstance(cell, str) else cell)
    except InvalidOperation:
        msg = f"{cell!r} is not an amount; the workbook was changed: write the report again"
        raise OutputError(msg) from None
    minor_units = amount.scaleb(decimals_of(currency))
    if minor_units != minor_units.to_integral_value():
        msg = f"{cell!r} is not an amount of {currency}; the workbook was changed"
        raise OutputError(msg)
    return int(minor_units)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def totals_in(path: Path) -> tuple[int, Mapping[str, Decimal]]:
    """Row count of a CSV file, and the sum of SUMMED by currency in major units; read in chunks.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not what was written.
    """
    rows = 0
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    convert = arrow_csv.ConvertOptions(
        column_types={"currency": pa.string(), SUMMED: AMOUNT_TYPE},
        include_columns=["currency", SUMMED],
        strings_can_be_null=False,
        null_values=[""],
    )
    with (
        path.open("rb") as file,
        arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(block_size=READ_BYTES, use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=convert,
        ) as batches,
    ):
        for batch in batches:
            rows += batch.num_rows
            currencies, amounts = batch.column("currency"), batch.column(SUMMED)
            for currency in pc.unique(currencies).to_pylist():
                mine = amounts.filter(pc.equal(currencies, currency))
                sums[currency] += pc.sum(mine).as_py() or Decimal(0)
    return rows, dict(sums)


CELL_CHARACTERS_MAX = 60
"""Maximum number of characters of a cell in a message."""
NEWER_LATER = frozenset({"history_head", "History"})
"""Facts of the hidden sheet and of Assurance that change after the run."""
LEFT_OUT = frozenset({*ANSWERS, ANSWERED_BY})
"""Columns of Breaks that people, or later an import, fill in."""
DIFFERENCES_MAX = 100_000
"""Maximum number of differing cells reported for one workbook."""
_EQUAL = Decimal("1e-15")
"""Relative tolerance: another program may write the last digit of a quotient differently."""
_ANSWERED = frozenset(
    number for number, column in enumerate(COLUMNS, 1) if column.title in LEFT_OUT
)

_OWNER_AT = next(number for number, column in enumerate(COLUMNS) if column.title == "Owner")
_AS_SIGNED = re.compile(
    r"As signed: (no break is high or critical|the one break that is high or critical has an owner "
    r"and a comment|each of the [0-9,]+ high and critical breaks has an owner and a comment"
    r"|[0-9,]+ of [0-9,]+ high and critical breaks lack an owner or a comment)"
    r"; [0-9,]+ of [0-9,]+ breaks are answered\."
)
"""Text of a signed copy in place of the run's next step."""


def run_of(path: Path) -> str:
    """The run id stated in a workbook; "" when it is not a workbook of ours."""
    try:
        refuse_unfit_form(path)
        with opened(path) as book:
            return workbook_facts(book).get("run_id", "")
    except (SourceUnreadableError, *UNREADABLE):
        return ""


def differences(night: Path, path: Path) -> Iterator[str]:
    """Every cell that differs from the run's own file, named with its sheet.

    Raises:
        OutputError: the workbook cannot be read.
    """
    try:
        with opened(night) as true, opened(path) as book:
            yield from islice(_differing(book, true=true), DIFFERENCES_MAX)
    except UNREADABLE as error:
        msg = f"{path} cannot be read ({error}): it is not a workbook of ours"
        raise OutputError(msg) from error


def _differing(book: Any, *, true: Any) -> Iterator[str]:
    owners, stored_owners = (_owners(each) for each in (book, true))
    for title in true.sheetnames:
        if title not in book.sheetnames:
            yield f"the sheet {title} is missing"
            continue
        in_workbook, stored = rows_in(book, title), rows_in(true, title)
        if title == BREAKS:
            yield from _breaks([*in_workbook], true=[*stored])
            continue
        nothing: Cells = ()
        for number, (row, expected) in enumerate(
            zip_longest(in_workbook, stored, fillvalue=nothing), 1
        ):
            if not _is_left_out(title, expected):
                cells = expected
                if title == SUMMARY and expected and row:
                    cells = _as_signed(row, expected, owners=(owners, stored_owners))
                yield from _row(title, number=number, sides=(row, cells))


def _is_left_out(title: str, expected: Cells) -> bool:
    """Whether a signed copy fills in the line, or its fact changes after the run."""
    if title == SUMMARY:
        return not {*SIGN_OFF.values(), *SIGNED_FILE}.isdisjoint(map(str, expected))
    return title in {RUN_TITLE, ASSURANCE} and bool(expected) and expected[0] in NEWER_LATER


def _owners(book: Any) -> frozenset[str]:
    """The owners of breaks on the sheet Breaks of a workbook, and the text for none."""
    rows = rows_in(book, BREAKS) if BREAKS in book.sheetnames else ()
    return frozenset({NO_OWNER, *(str(row[_OWNER_AT]) for row in rows if len(row) > _OWNER_AT)})


def _as_signed(
    in_workbook: Cells, stored: Cells, *, owners: tuple[frozenset[str], frozenset[str]]
) -> Cells:
    """The cells of page one as expected in a signed copy, with its answers and owners."""
    first, at = str(stored[0]), ATTENTION_AT[-1]
    if first.startswith(NEXT) and _AS_SIGNED.fullmatch(str(in_workbook[0])):
        return (in_workbook[0], *stored[1:])
    if SEVERE_LINE.match(first) and len(in_workbook) > at:
        to_do = str(stored[at])
        remainder = {
            to_do.removeprefix(name) for name in owners[1] if name and to_do.startswith(name)
        }
        if str(in_workbook[at]) in {
            f"{name}{ending}" for name in owners[0] for ending in remainder
        }:
            return (*stored[:at], in_workbook[at], *stored[at + 1 :])
    return stored


def _breaks(in_workbook: Sequence[Cells], *, true: Sequence[Cells]) -> Iterator[str]:
    """Compare breaks by their key, because people may sort them."""
    for number, sides in enumerate(
        zip(in_workbook[:HEADER_ROW], true[:HEADER_ROW], strict=False), 1
    ):
        yield from _row(BREAKS, number=number, sides=sides)
    stored = {break_of(row): row for row in true[HEADER_ROW:] if break_of(row)}
    for number, row in enumerate(in_workbook[HEADER_ROW:], HEADER_ROW + 1):
        if all(cell == "" for cell in row):
            continue
        expected = stored.pop(break_of(row), None)
        if expected is None:
            cell = f"{BREAKS}!{get_column_letter(KEY_AT + 1)}{number}"
            yield f"{cell} says {_quoted(break_of(row))}: no such break, or a second time"
        else:
            yield from _row(BREAKS, number=number, sides=(row, expected), left_out=_ANSWERED)
    for key in stored:
        yield f"{BREAKS} lacks the row of the break {key}"


def _row(
    title: str,
    *,
    number: int,
    sides: tuple[Cells, Cells],
    left_out: frozenset[int] = frozenset(),
) -> Iterator[str]:
    for column, (in_workbook, stored) in enumerate(zip_longest(*sides, fillvalue=""), 1):
        if title == BREAKS and column == KEY_AT + 1:
            in_workbook, stored = (str(each).partition(".")[0] for each in (in_workbook, stored))  # noqa: PLW2901 - its version may grow
        if column not in left_out and not _is_same(in_workbook, stored):
            cell = f"{title}!{get_column_letter(column)}{number}"
            yield f"{cell} says {_quoted(in_workbook)}, the night says {_quoted(stored)}"


def _is_same(in_workbook: object, stored: object) -> bool:
    if in_workbook == stored or isinstance(in_workbook, str) or isinstance(stored, str):
        return in_workbook == stored
    try:
        left, other = Decimal(repr(in_workbook)), Decimal(repr(stored))
    except InvalidOperation:
        return False
    return abs(left - other) <= _EQUAL * abs(other)


def _quoted(cell: object) -> str:
    text = "nothing" if cell == "" else repr(cell) if isinstance(cell, str) else str(cell)
    return text if len(text) <= CELL_CHARACTERS_MAX else f"{text[:CELL_CHARACTERS_MAX]}…"
