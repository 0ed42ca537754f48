"""Frozen figures: how they are written, read back, and told apart.

The file is TOML: a table for each thing that was played, a key for each figure of it. Whoever
reads its diff sees which cell, request or command became what.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

Figure = str | int | float | bool | date | datetime
Tables = Mapping[str, Mapping[str, Figure]]
"""Name of what was played -> name of a figure -> the figure."""

FROZEN = Path(__file__).with_name("frozen.toml")
HEADER = """\
# What must not change by itself: written by `make golden-freeze`, compared by `make golden`.
# Whoever changes a figure on purpose freezes anew in the same commit and says there why.
"""
DISPLAYED_MAX = 8
"""Differences of a table that are told one by one; the diff of the file has them all."""
TEXT_SHOWN_MAX = 160
GONE = "nothing"
LINES_QUOTE = "'" * 3


class Difference(NamedTuple):
    """One figure that is not as it was frozen."""

    table: str
    sentence: str


def frozen(path: Path = FROZEN) -> dict[str, dict[str, Figure]]:
    """The figures as they were frozen; none where the file does not exist."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def freeze(tables: Tables, *, path: Path = FROZEN) -> None:
    """Write the figures, in the order in which they are given."""
    path.write_text(text_of(tables), encoding="utf-8")


def text_of(tables: Tables) -> str:
    """The figures as TOML that `frozen` reads back."""
    return HEADER + "".join(
        f"\n[{_quoted(name)}]\n"
        + "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )


def differences(before: Tables, now: Tables) -> list[Difference]:
    """One for each figure that is another, came, or went."""
    return [
        Difference(name, sentence)
        for name in dict.fromkeys([*before, *now])
        for sentence in _of_table(name, before.get(name, {}), now=now.get(name, {}))
    ]


def told(found: Sequence[Difference]) -> str:
    """The differences for a terminal, and what to do about them."""
    lines: list[str] = []
    for table, of_table in groupby(found, key=lambda each: each.table):
        sentences = [each.sentence for each in of_table]
        more = len(sentences) - DISPLAYED_MAX
        lines += sentences[:DISPLAYED_MAX] + [f"{table}: ... and {more} more"] * (more > 0)
    ways = (
        "Not meant: mend the code. Meant: `make golden-freeze`, and say in the commit what changed "
        "and why."
    )
    return "\n".join([*lines, f"{len(found)} frozen figures differ. {ways}"])


def _of_table(
    name: str, before: Mapping[str, Figure], *, now: Mapping[str, Figure]
) -> Iterator[str]:
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key), now.get(key)
        if (type(old), old) != (type(new), new):
            yield f"{name}: {key} was {_shown(old, beside=new)}, is {_shown(new, beside=old)}"


def _shown(figure: Figure | None, *, beside: Figure | None) -> str:
    """A long text from shortly before the first character in which it differs."""
    if not isinstance(figure, str):
        return GONE if figure is None else _value(figure)
    if len(figure) <= TEXT_SHOWN_MAX or not isinstance(beside, str):
        return _quoted(figure[:TEXT_SHOWN_MAX])
    same = next(
        (at for at, pair in enumerate(zip(figure, beside, strict=False)) if pair[0] != pair[1]),
        min(len(figure), len(beside)),
    )
    start = max(0, same - TEXT_SHOWN_MAX // 4)
    return f"(from character {start + 1}) {_quoted(figure[start : start + TEXT_SHOWN_MAX])}"


def _key(name: str) -> str:
    plain = name.replace("-", "").replace("_", "")
    return name if plain.isascii() and plain.isalnum() else _quoted(name)


def _value(figure: Figure) -> str:
    if isinstance(figure, str):
        return _lines(figure) if "\n" in figure else _quoted(figure)
    if isinstance(figure, bool):
        return str(figure).lower()
    return figure.isoformat() if isinstance(figure, date) else repr(figure)


def _lines(text: str) -> str:
    """As it stands, line for line, where TOML can hold it so."""
    plain = LINES_QUOTE not in text and all(map(str.isprintable, text.split("\n")))
    return f"{LINES_QUOTE}\n{text}{LINES_QUOTE}" if plain else _quoted(text)


def _quoted(text: str) -> str:
    """A basic string of TOML; JSON's quoting is a part of it."""
    return json.dumps(text, ensure_ascii=False)
