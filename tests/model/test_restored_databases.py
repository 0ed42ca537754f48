"""A backup put back, with and without what stands beside it, and two copies of one database."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

import pytest
from deliveries import Guise
from journal_checker import unwanted
from played_people import look, person_of, stop_sending, withdraw_any
from protocol_world import World

from recon.model.errors import ReconError
from recon.model.terms import InstructionKind
from recon.steps.money import gate
from recon.steps.money.gate import accept_restore

POINTS = ("behind the gate", "before claim", "before effect")
WHY = "the disk of the database failed"
Scenario = Callable[[World], int]
"""Plays in a world; how many requests left that should not have."""


def _later_night(world):
    world.pass_time(timedelta(days=1))
    with suppress(ReconError):
        world.night()


def _two_refunds(world, *, head):
    """Two refunds of one payment, a backup between them put back; requests after that.

    The gateway shows a payment that is refunded in part, as the backup knows it: no state tells.
    """
    world.instruct(InstructionKind.REFUND, "C-0", amount=250)
    world.night()
    backup = world.backup()
    world.instruct(InstructionKind.REFUND, "C-0", amount=400)
    _later_night(world)
    world.put_back(backup, head=head)
    before = world.gateway.requests
    assert before == 2
    for _ in range(2):
        _later_night(world)
    return world.gateway.requests - before


def _forgotten_word(world, *, act):
    """Somebody forbids what waits, and a backup from before is put back."""
    world.instruct(InstructionKind.REFUND, "C-0", amount=250)
    world.gateway.deaf = True
    world.night()
    backup = world.backup()
    act(world)
    world.put_back(backup, head=True)
    world.gateway.deaf = False
    _later_night(world)
    return world.gateway.requests


def _two_copies(world, *, at):
    """While one database's night is at a point, the night of a copy runs; doubles."""
    world.instruct(InstructionKind.REFUND, "C-3", amount=250)
    world.night()
    world.pass_time(timedelta(days=1))
    for place in ("C-0", "C-1", "C-2"):
        world.instruct(InstructionKind.REFUND, place, amount=250)
    world.instruct(InstructionKind.CAPTURE, "A-0", amount=1_000)
    copy = world.copied()
    world.act_beside(copy.night_in_a_thread, at=at)
    with suppress(ReconError):
        world.night()
    assert len(world.gateway.happened) > 1
    return len(unwanted(world.gateway.effects(), may_happen=world.merchant.may_happen()))


SCENARIOS: dict[str, Scenario] = {
    "head kept": partial(_two_refunds, head=True),
    "head lost": partial(_two_refunds, head=False),
    "withdrawn": partial(_forgotten_word, act=partial(withdraw_any, number=0)),
    "stopped": partial(_forgotten_word, act=stop_sending),
    **{f"two copies {at}": partial(_two_copies, at=at) for at in POINTS},
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_database_that_is_not_the_newest_sends_nothing(world_of, name):
    """A backup put back, with its head file or without, and a copy beside the one that works."""
    assert SCENARIOS[name](world_of(1)) == 0


def _the_gate_is_blind(patch):
    """No gate sees what another database noted; whoever claims still does."""
    patch.setattr(gate, "restored_since", lambda *_, **__: "")


@pytest.mark.parametrize("at", POINTS)
def test_behind_the_gate_a_foreign_link_alone_holds_the_money(world_of, monkeypatch, at):
    """Where no gate saw the other database, the claim does, and nothing goes twice."""
    _the_gate_is_blind(monkeypatch)

    assert SCENARIOS[f"two copies {at}"](world_of(1)) == 0


@pytest.mark.parametrize("head", [True, False], ids=["head kept", "head lost"])
def test_what_people_accepted_sends_nothing_again(world_of, *, head):
    """The files ask for it once more; people, who know what happened, let nothing of it go."""
    world = world_of(2)
    _two_refunds(world, head=head)
    world.merchant.notify_again(1, guise=Guise(request_id="other"))
    with world.environment() as environment:
        for short in ("ann", "ben"):
            accept_restore(person=person_of(world, short), reason=WHY, environment=environment)

    for _ in range(3):
        _later_night(world)
        look(world)

    assert unwanted(world.gateway.effects(), may_happen=world.merchant.may_happen()) == []
