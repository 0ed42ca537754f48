"""The inputs of a run: how far it read the tables, so that later rows do not change its result.

Order rows, answers and ledger entries never change, so a number suffices to say how far a run read.
Instructions do change; the night's folder holds them as they were compared.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pandas as pd
from sqlalchemy import Connection, case, func, select

from recon.matching.frames.sources import (
    INSTRUCTION_COLUMNS,
    AgreedWriteOffs,
    Exported,
    frame_of,
)
from recon.model.business_date import AHEAD_MAX
from recon.model.nights import Mode
from recon.model.terms import (
    DOUBTFUL_STATES,
    WAITING_STATES,
    InstructionKind,
    InstructionState,
)
from recon.store.database.history import Event, append, document_of, links_of, value_of
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.schema import (
    APPLIED,
    contradiction,
    instruction,
    order_file,
)
from recon.store.schema.columns import id_of, in_account

_SUBJECT = case(
    (instruction.c.kind == InstructionKind.CANCEL_SUBSCRIPTION, instruction.c.recurring_id),
    else_=instruction.c.transaction_id,
).label("transaction_id")
"""Subject at the gateway; ends of one subscription share its id, so that a later one counts."""
_STATE = case(
    (
        (instruction.c.kind == InstructionKind.CANCEL_SUBSCRIPTION)
        & select(contradiction.c.instruction_id)
        .where(
            contradiction.c.instruction_id == instruction.c.instruction_id,
            contradiction.c.verdict == APPLIED,
        )
        .exists(),
        InstructionState.RESOLVED_APPLIED.value,
    ),
    else_=instruction.c.state,
).label("state")
"""State; RESOLVED_APPLIED for an end of a subscription that two people found ended elsewhere."""
_ARRIVED = func.coalesce(instruction.c.approved_at, instruction.c.planned_at).label("approved_at")
"""Approval time; until approval the planning time, so that grace applies to what waits."""
_AS_COMPARED = {"transaction_id": _SUBJECT, "state": _STATE, "approved_at": _ARRIVED}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInputs:
    """How far a run read, as stored in the history."""

    rules_digest: str
    previous_run_id: str
    """The run whose open breaks it carried forward; "" for none."""
    last_file: int
    product_version: str
    siblings: tuple[str, ...] = ()
    """The merchant's other declared accounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs(StoredInputs):
    """Stored inputs, plus those that are not in tables and are saved in the night's folder."""

    settlement: bool = False
    """Whether the account has settlement files as a source."""
    exported: tuple[Exported, ...] = ()
    agreed_write_offs: AgreedWriteOffs = field(default_factory=AgreedWriteOffs)
    last_reject_end: int | None = None
    """Newest delivery of, or decision on, a rejected order row; None if none counted yet."""


def last_file(connection: Connection) -> int:
    """Return the number of the newest order file; 0 if none has arrived."""
    return connection.execute(select(func.max(order_file.c.file_id))).scalar() or 0


def instruction_frame(
    connection: Connection, run: Run, *, journals: Mapping[str, datetime]
) -> pd.DataFrame:
    """Return INSTRUCTION_COLUMNS of all the account's instructions that were not withdrawn.

    `journals` maps instructions in doubt to the time when answers first showed them as done.
    """
    own = (name for name in INSTRUCTION_COLUMNS if name != "source")
    columns = (_AS_COMPARED.get(name, instruction.c[name]) for name in own)
    instructions = connection.execute(
        select(*columns)
        .where(
            *in_account(instruction, run),
            instruction.c.state != InstructionState.WITHDRAWN,
        )
        .order_by(instruction.c.instruction_id)
    ).mappings()
    rows: list[dict[str, Any]] = []
    for each in instructions:
        row = dict(each)
        if row["state"] in WAITING_STATES:
            # A night may run long after its date; a later arrival is not a wrong date.
            row["approved_at"] = min(row["approved_at"], run.as_of + AHEAD_MAX)
        if row["state"] in DOUBTFUL_STATES:
            row["outcome_at"] = journals.get(row["instruction_id"])
        rows.append(row)
    return frame_of(rows, columns=INSTRUCTION_COLUMNS)


READ = "read"
"""Key of StoredInputs in the event that attests the inputs of a run."""


def document(inputs: StoredInputs) -> dict[str, Any]:
    """Return the stored inputs as data for the event that attests them."""
    return document_of(inputs, kind=StoredInputs)


def load(connection: Connection, run_id: str) -> StoredInputs | None:
    """Return the stored inputs of a run's newest attempt; None if it did not get that far."""
    sealed = runs.run_links(connection, run_id, event=runs.SEALED)
    read = [data[READ] for link in sealed if READ in (data := link.data)]
    return value_of(StoredInputs, read[-1]) if read else None


def nights_before(connection: Connection, last: Run) -> Iterator[str]:
    """Yield a run's id, that of the run it carried forward, and so on, newest first."""
    run_id = last.run_id
    while run_id:
        yield run_id
        inputs = load(connection, run_id)
        run_id = "" if inputs is None else inputs.previous_run_id


WRITE_OFFS, TAKEN_OVER = "write-offs", "taken over"
"""Entity and event in the history."""


def taken_over(connection: Connection, run: Run) -> dict[str, tuple[str, int]] | None:
    """Return write-offs that an account's ledger had before any could be agreed here.

    Entry id -> currency and minor units, as the first finished live night that compared its ledger
    found them; None when there was no such night yet.
    """
    for link in links_of(connection, [id_of(*run.account)], entity=WRITE_OFFS):
        entries = link.data["entries"].items()
        return {key: (str(currency), int(amount)) for key, (currency, amount) in entries}
    return None


def found_written_off(
    connection: Connection, run: Run, *, agreed: AgreedWriteOffs | None
) -> dict[str, dict[str, tuple[str, int]]]:
    """Return the write-offs that a live night found, as event data for `take_over`.

    Empty if a night of the account has recorded existing write-offs already.
    """
    if run.mode is not Mode.LIVE or agreed is None or agreed.entries is None:
        return {}
    known = taken_over(connection, run) is not None
    return {} if known else {WRITE_OFFS: {**agreed.entries}}


def take_over(connection: Connection, run_id: str, *, at: datetime) -> None:
    """Record the write-offs found by a finished night, unless an earlier night has done so.

    A run that ends before this step records none; the next comparison looks again.
    """
    run, found = runs.get(connection, run_id), runs.result_data(connection, run_id)
    if WRITE_OFFS in found and taken_over(connection, run) is None:
        details = {"run": run_id, "entries": found[WRITE_OFFS]}
        event = Event(WRITE_OFFS, id_of(*run.account), TAKEN_OVER, details)
        append(connection, [event], at=at)
