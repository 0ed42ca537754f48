"""Any order of asking, sending, crashing, waiting and deciding; what fails shrinks to its core."""

import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import ClassVar

import played_people as people
import pytest
from deliveries import AGAIN, FIRST
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from played_attacker import ATTACKS, attacked
from protocol_world import BEGAN, CAPTURED, RUNNING, World
from scripted_gateway import BEYOND, BY_HAND, MISCOUNTED, SCRIPTS

from recon.model.nights import Mode
from recon.model.terms import InstructionKind
from recon.steps.approvals.verdicts import UNDECIDED

EXAMPLES = int(os.environ.get("CHAOS_EXAMPLES", "50"))
STEPS = int(os.environ.get("CHAOS_STEPS", "12"))
SECONDS_A_STEP_MAX = 0.4
"""A step takes 0.02 on a quiet core; this only ends what hangs."""
SECONDS_MIN = 960
ALONE = (InstructionKind.CAPTURE, InstructionKind.CANCEL)


class Protocol(RuleBasedStateMachine):
    """One world; every rule is something that a night, a person or the weather may do."""

    make: ClassVar[Callable[[int], World]]
    ended_true: ClassVar[int] = 0

    def __init__(self):
        super().__init__()
        self.world = type(self).make(0)
        self.attack = ""

    @rule(kind=st.sampled_from(ALONE), guise=st.sampled_from(FIRST))
    def ask(self, kind, guise):
        """A whole capture or cancel of a payment that nobody touched."""
        if self.world.fresh:
            self.world.instruct(kind, self.world.fresh.pop(), amount=1_000, guise=guise)

    @rule(
        place=st.sampled_from(CAPTURED),
        amount=st.sampled_from((250, 400, 1_000)),
        guise=st.sampled_from(FIRST),
    )
    def ask_back(self, place, amount, guise):
        """A refund, whole or in part; one that equals an earlier one is wanted as well."""
        self.world.instruct(InstructionKind.REFUND, place, amount=amount, guise=guise)

    @rule(number=st.integers(0, 9), guise=st.sampled_from(AGAIN))
    def notify_again(self, number, guise):
        """A wish once more, under other names and ids, by another kind of file; nothing is new."""
        self.world.merchant.notify_again(number, guise=guise)

    @rule(
        scripts=st.lists(st.sampled_from((*SCRIPTS, *BEYOND, *MISCOUNTED)), max_size=3),
        crash_at=st.one_of(st.just(0), st.integers(1, 60)),
    )
    def send(self, scripts, crash_at):
        """A night."""
        self.world.night(scripts=scripts, crash_at=crash_at)

    @rule(
        scripts=st.lists(st.sampled_from(SCRIPTS), max_size=2),
        at=st.integers(1, 60),
        number=st.integers(0, 9),
        act=st.sampled_from(("withdraw", "stop", "look")),
    )
    def send_beside_people(self, scripts, at, number, act):
        """A night in which somebody withdraws, stops everything, or decides what waits."""
        acts = {
            "withdraw": partial(people.withdraw_any, self.world, number=number),
            "stop": partial(people.stop_sending, self.world),
            "look": partial(people.look, self.world),
        }
        self.world.act_beside(acts[act], at=at)
        self.world.night(scripts=scripts)

    @rule()
    def look(self):
        """Two people approve or reject what waits, and let money move again."""
        people.allow_sending(self.world)
        people.look(self.world)

    @rule(hours=st.sampled_from((0, 0.15, 30, 100)))
    def fall_behind(self, hours):
        """The query shows what was true so long ago."""
        self.world.fall_behind(timedelta(hours=hours))

    @rule(minutes=st.sampled_from((1, 6, 20, 1_440)))
    def wait(self, minutes):
        """Nothing runs."""
        self.world.pass_time(timedelta(minutes=minutes))

    @rule(minutes=st.sampled_from((0, -10, 60, 1_440)))
    def set_clock(self, minutes):
        """Somebody puts the clock on the wall away from the truth, or right again."""
        self.world.wall_error = timedelta(minutes=minutes)

    @rule(running=st.sampled_from(RUNNING))
    def reboot(self, running):
        """The machine starts anew, or another one takes its place."""
        self.world.reboot(running=running)

    @rule(is_new=st.booleans(), is_dated=st.booleans())
    def move(self, *, is_new, is_dated):
        """From now on each night has a machine of its own, or not; replies have a Date, or not."""
        self.world.is_new_every_night = is_new
        self.world.gateway.epoch = BEGAN if is_dated else None

    @rule(is_deaf=st.booleans(), falls_silent=st.booleans())
    def fall_silent(self, *, is_deaf, falls_silent):
        """The query fails, or will when money has left."""
        self.world.gateway.deaf, self.world.gateway.falls_silent = is_deaf, falls_silent

    @rule()
    def look_dry(self):
        """A night that asks and sends nothing."""
        self.world.night(mode=Mode.DRY_RUN)

    @rule(place=st.sampled_from(CAPTURED))
    def refund_by_hand(self, place):
        """In the portal, past us."""
        self.world.gateway.by_hand(place, amount=BY_HAND)

    @rule()
    def decide(self):
        """Two people say what they see, also while something may still come late."""
        self.world.decide(states=tuple(UNDECIDED))

    @rule(lies=st.sampled_from((people.LYING, people.AT_ODDS)))
    def echo_what_is_not_so(self, lies):
        """Two people, or the second of them, say the opposite of what happened."""
        people.decide(self.world, states=tuple(UNDECIDED), lies=lies)

    @rule(name=st.sampled_from([*ATTACKS]))
    def attack_at_the_end(self, name):
        """Somebody with the night's login comes when all is quiet: what is broken is not mended."""
        self.attack = name

    @invariant()
    def journal_is_true(self):
        """As far as anything is known."""
        assert self.world.problems() == []

    def teardown(self):
        """Quiet nights end everything that evidence decides."""
        self.world.quiet()
        assert self.world.problems(ended=True) == []
        if self.attack:
            assert attacked(self.world, self.attack) == []
        type(self).ended_true += 1


# A test that runs out of time fails inside an example, and what Hypothesis then says of it (data
# that behave differently) hides that nothing but the clock was wrong.
@pytest.mark.timeout(max(SECONDS_MIN, int(EXAMPLES * STEPS * SECONDS_A_STEP_MAX)))
def test_no_order_of_events_makes_the_journal_untrue(world_of, monkeypatch):
    """Nothing twice, nothing lost, nothing believed that did not happen."""
    monkeypatch.setattr(Protocol, "make", staticmethod(world_of), raising=False)
    monkeypatch.setattr(Protocol, "ended_true", 0)

    run_state_machine_as_test(
        Protocol, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
    )

    assert Protocol.ended_true >= EXAMPLES
