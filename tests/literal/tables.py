"""The tables of the gateway's API document (tables.toml), as they stand there and no more.

A gateway that answers by these shares no code with the sandbox: where the two differ, one of them
assumes something that the document does not say. Of a nested object each table has the type of each
field: one in brackets is an array of it.
"""

import tomllib
from pathlib import Path
from typing import Any

_READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_NAMES, _TYPES = _READ.pop("names"), _READ.pop("types")
NUMBER = (int, float)
_KINDS: dict[str, Any] = {"TEXT": str, "NUMBER": NUMBER, "WHOLE": int}


def _table(told: Any) -> Any:
    """The type of each field of a table; a text is a kind, or names another table."""
    if isinstance(told, list):
        return [_table(each) for each in told]
    if isinstance(told, str):
        return _KINDS.get(told) or _table(_TYPES[told])
    named = {name: _KINDS[kind] for kind in _KINDS for name in told.get(kind, "").split()}
    return named | {name: _table(below) for name, below in told.items() if name not in _KINDS}


def _payment_fields(known: dict[str, str], which: str) -> frozenset[str]:
    whole = known[which].replace("CARD_OR_HOSTED", known["CARD_OR_HOSTED"])
    return frozenset(whole.replace("COMMON", known["COMMON"]).split())


def __getattr__(name: str) -> Any:
    """The table of a name."""
    if name in _TYPES:
        return _table(_TYPES[name])
    if name == "PAYMENT_FIELDS":
        return {of: _payment_fields(_NAMES[name], of) for of in ("card", "apm", "hosted")}
    if isinstance(names := _NAMES.get(name, ""), dict):
        return {of: tuple(each.split()) for of, each in names.items()}
    if name == "HOSTED_ALIASES":
        given = {**_READ[name]}
        return dict.fromkeys(given.pop("NONE").split(), "") | given
    if name == "PAYOUT_FORMS":
        return {field: _READ[form] for field, form in _READ[name].items()}
    if names or name in _READ:
        return tuple(names.split()) or _READ[name]
    raise AttributeError(name)
