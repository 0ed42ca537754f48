"""Old and half words of people, brought back by whoever has the night's database login."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from recon.model.errors import GateClosedError
from recon.model.words import InstructionState
from recon.steps.ground.identity import identify
from recon.steps.money.approve import reject, waiting
from recon.steps.money.gate import allow_sending, gate_of, stop_sending
from recon.store.database.history import Event, append
from recon.store.money import endorsement_rows, instruction_rows, sending_rows
from recon.store.nights import runs
from recon.store.schema import endorsement, instruction
from tests.recon.steps.ground.test_endorsed import (
    BOTH,
    settled,
    wait_for_two,
    yes,
)

REJECTED = 3
"""The number of the rejection among the words of its test."""


def test_one_yes_is_one_movement(begun: Callable[[Any], Any]) -> None:
    """What was sent is not sent again under the same two words, whatever the tables say."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
    merchant.night()
    assert [row["amount"] for row in merchant.effects()] == ["1.00"]
    with merchant.environment() as environment, environment.store.writing() as connection:
        connection.execute(update(instruction).values(state="approved"))
        (item,) = instruction_rows.find(connection, state=(InstructionState.APPROVED,))
        told = {"from": "in_flight"}
        event = Event("instruction", item.instruction_id, "approved", told)
        append(connection, [event], at=environment.clock())
    merchant.move_money()

    assert [row["amount"] for row in merchant.effects()] == ["1.00"]
    assert "was confirmed" in settled(merchant)


def test_a_first_word_that_ran_out_is_no_half(begun: Callable[[Any], Any]) -> None:
    """A word of months ago and an honest first word of today are not two people who agreed."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")
        stop_sending(by="Jo", reason="looks wrong", environment=environment)
        why = "it was looked at"
        for name in ("jo", "kim"):
            person = identify(name, code=None, environment=environment)
            assert not allow_sending(person=person, reason=why, environment=environment)
            merchant.now += timedelta(days=9)
        with environment.store.writing() as connection:
            sending_rows.turn_switch(
                connection, stop=False, by=BOTH, reason=why, at=environment.clock()
            )
            words = endorsement_rows.Endorsed(environment.desk)
            assert "sending was allowed again, but" in words.start_problem(connection)


def test_a_word_that_was_taken_away_closes_the_gate(begun: Callable[[Any], Any]) -> None:
    """Between the words that are left a rejection may be missing: nothing goes by them."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        items = waiting(environment).wanted.items
        yes(environment, "jo", "kim")
        merchant.as_owner(update(instruction).values(state="planned"))
        kim = identify("kim", code=None, environment=environment)
        ids = [one.instruction_id for one in items]
        reject(ids, person=kim, reason="not meant", environment=environment)
        stop_sending(by="Jo", reason="looks wrong", environment=environment)
        allow_sending(person=kim, reason="it was looked at", environment=environment)
        merchant.as_owner(
            update(instruction).values(state="approved"),
            delete(endorsement).where(endorsement.c.sequence == REJECTED),
        )
        with environment.store.reading() as connection:
            words = endorsement_rows.Endorsed(environment.desk)
            assert list(words.row_problems(connection)) == []
            assert f"endorsement {REJECTED} is gone" in words.taken_away(connection)
            with pytest.raises(GateClosedError, match="is gone or not the desk's"):
                words.refuse_rows(connection, ids)
            run = runs.newest_live(connection, ("100042", "100042001"))
        assert run is not None
        with environment.store.writing() as connection:
            event = Event("instruction", ids[0], "approved", {"from": "planned"})
            append(connection, [event], at=environment.clock())
        assert gate_of(run, environment=environment).closed_because
