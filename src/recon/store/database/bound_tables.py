"""Which tables the audit log binds: the key of each, its event and the columns that are not bound.

A row and its event are written by one function (`record`); one verifier compares every table here
with its newest events. A new column is bound unless it is named as free.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Table

from recon.instructions import terms
from recon.instructions.instruction import FOLLOWS
from recon.model.words import InstructionKind
from recon.store.schema import (
    agreement,
    approval,
    break_answer,
    contradiction,
    instruction,
    release,
    result_summary,
    run,
    sending_switch,
    sign_off,
    verdict,
)

ROW = "row"
"""Where an event has the cells that it binds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How one table is bound."""

    table: Table
    entity: str
    """Of its events."""
    key: str
    """The column with the entity's id."""
    within: str = ""
    """The column that tells several rows of one entity apart."""
    under: str = ROW
    """Where the events have its cells."""
    free: Mapping[str, str] = field(default_factory=dict)
    """Columns that no event binds, and why that moves no money."""
    only_where: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Columns that are bound only where another column has some value."""
    as_digest: frozenset[str] = frozenset()
    """Texts of which the audit log, which cannot be erased, has only a digest."""
    state: str = ""
    """The column that has the name of the newest event."""
    erased: frozenset[str] = frozenset()
    """Columns that are emptied with the end."""
    ended: frozenset[str] = frozenset()
    """States that are an end."""
    columns: tuple[str, ...] = field(init=False)
    """What is compared: all columns but the key and the free ones."""

    def __post_init__(self) -> None:
        """Name the columns once."""
        names = (column.name for column in self.table.columns)
        left = tuple(name for name in names if name != self.key and name not in self.free)
        object.__setattr__(self, "columns", left)


_ORIGIN = "where it came from and what the gateway said: for people, the state is bound"
_WEAK = "WEAK: of sums a day by rule, and of evidence about doubts; the terms sent are bound"
INSTRUCTION = Bound(
    table=instruction,
    entity="instruction",
    key="instruction_id",
    only_where={terms.OF_PAYOUTS: ("kind", InstructionKind.PAYOUT.value)},
    as_digest=terms.KEPT_AS_DIGEST,
    state="state",
    erased=frozenset({"sealed"}),
    ended=frozenset(state.value for state, following in FOLLOWS.items() if not following),
    free={
        "natural_key": "WEAK: the same intention is still told by order and amount",
        "hold": "every reason to wait is read from the audit log before an approval",
        **dict.fromkeys(("file_id", "line", "run_id", "planned_at"), _ORIGIN),
        **dict.fromkeys(("outcome", "code", "message", "outcome_at"), _ORIGIN),
        **dict.fromkeys(("approved_by", "approved_at", "sent_at", "attempts", "batch_id"), _WEAK),
        **dict.fromkeys(("refund_reference_id", "baseline_status"), _WEAK),
    },
)
SWITCH = Bound(table=sending_switch, entity="sending", key="turn")
RELEASE = Bound(table=release, entity="release", key="run_id")
CASE = Bound(table=contradiction, entity="case", key="instruction_id")
AGREEMENT = Bound(table=agreement, entity="agreement", key="subject", within="agreement_id")
VERDICT = Bound(table=verdict, entity="verdict", key="instruction_id", within="verdict_id")
APPROVAL = Bound(table=approval, entity="approval", key="digest", within="approval_id")
RUN = Bound(
    table=run,
    entity="run",
    key="run_id",
    free={
        **dict.fromkeys(("owner", "owner_process"), "who holds the night: for people"),
        "step": "where a night goes on: a step that is left out leaves totals that do not tie",
        "workbook": "where it lies, which may move: its hash is bound",
        "history_head": "it is compared with the audit log itself",
    },
)
SUMMARY = Bound(
    table=result_summary,
    entity="run",
    key="run_id",
    under="summary",
    as_digest=frozenset({"document"}),
)
SIGN_OFF = Bound(table=sign_off, entity="sign-off", key="run_id", within="role")
ANSWER = Bound(
    table=break_answer,
    entity="break",
    key="break_id",
    within="version",
    free={"answer_id": "a number that says only which row came first"},
)
BEFORE_MONEY = (SWITCH, RELEASE, CASE, AGREEMENT, VERDICT, APPROVAL, RUN)
"""Compared whole before money moves; of instructions only the state and what may still leave."""
BOUND_TABLES = (INSTRUCTION, *BEFORE_MONEY, SUMMARY, SIGN_OFF, ANSWER)
