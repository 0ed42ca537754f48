from dataclasses import fields, replace
from typing import Any

import pytest

from recon.model.words import InstructionKind, InstructionState
from recon.settlement.instruction import Instruction
from recon.settlement.terms import BOUND, NOT_SENT, changed, filled_in, folded, terms_of
from tests.recon.settlement.instructions import INSTRUCTION

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


@pytest.mark.parametrize("name", BOUND)
def test_a_change_of_any_bound_field_is_told_by_its_name(name: str) -> None:
    """Whatever is sent: the amount as much as the digest of the payee."""
    bound = terms_of(PAYOUT)
    was = getattr(PAYOUT, name)
    other: Any = was + 1 if isinstance(was, int) else f"{was}x"
    other = InstructionKind.REFUND if name == "kind" else other

    said = changed(replace(PAYOUT, **{name: other}), bound=bound)

    assert name.replace("_", " ") in said
    assert "changed past the journal" in said
    assert changed(PAYOUT, bound=bound) == ""


def test_amounts_are_told_as_money() -> None:
    """So that a controller sees at once what was approved and what stands there."""
    said = changed(replace(PAYOUT, amount=50_000), bound=terms_of(PAYOUT))

    assert "its amount is 500.00 EUR, bound was 5.00 EUR" in said


def test_what_people_wrote_and_what_is_sealed_is_not_in_the_history_in_clear() -> None:
    """The history cannot be erased: it has digests of them."""
    told = str(terms_of(PAYOUT))

    assert "for Ann" not in told
    assert "gAAAA" not in told


def test_a_claim_fills_in_the_payment_and_nothing_else() -> None:
    """What a claim changes on purpose is bound with it; what stays is not told again."""
    one = replace(INSTRUCTION, transaction_id="", payment_amount=700)
    terms = filled_in(one, transaction_id="T9", payment_amount=700)
    later = replace(one, transaction_id="T9")

    assert terms == {"transaction_id": "T9"}
    assert changed(later, bound=folded([terms_of(one), terms])) == ""
    assert "T9" in changed(later, bound=terms_of(one))


def test_details_that_were_erased_with_the_end_are_no_change() -> None:
    """A final payout has none any more; an open one that lost them was changed."""
    bound = terms_of(PAYOUT)
    ended = replace(PAYOUT, sealed="", state=InstructionState.CONFIRMED)
    still = replace(PAYOUT, sealed="", state=InstructionState.APPROVED)

    assert changed(ended, bound=bound) == ""
    assert "its sealed is another one" in changed(still, bound=bound)


def test_an_instruction_that_nothing_binds_is_told() -> None:
    """A row that no event of the history speaks of was not planned by us."""
    assert "never bound by the history" in changed(INSTRUCTION, bound={})
