"""T0 to T3 and T8: what was read, taken, asked and instructed."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from recon.matching.frames.arrays import Column, filled, texts
from recon.matching.frames.coding import (
    NO_KEY,
    coded,
    combined,
    in_one_place,
    is_word,
    placed_together,
)
from recon.matching.frames.digest import are_distinct
from recon.matching.frames.grouping import Rows, amounts_of
from recon.matching.frames.sources import KEY_COLUMNS, Sources
from recon.matching.frames.total_rows import (
    ACCOUNT,
    compared_rows,
    compared_sums,
    counted_places,
    sizes,
)
from recon.matching.frames.versions import CONFLICT, NEW, REPEAT, SUPERSEDED
from recon.matching.sets.joined_sets import BY_ORDER, Joined
from recon.matching.sides.ledger_side import JUDGED, compared, marked_as
from recon.matching.sides.orders_side import Side
from recon.matching.sides.settlement_side import of_payments
from recon.model.words import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    WAITING_STATES,
    ControlTotal,
    InstructionKind,
    InstructionState,
    KeyAnswer,
    SetState,
    SourceKind,
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
    """T2: accepted = new + repeat + superseding, as stored and as the engine took them.

    Args:
        sources: the rows.
        joined: the same in sets.
    """
    name = "accepted = new + repeat + superseding"
    for source, counts in sorted(sources.merged_rows.items()):
        taken = counts.new + counts.repeat + counts.superseding
        title = f"{source} stored: {name}"
        yield ControlTotal("T2", title, "", "", "", "count", counts.accepted, taken)
    yield from _arrived_totals(sources)
    sides = {"orders": joined.orders, "gateway": joined.gateway, "ledger": joined.ledger}
    for source, side in sides.items():
        frame: pd.DataFrame | None = getattr(sources, source)
        if frame is None:
            continue
        older = np.flatnonzero(np.isin(side.versions, (REPEAT, SUPERSEDED)))
        rows = np.concatenate([side.items["row"], older, _outside(source, frame=frame, side=side)])
        accounts = joined.numbers.account_of[source][rows]
        right = _by_account(np.bincount(accounts), accounts=joined.numbers.accounts)
        every = sizes(frame, by=ACCOUNT)
        yield from counted_places("T2", f"{source} taken: {name}", left=every, right=right)


def _by_account(counts: Rows, *, accounts: list[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    """How many there are of each account that has any."""
    return Counter({accounts[n]: count for n, count in enumerate(counts.tolist()) if count})


def _arrived_totals(sources: Sources) -> Iterator[ControlTotal]:
    """T2 from the files on: rows accepted and each step after them come to what is compared."""
    for kind, steps in sources.arrived.items():
        accepted = sum(file.rows_accepted for file in sources.files if file.kind == kind)
        frame = getattr(sources, kind.value)
        left = accepted + sum(steps.values())
        yield _arrived(kind, left=left, right=len(frame))


def arrived_aside(sources: Sources, *, rows: Mapping[str, int]) -> Iterator[ControlTotal]:
    """What parts add to the right side of these: rows that were compared there, by source."""
    for kind in sources.arrived:
        yield _arrived(kind, left=0, right=rows.get(kind.value, 0))


def _arrived(kind: SourceKind, *, left: int, right: int) -> ControlTotal:
    name = f"{kind}: rows accepted, step by step = rows compared"
    return ControlTotal("T2", name, "", "", "", "count", left, right)


def _outside(source: str, *, frame: pd.DataFrame, side: Side) -> Rows:
    """Rows that are no items of a set: answers without a payment, entries not compared."""
    outside = np.zeros(len(frame), dtype=np.bool_)
    if source == "gateway":
        outside = ~is_word(frame["answer"], KeyAnswer.FOUND)
    if source == "ledger":
        outside = ~compared(frame) & (side.versions == NEW)
    return np.flatnonzero(outside)


def query_totals(sources: Sources, *, joined: Joined) -> Iterator[ControlTotal]:
    """T3: each key asked has exactly one final answer: found, not found or failed.

    The arguments are those of `load_totals`. Keys are told apart over the sources on one side, and
    on the other over the rows of the sets.
    """
    if sources.universe is not None:
        left, right = _asked(sources.universe, answers=sources.gateway)
        name = "keys asked = found + not found + failed"
        yield from counted_places("T3", name, left=left, right=right)
        return
    right = _named_in_sets(sources, joined=joined)
    name = "keys = found + not found + failed"
    left = _every_key(sources, joined=joined)
    yield from counted_places("T3", name, left=left, right=right)


def _asked(
    universe: pd.DataFrame, *, answers: pd.DataFrame
) -> tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]:
    """How many keys were asked, and how many of them are answered, by account."""
    (asked, answered), accounts = placed_together([universe, answers], by=ACCOUNT)
    keys, named_keys = universe["order_no"], answers["order_no"]
    if len(accounts) == 1 and in_one_place(keys, named_keys) and are_distinct(keys):
        # Each order has its one answer, in order: no dictionary of a million says it better.
        return Counter({accounts[0]: len(keys)}), Counter({accounts[0]: len(keys)})
    codes, words = coded([keys, named_keys])
    left, right = (np.zeros(len(accounts), dtype=np.int64) for _ in range(2))
    for number in range(len(accounts)):
        wanted, named = (np.zeros(len(words), dtype=np.bool_) for _ in range(2))
        wanted[codes[0][asked == number]] = True
        named[codes[1][answered == number]] = True
        left[number], right[number] = wanted.sum(), (wanted & named).sum()
    return _by_account(left, accounts=accounts), _by_account(right, accounts=accounts)


def _named_in_sets(sources: Sources, *, joined: Joined) -> Counter[tuple[str, ...]]:
    """How many keys the rows of the sets name, by account.

    They are told apart by their texts: the numbers by which the sets were made are what is proven.
    """
    by_order = joined.sets["kind"] == BY_ORDER
    parts: dict[str, list[Column]] = {name: [filled("", size=0)] for name in KEY_COLUMNS}
    for source in _KEYED:
        frame: pd.DataFrame | None = getattr(sources, source)
        if frame is None:
            continue
        rows, sets = np.arange(len(frame)), joined.keys.of[source]
        if source == "settlement":
            rows = np.flatnonzero(of_payments(frame))
        mine = sets >= 0
        mine[mine] = by_order[sets[mine]]
        mine &= texts(frame["order_no"])[rows] != ""
        for name, part in parts.items():
            part.append(texts(frame[name])[rows[mine]])
    merchants, accounts, orders = (np.concatenate(part) for part in parts.values())
    groups, places = combined([merchants, accounts])
    codes, words = pd.factorize(orders)
    width = max(len(words), 1)
    keys = np.unique(groups * width + codes)
    return _by_account(np.bincount(keys // width), accounts=places)


_KEYED = ("orders", "gateway", "ledger", "instructions", "settlement")


def _every_key(sources: Sources, *, joined: Joined) -> Counter[tuple[str, ...]]:
    """How many keys the sources name (grain: account)."""
    keys = joined.numbers
    named = np.zeros(keys.size, dtype=np.bool_)
    for source in _KEYED:
        if source not in keys.of:
            continue
        numbers = keys.of[source]
        mine = numbers != NO_KEY
        if source == "ledger" and sources.ledger is not None:
            in_sets = compared(sources.ledger) | (joined.ledger.versions == CONFLICT)
            mine &= in_sets & ~marked_as(sources.ledger, JUDGED)
        if source == "settlement" and sources.settlement is not None:
            mine &= of_payments(sources.settlement)
        if source == "instructions" and sources.instructions is not None:
            mine &= ~is_word(sources.instructions["kind"], InstructionKind.PAYOUT)
        named[numbers[mine]] = True
    return _by_account(np.bincount(keys.account[named]), accounts=keys.accounts)


_NO_EFFECT_SHOWN = (InstructionKind.REVIEW, InstructionKind.CANCEL_SUBSCRIPTION)
"""No source shows what a confirmed one did."""


def instruction_totals(
    instructions: pd.DataFrame | None, *, sets: Rows, states: Words
) -> Iterator[ControlTotal]:
    """T8: instructed = confirmed + rejected + in doubt + waiting + withdrawn; confirmed = effects.

    What was refused or is in doubt has a verdict, too: nobody was told of it otherwise. A review
    that is over needs none, nor does a refund of 0.00, which asked for no money.

    Args:
        instructions: the journal.
        sets: the set of each of them.
        states: what each set came to.
    """
    if instructions is None:
        return
    known = CONFIRMED_STATES | REJECTED_STATES | DOUBTFUL_STATES | WAITING_STATES
    counted = instructions[is_word(instructions["state"], *known, InstructionState.WITHDRAWN)]
    name = "instructed = confirmed + rejected + in doubt + waiting + withdrawn"
    yield from compared_rows("T8", name, left=instructions, right=counted)
    yield from compared_sums("T8", name, left=instructions, right=counted)
    confirmed = is_word(instructions["state"], *CONFIRMED_STATES)
    confirmed &= ~is_word(instructions["kind"], *_NO_EFFECT_SHOWN)
    confirmed &= amounts_of(instructions["amount"]) > 0
    judged = np.isin(np.append(states, "")[sets], [state.value for state in SetState])
    undone = is_word(instructions["state"], *REJECTED_STATES, *DOUBTFUL_STATES)
    undone &= ~is_word(instructions["kind"], InstructionKind.REVIEW)
    asked = ~is_word(instructions["kind"], InstructionKind.REFUND)
    undone &= asked | (amounts_of(instructions["amount"]) > 0)
    for name, wanted in {
        "confirmed = those whose effect was looked for": confirmed,
        "rejected + in doubt = those that were judged": undone,
    }.items():
        sure, seen = instructions[wanted], instructions[wanted & judged]
        yield from compared_rows("T8", name, left=sure, right=seen)
        yield from compared_sums("T8", name, left=sure, right=seen)
