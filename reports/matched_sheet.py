"""The Matched sheet: every set whose sides agree. Its rows are written straight as XML.

Only this list grows with the business, so only this list takes the fast way; what it writes equals
what the slow way would write (a test compares them).
"""

from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape

from openpyxl.utils import get_column_letter

from recon.errors import OutputError
from recon.figures import NightFigures
from reports import look as looks
from reports.draft import NOT_COVERED, NUMBER_MINOR_UNITS_MAX, Draft, amount_text, major_units
from reports.listing import Column, Row, field, name_columns, put_list
from reports.package import RowStream, in_batches
from reports.page import print_on, protect, put_heading
from reports.plain_text import needs_quote
from reports.totals import Rows

HEADER_ROW = 4
ROWS_MAX = 1_000_000
"""Excel's sheet ends at 1,048,576 rows."""

COLUMNS = (
    Column("Order no", 24, "text", field("order_no")),
    Column("Payment", 24, "text", field("transaction_id")),
    Column("Ledger entry", 20, "text", field("entry_id")),
    Column("Order says", 17, "text", field("state_orders")),
    Column("Gateway says", 17, "text", field("state_gateway")),
    Column("Ccy", 6, "text", field("currency"), "matCcy"),
    Column("Orders", 15, "amount", field("order_amount")),
    Column("Gateway", 15, "amount", field("gateway_amount")),
    Column("Ledger", 15, "amount", field("ledger_amount"), of_ledger=True),
    Column("Gateway − orders", 15, "amount", field("effect_orders"), "matEffectOrders"),  # noqa: RUF001 - a minus
    Column(
        "Gateway − ledger",  # noqa: RUF001 - a minus
        15,
        "amount",
        field("effect_ledger"),
        "matEffectLedger",
        of_ledger=True,
    ),
    Column("Flags", 24, "text", field("flags")),
    Column("Rule", 18, "text", field("rule")),
    Column("Account", 14, "text", field("account_id")),
    Column("Match key", 20, "text", field("match_id"), "matKey"),
)


def draw_matched(draft: Draft, sheet: Any, *, figures: NightFigures, rows: Rows) -> None:
    """All matches.

    Raises:
        OutputError: more rows than a sheet holds.
    """
    if len(rows.matches) > ROWS_MAX:
        msg = (
            f"{len(rows.matches)} matched rows do not fit on a sheet (at most {ROWS_MAX}); the "
            "result is kept in the database: reconcile fewer accounts or days at once"
        )
        raise OutputError(msg)
    put_heading(
        draft,
        sheet,
        title="Matched",
        sentence="Every set whose sides agree, or whose difference a flag explains.",
    )
    put_list(
        draft,
        sheet,
        columns=COLUMNS,
        rows=[],
        top=HEADER_ROW,
        ledger_covered=figures.ledger_covered,
    )
    extent = (HEADER_ROW + 1, HEADER_ROW + max(1, len(rows.matches)))
    name_columns(draft, sheet, columns=COLUMNS, extent=extent)
    if rows.matches:
        written = _rows_as_xml(draft, rows.matches, ledger_covered=figures.ledger_covered)
        parts = list(in_batches(written))
        draft.streams[sheet.title] = RowStream(extent[1], len(COLUMNS), parts)
    sheet.auto_filter.ref = f"A{HEADER_ROW}:{get_column_letter(len(COLUMNS))}{extent[1]}"
    sheet.freeze_panes = sheet.cell(row=HEADER_ROW + 1, column=2)
    print_on(sheet, run_id=figures.run_id, pages=(2, 0), title_rows=f"{HEADER_ROW}:{HEADER_ROW}")
    protect(sheet)


def _rows_as_xml(
    draft: Draft, rows: list[dict[str, Any]], *, ledger_covered: bool
) -> Iterator[str]:
    cells = _Cells(draft, ledger_covered=ledger_covered)
    letters = [get_column_letter(number) for number in range(1, len(COLUMNS) + 1)]
    for number, row in enumerate(rows, start=HEADER_ROW + 1):
        written = "".join(
            cells.cell(f"{letter}{number}", column, row)
            for letter, column in zip(letters, COLUMNS, strict=True)
        )
        yield f'<row r="{number}">{written}</row>'


class _Cells:
    """The cells of one sheet as XML; holds the style numbers while the rows are written."""

    def __init__(self, draft: Draft, *, ledger_covered: bool) -> None:
        self._draft = draft
        self._ledger_covered = ledger_covered
        look = looks.BODY_TEXT.but(indent=1)
        self._text_style = draft.style_number(look)
        self._quoted_style = draft.style_number(look.but(quoted=True))
        grey = looks.BODY.but(colour=looks.GREY_TEXT, align="right")
        self._uncovered_style = draft.style_number(grey)
        self._money_styles: dict[str, int] = {}

    def cell(self, place: str, column: Column, row: Row) -> str:
        """One cell as the slow way would write it."""
        if column.of_ledger and not self._ledger_covered:
            return _text_cell(place, NOT_COVERED, self._uncovered_style)
        value = column.value(row)
        if column.kind == "amount":
            return self._amount(place, value, row["currency"])
        text = self._draft.clean("" if value is None else str(value))
        style = self._quoted_style if needs_quote(text) else self._text_style
        return _text_cell(place, text, style)

    def _amount(self, place: str, minor_units: int | None, currency: str) -> str:
        style = self._money_style(currency)
        if minor_units is None:
            return f'<c r="{place}" s="{style}"/>'
        if abs(minor_units) > NUMBER_MINOR_UNITS_MAX:
            return _text_cell(place, amount_text(minor_units, currency), style)
        return f'<c r="{place}" s="{style}"><v>{major_units(minor_units, currency):f}</v></c>'

    def _money_style(self, currency: str) -> int:
        if currency not in self._money_styles:
            look = looks.NUMBER.but(number_format=looks.money_format(currency))
            self._money_styles[currency] = self._draft.style_number(look)
        return self._money_styles[currency]


def _text_cell(place: str, text: str, style: int) -> str:
    if not text:
        return f'<c r="{place}" s="{style}"/>'
    kept = ' xml:space="preserve"' if text != text.strip() else ""
    return f'<c r="{place}" s="{style}" t="inlineStr"><is><t{kept}>{escape(text)}</t></is></c>'
