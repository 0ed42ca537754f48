"""Cuts a large run into buckets of orders that are compared one by one, and compares one of them.

A bucket is all rows of a range of order numbers, and its result is final. What several orders share
is compared last, with the results of all buckets: orders that are bound to rows elsewhere (see
sql/buckets.sql), rows without an order, and the settlement lines of all buckets, summed up. A small
run has no bucket before that. The number of buckets changes no result.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.exchange_rates import AppliedRate
from recon.matching.engine import Broken, classify, prepared
from recon.matching.frames.coding import equals
from recon.matching.frames.sources import Basis, Previous, Sources
from recon.matching.frames.total_rows import AccountKey
from recon.matching.sides.ledger_side import are_compared, unrated_entries
from recon.matching.sides.settlement_side import of_payments, summed_lines, with_summed
from recon.model.errors import StoreError
from recon.model.terms import InstructionKind
from recon.proof.exact_sums import Sums, sums_of_amounts
from recon.proof.items import items_table, sides_of
from recon.proof.ledger_bridge import Steps, steps_of
from recon.proof.night_tables import FRAMES
from recon.proof.sql_session import SqlError, reading
from recon.proof.verdict import Line, unmapped_codes

ORDERS_PER_BUCKET = 100_000
"""Each takes some 2.3 kB while it is classified. The number changes no result."""
ROWS_PER_ORDER = 4
"""Rows of all sources for one order of a usual run."""
BUCKETS_MIN = 3
"""With fewer all rows are compared at once: buckets cost more than they save."""
ROWS = ("orders", "gateway", "ledger", "instructions", "settlement", "universe")
"""Sources of which a bucket has the rows of its order numbers."""
SECTIONS = ("matches", "pending", "unverified")
"""Frames of a result of which each bucket has its rows."""
NAMES: Mapping[str, tuple[str, ...]] = {
    "orders": ("order_no", "transaction_id"),
    "answers": ("order_no", "transaction_id", "reference_no"),
    "ledger": (
        *("order_no", "transaction_id", "reference_no", "entry_id"),
        *("reverses_entry_id", "entry_type"),
    ),
    "instructions": ("order_no", "transaction_id", "request_id", "instruction_id", "kind"),
    "settlement": (
        *("merchant_id", "account_id", "order_no", "transaction_id"),
        *("reference_no", "settled_on", "entry_type"),
    ),
    "universe": ("order_no",),
}
"""File -> the columns by which sql/buckets.sql cuts."""
NOT_CUT = (
    "DuckDB could not cut the rows into buckets: {}; nothing was compared, and what was read, "
    "answered and sent is kept: free memory and space for temporary files, then start again"
)
_SQL = Path(__file__).parent / "sql" / "buckets.sql"


@dataclass(frozen=True, slots=True)
class Range:
    """The order numbers from `first` on and before `after`."""

    number: int
    first: str
    """Blank in the first range."""
    after: str
    """Blank in the last range, which has no end."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How a run is cut, and what a bucket must know of all rows."""

    ranges: tuple[Range, ...]
    last_orders: pa.Array
    """Order numbers that are compared last."""
    first_days: Mapping[tuple[str, ...], str]
    """Merchant and account -> the first day that the settlement covers."""

    def split(self, rows: Sources) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
        """Return what a bucket compares of the rows of its range, and what is compared last."""
        own, last = dict[str, pd.DataFrame](), dict[str, pd.DataFrame]()
        for name in ROWS:
            frame: pd.DataFrame | None = getattr(rows, name)
            if frame is None:
                continue
            is_last = np.asarray(pc.is_in(pa.array(frame["order_no"]), value_set=self.last_orders))
            if name == "ledger":
                is_last = is_last | ~are_compared(frame)
            elif name == "settlement":
                is_last = is_last | ~of_payments(frame)
            elif name == "instructions":
                is_last = is_last | equals(frame["kind"], InstructionKind.PAYOUT)
            own[name] = frame[~is_last].reset_index(drop=True)
            last[name] = frame[is_last].reset_index(drop=True)
        return own, last


def cut_of(
    read: Callable[[str], Iterator[pa.Table]],
    *,
    small: Sources,
    previous: Previous | None,
    rows_per_bucket: int,
) -> Cut:
    """Cut a run.

    Args:
        read: yields NAMES of a file, at least one table of them.
        small: the sources; of ROWS only whether they were given.
        previous: what an earlier run left open.
        rows_per_bucket: of all sources together.

    Raises:
        StoreError: DuckDB cannot; a run of this size is never compared whole.
    """
    apart = [row.order_no for row in small.rejects]
    apart += [row.order_no for row in small.quarantined]
    if previous is not None:
        for frame in (previous.chargebacks, previous.vanished):
            apart += frame["order_no"].tolist()
    try:
        with reading() as sql:
            for name in NAMES:
                sql.register_tables(name, read(name))
            sql.register("apart", pa.table({"order_no": pa.array(apart, pa.string())}))
            script = _SQL.read_text(encoding="utf-8")
            sql.execute(script.replace("$rows_per_bucket", str(rows_per_bucket)))
            begins = [first for (first,) in sql.rows("FROM begins")]
            ranges = pairwise(["", *begins[1:], ""])
            return Cut(
                tuple(Range(number, *ends) for number, ends in enumerate(ranges, start=1)),
                sql.table("FROM bound")["order_no"].combine_chunks().cast(pa.large_string()),
                {
                    (merchant, account): day
                    for merchant, account, day in sql.rows("FROM first_days")
                },
            )
    except SqlError as error:
        raise StoreError(NOT_CUT.format(error.reason)) from error


def names_of(sources: Sources, name: str) -> Iterator[pa.Table]:
    """Yield NAMES of a file, of the rows of sources."""
    frame: pd.DataFrame | None = getattr(sources, FRAMES[name][0])
    nothing = pd.Series([], dtype="str")
    cells = {each: nothing if frame is None else frame[each] for each in NAMES[name]}
    yield pa.table({each: pa.array(cell) for each, cell in cells.items()})


@dataclass(frozen=True, slots=True)
class BucketFigures:
    """What one bucket adds to the result of its run, besides rows."""

    broken: Broken
    sides: pd.DataFrame
    """See Reconciliation.sides."""
    settled: pd.DataFrame | None
    """Its settlement lines, summed up (see summed_lines); None: no settlement was given."""
    unmapped: tuple[Line, ...]
    spent: Mapping[AccountKey, int]
    """See Outcomes.spent."""
    sums: Sums
    """Sums of absolute amounts."""
    rows: Mapping[str, int]
    """Source -> number of its rows."""
    answers: frozenset[str]
    """Kinds of gateway answers (see `KeyAnswer`)."""
    steps: Steps
    """See ledger_bridge.steps_of."""
    left: Mapping[str, pd.DataFrame]
    """Rows of its range that are compared last, by source."""
    unpriced: Mapping[str, int]
    """See Sources.unpriced."""
    unrated: Mapping[AppliedRate, int]
    """See ledger_side.unrated_entries."""


class BucketRows(NamedTuple):
    """The rows of the result of one bucket."""

    frames: dict[str, pd.DataFrame]
    """SECTIONS, in the order of a result."""
    items: pa.Table
    """Table `items` of the rows that no match describes."""


class ComparedBucket(NamedTuple):
    """The result of one bucket."""

    figures: BucketFigures
    read: Callable[[], BucketRows]
    """Returns its rows, once."""

    def without_rows(self) -> "ComparedBucket":
        """The same without the rows that are compared last, which are in memory once."""
        return self._replace(figures=replace(self.figures, left={}))


def compare_bucket(
    rows: Sources,
    cut: Cut,
    *,
    small: Sources,
    basis: Basis,
    strict: Collection[AccountKey] = (),
) -> tuple[BucketFigures, BucketRows]:
    """Compare the rows of one range.

    Args:
        rows: ROWS of all rows of the range.
        cut: how the run is cut.
        small: the sources; of ROWS only whether they were given.
        basis: the rules, the instant, and what an earlier run left open.
        strict: the budgets of rounding that are spent.
    """
    own, left = cut.split(rows)
    rules, previous = basis.rules, basis.previous
    given: dict[str, Any] = {name: own.get(name) for name in ROWS}
    given |= {name: getattr(small, name) for name in ("volumes", "settled", "orders_lack_since")}
    sources = prepared(Sources(**given, first_days=cut.first_days), rules=rules)
    if previous is not None:
        # Their orders are bound.
        previous = replace(previous, chargebacks=previous.chargebacks.iloc[:0])
        basis = replace(basis, previous=previous)
    classified = classify(sources, basis=basis, strict=lambda _: strict)
    joined, outcomes, ledger = classified.joined, classified.outcomes, sources.ledger
    figures = BucketFigures(
        broken=classified.broken,
        sides=sides_of(joined, outcomes=outcomes, ledger=ledger, cash=None),
        settled=None if sources.settlement is None else summed_lines(sources.settlement),
        unmapped=unmapped_codes(sources, rules=rules),
        spent=outcomes.spent,
        sums=sums_of_amounts(sources),
        rows={name: len(frame) for name, frame in own.items()},
        answers=frozenset(own["gateway"]["answer"].unique()),
        steps=steps_of(sources, rules=rules),
        left=left,
        unpriced=sources.unpriced,
        unrated=unrated_entries(ledger, rules=rules),
    )
    frames = {name: getattr(classified.frames, name) for name in SECTIONS}
    return figures, BucketRows(frames, items_table(classified, sources=sources))


def compared_last(small: Sources, *, figures: Sequence[BucketFigures]) -> Sources:
    """Return what is compared last: the rows that no bucket compared, and sums of their lines.

    Args:
        small: all sources; of ROWS only whether they were given.
        figures: of the buckets.
    """
    rows: dict[str, Any] = {
        name: pd.concat([each.left[name] for each in figures], ignore_index=True)
        for name in ROWS
        if getattr(small, name) is not None
    }
    if "settlement" in rows:
        every = (each.settled for each in figures)
        rows["settlement"] = with_summed(
            rows["settlement"], summed=[sums for sums in every if sums is not None]
        )
    return replace(
        small,
        **rows,
        rows_before=counted(each.rows for each in figures),
        answers_before=frozenset[str]().union(*(each.answers for each in figures)),
    )


def counted(pieces: Iterable[Mapping[Any, int]]) -> Counter[Any]:
    """Add up figures of several buckets."""
    sums: Counter[Any] = Counter()
    for piece in pieces:
        sums.update(piece)
    return sums
