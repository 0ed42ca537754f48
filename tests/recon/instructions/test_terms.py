from dataclasses import fields, replace

from recon.instructions.instruction import BOUND, NOT_SENT, Instruction, terms_of
from recon.model.words import InstructionKind
from tests.recon.instructions.sample_instructions import INSTRUCTION

PAYOUT = replace(
    INSTRUCTION,
    kind=InstructionKind.PAYOUT,
    amount=500,
    currency="EUR",
    payee="DE…3000",
    payee_digest="a" * 64,
    gateway_request_id="0b5f",
    sealed="gAAAA",
    reason="for Ann",
)


def test_every_field_is_bound_or_known_to_change_nothing_of_what_is_sent() -> None:
    """A new field of an instruction is one or the other, by name."""
    names = {field.name for field in fields(Instruction)}

    assert names == {*BOUND} | NOT_SENT


def test_what_people_wrote_and_what_is_sealed_is_not_in_the_history_in_clear() -> None:
    """The history cannot be erased: it has digests of them."""
    told = str(terms_of(PAYOUT))

    assert "for Ann" not in told
    assert "gAAAA" not in told
