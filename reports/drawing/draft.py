"""A workbook while it is drawn: the only place where values become cells.

Text is written as text, amounts as exact numbers of their currency, formulas together with the
value that the engine computed for them. Counts what it had to replace in foreign text.
"""

import io
from copy import copy
from datetime import date, datetime
from decimal import Decimal
from typing import IO, Any

from openpyxl import Workbook
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.hyperlink import Hyperlink

from recon.model.money import format_minor_units
from reports.drawing import look as looks
from reports.drawing.look import Look
from reports.drawing.package import CachedValue, RowStream, write_package
from reports.drawing.plain_text import cell_text, local_instant, needs_quote

NUMBER_MINOR_UNITS_MAX = 10**15 - 1
"""Excel keeps 15 digits; a larger amount is written as text, exactly."""

NOT_COVERED = "not covered"


class Draft:
    """One workbook being drawn; `content` ends it."""

    def __init__(self, *, timezone: str) -> None:
        workbook: Any = Workbook()
        workbook.remove(workbook.active)
        self.workbook = workbook
        self.timezone = timezone
        self.replaced_characters = 0
        self._streams: dict[str, list[RowStream]] = {}
        self._cached: dict[str, dict[tuple[int, int], CachedValue]] = {}
        self._styles: dict[Look, Any] = {}
        self._style_of: dict[int, tuple[Look, Any]] = {}

    def sheet(self, title: str) -> Any:
        """A new sheet without gridlines, at the end."""
        sheet = self.workbook.create_sheet(title)
        sheet.sheet_view.showGridLines = False
        self._cached[title] = {}
        return sheet

    def style(self, look: Look) -> Any:
        """The openpyxl style of a look, made once; cells of a look share it."""
        # By identity first: a look's own hash is of all its properties, and cells are many.
        known = self._style_of.get(id(look))
        if known is None:
            known = self._style_of[id(look)] = (look, self._made(look))
        return known[1]

    def _made(self, look: Look) -> Any:
        if look not in self._styles:
            cell = self.workbook.worksheets[0].cell(row=1, column=1)
            kept = cell._style  # noqa: SLF001 - styles are shared by number, not set one by one
            # The cell may be written already, and its own style one of the workbook's: it stays.
            cell._style = copy(kept)  # noqa: SLF001
            cell.font = looks.font_of(look)
            cell.fill = looks.fill_of(look)
            cell.border = looks.border_of(look)
            cell.alignment = looks.alignment_of(look)
            cell.protection = looks.protection_of(look)
            cell.number_format = look.number_format
            cell._style.quotePrefix = int(look.quoted)  # noqa: SLF001
            self._styles[look] = copy(cell._style)  # noqa: SLF001
            cell._style = kept  # noqa: SLF001
        return self._styles[look]

    def style_number(self, look: Look) -> int:
        """The number by which streamed rows name a style."""
        number: int = self.workbook._cell_styles.add(self.style(look))  # noqa: SLF001
        return number

    def cell(self, sheet: Any, at: tuple[int, int], look: Look) -> Any:
        """The styled, empty cell at (row, column)."""
        cell = sheet.cell(row=at[0], column=at[1])
        cell._style = copy(self.style(look))  # noqa: SLF001
        return cell

    def text(self, sheet: Any, at: tuple[int, int], text: str, look: Look = looks.PLAIN) -> None:
        """Text, whatever it says; "" leaves the cell blank."""
        clean = self.clean(text)
        cell = self.cell(sheet, at, look.but(quoted=True) if needs_quote(clean) else look)
        if clean:
            cell._value, cell.data_type = clean, "s"  # noqa: SLF001 - the library would guess a type

    def clean(self, text: str) -> str:
        """Text fit for a cell; what had to be replaced is counted."""
        clean, replaced = cell_text(text)
        self.replaced_characters += replaced
        return clean

    def number(
        self, sheet: Any, at: tuple[int, int], value: int | None, look: Look = looks.NUMBER
    ) -> None:
        """A count; None leaves the cell blank."""
        self.cell(sheet, at, look).value = value

    def amount(
        self, sheet: Any, at: tuple[int, int], minor_units: int | None, currency: str
    ) -> None:
        """An amount of a currency; blank for None, text beyond 15 digits."""
        self.amount_as(sheet, at, (minor_units, currency), looks.NUMBER)

    def amount_as(
        self, sheet: Any, at: tuple[int, int], money: tuple[int | None, str], look: Look
    ) -> None:
        """As `amount`, in another look."""
        minor_units, currency = money
        look = look.but(number_format=looks.money_format(currency))
        if minor_units is not None and abs(minor_units) > NUMBER_MINOR_UNITS_MAX:
            self.text(sheet, at, amount_text(minor_units, currency), look)
            return
        self.cell(sheet, at, look).value = (
            None if minor_units is None else major_units(minor_units, currency)
        )

    def instant(
        self, sheet: Any, at: tuple[int, int], value: datetime | None, look: Look = looks.BODY
    ) -> None:
        """An instant in the report's zone, to the second."""
        cell = self.cell(
            sheet, at, look.but(number_format=looks.INSTANT_FORMAT, align="left", indent=1)
        )
        cell.value = None if value is None else local_instant(value, timezone=self.timezone)

    def day(
        self, sheet: Any, at: tuple[int, int], value: date | None, look: Look = looks.BODY
    ) -> None:
        """A date."""
        cell = self.cell(
            sheet, at, look.but(number_format=looks.DATE_FORMAT, align="left", indent=1)
        )
        cell.value = value

    def formula(
        self,
        sheet: Any,
        at: tuple[int, int],
        written: tuple[str, CachedValue],
        look: Look = looks.NUMBER,
    ) -> None:
        """A formula of ours with the value that the engine computed for it."""
        formula, value = written
        self.cell(sheet, at, look).value = formula
        self._cached[sheet.title][at] = value

    def money_formula(
        self,
        sheet: Any,
        at: tuple[int, int],
        written: tuple[str, int, str],
        look: Look = looks.NUMBER,
    ) -> None:
        """A formula over amounts: (expression, the engine's minor units, currency), rounded.

        Beyond 15 digits the engine's amount stands as text: a sheet could not compute it.
        """
        expression, minor_units, currency = written
        if abs(minor_units) > NUMBER_MINOR_UNITS_MAX:
            self.amount_as(sheet, at, (minor_units, currency), look)
            return
        formula = f"=ROUND({expression},{looks.decimals_of(currency)})"
        look = look.but(number_format=looks.money_format(currency))
        self.formula(sheet, at, (formula, major_units(minor_units, currency)), look)

    def link(
        self, sheet: Any, at: tuple[int, int], to: tuple[str, str], look: Look = looks.LINK
    ) -> None:
        """(text, where it leads in the workbook), such as `'Breaks'!A7`."""
        text, target = to
        self.text(sheet, at, text, look)
        cell = sheet.cell(row=at[0], column=at[1])
        cell.hyperlink = Hyperlink(ref=cell.coordinate, location=target, display=text)
        # The library sets a style of its own for links.
        cell._style = copy(self.style(look))  # noqa: SLF001

    def stream(self, sheet: Any, rows: RowStream) -> None:
        """Rows that are written straight into the file; no cell of theirs may be drawn."""
        self._streams.setdefault(sheet.title, []).append(rows)

    def name(self, name: str, reference: str) -> None:
        """A defined name for a range."""
        self.workbook.defined_names[name] = DefinedName(name, attr_text=reference)

    def write(self, target: IO[bytes]) -> None:
        """Write the finished file; ends the draft."""
        write_package(self.workbook, target, cached=self._cached, streams=self._streams)

    def content(self) -> bytes:
        """The finished file, for small ones; ends the draft."""
        target = io.BytesIO()
        self.write(target)
        return target.getvalue()


def major_units(minor_units: int, currency: str) -> Decimal:
    """The amount as a sheet holds it; exact."""
    return Decimal(minor_units).scaleb(-looks.decimals_of(currency))


def amount_text(minor_units: int, currency: str) -> str:
    """The amount as text without grouping."""
    if not currency:
        return str(minor_units)
    return format_minor_units(minor_units, currency=currency)


def grouped_amount(minor_units: int, currency: str) -> str:
    """The amount for people, such as "-1,234.50"."""
    whole, point, rest = amount_text(abs(minor_units), currency).partition(".")
    return f"{'-' if minor_units < 0 else ''}{int(whole):,}{point}{rest}"
