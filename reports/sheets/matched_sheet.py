"""The Matched sheet: every set whose sides agree, or, on a large night, what they come to.

Only this list grows with the business. Its rows are written straight as XML; of more than
`matched_rows_max` the sheet has the sums and the first rows, and names the file that holds all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import pandas as pd
from openpyxl.utils import get_column_letter

from recon.model.figures import MATCHES, MatchedRows, NightFigures
from recon.model.headway import on_the_way
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.listing import Column, field, name_columns, put_list, rows_of, values_of
from reports.drawing.package import RowStream
from reports.drawing.page import print_first_rows, print_on, protect, put_heading
from reports.drawing.row_xml import Kind, cells_of, not_covered, rows_as_xml
from reports.sheets.named_files import added_up
from reports.sheets.state_words import flag_words, in_words, rule_words, state_words
from reports.sheets.totals import Rows

HEADER_ROW = 4
PAPER_COLUMNS = 12
"""One page wide: up to the flags, of the rows and of the sums."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A column of the matches: its head, and the field of the frame that fills it."""

    column: Column
    name: str
    words: Callable[[str], str] | None = None
    """How a text of the frame is said on the sheet; None: as it stands."""


def _amount(title: str, name: str, range_name: str = "") -> Streamed:
    of_ledger = "ledger" in name
    return Streamed(Column(title, 15, "amount", field(name), range_name, of_ledger=of_ledger), name)


def _text(title: str, width: int, name: str, range_name: str = "") -> Streamed:
    return Streamed(Column(title, width, "text", field(name), range_name), name)


def _said(title: str, width: int, name: str, words: Callable[[str], str]) -> Streamed:
    return Streamed(Column(title, width, "text", in_words(name, words)), name, words)


AMOUNTS = (
    _amount("Orders", "order_amount"),
    _amount("Gateway", "gateway_amount"),
    _amount("Ledger", "ledger_amount"),
    _amount("Gateway − orders", "effect_orders", "matEffectOrders"),  # noqa: RUF001 - a minus
    _amount("Gateway − ledger", "effect_ledger", "matEffectLedger"),  # noqa: RUF001 - a minus
)
STREAMED = (
    _text("Order no", 22, "order_no"),
    _text("Payment", 22, "transaction_id"),
    _text("Ledger entry", 27, "entry_id"),
    _said("Order says", 17, "state_orders", state_words),
    _said("Gateway says", 17, "state_gateway", state_words),
    _text("Ccy", 6, "currency", "matCcy"),
    *AMOUNTS,
    _said("What explains it", 28, "flags", flag_words),
    _said("How it was matched", 18, "rule", rule_words),
    _text("Account", 14, "account_id"),
    _text("Match key", 20, "match_id", "matKey"),
)
COLUMNS = tuple(column.column for column in STREAMED)
_COUNT: Kind = "count"
PIVOT_COLUMNS = (
    Column("Order says", 20, "text", in_words("state_orders", state_words)),
    Column("Gateway says", 20, "text", in_words("state_gateway", state_words)),
    Column("How it was matched", 20, "text", in_words("rule", rule_words)),
    Column("Account", 16, "text", field("account_id")),
    Column("Matched rows", 14, _COUNT, field("rows"), "matRows"),
    Column("Ccy", 6, "text", field("currency"), "matCcy"),
    *(column.column for column in AMOUNTS),
    Column("What explains it", 28, "text", in_words("flags", flag_words)),
)
"""From the currency on each stands above the same of the first rows: one width fits both."""
ROW_COLUMNS = tuple(
    replace(column, range_name="", width=max(column.width, above.width if above else 0))
    for column, above in zip_longest(COLUMNS, PIVOT_COLUMNS)
)
"""Of the first rows, below the sums of all: as wide as both need."""


def draw_matched(draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows) -> None:
    """All matches, or what they come to and the first of them."""
    draft.replaced_characters += rows.matched.replaced_characters
    if rows.matched.is_cut:
        last = _put_sums(draft, sheet, figures=figures, rows=rows)
        print_on(sheet, run_id=figures.run_id)
    else:
        last = _put_rows(draft, sheet, figures=figures)
        print_on(sheet, run_id=figures.run_id, title_rows=f"{HEADER_ROW}:{HEADER_ROW}")
    print_first_rows(draft, sheet, columns=PAPER_COLUMNS, rows=(HEADER_ROW + 1, last))
    protect(sheet)


def _put_rows(draft: Draft, sheet: Any, *, figures: NightFigures) -> int:
    put_heading(
        draft,
        sheet,
        title="Matched",
        sentence="Every set whose sides agree, or whose difference a flag explains.",
    )
    covered = figures.ledger_covered
    put_list(draft, sheet, columns=COLUMNS, rows=[], top=HEADER_ROW, ledger_covered=covered)
    extent = (HEADER_ROW + 1, HEADER_ROW + max(1, figures.matches.count))
    name_columns(draft, sheet, columns=COLUMNS, extent=extent)
    if figures.matches.count:
        parts = _parts(draft, figures=figures)
        draft.stream(sheet, RowStream(*extent, len(COLUMNS), parts))
    sheet.auto_filter.ref = f"A{HEADER_ROW}:{get_column_letter(len(COLUMNS))}{extent[1]}"
    sheet.freeze_panes = sheet.cell(row=HEADER_ROW + 1, column=2)
    return extent[1]


def _parts(draft: Draft, *, figures: NightFigures) -> Iterator[bytes]:
    """The rows as XML, a batch of the matches at a time."""
    makers = [
        not_covered(draft)
        if column.column.of_ledger and not figures.ledger_covered
        else cells_of(draft, column.column.kind, words=column.words)
        for column in STREAMED
    ]
    row = HEADER_ROW + 1
    matches = figures.matches
    for batch in on_the_way(_orders_first(matches), "matches drawn", of=matches.count):
        currencies = values_of(batch["currency"], blank="")
        cells = [
            make(values_of(batch[column.name]), currencies)
            for make, column in zip(makers, STREAMED, strict=True)
        ]
        yield rows_as_xml(cells, first_row=row)
        row += len(batch)


def _orders_first(matches: MatchedRows) -> Iterator[pd.DataFrame]:
    """All rows: those of orders and payments, then those of bank and books without one.

    The file begins with the latter, of which paper would show neither a number nor an amount.
    """
    left = 0
    for batch in matches.batches():
        named = _names_a_payment(batch)
        left += len(batch) - int(named.sum())
        yield batch if named.all() else batch[named]
    if left:
        for batch in matches.batches():
            yield batch[~_names_a_payment(batch)]


def _names_a_payment(batch: pd.DataFrame) -> "pd.Series[bool]":
    return (batch["order_no"] != "") | (batch["transaction_id"] != "")


def _put_sums(draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows) -> int:
    """The sums of all rows, and below them the first rows."""
    sets = f"{rows.matched.count:,} sets whose sides agree, or whose difference a flag explains"
    named = [file for section, file in figures.files_named().items() if section == MATCHES]
    put_heading(draft, sheet, title="Matched", sentence=added_up(sets, named=named))
    covered = figures.ledger_covered
    _, last = put_list(
        draft,
        sheet,
        columns=PIVOT_COLUMNS,
        rows=rows.matched.groups,
        top=HEADER_ROW,
        ledger_covered=covered,
    )
    first = _first(figures)
    title = f"The first {len(first):,}, orders first, in the order of the file"
    draft.text(sheet, (last + 2, 1), title, looks.HEADING)
    extent = put_list(
        draft, sheet, columns=ROW_COLUMNS, rows=first, top=last + 3, ledger_covered=covered
    )
    sheet.auto_filter.ref = f"A{last + 3}:{get_column_letter(len(ROW_COLUMNS))}{extent[1]}"
    return extent[1]


def _first(figures: NightFigures) -> list[dict[str, Any]]:
    """The first rows, as many as the sheet shows where it does not list all."""
    rows: list[dict[str, Any]] = []
    for batch in _orders_first(figures.matches):
        rows += rows_of(batch.iloc[: figures.matched_rows_shown - len(rows)])
        if len(rows) >= figures.matched_rows_shown:
            break
    return rows
