"""A night without memory or open files: it ends in an error or not at all, and nothing is wrong."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from protocol_world import AUTHORISED, World

from recon.model.errors import ReconError
from recon.model.words import InstructionKind

POINTS = 36
"""A night that sends one batch reaches at least so many."""
EVERY = 1 if os.environ.get("CHAOS") else 5
FILES_MAX = 12
"""A night that has so many more open files than none comes to its end."""


@contextmanager
def only_files(count: int) -> Iterator[None]:
    """So many more files may be open than are open now, whichever numbers those have."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(one.name) for one in Path("/proc/self/fd").iterdir()}
    free = (number for number in range(before[0]) if number not in taken)
    limit = next(islice(free, count, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _asked(world: World) -> World:
    for place in AUTHORISED[:2]:
        world.instruct(InstructionKind.CAPTURE, place, amount=1_000)
    return world


@pytest.mark.parametrize("point", range(1, POINTS + 1, EVERY))
def test_a_night_that_runs_out_of_memory_ends_true(
    world_of: Callable[[int], World], monkeypatch: pytest.MonkeyPatch, point: int
) -> None:
    """Python says so at any point; what was claimed by then is doubted, never sent again."""
    world = _asked(world_of(point))

    def starved(_: str) -> None:
        world.points.append("")
        if len(world.points) == point:
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(world, "reach", starved)
        patch.setattr(world.gateway, "reach", starved)
        with pytest.raises(MemoryError):
            world.night()
    found = world.problems()
    world.quiet()

    assert found + world.problems(ended=True) == []


def test_a_night_without_open_files_ends_true(world_of: Callable[[int], World]) -> None:
    """Numbers of files from none to enough: an error of ours or a whole night, and two effects."""
    ended = []
    for count in range(0, FILES_MAX + 1, 2):
        world = _asked(world_of(count))
        world.store.forget()
        try:
            with only_files(count):
                ended.append(world.night())
        except (ReconError, OSError):
            ended.append(False)
        found = world.problems()
        world.quiet()
        assert found + world.problems(ended=True) == []
        assert len(world.gateway.happened) == len(AUTHORISED[:2])

    assert {ended[0], ended[-1]} == {False, True}
