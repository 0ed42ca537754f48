from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from recon.config.limits import CurrencyLimits
from recon.instructions.instruction import Instruction
from recon.instructions.planning import RULE_APPROVER, RuleAllowance, plan_again
from recon.model.words import InstructionKind, InstructionState
from tests.recon.instructions.sample_instructions import INSTRUCTION

NIGHT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
FIRST = replace(
    INSTRUCTION,
    natural_key="capture|100042|100042001|A-1|10000|EUR|n:1",
    state=InstructionState.RESOLVED_NOT_APPLIED,
    attempts=1,
    baseline_status="2000",
    approved_by=RULE_APPROVER,
    in_doubt_since=NIGHT,
    message="two answers do not show it",
    sent_at=NIGHT,
    outcome_at=NIGHT,
)


def _again(*ended: Instruction, **options: Any) -> tuple[Instruction, ...]:
    return plan_again(
        ended,
        have_second=options.get("have_second", ()),
        new_id=iter(("i2", "i3")).__next__,
        auto_approve=options.get("auto_approve", True),
        allowance=RuleAllowance(lambda _: options.get("limits", CurrencyLimits()), approved={}),
    )


def test_a_second_capture_is_a_new_instruction_with_its_first_named() -> None:
    """It starts like any other: approved by rule, never sent, linked to what came to nothing."""
    (second,) = _again(FIRST)

    assert (second.instruction_id, second.again_for) == ("i2", "i1")
    assert (second.state, second.approved_by) == (InstructionState.APPROVED, RULE_APPROVER)
    assert (second.attempts, second.in_doubt_since, second.baseline_status) == (0, None, "")
    assert (second.message, second.sent_at, second.outcome_at) == ("", None, None)
    assert second.natural_key != FIRST.natural_key


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": InstructionKind.REFUND},
        {"kind": InstructionKind.PAYOUT},
        {"kind": InstructionKind.CANCEL},
        {"state": InstructionState.REJECTED},
        {"state": InstructionState.NEEDS_HUMAN},
        {"state": InstructionState.IN_DOUBT},
        {"amount": 9_999},
        {"again_for": "i0"},
    ],
)
def test_nothing_else_comes_again(changed: Mapping[str, Any]) -> None:
    """Only a whole capture that surely did not happen, and only its first instruction."""
    assert _again(replace(FIRST, **changed)) == ()


def test_a_second_capture_has_no_third() -> None:
    """Once its second is known the first is not planned again."""
    assert _again(FIRST, have_second={FIRST.instruction_id}) == ()


def test_what_people_approved_waits_for_people_again() -> None:
    """An approval was for one instruction; the second has none."""
    (second,) = _again(replace(FIRST, approved_by="ann and ben"))

    assert (second.state, second.approved_by) == (InstructionState.PLANNED, "")
    assert "people approved instruction i1" in second.hold


def test_without_the_rule_a_second_capture_waits() -> None:
    """Where nothing is approved by rule, this is not either."""
    (second,) = _again(FIRST, auto_approve=False)

    assert (second.state, second.approved_by) == (InstructionState.PLANNED, "")


def test_the_limits_of_the_rule_hold_for_a_second_capture() -> None:
    """An amount that a rule may not approve waits for two people here, too."""
    (second,) = _again(FIRST, limits=CurrencyLimits(approved_by_rule=Decimal("99.99")))

    assert second.state is InstructionState.PLANNED
    assert "a rule approves at most 99.99 EUR" in second.hold
