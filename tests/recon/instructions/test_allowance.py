from dataclasses import replace
from decimal import Decimal

import pytest

from recon.config.limits import CurrencyLimits
from recon.instructions.instruction import Instruction
from recon.instructions.planning import RuleAllowance, SendingAllowance
from recon.model.words import InstructionKind
from tests.recon.instructions.sample_instructions import INSTRUCTION


def _instruction(amount: int, kind: InstructionKind = InstructionKind.REFUND) -> Instruction:
    return replace(
        INSTRUCTION, kind=kind, amount=amount, payment_amount=amount, approved_by="rule: order file"
    )


def _rule(approved: int = 0, **bounds: str) -> RuleAllowance:
    limits = CurrencyLimits(**{name: Decimal(text) for name, text in bounds.items()})
    return RuleAllowance(lambda _: limits, approved={"EUR": approved})


def _limited(before: dict[str, int] | None = None, **bounds: str) -> SendingAllowance:
    limits = CurrencyLimits(**{name: Decimal(text) for name, text in bounds.items()})
    sums = {name: {"EUR": amount} for name, amount in (before or {}).items()}
    return SendingAllowance(lambda _: limits, night=sums.get("night", {}), day=sums.get("day", {}))


def _hold(
    allowance: RuleAllowance, amount: int, kind: InstructionKind = InstructionKind.REFUND
) -> str:
    return allowance.hold_on(kind, currency="EUR", amount=amount)


def test_real_money_of_a_currency_without_a_limit_waits_for_people() -> None:
    """Whatever its kind; any limit of the currency is one."""
    bounds = {"EUR": CurrencyLimits(night=100), "USD": CurrencyLimits()}
    allowance = RuleAllowance(lambda code: bounds[code], approved={}, needs_limit=True)

    assert allowance.hold_on(InstructionKind.REFUND, currency="EUR", amount=900) == ""
    for kind in (InstructionKind.REFUND, InstructionKind.REVIEW):
        held = allowance.hold_on(kind, currency="USD", amount=1)
        assert held == "needs approval by two people: limits.toml sets no limit for USD"


def test_a_rule_approves_up_to_its_bound_and_not_a_cent_more() -> None:
    """The bound itself is within; a cent above needs two people."""
    allowance = _rule(approved_by_rule="500")

    assert _hold(allowance, 50_000) == ""
    assert _hold(allowance, 50_001) == (
        "needs approval by two people: a rule approves at most 500 EUR at once"
    )


def test_what_the_rule_approved_counts_against_its_night() -> None:
    """What was approved before, in this pass or an earlier one, uses up the night's sum."""
    allowance = _rule(approved=15_000, approved_by_rule_night="200")

    assert [bool(_hold(allowance, amount)) for amount in (4_000, 1_001, 1_000, 1)] == [
        False,
        True,
        False,
        True,
    ]


def test_what_a_rule_did_not_approve_uses_up_nothing() -> None:
    """An instruction above the item bound leaves the night's sum as it was."""
    allowance = _rule(approved_by_rule="100", approved_by_rule_night="100")
    _hold(allowance, 10_001)

    assert _hold(allowance, 10_000) == ""


def test_every_payout_needs_two_people_and_a_new_payee_is_named() -> None:
    """No limit lets a rule approve a payout; the people see whether its payee was paid before."""
    allowance = RuleAllowance(lambda _: CurrencyLimits(), approved={}, paid_before={"known"})
    told = [
        allowance.hold_on_payout(payee="DE…3000", payee_digest=digest)
        for digest in ("known", "new")
    ]

    assert told == [
        "needs approval by two people: every payout does (DE…3000 was paid before)",
        "needs approval by two people: every payout does, and this is the first to DE…3000",
    ]


def test_a_review_moves_no_money() -> None:
    """Limits count money; a review flag is none."""
    allowance = _rule(approved_by_rule="0", approved_by_rule_night="0")

    assert _hold(allowance, 100, kind=InstructionKind.REVIEW) == ""
    assert _limited(item="0").refusal(_instruction(100, InstructionKind.REVIEW)) == ""


def test_an_instruction_above_the_item_limit_is_never_sent() -> None:
    """The largest instruction is a bound that no approval lifts; the sentence says what to do."""
    told = _limited(item="100").refusal(_instruction(10_001))

    assert "never sent; withdraw it, or raise `item` in limits.toml" in told


@pytest.mark.parametrize("name", ["night", "day"])
def test_what_was_sent_before_counts_against_night_and_day(name: str) -> None:
    """A sum that is nearly used up lets the small one pass and stops the next."""
    before = {name: 9_000}
    allowance = _limited(before=before, **{name: "100"})

    assert allowance.refusal(_instruction(1_000)) == ""
    assert f"this {name} would have sent 100.01 EUR" in allowance.refusal(_instruction(1))


def test_without_limits_nothing_is_refused() -> None:
    """An absent key sets no bound."""
    assert _limited().refusal(_instruction(10**15)) == ""
