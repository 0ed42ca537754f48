"""Card numbers in foreign text: never shown, and refused where an id should be.

`scrubbed` cuts every number that passes the check digit of cards. `likely_cards` is stricter, since
one long id in ten passes that check by chance: only what an issuer could have given counts, and by
`CardTally` only in a column that is not simply numbered that way. `holding_cards` looks into
sentences.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recon.foreign_bytes.account_numbers import masked_accounts
from recon.foreign_bytes.limits import SHOWN_CHARACTERS_MAX

SHOWN_FIRST = 6
SHOWN_LAST = 4
DIGITS_MIN = 13
DIGITS_MAX = 19

_DIGITS_WITH_GAPS = re.compile(r"(?<![0-9])[0-9](?:[ -]?[0-9]){12,}(?![0-9])", re.ASCII)
_ISSUER = (
    r"(?:4[0-9]{12}(?:[0-9]{3}){0,2}|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]"
    r"|720)[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35[0-9]{14}"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12,15})"
)
_ISSUED = rf"\A{_ISSUER}\z"
_GROUPS = re.compile(r"[0-9]+(?:[ -][0-9]+)*", re.ASCII)
_ISSUED_PYTHON = re.compile(_ISSUED.replace(r"\z", r"\Z"), re.ASCII)
_LONG_RUN = r"(?:^|[^0-9])[0-9](?:[ -]?[0-9]){12,18}(?:$|[^0-9])"
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def has_check_digit(digits: str) -> bool:
    """Whether the last digit is the one that cards carry (Luhn)."""
    total = sum(
        _DOUBLED[int(digit)] if place % 2 else int(digit)
        for place, digit in enumerate(reversed(digits))
    )
    return total % 10 == 0


def scrubbed(text: str, *, characters_max: int = SHOWN_CHARACTERS_MAX) -> str:
    """The text on one line, of bounded length, without card numbers' middles and bank accounts."""
    shown = _DIGITS_WITH_GAPS.sub(_scrub_run, masked_accounts(text))
    shown = "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in shown)
    if len(shown) <= characters_max:
        return shown
    return f"{shown[:characters_max]}… ({len(text)} characters)"


def likely_cards(cells: pa.Array) -> tuple[list[int], int]:
    """Row numbers of cells that could be a card, and how many only lack the check digit."""
    lengths = pc.binary_length(cells)
    long = pc.and_(pc.greater_equal(lengths, DIGITS_MIN), pc.less_equal(lengths, DIGITS_MAX))
    places: Any = pc.indices_nonzero(long)
    issued: Any = pc.indices_nonzero(pc.match_substring_regex(cells.take(places), _ISSUED))
    rows = places.take(issued).to_pylist()
    hits = [row for row in rows if has_check_digit(cells[row].as_py())]
    return hits, len(rows) - len(hits)


@dataclass(slots=True)
class CardTally:
    """Whether a column holds cards, judged over all parts of a file: more pass than do not."""

    decided: Mapping[str, bool] = field(default_factory=dict)
    """By an earlier reading of the same file, for every column."""
    hits: dict[str, int] = field(default_factory=dict)
    misses: dict[str, int] = field(default_factory=dict)
    taken: dict[str, set[bool]] = field(default_factory=dict)
    """How parts of a column were judged by themselves."""

    def takes(self, column: str, *, hits: int, misses: int) -> bool:
        """Whether the cells of this part that look like cards count as such."""
        takes = bool(hits) and self.decided.get(column, hits > misses)
        judged = {column: {takes}} if hits else {}
        self.add(CardTally(hits={column: hits}, misses={column: misses}, taken=judged))
        return takes

    def add(self, part: "CardTally") -> None:
        """Count what was seen in another part of the same file."""
        for name, hits in part.hits.items():
            self.hits[name] = self.hits.get(name, 0) + hits
            self.misses[name] = self.misses.get(name, 0) + part.misses[name]
        for name, taken in part.taken.items():
            self.taken.setdefault(name, set()).update(taken)

    @property
    def whole(self) -> dict[str, bool]:
        """Column -> whether it holds cards, by all that was read."""
        return {column: hits > self.misses[column] for column, hits in self.hits.items()}

    @property
    def agrees(self) -> bool:
        """Whether every part was judged as the whole file is."""
        return all(taken == {self.whole[column]} for column, taken in self.taken.items())


def is_card_number(text: str) -> bool:
    """Whether a text is one issued card number and nothing else."""
    return _ISSUED_PYTHON.search(text) is not None and has_check_digit(text)


def holding_cards(cells: pa.Array) -> list[int]:
    """Row numbers of texts in which an issued card number stands, in one piece or in groups."""
    long: Any = pc.indices_nonzero(pc.match_substring_regex(cells, r"[0-9](?:[ -]?[0-9]){12}"))
    return [row for row in long.to_pylist() if _holds_card(cells[row].as_py())]


def _holds_card(text: str) -> bool:
    return any(
        re.fullmatch(_ISSUER, digits) and has_check_digit(digits)
        for run in _GROUPS.findall(text)
        for digits in _joined(re.split("[ -]", run))
    )


def _joined(groups: list[str]) -> Iterator[str]:
    """Neighbouring groups of digits as one number, every way that has a card's length."""
    for first in range(len(groups)):
        digits = ""
        for group in groups[first:]:
            digits += group
            if len(digits) > DIGITS_MAX:
                break
            if len(digits) >= DIGITS_MIN:
                yield digits


def holds_card_numbers(cells: pa.Array) -> bool:
    """Whether cards stand in a column, gaps and text around them or not.

    One long id in ten passes the check digit by chance: a column counts when more of what an issuer
    could have given passes than does not.
    """
    hits, misses = card_runs(cells)
    return hits > misses


def card_runs(cells: pa.Array) -> tuple[int, int]:
    """Runs of digits in a column that an issuer could have given: with the check digit, without."""
    likely: Any = pc.indices_nonzero(pc.match_substring_regex(cells, _LONG_RUN))
    hits = misses = 0
    for row in likely.to_pylist():
        for run in _DIGITS_WITH_GAPS.findall(cells[row].as_py()):
            digits = re.sub(r"[ -]", "", run)
            if _ISSUED_PYTHON.search(digits):
                hits += has_check_digit(digits)
                misses += not has_check_digit(digits)
    return hits, misses


def _scrub_run(found: re.Match[str]) -> str:
    """A run of digits with every card number inside it cut; gaps are dropped where it is cut."""
    digits = re.sub(r"[ -]", "", found[0])
    spans = _card_spans(digits)
    if not spans:
        return found[0]
    shown = list(digits)
    for start, end in spans:
        shown[start + SHOWN_FIRST : end - SHOWN_LAST] = "*" * (
            end - start - SHOWN_FIRST - SHOWN_LAST
        )
    return "".join(shown)


def _card_spans(digits: str) -> list[tuple[int, int]]:
    """The whole run when it has a card's length, else the windows of a longer one."""
    if len(digits) <= DIGITS_MAX:
        return [(0, len(digits))] if has_check_digit(digits) else []
    last = len(digits) - DIGITS_MIN + 1
    return [
        (start, start + length)
        for start in range(min(last, SHOWN_CHARACTERS_MAX))
        for length in (16, 15, 19, 14, 13)
        if start + length <= len(digits) and has_check_digit(digits[start : start + length])
    ]
