"""A layout for files like some samples: its keys, what must be asked, what no column is.

As the TOML that merchants.toml takes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.files.proposing.columns import draft_of
from recon.files.proposing.decided_keys import decide_keys
from recon.files.proposing.sample import sample_of, without_other_rows
from recon.files.proposing.vocabulary import names_of_column
from recon.files.typing.table_schema import TableSchema
from recon.model.words import SourceKind
from recon.privacy.shown_text import redacted

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_DIGITS = re.compile(r"[0-9]+(?:[-_.]?[0-9]+)*")
_FIRST = ("files", "delimiter", "quote", "encoding", "preamble", "columns", "constants", "words")


class Proposal(NamedTuple):
    """What samples say of their layout."""

    layout: dict[str, Any]
    """Keys of a layout, as far as they are decided."""
    questions: dict[str, str]
    """Key -> what a person decides, with the row that shows why."""
    blank: tuple[str, ...]
    """Our columns that no column of the samples is; they are blank in every row."""
    not_read: tuple[str, ...]
    """Their columns of which nothing is read."""


def proposal_of(
    files: Sequence[FileBytes],
    *,
    schema: TableSchema,
    constants: Mapping[str, str],
    answers: Mapping[str, str],
) -> Proposal:
    """The layout of files like these.

    Args:
        files: Samples of one layout.
        schema: What a night reads of them.
        constants: Merchant and account, where they are known.
        answers: What a person decided: key of the layout -> text.

    Raises:
        SourceUnreadableError: one of them is no table with a header, or they differ in it.
        UsageError: an answer is none that its key can have.
    """
    known = frozenset().union(*map(names_of_column, schema.names))
    sample = sample_of(files, known=known, answers=answers)
    if not len(sample.raw.lines):
        why = "a column is known by what it holds, too"
        refuse(sample.raw.name, f"has a header and no row; {why}: give a sample with rows")
    of_orders = schema.kind is SourceKind.ORDERS
    sample = without_other_rows(sample, orders=of_orders, answers=answers)
    draft = draft_of(sample, schema=schema, known=constants, answers=answers)
    decide_keys(draft)
    layout = draft.layout()
    read = draft.taken() | {*draft.keys["currencies"].values()}
    read |= {sign["column"] for sign in layout.get("sign", {}).values()}
    read |= {rule["column"] for rule in layout.get("skip", ())}
    read |= {layout["lines"]["column"]} if "lines" in layout else set()
    not_read = tuple(redacted(name) for name in sample.raw.header if name not in read)
    blank = tuple(ours for ours, text in draft.keys["constants"].items() if not text)
    return Proposal(layout, draft.questions, blank, not_read)


def pattern_of(names: list[str]) -> str:
    """Which names are of the layout: what is a number in them may be another one."""
    patterns = {_DIGITS.sub("*", re.sub(r"[*?\[\]]", "?", name)) for name in names}
    return min(patterns, key=len) if len(patterns) == 1 else f"*.{names[0].rpartition('.')[2]}"


def layout_text(proposal: Proposal, *, table: str, files: str) -> str:
    """The table of a layout; `table` is its header with brackets, `files` the pattern or ""."""
    keys: dict[str, Any] = ({"files": files} if files else {}) | proposal.layout
    notes = {
        "blank in every row, for no column is it": proposal.blank,
        "not read": proposal.not_read,
    }
    lines = [table, *(f"# {why}: {', '.join(names)}" for why, names in notes.items() if names)]
    ordered = {key: keys[key] for key in _FIRST if key in keys} | keys
    return "\n".join([*lines, *table_lines(ordered)]) + "\n"


def table_lines(keys: Mapping[str, Any]) -> list[str]:
    """Keys of a table, as TOML writes them."""
    return [f"{_key(key)} = {_value(value)}" for key, value in keys.items()]


def _value(value: Any) -> str:
    match value:
        case dict():
            parts = (f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
            return f"{{ {', '.join(parts)} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case str() | bool():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
