"""What each line of a settlement should have cost by the fee contract, to the minor unit.

Few distinct combinations of words are asked for the line of the contract that holds; amounts are
then computed column by column in int64. Nothing is guessed: where a line of the contract needs what
the settlement does not tell, or none holds, what the settlement line should cost is not known.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.fee_contract import (
    FACTS,
    RATE_UNITS_PER_BASIS_POINT,
    ContractLine,
    FeeContract,
    FeeTier,
    Rounding,
)
from recon.config.rules import Rules
from recon.matching.frames.coding import coded, is_word
from recon.matching.frames.grouping import Bools, Ints, Rows
from recon.matching.frames.tolerance import BASIS
from recon.matching.sides.settlement_side import EARLIER, of_payments
from recon.model.words import EntryType

NOT_COVERED = -1
"""What the line should cost is not known; `why` says why."""
NOT_ASKED = -2
"""Nothing is charged for such a line, and no line of the contract could hold: a reserve, say."""
CREDIT = -3
"""A fee that is given back to a payment: it closes what was charged too much."""

_WHOLE = BASIS * RATE_UNITS_PER_BASIS_POINT
"""Units of a rate in a whole."""
_TABLE_MAX = 1 << 20
"""Combinations of words that are looked up in one table; more are numbered anew."""
_INT64_MAX = int(np.iinfo(np.int64).max)
_PRICED = (EntryType.CAPTURE.value, EntryType.REFUND.value, EntryType.CHARGEBACK.value)
"""Entry types of which every line costs something, be it 0."""
OF_NO_PAYMENT = "fees that name no payment"
OF_EARLIER_LINES = "sums of lines that were judged on their own night"


@dataclass(frozen=True, slots=True)
class AgreedFees:
    """What the contract says of settlement lines (grain: line)."""

    line: Rows
    """The line of the contract that holds, by number; else one of the constants of this module."""
    why: Rows
    """Of those not covered: which of `reasons`."""
    reasons: tuple[str, ...]
    expected: Ints
    """Minor units, signed as the fee is; 0 where no line holds."""
    gap: Ints
    """Charged less expected where it is beyond the tolerance, of a credit what it gives back."""


def fee_gaps(lines: pd.DataFrame, *, rules: Rules) -> Ints:
    """The fee taken less the fee agreed (grain: line), 0 where none is known or it is tolerated.

    By the contract of fees.toml, where there is one, also what is given back; else by [fees] of the
    rules, of captures alone.
    """
    if rules.fee_contract is not None:
        return agreed_fees(lines, contract=rules.fee_contract).gap
    gross = lines["gross"].to_numpy(dtype=np.int64)
    gap = np.zeros(len(lines), dtype=np.int64)
    for currency, agreed in rules.fees.items():
        mine = is_word(lines["currency"], currency)
        mine &= is_word(lines["entry_type"], EntryType.CAPTURE.value)
        whole, rest = np.divmod(gross[mine], BASIS)
        expected = whole * agreed.basis_points + rest * agreed.basis_points // BASIS
        gaps = lines["fee"].to_numpy(dtype=np.int64)[mine] - expected - agreed.fixed_minor_units
        gap[mine] = np.where(np.abs(gaps) <= agreed.tolerance_minor_units, 0, gaps)
    return gap


def agreed_fees(lines: pd.DataFrame, *, contract: FeeContract) -> AgreedFees:
    """What each line should have cost.

    Args:
        lines: SETTLEMENT_COLUMNS.
        contract: the contract.
    """
    fee = lines["fee"].to_numpy(dtype=np.int64)
    line, why, reasons = _looked_up(lines, contract=contract)
    reasons = (*reasons, OF_NO_PAYMENT, OF_EARLIER_LINES)
    line[is_word(lines["entry_type"], EntryType.FEE.value) & (fee < 0)] = CREDIT
    aside = ~of_payments(lines)
    if aside.any():
        earlier = is_word(lines["entry_type"], EARLIER)
        line[aside] = NOT_COVERED
        why[aside] = np.where(earlier, len(reasons) - 1, len(reasons) - 2)[aside]
    free = ~is_word(lines["entry_type"], *_PRICED) & (fee == 0)
    line[free & (line == NOT_COVERED)] = NOT_ASKED
    expected, tolerance = _expected(lines, held=line, contract=contract)
    gap = np.where(line >= 0, fee - expected, 0)
    gap[np.abs(gap) <= tolerance] = 0
    gap[line == CREDIT] = fee[line == CREDIT]
    return AgreedFees(line, why, reasons, expected, gap)


class _LookedUp(NamedTuple):
    line: Rows
    why: Rows
    reasons: tuple[str, ...]


class _Words(NamedTuple):
    """One column as few numbers."""

    codes: Rows
    words: Sequence[str]


def _looked_up(lines: pd.DataFrame, *, contract: FeeContract) -> _LookedUp:
    """The line of the contract that holds for each row, by its words alone."""
    periods = _Periods(contract)
    columns = {"type": _words(lines["entry_type"]), "currency": _words(lines["currency"])}
    columns["period"] = periods.of(lines["settled_on"])
    if any(line.accounts for line in contract.lines):
        columns["merchant"] = _words(lines["merchant_id"])
        columns["account"] = _words(lines["account_id"])
    for fact in FACTS:
        if any(line.words_of(fact) for line in contract.lines):
            columns[fact] = _words(lines[fact])
    rows, places = _combined(columns)
    reasons: dict[str, int] = {}
    held, why = np.zeros(len(places), np.intp), np.zeros(len(places), np.intp)
    for number, words in enumerate(places):
        cells = dict(zip(columns, words, strict=True))
        held[number], reason = _holding(cells, contract=contract, day=periods.first(cells))
        why[number] = reasons.setdefault(reason, len(reasons))
    return _LookedUp(held[rows], why[rows], tuple(reasons))


def _words(column: "pd.Series[str]") -> _Words:
    (codes,), words = coded([column])
    return _Words(codes.astype(np.intp), words.to_pylist())


def _combined(columns: Mapping[str, _Words]) -> tuple[Rows, list[tuple[str, ...]]]:
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

    def of(self, days: "pd.Series[str]") -> _Words:
        """The period of each day, a word for each."""
        codes, words = _words(days)
        number = [bisect_right(self._days, date.fromisoformat(day)) - 1 for day in words]
        return _Words(
            np.array(number or [0], dtype=np.intp)[codes], [*map(str, range(len(self._days)))]
        )

    def first(self, cells: Mapping[str, str]) -> date:
        """The first day of a period."""
        return self._days[int(cells["period"])]


def _holding(cells: Mapping[str, str], *, contract: FeeContract, day: date) -> tuple[int, str]:
    """The line that holds for a combination, else why none does."""
    for number, line in enumerate(contract.lines):
        if not _may_hold(line, cells, day=day):
            continue
        lacking = [fact for fact in FACTS if line.words_of(fact) and not cells.get(fact)]
        if lacking:
            needs = " and ".join(lacking)
            return NOT_COVERED, f"{line.name} needs {needs}, which the settlement does not tell"
        return number, ""
    facts = [cells[fact] for fact in FACTS if cells.get(fact)]
    what = " ".join((cells["type"], *facts, "in", cells["currency"]))
    return NOT_COVERED, f"no line of the contract holds for {what}"


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


def _expected(lines: pd.DataFrame, *, held: Rows, contract: FeeContract) -> tuple[Ints, Ints]:
    """What each line should cost, and how much of a difference is none; minor units."""
    gross = lines["gross"].to_numpy(dtype=np.int64)
    expected, tolerance = np.zeros(len(gross), np.int64), np.zeros(len(gross), np.int64)
    for number, rows in _by_line(held):
        line = contract.lines[number]
        amounts = _priced(np.abs(gross[rows]), line=line, rounding=contract.rounding)
        expected[rows] = -amounts if line.returned else amounts
        tolerance[rows] = line.tolerance_minor_units
    return expected, tolerance


def _by_line(held: Rows) -> Iterator[tuple[int, Rows]]:
    """The rows of each line of the contract."""
    for number in np.flatnonzero(np.bincount(held[held >= 0])).tolist():
        yield number, np.flatnonzero(held == number)


def _priced(amount: Ints, *, line: ContractLine, rounding: Rounding) -> Ints:
    """The fee of amounts (0 or more) under one line: rounded once, then bounded."""
    tiers = line.every_tier
    if len(tiers) == 1:
        percentage = _share(amount, parts=[(amount, np.int64(tiers[0].rate))], rounding=rounding)
        fixed = np.full(len(amount), tiers[0].fixed_minor_units, dtype=np.int64)
    else:
        bounds = np.array([tier.up_to_minor_units for tier in tiers[:-1]], dtype=np.int64)
        reached = np.searchsorted(bounds, amount, side="left")
        fixed = np.array([tier.fixed_minor_units for tier in tiers], dtype=np.int64)[reached]
        if line.tiers_of == "parts":
            percentage = _share(amount, parts=_parts(amount, tiers=tiers), rounding=rounding)
        else:
            rates = np.array([tier.rate for tier in tiers], dtype=np.int64)[reached]
            percentage = _share(amount, parts=[(amount, rates)], rounding=rounding)
    price = percentage + fixed
    if line.min_minor_units is not None:
        price = np.maximum(price, line.min_minor_units)
    if line.max_minor_units is not None:
        price = np.minimum(price, line.max_minor_units)
    return price


def _parts(amount: Ints, *, tiers: tuple[FeeTier, ...]) -> list[tuple[Ints, np.int64]]:
    """What of each amount lies in each tier, with its rate."""
    parts: list[tuple[Ints, np.int64]] = []
    low = 0
    for tier in tiers:
        high = tier.up_to_minor_units
        inside = amount if high is None else np.minimum(amount, high)
        parts.append((np.maximum(inside - low, 0), np.int64(tier.rate)))
        low = high or low
    return parts


def _share(
    amount: Ints, *, parts: Sequence[tuple[Ints, Ints | np.int64]], rounding: Rounding
) -> Ints:
    """The sum of parts by their rates, rounded once; exact for every int64 amount."""
    if len(amount) and int(amount.max()) > _INT64_MAX // (2 * _WHOLE):
        whole, rest = np.zeros(len(amount), np.int64), np.zeros(len(amount), np.int64)
        for part, rate in parts:
            full = part // _WHOLE
            whole += full * rate
            rest += (part - full * _WHOLE) * rate
        return whole + _rounded(rest, rounding=rounding)
    total = np.zeros(len(amount), np.int64)
    for part, rate in parts:
        total += part * rate
    return _rounded(total, rounding=rounding)


def _rounded(units: Ints, *, rounding: Rounding) -> Ints:
    """Units of 1 / _WHOLE of a minor unit, 0 or more, as minor units."""
    if rounding == "half_up":
        return (units + _WHOLE // 2) // _WHOLE
    if rounding == "up":
        return (units + (_WHOLE - 1)) // _WHOLE
    down = units // _WHOLE
    if rounding == "down":
        return down
    twice = 2 * (units - down * _WHOLE)
    more: Bools = (twice > _WHOLE) | ((twice == _WHOLE) & (down % 2 == 1))
    return down + more.astype(np.int64)
