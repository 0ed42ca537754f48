"""A night without memory or open files: it ends in an error or not at all, and nothing is wrong."""

import gc
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

import pytest
from protocol_world import AUTHORISED, World

from recon.model.errors import ReconError
from recon.model.words import InstructionKind

POINTS = 36
"""A night that sends one batch reaches at least so many."""
EVERY = 1 if os.environ.get("CHAOS") else 5
FILES_MAX = 12
"""A night that has so many more open files than none comes to its end."""


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@contextmanager
def only_files(count: int) -> Iterator[None]:
    """So many more files may be open than are open now, whichever numbers those have.

    Files that the garbage of earlier tests holds stay open: a collection would make room.
    """
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = (number for number in range(before[0]) if not _is_open(number))
    limit = next(islice(free, count, None))
    gc.disable()
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        gc.enable()


class Forgotten:
    """An open file in a circle that only a collection finds."""

    def __init__(self) -> None:
        self.circle = self
        self.number = os.open(os.devnull, os.O_RDONLY)

    def __del__(self) -> None:
        os.close(self.number)


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


def test_files_of_garbage_make_no_room() -> None:
    """What an earlier test forgot gives its files back after the starved night, not within it."""
    gc.collect()
    before = gc.get_threshold()
    forgotten = [Forgotten() for _ in range(FILES_MAX)]
    try:
        gc.set_threshold(1, 1, 1)
        with only_files(0):
            del forgotten
            _ = [[number] for number in range(FILES_MAX * 100)]
            with pytest.raises(OSError, match="Too many open files"):
                os.open(os.devnull, os.O_RDONLY)
    finally:
        gc.set_threshold(*before)
