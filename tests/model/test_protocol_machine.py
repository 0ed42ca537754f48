"""Any order of asking, sending, crashing, waiting and deciding; what fails shrinks to its core."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from protocol_world import CAPTURED, World
from scripted_gateway import SCRIPTS

from recon.model import InstructionKind
from recon.steps.verdicts import UNDECIDED

EXAMPLES = int(os.environ.get("CHAOS_EXAMPLES", "200"))
STEPS = int(os.environ.get("CHAOS_STEPS", "12"))
SECONDS_A_STEP_MAX = 0.4
"""A step takes 0.02 on a quiet core; this only ends what hangs."""
SECONDS_MIN = 960
ALONE = (InstructionKind.CAPTURE, InstructionKind.CANCEL)


class Protocol(RuleBasedStateMachine):
    """One world; every rule is something that a night, a person or the weather may do."""

    make: ClassVar[Callable[[int], World]]
    ended_true: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.world = type(self).make(0)

    @rule(kind=st.sampled_from(ALONE))
    def ask(self, kind: InstructionKind) -> None:
        """A whole capture or cancel of a payment that nobody touched."""
        if self.world.fresh:
            self.world.instruct(kind, self.world.fresh.pop(), amount=1_000)

    @rule(place=st.sampled_from(CAPTURED), amount=st.sampled_from((250, 400, 1_000)))
    def ask_back(self, place: str, amount: int) -> None:
        """A refund, whole or in part."""
        self.world.instruct(InstructionKind.REFUND, place, amount=amount)

    @rule(
        scripts=st.lists(st.sampled_from(SCRIPTS), max_size=3),
        crash_at=st.one_of(st.just(0), st.integers(1, 60)),
    )
    def send(self, scripts: list[object], crash_at: int) -> None:
        """A night."""
        self.world.night(scripts=scripts, crash_at=crash_at)  # type: ignore[arg-type]

    @rule(minutes=st.sampled_from((1, 6, 20, 1_440)))
    def wait(self, minutes: int) -> None:
        """Nothing runs."""
        self.world.pass_time(timedelta(minutes=minutes))

    @rule(minutes=st.sampled_from((0, -10, 60, 1_440)))
    def set_clock(self, minutes: int) -> None:
        """Somebody puts the clock on the wall away from the truth, or right again."""
        self.world.wall_error = timedelta(minutes=minutes)

    @rule(place=st.sampled_from(CAPTURED))
    def refund_by_hand(self, place: str) -> None:
        """In the portal, past us."""
        self.world.gateway.by_hand(place, amount=100)

    @rule()
    def decide(self) -> None:
        """Two people say what they see, also while something may still come late."""
        self.world.decide(states=tuple(UNDECIDED))

    @invariant()
    def journal_is_true(self) -> None:
        """As far as anything is known."""
        assert self.world.problems() == []

    def teardown(self) -> None:
        """Quiet nights end everything that evidence decides."""
        self.world.wall_error = max(self.world.wall_error, timedelta(0))
        self.world.quiet()
        assert self.world.problems(ended=True) == []
        type(self).ended_true += 1


# A test that runs out of time fails inside an example, and what Hypothesis then says of it (data
# that behave differently) hides that nothing but the clock was wrong.
@pytest.mark.timeout(max(SECONDS_MIN, int(EXAMPLES * STEPS * SECONDS_A_STEP_MAX)))
def test_no_order_of_events_makes_the_journal_untrue(
    world_of: Callable[[int], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing twice, nothing lost, nothing believed that did not happen."""
    monkeypatch.setattr(Protocol, "make", staticmethod(world_of), raising=False)
    monkeypatch.setattr(Protocol, "ended_true", 0)

    run_state_machine_as_test(
        Protocol, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
    )

    assert Protocol.ended_true >= EXAMPLES
