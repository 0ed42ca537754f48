"""T0 to T3 and T8: what was read, taken, asked and instructed."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from recon.matching.grouping import Rows
from recon.matching.joined_sets import Joined
from recon.matching.ledger_side import JUDGED, compared
from recon.matching.orders_side import Side
from recon.matching.sets import BY_ORDER
from recon.matching.settlement_side import movements
from recon.matching.sources import KEY_COLUMNS, Sources
from recon.matching.total_rows import compared_rows, compared_sums, counted
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


def load_totals(sources: Sources, *, joined: Joined) -> Iterator[ControlTotal]:
    """T2: accepted = new + repeat + superseding, as stored and as the engine took them."""
    name = "accepted = new + repeat + superseding"
    for source, counts in sorted(sources.merged_rows.items()):
        taken = counts.new + counts.repeat + counts.superseding
        title = f"{source} stored: {name}"
        yield ControlTotal("T2", title, "", "", "", "count", counts.accepted, taken)
    sides = {"orders": joined.orders, "gateway": joined.gateway, "ledger": joined.ledger}
    frames = {"orders": sources.orders, "gateway": sources.gateway, "ledger": sources.ledger}
    for source, frame in frames.items():
        if frame is None:
            continue
        side = sides[source]
        older = np.flatnonzero(np.isin(side.versions, (REPEAT, SUPERSEDED)))
        rows = [side.items["row"].to_numpy(), older, _outside(source, frame=frame, side=side)]
        right = frame.iloc[np.concatenate(rows)]
        yield from counted("T2", f"{source} taken: {name}", left=frame, right=right)


def _outside(source: str, *, frame: pd.DataFrame, side: Side) -> Rows:
    """Rows that are no items of a set: answers without a payment, entries not compared."""
    outside = np.zeros(len(frame), dtype=np.bool_)
    if source == "gateway":
        outside = frame["answer"].ne(Answer.FOUND).to_numpy()
    if source == "ledger":
        outside = ~compared(frame) & (side.versions == NEW)
    return np.flatnonzero(outside)


def query_totals(sources: Sources, *, joined: Joined) -> Iterator[ControlTotal]:
    """T3: each key asked has exactly one final answer: found, not found or failed."""
    keys = [*KEY_COLUMNS]
    if sources.universe is not None:
        asked = sources.universe[keys].drop_duplicates()
        answered = asked.merge(sources.gateway[keys].drop_duplicates(), on=keys)
        name = "keys asked = found + not found + failed"
        yield from counted("T3", name, left=asked, right=answered)
        return
    ledger = sources.ledger
    if ledger is not None:
        ours = compared(ledger) | (joined.ledger.versions == CONFLICT)
        paid = ledger[JUDGED].to_numpy(dtype=np.bool_) if JUDGED in ledger else ~ours
        ledger = ledger[ours & ~paid]
    moves = sources.instructions
    if moves is not None:
        moves = moves[moves["kind"].ne(InstructionKind.PAYOUT)]
    given = [sources.orders, sources.gateway, ledger, moves, movements(sources.settlement)]
    every = pd.concat([frame[keys] for frame in given if frame is not None])
    every = every[every["order_no"].ne("")].drop_duplicates()
    named = [
        joined.keys.of[name]
        for name in ("orders", "gateway", "ledger", "instructions", "settlement")
    ]
    numbers = np.unique(np.concatenate(named))
    held = joined.sets.iloc[numbers[numbers >= 0]]
    held = held[held["kind"].eq(BY_ORDER)]
    yield from counted("T3", "keys = found + not found + failed", left=every, right=held)


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
