"""The sets that agree in every leg, found by their keys alone and set aside before any judgement.

One order, one payment, one entry (and one settled line, where settlement is covered) under one key
that name the same positive amount, currency and day: such a set is MATCHED by the rule `exact`,
whatever the rest of the night holds. Nearly all sets of a night are like this, so what is left for
classification is small. Left is every set that is not exact in one of its legs, and every one that
another row may speak of: repeats, our own instructions, rejected rows, the breaks of the night
before, and all ids that a row without an order key names.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.exact.calm_sets import Calm, find_calm
from recon.matching.exact.elsewhere import Elsewhere
from recon.matching.exact.exact_search import ASKED, Question, belonging, find_exact, marked
from recon.matching.frames.arrays import Arrays, filled, stacked
from recon.matching.frames.coding import placed, sums_of
from recon.matching.frames.grouping import Bools, Ints, Rows, amounts_or
from recon.matching.frames.numbering import Keys, WholeKeys
from recon.matching.frames.same_words import taken
from recon.matching.frames.sources import KEY_COLUMNS, Previous, Sources
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY
from recon.matching.sets.joined_sets import keyed_quarantine
from recon.matching.sides.exchange import unrated_rows
from recon.matching.sides.ledger_side import JUDGED, marked_as
from recon.matching.sides.settlement_side import of_payments
from recon.model.words import InstructionKind, SetState

_IDS = (
    *("order_no", "transaction_id", "reference_no", "entry_id"),
    *("request_id", "instruction_id", "batch_id"),
)


@dataclass(frozen=True, slots=True)
class Exact:
    """The sets that were set aside, and what is left."""

    rows: Mapping[str, Rows]
    """For each leg, the source row of each set."""
    amount: Ints
    """What each set moves in every leg, minor units."""
    left: Mapping[str, Rows]
    """For each leg, the source rows that are left for classification."""
    keys: WholeKeys
    sources: Sources
    """What is left for classification."""
    left_keys: Keys
    """The numbers of what is left; they are drawn once, for the whole."""

    calm: Calm | None = None
    """What else was judged by itself; it is neither among `rows` nor among what is left."""

    @property
    def size(self) -> int:
        """How many sets were set aside."""
        return len(self.amount)

    def item_rows(self) -> dict[str, Rows]:
        """For each leg, the whole source's row of each row that the engine counts items by."""
        rows = dict(self.left)
        if self.sources.settlement is not None:
            rows["settlement"] = rows["settlement"][of_payments(self.sources.settlement)]
        return rows

    def rows_aside(self, leg: str) -> Rows:
        """The whole source's rows that are not left for classification."""
        exact = self.rows.get(leg, np.zeros(0, dtype=np.intp))
        return exact if self.calm is None else np.append(exact, self.calm.rows(leg))


def set_aside(
    sources: Sources,
    *,
    rules: Rules,
    previous: Previous | None,
    as_of: datetime,
    elsewhere: Elsewhere | None = None,
) -> Exact:
    """Find the exact sets and the calm ones, and what is left of the sources without them.

    Args:
        sources: all rows, or all of some order numbers.
        rules: how they are judged.
        previous: what the night before left open.
        as_of: when they are judged.
        elsewhere: what is known of all rows, where these are not all; None: they are.
    """
    whole = marked(sources, elsewhere=elsewhere)
    words = (
        frozenset(loose_words(whole, belongs=belonging(whole)))
        if elsewhere is None
        else elsewhere.words
    )
    others = others_of(sources, previous=previous)
    if elsewhere is not None and sources.ledger is not None:
        # How many there are is said of all at once.
        others["unrated"] = unrated_rows(sources.ledger, rules=rules)
    question = Question(whole, others, words, rules, as_of, elsewhere)
    exact = find_exact(question)
    rows, keys = exact.rows, exact.keys
    orders = sources.orders
    ordered = amounts_or(orders["expected_captured_amount"], otherwise=orders["amount"])
    calm = find_calm(
        question,
        sources=sources,
        exact=rows,
        keys=keys,
        as_of=as_of,
        previous=previous,
    )
    taken = {
        name: numbers if calm is None else np.append(numbers, calm.rows(name))
        for name, numbers in rows.items()
    }
    left = {name: _others(aside, size=len(getattr(sources, name))) for name, aside in taken.items()}
    rest, left_keys = _left_of(sources, rows=taken, left=left, keys=keys)
    return Exact(rows, ordered[rows["orders"]], left, keys, rest, left_keys, calm)


def without_left(exact: Exact, *, sources: Sources) -> tuple[Sources, Exact]:
    """What was set aside as a night of its own: its rows alone, and nothing that is left.

    `sources` are those that it was set aside from.
    """
    rows = {name: np.sort(exact.rows_aside(name)) for name in exact.rows}
    frames: dict[str, Any] = {
        name: taken(getattr(sources, name), rows=numbers) for name, numbers in rows.items()
    }
    nothing = np.zeros(0, dtype=np.intp)
    numbers = {**dict.fromkeys(exact.keys.of, nothing), **rows}
    keys = exact.keys
    if sources.universe is not None:
        done = np.zeros(keys.size + 1, dtype=np.bool_)
        done[keys.of["orders"][rows["orders"]]] = True
        numbers[ASKED] = np.flatnonzero(done[keys.of[ASKED]])
        frames[ASKED] = taken(sources.universe, rows=numbers[ASKED])
    whole = replace(_none_of(sources, but=frames), **frames)
    own = replace(
        nothing_left(exact),
        rows={name: np.searchsorted(rows[name], own) for name, own in exact.rows.items()},
        keys=replace(
            keys,
            of={name: of[numbers[name]] for name, of in keys.of.items()},
            account_of={name: of[numbers[name]] for name, of in keys.account_of.items()},
        ),
        calm=None if exact.calm is None else exact.calm.of_rows(rows),
    )
    return whole, own


def nothing_left(exact: Exact) -> Exact:
    """The same as if it had been set aside from nothing but its own rows."""
    nothing = np.zeros(0, dtype=np.intp)
    return replace(
        exact,
        left=dict.fromkeys(exact.rows, nothing),
        sources=_none_of(exact.sources),
        left_keys=exact.keys.take(dict.fromkeys(exact.keys.of, nothing)),
    )


def _none_of(sources: Sources, *, but: Collection[str] = ()) -> Sources:
    """The sources without a row of those that were given, and without what speaks of others."""
    names = ("orders", "gateway", "ledger", "settlement", "instructions", ASKED)
    given = {name: getattr(sources, name) for name in names if name not in but}
    empty: dict[str, Any] = {
        name: frame.iloc[:0] for name, frame in given.items() if frame is not None
    }
    return replace(sources, **empty, rejects=(), quarantined=())


def others_of(sources: Sources, *, previous: Previous | None) -> dict[str, pd.DataFrame]:
    """The frames beside the legs (KEY_COLUMNS); but for ASKED their keys need a judgement."""
    rejected = [(r.merchant_id, r.account_id, r.order_no) for r in sources.rejects]
    frames = {"rejects": pd.DataFrame(rejected, columns=[*KEY_COLUMNS], dtype="str")}
    if sources.quarantined:
        frames["quarantined"] = keyed_quarantine(sources.quarantined)
    if sources.instructions is not None:
        frames["instructions"] = sources.instructions
    if previous is not None:
        frames |= {"breaks": previous.breaks, "chargebacks": previous.chargebacks}
        frames["vanished"] = previous.vanished
    if sources.universe is not None:
        frames[ASKED] = sources.universe
    return frames


def _others(rows: Rows, *, size: int) -> Rows:
    """The rows of a source that are not among these."""
    outside = np.ones(size, dtype=np.bool_)
    outside[rows] = False
    return np.flatnonzero(outside)


def _left_of(
    sources: Sources, *, rows: Mapping[str, Rows], left: Mapping[str, Rows], keys: WholeKeys
) -> tuple[Sources, Keys]:
    """The sources without the rows of the exact sets, and without their keys in the universe."""
    if not len(rows["orders"]):
        return sources, keys.take({})
    frames: dict[str, Any] = {
        name: taken(getattr(sources, name), rows=numbers) for name, numbers in left.items()
    }
    if sources.universe is not None:
        done = np.zeros(keys.size + 1, dtype=np.bool_)
        done[keys.of["orders"][rows["orders"]]] = True
        left = {**left, ASKED: np.flatnonzero(~done[keys.of[ASKED]])}
        frames[ASKED] = taken(sources.universe, rows=left[ASKED])
    return replace(sources, **frames), keys.take(left)


def loose_words(sources: Sources, *, belongs: Mapping[str, Bools]) -> set[str]:
    """Every id of every row that is no row of an order.

    Args:
        sources: the whole sources.
        belongs: for each leg, the rows that make up sets.
    """
    return {word for rows in _loose_rows(sources, belongs=belongs) for word in _words(rows)} - {""}


def _loose_rows(sources: Sources, *, belongs: Mapping[str, Bools]) -> Iterator[pd.DataFrame]:
    for name, inside in belongs.items():
        frame: pd.DataFrame = getattr(sources, name)
        loose = inside & frame["order_no"].eq("").to_numpy()
        if name == "settlement":
            loose |= ~inside
        if name == "ledger":
            loose |= marked_as(frame, JUDGED)
        if loose.any():
            yield frame[loose]
    if sources.instructions is not None:
        moves = sources.instructions
        yield moves[moves["order_no"].eq("") | moves["kind"].eq(InstructionKind.PAYOUT)]


def _words(rows: pd.DataFrame) -> Iterator[str]:
    for name in _IDS:
        if name in rows.columns:
            yield from rows[name].unique()
    if "batch_id" in rows.columns:
        yield from (rows["batch_id"] + "/" + rows["currency"]).unique()


def tallies_aside(exact: Exact, *, tallies: Arrays) -> Arrays:
    """Where all items went that are not left: the exact ones (`tallies`) and the calm ones."""
    if exact.calm is None:
        return tallies
    return stacked([tallies, exact.calm.places], names=(*tallies.columns,))


def exact_tallies(exact: Exact, *, sources: Sources) -> Arrays:
    """Places of the exact items, many in one row (grain: source, account and currency).

    Columns as places.place_items has them: items says how many, amount and net are sums, row is
    negative.
    """
    groups, every = placed(sources.orders, by=ACCOUNT_CURRENCY)
    mine = groups[exact.rows["orders"]]
    counts = np.bincount(mine, minlength=len(every))
    net = sums_of(exact.amount, groups=mine, size=len(every))
    there = np.flatnonzero(counts)
    size = len(there)
    named = np.array([every[number] for number in there.tolist()], dtype=object).reshape(-1, 3)
    keys = Arrays(
        {
            **dict(zip(ACCOUNT_CURRENCY, named.T, strict=True)),
            "items": counts[there],
            "amount": net[there],
            "net": net[there],
            "state": filled(SetState.MATCHED.value, size=size),
            "break_id": filled("", size=size),
            "row": np.zeros(size, dtype=np.intp),
        },
        size=size,
    )
    parts = [keys.assign(source=filled(leg, size=size)) for leg in exact.rows]
    tallies = stacked(parts, names=(*keys.columns, "source"))
    return tallies.assign(row=-1 - np.arange(len(tallies)))
