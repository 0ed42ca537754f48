import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyotp
import pytest
from pydantic import SecretStr

from recon.desk.held_keys import make_keys
from recon.model.errors import UsageError
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import SET_ASIDE, agreed, identify, waiting_words

ANNA, BEN = (pyotp.random_base32() for _ in range(2))
WHY = "looked at it for an hour"
PEOPLE = """
[approvers.anna]
name = "Anna Berg"
code_secret_env = "CODE_ANNA"
[approvers.ben]
name = "Ben Roy"
code_secret_env = "CODE_BEN"
[approvers.cara]
name = "Cara Lim"
[approvers.dan]
name = "Dan Orr"
role = "reviewer"
[approvers.eve]
name = "Eve Lund"
role = "reviewer"
"""


@pytest.fixture
def environment(merchant: Any) -> Iterator[Environment]:
    """An environment with four people, two of whom have codes."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    merchant.variables |= {"CODE_ANNA": ANNA, "CODE_BEN": BEN}
    with merchant.environment() as opened:
        yield opened


def say(name: str, environment: Environment, *, subject: str = "one", reason: str = WHY) -> str:
    """One person's word, with the current code where there is one."""
    now = int(environment.clock().timestamp())
    secret = {"anna": ANNA, "ben": BEN}.get(name)
    code = SecretStr(pyotp.TOTP(secret).at(now)) if secret else None
    person = identify(name, code=code, environment=environment)
    with environment.store.writing() as connection:
        return agreed(connection, SET_ASIDE, subject=subject, reason=reason, person=person)


def test_the_word_of_who_left_is_no_half(environment: Environment, merchant: Any) -> None:
    """A first word of somebody who is not declared any more waits for nobody."""
    say("anna", environment)
    left = PEOPLE.replace("[approvers.anna]", "[approvers.ann]").replace("Anna Berg", "Ann Berg")
    (merchant.folder / "config" / "approvers.toml").write_text(left)
    with merchant.environment() as later:
        assert waiting_words(later) == []
        assert say("ben", later) == ""
        assert [word.by.by for word in waiting_words(later)] == ["Ben Roy"]


def test_two_different_people_agree(environment: Environment, merchant: Any) -> None:
    """The first word waits, the second completes it, and the history has both."""
    assert say("anna", environment) == ""
    assert [(one.by.by, one.reason) for one in waiting_words(environment)] == [("Anna Berg", WHY)]
    assert say("ben", environment) == "Anna Berg and Ben Roy"
    assert waiting_words(environment) == []
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        found = connection.execute(
            "SELECT event FROM history WHERE entity = 'agreement' ORDER BY sequence"
        ).fetchall()
    assert found == [("first",), ("complete",)]


def test_the_second_word_is_about_the_same_thing(environment: Environment) -> None:
    """A word about something else is a first word of its own."""
    assert [say("anna", environment), say("ben", environment, subject="two")] == ["", ""]


@pytest.mark.parametrize(("first", "second"), [("cara", "cara"), ("dan", "dan"), ("dan", "eve")])
def test_who_cannot_be_the_second(environment: Environment, first: str, second: str) -> None:
    """Whoever spoke first, or a second reviewer: one of the two decides about money."""
    say(first, environment)

    with pytest.raises(UsageError, match=r"second person must say|approver"):
        say(second, environment)
    assert len(waiting_words(environment)) == 1


@pytest.mark.parametrize(("first", "second"), [("cara", "dan"), ("dan", "cara")])
def test_an_approver_and_a_reviewer_agree_in_any_order(
    environment: Environment, first: str, second: str
) -> None:
    """Neither order shuts the other person out."""
    assert say(first, environment) == ""
    both = say(second, environment)
    assert both.startswith({"cara": "Cara Lim", "dan": "Dan Orr"}[first])
    assert both.count("Cara Lim") == both.count("Dan Orr") == 1


def test_a_first_word_ends_with_the_next_business_day(
    environment: Environment, merchant: Any
) -> None:
    """What nobody confirmed in time is said anew, and the history tells that it ran out."""
    say("cara", environment)
    merchant.wait(hours=24 * 4)

    assert waiting_words(environment) == []
    assert say("ben", environment) == ""
    assert [one.by.by for one in waiting_words(environment)] == ["Ben Roy"]


@pytest.mark.parametrize("reason", ["", "short", "x" * 301])
def test_an_override_says_why(environment: Environment, reason: str) -> None:
    """Without a sentence that can be understood later nothing is noted."""
    with pytest.raises(UsageError, match="--reason"):
        say("cara", environment, reason=reason)
    assert waiting_words(environment) == []


def test_towards_a_live_gateway_a_word_needs_a_code(merchant: Any) -> None:
    """A name alone ends no stop of real money; a current code does."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    make_keys(key := merchant.folder / "desk.key", public=merchant.folder / "desk.pub")
    merchant.variables |= {
        "CODE_ANNA": ANNA,
        "CODE_BEN": BEN,
        "RECON_DESK_KEY_FILE": str(key),
        "RECON_GATEWAY_BASE_URL": "https://gateway.example",
    }
    with merchant.environment() as environment:
        with pytest.raises(UsageError, match="one-time code only"):
            say("cara", environment)
        assert [say("anna", environment), say("ben", environment)] == [
            "",
            "Anna Berg and Ben Roy",
        ]
