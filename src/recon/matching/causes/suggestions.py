"""What might be the other side of a break, told beside it and never acted on.

Two ways to a guess: a number that is nearly the same at the same amount, and a few records of one
day that sum to exactly one other. Neither is evidence: amounts and dates agree by chance, so no
guess moves an item, and where two guesses are as good as each other none is told.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.matching.causes.shared_causes import Breaks
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import is_word
from recon.matching.frames.grouping import Rows, given
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY
from recon.model.words import BreakCode

ITEMS_MAX = 12
"""Of one amount, or of one day, on either side; among more, agreement is chance."""
PARTS_MIN = 2
CHARACTERS_MIN = 4
"""Shorter numbers are near each other by chance."""


class OneSidedLeg(NamedTuple):
    """Breaks that lack the record which others have too many of."""

    lacking: tuple[BreakCode, ...]
    amount: str
    """The column of what they have."""
    beside: tuple[BreakCode, ...]
    amount_beside: str
    word: str
    """What the others hold."""
    word_beside: str


LEGS = (
    OneSidedLeg(
        (BreakCode.MISSING_AT_GATEWAY, BreakCode.BOOKED_NOT_AT_GATEWAY),
        "order_amount",
        (BreakCode.MISSING_IN_ORDERS,),
        "gateway_amount",
        "order",
        "payment",
    ),
    OneSidedLeg(
        (BreakCode.MISSING_IN_LEDGER,),
        "gateway_amount",
        (BreakCode.LEDGER_ONLY,),
        "ledger_amount",
        "payment",
        "entry",
    ),
)


class _Record(NamedTuple):
    name: str
    row: int
    amount: int


def with_suggestions(breaks: Breaks) -> Breaks:
    """The breaks, the reasons of some with a guess behind them; a cause leaves no guess."""
    suggestions: dict[int, str] = {}
    for leg in LEGS:
        lacking = _unexplained(breaks, codes=leg.lacking, amount=leg.amount)
        beside = _unexplained(breaks, codes=leg.beside, amount=leg.amount_beside)
        if not len(lacking) or not len(beside):
            continue
        lacking_side = _side(breaks, rows=lacking, amount=leg.amount)
        other = _side(breaks, rows=beside, amount=leg.amount_beside)
        for guesses in (
            _alike(lacking_side, other, leg=leg),
            _summing(lacking_side, other, leg=leg),
        ):
            for row, sentence in guesses:
                suggestions.setdefault(row, sentence)
    if not suggestions:
        return breaks
    reasons = breaks["reason"].copy()
    for row, sentence in suggestions.items():
        reasons.iloc[row] = f"{reasons.iloc[row]} {sentence}"
    return breaks.assign(reason=reasons)


def _unexplained(breaks: pd.DataFrame, *, codes: Sequence[BreakCode], amount: str) -> Rows:
    """The rows of breaks of some codes that no cause explains."""
    chosen = is_word(breaks["code"], *codes) & given(breaks[amount])
    chosen[chosen] = texts(breaks["cause"])[chosen] == ""
    return np.flatnonzero(chosen)


def _side(breaks: pd.DataFrame, *, rows: Rows, amount: str) -> pd.DataFrame:
    """Breaks as one side of a guess: name, row, worth and place."""
    lacking = breaks.iloc[rows]
    name = lacking["order_no"].where(lacking["order_no"].ne(""), lacking["transaction_id"])
    frame = lacking[[*ACCOUNT_CURRENCY, "began_day"]].assign(name=name, row=rows)
    frame = frame.assign(worth=lacking[amount].astype("int64").abs())
    return frame[frame["name"].ne("")]


def _alike(
    own: pd.DataFrame, other: pd.DataFrame, *, leg: OneSidedLeg
) -> Iterator[tuple[int, str]]:
    """Pairs of one amount whose numbers are nearly the same, each the only one for the other."""
    by = [*ACCOUNT_CURRENCY, "worth"]
    for left, right in _groups(own, other, by=by):
        pairs = [(a, b) for a in left for b in right if _near(a.name, b.name)]
        for a, b in pairs:
            if sum(a == x or b == y for x, y in pairs) == 1:
                sentence = "of the same amount, whose number is nearly the same"
                yield a.row, _guess(f"the {leg.word_beside} of {b.name}, {sentence}")
                yield b.row, _guess(f"the {leg.word} of {a.name}, {sentence}")


def _summing(
    own: pd.DataFrame, other: pd.DataFrame, *, leg: OneSidedLeg
) -> Iterator[tuple[int, str]]:
    """Records of one business date of which exactly one choice sums to one on the other side."""
    for left, right in _groups(own, other, by=[*ACCOUNT_CURRENCY, "began_day"]):
        yield from _sums(left, parts=right, word=leg.word_beside)
        yield from _sums(right, parts=left, word=leg.word)


def _sums(wholes: list[_Record], *, parts: list[_Record], word: str) -> Iterator[tuple[int, str]]:
    choices = _choices(parts) if wholes else {}
    amounts = [whole.amount for whole in wholes]
    for whole in wholes:
        fitting = choices.get(whole.amount, ())
        if len(fitting) == 1 == amounts.count(whole.amount):
            names = ", ".join(part.name for part in fitting[0])
            yield whole.row, _guess(f"{len(fitting[0])} together, the {word} of each of {names}")


def _choices(parts: list[_Record]) -> dict[int, list[tuple[_Record, ...]]]:
    """By their sum, every choice of several of a few records."""
    sums: dict[int, list[tuple[_Record, ...]]] = {}
    for size in range(PARTS_MIN, len(parts) + 1):
        for chosen in combinations(parts, size):
            sums.setdefault(sum(part.amount for part in chosen), []).append(chosen)
    return sums


def _groups(
    own: pd.DataFrame, other: pd.DataFrame, *, by: list[str]
) -> Iterator[tuple[list[_Record], list[_Record]]]:
    """Both sides of every place that few records share, each in the order of its names."""
    left, right = (_items(frame, by=by) for frame in (own, other))
    for group in sorted({*left} & {*right}, key=str):
        if max(len(left[group]), len(right[group])) <= ITEMS_MAX:
            yield left[group], right[group]


def _items(frame: pd.DataFrame, *, by: list[str]) -> Mapping[tuple[object, ...], list[_Record]]:
    records: dict[tuple[object, ...], list[_Record]] = {}
    places = zip(*(frame[name].tolist() for name in by), strict=True)
    cells = zip(frame["name"].tolist(), frame["row"].tolist(), frame["worth"].tolist(), strict=True)
    for group, (name, row, worth) in zip(places, cells, strict=True):
        records.setdefault(group, []).append(_Record(str(name), int(row), int(worth)))
    return {group: sorted(items) for group, items in records.items()}


def _near(own: str, other: str) -> bool:
    """The same letters and digits, or one of them changed, added, lost or swapped with the next."""
    left, right = _plain(own), _plain(other)
    if min(len(left), len(right)) < CHARACTERS_MIN:
        return False
    if len(left) > len(right):
        left, right = right, left
    if len(right) - len(left) > 1:
        return False
    at = next((n for n, pair in enumerate(zip(left, right, strict=False)) if len({*pair}) > 1), -1)
    if at < 0:
        return True
    if len(left) < len(right):
        return left[at:] == right[at + 1 :]
    swapped = left[at : at + 2] == right[at : at + 2][::-1]
    return left[at + 1 :] == right[at + 1 :] or (swapped and left[at + 2 :] == right[at + 2 :])


def _plain(name: str) -> str:
    """Without case, signs and the zeros in front."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()).lstrip("0")


def _guess(words: str) -> str:
    return f"A guess to look at: {words}."
