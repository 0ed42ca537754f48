"""Each way in which the night's login alone once brought money to move; and what holds it now."""

from collections.abc import Callable

import pytest
from mutants import HELD_BY
from played_attacker import ATTACKS, attacked
from protocol_world import World

World_of = Callable[[int], World]


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_moves_nothing(world_of: World_of, name: str) -> None:
    """Nothing leaves but what two people let go, once."""
    assert attacked(world_of(1), name) == []


@pytest.mark.parametrize("name", ATTACKS)
def test_without_what_holds_it_an_attack_moves_money(world_of: World_of, name: str) -> None:
    """The checker, which knows nothing of the desk, sees the movement: the attack is a real one."""
    with pytest.MonkeyPatch.context() as patch:
        for change in HELD_BY[name]:
            change(patch)

        assert attacked(world_of(1), name) != []


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name, held in HELD_BY.items() for number in range(len(held)) if held[1:]],
)
def test_where_two_hold_it_each_holds_it_alone(world_of: World_of, name: str, number: int) -> None:
    """One of them may be broken: the other is no ornament."""
    with pytest.MonkeyPatch.context() as patch:
        for change in HELD_BY[name][:number] + HELD_BY[name][number + 1 :]:
            change(patch)

        assert attacked(world_of(1), name) == []
