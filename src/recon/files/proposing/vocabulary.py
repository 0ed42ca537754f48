"""How people name our columns and words, in the languages that exports are written in.

The names stand in vocabulary.toml, compared without accents, case and punctuation.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from pathlib import Path

_LETTERS = str.maketrans({"ß": "ss", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UMLAUT = re.compile("([aou])e")
_BETWEEN = re.compile(r"[^a-z0-9]+")


def plain_text(text: str) -> str:
    """The words of a name, without accents, case and punctuation."""
    bare = unicodedata.normalize("NFKD", _CAMEL.sub(" ", text).translate(_LETTERS))
    letters = "".join(c for c in bare if not unicodedata.combining(c)).lower()
    return _BETWEEN.sub(" ", letters).strip()


def _named(names: str) -> frozenset[str]:
    """Plain names: umlauts are written as one letter or as two, words apart or as one."""
    plain = frozenset(map(plain_text, names.split("|")))
    plain |= {_UMLAUT.sub(r"\1", name) for name in plain}
    return plain | {name.replace(" ", "") for name in plain}


_WRITTEN: Mapping[str, Mapping[str, frozenset[str]]] = {
    table: {key: _named(names) for key, names in of.items()}
    for table, of in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
STAND_INS = _WRITTEN["stand_ins"]
"""Our column -> plain names of what numbers its rows where no column is named as it is."""
NAMES = _WRITTEN["names"]
"""Names and words of which several columns make use: sides, clocks, days, units, totals."""
MEANINGS: Mapping[str, Mapping[str, str]] = {
    table: {name: ours for ours, names in _WRITTEN[table].items() for name in names | _named(ours)}
    for table in ("status", "entry_type", "kind", "bank_status")
}
"""Our column of words -> their plain word -> ours; those of `action` are of `kind`."""


def names_of_column(ours: str) -> frozenset[str]:
    """Plain names that mean a column of ours."""
    return _WRITTEN["columns"].get(ours, frozenset()) | _named(ours)
