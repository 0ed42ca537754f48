"""What each line of a settlement should have cost by the fee contract, to the minor unit.

Amounts are computed column by column in int64, for each line of the contract that holds. Nothing
is guessed: where none holds, or nobody tells what decides its tier, the price is not known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from recon.config.fee_contract import (
    RATE_UNITS_PER_BASIS_POINT,
    ContractLine,
    FeeContract,
    FeeTier,
    Rounding,
)
from recon.config.rules import Rules
from recon.matching.frames.coding import is_word
from recon.matching.frames.grouping import Bools, Ints, Rows
from recon.matching.frames.sources import Sources
from recon.matching.frames.tolerance import BASIS
from recon.matching.sides.contract_lines import (
    NOT_COVERED,
    PRICED,
    combined,
    looked_up,
    words_as_numbers,
)
from recon.matching.sides.fee_volumes import (
    NOT_REACHED,
    Months,
    Volumes,
    held_volumes,
    volumes_of,
)
from recon.matching.sides.settlement_side import EARLIER, of_payments, pay_outs
from recon.model.words import EntryType

NOT_ASKED = -2
"""Nothing is charged for such a line, and no line of the contract could hold: a reserve, say, or a
pay-out, which tells the sums of its batch."""
CREDIT = -3
"""A fee that is given back to a payment: it closes what was charged too much."""

FEE_GAP = "fee_gap"
"""Minor units that the fee of a line differs by; only all lines together can tell."""

_WHOLE = BASIS * RATE_UNITS_PER_BASIS_POINT
"""Units of a rate in a whole."""
_INT64_MAX = int(np.iinfo(np.int64).max)
NOT_KEPT = "nothing of them was kept for this comparison"
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


def with_fees_priced(sources: Sources, *, rules: Rules) -> Sources:
    """The sources, each line of the settlement with what its fee differs by."""
    lines = sources.settlement
    if lines is None:
        return sources
    gaps = _fee_gaps(lines, volumes=volumes_of(sources), rules=rules)
    return replace(sources, settlement=lines.assign(**{FEE_GAP: gaps}))


def _fee_gaps(lines: pd.DataFrame, *, volumes: Volumes | None, rules: Rules) -> Ints:
    """The fee taken less the fee agreed (grain: line), 0 where none is known or it is tolerated.

    By the contract of fees.toml, where there is one, also what is given back; else by [fees] of the
    rules, of captures alone.
    """
    if rules.fee_contract is not None:
        return agreed_fees(lines, contract=rules.fee_contract, volumes=volumes).gap
    gross = lines["gross"].to_numpy(dtype=np.int64)
    gap = np.zeros(len(lines), dtype=np.int64)
    for currency, agreed in rules.fees.items():
        mine = is_word(lines["currency"], currency)
        mine &= is_word(lines["entry_type"], EntryType.CAPTURE.value)
        amount, rate = np.abs(gross[mine]), agreed.basis_points * RATE_UNITS_PER_BASIS_POINT
        parts = [(amount, np.int64(rate))]
        share = _share(amount, parts=parts, rounding=agreed.rounding)
        expected = np.where(gross[mine] < 0, -share, share)
        gaps = lines["fee"].to_numpy(dtype=np.int64)[mine] - expected - agreed.fixed_minor_units
        gap[mine] = np.where(np.abs(gaps) <= agreed.tolerance_minor_units, 0, gaps)
    return gap


def agreed_fees(
    lines: pd.DataFrame, *, contract: FeeContract, volumes: Volumes | None = None
) -> AgreedFees:
    """What each line should have cost.

    Args:
        lines: SETTLEMENT_COLUMNS.
        contract: the contract.
        volumes: what the months came to, for tiers by a month; None: nobody knows.
    """
    fee = lines["fee"].to_numpy(dtype=np.int64)
    line, why, reasons, _ = looked_up(lines, contract=contract)
    tiers, more = _month_tiers(
        lines, held=line, why=why, first=len(reasons), contract=contract, volumes=volumes
    )
    reasons = (*reasons, *more, OF_NO_PAYMENT, OF_EARLIER_LINES)
    line[is_word(lines["entry_type"], EntryType.FEE.value) & (fee < 0)] = CREDIT
    aside = ~of_payments(lines)
    if aside.any():
        earlier = is_word(lines["entry_type"], EARLIER)
        line[aside] = NOT_COVERED
        why[aside] = np.where(earlier, len(reasons) - 1, len(reasons) - 2)[aside]
    free = ~is_word(lines["entry_type"], *PRICED) & (fee == 0)
    free |= pay_outs(lines)  # tells the fee of its batch once more
    line[free & (line == NOT_COVERED)] = NOT_ASKED
    expected, tolerance = _expected(lines, held=line, tiers=tiers, contract=contract)
    gap = np.where(line >= 0, fee - expected, 0)
    gap[np.abs(gap) <= tolerance] = 0
    gap[line == CREDIT] = fee[line == CREDIT]
    return AgreedFees(line, why, reasons, expected, gap)


def _month_tiers(
    lines: pd.DataFrame,
    *,
    held: Rows,
    why: Rows,
    first: int,
    contract: FeeContract,
    volumes: Volumes | None,
) -> tuple[Rows, tuple[str, ...]]:
    """The tier of each row whose line goes by a month; why those are not covered that have none.

    `held` and `why` are changed where the tier is not known; `first` is the
    number of their first reason.
    """
    tiers = np.zeros(len(held), dtype=np.intp)
    reasons: dict[str, int] = {}
    if not contract.asks_months:
        return tiers, ()
    of_volumes = None if volumes is None else held_volumes(volumes, contract=contract)
    for number, rows in _by_line(held):
        line = contract.lines[number]
        if line.tiers_by == "line":
            continue
        names = ("merchant_id", "account_id", "settled_on")
        columns = {name: words_as_numbers(lines[name].iloc[rows]) for name in names}
        codes, places = combined(columns)
        if volumes is None or of_volumes is None:
            known = [(NOT_REACHED, f"{line.name} needs what its months came to: {NOT_KEPT}")]
            codes = np.zeros(len(rows), dtype=np.intp)
        else:
            months = Months(line, contract=contract, volumes=volumes, held=of_volumes)
            known = [months.tier((merchant, account), day=day) for merchant, account, day in places]
        tiers[rows] = np.array([tier for tier, _ in known], dtype=np.intp)[codes]
        numbers = [first + reasons.setdefault(reason, len(reasons)) for _, reason in known]
        unknown = tiers[rows] == NOT_REACHED
        held[rows[unknown]] = NOT_COVERED
        why[rows[unknown]] = np.array(numbers, dtype=np.intp)[codes][unknown]
    return tiers, tuple(reasons)


def _expected(
    lines: pd.DataFrame, *, held: Rows, tiers: Rows, contract: FeeContract
) -> tuple[Ints, Ints]:
    """What each line should cost, and how much of a difference is none; minor units."""
    gross = lines["gross"].to_numpy(dtype=np.int64)
    expected, tolerance = np.zeros(len(gross), np.int64), np.zeros(len(gross), np.int64)
    for number, rows in _by_line(held):
        line = contract.lines[number]
        amounts = _priced(
            np.abs(gross[rows]), line=line, reached=tiers[rows], rounding=contract.rounding
        )
        expected[rows] = -amounts if line.returned else amounts
        tolerance[rows] = line.tolerance_minor_units
    return expected, tolerance


def _by_line(held: Rows) -> Iterator[tuple[int, Rows]]:
    """The rows of each line of the contract."""
    for number in np.flatnonzero(np.bincount(held[held >= 0])).tolist():
        yield number, np.flatnonzero(held == number)


def _priced(amount: Ints, *, line: ContractLine, reached: Rows, rounding: Rounding) -> Ints:
    """The fee of amounts (0 or more) under one line: rounded once, then bounded.

    `reached` are the tiers of a line that goes by months.
    """
    tiers = line.every_tier
    if len(tiers) == 1:
        percentage = _share(amount, parts=[(amount, np.int64(tiers[0].rate))], rounding=rounding)
        fixed = np.full(len(amount), tiers[0].fixed_minor_units, dtype=np.int64)
    else:
        if line.tiers_by == "line":
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
