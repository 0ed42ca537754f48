"""What a workbook says, and how each sheet looks: one digest a sheet."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openpyxl import load_workbook

from tests.golden.figures import Figure

LOOK = "look"
DIGEST_CHARACTERS = 16


def digests_of(path: Path) -> dict[str, Figure]:
    """Sheet -> one digest over its cells and looks."""
    return {sheet: digest(repr(cells)) for sheet, cells in _cells(path).items()}


def digest(text: str) -> str:
    """The first characters of a SHA-256: enough to be told from any other by accident."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


def _cells(path: Path) -> dict[str, dict[str, Figure]]:
    """Sheet -> its cells by their coordinates, and one digest over how it looks."""
    return {
        sheet.title: {
            LOOK: _look(sheet),
            **{
                cell.coordinate: _figure(cell.value)
                for row in sheet.iter_rows()
                for cell in row
                if cell.value is not None
            },
        }
        for sheet in load_workbook(path)
    }


def _figure(value: Any) -> Figure:
    """The value, a formula of several cells as its text."""
    return value if isinstance(value, Figure) else str(getattr(value, "text", value))


def _look(sheet: Any) -> str:
    return digest("\n".join(_look_lines(sheet)))


def _look_lines(sheet: Any) -> Iterator[str]:
    """Formats of the cells, widths, what is merged, checked, coloured by rule, frozen, hidden."""
    for row in sheet.iter_rows():
        for cell in row:
            if cell.has_style or cell.hyperlink or cell.comment:
                yield (
                    f"{cell.coordinate} {cell.number_format} {cell.font.b} {cell.font.color!r} "
                    f"{cell.fill.fgColor!r} {cell.alignment!r} {cell.border!r} "
                    f"{cell.protection.locked} {cell.hyperlink!r} {cell.comment!r}"
                )
    for name, width in sorted(sheet.column_dimensions.items()):
        yield f"{name} {width.width} {width.hidden}"
    for number, height in sorted(sheet.row_dimensions.items()):
        yield f"{number} {height.height} {height.hidden}"
    yield f"{sheet.freeze_panes} {sheet.sheet_state} {sheet.protection!r} {sheet.auto_filter!r}"
    yield f"{sorted(map(str, sheet.merged_cells.ranges))} {sheet.print_title_rows}"
    yield f"{sheet.data_validations!r}"
    for rule in sheet.conditional_formatting:
        yield f"{rule.sqref} {[each.__dict__ for each in rule.rules]!r}"
