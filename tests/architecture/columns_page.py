"""docs/COLUMNS.md as the code has it; `python -m tests.architecture.columns_page` writes it."""

import tomllib
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from recon.files.kinds.instruction_file import (
    _ALLOWS,
    _WANTS,
    INSTRUCTION_FILE,
)
from recon.files.typing.table_schema import (
    BANK,
    GATEWAY,
    INSTRUCTIONS,
    LEDGER,
    ORDER_FILE,
    SETTLEMENT_FILE,
    SIGNED_ENTRY_TYPES,
    Cell,
    Grammar,
    TableColumn,
    TableSchema,
)
from recon.files.typing.typed_table import _RULES
from recon.model.words import SourceKind

PAGE = Path(__file__).parents[2] / "docs" / "COLUMNS.md"
_PROSE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
KINDS: tuple[tuple[str, TableSchema], ...] = (
    ("Orders", ORDER_FILE),
    ("Instructions", INSTRUCTION_FILE),
    ("Ledger", LEDGER),
    ("Settlement", SETTLEMENT_FILE),
    ("Bank", BANK),
    ("Gateway", GATEWAY),
    ("Instructions of `recon reconcile`", INSTRUCTIONS),
)
RULES: Mapping[str, str] = _PROSE["rules"]
"""Rules between cells, by kind and the column that completes them."""
SHORT = {
    Grammar.ACCOUNT: "id",
    Grammar.ORDER_KEY: "order key",
    Grammar.TRANSACTION: "transaction id",
    Grammar.REFERENCE: "reference",
    Grammar.DATE: "date",
    Grammar.WORDS: "text",
}
"""What stands in many columns is explained once, above the tables."""
SIGNS = {
    SourceKind.SETTLEMENT: "signed",
    SourceKind.BANK: "signed",
    SourceKind.LEDGER: f"a minus of {' and '.join(sorted(SIGNED_ENTRY_TYPES))} only",
}


def page() -> str:
    """The whole page."""
    lines = [_PROSE["head"], _legend(), "", *(line for kind in KINDS for line in _kind(*kind))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _legend() -> str:
    words = [f"**{short}**: {grammar.value[1]}" for grammar, short in SHORT.items()]
    return "- " + "; ".join(words) + "."


def _kind(title: str, schema: TableSchema) -> Iterator[str]:
    yield f"## {title}\n\n{_PROSE['kinds'][title]}\n\n| column | needed | holds |\n|---|---|---|"
    described = ((_needed(each), _cell(each, schema=schema), each.name) for each in schema.columns)
    for (needed, cell), alike in groupby(described, key=lambda column: column[:2]):
        names = ", ".join(f"`{name}`" for _, _, name in alike)
        yield f"| {names} | {needed} | {cell} |"
    yield ""
    rules = [
        rule
        for kind, last, _ in _RULES
        if _applies(kind, last, schema=schema) and (rule := RULES[f"{kind} {last}"])
    ]
    if rules:
        yield "Between the cells of a row: " + "; ".join(rules) + ".\n"
    if schema is INSTRUCTION_FILE:
        yield from _instructions()
    if title in _PROSE["behind"]:
        yield _PROSE["behind"][title] + "\n"


def _applies(kind: SourceKind, last: str, *, schema: TableSchema) -> bool:
    return schema.kind is kind and last in schema.names and schema is not INSTRUCTION_FILE


def _needed(column: TableColumn) -> str:
    if not column.required:
        return ""
    return "the column" if column.blank else "yes"


def _cell(column: TableColumn, *, schema: TableSchema) -> str:
    match column.cell:
        case Cell.AMOUNT:
            of = "" if column.currency == "currency" else f" of `{column.currency}`"
            sign = SIGNS.get(schema.kind, "")
            return f"amount{of}" + (f", {sign}" if sign else "")
        case Cell.INSTANT:
            return "time"
        case Cell.CURRENCY:
            return "currency"
        case Grammar() as grammar:
            return SHORT.get(grammar, grammar.value[1])
        case frozenset() as words:
            return ", ".join(f"`{word}`" for word in sorted(words))


def _instructions() -> Iterator[str]:
    yield "| kind | must be filled | may be filled |\n|---|---|---|"
    alike: dict[tuple[str, ...], list[str]] = {}
    for kind in sorted(_WANTS):
        cells = (", ".join(f"`{name}`" for name in sorted(of[kind])) for of in (_WANTS, _ALLOWS))
        alike.setdefault(tuple(cells), []).append(f"`{kind}`")
    for (wanted, allowed), kinds in alike.items():
        yield f"| {', '.join(kinds)} | {wanted} | {allowed} |"
    yield "\n" + _PROSE["instructions"] + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
