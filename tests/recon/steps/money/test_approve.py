from datetime import timedelta
from typing import Any

import pyotp
import pytest
from pydantic import SecretStr
from sqlalchemy import delete

from recon.model.errors import UsageError
from recon.steps.admin import verify
from recon.steps.approvals.people import withdraw
from recon.steps.approvals.verdicts import decisions_taken_back
from recon.steps.money.approve import approve, lapse, reject, waiting
from recon.steps.runtime.identity import identify
from recon.store.database.record import BEFORE_MONEY, changed_in
from recon.store.schema import endorsement
from tests.recon.steps.people import declared

pytestmark = pytest.mark.xdist_group("approvals")
"""They share what takes longer to make than to look at."""

ANNA, BEN, CARA = (pyotp.random_base32() for _ in range(3))
PEOPLE = (
    declared(
        anna="Anna Berg",
        ben="Ben Roy",
        limit="EUR = 100000, USD = 100000, GBP = 100000, JPY = 10000000, KWD = 100000",
        codes=True,
    )
    + declared(cara="Cara Lim", limit="EUR = 1")
    + declared(dan="Dan Orr", role="reviewer")
)


def ask(merchant):
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    merchant.configure("merchants.toml", "auto_approve = false\n")
    merchant.variables |= {"CODE_ANNA": ANNA, "CODE_BEN": BEN}
    wanted = [one for one in merchant.payments("authorised") if one.currency == "EUR"][:3]
    rows = [merchant.order(one, status="paid", action="capture") for one in wanted]
    merchant.drop("orders.csv", *rows)
    merchant.move_money()


@pytest.fixture
def asked(begun):
    return begun(ask)


@pytest.fixture
def environment(asked):
    with asked.environment() as opened:
        yield opened


def code_of(secret, asked):
    return SecretStr(pyotp.TOTP(secret).at(int(asked.now.timestamp()) + 1))


def person(name, environment, asked):
    secrets = {"anna": ANNA, "ben": BEN}
    code = code_of(secrets[name], asked) if name in secrets else None
    return identify(name, code=code, environment=environment)


def say(environment, asked, *names, digest="", only=None):
    """Whether the list may go after each one's yes; `digest`: not of what waits now."""
    meant = digest or waiting(environment, only=only).approvals.digest
    terms: Any = {"environment": environment, "only": only}
    untils = [approve(meant, person=person(n, environment, asked), **terms)[1] for n in names]
    assert all(until is None or until > asked.now for until in untils)
    return [until is not None for until in untils]


def test_a_changed_list_voids_the_first_word(environment, asked):
    found = waiting(environment).approvals
    say(environment, asked, "anna")
    gone = found.items[0].instruction_id
    nay = person("dan", environment, asked)
    rejected = reject([gone], person=nay, reason="not meant", environment=environment)

    assert rejected == (1, ("Anna Berg",))
    with pytest.raises(UsageError, match="something changed since you looked"):
        say(environment, asked, "ben", digest=found.digest)
    asked.move_money()
    assert asked.effects() == []


def test_a_first_word_about_what_was_withdrawn_since_completes_nothing(environment, asked):
    found = waiting(environment).approvals
    say(environment, asked, "anna")
    gone = found.items[0].instruction_id
    withdraw(gone, by="dan", reason="not meant", environment=environment)

    with pytest.raises(UsageError, match="something changed since you looked"):
        say(environment, asked, "ben", digest=found.digest)
    assert waiting(environment).first_by == ""
    assert asked.instruction_states() == {"planned": 2, "withdrawn": 1}


def test_a_sum_beyond_the_limit_is_refused(environment, asked):
    say(environment, asked, "cara")

    with pytest.raises(UsageError, match="limit of Cara Lim"):
        say(environment, asked, "dan")
    assert say(environment, asked, "anna") == [True]


def unendorsed(environment):
    with environment.store.reading() as connection:
        return [
            *verify.unendorsed(connection, environment=environment),
            *changed_in(connection, BEFORE_MONEY),
        ]


def test_who_would_leave_nobody_behind_is_told_before(asked):
    people = PEOPLE.replace("limit = { EUR = 100000", "limit = { EUR = 1")
    (asked.folder / "config" / "approvers.toml").write_text(people)
    with asked.environment() as opened:
        with pytest.raises(UsageError, match="after Dan Orr nobody would be left"):
            say(opened, asked, "dan")
        assert waiting(opened).first_by == ""


def test_nobody_completes_a_yes_that_was_taken_back(environment, asked):
    """Also not where whoever has the tables takes the withdrawal away: no words count then."""
    digest = waiting(environment).approvals.digest
    say(environment, asked, "anna")
    asked.now += timedelta(minutes=1)
    decisions_taken_back(digest, person=person("anna", environment, asked))
    assert waiting(environment).first_by == ""
    asked.as_owner(delete(endorsement).where(endorsement.c.kind == "taken_back"))
    say(environment, asked, "dan")
    asked.move_money()

    assert asked.effects() == []
    assert any("endorsement 2 is missing" in each for each in unendorsed(environment))


def test_a_night_sends_nothing_on_an_approval_that_ran_out(environment, asked):
    say(environment, asked, "anna", "ben")
    asked.now += timedelta(days=5)
    asked.move_money()

    assert asked.effects() == []
    assert asked.instruction_states() == {"planned": 3}


def test_a_newer_approval_keeps_what_an_older_one_lost(environment, asked):
    """What ran out and was approved again goes."""
    for days in (5, 0):
        say(environment, asked, "anna", "ben")
        asked.now += timedelta(days=days)
        assert lapse(environment) == (3 if days else 0)
    asked.move_money()

    assert asked.instruction_states() == {"confirmed": 3}


def test_without_a_secret_the_history_says_so(environment, asked):
    assert person("cara", environment, asked).as_text == "Cara Lim (no code proved who it was)"


ONE_OF_TWO = "one of two must be an approver who may"
BEYOND = "the list sums to more EUR than the limit of"
WITHOUT_BEN = PEOPLE.replace("[approvers.ben]", "[approvers.bea]").replace("Ben Roy", "Bea Roy")


@pytest.mark.parametrize(
    ("people", "why"),
    [
        (WITHOUT_BEN, "Ben Roy approved it, whom approvers.toml does not declare any more"),
        (
            PEOPLE.replace("[approvers.anna]", "[approvers.ann]").replace("Anna Berg", "Ann Berg"),
            "Anna Berg approved it, whom approvers.toml does not declare any more",
        ),
        (
            PEOPLE.replace('Berg"', 'Berg"\nrole = "reviewer"').replace(
                'Roy"', 'Roy"\nrole = "reviewer"'
            ),
            f"{ONE_OF_TWO}: Anna Berg is a reviewer; Ben Roy is a reviewer",
        ),
        (
            PEOPLE.replace("limit = { EUR = 100000", "limit = { EUR = 1"),
            f"{ONE_OF_TWO}: {BEYOND} Anna Berg (1); {BEYOND} Ben Roy (1)",
        ),
    ],
    ids=["the second left", "the first left", "reviewers now", "a lower limit"],
)
def test_the_word_of_who_may_not_any_more_sends_nothing(environment, asked, people, why):
    """Who may let money go is asked once more before it goes."""
    say(environment, asked, "anna", "ben")
    (asked.folder / "config" / "approvers.toml").write_text(people)
    asked.move_money()

    with asked.environment() as opened:
        held = {item.hold for item in waiting(opened).approvals.items}
    assert asked.effects() == []
    assert asked.instruction_states() == {"planned": 3}
    assert held == {f"its approval counts no more: {why}; approve it again"}


def declare(asked, name, *, old="", new):
    path = asked.folder / "config" / name
    path.write_text((path.read_text() if path.exists() else "").replace(old, "") + new)


def test_what_waits_for_people_goes_by_no_rule_that_came_later(asked):
    declare(asked, "merchants.toml", old="auto_approve = false", new="auto_approve = true\n")
    declare(asked, "limits.toml", new="[limits.EUR]\napproved_by_rule = 100000\n")
    asked.move_money()

    assert asked.effects() == []
    assert asked.instruction_states() == {"planned": 3}


@pytest.mark.parametrize("bound", ["night", "day"])
def test_a_limit_that_was_tightened_after_both_words_holds(asked, bound):
    with asked.environment() as opened:
        say(opened, asked, "anna", "ben")
    declare(asked, "limits.toml", new=f"[limits.EUR]\n{bound} = 0.01\n")
    asked.move_money()

    assert asked.effects() == []
    assert asked.instruction_states() == {"approved": 3}
