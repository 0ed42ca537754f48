"""A clock that somebody sets must not make young evidence old."""

from collections.abc import Callable
from datetime import timedelta

from protocol_world import World
from scripted_gateway import Script

from recon.model.words import InstructionKind
from recon.steps.people.verdicts import UNDECIDED

DAY = timedelta(days=1)


def test_answers_from_before_a_clock_was_put_back_prove_nothing(
    world_of: Callable[[int], World],
) -> None:
    """Asked within minutes under a clock that was a day ahead; the effect came after that."""
    world = world_of(1)
    world.instruct(InstructionKind.CAPTURE, "A-0", amount=1_000)
    world.night(scripts=[Script("late", "reset")])
    for ahead in (DAY, DAY, timedelta(0)):
        world.wall_error = ahead
        world.pass_time(timedelta(minutes=6))
        world.night()
    world.quiet()

    assert world.problems(ended=True) == []
    assert world.states_told() == ["resolved_applied"]


def test_a_clock_that_was_put_forward_ends_no_quarantine(
    world_of: Callable[[int], World],
) -> None:
    """By the wall the doubt is a day old, by the clock that nobody can set seven minutes."""
    world = world_of(2)
    world.instruct(InstructionKind.CAPTURE, "A-0", amount=1_000)
    world.night(scripts=[Script("late", "silence")])
    world.wall_error = DAY
    for _ in range(2):
        world.night()
        world.pass_time(timedelta(minutes=4))

    assert world.states_told() == ["in_doubt"]


def test_people_under_a_clock_that_was_put_forward_wait_like_everybody(
    world_of: Callable[[int], World],
) -> None:
    """Right after a night, before any other: nobody can say yet that nothing happened."""
    world = world_of(3)
    world.instruct(InstructionKind.REFUND, "C-0", amount=250)
    world.night(scripts=[Script("late", "reset")])
    world.wall_error = DAY
    world.decide(states=tuple(UNDECIDED))
    assert world.states_told() == ["in_doubt"]

    world.pass_time(timedelta(minutes=20))
    world.decide(states=tuple(UNDECIDED))
    assert world.states_told() == ["resolved_applied"]
