from dataclasses import replace

import pytest

from recon.model.errors import UsageError
from recon.model.nights import Mode
from recon.model.terms import InstructionState
from recon.steps.admin.verify import verify
from recon.steps.approvals.verdicts import decisions_taken_back, release, resolve
from recon.steps.money.gate import gate_of
from recon.steps.runtime.identity import identify
from recon.store.money import instruction_rows
from recon.store.nights import runs
from tests.recon.steps.conftest import UNREAD
from tests.recon.steps.people import declared

pytestmark = pytest.mark.xdist_group("verdicts")
"""They share what takes longer to make than to look at."""

PEOPLE = declared(anna="Anna Berg", ben="Ben Roy") + declared(dan="Dan Orr", role="reviewer")
SEEN = "seen in the portal under T-4711"


def doubt(merchant):
    """One refund whose answer never came."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    one = next(each for each in merchant.payments("captured") if each.currency == "EUR")
    merchant.drop("refunds.csv", merchant.order(one, status="refunded", action="refund"))
    merchant.fault({"operation": "refund", "kind": "reset", "when": "after"})
    merchant.night()
    assert merchant.instruction_states() == {"in_doubt": 1}


@pytest.fixture
def doubtful(begun):
    """A merchant with one refund whose answer never came."""
    return begun(doubt)


@pytest.fixture
def environment(doubtful):
    """The open environment of that merchant."""
    with doubtful.environment() as opened:
        yield opened


def the_doubt(environment):
    """The id of the one instruction."""
    with environment.store.reading() as connection:
        (found,) = instruction_rows.find(connection, state=tuple(InstructionState))
    return found.instruction_id


def say(name, verdict, environment):
    """One person's verdict on the doubt."""
    person = identify(name, code=None, environment=environment)
    return resolve(the_doubt(environment), verdict=verdict, evidence=SEEN, person=person).decided


def test_a_clock_that_was_put_forward_brings_no_verdict_sooner(environment, doubtful):
    """The wait before `not_applied` is counted by the clock that nobody can set."""
    running = environment.uptime()
    doubtful.wait(hours=1)

    with pytest.raises(UsageError, match="may still be carried out"):
        say("anna", "not_applied", replace(environment, uptime=lambda: running))


def test_a_doubt_without_a_clock_starts_one_when_somebody_asks(environment, doubtful):
    """On another machine than the night's nobody knows how old it is: the wait begins anew."""
    doubtful.boot_id = "a person's machine"
    doubtful.wait(hours=1)
    with pytest.raises(UsageError, match="may still be carried out"):
        say("anna", "not_applied", environment)

    doubtful.wait(hours=1)
    assert [say(name, "not_applied", environment) for name in ("anna", "ben")] == [False, True]


WITHOUT_ANNA = PEOPLE.replace("[approvers.anna]", "[approvers.ann]").replace("Anna Berg", "Ann Li")
BEN_REVIEWS = PEOPLE.replace('name = "Ben Roy"', 'name = "Ben Roy"\nrole = "reviewer"')
BOTH_REVIEW = BEN_REVIEWS.replace('Berg"', 'Berg"\nrole = "reviewer"') + (
    '[approvers.cara]\nname = "Cara Lim"\n'
)
EXPLAINED = "the missing row is explained"


def not_proven(merchant):
    """The run of a night that is NOT PROVEN."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    merchant.night()
    with merchant.environment() as environment, environment.store.writing() as connection:
        (night,) = runs.finished(connection)
        runs.note_result(connection, night.run_id, values={"verdict": "NOT PROVEN"})
    return str(night.run_id)


def lift(name, run_id, merchant):
    """One person releases the night; True when it was the second word."""
    with merchant.environment() as environment:
        person = identify(name, code=None, environment=environment)
        return release(run_id, reason=EXPLAINED, person=person)


def held_because(run_id, merchant):
    """Why the gate would hold refunds now."""
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            run = runs.get(connection, run_id)
        gate = gate_of(run, environment=environment)
    return str(gate.held_because)


@pytest.mark.parametrize(
    ("people", "why", "again"),
    [
        (WITHOUT_ANNA, "Anna Berg released it, whom approvers.toml does not declare", "ann"),
        (BOTH_REVIEW, "Anna Berg is a reviewer; Ben Roy is a reviewer", "cara"),
    ],
    ids=["the first left", "both are reviewers now"],
)
def test_a_release_of_who_may_not_any_more_holds_on(merchant, people, why, again):
    """Who released a night is asked once more before money goes, and two others may do it anew."""
    run_id = not_proven(merchant)
    for name in ("anna", "ben"):
        lift(name, run_id, merchant)
    assert held_because(run_id, merchant) == ""
    (merchant.folder / "config" / "approvers.toml").write_text(people)

    assert why in held_because(run_id, merchant)
    assert [lift(name, run_id, merchant) for name in ("ben", again)] == [False, True]
    assert held_because(run_id, merchant) == ""


def test_a_release_is_taken_back_until_it_counts(merchant):
    """And given anew, approver first and reviewer second."""
    run_id = not_proven(merchant)
    merchant.night(mode=Mode.DRY_RUN)  # which lifts nothing
    lift("ben", run_id, merchant)
    assert held_because(run_id, merchant)
    with merchant.environment() as environment:
        person = identify("ben", code=None, environment=environment)
        decisions_taken_back(run_id, person=person)
    assert [lift(name, run_id, merchant) for name in ("anna", "dan")] == [False, True]
    assert held_because(run_id, merchant) == ""
    with merchant.environment() as environment:
        person = identify("dan", code=None, environment=environment)
        with pytest.raises(UsageError, match="nobody takes it back alone"):
            decisions_taken_back(run_id, person=person)


def test_a_night_that_was_called_proven_later_holds_on(doubtful):
    """A verdict that the night's own login changed closes the next night's gate, by name."""
    with doubtful.environment() as environment:
        with environment.store.reading() as connection:
            (night,) = runs.finished(connection)
            run = runs.get(connection, night.run_id)
        assert gate_of(run, environment=environment).closed_because == ""
        with environment.store.writing() as connection:
            other = "RECONCILED" if run.verdict != "RECONCILED" else "BREAKS OPEN"
            runs.note_result(connection, night.run_id, values={"verdict": other})
        told = gate_of(run, environment=environment).closed_because
        found = verify(environment, reading=UNREAD).problems
    assert f"run {night.run_id}: its verdict is {other}, bound was" in told
    assert any(one in told for one in found)
