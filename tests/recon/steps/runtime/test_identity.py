import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyotp
import pytest
from pydantic import SecretStr

from recon.desk.endorsement import Kind
from recon.desk.held_keys import make_keys
from recon.model.errors import ConfigurationError, UsageError
from recon.steps.runtime.environment import (
    CLOCK_VARIABLE,
    environment_of,
    system_clock,
)
from recon.steps.runtime.identity import (
    WAIT_MAX,
    WRONG_CODES_MAX,
    decide,
    identify,
    names_of,
    waiting_decisions,
    waits_until,
)
from tests.recon.steps.people import declared

SECRET = pyotp.random_base32()


def declare(merchant, *, mode=384, secret=SECRET):
    """One person whose secret lies in a file."""
    path = merchant.folder / "anna.secret"
    path.write_text(secret)
    path.chmod(mode)
    (merchant.folder / "config" / "approvers.toml").write_text(
        f'[approvers.anna]\nname = "Anna Berg"\ncode_secret_file = "{path}"\n'
    )


def code_of(merchant, *, seconds=0):
    """The code of now, or of some seconds from now."""
    return SecretStr(pyotp.TOTP(SECRET).at(int(merchant.now.timestamp()) + seconds))


@pytest.mark.parametrize("seconds", [0, -30, 30])
def test_clocks_may_differ_by_one_step(merchant, seconds):
    """A code of the step before or after counts."""
    declare(merchant)
    merchant.now = merchant.now.replace(second=10)
    with merchant.environment() as environment:
        code = code_of(merchant, seconds=seconds)
        person = identify("anna", code=code, environment=environment)

    assert person.proven


@pytest.mark.parametrize(
    ("declared", "seconds", "error", "says"),
    [
        ({}, -120, UsageError, "not right"),
        ({"mode": 0o644}, 0, ConfigurationError, "0644"),
        ({"secret": "not base32 !"}, 0, ConfigurationError, "enrol again"),
    ],
    ids=["old", "open to others", "none"],
)
def test_what_is_no_current_code_of_a_private_secret_proves_nobody(
    merchant, declared, seconds, error, says
):
    declare(merchant, **declared)
    with merchant.environment() as environment, pytest.raises(error, match=says):
        identify("anna", code=code_of(merchant, seconds=seconds), environment=environment)


@pytest.mark.parametrize("days", [-400, -5, 5, 400])
def test_a_code_is_that_of_the_phone_whatever_date_the_sandbox_has(merchant, days):
    """The demo's nights have dates of their own; a phone, a used code and a wait have none."""
    declare(merchant)
    variables = {**merchant.variables, CLOCK_VARIABLE: str(days * 86_400)}
    with environment_of(variables, clock=system_clock) as environment:
        of_night = SecretStr(pyotp.TOTP(SECRET).at(environment.clock()))
        with pytest.raises(UsageError, match="not right"):
            identify("anna", code=of_night, environment=environment)
        shown = SecretStr(pyotp.TOTP(SECRET).at(system_clock()))
        person = identify("anna", code=shown, environment=environment)
        with pytest.raises(UsageError, match="used before"):
            identify("anna", code=shown, environment=environment)

    assert person.proven
    assert person.before.startswith("1 wrong codes were given in your name")
    assert abs(person.at - system_clock() - timedelta(days=days)) < timedelta(minutes=1)


def test_one_secret_under_two_names_proves_neither(merchant):
    """In a file of one and a variable of the other, written differently: one person is not two."""
    declare(merchant)
    people = merchant.folder / "config" / "approvers.toml"
    other = '\n[approvers.ben]\nname = "Ben Roth"\ncode_secret_env = "BENS"\n'
    people.write_text(people.read_text() + other)
    merchant.variables["BENS"] = f" {SECRET[:16].lower()} {SECRET[16:]}="
    with merchant.environment() as environment:
        for name in ("anna", "ben"):
            with pytest.raises(ConfigurationError, match="have the same secret"):
                identify(name, code=code_of(merchant), environment=environment)
    merchant.variables["BENS"] = pyotp.random_base32()
    with merchant.environment() as environment:
        person = identify("anna", code=code_of(merchant), environment=environment)

    assert person.proven


def test_tries_at_the_same_time_are_counted_one_by_one(merchant):
    """Sixty guesses at once are five: each is counted in the transaction that judges it."""
    declare(merchant)
    at = merchant.now  # it stands: sixty looks at the merchant's own clock are the wait of a minute
    with merchant.environment() as environment:
        at_once = replace(environment, clock=lambda: at, wall_clock=lambda: at)

        def guess(number):
            try:
                identify("anna", code=SecretStr(f"{number:06}"), environment=at_once)
            except UsageError as error:
                return str(error)
            return "right"

        with ThreadPoolExecutor(60) as pool:
            told = list(pool.map(guess, range(60)))

    assert sum("is not right" in one for one in told) == WRONG_CODES_MAX
    assert sum("wait, then try again" in one for one in told) == 60 - WRONG_CODES_MAX


def test_a_try_is_of_the_instant_at_which_its_turn_began(merchant):
    """Time is told within the turn: a try that waited for another is never older than that one."""
    declare(merchant)
    turns, memory = [], merchant.folder / "desk.memory"

    def wall_clock():
        with closing(sqlite3.connect(reported_within.desk.codes, timeout=0)) as other:
            with suppress(sqlite3.OperationalError):
                other.execute("BEGIN IMMEDIATE")
            turns.append(not other.in_transaction)
        return system_clock()

    with merchant.environment() as environment:
        reported_within = replace(
            environment, wall_clock=wall_clock, desk=replace(environment.desk, memory=memory)
        )
        with pytest.raises(UsageError, match="not right"):
            identify("anna", code=SecretStr("1"), environment=reported_within)

    assert turns == [True]


def test_wrong_codes_of_somebody_lock_nobody_else_out(merchant):
    """The wait is that of the login that guessed; the person speaks from theirs and hears of it."""
    declare(merchant)
    with merchant.environment() as environment:
        for _ in range(WRONG_CODES_MAX):
            with pytest.raises(UsageError, match="not right"):
                identify("anna", code=SecretStr("1"), environment=environment, origin="login 7")
        with pytest.raises(UsageError, match=r"came from here \(login 7\)"):
            identify("anna", code=code_of(merchant), environment=environment, origin="login 7")
        person = identify("anna", code=code_of(merchant), environment=environment, origin="login 8")

    assert person.before == "5 wrong codes were given in your name (login 7)"


def test_each_further_wrong_code_waits_longer():
    """One minute, then twice as long each time, never more than the longest."""
    at = datetime(2026, 11, 20, tzinfo=UTC)
    waits = [waits_until([at] * count) - at for count in range(1, 12)]

    assert waits[:8] == [timedelta(minutes=m) for m in (0, 0, 0, 0, 1, 2, 4, 8)]
    assert set(waits[8:]) == {WAIT_MAX}


ANNA, BEN = (pyotp.random_base32() for _ in range(2))
WHY = "looked at it for an hour"
PEOPLE = (
    declared(anna="Anna Berg", ben="Ben Roy", codes=True)
    + declared(cara="Cara Lim")
    + declared(dan="Dan Orr", eve="Eve Lund", role="reviewer")
)


@pytest.fixture
def environment(merchant):
    """An environment with four people, two of whom have codes."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    merchant.variables |= {"CODE_ANNA": ANNA, "CODE_BEN": BEN}
    with merchant.environment() as opened:
        yield opened


def say(name, environment, *, subject="one", reason=WHY):
    """One person's word, with the current code where there is one."""
    now = int(environment.clock().timestamp())
    secret = {"anna": ANNA, "ben": BEN}.get(name)
    code = SecretStr(pyotp.TOTP(secret).at(now)) if secret else None
    person = identify(name, code=code, environment=environment)
    with environment.store.writing() as connection:
        says = {"reason": reason}
        both = decide(connection, Kind.EXCLUDE_FILE, subject, person=person, says=says)
        return names_of(both) if both else ""


def test_the_word_of_who_left_is_no_half(environment, merchant):
    """A first word of somebody who is not declared any more waits for nobody."""
    say("anna", environment)
    left = PEOPLE.replace("[approvers.anna]", "[approvers.ann]").replace("Anna Berg", "Ann Berg")
    (merchant.folder / "config" / "approvers.toml").write_text(left)
    with merchant.environment() as later:
        assert waiting_decisions(later) == []
        assert say("ben", later) == ""
        assert [word.name for word in waiting_decisions(later)] == ["Ben Roy"]


def test_the_word_of_who_has_another_role_by_now_is_no_half(environment, merchant):
    """What a reviewer said counts for no approver later: it is said anew, for good."""
    say("dan", environment)
    risen = PEOPLE.replace('"Dan Orr"\nrole = "reviewer"', '"Dan Orr"')
    (merchant.folder / "config" / "approvers.toml").write_text(risen)
    with merchant.environment() as later:
        assert say("eve", later) == ""
    with merchant.environment() as again:
        assert [word.name for word in waiting_decisions(again)] == ["Eve Lund"]
        both = say("dan", again).replace(" (no code proved who it was)", "")
    assert both == "Eve Lund and Dan Orr"


def test_the_second_word_is_about_the_same_thing(environment):
    """A word about something else is a first word of its own."""
    assert [say("anna", environment), say("ben", environment, subject="two")] == ["", ""]


@pytest.mark.parametrize(("first", "second"), [("cara", "cara"), ("dan", "dan"), ("dan", "eve")])
def test_who_cannot_be_the_second(environment, first, second):
    """Whoever spoke first, or a second reviewer: one of the two decides about money."""
    say(first, environment)

    with pytest.raises(UsageError, match=r"second person must say|approver"):
        say(second, environment)
    assert len(waiting_decisions(environment)) == 1


@pytest.mark.parametrize(("first", "second"), [("cara", "dan"), ("dan", "cara")])
def test_an_approver_and_a_reviewer_agree_in_any_order(environment, first, second):
    """Neither order shuts the other person out."""
    assert say(first, environment) == ""
    both = say(second, environment)
    assert both.startswith({"cara": "Cara Lim", "dan": "Dan Orr"}[first])
    assert both.count("Cara Lim") == both.count("Dan Orr") == 1


def test_a_first_word_ends_with_the_next_business_day(environment, merchant):
    """What nobody confirmed in time is said anew, and the history tells that it ran out."""
    say("cara", environment)
    merchant.wait(hours=24 * 4)

    assert waiting_decisions(environment) == []
    assert say("ben", environment) == ""
    assert [one.name for one in waiting_decisions(environment)] == ["Ben Roy"]


@pytest.mark.parametrize("reason", ["", "short", "x" * 301])
def test_an_override_says_why(environment, reason):
    """Without a sentence that can be understood later nothing is noted."""
    with pytest.raises(UsageError, match="--reason"):
        say("cara", environment, reason=reason)
    assert waiting_decisions(environment) == []


def test_towards_a_live_gateway_a_word_needs_a_code(merchant):
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
