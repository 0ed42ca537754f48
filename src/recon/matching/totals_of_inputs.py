"""T0 to T3 and T8: what was read, taken, asked and instructed."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from recon.matching.coding import NO_KEY
from recon.matching.exact import Exact
from recon.matching.grouping import Bools, Rows
from recon.matching.joined_sets import Joined
from recon.matching.ledger_side import JUDGED, compared
from recon.matching.orders_side import Side
from recon.matching.sets import BY_ORDER
from recon.matching.sources import KEY_COLUMNS, Sources
from recon.matching.total_rows import ACCOUNT, ITEMS, compared_rows, compared_sums, counted
from recon.matching.versions import CONFLICT, NEW, REPEAT, SUPERSEDED
from recon.model import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    WAITING_STATES,
    Answer,
    ControlTotal,
    InstructionKind,
    InstructionState,
    SetState,
)

Words = npt.NDArray[np.object_]


def file_totals(sources: Sources) -> Iterator[ControlTotal]:
    """T0 per source and T1 per file: every row read is accepted, rejected or skipped by a rule."""
    for kind in sorted({file.kind for file in sources.files}):
        files = [file for file in sources.files if file.kind == kind]
        rejected = sum(reject.kind == kind for reject in sources.rejects)
        accounted = sum(file.rows_accepted + file.rows_skipped for file in files) + rejected
        read = sum(file.rows_read for file in files)
        name = f"{kind}: file = accounts + unassigned"
        yield ControlTotal("T0", name, "", "", "", "count", read, accounted)
    for file in sorted(sources.files, key=lambda file: (file.kind, file.name)):
        parts = file.rows_accepted + file.rows_rejected + file.rows_skipped
        name = f"{file.kind} {file.name}: read = accepted + rejected + skipped"
        yield ControlTotal("T1", name, "", "", "", "count", file.rows_read, parts)


def load_totals(
    sources: Sources, *, exact: Exact, tallies: pd.DataFrame, joined: Joined
) -> Iterator[ControlTotal]:
    """T2: accepted = new + repeat + superseding, as stored and as the engine took them.

    Args:
        sources: the whole sources.
        exact: what was set aside of them, and what was left.
        tallies: what was set aside, counted.
        joined: what was left, in sets.
    """
    name = "accepted = new + repeat + superseding"
    for source, counts in sorted(sources.merged_rows.items()):
        taken = counts.new + counts.repeat + counts.superseding
        title = f"{source} stored: {name}"
        yield ControlTotal("T2", title, "", "", "", "count", counts.accepted, taken)
    yield from _arrived_totals(sources)
    sides = {"orders": joined.orders, "gateway": joined.gateway, "ledger": joined.ledger}
    for source in exact.rows:
        if source not in sides:
            continue
        whole, left = (getattr(given, source) for given in (sources, exact.sources))
        side = sides[source]
        older = np.flatnonzero(np.isin(side.versions, (REPEAT, SUPERSEDED)))
        rows = [side.items["row"].to_numpy(), older, _outside(source, frame=left, side=side)]
        taken = left[ACCOUNT].iloc[np.concatenate(rows)].assign(**{ITEMS: 1})
        aside = tallies[tallies["source"].eq(source)]
        right = pd.concat([taken, aside[[*ACCOUNT, ITEMS]]])
        yield from counted("T2", f"{source} taken: {name}", left=whole, right=right)


def _arrived_totals(sources: Sources) -> Iterator[ControlTotal]:
    """T2 from the files on: rows accepted and each step after them come to what is compared."""
    for kind, steps in sources.arrived.items():
        accepted = sum(file.rows_accepted for file in sources.files if file.kind == kind)
        frame = getattr(sources, kind.value)
        name = f"{kind}: rows accepted, step by step = rows compared"
        left = accepted + sum(steps.values())
        yield ControlTotal("T2", name, "", "", "", "count", left, len(frame))


def _outside(source: str, *, frame: pd.DataFrame, side: Side) -> Rows:
    """Rows that are no items of a set: answers without a payment, entries not compared."""
    outside = np.zeros(len(frame), dtype=np.bool_)
    if source == "gateway":
        outside = frame["answer"].ne(Answer.FOUND).to_numpy()
    if source == "ledger":
        outside = ~compared(frame) & (side.versions == NEW)
    return np.flatnonzero(outside)


def query_totals(
    sources: Sources, *, exact: Exact, tallies: pd.DataFrame, joined: Joined
) -> Iterator[ControlTotal]:
    """T3: each key asked has exactly one final answer: found, not found or failed.

    The arguments are those of `load_totals`. Keys are told apart over the whole sources on one
    side, and on the other as many as were set aside and as sets were made of what was left.
    """
    keys = [*KEY_COLUMNS]
    if sources.universe is not None:
        asked = sources.universe[keys].drop_duplicates()
        answered = asked.merge(sources.gateway[keys].drop_duplicates(), on=keys)
        name = "keys asked = found + not found + failed"
        yield from counted("T3", name, left=asked, right=answered)
        return
    numbers = np.unique(np.concatenate([joined.keys.of[name] for name in _KEYED]))
    held = joined.sets.iloc[numbers[numbers >= 0]]
    held = held[held["kind"].eq(BY_ORDER)][ACCOUNT].assign(**{ITEMS: 1})
    aside = tallies[tallies["source"].eq("orders")][[*ACCOUNT, ITEMS]]
    name = "keys = found + not found + failed"
    left = _every_key(sources, exact=exact, joined=joined)
    yield from counted("T3", name, left=left, right=pd.concat([held, aside]))


_KEYED = ("orders", "gateway", "ledger", "instructions", "settlement")


def _every_key(sources: Sources, *, exact: Exact, joined: Joined) -> pd.DataFrame:
    """How many keys the whole sources name (grain: account)."""
    keys = exact.keys
    named = np.zeros(keys.size, dtype=np.bool_)
    for source in _KEYED:
        if source not in keys.of:
            continue
        numbers = keys.of[source]
        mine = numbers != NO_KEY
        if source == "ledger":
            mine &= _in_sets(sources, exact=exact, joined=joined)
        if source == "instructions" and sources.instructions is not None:
            mine &= sources.instructions["kind"].ne(InstructionKind.PAYOUT).to_numpy()
        named[numbers[mine]] = True
    accounts = pd.DataFrame(keys.accounts, columns=ACCOUNT, dtype="str")
    size = len(keys.accounts)
    accounts[ITEMS] = np.bincount(keys.account[named], minlength=size)
    return accounts[accounts[ITEMS].gt(0)]


def _in_sets(sources: Sources, *, exact: Exact, joined: Joined) -> Bools:
    """Ledger entries of the whole source that belong to a set of an order."""
    if sources.ledger is None:
        return np.zeros(0, dtype=np.bool_)
    ours = compared(sources.ledger)
    ours[exact.left["ledger"][joined.ledger.versions == CONFLICT]] = True
    if JUDGED in sources.ledger:
        ours &= ~sources.ledger[JUDGED].to_numpy(dtype=np.bool_)
    return ours


def instruction_totals(
    instructions: pd.DataFrame | None, *, sets: Rows, states: Words
) -> Iterator[ControlTotal]:
    """T8: instructed = confirmed + rejected + in doubt + waiting + withdrawn; confirmed = effects.

    Args:
        instructions: the journal.
        sets: the set of each of them.
        states: what each set came to.
    """
    if instructions is None:
        return
    known = CONFIRMED_STATES | REJECTED_STATES | DOUBTFUL_STATES | WAITING_STATES
    told = instructions[instructions["state"].isin({*known, InstructionState.WITHDRAWN})]
    name = "instructed = confirmed + rejected + in doubt + waiting + withdrawn"
    yield from compared_rows("T8", name, left=instructions, right=told)
    yield from compared_sums("T8", name, left=instructions, right=told)
    moves = instructions["kind"].ne(InstructionKind.REVIEW) & instructions["amount"].gt(0)
    confirmed = (instructions["state"].isin(CONFIRMED_STATES) & moves).to_numpy()
    judged = np.isin(np.append(states, "")[sets], [state.value for state in SetState])
    name = "confirmed = those whose effect was looked for"
    sure, seen = instructions[confirmed], instructions[confirmed & judged]
    yield from compared_rows("T8", name, left=sure, right=seen)
    yield from compared_sums("T8", name, left=sure, right=seen)
