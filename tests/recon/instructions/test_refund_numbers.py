from dataclasses import replace

import pytest

from recon.instructions.contradiction import contradicted
from recon.model.words import InstructionKind, InstructionState
from tests.recon.instructions.sample_instructions import INSTRUCTION

S = InstructionState
REFUND = replace(INSTRUCTION, kind=InstructionKind.REFUND, state=S.CONFIRMED, amount=100)
Sent = tuple[InstructionState, str]


def _cases(*sent: Sent) -> dict[str, str]:
    refunds = [
        replace(REFUND, instruction_id=f"i{place}", state=state, refund_reference_id=reference)
        for place, (state, reference) in enumerate(sent, start=1)
    ]
    return {item.instruction_id: told for item, told in contradicted(refunds)}


@pytest.mark.parametrize(
    "sent",
    [
        [],
        [(S.CONFIRMED, "T1-01")],
        [(S.CONFIRMED, "T1-01"), (S.CONFIRMED, "T1-02"), (S.CONFIRMED, "T1-03")],
        [(S.CONFIRMED, "T1-01"), (S.RESOLVED_APPLIED, ""), (S.CONFIRMED, "T1-03")],
        [(S.CONFIRMED, "T1-01"), (S.RESOLVED_NOT_APPLIED, ""), (S.CONFIRMED, "T1-02")],
        [(S.CONFIRMED, "T1-01"), (S.REJECTED, ""), (S.CONFIRMED, "T1-02")],
        [(S.CONFIRMED, "T1-01"), (S.NEEDS_HUMAN, ""), (S.CONFIRMED, "T1-03")],
        [(S.CONFIRMED, "T1-01"), (S.RESOLVED_NOT_APPLIED, "")],
        [(S.CONFIRMED, "RF-9001"), (S.CONFIRMED, "RF-9007")],
        [(S.CONFIRMED, ""), (S.CONFIRMED, "")],
        [(S.CONFIRMED, "T1-xx"), (S.CONFIRMED, "T1")],
    ],
)
def test_numbers_that_fit_open_nothing(sent: list[Sent]) -> None:
    """One after the other, or with a refund in between that may have the number left out."""
    assert _cases(*sent) == {}


@pytest.mark.parametrize("first", [S.CONFIRMED, S.RESOLVED_APPLIED])
@pytest.mark.parametrize("second", [S.CONFIRMED, S.RESOLVED_APPLIED, S.RESOLVED_NOT_APPLIED])
@pytest.mark.parametrize("reference", ["T1-01", "RF-9001"])
def test_one_id_for_two_refunds_is_a_case_of_the_later(
    first: InstructionState, second: InstructionState, reference: str
) -> None:
    """Two refunds under one id of the gateway had one effect at most, whatever its form."""
    told = _cases((first, reference), (second, reference))

    assert list(told) == ["i2"]
    assert f"gave it the id {reference}, which instruction i1 had before" in told["i2"]


@pytest.mark.parametrize(
    ("sent", "case"),
    [
        ([(S.CONFIRMED, "T1-01"), (S.CONFIRMED, "T1-03")], "i2"),
        ([(S.CONFIRMED, "T1-01"), (S.REJECTED, "T1-03")], "i2"),
        ([(S.CONFIRMED, "T1-02")], "i1"),
        ([(S.CONFIRMED, "T1-01"), (S.RESOLVED_APPLIED, ""), (S.CONFIRMED, "T1-04")], "i3"),
        ([(S.CONFIRMED, "T1-01"), (S.RESOLVED_NOT_APPLIED, ""), (S.CONFIRMED, "T1-03")], "i2"),
        ([(S.CONFIRMED, "T1-01"), (S.REJECTED, ""), (S.CONFIRMED, "T1-03")], "i2"),
        ([(S.RESOLVED_NOT_APPLIED, ""), (S.CONFIRMED, "T1-02")], "i1"),
        ([(S.CONFIRMED, "T1-02"), (S.CONFIRMED, "T1-01")], "i2"),
    ],
)
def test_a_number_that_nobody_has_is_a_case(sent: list[Sent], case: str) -> None:
    """Of what the journal calls not done, else of the refund whose number shows the other one."""
    assert case in _cases(*sent)


def test_a_repeated_id_explains_one_number_left_out() -> None:
    """The refund that repeats may have the number that nobody has: one case, not two."""
    sent = [(S.CONFIRMED, "T1-01"), (S.CONFIRMED, "T1-01"), (S.CONFIRMED, "T1-03")]

    assert list(_cases(*sent)) == ["i2"]


def test_a_case_says_what_the_numbers_were() -> None:
    """People read both numbers, and whether the movement is known to be not ours."""
    told = _cases((S.CONFIRMED, "T1-01"), (S.CONFIRMED, "T1-03"))

    assert told["i2"] == (
        "the journal has it as confirmed, but the gateway numbered it -03 after -01: one between "
        "them took effect, and it is not ours"
    )
