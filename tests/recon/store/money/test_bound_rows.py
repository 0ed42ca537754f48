from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from recon.model.errors import GateClosedError
from recon.store.database.engine import Store
from recon.store.database.history import Event, append
from recon.store.database.record import INSTRUCTION, ROW, changed
from recon.store.money.bound_rows import events_of, refuse_changed_rows
from recon.store.nights.runs import Run
from tests.recon.instructions.sample_instructions import not_sent
from tests.recon.store.scripted import AT, ScriptedGateway, cleared_captures, send


def problems(store: Store) -> list[str]:
    with store.reading() as connection:
        return [*changed(connection, INSTRUCTION)]


def sent(store: Store, run: Run, *script: object) -> None:
    """A pass of the real sender over two captures."""
    cleared = cleared_captures(store, run, orders=2)
    send(store, run, cleared, gateway=ScriptedGateway(*script))


def change(store: Store, what: str) -> None:
    with store.writing() as connection:
        connection.execute(text(f"UPDATE instruction SET {what}"))  # noqa: S608 - of this test


def test_what_went_its_way_is_as_it_was_bound(store: Store, run: Run) -> None:
    sent(store, run, not_sent())

    assert problems(store) == []


def test_a_change_of_what_was_sent_is_found(store: Store, run: Run) -> None:
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
