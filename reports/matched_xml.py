"""Rows of a large list written straight as sheet XML, a column of a batch at a time.

What is written equals what `listing.put_list` would write, cell by cell; a test compares them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd
from openpyxl.utils import get_column_letter

from reports import look as looks
from reports.draft import NOT_COVERED, NUMBER_MINOR_UNITS_MAX, Draft, amount_text
from reports.listing import Column
from reports.plain_text import cell_text, needs_quote

CACHED_TEXTS_MAX = 4_096
"""Texts of a column whose cell is made once; beyond them every row has its own."""
_SPECIAL = "&<>"


@dataclass(frozen=True, slots=True)
class Streamed:
    """A column of a streamed list: its head, and the field of the frame that fills it."""

    column: Column
    name: str
    words: Callable[[str], str] | None = None
    """How a text of the frame is said on the sheet; None: as it stands."""


def rows_as_xml(
    draft: Draft,
    batches: Iterable[pd.DataFrame],
    *,
    columns: Sequence[Streamed],
    first_row: int,
    ledger_covered: bool,
) -> Iterator[bytes]:
    """The `<row>` elements of a list, one piece of bytes per batch."""
    makers = [_maker(draft, one, ledger_covered=ledger_covered) for one in columns]
    row = _row_of([get_column_letter(number) for number in range(1, len(columns) + 1)])
    number = first_row
    for batch in batches:
        cells = [make(batch) for make in makers]
        last = number + len(batch)
        yield "".join(map(row, range(number, last), *cells)).encode()
        number = last


def _row_of(letters: Sequence[str]) -> Callable[..., str]:
    """A function of (row number, one cell text per column); one format call per row."""
    cells = "".join(
        f'<c r="{letter}{{0}}"{{{number}}}' for number, letter in enumerate(letters, start=1)
    )
    return f'<row r="{{0}}">{cells}</row>'.format


def _maker(
    draft: Draft, one: Streamed, *, ledger_covered: bool
) -> Callable[[pd.DataFrame], Sequence[str]]:
    """What turns a batch into the cells of one column, each from its style on."""
    if one.column.of_ledger and not ledger_covered:
        grey = looks.BODY.but(colour=looks.GREY_TEXT, align="right")
        cell = _text_tail(NOT_COVERED, draft.style_number(grey))
        return lambda batch: [cell] * len(batch)
    if one.column.kind == "amount":
        return _Amounts(draft, one.name).cells
    return _Texts(draft, one).cells


class _Texts:
    """A column of texts; keeps the cells of texts that repeat."""

    def __init__(self, draft: Draft, one: Streamed) -> None:
        look = looks.BODY_TEXT.but(indent=1)
        self._name, self._words = one.name, one.words
        self._style = draft.style_number(look)
        self._quoted_style = draft.style_number(look.but(quoted=True))
        self._known: dict[str, str] = {"": self._cell("")}

    def cells(self, batch: pd.DataFrame) -> list[str]:
        """One cell text per row."""
        texts = batch[self._name].fillna("").tolist()
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

    def __init__(self, draft: Draft, name: str) -> None:
        self._draft = draft
        self._name = name
        self._styles: dict[str, int] = {}

    def cells(self, batch: pd.DataFrame) -> list[str]:
        """One cell text per row."""
        amounts = batch[self._name]
        currencies = batch["currency"].fillna("").tolist()
        for currency in set(currencies) - self._styles.keys():
            look = looks.NUMBER.but(number_format=looks.money_format(currency))
            self._styles[currency] = self._draft.style_number(look)
        facts = {one: (style, looks.decimals_of(one)) for one, style in self._styles.items()}
        blanks, values = amounts.isna().tolist(), amounts.tolist()
        return [
            f' s="{facts[currency][0]}"/>' if blank else _amount(value, currency, facts[currency])
            for value, blank, currency in zip(values, blanks, currencies, strict=True)
        ]


def _amount(minor_units: int, currency: str, facts: tuple[int, int]) -> str:
    style, places = facts
    if not -NUMBER_MINOR_UNITS_MAX <= minor_units <= NUMBER_MINOR_UNITS_MAX:
        return _text_tail(amount_text(minor_units, currency), style)
    if not places:
        return f' s="{style}"><v>{minor_units}</v></c>'
    digits = f"{abs(minor_units):0{places + 1}d}"
    sign = "-" if minor_units < 0 else ""
    return f' s="{style}"><v>{sign}{digits[:-places]}.{digits[-places:]}</v></c>'


def _text_tail(text: str, style: int) -> str:
    if not text:
        return f' s="{style}"/>'
    kept = ' xml:space="preserve"' if text != text.strip() else ""
    if any(one in text for one in _SPECIAL):
        text = escape(text, quote=False)
    return f' s="{style}" t="inlineStr"><is><t{kept}>{text}</t></is></c>'
