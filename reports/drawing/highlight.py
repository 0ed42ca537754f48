"""Conditional formats: colour beside a word that says the same."""

from typing import Any

from openpyxl.formatting import rule as rules
from openpyxl.styles import Font, PatternFill

from reports.drawing import look as looks

OK, CHECK = "OK", "CHECK"
"""What a check says in its cell."""
_RULES: Any = rules
"""The library's factories carry no types."""


def when_equal(word: str, *, colours: tuple[str, str]) -> Any:
    """Fill and text colour for cells that hold this word."""
    return _RULES.CellIsRule(operator="equal", formula=[f'"{word}"'], **_bold(colours))


def colour_checks(sheet: Any, cells: str) -> None:
    """Green and red for the checks of a range, such as M6:M20."""
    for word, colours in {OK: looks.GOOD, CHECK: looks.BAD}.items():
        sheet.conditional_formatting.add(cells, when_equal(word, colours=colours))


def when(formula: str, *, colours: tuple[str, str]) -> Any:
    """Fill and text colour where a formula is true."""
    return _RULES.FormulaRule(formula=[formula], **_bold(colours))


def greyed_when(formula: str) -> Any:
    """Grey italics where a formula is true."""
    return _RULES.FormulaRule(formula=[formula], font=Font(italic=True, color=looks.GREY_TEXT))


def heat(*, most: int | None) -> Any:
    """White at 0 to orange at `most`, or at the largest value."""
    end = {"end_type": "max"} if most is None else {"end_type": "num", "end_value": most}
    return _RULES.ColorScaleRule(
        start_type="num", start_value=0, start_color="FFFFFF", end_color=looks.HEAT, **end
    )


def _bold(colours: tuple[str, str]) -> dict[str, Any]:
    fill, text = colours
    return {"font": Font(bold=True, color=text), "fill": PatternFill("solid", bgColor=fill)}
