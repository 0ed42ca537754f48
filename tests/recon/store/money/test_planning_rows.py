"""What planning reads: journal rows as intentions, and the payment that only an answer names."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from sqlalchemy import insert

from recon.instructions.instruction import Intention
from recon.instructions.planning import Plan
from recon.model.words import InstructionKind, InstructionState
from recon.store.database.engine import Store
from recon.store.money import instruction_rows
from recon.store.nights.runs import Run
from recon.store.schema import order_action, order_file
from tests.recon.instructions.sample_instructions import INSTRUCTION

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


def _save(store: Store, run: Run) -> None:
    refund = replace(INSTRUCTION, kind=InstructionKind.REFUND, file_id=None, transaction_id="")
    items = (
        replace(refund, state=InstructionState.CONFIRMED, transaction_id="T1", request_id="R-1"),
        replace(refund, instruction_id="i2", natural_key="k2", order_no="A-2"),
        replace(refund, instruction_id="i3", natural_key="k3", again_for="i1", order_no="A-3"),
    )
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan(items, ()), at=AT)


def test_the_journal_is_read_as_intentions(store: Store, run: Run) -> None:
    """Each row is known by what it means; where it names no payment, by the one that is shown."""
    _save(store, run)
    with store.reading() as connection:
        unnamed = instruction_rows.unnamed_orders(connection, run)
        known = instruction_rows.known(connection, run, shown={"A-2": "T2"})
    meant = replace(INSTRUCTION, kind=InstructionKind.REFUND, order_no="A-9")
    alike = {
        name: [one.instruction_id for one in known.alike(Intention.of(meant_of))]
        for name, meant_of in {
            "T1": meant,
            "T2": replace(meant, transaction_id="T2"),
            "A-3": replace(meant, order_no="A-3", transaction_id=""),
        }.items()
    }

    assert unnamed == {"A-2", "A-3"}
    assert alike == {"T1": ["i1"], "T2": ["i2"], "A-3": ["i3"]}
    assert [known.of_key(key).is_again for key in ("k1", "k3")] == [False, True]  # type: ignore[union-attr]  # both are there
    found = known.of_request("r-1")
    assert found is not None
    assert found.instruction_id == "i1"


@pytest.mark.parametrize("kind", ["orders", "instructions"])
def test_rows_without_an_instruction_are_to_be_planned(store: Store, run: Run, kind: str) -> None:
    """A row that became an instruction is planned no more; the kind of its file is known."""
    place = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    row = {
        **place,
        "file_id": 1,
        "line": 2,
        "order_no": "A-5",
        "transaction_id": "",
        "action": "refund",
        "currency": "EUR",
        "amount": 10_000,
        "action_amount": None,
        "instruction_id": "",
    }
    file = {
        "file_id": 1,
        "name": "o.csv",
        "business_date": date(2026, 11, 20),
        "run_id": run.run_id,
    }
    with store.writing() as connection:
        connection.execute(
            insert(order_file).values(
                **place, **file, kind=kind, version=1, size_bytes=1, read_at=AT
            )
        )
        connection.execute(insert(order_action), [row, row | {"line": 3, "instruction_id": "i1"}])
        found = instruction_rows.unplanned_actions(connection, run)
        unnamed = instruction_rows.unnamed_orders(connection, run)
        connection.execute(insert(order_action), [row | {"line": line} for line in (4, 5)])
        new = [one.action_id for one in instruction_rows.unplanned_actions(connection, run)]
        links = ((new[0], "i2"), (new[2], "i3"))
        instruction_rows.save_plan(connection, run, plan=Plan((), links), at=AT)
        left = [one.line for one in instruction_rows.unplanned_actions(connection, run)]

    assert [(one.line, one.amount, one.strict) for one in found] == [
        (2, 10_000, kind == "instructions")
    ]
    assert unnamed == {"A-5"}
    assert left == [4]
