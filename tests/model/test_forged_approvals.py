"""A player who approves with the night's login; and a night that does not read endorsements."""

from collections.abc import Callable

import played_people as people
import pytest
from deliveries import AGAIN
from protocol_world import CAPTURED, World

from recon.model.words import InstructionKind
from recon.store.money.endorsement_rows import Endorsed


def forged(world: World) -> list[str]:
    """A refund that went is told once more; its forged approval meets a night."""
    world.instruct(InstructionKind.REFUND, CAPTURED[0], amount=250)
    assert world.night()
    for guise in AGAIN:
        world.merchant.tell_again(0, guise=guise)
    assert world.night()
    assert people.forge(world) != []
    assert world.night()
    return world.problems()


def test_two_names_in_the_tables_move_no_money(world_of: Callable[[int], World]) -> None:
    """Only what the desk signed is two people's word: the refund takes effect once."""
    world = world_of(1)

    assert forged(world) == []
    assert len(world.gateway.happened) == 1


def test_a_night_that_reads_no_endorsements_is_found(world_of: Callable[[int], World]) -> None:
    """The checker, which knows nothing of the desk, sees the intention take effect twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Endorsed, "row_problems", lambda *_, **__: iter(()))
        assert forged(world_of(1)) != []
