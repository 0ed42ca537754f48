"""Python looks as often as it is told for objects that hold only each other, and finds them."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from recon.model.uptime import OBJECTS_BETWEEN, collect_seldom, look_past_loaded


class Knot:
    """Holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """The process of the tests collects as it did."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_a_knot_stays_until_so_many_objects_were_made() -> None:
    """A thousand objects are no reason to look; after the bound the knot is gone."""
    gc.collect()
    collect_seldom()
    knot = weakref.ref(Knot())
    made = [[number] for number in range(OBJECTS_BETWEEN // 2)]
    held_on = knot() is not None
    made += [[number] for number in range(OBJECTS_BETWEEN)]

    assert (held_on, knot()) == (True, None)
    assert len(made) > OBJECTS_BETWEEN


def test_what_is_there_when_work_begins_is_not_looked_at_again() -> None:
    """A knot from before stays however often Python looks; one that work made goes."""
    gc.collect()
    before = weakref.ref(Knot())
    look_past_loaded()
    after = weakref.ref(Knot())
    gc.collect()

    assert (before() is not None, after()) == (True, None)
