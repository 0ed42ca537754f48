from recon.instructions.instruction import FOLLOWS
from recon.model.words import InstructionState


def test_every_state_has_its_followers() -> None:
    """The protocol names every state, and only known ones follow."""
    assert set(FOLLOWS) == set(InstructionState)
    assert all(following <= set(InstructionState) for following in FOLLOWS.values())


def test_nothing_leads_back_from_doubt_to_sending() -> None:
    """From doubt no path leads to a second send of the same instruction."""
    reached = {InstructionState.IN_DOUBT}
    while True:
        more = {state for seen in reached for state in FOLLOWS[seen]} | reached
        if more == reached:
            break
        reached = more

    assert not reached & {InstructionState.APPROVED, InstructionState.IN_FLIGHT}
