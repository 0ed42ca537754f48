"""Each way in which the night's login alone once brought money to move: none does."""

import pytest
from played_attacker import ATTACKS, attacked


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_moves_nothing(world_of, name):
    assert attacked(world_of(1), name) == []
