"""A proposal as the TOML that merchants.toml takes; with an open question it is refused there."""

import json
import re
from typing import Any

from recon.files.proposing.proposal import Proposal

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_DIGITS = re.compile(r"[0-9]+(?:[-_.]?[0-9]+)*")
_FIRST = ("files", "delimiter", "quote", "encoding", "preamble", "columns", "constants", "words")


def pattern_of(names: list[str]) -> str:
    """Which names are of the layout: what is a number in them may be another one."""
    patterns = {_DIGITS.sub("*", re.sub(r"[*?\[\]]", "?", name)) for name in names}
    return min(patterns, key=len) if len(patterns) == 1 else f"*.{names[0].rpartition('.')[2]}"


def layout_text(proposal: Proposal, *, table: str, files: str) -> str:
    """The table of a layout; `table` is its header with brackets, `files` the pattern or ""."""
    keys: dict[str, Any] = ({"files": files} if files else {}) | proposal.layout
    lines = [table]
    lines += [f"# blank in every row, for no column is it: {', '.join(proposal.blank)}"] * bool(
        proposal.blank
    )
    lines += [f"# not read: {', '.join(proposal.not_read)}"] * bool(proposal.not_read)
    ordered = [*(k for k in _FIRST if k in keys), *(k for k in keys if k not in _FIRST)]
    lines += [f"{key} = {_value(keys[key])}" for key in ordered]
    if proposal.questions:
        lines.append(
            "# Decide each, set its key, take its question away: until then it is refused."
        )
        asked = ", ".join(f"{_text(key)} = {_text(q)}" for key, q in proposal.questions.items())
        lines.append(f"questions = {{ {asked} }}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    match value:
        case dict():
            parts = (f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
            return f"{{ {', '.join(parts)} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case str():
            return _text(value)
    return str(value)


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _text(text)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
