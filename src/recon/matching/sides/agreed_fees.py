"""Expected fee of each settlement line by the fee contract, exact to the minor unit.

Amounts are computed column by column in int64, for each line of the contract that applies. Where
none applies, or what decides its tier is not reported, the price is unknown and never guessed.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.config.fee_contract import (
    FACTS,
    PRICED,
    RATE_UNITS_PER_BASIS_POINT,
    ContractLine,
    FeeContract,
    FeeTier,
    Rounding,
)
from recon.config.rules import Rules
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import by_label, equals, keyed
from recon.matching.frames.grouping import BASIS, Bools, Ints, Rows
from recon.matching.frames.sources import FEE_GAP, VOLUME_COLUMNS, Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.sides.settlement_side import EARLIER, is_payout, is_summed, of_payments
from recon.model.terms import EntryType

NOT_COVERED = -1
"""The expected fee is unknown; `why` has the reason."""
NOT_LACKING = -1


class LookedUp(NamedTuple):
    """The contract line that applies to each row."""

    line: Rows
    """Number of the contract line; else NOT_COVERED."""
    why: Rows
    """Index in `reasons`, for rows that are not covered."""
    reasons: tuple[str, ...]
    lacks: Rows
    """The contract line that might apply with more facts reported; else NOT_LACKING."""


def looked_up(lines: pd.DataFrame, *, contract: FeeContract) -> LookedUp:
    """Find the contract line that applies to each row by type, currency, day, account and facts."""
    # Within a period no line of the contract begins or ends.
    begins = {date.min, *(line.first for line in contract.lines)}
    untils = (line.until for line in contract.lines if line.until is not None)
    days = sorted(begins | {last + timedelta(days=1) for last in untils if last < date.max})
    columns: dict[str, Any] = {"type": lines["entry_type"], "currency": lines["currency"]}
    period = by_label(
        lines["settled_on"], of=lambda day: bisect_right(days, date.fromisoformat(day)) - 1
    )
    columns["period"] = pd.Series(period, index=lines.index)
    if any(line.accounts for line in contract.lines):
        columns |= {"merchant": lines["merchant_id"], "account": lines["account_id"]}
    for fact in FACTS:
        if any(line.accepted_values(fact) for line in contract.lines):
            columns[fact] = lines[fact]
    rows, keys = keyed(pd.DataFrame(columns), by=[*columns])
    reasons: dict[str, int] = {}
    held, why, lacks = (np.zeros(len(keys), np.intp) for _ in range(3))
    for number, labels in enumerate(keys):
        cells = dict(zip(columns, labels, strict=True))
        holding = _holding(cells, contract=contract, day=days[cells["period"]])
        held[number], lacks[number], reason = holding
        why[number] = reasons.setdefault(reason, len(reasons))
    return LookedUp(held[rows], why[rows], tuple(reasons), lacks[rows])


def _holding(cells: Mapping[str, Any], *, contract: FeeContract, day: date) -> tuple[int, int, str]:
    """Return the contract line that applies, else the one that lacks a fact, and the reason."""
    for number, line in enumerate(contract.lines):
        if not _may_hold(line, cells, day=day):
            continue
        lacking = [fact for fact in FACTS if line.accepted_values(fact) and not cells.get(fact)]
        if lacking:
            needs = " and ".join(lacking)
            reason = f"{line.name} needs {needs}, which the settlement does not state"
            return NOT_COVERED, number, reason
        return number, NOT_LACKING, ""
    facts = [cells[fact] for fact in FACTS if cells.get(fact)]
    what = " ".join((cells["type"], *facts, "in", cells["currency"]))
    return NOT_COVERED, NOT_LACKING, f"no line of the contract holds for {what}"


def _may_hold(line: ContractLine, cells: Mapping[str, Any], *, day: date) -> bool:
    """Return whether everything known of a combination fits the contract line."""
    if (line.type, line.currency) != (cells["type"], cells["currency"]):
        return False
    if not line.first <= day <= (line.until or date.max):
        return False
    if line.accounts and f"{cells['merchant']}/{cells['account']}" not in line.accounts:
        return False
    return all(_fits(line.accepted_values(fact), cells.get(fact, "")) for fact in FACTS)


def _fits(accepted: tuple[str, ...], label: str) -> bool:
    return not accepted or not label or label.casefold() in {*map(str.casefold, accepted)}


NOT_REACHED = -1
"""The tier that prices a line is unknown."""
_KEY = tuple(name for name in VOLUME_COLUMNS if name not in {"lines", "base", "late"})


@dataclass(frozen=True, slots=True)
class Volumes:
    """Daily totals of the settlement files so far."""

    frame: pd.DataFrame
    """VOLUME_COLUMNS."""
    until: str
    """The last day before a missing file; "" where none is missing."""

    def without_late(self) -> "Volumes":
        """Return the volumes without lines that arrived late."""
        return replace(self, frame=self.frame[self.frame["late"] == 0].reset_index(drop=True))


def volumes_of(sources: Sources) -> Volumes | None:
    """Return the volumes known of the months; None where none were stored."""
    if sources.volumes is None:
        return None
    days = sources.settled
    return Volumes(sources.volumes, days.last if days is not None and days.waits_for else "")


def volumes_of_lines(lines: pd.DataFrame, *, late: Bools) -> pd.DataFrame:
    """Sum whole settlement files by day into VOLUME_COLUMNS.

    Args:
        lines: SETTLEMENT_COLUMNS, each line once.
        late: lines of days that earlier files had reported already.
    """
    marked = lines.assign(late=late.astype(np.int64), base=lines["gross"].abs(), lines=1)
    mine = marked[equals(lines["entry_type"], *PRICED)]
    sums = mine.groupby([*_KEY, "late"])[["lines", "base"]].sum().reset_index()
    return sums[[*VOLUME_COLUMNS]]


def with_month_volumes(sources: Sources, *, known: int, rules: Rules) -> Sources:
    """Return the sources of plain files with monthly volumes, where the contract needs them.

    Args:
        sources: with all lines that this run and those before it read.
        known: how many of the lines, counted from the first, came from earlier runs.
        rules: with the contract.
    """
    lines, contract = sources.settlement, rules.fee_contract
    if lines is None or contract is None or not contract.asks_months:
        return sources
    late = np.zeros(len(lines), dtype=np.bool_)
    if known:
        days = texts(lines["settled_on"])
        late[known:] = days[known:] <= max(days[:known])
    return replace(sources, volumes=volumes_of_lines(lines, late=late))


def by_contract_line(volumes: Volumes, *, contract: FeeContract) -> pd.DataFrame:
    """Return the volumes with the `line` of the contract that each row counts for, and `lacks`."""
    line, _, _, lacks = looked_up(volumes.frame, contract=contract)
    return volumes.frame.assign(line=line, lacks=lacks)


def _sums_by_day(
    volumes: pd.DataFrame, *, line: ContractLine, numbers: Collection[int]
) -> pd.DataFrame:
    """Return per account and day what surely counts for a line (`low`) and what may (`high`).

    `numbers`: of the contract lines whose volumes the line's tiers count.
    """
    high = volumes["lines" if line.counts_lines else "base"]
    is_sure = volumes["line"].isin(numbers)
    low = high.where(is_sure, 0)
    counted = volumes.assign(low=low, high=high)[is_sure | volumes["lacks"].isin(numbers)]
    return counted.groupby([*ACCOUNT, "settled_on"])[["low", "high"]].sum().reset_index()


def _reached(
    line: ContractLine,
    *,
    day: str,
    sums: pd.DataFrame,
    since: date,
    until: str,
) -> tuple[int, str]:
    """Return the tier that prices a day of an account and ""; else NOT_REACHED and the reason.

    Args:
        line: a contract line with monthly tiers.
        day: ISO date.
        sums: per day of the account, what surely counts for the line (`low`) and what may (`high`).
        since: volumes are known from this day on.
        until: the last day before a missing file; "" where none is missing.
    """
    first, end = span(line, day=day)
    days = sums[sums["settled_on"].ge(first.isoformat()) & sums["settled_on"].lt(end.isoformat())]
    low, high = int(days["low"].sum()), int(days["high"].sum())
    bounds, unknown = line.bounds, ""
    if line.tiers_by == "month_before" and not low:
        unknown = "of which no line is reported"
    elif first < since:
        unknown = f"which begins before volumes_from ({since})"
    elif until and (end - timedelta(days=1)).isoformat() > until:
        unknown = f"of which the file after {until} is missing"
    tier = bisect_left(bounds, low)
    if first == end or tier == (len(bounds) if unknown else bisect_left(bounds, high)):
        return tier, ""
    why = unknown or "of which some lines do not state all that it asks for"
    return NOT_REACHED, f"{line.name} needs what {first:%Y-%m} came to, {why}"


def span(line: ContractLine, *, day: str) -> tuple[date, date]:
    """Return the days that decide the tier of a day: the first, and the one after the last."""
    today = date.fromisoformat(day)
    first = today.replace(day=1)
    if line.tiers_by == "month":
        return first, today
    return (first - timedelta(days=1)).replace(day=1), first


def month_sums(volumes: Volumes, *, contract: FeeContract) -> Iterator[dict[str, Any]]:
    """Yield each month's volume of each contract line with monthly tiers, and the tier reached."""
    held = by_contract_line(volumes, contract=contract)
    held = held.assign(
        month=held["settled_on"].str[: len("2026-11")],
        late_lines=held["lines"] * held["late"],
        late_base=held["base"] * held["late"],
    )
    by, names = ["merchant_id", "account_id", "month"], ["lines", "base", "late_lines", "late_base"]
    for line in contract.lines:
        if line.tiers_by == "line":
            continue
        mine = held[held["line"].isin(contract.numbers_counted(line))]
        for row in mine.groupby(by)[names].sum().reset_index().to_dict("records"):
            tier = bisect_left(line.bounds, row["lines" if line.counts_lines else "base"])
            named = {"name": line.name, "currency": line.currency}
            yield {**named, "reached": line.tier_text(tier), **{str(n): c for n, c in row.items()}}


NO_FEE_DUE = -2
"""No fee is charged or expected for the line: a reserve, for example, or a payout row, which has
the totals of its batch."""
CREDIT = -3
"""A fee returned to a payment; it offsets what was charged too much."""

_WHOLE = BASIS * RATE_UNITS_PER_BASIS_POINT
"""Units of a rate in a whole."""
_INT64_MAX = int(np.iinfo(np.int64).max)
NOT_STORED = "nothing of them was kept for this comparison"
OF_NO_PAYMENT = "fees that name no payment"
OF_EARLIER_LINES = "sums of lines that were compared on their own night"


@dataclass(frozen=True, slots=True)
class AgreedFees:
    """The expected fee of each settlement line."""

    line: Rows
    """Number of the contract line that applies; else one of the constants of this module."""
    why: Rows
    """Index in `reasons`, for lines that are not covered."""
    reasons: tuple[str, ...]
    expected: Ints
    """Minor units, signed as the fee is; 0 where no contract line applies."""
    gap: Ints
    """Charged less expected where beyond the tolerance; for a credit the (negative) fee itself."""


def with_fees_priced(sources: Sources, *, rules: Rules) -> Sources:
    """Return the sources with the fee charged less the fee agreed of each line in column FEE_GAP.

    By the contract of fees.toml if there is one, returned fees included, with the lines that it
    does not price counted; else by [fees] of the rules, for captures only.
    """
    lines, contract = sources.settlement, rules.fee_contract
    if lines is None:
        return sources
    if contract is None:
        return replace(sources, settlement=lines.assign(**{FEE_GAP: _fee_gaps(lines, rules=rules)}))
    agreed = agreed_fees(lines, contract=contract, volumes=volumes_of(sources))
    unknown = agreed.why[(agreed.line == NOT_COVERED) & ~is_summed(lines)].tolist()
    return replace(
        sources,
        settlement=lines.assign(**{FEE_GAP: agreed.gap}),
        unpriced=Counter(agreed.reasons[why] for why in unknown),
    )


def _fee_gaps(lines: pd.DataFrame, *, rules: Rules) -> Ints:
    """Return the difference of each fee, 0 where none is agreed or it is within tolerance."""
    gross = lines["gross"].to_numpy(dtype=np.int64)
    gap = np.zeros(len(lines), dtype=np.int64)
    for currency, agreed in rules.fees.items():
        mine = equals(lines["currency"], currency)
        mine &= equals(lines["entry_type"], EntryType.CAPTURE.value)
        amount, rate = np.abs(gross[mine]), agreed.basis_points * RATE_UNITS_PER_BASIS_POINT
        priced = [(amount, np.int64(rate))]
        share = _share(amount, priced=priced, rounding=agreed.rounding)
        expected = np.where(gross[mine] < 0, -share, share)
        gaps = lines["fee"].to_numpy(dtype=np.int64)[mine] - expected - agreed.fixed_minor_units
        gap[mine] = np.where(np.abs(gaps) <= agreed.tolerance_minor_units, 0, gaps)
    return gap


def agreed_fees(
    lines: pd.DataFrame, *, contract: FeeContract, volumes: Volumes | None = None
) -> AgreedFees:
    """Compute the expected fee of each line.

    Args:
        lines: SETTLEMENT_COLUMNS.
        contract: the contract.
        volumes: volumes of the months, for tiers by month; None: unknown.
    """
    fee = lines["fee"].to_numpy(dtype=np.int64)
    line, why, reasons, _ = looked_up(lines, contract=contract)
    tiers, more = _month_tiers(
        lines, held=line, why=why, first=len(reasons), contract=contract, volumes=volumes
    )
    reasons = (*reasons, *more, OF_NO_PAYMENT, OF_EARLIER_LINES)
    line[equals(lines["entry_type"], EntryType.FEE.value) & (fee < 0)] = CREDIT
    unpriced = ~of_payments(lines)
    if unpriced.any():
        earlier = equals(lines["entry_type"], EARLIER)
        line[unpriced] = NOT_COVERED
        why[unpriced] = np.where(earlier, len(reasons) - 1, len(reasons) - 2)[unpriced]
    free = ~equals(lines["entry_type"], *PRICED) & (fee == 0)
    free |= is_payout(lines)  # repeats the fee of its batch
    line[free & (line == NOT_COVERED)] = NO_FEE_DUE
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
    """Return the tier of each row priced by monthly volumes, and the reasons where it is unknown.

    Sets `held` and `why` where the tier is unknown; `first` is the number of the first new reason.
    """
    tiers = np.zeros(len(held), dtype=np.intp)
    reasons: dict[str, int] = {}
    if not contract.asks_months:
        return tiers, ()
    known = None if volumes is None else by_contract_line(volumes, contract=contract)
    for number, rows in _by_line(held):
        line = contract.lines[number]
        if line.tiers_by == "line":
            continue
        names = ("merchant_id", "account_id", "settled_on")
        codes, keys = keyed(lines.iloc[rows], by=names)
        if volumes is None or known is None:
            reached = [(NOT_REACHED, f"{line.name} needs what its months came to: {NOT_STORED}")]
            codes = np.zeros(len(rows), dtype=np.intp)
        else:
            sums = _sums_by_day(known, line=line, numbers=contract.numbers_counted(line))
            of_account = dict([*sums.groupby([*ACCOUNT])])
            since = contract.volumes_from or date.max
            of_line = partial(_reached, line, since=since, until=volumes.until)
            reached = [
                of_line(day=day, sums=of_account.get((merchant, account), sums.iloc[:0]))
                for merchant, account, day in keys
            ]
        tiers[rows] = np.array([tier for tier, _ in reached], dtype=np.intp)[codes]
        why_not = [first + reasons.setdefault(reason, len(reasons)) for _, reason in reached]
        unknown = tiers[rows] == NOT_REACHED
        held[rows[unknown]] = NOT_COVERED
        why[rows[unknown]] = np.array(why_not, dtype=np.intp)[codes][unknown]
    return tiers, tuple(reasons)


def _expected(
    lines: pd.DataFrame, *, held: Rows, tiers: Rows, contract: FeeContract
) -> tuple[Ints, Ints]:
    """Return the expected fee of each line and its tolerance, in minor units."""
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
    """Yield the number of each contract line with its rows."""
    for number in np.flatnonzero(np.bincount(held[held >= 0])).tolist():
        yield number, np.flatnonzero(held == number)


def _priced(amount: Ints, *, line: ContractLine, reached: Rows, rounding: Rounding) -> Ints:
    """Compute the fee of amounts (0 or more) under one contract line: rounded once, then bounded.

    `reached` are the tiers of a line that is priced by monthly volumes.
    """
    tiers = line.every_tier
    if len(tiers) == 1:
        percentage = _share(amount, priced=[(amount, np.int64(tiers[0].rate))], rounding=rounding)
        fixed = np.full(len(amount), tiers[0].fixed_minor_units, dtype=np.int64)
    else:
        if line.tiers_by == "line":
            bounds = np.array([tier.up_to_minor_units for tier in tiers[:-1]], dtype=np.int64)
            reached = np.searchsorted(bounds, amount, side="left")
        fixed = np.array([tier.fixed_minor_units for tier in tiers], dtype=np.int64)[reached]
        if line.tiers_of == "parts":
            percentage = _share(amount, priced=_parts(amount, tiers=tiers), rounding=rounding)
        else:
            rates = np.array([tier.rate for tier in tiers], dtype=np.int64)[reached]
            percentage = _share(amount, priced=[(amount, rates)], rounding=rounding)
    price = percentage + fixed
    if line.min_minor_units is not None:
        price = np.maximum(price, line.min_minor_units)
    if line.max_minor_units is not None:
        price = np.minimum(price, line.max_minor_units)
    return price


def _parts(amount: Ints, *, tiers: tuple[FeeTier, ...]) -> list[tuple[Ints, np.int64]]:
    """Split each amount into the parts within each tier, with the tier's rate."""
    priced: list[tuple[Ints, np.int64]] = []
    low = 0
    for tier in tiers:
        high = tier.up_to_minor_units
        inside = amount if high is None else np.minimum(amount, high)
        priced.append((np.maximum(inside - low, 0), np.int64(tier.rate)))
        low = high or low
    return priced


def _share(
    amount: Ints, *, priced: Sequence[tuple[Ints, Ints | np.int64]], rounding: Rounding
) -> Ints:
    """Sum the parts multiplied by their rates, rounded once; exact for every int64 amount."""
    if len(amount) and int(amount.max()) > _INT64_MAX // (2 * _WHOLE):
        whole, remainder = np.zeros(len(amount), np.int64), np.zeros(len(amount), np.int64)
        for portion, rate in priced:
            full = portion // _WHOLE
            whole += full * rate
            remainder += (portion - full * _WHOLE) * rate
        return whole + _rounded(remainder, rounding=rounding)
    total = np.zeros(len(amount), np.int64)
    for portion, rate in priced:
        total += portion * rate
    return _rounded(total, rounding=rounding)


def _rounded(units: Ints, *, rounding: Rounding) -> Ints:
    """Round units of 1 / _WHOLE of a minor unit, 0 or more, to minor units."""
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
