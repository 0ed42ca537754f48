"""The words of the domain: precedence of codes, states that are judged once, verdicts."""

import re

from recon.model.terms import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    WAITING_STATES,
    BreakCode,
    ControlTotal,
    InstructionState,
    Severity,
    Verdict,
)

PRECEDENCE = """
WRONG_ACCOUNT, DUPLICATE_ORDER_ROW, DUPLICATE_PAYMENT, DUPLICATE_LEDGER_POSTING, AMBIGUOUS_MATCH,
CURRENCY_MISMATCH, STATUS_UNMAPPED, OVER_REFUND, CHARGEBACK_AFTER_REFUND, CHARGEBACK_NOT_BOOKED,
CHARGEBACK_UNPROVEN, CHARGEBACK_REVERSED_NOT_BOOKED, STATUS_CONFLICT, CANCEL_UNCONFIRMED,
CANCEL_REJECTED, CANCEL_DUE, CAPTURE_UNCONFIRMED, CAPTURE_REJECTED, AUTHORISATION_EXPIRED,
CAPTURE_DUE, REFUND_UNCONFIRMED, REFUND_REJECTED, REFUND_FAILED_AFTER_ACCEPT, REFUND_DUE,
REFUND_UNEXPECTED, OVER_CAPTURE, PARTIAL_CAPTURE_UNEXPECTED, AMOUNT_OVER, AMOUNT_UNDER,
BOOKED_NOT_AT_GATEWAY, MISSING_AT_GATEWAY, MISSING_IN_ORDERS, REFUND_NOT_BOOKED,
LEDGER_REFUND_ONLY, LEDGER_AMOUNT_MISMATCH, FX_DIFFERENCE, MISSING_IN_LEDGER, LEDGER_ONLY,
PAYOUT_UNCONFIRMED, PAYOUT_FAILED, PAYOUT_NOT_BOOKED, PAYOUT_AMOUNT_MISMATCH, LEDGER_PAYOUT_ONLY,
SETTLEMENT_MISSING, SETTLEMENT_AMOUNT_MISMATCH, FEE_VARIANCE, UNEXPECTED_RECEIPT,
HELD_BACK, FEE_NOT_BOOKED, FEE_BOOKED_DIFFERS, RESERVE_NOT_BOOKED, RESERVE_BOOKED_DIFFERS,
PAYOUT_TWICE_AT_BANK, PAYOUT_RETURNED, BANK_AMOUNT_DIFFERS, BANK_FX_DIFFERENCE, PAYOUT_NOT_AT_BANK,
BANK_RECEIPT_UNKNOWN, BANK_NOT_BOOKED,
SPLIT_INCOMPLETE, REVIEW_STUCK, SUBSCRIPTION_NOT_ENDED, STALE_PENDING
"""
"""The contract's list (docs/REFERENCE.md), written out: the code must equal it."""


def test_the_precedence_of_break_codes_is_the_contracts() -> None:
    """Which finding becomes the primary code is decided by this list and nothing else."""
    assert [code.value for code in BreakCode] == re.findall(r"[A-Z_]+", PRECEDENCE)


def test_every_instruction_state_is_judged_exactly_once() -> None:
    """Confirmed, rejected, doubtful, waiting or withdrawn: no state is in two groups or in none."""
    groups = [CONFIRMED_STATES, REJECTED_STATES, DOUBTFUL_STATES, WAITING_STATES]
    judged = [state for group in groups for state in group] + [InstructionState.WITHDRAWN]

    assert sorted(judged) == sorted(InstructionState)


def test_a_verdict_has_the_exit_code_of_the_contract() -> None:
    """0 reconciled, 3 breaks open, 4 not proven or incomplete."""
    assert {verdict.value: verdict.exit_code for verdict in Verdict} == {
        "NOT PROVEN": 4,
        "INCOMPLETE": 4,
        "BREAKS OPEN": 3,
        "RECONCILED": 0,
    }


def test_verdicts_and_severities_are_ordered() -> None:
    """The worst verdict comes first, the least severity comes first: max and min rely on it."""
    assert next(iter(Verdict)) is Verdict.NOT_PROVEN
    assert list(Severity) == [Severity.LOW, Severity.MEDIUM, Severity.HIGH, Severity.CRITICAL]


def test_a_control_total_passes_only_at_zero() -> None:
    """One minor unit of difference is a failure, in either direction."""
    totals = [_total(left, right=100) for left in (100, 99, 101)]

    assert [total.passed for total in totals] == [True, False, False]
    assert [total.difference for total in totals] == [0, -1, 1]


def _total(left: int, *, right: int) -> ControlTotal:
    return ControlTotal("T5A", "leg A", "100042", "100042001", "EUR", "amount", left, right)
