"""The result of a night that was judged in parts: that of what is left, and all parts added to it.

Totals, sides and statements add up. Breaks, effects, movements and journals are of what is left
alone. Matches, pending and unverified sets lie in the files of the parts, and are one with those of
what is left where the digest is made.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.result import MATCH_COLUMNS, Deferred, Reconciliation
from recon.matching.breaks.sum_bounds import Sums, refuse_beyond_sums
from recon.matching.causes.aside_evidence import AsideEvidence, added_evidence
from recon.matching.frames.arrays import frame_of_cells
from recon.matching.frames.digest import Columns, digest_of
from recon.matching.frames.sources import Previous, Sources
from recon.matching.sides.summed_lines import with_summed
from recon.model.words import ControlTotal, SetState
from recon.proof.engine import concluded, prove
from recon.proof.night_parts import SECTIONS, PartFigures
from recon.proof.scope import STATEMENTS, Line
from recon.proof.scope_items import IN_SCOPE
from recon.proof.totals_of_bank import as_banks_allow
from recon.proof.totals_of_inputs import arrived_aside
from recon.proof.totals_of_items import SOURCES
from recon.proof.verdict import OpenCounts, verdict_of

BOUNDS = "T9"
"""The total that says of nothing that it is nothing, once for each account."""
_BY_SOURCE = {"T4": SOURCES, "T6": IN_SCOPE}
"""Totals of each source -> their order."""
_SIDE_KEY = ("source", "merchant_id", "account_id", "currency", "state")
_SIDE_SUMS = ("count", "amount")
_TOTAL_KEY = ("id", "name", "measure")
_PLACE = ("merchant_id", "account_id", "currency")


class RowsOfParts(Protocol):
    """The rows of the parts together with those of what is left."""

    def columns(self, section: str, *, rest: pd.DataFrame) -> Columns:
        """All rows of one of SECTIONS in the order of a result; `rest`: those of what is left."""


@dataclass(frozen=True, slots=True)
class Aside:
    """What all parts add."""

    totals: Sequence[Sequence[ControlTotal]]
    sides: Sequence[pd.DataFrame]
    scope: Sequence[Sequence[Line]]
    evidence: AsideEvidence
    sums: Sums
    rows: Mapping[str, int]
    of_sources: Mapping[str, int]
    """Source -> its rows that are aside."""
    unpriced: Mapping[str, int]

    @classmethod
    def of(cls, parts: Sequence[PartFigures]) -> "Aside":
        """Add up the figures of all parts."""
        return cls(
            [part.totals for part in parts],
            [part.sides for part in parts],
            [part.scope for part in parts],
            added_evidence(part.evidence for part in parts),
            _counted(part.sums for part in parts),
            _counted(part.rows for part in parts),
            _counted(part.aside for part in parts),
            _counted(part.unpriced for part in parts),
        )


def reconcile_rest(
    rest: Sources,
    *,
    parts: Sequence[PartFigures],
    merged: RowsOfParts,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None = None,
) -> Reconciliation:
    """Compare what is left of all parts, and add what they came to.

    Args:
        rest: what is left, with all sources that are not cut into parts, and of the settlement
            also what is aside, summed up (see `settled_of_parts`).
        parts: what each part came to.
        merged: their rows.
        rules: as for the parts.
        as_of: as for the parts.
        previous: what the night before left open.
    """
    aside = Aside.of(parts)
    refuse_beyond_sums(rest, parts=aside.sums)
    proof = prove(rest, rules=rules, as_of=as_of, previous=previous, parts=aside.evidence)
    result = concluded(replace(proof, fees=proof.fees.with_more(aside.unpriced)), as_of=as_of)
    arrived = arrived_aside(rest, rows=aside.of_sources)
    totals = added_totals([*result.control_totals], parts=aside.totals, arrived=[*arrived])
    sides = _added_sides([result.sides, *aside.sides])
    verdict = verdict_of(
        totals, judged=_open(result, sides=sides, aside=aside), sources=rest, rules=rules
    )
    matched = result.matches
    columns = Deferred(lambda: merged.columns("matches", rest=matched))
    matches = Deferred(lambda: pd.DataFrame({name: columns.get()[name] for name in MATCH_COLUMNS}))
    frames = {name: getattr(result, name) for name in SECTIONS[1:]}

    def digest() -> str:
        open_sets = (merged.columns(name, rest=frame) for name, frame in frames.items())
        return digest_of([result.breaks, result.effects, columns.get(), *open_sets])

    return replace(
        result,
        verdict=as_banks_allow(verdict, lacks=result.bank_lacks),
        control_totals=totals,
        sides=sides,
        scope_of_assurance=_added_scope([result.scope_of_assurance, *aside.scope]),
        digest_of_all=Deferred(digest),
        every_match=matches,
        match_columns=columns,
        aside={name: aside.rows.get(name, 0) for name in SECTIONS},
    )


def settled_of_parts(
    left: pd.DataFrame | None, *, parts: Sequence[PartFigures]
) -> pd.DataFrame | None:
    """The settlement of a night in parts: lines that are left, and what all others come to.

    `left`: SETTLEMENT_COLUMNS; None: nobody gave any.
    """
    if left is None:
        return None
    return with_summed(left, parts=[each.settled for each in parts if each.settled is not None])


def _open(result: Reconciliation, *, sides: pd.DataFrame, aside: Aside) -> OpenCounts:
    unverified = sides[sides["state"].eq(SetState.UNVERIFIED.value)]
    return OpenCounts(
        len(result.breaks),
        len(result.unverified) + aside.rows.get("unverified", 0),
        int(unverified["count"].sum()),
        has_parts=bool(aside.of_sources.get("orders")),
    )


def added_totals(
    rest: Sequence[ControlTotal],
    *,
    parts: Sequence[Sequence[ControlTotal]],
    arrived: Sequence[ControlTotal] = (),
) -> tuple[ControlTotal, ...]:
    """Each total, both sides added up, in the order in which a whole night has them.

    One that fails in a part is shown by itself as well: no other part makes up for it. `arrived`:
    rows of the parts that stand on one side alone (see totals_of_inputs.arrived_aside).
    """
    groups: list[tuple[str, ...]] = []
    sums: dict[tuple[str, ...], dict[tuple[str, ...], tuple[int, int]]] = {}
    bounds = [total for totals in (rest, *parts) for total in totals if total.id == BOUNDS]
    is_beyond = not all(map(_is_nothing_beyond, bounds))
    alone = [
        replace(total, name=f"{total.name}, in one part of the night")
        for totals in parts
        for total in totals
        if not total.passed
    ]
    for totals in (rest, *parts, arrived):
        counted = [total for total in totals if not (is_beyond and _is_nothing_beyond(total))]
        _name_in_order(groups, names=[_cells(total, _TOTAL_KEY) for total in counted])
        for total in counted:
            by_place = sums.setdefault(_cells(total, _TOTAL_KEY), {})
            holder = _cells(total, _PLACE)
            left, right = by_place.get(holder, (0, 0))
            by_place[holder] = left + total.left, right + total.right
    together = [
        ControlTotal(number, name, merchant, account, currency, measure, *sides)
        for number, name, measure in groups
        for (merchant, account, currency), sides in sorted(sums[number, name, measure].items())
    ]
    return (*together, *alone)


def _name_in_order(groups: list[tuple[str, ...]], *, names: Sequence[tuple[str, ...]]) -> None:
    """Put those that are not named yet behind the one before them, or before the one behind."""
    for at, name in enumerate(names):
        if name in groups:
            continue
        behind = next((other for other in names[at + 1 :] if other in groups), None)
        if at:
            number = groups.index(names[at - 1]) + 1
            # Neither the parts nor the rest need have both sources that the whole night has.
            while number < len(groups) and _is_of_source_before(groups[number], name):
                number += 1
            groups.insert(number, name)
        else:
            groups.insert(len(groups) if behind is None else groups.index(behind), name)


def _is_of_source_before(other: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Whether another total says the same of a source that comes before that of this one."""
    (theirs, *other_words), (ours, *own_words) = (
        (source, number, text, measure)
        for number, title, measure in (other, name)
        for source, _, text in [title.partition(":")]
    )
    sources = _BY_SOURCE.get(name[0], ())
    is_same = other_words == own_words and {theirs, ours} <= {*sources}
    return is_same and sources.index(theirs) < sources.index(ours)


def _cells(total: ControlTotal, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(getattr(total, name) for name in names)


def _is_nothing_beyond(total: ControlTotal) -> bool:
    return total.id == BOUNDS and total.left == total.right == 0


def _added_sides(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Count and amount of every place that a part names."""
    sums: dict[tuple[str, ...], Counter[str]] = {}
    for row in (row for part in parts for row in part.to_dict("records")):
        key = tuple(str(row[name]) for name in _SIDE_KEY)
        sums.setdefault(key, Counter()).update({name: int(row[name]) for name in _SIDE_SUMS})
    cells = [
        {**dict(zip(_SIDE_KEY, key, strict=True)), **{name: own[name] for name in _SIDE_SUMS}}
        for key, own in sorted(sums.items())
    ]
    return frame_of_cells(cells, names=parts[0].columns, numbers={*_SIDE_SUMS})


def _added_scope(parts: Sequence[Sequence[Line]]) -> tuple[Line, ...]:
    """The statements in their order, each with the counts and amounts of every part."""
    order: dict[str, None] = {}
    sums: dict[tuple[str, str], list[int]] = {}
    for line in (line for part in parts for line in part):
        order.setdefault(str(line["statement"]))
        own = sums.setdefault((str(line["statement"]), str(line["currency"])), [0, 0])
        own[0] += int(line["count"])
        own[1] += int(line["amount"])
    return tuple(
        {"statement": statement, "currency": currency, "count": count, "amount": amount}
        for statement in _in_order(order)
        for (named, currency), (count, amount) in sorted(sums.items())
        if named == statement
    )


def _in_order(named: Iterable[str]) -> list[str]:
    """What is proven comes first, then what is not; other statements stay behind, as they came."""
    known = [statement for statement in STATEMENTS if statement in {*(named := [*named])}]
    return [*known, *(statement for statement in named if statement not in STATEMENTS)]


def _counted(parts: Iterable[Mapping[Any, int]]) -> dict[Any, int]:
    sums: Counter[Any] = Counter()
    for part in parts:
        sums.update(part)
    return dict(sums)
