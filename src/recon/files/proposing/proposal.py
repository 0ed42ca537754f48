"""A layout for files like some samples: its keys, what must be asked, what no column is.

As the TOML that merchants.toml takes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_table import refuse
from recon.files.proposing.decided_keys import decide_keys, listed
from recon.files.proposing.ranked_columns import draft_of
from recon.files.proposing.sample import NONE, joined, sample_of, without_other_rows
from recon.files.proposing.vocabulary import names_of_column
from recon.files.typing.table_schema import TableSchema
from recon.model.errors import UsageError
from recon.privacy.shown_text import redacted

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_DIGITS = re.compile(r"[0-9]+(?:[-_.]?[0-9]+)*")
_NAMING = frozenset({"columns", "debit", "clock"})
"""Keys whose answers are names of columns: a header in another script has no name that is known."""
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
    encoding = answers.get("encoding", "")
    named = [text for key, text in answers.items() if key.partition(".")[0] in _NAMING]
    named += [
        name for key in answers if key[:5] == "sums." for name in listed(answers[key], by=" + ")
    ]
    samples = [
        sample_of(file, known=known, named=frozenset(named), encoding=encoding) for file in files
    ]
    if not any(len(sample.raw.lines) for sample in samples):
        why = "a column is known by what it holds, too"
        refuse(samples[0].raw.name, f"has a header and no row; {why}: give a sample with rows")
    sample = without_other_rows(joined(samples), schema=schema, answers=answers)
    draft = draft_of(sample, schema=schema, known=constants, answers=answers)
    decide_keys(draft)
    layout = draft.layout()
    for key, text in answers.items():
        is_taken = key.removeprefix("columns.") in draft.debit  # a pair holds both of its columns
        if not is_taken and not key.startswith("skip.") and (key, text) != ("lines.column", NONE):
            _set_answer(layout, key, text)
        draft.questions.pop(key, None)
    read = draft.taken() | {*layout.get("currencies", {}).values()}
    read |= {sign["column"] for sign in layout.get("sign", {}).values()}
    read |= {rule["column"] for rule in layout.get("skip", ())}
    read |= {column for key, column in layout.get("lines", {}).items() if key == "column"}
    not_read = tuple(redacted(name) for name in sample.raw.header if name not in read)
    blank = tuple(ours for ours, text in draft.constants.items() if not text)
    return Proposal(layout, draft.questions, blank, not_read)


def _set_answer(layout: dict[str, Any], key: str, text: str) -> None:
    """Put what a person decided where it belongs; `words.status.on hold` has no more points."""
    table, _, rest = key.partition(".")
    if rest and not isinstance(layout.get(table, {}), dict):
        msg = f"{key}: {table} is one text and has no parts"
        raise UsageError(msg)
    column, _, part = rest.partition(".")
    if not rest:
        layout[key] = listed(text) if key == "turned" else text
    elif table == "sums":
        layout.setdefault(table, {})[rest] = listed(text, by=" + ")
    elif table in {"words", "sign"}:
        if table == "words" or part:  # which amount a column of signs is of is decided by now
            layout.setdefault(table, {}).setdefault(column, {})[part] = text
    elif table == "turned_rows":
        layout.setdefault(table, {})[rest] = listed(text)
    elif table != "columns" or rest != text:
        layout.setdefault(table, {})[rest] = text


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
