"""Captures that surely did not happen, planned once more: only where the operator wants that.

A second capture is a new instruction, linked to the first: nothing is ever sent again. It is
planned in a later run than the one that ended the doubt, once, for whole captures only, and while
the order file still asks for it. Refunds and payouts never come back this way.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from recon.model.words import InstructionKind, InstructionState
from recon.settlement.allowance import RuleAllowance
from recon.settlement.instruction import Instruction
from recon.settlement.planning import RULE_APPROVER

AGAIN = "+2"
"""Ends the natural key of the second instruction, so that there is never a third."""
BY_PEOPLE = "people approved instruction {first}, which did not take effect; this one is new"


def plan_again(
    ended: Iterable[Instruction],
    *,
    known_keys: AbstractSet[str],
    new_id: Callable[[], str],
    auto_approve: bool,
    allowance: RuleAllowance,
) -> tuple[Instruction, ...]:
    """A second instruction for each capture that may have one.

    Args:
        ended: Instructions whose doubt an earlier run ended and which their file still asks for.
        known_keys: Natural keys of second instructions that exist.
        new_id: Makes instruction ids.
        auto_approve: A rule may approve in this run.
        allowance: What the rule may approve; the rest waits for people.
    """
    again = []
    for first in ended:
        if not _may_come_again(first) or f"{first.natural_key}{AGAIN}" in known_keys:
            continue
        hold = _hold(first, auto_approve=auto_approve, allowance=allowance)
        approved = auto_approve and not hold
        again.append(
            replace(
                first,
                instruction_id=new_id(),
                natural_key=f"{first.natural_key}{AGAIN}",
                again_for=first.instruction_id,
                state=InstructionState.APPROVED if approved else InstructionState.PLANNED,
                hold=hold,
                attempts=0,
                baseline_status="",
                approved_by=RULE_APPROVER if approved else "",
                in_doubt_since=None,
                gateway_request_id="",
            )
        )
    return tuple(again)


def _may_come_again(first: Instruction) -> bool:
    return (
        first.kind is InstructionKind.CAPTURE
        and first.state is InstructionState.RESOLVED_NOT_APPLIED
        and first.amount == first.payment_amount
        and not first.again_for
    )


def _hold(first: Instruction, *, auto_approve: bool, allowance: RuleAllowance) -> str:
    if first.approved_by != RULE_APPROVER:
        return BY_PEOPLE.format(first=first.instruction_id)
    if not auto_approve:
        return ""
    return allowance.hold_on(first.kind, currency=first.currency, amount=first.amount)
