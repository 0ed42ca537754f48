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


def plain_words(text: str) -> str:
    """The words of a name, without accents, case and punctuation."""
    bare = unicodedata.normalize("NFKD", _CAMEL.sub(" ", text).translate(_LETTERS))
    letters = "".join(c for c in bare if not unicodedata.combining(c)).lower()
    return _BETWEEN.sub(" ", letters).strip()


_WRITTEN: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)


def _named(names: str) -> frozenset[str]:
    """Plain names: umlauts are written as one letter or as two, words apart or as one."""
    plain = frozenset(map(plain_words, names.split("|")))
    plain |= {_UMLAUT.sub(r"\1", name) for name in plain}
    return plain | {name.replace(" ", "") for name in plain}


def _meanings(words: Mapping[str, str]) -> dict[str, str]:
    return {name: ours for ours, names in words.items() for name in _named(f"{ours}|{names}")}


COLUMN_NAMES: Mapping[str, frozenset[str]] = {
    ours: _named(f"{ours}|{names}") for ours, names in _WRITTEN["columns"].items()
}
"""Our column -> plain names that mean it; which of ours a table has, its schema says."""

STAND_INS: Mapping[str, frozenset[str]] = {
    ours: _named(names) for ours, names in _WRITTEN["stand_ins"].items()
}
"""Our column -> plain names of what numbers its rows where no column is named as it is."""

MEANINGS: Mapping[str, Mapping[str, str]] = {
    "status": _meanings(_WRITTEN["status"]),
    "entry_type": _meanings(_WRITTEN["entry_type"]),
    "kind": _meanings(_WRITTEN["kind"]),
    "action": _meanings(_WRITTEN["kind"]),
}
"""Our column of words -> their plain word -> ours."""
BANK_STATUS = _meanings(_WRITTEN["bank_status"])
"""The same of `status` in statements of a bank."""

_NAMES = {what: _named(names) for what, names in _WRITTEN["names"].items()}
DEBITS, CREDITS = _NAMES["debits"], _NAMES["credits"]
"""Names of columns of what is subtracted and added, and words for it."""
MINUS_WORDS, PLUS_WORDS = DEBITS | _NAMES["signs_minus"], CREDITS | _NAMES["signs_plus"]
"""The same as words in a column, also in short."""
CLOCKS = _NAMES["clocks"]
DATES = _NAMES["dates"]
"""Names of times that do not say of what."""
DAYS_OF_ROWS = _NAMES["days_of_rows"]
"""Names of days that a settled row may have beside the one of its batch."""
CENTS = _NAMES["cents"]
"""Words in a name by which amounts are of the smallest unit."""
TOTALS = _NAMES["totals"]
"""First cells of a last record that says what stood before it."""


def names_of_column(ours: str) -> frozenset[str]:
    """Plain names that mean a column of ours."""
    return COLUMN_NAMES.get(ours, frozenset({plain_words(ours)}))
