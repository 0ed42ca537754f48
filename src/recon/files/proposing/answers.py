"""What a person decided of a proposed layout, put where it belongs."""

from collections.abc import Mapping
from typing import Any

from recon.model.errors import UsageError

_OF_ENTRIES = "words.entry_type."


def words_answered(answers: Mapping[str, str]) -> dict[str, str]:
    """Their word -> our entry type, where a person decided."""
    given = answers.items()
    return {key.removeprefix(_OF_ENTRIES): t for key, t in given if key.startswith(_OF_ENTRIES)}


def set_answer(layout: dict[str, Any], key: str, text: str) -> None:
    """Put what a person decided where it belongs; `words.status.on hold` has no more points."""
    table, _, rest = key.partition(".")
    if rest and not isinstance(layout.get(table, {}), dict):
        msg = f"{key}: {table} is one text and has no parts"
        raise UsageError(msg)
    if not rest:
        layout[key] = text
    elif table == "words":
        column, _, word = rest.partition(".")
        layout.setdefault("words", {}).setdefault(column, {})[word] = text
    elif table == "sign":
        column, _, part = rest.partition(".")
        if part:  # which column has the sign of which amount is decided with its words
            layout.setdefault(table, {}).setdefault(column, {})[part] = text
    elif table == "turned_rows":
        layout.setdefault(table, {})[rest] = turned_of(text)
    elif table != "columns" or rest != text:
        layout.setdefault(table, {})[rest] = text


def turned_of(text: str) -> tuple[str, ...]:
    """The columns of an answer such as `gross,net`; none of an empty one."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
