import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from recon.instructions.sender import Sender
from recon.model.errors import GateClosedError
from recon.store.database.engine import Store
from recon.store.database.history import Event, append
from recon.store.database.record import INSTRUCTION, ROW, changed
from recon.store.money.bound_rows import events_of, refuse_changed_rows
from recon.store.nights.runs import Run
from tests.recon.instructions.sample_instructions import not_sent
from tests.recon.store.scripted import AT, LoneJournal, ScriptedGateway, cleared_captures


def problems(store: Store) -> list[str]:
    """What the table says otherwise than the history, over all states."""
    with store.reading() as connection:
        return [*changed(connection, INSTRUCTION)]


def sent(store: Store, run: Run, *script: object, orders: int = 2) -> None:
    """A pass of the real sender over some captures."""
    sender = Sender(
        gateway=ScriptedGateway(*script),
        journal=LoneJournal(store, run, run_id=run.run_id),
        clock=lambda: AT,
        new_id=iter(["b1", "b2", "b3"]).__next__,
        crash_point=lambda _: None,
        elapsed=timedelta,
    )
    asyncio.run(sender.send_all(cleared_captures(store, run, orders=orders)))


def change(store: Store, what: str) -> None:
    """Past the journal."""
    with store.writing() as connection:
        connection.execute(text(f"UPDATE instruction SET {what}"))  # noqa: S608 - of this test


def test_what_went_its_way_is_as_it_was_bound(store: Store, run: Run) -> None:
    """Planned, sent again after it surely did not leave, confirmed: each change was bound."""
    sent(store, run, not_sent())

    assert problems(store) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("amount", "1"),
        ("currency", "'USD'"),
        ("order_no", "'ORD-9'"),
        ("transaction_id", "'T-9'"),
        ("reason", "'for me'"),
        ("payment_amount", "1"),
        ("kind", "'cancel'"),
        ("account_id", "'100042002'"),
        ("payee_digest", "'x'"),
    ],
)
def test_a_change_of_what_waits_is_found(store: Store, run: Run, column: str, value: str) -> None:
    """And no longer when the table says again what it said."""
    cleared_captures(store, run, orders=1)
    with store.reading() as connection:
        was = connection.execute(text(f"SELECT {column} FROM instruction")).scalar()  # noqa: S608
    change(store, f"{column} = {value}")
    found = problems(store)
    with store.writing() as connection:
        connection.execute(text(f"UPDATE instruction SET {column} = :was"), {"was": was})  # noqa: S608

    assert len(found) == 1
    assert f"its {column.replace('_', ' ')} is" in found[0]
    assert problems(store) == []


def test_a_change_of_what_was_sent_is_found(store: Store, run: Run) -> None:
    """The payment that a claim filled in is bound with the claim."""
    sent(store, run)
    change(store, "transaction_id = 'T-9'")

    assert len(problems(store)) == 2
    assert "its transaction id is T-9, bound was T-A-1" in problems(store)[0]


@pytest.mark.parametrize("other", [{"amount": 7}, {"order_no": "A-2"}], ids=str)
def test_what_would_leave_is_compared_too(store: Store, run: Run, other: dict[str, Any]) -> None:
    """The bytes are made from memory: that the table is right is not enough."""
    (row,) = cleared_captures(store, run, orders=1)
    forged = replace(row, instruction=replace(row.instruction, **other))
    with store.reading() as connection:
        refuse_changed_rows(connection, [row])
        with pytest.raises(GateClosedError, match="it was changed past the journal"):
            refuse_changed_rows(connection, [forged])


def test_a_payment_that_was_named_from_the_beginning_is_the_one_that_is_sent(
    store: Store, run: Run
) -> None:
    """A claim fills in what was open, and changes nothing that was said."""
    (row,) = cleared_captures(store, run, orders=1)
    wanted = row.instruction.instruction_id
    with store.writing() as connection:
        terms = {ROW: {"transaction_id": "T-9"}}
        append(connection, [Event("instruction", wanted, "approved", terms)], at=AT)
    with (
        store.reading() as connection,
        pytest.raises(GateClosedError, match="its transaction id is T-A-1, bound was T-9"),
    ):
        refuse_changed_rows(connection, [row])


def test_events_of_many_instructions_are_read_in_parts(store: Store, run: Run) -> None:
    """A list may be longer than what a database takes in one question."""
    rows = cleared_captures(store, run, orders=3)
    ids = [row.instruction.instruction_id for row in rows]
    with store.reading() as connection:
        found = events_of(connection, [*ids, *(f"none-{n}" for n in range(1_000))])

    assert sorted(found) == sorted(ids)
