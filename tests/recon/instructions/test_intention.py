from dataclasses import replace
from typing import Any

import pytest

from recon.instructions.instruction import Intention, ids_differ, told_repeats, unagreed
from recon.model.words import InstructionKind, InstructionState
from tests.recon.instructions.sample_instructions import INSTRUCTION

REFUND = replace(INSTRUCTION, kind=InstructionKind.REFUND, state=InstructionState.CONFIRMED)
PAYOUT = replace(REFUND, kind=InstructionKind.PAYOUT, order_no="", payee_digest="d1")


@pytest.mark.parametrize(
    ("changed", "may_be"),
    [
        ({}, True),
        ({"request_id": "R-2"}, True),
        ({"order_no": "A-2"}, True),
        ({"transaction_id": ""}, True),
        ({"transaction_id": "", "order_no": "A-2"}, False),
        ({"transaction_id": "T2"}, False),
        ({"merchant_id": "100043"}, False),
        ({"account_id": "100042002"}, False),
        ({"kind": InstructionKind.CAPTURE}, False),
        ({"currency": "USD"}, False),
        ({"amount": 9_999}, False),
    ],
)
def test_what_one_intention_is(changed: dict[str, Any], *, may_be: bool) -> None:
    """Merchant, account, kind, payment, amount and currency; ids and names beside it are not."""
    one, other = Intention.of(REFUND), Intention.of(replace(REFUND, **changed))

    assert one.may_be(other, ids_unique=False) is may_be
    assert other.may_be(one, ids_unique=False) is may_be


def test_a_payment_that_the_gateway_shows_counts_where_no_row_names_it() -> None:
    """Two orders, one of them known only by the transaction that the gateway shows for it."""
    unnamed = replace(REFUND, order_no="A-2", transaction_id="")

    assert Intention.of(unnamed, shown="T1").may_be(Intention.of(REFUND), ids_unique=False)
    assert not Intention.of(unnamed, shown="T2").may_be(Intention.of(REFUND), ids_unique=False)


def test_a_payout_is_known_by_its_payee() -> None:
    """The gateway's own id of a payout comes with its reply and says nothing of what was meant."""
    sent = Intention.of(replace(PAYOUT, transaction_id="P-1"))

    assert sent.may_be(Intention.of(PAYOUT), ids_unique=False)
    assert not sent.may_be(Intention.of(replace(PAYOUT, payee_digest="d2")), ids_unique=False)


def test_a_review_has_no_amount() -> None:
    """Two reviews of one payment are one, whatever amount stands beside them."""
    review = replace(REFUND, kind=InstructionKind.REVIEW)

    assert Intention.of(review).what == Intention.of(replace(review, amount=0)).what


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("R-1", "R-2", True),
        ("R-1", "r-1", False),
        ("R 1", "R1", False),
        ("R-1", "", False),
        ("", "", False),
    ],
)
def test_ids_differ_in_more_than_case_and_space(one: str, other: str, *, differ: bool) -> None:
    """What a person or program changes by accident makes no other id."""
    assert ids_differ(one, other) is differ


def test_the_payment_it_is_sent_for_is_compared() -> None:
    """A row that names only its order is judged by the transaction that was chosen for it."""
    wanted = replace(REFUND, instruction_id="i2", transaction_id="")
    elsewhere = replace(REFUND, transaction_id="T2")

    def found(transaction_id: str) -> list[str]:
        others = [REFUND, wanted, replace(elsewhere, instruction_id="i3")]
        return [
            one.instruction_id
            for one in unagreed(
                wanted, others=others, transaction_id=transaction_id, ids_unique=False
            )
        ]

    assert (found("T1"), found("T2"), found("T3")) == (["i1"], ["i3"], [])


def test_why_it_waits_names_the_first_and_counts_the_others() -> None:
    """People read which one it repeats and what became of that one."""
    told = told_repeats([REFUND, replace(REFUND, instruction_id="i2")])

    assert told.startswith("looks like a repeat of instruction i1 and 1 more, which is confirmed")
