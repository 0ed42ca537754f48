"""Rows of lists as sheet XML, a column at a time: every list of the workbook is written so.

A cell costs a look-up and a text; an object of the library for each costs ten times as much. What
stands in the file is what the library would write for the same cells: a test compares them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from html import escape
from itertools import repeat
from typing import Any, Literal

from openpyxl.compat import safe_string
from openpyxl.utils import get_column_letter
from openpyxl.utils.datetime import to_excel

from reports.drawing import look as looks
from reports.drawing.draft import NOT_COVERED, NUMBER_MINOR_UNITS_MAX, Draft, amount_text
from reports.drawing.look import Look
from reports.drawing.plain_text import cell_text, day_of, local_instant, needs_quote

Kind = Literal["text", "amount", "count", "days", "instant", "day", "input", "input day"]
Cells = Callable[[Sequence[Any], Sequence[str]], list[str]]
"""The values of a column and the currencies of their rows -> its cells, each from its style on."""

CACHED_TEXTS_MAX = 4_096
"""Texts of a column whose cell is made once; beyond them every row has its own."""
_ALIGNED = {"align": "left", "indent": 1}
_LOOKS: Mapping[Kind, Look] = {
    "count": looks.NUMBER,
    "days": looks.NUMBER.but(number_format=looks.DAYS_FORMAT),
    "day": looks.BODY.but(number_format=looks.DATE_FORMAT, **_ALIGNED),
    "input": looks.INPUT,
    "input day": looks.INPUT.but(number_format=looks.DATE_FORMAT),
}
"""Of kinds whose cells are alike in each row."""


def cells_of(
    draft: Draft, kind: Kind, *, wrap: bool = False, words: Callable[[str], str] | None = None
) -> Cells:
    """How the cells of a column of this kind are written.

    `words` says how a text is put on the sheet; None: as it stands.
    """
    if kind == "amount":
        return _Amounts(draft).cells
    if kind == "instant":
        look = looks.BODY.but(number_format=looks.INSTANT_FORMAT, **_ALIGNED)
        return _dated(draft, look, by=_instant_of(draft))
    look = looks.BODY_TEXT.but(wrap=wrap) if kind == "text" else _LOOKS[kind]
    if kind in {"text", "input"}:
        return _Texts(draft, look, words=words).cells
    return _numbers(draft, look) if kind in {"count", "days"} else _dated(draft, look, by=day_of)


def not_covered(draft: Draft) -> Cells:
    """A column of a ledger that was not read."""
    grey = looks.BODY.but(colour=looks.GREY_TEXT, align="right")
    cell = _text_tail(NOT_COVERED, draft.style_number(grey))
    return lambda values, _: [cell] * len(values)


def rows_as_xml(
    columns: Sequence[Sequence[str]], *, first_row: int, heights: Sequence[int] = ()
) -> bytes:
    """The `<row>` elements of a batch, from its cells by column; `heights` in points, or none."""
    letters = [get_column_letter(number) for number in range(1, len(columns) + 1)]
    numbers = range(first_row, first_row + len(columns[0]))
    row = _row_of(letters, high=bool(heights))
    return "".join(map(row, numbers, heights or repeat(0), *columns)).encode()


def _row_of(letters: Sequence[str], *, high: bool) -> Callable[..., str]:
    """A function of (row number, height, one cell text per column); one format call per row."""
    cells = "".join(
        f'<c r="{letter}{{0}}"{{{number}}}' for number, letter in enumerate(letters, start=2)
    )
    height = ' ht="{1}" customHeight="1"' if high else ""
    return f'<row r="{{0}}"{height}>{cells}</row>'.format


class _Texts:
    """A column of texts; keeps the cells of texts that repeat."""

    def __init__(
        self, draft: Draft, look: Look, *, words: Callable[[str], str] | None = None
    ) -> None:
        self._words = words
        self._style = draft.style_number(look)
        self._quoted_style = draft.style_number(look.but(quoted=True))
        self._known: dict[str, str] = {"": self._cell("")}

    def cells(self, values: Sequence[Any], _: Sequence[str]) -> list[str]:
        """One cell text per row."""
        texts = ["" if value is None else str(value) for value in values]
        for text in set(texts) - self._known.keys():
            self._known[text] = self._cell(text)
        known = self._known
        cells = [known[text] for text in texts]
        if len(known) > CACHED_TEXTS_MAX:
            self._known = {"": known[""]}
        return cells

    def _cell(self, text: str) -> str:
        clean = cell_text(self._words(text) if self._words else text)[0]
        return _text_tail(clean, self._quoted_style if needs_quote(clean) else self._style)


class _Amounts:
    """A column of amounts, each in the format of its row's currency."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._facts: dict[str, tuple[int, int, int]] = {}
        """Currency -> style, style of a text that begins as a formula does, decimals."""

    def cells(self, values: Sequence[Any], currencies: Sequence[str]) -> list[str]:
        """One cell text per row."""
        facts = self._facts
        for currency in sorted(set(currencies) - facts.keys()):
            look = looks.NUMBER.but(number_format=looks.money_format(currency))
            style, quoted = map(self._draft.style_number, (look, look.but(quoted=True)))
            facts[currency] = (style, quoted, looks.decimals_of(currency))
        return [
            f' s="{facts[currency][0]}"/>'
            if value is None
            else _amount(value, currency, facts[currency])
            for value, currency in zip(values, currencies, strict=True)
        ]


def _amount(minor_units: int, currency: str, facts: tuple[int, int, int]) -> str:
    style, quoted, places = facts
    if not -NUMBER_MINOR_UNITS_MAX <= minor_units <= NUMBER_MINOR_UNITS_MAX:
        text = amount_text(minor_units, currency)
        return _text_tail(text, quoted if needs_quote(text) else style)
    if not places:
        return f' s="{style}"><v>{minor_units}</v></c>'
    digits = f"{abs(minor_units):0{places + 1}d}"
    sign = "-" if minor_units < 0 else ""
    return f' s="{style}"><v>{sign}{digits[:-places]}.{digits[-places:]}</v></c>'


def _numbers(draft: Draft, look: Look) -> Cells:
    style = draft.style_number(look)
    return lambda values, _: [_number_tail(value, style) for value in values]


def _dated(draft: Draft, look: Look, *, by: Callable[[Any], date | None]) -> Cells:
    """Days or instants as the numbers that a sheet counts them by."""
    style = draft.style_number(look)
    known: dict[Any, str] = {None: _number_tail(None, style)}

    def cell(value: Any) -> str:
        moment = by(value)
        if moment is None:
            return _number_tail(None, style)
        number = to_excel(moment)  # type: ignore[no-untyped-call]  # the library has no types
        return _number_tail(safe_string(number), style)

    def cells(values: Sequence[Any], _: Sequence[str]) -> list[str]:
        for value in set(values) - known.keys():
            known[value] = cell(value)
        return [known[value] for value in values]

    return cells


def _instant_of(draft: Draft) -> Callable[[Any], date | None]:
    return lambda value: None if value is None else local_instant(value, timezone=draft.timezone)


def _number_tail(number: int | str | None, style: int) -> str:
    return f' s="{style}"/>' if number is None else f' s="{style}"><v>{number}</v></c>'


def _text_tail(text: str, style: int) -> str:
    if not text:
        return f' s="{style}"/>'
    kept = ' xml:space="preserve"' if text != text.strip() else ""
    if "&" in text or "<" in text or ">" in text:
        text = escape(text, quote=False)
    return f' s="{style}" t="inlineStr"><is><t{kept}>{text}</t></is></c>'


def batches_of(count: int, *, rows: int) -> Iterator[slice]:
    """The places of so many rows in batches."""
    return (slice(first, first + rows) for first in range(0, count, rows))
