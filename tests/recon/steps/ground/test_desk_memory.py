"""Words that were taken out of the database: the desk remembers that it gave them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete

from recon.desk.endorsement import Kind
from recon.model.errors import UsageError
from recon.steps.ground.desk_memory import go_on_restored
from recon.steps.ground.endorsed import note_beginning
from recon.steps.ground.environment import Environment
from recon.steps.money.approve import waiting
from recon.steps.people.at_desk import say
from recon.store.database.history import Event, append
from recon.store.money.endorsement_rows import Endorsed
from recon.store.people.approval_rows import Word, save_release
from recon.store.schema import endorsement
from tests.recon.steps.ground.test_endorsed import keyed, wait_for_two

__all__ = ["keyed"]


def speak(environment: Environment, name: str) -> None:
    """The yes of one person to all that waits."""
    body = {"list": waiting(environment).wanted.digest}
    say("approve", body, who=(name, None), environment=environment)


def forge_release(environment: Environment) -> None:
    """Two names in table and history, and a desk that is said to be new after them."""
    word = Word("Jo Ahn", authenticated=True, at=environment.clock())
    with environment.store.writing() as connection:
        for name in ("Jo Ahn", "Kim Bell"):
            save_release(connection, "r1", reason="for me", word=replace(word, by=name))
        append(connection, [Event("desk", "desk", "introduced", {})], at=environment.clock())


def release_problem(environment: Environment) -> str:
    """Why the forged release does not count."""
    with environment.store.reading() as connection:
        return Endorsed(environment.desk).release_problem(connection, "r1")


def test_nobody_begins_the_desk_anew(begun: Callable[[Any], Any], keyed: dict[str, str]) -> None:
    """Who takes all words away and says that the desk is new is noticed by the next one."""
    merchant = begun(wait_for_two)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        speak(environment, "jo")
        forge_release(environment)
        merchant.as_owner(delete(endorsement))
        with pytest.raises(UsageError, match="the database lacks it"):
            speak(environment, "kim")
        assert go_on_restored(environment) == 1
        assert go_on_restored(environment) == 0
        with environment.store.reading() as connection:
            assert list(Endorsed(environment.desk).words(connection)) == []


def test_a_desk_that_began_begins_no_second_time(
    begun: Callable[[Any], Any], keyed: dict[str, str]
) -> None:
    """Where it says at its start that nothing is older, nobody says so later."""
    merchant = begun(wait_for_two)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        with environment.store.writing() as connection:
            assert note_beginning(connection, environment=environment, always=True) == 0
        forge_release(environment)
        speak(environment, "jo")
        assert "for nobody" in release_problem(environment)
        with environment.store.writing() as connection:
            assert note_beginning(connection, environment=environment, always=True) == 0
            (first, _) = Endorsed(environment.desk).words(connection)
    assert (first.kind, first.says) == (Kind.BEGINNING, {"sequence": "0"})


def test_the_newest_word_is_missed_too(begun: Callable[[Any], Any], keyed: dict[str, str]) -> None:
    """A deleted rejection leaves no gap in the numbers; the desk gives its number to nobody."""
    merchant = begun(wait_for_two)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        ids = [one.instruction_id for one in waiting(environment).wanted.items]
        speak(environment, "jo")
        no = {"instruction_ids": ids, "reason": "not meant"}
        say("reject", no, who=("kim", None), environment=environment)
        merchant.as_owner(delete(endorsement).where(endorsement.c.sequence == 2))
        with pytest.raises(UsageError, match="signed word 2"):
            say("reject", no, who=("jo", None), environment=environment)
