"""Turning a drawn workbook into bytes: formulas with the engine's values, the same bytes each time.

openpyxl owns everything but three things it has no way for: the value a formula had when the
engine computed it, rows of lists (written straight as XML, in a fraction of the time), and
a fixed date on every part of the package. Private names of openpyxl 3.1 are used here only, and a
test compares both ways of writing rows.
"""

import zipfile
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any

from openpyxl.cell._writer import write_cell
from openpyxl.drawing.spreadsheet_drawing import SpreadsheetDrawing
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.worksheet._writer import WorksheetWriter
from openpyxl.writer.excel import ExcelWriter
from openpyxl.xml.functions import Element, SubElement

from recon.model.errors import Defect

PART_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every part, so that the same figures give the same bytes."""

ROWS_MAX = 1_048_576
"""Rows of a sheet."""

CachedValue = int | str | Decimal
CachedValues = Mapping[str, Mapping[tuple[int, int], CachedValue]]
"""Sheet title -> (row, column) -> what the engine computed for the formula there."""


@dataclass(frozen=True, slots=True)
class RowStream:
    """Rows of one sheet that are written straight as XML, between the cells openpyxl holds."""

    first_row: int
    last_row: int
    last_column: int
    parts: Iterable[bytes]
    """Read once, while the file is written: never whole in memory."""


def write_package(
    workbook: Workbook,
    target: IO[bytes],
    *,
    cached: CachedValues,
    streams: Mapping[str, Sequence[RowStream]],
) -> None:
    """Write the XLSX file of a workbook."""
    with _DatedZip(target, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        writer: Any = _PackageWriter(workbook, archive)
        writer.cached = cached
        writer.streams = streams
        writer.write_data()


class _DatedZip(zipfile.ZipFile):
    """A zip whose members all carry PART_DATE."""

    def writestr(self, zinfo_or_arcname: Any, data: Any, *rest: Any, **named: Any) -> None:  # noqa: A002, RUF100 - the library's names
        """Add one part with the fixed date."""
        name = getattr(zinfo_or_arcname, "filename", zinfo_or_arcname)
        super().writestr(_part(name), data, *rest, **named)


def _part(name: str) -> zipfile.ZipInfo:
    part = zipfile.ZipInfo(name, PART_DATE)
    part.compress_type = zipfile.ZIP_DEFLATED
    return part


class _PackageWriter(ExcelWriter):
    """openpyxl's writer with our sheet writer in its place."""

    cached: CachedValues
    streams: Mapping[str, Sequence[RowStream]]

    def write_worksheet(self, ws: Any) -> None:
        """One sheet into the package, as the library does it, but through `_SheetWriter`."""
        ws._drawing = SpreadsheetDrawing()  # noqa: SLF001 - the library's own steps, see module text
        ws._drawing.charts = ws._charts  # noqa: SLF001
        ws._drawing.images = ws._images  # noqa: SLF001
        this: Any = self
        with this._archive.open(_part(ws.path[1:]), "w") as out:  # noqa: SLF001
            writer: Any = _SheetWriter(ws, out=out)
            writer.cached = self.cached.get(ws.title, {})
            writer.streams = self.streams.get(ws.title, ())
            writer.write()
            writer.close()
        ws._rels = writer._rels  # noqa: SLF001
        self.manifest.append(ws)


class _SheetWriter(WorksheetWriter):
    """openpyxl's sheet writer; formulas keep their value, streamed rows go straight to the file."""

    cached: Mapping[tuple[int, int], CachedValue]
    streams: Sequence[RowStream]

    def write_dimensions(self) -> None:
        """The sheet's range, streamed rows included."""
        if not self.streams:
            super().write_dimensions()
            return
        this: Any = self
        last_row = max(this.ws.max_row, *(stream.last_row for stream in self.streams))
        last_column = max(this.ws.max_column, *(stream.last_column for stream in self.streams))
        corner = f"{get_column_letter(last_column)}{last_row}"
        self.xf.send(Element("dimension", ref=f"A1:{corner}"))

    def write_rows(self) -> None:
        """The held rows and the streamed ones, each where it stands."""
        this: Any = self
        xf = this.xf.send(True)
        waiting = deque(sorted(self.streams, key=lambda part: part.first_row))
        with xf.element("sheetData"):
            for row_number, row in self.rows():
                held = [cell for cell in row if _is_held(cell)]
                if not held and any(
                    stream.first_row <= row_number <= stream.last_row for stream in self.streams
                ):
                    # A row that was only touched would stand twice, once more where it streams.
                    continue
                while waiting and waiting[0].first_row <= row_number:
                    self._write_stream(xf, waiting.popleft(), before=row_number)
                self.write_row(xf, held, row_number)
            for part in waiting:
                self._write_stream(xf, part)
        this.xf.send(None)

    def _write_stream(self, xf: Any, stream: RowStream, *, before: int = ROWS_MAX + 1) -> None:
        this: Any = self
        if stream.last_row >= before:
            msg = f"{this.ws.title} has cells in row {before}, which is written straight"
            raise Defect(msg)
        xf.flush()
        for part in stream.parts:
            this.out.write(part)

    def _of_row(self, row_idx: int) -> dict[str, str]:
        this: Any = self
        return {"r": f"{row_idx}", **dict(this.ws.row_dimensions.get(row_idx, {}))}

    def write_row(self, xf: Any, row: Iterable[Any], row_idx: int) -> None:
        """One row of held cells; formula cells carry the engine's value."""
        with xf.element("row", self._of_row(row_idx)):
            for cell in row:
                value = self.cached.get((cell.row, cell.column))
                if cell.data_type == "f" and value is not None:
                    xf.write(_formula_element(cell, value))
                else:
                    write_cell(xf, self.ws, cell, cell.has_style)

    def write_drawings(self) -> None:
        """Long numbers in text cells are meant: no green triangles; then the drawings."""
        ignored = Element("ignoredErrors")
        SubElement(ignored, "ignoredError", sqref="A1:AZ1048576", numberStoredAsText="1")
        self.xf.send(ignored)
        super().write_drawings()


def _is_held(cell: Any) -> bool:
    return cell._value is not None or cell.has_style  # noqa: SLF001 - the library's own test


def _formula_element(cell: Any, value: CachedValue) -> Any:
    attributes = {"r": cell.coordinate, "s": f"{cell.style_id}"}
    if isinstance(value, str):
        attributes["t"] = "str"
    if cell.hyperlink:
        cell.parent._hyperlinks.append(cell.hyperlink)  # noqa: SLF001 - as the library does
    element = Element("c", attributes)
    SubElement(element, "f").text = cell._value[1:]  # noqa: SLF001
    SubElement(element, "v").text = str(value)
    return element
