"""Which line of the fee contract holds for a settlement line, by its words and its day alone.

Few distinct combinations of words are asked. Nothing is guessed: where a line of the contract needs
what the settlement does not tell, or none holds, nobody knows what the settlement line should cost.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.fee_contract import FACTS, ContractLine, FeeContract
from recon.matching.frames.coding import coded
from recon.matching.frames.grouping import Rows
from recon.model.words import EntryType

NOT_COVERED = -1
"""What the line should cost is not known; `why` says why."""
NOT_LACKING = -1
PRICED = (EntryType.CAPTURE.value, EntryType.REFUND.value, EntryType.CHARGEBACK.value)
"""Entry types of which every line costs something, be it 0; their months are counted."""
_TABLE_MAX = 1 << 20
"""Combinations of words that are looked up in one table; more are numbered anew."""


class LookedUp(NamedTuple):
    """Of each row the line of the contract that holds (grain: row)."""

    line: Rows
    """By number; else NOT_COVERED."""
    why: Rows
    """Of those not covered: which of `reasons`."""
    reasons: tuple[str, ...]
    lacks: Rows
    """The line of the contract that might hold, if the settlement told more; else NOT_LACKING."""


class WordNumbers(NamedTuple):
    """One column as few numbers."""

    codes: Rows
    words: Sequence[str]


def looked_up(lines: pd.DataFrame, *, contract: FeeContract) -> LookedUp:
    """The line of the contract that holds for each row, by its words alone."""
    periods = _Periods(contract)
    columns = {
        "type": words_as_numbers(lines["entry_type"]),
        "currency": words_as_numbers(lines["currency"]),
    }
    columns["period"] = periods.of(lines["settled_on"])
    if any(line.accounts for line in contract.lines):
        columns["merchant"] = words_as_numbers(lines["merchant_id"])
        columns["account"] = words_as_numbers(lines["account_id"])
    for fact in FACTS:
        if any(line.words_of(fact) for line in contract.lines):
            columns[fact] = words_as_numbers(lines[fact])
    rows, places = combined(columns)
    reasons: dict[str, int] = {}
    held, why, lacks = (np.zeros(len(places), np.intp) for _ in range(3))
    for number, words in enumerate(places):
        cells = dict(zip(columns, words, strict=True))
        holding = _holding(cells, contract=contract, day=periods.first(cells))
        held[number], lacks[number], reason = holding
        why[number] = reasons.setdefault(reason, len(reasons))
    return LookedUp(held[rows], why[rows], tuple(reasons), lacks[rows])


def words_as_numbers(column: "pd.Series[str]") -> WordNumbers:
    """A column of few words as numbers."""
    (codes,), words = coded([column])
    return WordNumbers(codes.astype(np.intp), words.to_pylist())


def combined(columns: Mapping[str, WordNumbers]) -> tuple[Rows, list[tuple[str, ...]]]:
    """The number of each row's combination of words, and those combinations."""
    rows = np.zeros(len(next(iter(columns.values())).codes), dtype=np.intp)
    size, known = 1, np.zeros(1, dtype=np.intp)
    shape: list[int] = []
    for codes, words in columns.values():
        rows = rows * max(len(words), 1) + codes
        size *= max(len(words), 1)
        shape.append(max(len(words), 1))
    if size > _TABLE_MAX:
        known, rows = np.unique(rows, return_inverse=True)
    else:
        known = np.flatnonzero(np.bincount(rows, minlength=size))
        numbers = np.zeros(size, dtype=np.intp)
        numbers[known] = np.arange(len(known))
        rows = numbers[rows]
    cells = np.unravel_index(known, tuple(shape)) if len(known) else ()
    lists = [
        [words[code] for code in part.tolist()]
        for part, (_, words) in zip(cells, columns.values(), strict=False)
    ]
    return rows, [*zip(*lists, strict=True)]


class _Periods:
    """Days between which no line of a contract begins or ends."""

    def __init__(self, contract: FeeContract) -> None:
        begins = {line.first for line in contract.lines}
        ends = {
            line.until + timedelta(days=1)
            for line in contract.lines
            if line.until is not None and line.until < date.max
        }
        self._days = [date.min, *sorted(begins | ends)]

    def of(self, days: "pd.Series[str]") -> WordNumbers:
        """The period of each day, a word for each."""
        codes, words = words_as_numbers(days)
        number = [bisect_right(self._days, date.fromisoformat(day)) - 1 for day in words]
        return WordNumbers(
            np.array(number or [0], dtype=np.intp)[codes], [*map(str, range(len(self._days)))]
        )

    def first(self, cells: Mapping[str, str]) -> date:
        """The first day of a period."""
        return self._days[int(cells["period"])]


def _holding(cells: Mapping[str, str], *, contract: FeeContract, day: date) -> tuple[int, int, str]:
    """The line that holds for a combination, else the one that lacks something, and why."""
    for number, line in enumerate(contract.lines):
        if not _may_hold(line, cells, day=day):
            continue
        lacking = [fact for fact in FACTS if line.words_of(fact) and not cells.get(fact)]
        if lacking:
            needs = " and ".join(lacking)
            reason = f"{line.name} needs {needs}, which the settlement does not tell"
            return NOT_COVERED, number, reason
        return number, NOT_LACKING, ""
    facts = [cells[fact] for fact in FACTS if cells.get(fact)]
    what = " ".join((cells["type"], *facts, "in", cells["currency"]))
    return NOT_COVERED, NOT_LACKING, f"no line of the contract holds for {what}"


def _may_hold(line: ContractLine, cells: Mapping[str, str], *, day: date) -> bool:
    """Whether all that is told of a combination fits the line."""
    if (line.type, line.currency) != (cells["type"], cells["currency"]):
        return False
    if not line.first <= day <= (line.until or date.max):
        return False
    if line.accounts and f"{cells['merchant']}/{cells['account']}" not in line.accounts:
        return False
    return all(_fits(line.words_of(fact), cells.get(fact, "")) for fact in FACTS)


def _fits(wanted: tuple[str, ...], word: str) -> bool:
    return not wanted or not word or word.casefold() in {*map(str.casefold, wanted)}
