"""docs/REFERENCE.md as the code has it; `python -m tests.architecture.reference_page` writes it."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from recon import cli
from recon.cli.commands import GROUPS
from recon.config.approvers import Approver
from recon.config.cluster import ClusterSettings
from recon.config.fee_contract import ContractLine, FeeContract
from recon.config.file_layouts import FileLayout
from recon.config.file_sources import ExpectedFile, LedgerSource, RemoteSource, SettlementFolder
from recon.config.limits import CurrencyLimits
from recon.config.night_archive import ArchiveSettings
from recon.config.notice_settings import Notice
from recon.config.retention import Retention
from recon.config.rules import DatevExport, GraceRules, JournalAccounts, JournalExport, Rules
from recon.config.settings import AccountSettings, GatewaySettings
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
from recon.matching.codes import CODES
from recon.model.terms import REVERSAL_SUFFIX, InstructionKind, InstructionState, SourceKind

PAGE = Path(__file__).parents[2] / "docs" / "REFERENCE.md"
_PROSE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
MODELS: Mapping[str, type[BaseModel]] = {
    model.__name__: model
    for model in (
        *(GatewaySettings, AccountSettings, LedgerSource, RemoteSource, ExpectedFile, FileLayout),
        *(SettlementFolder, CurrencyLimits, Approver, ArchiveSettings, ClusterSettings, Notice),
        *(Retention, Rules, GraceRules, JournalAccounts, JournalExport, DatevExport),
        *(FeeContract, ContractLine),
    )
}
"""What people declare, by its name in the prose."""
SETTINGS: tuple[Mapping[str, Any], ...] = tuple(_PROSE["files"])
VARIABLES: Mapping[str, str] = _PROSE["variables"]
KINDS: tuple[tuple[str, TableSchema], ...] = (
    ("Orders", ORDER_FILE),
    ("Instructions", INSTRUCTION_FILE),
    ("Ledger", LEDGER),
    ("Settlement", SETTLEMENT_FILE),
    ("Bank", BANK),
    ("Gateway", GATEWAY),
    ("Instructions of `recon reconcile`", INSTRUCTIONS),
)
NEEDS = FILLED, BLANK, OPTIONAL = ("filled", "may be blank", "optional")
"""What a file must have of a column, in this order."""
RULES: Mapping[str, str] = _PROSE["rules"]
"""Rules between cells, by kind and the column that completes them."""
SHORT = {
    Grammar.ACCOUNT: "id",
    Grammar.ORDER_KEY: "order key",
    Grammar.TRANSACTION: "transaction id",
    Grammar.REFERENCE: "reference",
    Grammar.DATE: "date",
    Grammar.WORDS: "text",
    Grammar.REASON: "reason",
}
"""What stands in many columns is explained once, above the tables."""
KINDS_OF_INSTRUCTION = ", ".join(f"`{kind.value}`" for kind in InstructionKind)
NAMED = {
    frozenset(kind.value for kind in InstructionKind): "kind",
    frozenset(state.value for state in InstructionState): (
        "[its state](GLOSSARY.md#states-of-an-instruction)"
    ),
}
"""Values that a column may have, and where they are listed."""
SIGNS = {
    SourceKind.SETTLEMENT: "signed",
    SourceKind.BANK: "signed",
    SourceKind.LEDGER: f"a minus of {' and '.join(sorted(SIGNED_ENTRY_TYPES))} only",
}


def page() -> str:
    """The whole page."""
    lines = [
        _PROSE["head"].lstrip(),
        *_variables(),
        *(line for table in SETTINGS for line in _settings(table)),
        "",
        _PROSE["columns"],
        _legend(),
        "",
        *(line for kind in KINDS for line in _kind(*kind)),
        _PROSE["codes"].lstrip() + "\n",
        ", ".join(code.value for code in CODES),
        "",
        _PROSE["commands"],
        *_commands(),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _commands() -> Iterator[str]:
    """Every command as people type it behind `recon`, by the groups of the first screen."""
    top: Any = typer.main.get_command(cli.app)
    for group, names in GROUPS.items():
        typed = (each for name in names for each in _typed(top.commands[name], name))
        yield f"- {group}: " + ", ".join(f"`{name}`" for name in typed)


def _typed(command: Any, name: str) -> Iterator[str]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name
        return
    for word, each in below.items():
        yield from _typed(each, f"{name} {word}")


def _variables() -> Iterator[str]:
    yield "\n### Environment variables\n"
    for names, meaning in VARIABLES.items():
        yield f"- {_names(names)}: {meaning}"
    yield "\nA file with a key or password has mode 0600 or 0400, else it is refused."


def _names(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split())


def _settings(table: Mapping[str, Any]) -> Iterator[str]:
    if "heading" in table:
        yield f"\n{table['heading']}"
    if "text" in table:
        yield f"\n{table['text']}"
    yield ""
    fields = fields_of(MODELS[table["model"]])
    for names, meaning in table["keys"].items():
        found = {default_of(fields[name]) for name in names.split()}
        default = found.pop() if len(found) == 1 else ""
        yield f"- {_names(names)}{f' ({default})' if default else ''}: {meaning}"
    if "after" in table:
        yield table["after"]


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Name as people write it -> the field of a declared table; not what the program adds."""
    return {
        field.alias or name: field
        for name, field in model.model_fields.items()
        if (model, name) != (Rules, "codes")
    }


def default_of(field: FieldInfo) -> str:
    """A default as a TOML file would have it; "" where it says nothing."""
    if field.is_required():
        return "required"
    match field.default:
        case bool() as switch:
            return str(switch).lower()
        case float() | int() as number:
            return f"{number:g}" if isinstance(number, float) else str(number)
        case str() as text if text.strip("\t "):
            return f"`{text}`"
        case tuple() as several if several and all(isinstance(each, str) for each in several):
            return ", ".join(f"`{each}`" for each in several)
    return ""


def _legend() -> str:
    words = [
        f"**{short}**: {re.sub(f'^an? {short} ', '', grammar.value[1])}"
        for grammar, short in SHORT.items()
    ]
    return f"- **kind**: {KINDS_OF_INSTRUCTION}; " + "; ".join(words) + "."


def _kind(title: str, schema: TableSchema) -> Iterator[str]:
    yield f"### {title}\n\n{_PROSE['kinds'][title]}\n"
    for need in NEEDS:
        alike: dict[str, list[str]] = {}
        for column in schema.columns:
            if _needed(column) == need:
                alike.setdefault(_cell(column, schema=schema), []).append(f"`{column.name}`")
        if alike:
            yield f"- {need}: " + "; ".join(_named(names, cell) for cell, names in alike.items())
    yield ""
    rules = [
        rule
        for kind, last in _RULES
        if _applies(kind, last, schema=schema) and (rule := RULES[f"{kind} {last}"])
    ]
    if rules:
        yield "Of a row: " + "; ".join(rules) + ".\n"
    if schema is INSTRUCTION_FILE:
        yield from _instructions()
    if title in _PROSE["behind"]:
        yield _PROSE["behind"][title] + "\n"


def _applies(kind: SourceKind, last: str, *, schema: TableSchema) -> bool:
    return schema.kind is kind and last in schema.names and schema is not INSTRUCTION_FILE


def _named(names: list[str], cell: str) -> str:
    """Columns and what they hold, unless the name says it."""
    text = ", ".join(names)
    return text if text == f"`{cell}`" else f"{text} ({cell})"


def _needed(column: TableColumn) -> str:
    if not column.required:
        return OPTIONAL
    return BLANK if column.blank else FILLED


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
        case frozenset() as words if words in NAMED:
            return NAMED[words]
        case frozenset() as words:
            own = sorted(words - {f"{word}{REVERSAL_SUFFIX}" for word in words})
            more = f", each also with `{REVERSAL_SUFFIX}`" if len(own) < len(words) else ""
            return ", ".join(f"`{word}`" for word in own) + more


def _instructions() -> Iterator[str]:
    alike: dict[tuple[str, ...], list[str]] = {}
    for kind in sorted(_WANTS):
        cells = (", ".join(f"`{name}`" for name in sorted(of[kind])) for of in (_WANTS, _ALLOWS))
        alike.setdefault(tuple(cells), []).append(f"`{kind}`")
    for (wanted, allowed), kinds in alike.items():
        yield f"- {', '.join(kinds)}: {wanted}; optional: {allowed}"
    yield "\n" + _PROSE["instructions"] + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
