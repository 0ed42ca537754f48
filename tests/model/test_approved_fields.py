"""What was approved is what is sent: a table that somebody changed, limits that became tighter."""

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from played_people import look

from recon.config.limits import Limits
from recon.model.errors import ReconError
from recon.model.nights import Mode
from recon.model.terms import InstructionKind

CHANGES = (
    "amount = 900",
    "transaction_id = 'C-1', order_no = 'C-1'",
    "kind = 'cancel'",
    "currency = 'USD'",
)
"""What a person with a database client may set, past the product."""
TIGHT = {"approved_by_rule": Decimal(5)}


def _changed(world, change):
    world.store.looking.execute(
        f"UPDATE instruction SET {change} WHERE state IN ('planned', 'approved')"  # noqa: S608
    )


def _sent(world):
    return {(one.kind, one.transaction_id, one.amount) for one in world.gateway.effects()}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before the night", "within the night"])
def test_a_field_changed_after_approval_is_not_sent(world_of, change, when):
    """Somebody writes into the table before the claim: what was approved leaves, or nothing."""
    world = world_of(1)
    world.instruct(InstructionKind.REFUND, "C-0", amount=250)
    world.gateway.deaf = when == "before the night"
    if world.gateway.deaf:
        world.night()
        _changed(world, change)
    else:
        world.act_beside(lambda: _changed(world, change), at="before claim")
    world.gateway.deaf = False
    with suppress(ReconError):
        world.night()

    assert _sent(world) <= {("refund", "C-0", 250)}


@pytest.mark.parametrize("tightened", ["a limit", "no rule"])
@pytest.mark.parametrize("first", ["dry", "deaf"])
def test_limits_that_became_tighter_hold_at_the_claim(world_of, first, tightened):
    """What a dry run or an earlier night approved by rule is looked at again before it is sent."""
    world = world_of(2)
    world.instruct(InstructionKind.REFUND, "C-0", amount=1_000)
    world.gateway.deaf = first == "deaf"
    world.night(mode=Mode.DRY_RUN if first == "dry" else Mode.LIVE)
    world.gateway.deaf = False
    if tightened == "a limit":
        world.limit(Limits.model_validate({"limits": {"EUR": TIGHT}}))
    else:
        world.approve_by_rule(is_allowed=False)
    world.pass_time(timedelta(days=1))
    world.night()

    assert _sent(world) == set()
    look(world)
    world.pass_time(timedelta(hours=1))
    world.night()
    assert _sent(world) == {("refund", "C-0", 1_000)}


def test_a_sum_that_one_night_may_approve_holds_over_a_dry_run(world_of):
    """A dry run grants nothing: three refunds of 4.00 under 10.00 a night, two at most."""
    world = world_of(3)
    for place in ("C-0", "C-1", "C-2"):
        world.instruct(InstructionKind.REFUND, place, amount=400)
    world.night(mode=Mode.DRY_RUN)
    bound = {"approved_by_rule_night": Decimal(10)}
    world.limit(Limits.model_validate({"limits": {"EUR": bound}}))
    world.night()

    assert len(_sent(world)) == 2


def test_a_payment_that_was_released_from_review_is_captured(world_of):
    """The review that we released explains what the gateway shows and holds no capture."""
    world = world_of(4)
    world.instruct(InstructionKind.REVIEW, "R-0", amount=1_000)
    world.night()
    world.pass_time(timedelta(days=1))
    world.instruct(InstructionKind.CAPTURE, "R-0", amount=1_000)
    world.night()

    assert _sent(world) == {("review", "R-0", 1_000), ("capture", "R-0", 1_000)}
    assert world.problems(ended=True) == []
