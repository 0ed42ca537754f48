"""The one sheet of a workbook as text columns."""

from collections import deque
from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from recon.config.file_layouts import STANDARD, FileLayout
from recon.files.formats.format_limits import ARCHIVE_BYTES_MAX
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import (
    BadRow,
    RawTable,
    RejectedSoFar,
    checked_header,
    declared_by,
    joined,
    refuse,
    refuse_cards_before_header,
    refuse_too_many_rows,
    trimmed,
)
from recon.files.formats.record_rows import ROWS_AT_ONCE
from recon.files.formats.xlsx_archive import WorkbookFile, reading_archive
from recon.files.formats.xlsx_cells import NumberText, Row, Sheets


def xlsx_table(
    file: FileBytes, *, wanted: Container[str], layout: FileLayout = STANDARD
) -> RawTable:
    """The wanted columns of the only sheet with content.

    Raises:
        SourceUnreadableError: not a plain workbook of one sheet.
    """
    name, trailer = file.path.name, layout.trailer
    with reading_archive(name):
        book = WorkbookFile(file.content, name=name)
        rows = _only_sheet(book)
        head = next(_behind(rows, preamble=layout.preamble, name=name), None)
        if head is None:
            refuse(name, f"has no header behind its first {layout.preamble} rows")
        first = min(head)
        header = checked_header(_texts(head, first=first), name=name)
        last: dict[int, str] = {}
        if trailer is not None:
            if trailer.amount:
                problem = "is a workbook, of whose last row no sum is compared: no trailer.amount"
                refuse(name, problem)
            rows = _but_last(rows, last)
        read, rejected, parts = 0, RejectedSoFar(name), []
        while part := [*islice(rows, ROWS_AT_ONCE)]:
            read += len(part)
            refuse_too_many_rows(read, name=name)
            parts.append(_part(part, header, first=first, rejected=rejected, wanted=wanted))
        table = joined(parts or [_part([], header, first=first, rejected=rejected, wanted=wanted)])
        book.rest()
        if trailer is None:
            return table
        cells = [last.get(at, "").strip() for at in range(first, first + len(header))]
        return replace(table, declared=declared_by(cells, trailer=trailer, name=name))


def sheet_texts(file: FileBytes, *, rows_max: int) -> list[tuple[int, list[str]]]:
    """Number and cells of the first rows with content; numbers are `NumberText`.

    Raises:
        SourceUnreadableError: not a plain workbook of one sheet.
    """
    with reading_archive(file.path.name):
        book = WorkbookFile(file.content, name=file.path.name)
        rows = [*islice(_only_sheet(book), rows_max)]
    first = min(min(cells) for _, cells in rows)
    return [(number, _texts(cells, first=first)) for number, cells in rows]


def refuse_unfit_archive(
    content: bytes, *, name: str, unpacked_max: int = ARCHIVE_BYTES_MAX
) -> None:
    """Let only a plain workbook pass to a reader of forms; its formulas need no values.

    Raises:
        SourceUnreadableError: what is the matter with it, in words.
    """
    with reading_archive(name):
        book = WorkbookFile(content, name=name, unpacked_max=unpacked_max)
        sheets = Sheets(book, as_form=True)
        for _, part in book.sheets():
            deque(sheets.rows(part), maxlen=0)
        book.rest()


def _only_sheet(book: WorkbookFile) -> Iterator[Row]:
    """Its rows that have content."""
    name, sheets = book.name, Sheets(book)
    filled = []
    for title, part in book.sheets():
        rows = sheets.rows(part)
        if first := next(rows, None):
            filled.append((title, chain([first], rows)))
    if not filled:
        refuse(name, "is empty: no sheet has even a header")
    if len(filled) > 1:
        titles = ", ".join(repr(title) for title, _ in filled[:5])
        refuse(name, f"has {len(filled)} sheets with content ({titles}); keep one, so none is lost")
    return filled[0][1]


def _behind(rows: Iterator[Row], *, preamble: int, name: str) -> Iterator[dict[int, str]]:
    """The cells of the rows behind so many of the sheet."""
    for number, cells in rows:
        if number > preamble:
            yield cells
        else:
            refuse_cards_before_header(" ".join(cells.values()), name=name)


def _but_last(rows: Iterator[Row], last: dict[int, str]) -> Iterator[Row]:
    """All rows but the last one, whose cells stand in `last` then."""
    held = next(rows, None)
    for row in rows:
        if held is not None:
            yield held
        held = row
    if held is not None:
        last.update(held[1])


def _texts(cells: dict[int, str], *, first: int) -> list[str]:
    return [cells.get(column, "") for column in range(first, max(cells, default=0) + 1)]


def _part(
    rows: list[Row],
    header: tuple[str, ...],
    *,
    first: int,
    rejected: RejectedSoFar,
    wanted: Container[str],
) -> RawTable:
    good, bad = [], []
    named = range(first, first + len(header))
    for number, cells in rows:
        if all(column in named for column in cells):
            good.append((number, cells))
        else:
            reason = f"has a cell beside the {len(header)} named columns"
            placed = tuple(cells.get(at, "").strip() for at in named)
            bad.append(rejected.take(BadRow(number, reason, " ".join(cells.values()), placed)))
    columns: dict[str, pa.Array] = {}
    numbers: dict[str, pa.Array] = {}
    for at, column in enumerate(header, start=first):
        if column in wanted:
            texts = [cells.get(at, "") for _, cells in good]
            columns[column] = trimmed(pa.array(texts, pa.large_string()))
            marks = [isinstance(text, NumberText) for text in texts]
            if any(marks):
                numbers[column] = pa.array(marks, pa.bool_())
    return RawTable(
        name=rejected.name,
        header=header,
        columns=columns,
        lines=np.array([number for number, _ in good], dtype=np.int64),
        bad_rows=tuple(bad),
        numbers=numbers,
        typed_dates=True,
        workbook=True,
    )
