"""A night that is compared in parts: what each must know of the others, and all of them as one.

A part is all rows of some order numbers. What of it is aside comes to the same whatever else the
night holds, so it is judged as a night of its own, and its result added to that of all rows that
are left: totals, sides and statements add up; breaks, effects, movements and journals are of what
is left alone; matches, pending and unverified sets lie in the files of the parts, and are one with
those of what is left where the digest and the files of the night are made.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.archive.merged_rows import FileRows, MergedRows, SortedRows, TableRows, merge_order
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Rows, Sealed
from recon.archive.storage import Storage
from recon.config.rules import Rules
from recon.matching.breaks.result import MATCH_COLUMNS, Deferred, Reconciliation
from recon.matching.breaks.result_frames import OPEN_SORTED_BY
from recon.matching.breaks.sum_bounds import Sums, refuse_beyond_sums, sums_of_amounts
from recon.matching.calm.calm_sets import CalmAndLeft, set_aside, without_left
from recon.matching.calm.elsewhere import Elsewhere, SeenIds, rows_with
from recon.matching.calm.spoken_sets import belonging, loose_words, marked
from recon.matching.cash.book_groups import BASES
from recon.matching.causes.aside_evidence import AsideEvidence, added_evidence
from recon.matching.causes.cause_evidence import CauseEvidence
from recon.matching.causes.shared_causes import evidence_of
from recon.matching.frames.arrays import frame_of_cells
from recon.matching.frames.coding import is_word, placed
from recon.matching.frames.digest import Columns, digest_of
from recon.matching.frames.grouping import Bools
from recon.matching.frames.same_words import taken
from recon.matching.frames.sources import Previous, Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.sides.agreed_fees import with_fees_priced
from recon.matching.sides.closing_entries import CLOSERS
from recon.matching.sides.ledger_side import JUDGED, is_base_type
from recon.matching.sides.payouts import PAYOUT_TYPES, judged_entries
from recon.matching.sides.settled_refunds import refunds_of_others, with_refunds_settled
from recon.matching.sides.settlement_side import first_days_told, of_payments
from recon.matching.sides.summed_lines import summed_lines, with_summed
from recon.model.words import ControlTotal, SetState
from recon.proof.books_bridge import Books, of_money, restated, steps_of
from recon.proof.engine import classified, concluded, prove
from recon.proof.night_tables import (
    ID,
    ITEMS,
    MATCHES,
    NAMED_BY,
    frame_of_table,
    table_of,
    with_first_ids,
)
from recon.proof.totals_of_inputs import arrived_aside
from recon.proof.totals_of_items import IN_SCOPE, SOURCES
from recon.proof.verdict import STATEMENTS, Line, OpenCounts, verdict_of

_FRAMES = ("orders", "gateway", "ledger", "settlement")


class Gathering:
    """What was seen so far, stretch by stretch of the order numbers."""

    def __init__(self, small: Sources, *, rules: Rules) -> None:
        """Begin with what is not cut into stretches.

        Args:
            small: all sources; of orders, gateway and ledger no row is looked at.
            rules: how they are judged.
        """
        self._small = small
        self._rules = rules
        self._entries, self._transactions = SeenIds(), SeenIds()
        self._odd: dict[str, list[pd.DataFrame]] = {name: [] for name in _FRAMES}
        self._again: list[pd.DataFrame] = []
        self._restated: Counter[str] = Counter()
        self._first_days: dict[tuple[str, ...], str] = {}
        self._refunds: list[pd.DataFrame] = []
        self._settled: list[pd.DataFrame] = []

    def see(self, rows: Sources) -> None:
        """Look at the next stretch (orders, gateway, ledger, settlement)."""
        for name in _FRAMES:
            frame: pd.DataFrame | None = getattr(rows, name)
            if frame is None:
                continue
            odd = self._is_odd(frame, name=name)
            if odd.any():
                self._odd[name].append(frame[odd])
            if name == "ledger":
                self._entries.see(frame["entry_id"])
                self._restated.update(restated(frame[~odd]))
        self._transactions.see(rows.gateway["transaction_id"])
        if rows.settlement is not None:
            self._see_lines(rows.settlement, gateway=rows.gateway)

    def _is_odd(self, frame: pd.DataFrame, *, name: str) -> Bools:
        """The rows that are kept."""
        odd = _stands_for_others(frame, name=name)
        if name == "ledger" and self._small.settlement is not None:
            # Groups have them, whatever order they name.
            odd |= is_base_type(frame["entry_type"], *BASES.values(), *CLOSERS)
        return odd

    def _see_lines(self, lines: pd.DataFrame, *, gateway: pd.DataFrame) -> None:
        self._settled.append(summed_lines(lines[~_stands_for_others(lines, name="settlement")]))
        rows, accounts = placed(lines, by=ACCOUNT)
        for number, day in first_days_told(lines, accounts=rows).items():
            account = accounts[number]
            self._first_days[account] = min(day, self._first_days.get(account, day))
        strange = refunds_of_others(lines, gateway=gateway)
        if strange.any():
            self._refunds.append(lines[strange])

    def to_see_again(self) -> list[int]:
        """The stretches, counted from 0 as they were seen, with entries that share a number."""
        several = self._entries.shared()
        return self._entries.stretches_with(several) if len(several) else []

    def see_again(self, rows: Sources) -> None:
        """Look once more at one of these."""
        if rows.ledger is not None:
            several = rows_with(rows.ledger["entry_id"], self._entries.shared())
            several = several & ~self._is_odd(rows.ledger, name="ledger")
            self._again.append(rows.ledger[several])

    def elsewhere(self) -> Elsewhere:
        """What each part must know of all rows."""
        shared = Elsewhere(
            frozenset(),
            self._entries.shared(),
            self._transactions.shared(),
            self._first_days,
            pd.concat(self._refunds, ignore_index=True) if self._refunds else None,
        )
        odd = self._odd_rows()
        if odd.ledger is not None:
            ours = odd.ledger.assign(**{JUDGED: judged_entries(odd)})
            odd = replace(odd, ledger=ours)
        known = marked(odd, elsewhere=shared)
        return replace(shared, words=loose_words(known, belongs=belonging(known)))

    def books(self) -> Books:
        """All steps of the ledger's money (see books_bridge.books_of); empty without a ledger."""
        if self._small.ledger is None:
            return {}
        odd = self._odd_rows()
        entries = self._small.ledger if odd.ledger is None else odd.ledger
        lines = odd.settlement
        several = replace(
            odd,
            ledger=pd.concat([entries, *self._again], ignore_index=True),
            settlement=None if lines is None else with_summed(lines, parts=self._settled),
        )
        # What is restated of those that are seen again was counted when they were seen first.
        twice = Counter(restated(pd.concat([entries.iloc[:0], *self._again], ignore_index=True)))
        more = {name: self._restated[name] - twice[name] for name in {*self._restated, *twice}}
        return of_money(self._small, steps=steps_of(several, rules=self._rules), more=more)

    def _odd_rows(self) -> Sources:
        frames: dict[str, Any] = {
            name: pd.concat([whole.iloc[:0], *self._odd[name]], ignore_index=True)
            for name in _FRAMES
            if (whole := getattr(self._small, name)) is not None
        }
        return replace(self._small, **frames)


def _stands_for_others(frame: pd.DataFrame, *, name: str) -> Bools:
    """The rows that belong to no order number of their own."""
    keyless: Bools = frame["order_no"].eq("").to_numpy(dtype=np.bool_)
    if name == "ledger":
        return keyless | is_word(frame["entry_type"], *PAYOUT_TYPES)
    return keyless | ~of_payments(frame) if name == "settlement" else keyless


SECTIONS = ("matches", "pending", "unverified")
"""Frames of a result that parts have rows of; no break is aside."""
FRAMES = ("orders", "gateway", "ledger", "settlement", "universe")
"""Sources of which a part has the rows of its order numbers."""


@dataclass(frozen=True, slots=True)
class PartFigures:
    """What one part adds to the result of its night."""

    totals: tuple[ControlTotal, ...]
    sides: pd.DataFrame
    """See Reconciliation.sides."""
    scope: tuple[Line, ...]
    """See Reconciliation.scope_of_assurance."""
    evidence: AsideEvidence
    sums: Sums
    """What the amounts of the rows aside come to, without signs."""
    rows: Mapping[str, int]
    """How many rows each of SECTIONS and the items have."""
    aside: Mapping[str, int]
    """Source -> its rows that are aside."""
    reasons: Mapping[str, int]
    """Why sets are unverified -> how many are."""
    settled: pd.DataFrame | None
    """The settlement lines aside, summed up (see summed_lines); None: nobody gave any."""
    unpriced: Mapping[str, int]
    """See ListedFees.not_covered."""


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """One part, judged."""

    figures: PartFigures
    frames: Mapping[str, pd.DataFrame]
    """SECTIONS of what is aside, in the order of a result."""
    items: pa.Table
    """Where the rows aside went that no match names, as the file `items` has them."""
    left: Sources
    """FRAMES of what is left."""


def judged_part(
    rows: Sources,
    *,
    elsewhere: Elsewhere,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> JudgedPart:
    """Judge what of a part is aside.

    Args:
        rows: FRAMES of all rows of some order numbers, and what the whole night has of
            instructions, rejects, quarantined, volumes, settled and orders_lack_since.
        elsewhere: what is known of all rows.
        rules: how they are judged.
        as_of: when.
        previous: what the night before left open, of all keys.
    """
    given = _prepared(rows, elsewhere=elsewhere, rules=rules)
    parted = set_aside(given, rules=rules, previous=previous, as_of=as_of, elsewhere=elsewhere)
    sources, aside = without_left(parted, sources=given)
    proof = classified(sources, aside=aside, rules=rules, as_of=as_of, previous=None)
    evidence = evidence_of(
        CauseEvidence(proof.joined, aside.sources, rules, aside, sources, proof.hosts)
    )
    result = concluded(proof, as_of=as_of)
    frames = {name: getattr(result, name) for name in SECTIONS}
    items = result.items
    figures = PartFigures(
        totals=result.control_totals,
        sides=result.sides,
        scope=result.scope_of_assurance,
        evidence=evidence,
        sums=sums_of_amounts(sources),
        rows={**{name: len(frame) for name, frame in frames.items()}, ITEMS: len(items)},
        aside={leg: len(getattr(sources, leg)) for leg in parted.left},
        reasons=Counter(result.unverified["reason"].tolist()),
        settled=None if sources.settlement is None else summed_lines(sources.settlement),
        unpriced=proof.fees.not_covered,
    )
    return JudgedPart(figures, frames, items, _left(rows, aside=parted))


def _left(rows: Sources, *, aside: CalmAndLeft) -> Sources:
    """What is left as it was given: what is added to it is of all that is left, together."""
    left = aside.sources
    frames: dict[str, Any] = {
        name: taken(getattr(rows, name), rows=numbers) for name, numbers in aside.left.items()
    }
    return replace(rows, **frames, universe=left.universe)


def _prepared(rows: Sources, *, elsewhere: Elsewhere, rules: Rules) -> Sources:
    """The rows as they are compared: what refunds settled, and what fees differ by.

    What engine.prepared does beside it is said of rows that are never aside.
    """
    settled = with_refunds_settled(rows, rules=rules, others=elsewhere.refunds)
    return replace(with_fees_priced(settled, rules=rules), is_part=True)


MERGED = (*SECTIONS, ITEMS)
"""Tables that each part has rows of."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The rows of all parts by table, each as its file has them."""

    parts: Mapping[str, Sequence[SortedRows]]

    @classmethod
    def of(cls, steps: Sequence[Sealed], *, storage: Storage) -> "Merged":
        """The rows of parts that each wrote a step with these tables."""
        return cls({name: [FileRows(storage, step, name) for step in steps] for name in MERGED})

    def rows(self, name: str) -> int:
        """How many rows of a table the parts have."""
        return sum(part.num_rows for part in self.parts.get(name, ()))

    def columns(self, name: str, *, rest: pd.DataFrame) -> Columns:
        """The frame of parts and rest, for who looks at one column after the other.

        Args:
            name: matches, pending or unverified.
            rest: the rest's frame, sorted by OPEN_SORTED_BY.

        Raises:
            Defect: a part has other rows than it says, or in another order.
        """
        parts = [_WithIds(part) if name == MATCHES else part for part in self.parts.get(name, ())]
        table = table_of(rest, name=name)
        which = merge_order(parts, rest=table, by=OPEN_SORTED_BY)
        origins = [TableRows(table), *parts]
        merged = MergedRows(origins, which=which, schema=SCHEMAS[name].columns)
        return MergedColumns(merged, names=tuple(rest.columns))

    def file(self, name: str, *, rest: pa.Table) -> Rows:
        """The file of parts and rest, the rest as `night_tables.result_tables` has it.

        Raises:
            Defect: a part has other rows than it says, or in another order.
        """
        schema = SCHEMAS[name]
        merged = MergedRows.of(self.parts.get(name, ()), rest=rest, schema=schema)
        return Rows.in_order(merged, schema=schema)


class MergedColumns:
    """The columns of a frame; each is made when it is asked for, and not kept."""

    def __init__(self, rows: MergedRows, *, names: tuple[str, ...]) -> None:
        """Columns of these names, in their order."""
        self.columns = names
        self._rows = rows

    def __len__(self) -> int:
        """How many rows."""
        return self._rows.num_rows

    def __getitem__(self, name: str) -> "pd.Series[Any]":
        """One column."""
        field = self._rows.schema.field(name)
        if not pa.types.is_string(field.type):
            return frame_of_table(pa.table([self._rows.in_order(name)], pa.schema([field])))[name]
        # Texts of a frame have longer offsets: some at a time, or the column stood there twice.
        some = (frame_of_table(table)[name] for table in self._rows.some(name))
        column: pd.Series[Any] = pd.concat(some, ignore_index=True)
        return column


@dataclass(frozen=True, slots=True)
class _WithIds:
    """Matches with the ids that their file leaves out."""

    part: SortedRows

    @property
    def num_rows(self) -> int:
        return self.part.num_rows

    def batches(self, columns: Sequence[str], *, rows_max: int) -> Iterator[pa.Table]:
        if ID not in columns:
            yield from self.part.batches(columns, rows_max=rows_max)
            return
        for batch in self.part.batches([*{*columns, *NAMED_BY}], rows_max=rows_max):
            yield with_first_ids(batch).select([*columns])


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
    rows, of_sources = (
        _counted(getattr(part, name) for part in parts) for name in ("rows", "aside")
    )
    refuse_beyond_sums(rest, parts=_counted(part.sums for part in parts))
    evidence = added_evidence(part.evidence for part in parts)
    proof = prove(rest, rules=rules, as_of=as_of, previous=previous, parts=evidence)
    fees = proof.fees.with_more(_counted(part.unpriced for part in parts))
    result = concluded(replace(proof, fees=fees), as_of=as_of)
    totals = added_totals(
        result.control_totals,
        parts=[part.totals for part in parts],
        arrived=[*arrived_aside(rest, rows=of_sources)],
    )
    sides = _added_sides([result.sides, *(part.sides for part in parts)])
    judged = OpenCounts(
        len(result.breaks),
        len(result.unverified) + rows.get("unverified", 0),
        int(sides[sides["state"].eq(SetState.UNVERIFIED.value)]["count"].sum()),
        has_parts=bool(of_sources.get("orders")),
    )
    lacks = result.bank_lacks
    matched = result.matches
    columns = Deferred(lambda: merged.columns("matches", rest=matched))
    matches = Deferred(lambda: pd.DataFrame({name: columns.get()[name] for name in MATCH_COLUMNS}))
    frames = {name: getattr(result, name) for name in SECTIONS[1:]}

    def digest() -> str:
        open_sets = (merged.columns(name, rest=frame) for name, frame in frames.items())
        return digest_of([result.breaks, result.effects, columns.get(), *open_sets])

    return replace(
        result,
        verdict=verdict_of(totals, judged=judged, sources=rest, rules=rules, lacks=lacks),
        control_totals=totals,
        sides=sides,
        scope_of_assurance=_added_scope(
            [result.scope_of_assurance, *(part.scope for part in parts)]
        ),
        digest_of_all=Deferred(digest),
        every_match=matches,
        match_columns=columns,
        aside={name: rows.get(name, 0) for name in SECTIONS},
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
