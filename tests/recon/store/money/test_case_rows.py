from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from recon.instructions.instruction import Instruction
from recon.instructions.planning import Plan
from recon.model.words import InstructionKind, InstructionState
from recon.store.database import history
from recon.store.database.engine import Store
from recon.store.money import case_rows, instruction_rows
from recon.store.nights.runs import Run
from recon.store.schema import instruction
from tests.recon.instructions.sample_instructions import INSTRUCTION

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
SHOWN = {"T1": ["2000"], "T7": ["3000"]}
"""What the baseline shows."""


def _item(run: Run, **changed: object) -> Instruction:
    base = replace(
        INSTRUCTION,
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        file_id=None,
        state=InstructionState.CONFIRMED,
        attempts=1,
        baseline_status="2000",
    )
    return replace(base, **changed)  # type: ignore[arg-type]


def _keep(store: Store, run: Run, *items: Instruction) -> None:
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan(items, ()), at=AT)
        connection.execute(update(instruction).values(sent_at=AT, outcome_at=AT))


def test_final_instructions_whose_payment_was_asked_for_are_looked_at(
    store: Store, run: Run
) -> None:
    """What is not final, of a kind that no query shows, or not asked for tonight is left out."""
    _keep(
        store,
        run,
        _item(run),
        _item(run, instruction_id="i2", natural_key="k2", state=InstructionState.NEEDS_HUMAN),
        _item(run, instruction_id="i3", natural_key="k3", kind=InstructionKind.REVIEW),
        _item(run, instruction_id="i4", natural_key="k4", transaction_id="T9"),
    )
    with store.reading() as connection:
        found = case_rows.shown_ended(connection, run, shown=SHOWN)

    assert [(one.instruction_id, shown) for one, shown in found] == [("i1", "2000")]


def test_a_case_is_opened_once_and_stands_in_the_history(store: Store, run: Run) -> None:
    """It is listed until it is closed, and never opened a second time."""
    _keep(store, run, _item(run))
    with store.writing() as connection:
        case_rows.open_case(connection, _item(run), reason="it shows authorised", at=AT)
        opened = case_rows.open_cases(connection, run)
        again = case_rows.shown_ended(connection, run, shown=SHOWN)
        case_rows.close_case(connection, "i1", verdict="applied", reason="by ann and ben", at=AT)

        assert [(one.item.kind, one.item.order_no, one.item.amount) for one in opened] == [
            ("capture", "A-1", 10_000)
        ]
        assert again == []
        assert case_rows.open_cases(connection, run) == []
        assert not case_rows.has_open_case(connection, "i1")
        events = [row.event for row in history.links_of(connection, ["i1"])]
        assert events == ["confirmed", "opened", "closed"]
        assert history.verify(connection)[1] == ""


@pytest.mark.parametrize(
    ("state", "said", "told"),
    [
        (InstructionState.CONFIRMED, "", "has an open case"),
        (InstructionState.CONFIRMED, "applied", ""),
        (InstructionState.CONFIRMED, "not_applied", "was in truth not_applied"),
        (InstructionState.RESOLVED_NOT_APPLIED, "not_applied", ""),
        (InstructionState.RESOLVED_NOT_APPLIED, "applied", "was in truth applied"),
    ],
)
def test_a_payment_is_closed_while_a_case_is_open_or_the_journal_was_wrong(
    store: Store, run: Run, state: InstructionState, said: str, told: str
) -> None:
    """Only two people who confirm what the journal has open the payment again."""
    item = _item(run, state=state)
    _keep(store, run, item)
    with store.writing() as connection:
        case_rows.open_case(connection, item, reason="it shows otherwise", at=AT)
        if said:
            case_rows.close_case(connection, "i1", verdict=said, reason="two people", at=AT)
        closed = case_rows.closed_payments(connection, run)

    assert told in closed.get("T1", "")
    assert bool(closed) == bool(told)
