"""Names that people use for our columns and terms, in the languages of the exports.

They are listed in vocabulary.toml and compared without accents, case and punctuation.
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
    """Normalise a name: words without accents, case and punctuation."""
    bare = unicodedata.normalize("NFKD", _CAMEL.sub(" ", text).translate(_LETTERS))
    letters = "".join(c for c in bare if not unicodedata.combining(c)).lower()
    return _BETWEEN.sub(" ", letters).strip()


def _named(names: str) -> frozenset[str]:
    """Normalise a list of names, adding umlauts as one letter and words joined together."""
    plain = frozenset(map(plain_text, names.split("|")))
    plain |= {_UMLAUT.sub(r"\1", name) for name in plain}
    return plain | {name.replace(" ", "") for name in plain}


_WRITTEN: Mapping[str, Mapping[str, frozenset[str]]] = {
    table: {key: _named(names) for key, names in of.items()}
    for table, of in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
STAND_INS = _WRITTEN["stand_ins"]
"""Our column -> names of row numbers that may stand in if no column has its own name."""
NAMES = _WRITTEN["names"]
"""Names and terms shared by several columns: sides, clocks, days, units, totals."""
MEANINGS: Mapping[str, Mapping[str, str]] = {
    table: {name: ours for ours, names in _WRITTEN[table].items() for name in names | _named(ours)}
    for table in ("status", "entry_type", "kind", "bank_status")
}
"""Our column of terms -> their normalised term -> ours; those of `action` are under `kind`."""


def names_of_column(ours: str) -> frozenset[str]:
    """Return the normalised names that mean a column of ours."""
    return _WRITTEN["columns"].get(ours, frozenset()) | _named(ours)
