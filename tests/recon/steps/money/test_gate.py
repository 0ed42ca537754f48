from dataclasses import replace

import pytest
from sqlalchemy import delete

from recon.desk.held_keys import LastSignature, Memory
from recon.model.nights import Mode
from recon.proof import totals_in_sql
from recon.proof.totals_in_sql import BEFORE_MONEY
from recon.steps.money.gate import allow_sending, gate_of, sending_stopped, stop_sending
from recon.steps.night import whole_night as night
from recon.steps.runtime.identity import identify, name_of
from recon.store.money.sending_rows import turn_switch
from recon.store.nights import runs
from recon.store.schema import endorsement
from tests.recon.steps.approvals.test_verdicts import held_because, lift, not_proven
from tests.recon.steps.conftest import UP_TO_COMPARE, capture, plain_workbooks


def settled(merchant):
    """What the step that sends said."""
    return next(step.sentence for step in merchant.told if step.step == "settle")


def closed_because(merchant, environment):
    with night.hold(merchant.request, environment=environment) as run_id:
        with environment.store.reading() as connection:
            run = runs.get(connection, run_id)
        return gate_of(run, environment=environment).closed_because


@pytest.mark.parametrize("name", [BEFORE_MONEY[0], BEFORE_MONEY[-1]])
def test_money_waits_where_its_proof_died_and_leaves_once_with_the_next_one(
    merchant, killed_at, name
):
    killed = killed_at(totals_in_sql._text(name).partition("\n")[0])
    capture(merchant)
    merchant.move_money()

    assert len(killed) == 1
    assert merchant.effects() == []
    assert merchant.instruction_states() == {"approved": 1}
    assert f"{name}: the process that asks DuckDB ended (SIGKILL)" in settled(merchant)

    merchant.move_money()
    assert [row["operation"] for row in merchant.effects()] == ["capture"]


@pytest.mark.parametrize(
    ("spoilt", "red"),
    [
        ("UPDATE order_file SET rows_read = rows_read + 1", "T1 orders orders.csv: read"),
        (
            "UPDATE order_file SET rows_read = rows_read + 1, rows_accepted = rows_accepted + 1",
            "T2 orders.csv (1) stored",
        ),
        ("UPDATE answer_part SET answered = 0", "T3 keys asked"),
        ("UPDATE instruction SET amount = 2 * amount", "T9 payments out of bounds: 1 is not 0"),
    ],
)
def test_what_does_not_tie_before_money_lets_nothing_leave(merchant, spoilt, red):
    """Whatever else closes the gate: a capture of the night before, and one that was to leave."""
    capture(merchant)
    merchant.move_money()
    merchant.inbox.joinpath("orders.csv").unlink()
    another = merchant.payments("authorised")[-1]
    merchant.drop("more.csv", merchant.order(another, status="paid", action="capture"))
    names = iter(UP_TO_COMPARE)
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):

        def walk(*steps):
            night.walk(
                steps,
                run_id,
                environment=environment,
                workbooks=plain_workbooks(),
                progress=merchant.told.append,
            )

        walk(next(names), next(names))
        merchant.as_owner(spoilt)
        merchant.told = []
        walk(next(names))

    assert len(merchant.effects()) == 1
    assert red in settled(merchant)


def test_a_word_that_the_desk_gave_and_the_database_lacks_closes_the_gate(merchant):
    with merchant.environment() as environment:
        published = merchant.folder / "published"
        Memory(published).save(name_of(environment.store), LastSignature(3, "signed"))
        desk = replace(environment.desk, published=published)
        assert closed_because(merchant, environment) == ""
        told = closed_because(merchant, replace(environment, desk=desk))
    assert "signed decision 3, and the database lacks it" in told


def test_a_dry_run_says_that_sending_is_stopped(merchant):
    with merchant.environment() as environment:
        stop_sending(by="Ann", reason="odd orders", environment=environment)
    capture(merchant)
    merchant.move_money(mode=Mode.DRY_RUN)

    assert "dry run, would send nothing" in settled(merchant)
    assert "sending stopped: sending was stopped by Ann" in settled(merchant)


def test_sending_that_nobody_allowed_again_closes_the_gate(merchant):
    """The switch says that it may, the history binds that, and two people never said so."""
    with merchant.environment() as environment:
        stop_sending(by="Ann", reason="odd orders", environment=environment)
        with environment.store.writing() as connection:
            turn_switch(connection, stop=False, by="Ann", reason="fine", at=environment.clock())
        assert "sending was allowed again, but" in closed_because(merchant, environment)
        assert sending_stopped(environment) is None


def test_a_word_that_was_taken_out_of_the_database_closes_the_gate(merchant):
    people = "".join(f'[approvers.{one}]\nname = "{one} B"\n' for one in ("bob", "cleo"))
    (merchant.folder / "config" / "approvers.toml").write_text(people)
    with merchant.environment() as environment:
        stop_sending(by="Ann", reason="odd orders", environment=environment)
        for name in ("bob", "cleo"):
            person = identify(name, code=None, environment=environment)
            allow_sending(person=person, reason="looked at them", environment=environment)
        stop_sending(by="Ann", reason="odd again", environment=environment)
        assert closed_because(merchant, environment) == ""
        merchant.as_owner(delete(endorsement))
        assert "endorsement 1 is gone" in closed_because(merchant, environment)


def test_a_release_whose_words_are_gone_holds_what_gives_money(merchant):
    run_id = not_proven(merchant)
    for name in ("anna", "ben"):
        lift(name, run_id, merchant)
    assert held_because(run_id, merchant) == ""
    merchant.as_owner(delete(endorsement))

    assert "the night of 2026-11-20 is NOT PROVEN" in held_because(run_id, merchant)
