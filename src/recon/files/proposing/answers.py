"""What a person decided of a proposed layout, put where it belongs."""

from typing import Any

from recon.model.errors import UsageError


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
    elif table != "columns" or rest != text:
        layout.setdefault(table, {})[rest] = text
