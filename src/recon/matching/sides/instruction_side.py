"""Our own instructions on a set, and what is known of their outcome."""

from dataclasses import replace

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Column, texts
from recon.matching.frames.coding import equals, numbered
from recon.matching.frames.grouping import (
    NO_GROUP,
    NO_INSTANT,
    Bools,
    Ints,
    Rows,
    amounts_of,
    cells_of,
    first_row,
    instants_of,
    latest,
    present,
    total,
)
from recon.matching.frames.sources import INSTRUCTION_COLUMNS, LoadCounts, Sources, frame_of
from recon.matching.frames.versions import CONFLICT, NEW, REPEAT, SUPERSEDED, versions
from recon.model.terms import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    WAITING_STATES,
    InstructionKind,
    InstructionState,
)

KINDS = (
    InstructionKind.CAPTURE,
    InstructionKind.REFUND,
    InstructionKind.CANCEL,
    InstructionKind.REVIEW,
    InstructionKind.CANCEL_SUBSCRIPTION,
)
REPORTED_APART = "reported_apart"
"""Column that the engine may add: two rows about this instruction contradict each other."""
STANDINGS = {
    "confirmed": CONFIRMED_STATES,
    "rejected": REJECTED_STATES,
    "doubtful": DOUBTFUL_STATES,
    "waiting": WAITING_STATES,
}
"""Status -> the instruction states that it covers; withdrawn instructions count as none of them."""

DATED = frozenset(
    {"capture_confirmed", "cancel_confirmed", "refund_confirmed", "review_confirmed"}
    | {"capture_waiting", "cancel_waiting", "refund_waiting", "capture_doubtful"}
)
"""Kinds and statuses from whose date a grace may run."""


def instruction_side(
    instructions: pd.DataFrame | None, *, sets: Rows, size: int
) -> dict[str, Column]:
    """Return our instructions as columns per set.

    For each kind and status `<kind>_<status>` (sum, minor units), `<kind>_<status>_any`, and of
    DATED `<kind>_<status>_at` (latest of outcome_at, else sent_at, else approved_at); also
    `refund_failed_later` (accepted, then found not applied). `instruction_amount` is the largest.
    """
    rows = frame_of([], columns=INSTRUCTION_COLUMNS) if instructions is None else instructions
    sets = sets if instructions is not None else np.zeros(0, dtype=np.intp)
    amount = amounts_of(rows["amount"])
    at = started_at(rows)
    failed_later = equals(rows["state"], InstructionState.RESOLVED_NOT_APPLIED)
    failed_later &= equals(rows["kind"], InstructionKind.REFUND)
    failed_later &= texts(rows["refund_reference_id"]) != ""
    columns: dict[str, Column] = {}
    of_states = {status: equals(rows["state"], *known) for status, known in STANDINGS.items()}
    for kind in KINDS:
        of_kind = equals(rows["kind"], kind)
        for status, of_state in of_states.items():
            mask = of_kind & of_state
            if status == "rejected":
                mask &= ~failed_later
            name, mine = f"{kind.value}_{status}", np.where(mask, sets, NO_GROUP)
            columns[name] = total(amount, groups=mine, size=size)
            columns[f"{name}_any"] = present(mask, groups=mine, size=size)
            if name in DATED:
                columns[f"{name}_at"] = latest(at, groups=mine, size=size)
    columns["refund_failed_later"] = present(failed_later, groups=sets, size=size)
    failed = np.where(failed_later, amount, 0)
    columns["refund_failed_later_sum"] = total(failed, groups=sets, size=size)
    currencies = texts(rows["currency"])
    chosen = first_row([currencies, texts(rows["instruction_id"])], groups=sets, size=size)
    columns["instruction_currency"] = cells_of(currencies, rows=chosen)
    columns["instruction_amount"] = np.maximum(latest(amount, groups=sets, size=size), 0)
    apart = np.zeros(len(rows), dtype=np.bool_)
    if REPORTED_APART in rows.columns:
        apart = rows[REPORTED_APART].to_numpy(dtype=np.bool_)
    columns["moves_reported_apart"] = present(apart, groups=sets, size=size)
    columns["instructed_at"] = latest(at, groups=sets, size=size)
    return columns


def of_other_currency(instructions: pd.DataFrame | None, *, sets: Rows, currency: Column) -> Bools:
    """Mark sets where we moved, or may have moved, money in another currency than the set's."""
    size = len(currency)
    if instructions is None:
        return np.zeros(size, dtype=np.bool_)
    named = texts(instructions["currency"])
    moved = equals(instructions["state"], *CONFIRMED_STATES, *DOUBTFUL_STATES)
    moved &= equals(instructions["kind"], InstructionKind.CAPTURE, InstructionKind.REFUND)
    moved &= (amounts_of(instructions["amount"]) > 0) & (named != "")
    other = named != cells_of(currency, rows=sets)
    return present(moved & other, groups=sets, size=size)


def started_at(rows: pd.DataFrame) -> Ints:
    """Return when each instruction's grace starts: outcome_at, else sent_at, else approved_at."""
    instants = instants_of(rows["outcome_at"])
    for column in ("sent_at", "approved_at"):
        instants = np.where(instants == NO_INSTANT, instants_of(rows[column]), instants)
    return np.asarray(instants, dtype=np.int64)


_ID = ["merchant_id", "account_id", "instruction_id"]
_SINCE = "since"


def with_each_instruction_once(sources: Sources) -> Sources:
    """Return the sources with each instruction once; rows that contradict each other are all kept.

    Of an instruction that changed its state the row with the latest outcome, else sending, else
    approval counts. What was skipped is counted for T2.
    """
    rows = sources.instructions
    if rows is None or not rows.duplicated(_ID).any():
        return sources
    groups = numbered(rows, by=_ID)
    dated = rows.assign(**{_SINCE: started_at(rows).view("datetime64[us]")})
    outcome = versions(dated, groups=groups, newest=_SINCE)
    is_counted = np.isin(outcome, (NEW, CONFLICT))
    once = rows.assign(**{REPORTED_APART: outcome == CONFLICT})[is_counted].reset_index(drop=True)
    counts = LoadCounts(
        accepted=len(rows),
        new=len(once),
        repeat=int((outcome == REPEAT).sum()),
        superseding=int((outcome == SUPERSEDED).sum()),
    )
    merged = {**sources.merged_rows, "instructions": counts}
    return replace(sources, instructions=once, merged_rows=merged)
