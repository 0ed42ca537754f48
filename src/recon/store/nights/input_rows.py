"""What a run compared: how far it read the tables, so that later rows do not change its night.

Order rows, answers and ledger entries are never changed, so a number says how far a run read them.
Instructions move on: the night's folder has them as they were compared.
"""

import json
from collections.abc import Mapping
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
from recon.model.words import (
    DOUBTFUL_STATES,
    WAITING_STATES,
    InstructionKind,
    InstructionState,
)
from recon.store.database.bulk_rows import replace_rows
from recon.store.database.history import document_of, value_of
from recon.store.nights.runs import Run
from recon.store.schema import (
    APPLIED,
    contradiction,
    instruction,
    order_file,
    run_input,
)
from recon.store.schema import run as run_table
from recon.store.schema.columns import in_account

_SUBJECT = case(
    (instruction.c.kind == InstructionKind.CANCEL_SUBSCRIPTION, instruction.c.recurring_id),
    else_=instruction.c.transaction_id,
).label("transaction_id")
"""What an instruction is about at the gateway: a later end of the same subscription answers."""
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
"""The state, but for a refused end of a subscription that two people saw ended elsewhere."""
_ARRIVED = func.coalesce(instruction.c.approved_at, instruction.c.planned_at).label("approved_at")
"""What waits for people has its grace from when it arrived: it is no break at once."""
_AS_COMPARED = {"transaction_id": _SUBJECT, "state": _STATE, "approved_at": _ARRIVED}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInputs:
    """How far a run read, as it is kept."""

    rules_digest: str
    previous_run_id: str
    """Whose open breaks it carried forward; "" for none."""
    last_file: int
    product_version: str
    siblings: tuple[str, ...] = ()
    """The merchant's other accounts, as they were declared."""
    exported: tuple[Exported, ...] = ()
    moved_by_rules: tuple[str, ...] = ()
    """Sentences: which rules changed since the last signed night, and what they moved."""
    write_offs: Mapping[str, tuple[str, int]] | None = None
    """What the books had written off before anybody could agree to it here (see first_write_offs);
    None: the books were not seen yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs(StoredInputs):
    """And what it was told beside the tables, which the night's folder has as it was compared."""

    settlement: bool = False
    """Whether settlement files were a source of the account."""
    agreed_write_offs: AgreedWriteOffs = field(default_factory=AgreedWriteOffs)
    last_reject_end: int | None = None
    """The newest delivery of, or decision on, a rejected order row; None where none counted yet."""


def last_file(connection: Connection) -> int:
    """The newest order file; 0: none came yet."""
    return connection.execute(select(func.max(order_file.c.file_id))).scalar() or 0


def instruction_frame(
    connection: Connection, run: Run, *, shown: Mapping[str, datetime]
) -> pd.DataFrame:
    """INSTRUCTION_COLUMNS of every instruction of the account that was not withdrawn.

    `shown`: doubtful instruction -> when answers first showed it as done.
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
            # A night may run long after its date: what arrives then is no wrong date.
            row["approved_at"] = min(row["approved_at"], run.as_of + AHEAD_MAX)
        if row["state"] in DOUBTFUL_STATES:
            row["outcome_at"] = shown.get(row["instruction_id"])
        rows.append(row)
    return frame_of(rows, columns=INSTRUCTION_COLUMNS)


def save(connection: Connection, run_id: str, *, inputs: StoredInputs) -> None:
    """Keep how far a run read, in place of an earlier attempt's."""
    document = json.dumps(document_of(inputs, kind=StoredInputs), sort_keys=True)
    kept = {"previous_run_id": inputs.previous_run_id, "document": document}
    replace_rows(connection, run_input, run_id, [kept])


def load(connection: Connection, run_id: str) -> StoredInputs | None:
    """How far a run read; None when it never got that far."""
    row = connection.execute(select(run_input).where(run_input.c.run_id == run_id)).one_or_none()
    if row is None:
        return None
    document = {**json.loads(row.document), "previous_run_id": row.previous_run_id}
    return value_of(StoredInputs, document)


def first_write_offs(connection: Connection, run: Run) -> Mapping[str, tuple[str, int]] | None:
    """What the account's first finished night that read its books found written off there.

    Entry id -> currency and minor units; None when there was no such night yet.
    """
    documents = connection.execute(
        select(run_input.c.document)
        .join(run_table, run_table.c.run_id == run_input.c.run_id)
        .where(
            *in_account(run_table, run),
            run_table.c.mode == Mode.LIVE,
            run_table.c.status == "finished",
        )
        .order_by(run_table.c.finished_at)
    ).scalars()
    known = (value_of(StoredInputs, json.loads(document)).write_offs for document in documents)
    return next((entries for entries in known if entries is not None), None)
