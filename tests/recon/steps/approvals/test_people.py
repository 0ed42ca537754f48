from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from recon.model.errors import UsageError
from recon.steps.approvals import people
from recon.steps.night import whole_night as night
from recon.store.schema import run


def _status(merchant):
    with merchant.environment() as environment:
        return [
            (str(run.business_date), [(one.what, one.currency, one.amount) for one in attention])
            for run, attention in people.status(environment)
        ]


def test_doubt_comes_before_what_only_waits(merchant):
    """Money in doubt stands above instructions that were not sent, with amount and currency."""
    capture = merchant.payments("authorised")[0]
    paid = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    merchant.drop(
        "orders.csv",
        merchant.order(paid, status="cancelled", action="cancel"),
        merchant.order(capture, status="paid", action="capture"),
    )
    merchant.fault({"operation": "capture", "kind": "garbage", "when": "after"})
    merchant.night()
    ((date, listed),) = _status(merchant)

    assert date == "2026-11-20"
    assert [what for what, _, _ in listed] == ["capture in doubt", "cancel not sent"]
    assert listed[1][1:] == ("EUR", int(paid.amount.replace(".", "")))


def test_a_repeat_waits_for_a_person_with_its_reason(merchant):
    """An equal refund from another file is not sent, and the list says which one it repeats."""
    paid = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    refund = merchant.order(paid, status="paid", action="refund", action_amount="1.00")
    merchant.drop("orders-1.csv", refund)
    merchant.drop("orders-2.csv", refund, merchant.order(merchant.payments("captured")[-1]))
    merchant.night()
    with merchant.environment() as environment:
        ((_, attention),) = people.status(environment)

    assert [one.what for one in attention] == ["refund waiting for approval"]
    assert "orders-1.csv" in attention[0].next_step
    assert attention[0].next_step.lower().count("two people approve it") == 1
    assert "`recon approve`" in attention[0].next_step
    assert len(merchant.effects()) == 1


def test_what_was_sent_cannot_be_withdrawn(merchant):
    """An instruction in doubt or settled is past taking back, and an unknown one is named."""
    capture = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(capture, status="paid", action="capture"))
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after"})
    merchant.night()
    with merchant.environment() as environment:
        ((_, (doubtful,)),) = people.status(environment)
        for instruction_id, decisions in (
            (doubtful.instruction_id, "is in doubt: it may have taken effect"),
            ("none", "no instr"),
        ):
            with pytest.raises(UsageError, match=decisions):
                people.withdraw(instruction_id, by="Ada", reason="x", environment=environment)

    assert merchant.instruction_states() == {"in_doubt": 1}


@pytest.mark.parametrize(("by", "reason"), [("", "why"), ("Ada", " ")])
def test_a_withdrawal_needs_a_name_and_a_reason(merchant, by, reason):
    """Without a name or a reason nothing is withdrawn."""
    with merchant.environment() as environment, pytest.raises(UsageError, match="--as"):
        people.withdraw("i", by=by, reason=reason, environment=environment)


def _standing(merchant):
    with merchant.environment() as environment:
        ((run, _),) = people.status(environment)
        return people.status_of(run, environment=environment)


def test_a_dead_night_is_told_from_a_working_one(merchant):
    """A run whose process is gone is shown as dead with what to do; a living one as working."""
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        working = _standing(merchant)
    with merchant.environment() as environment, environment.store.writing() as connection:
        connection.execute(update(run).where(run.c.run_id == run_id).values(status="active"))

    assert working.startswith("working, process")
    assert "start the night again" in _standing(merchant)


def test_an_authorisation_that_ends_soon_is_named_first(merchant):
    """What lapses comes before everything else, with the instant it ends."""
    path = merchant.folder / "config" / "merchants.toml"
    path.write_text(path.read_text() + "auto_approve = false\n")
    dated = sorted(merchant.payments("authorised"), key=lambda one: one.ordered_at)
    fresh, old = dated[-1], dated[0]
    rows = [merchant.order(one, status="paid", action="capture") for one in (fresh, old)]
    merchant.drop("orders.csv", *rows)
    merchant.night()
    merchant.now = datetime.fromisoformat(old.ordered_at) + timedelta(days=6, hours=1)
    with merchant.environment() as environment:
        ((_, listed),) = people.status(environment)

    assert listed[0].order_no == old.order_no
    assert listed[0].lapses
    assert listed[0].next_step.startswith("The authorisation ends ")
    assert not listed[1].lapses


def test_a_night_that_holds_refunds_needs_two_people(merchant):
    """A NOT PROVEN night stands on the list with the command that releases it."""
    merchant.night()
    with merchant.environment() as environment:
        with environment.store.writing() as connection:
            connection.execute(update(run).values(verdict="NOT PROVEN"))
        ((_, listed),) = people.status(environment)

    assert listed[-1].what == "night not proven"
    assert "recon approve --hold" in listed[-1].next_step
