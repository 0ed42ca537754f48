"""Check layouts against the table schemas before any file is read.

A misspelt column would be a setting without effect; a mapped term or constant that no cell may hold
would reject every row that has it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from recon.config.file_layouts import FileLayout, GivenLayouts
from recon.config.file_sources import LedgerSource
from recon.files.kinds.instruction_file import INSTRUCTION_FILE
from recon.files.typing.table_schema import (
    BANK,
    GATEWAY,
    LEDGER,
    ORDER_FILE,
    SETTLED_TYPES,
    SETTLEMENT_FILE,
    Cell,
    Grammar,
    TableColumn,
    TableSchema,
)
from recon.model.errors import ConfigurationError
from recon.model.money import is_currency
from recon.model.terms import SourceKind


def refuse_wrong_layout(layout: FileLayout, *, schemas: Sequence[TableSchema], where: str) -> None:
    """Refuse a layout with a column, term or constant that none of these tables has.

    Raises:
        ConfigurationError: starts with `where` and names the key and the valid alternatives.
    """
    columns = {column.name: column for schema in schemas for column in schema.columns}
    names = list(columns)
    keys = ("columns", "constants", "words", "debit", "sums", "currencies", "sign", "negated")
    for key in (*keys, "clock"):
        unknown = sorted(set(getattr(layout, key)) - set(names))
        if unknown:
            msg = f"{where}{key}.{unknown[0]} is none of the columns {', '.join(names)}"
            raise ConfigurationError(msg)
    _refuse_wrong_cells(layout, columns=columns, where=where)
    for key, name, text in _given(layout):
        meant = [c for schema in schemas for c in schema.columns if c.name == name]
        problems = [_problem(column, text) for column in meant]
        if all(problems):
            msg = f"{where}{key}: {text!r} {problems[0]}"
            raise ConfigurationError(msg)


def _refuse_wrong_cells(layout: FileLayout, *, columns: dict[str, TableColumn], where: str) -> None:
    """Refuse keys that do not fit their column's type, or that these tables cannot use."""
    for kind, names in layout.negated_rows.items():
        of_amounts = all(columns[name].cell is Cell.AMOUNT for name in names if name in columns)
        if kind not in SETTLED_TYPES or not {"gross", *names} <= set(columns) or not of_amounts:
            msg = (
                f"{where}negated_rows.{kind}: only amounts of settled rows have other signs by type"
            )
            raise ConfigurationError(msg)
    amounts = [(key, Cell.AMOUNT) for key in ("debit", "sums", "currencies", "sign", "negated")]
    for key, cell in (*amounts, ("clock", Cell.INSTANT)):
        for name in getattr(layout, key):
            if columns[name].cell is not cell:
                msg = f"{where}{key}.{name} is no column of {cell.value}s"
                raise ConfigurationError(msg)
    for key, is_set, needed, why in (
        ("net", layout.net, {"net"}, "only settled rows have one, and these files have none"),
        (
            "captures",
            layout.captures,
            {"entry_type", "booked_at"},
            "only entries of a ledger have such a sign, and these files have none",
        ),
        (
            "trailer.amount",
            layout.trailer and layout.trailer.amount,
            {"amount"},
            "only a column `amount` has a sum, and these files have none",
        ),
        (
            "lines",
            layout.lines,
            {"order_no"},
            "these files have no column `order_no` to which lines belong",
        ),
        (
            "newest_file_counts",
            layout.newest_file_counts,
            {"order_no", "updated_at"},
            "only of orders one file can take the place of another",
        ),
        (
            "order_numbers",
            layout.order_numbers,
            {"order_no"},
            "these files have no column `order_no`",
        ),
    ):
        if is_set and not needed <= columns.keys():
            msg = f"{where}{key}: {why}"
            raise ConfigurationError(msg)


def _given(layout: FileLayout) -> Iterator[tuple[str, str, str]]:
    """Yield (key, column, text) of everything that a layout puts into cells."""
    for name, text in layout.constants.items():
        yield f"constants.{name}", name, text
    for name, words in layout.words.items():
        for their, text in words.items():
            yield f'words.{name}."{their}"', name, text


def _problem(column: TableColumn, text: str) -> str:
    """Return why no cell of the column may have this text; "" if one may."""
    if not text:
        return "" if column.may_be_blank else "is blank, which no row may be there"
    match column.cell:
        case frozenset() as words:
            return "" if text in words else f"is none of {', '.join(sorted(words))}"
        case Grammar() as grammar:
            pattern, sentence = grammar.value
            return "" if re.fullmatch(pattern, text, re.ASCII) else f"is not {sentence}"
        case Cell.CURRENCY if not is_currency(text):
            return "is no currency of ISO 4217"
    return ""


_OF_KIND = {
    SourceKind.ORDERS: ORDER_FILE,
    SourceKind.GATEWAY: GATEWAY,
    SourceKind.LEDGER: LEDGER,
    SourceKind.SETTLEMENT: SETTLEMENT_FILE,
    SourceKind.BANK: BANK,
}
_SCHEMAS = {"": (ORDER_FILE, INSTRUCTION_FILE), "settlement": (SETTLEMENT_FILE,), "bank": (BANK,)}


def refuse_wrong_layouts(
    layouts: Iterable[FileLayout], *, of: Literal["", "settlement", "bank"] = ""
) -> None:
    """Refuse layouts that name what no file of their kind has; "" is orders and instructions.

    Raises:
        ConfigurationError: naming the layout and the key.
    """
    for layout in layouts:
        where = f'merchants.toml: the {f"{of} " if of else ""}layout of "{layout.files}": '
        refuse_wrong_layout(layout, schemas=_SCHEMAS[of], where=where)


def refuse_wrong_given(layouts: GivenLayouts) -> None:
    """Refuse layouts given for single files that name what no file of their kind has.

    Raises:
        ConfigurationError: naming the layout's own file and the key.
    """
    for each in layouts.given:
        where = f'{each.source}: the {each.kind} layout of "{each.layout.files}": '
        refuse_wrong_layout(each.layout, schemas=(_OF_KIND[each.kind],), where=where)


def refuse_wrong_mapping(source: LedgerSource) -> None:
    """Refuse a mapping that names what no ledger has.

    Raises:
        ConfigurationError: naming the key.
    """
    where = "merchants.toml: ledger.layout." if source.layout else "merchants.toml: ledger."
    refuse_wrong_layout(layout_of_ledger(source), schemas=(LEDGER,), where=where)


def layout_of_ledger(source: LedgerSource) -> FileLayout:
    """Return the layout of a ledger source, or one made of its column mapping."""
    return source.layout or FileLayout(columns=source.columns)
