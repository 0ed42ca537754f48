from dataclasses import fields, replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.config.approvers import Approver, person_key
from recon.config.limits import CurrencyLimits
from recon.model.words import InstructionState
from recon.settlement.allowance import RuleAllowance
from recon.settlement.approval import (
    list_of,
    problem_of_second,
    requesters_of,
    sums_in_words,
    told_beside,
)
from recon.settlement.instruction import Instruction
from tests.recon.settlement.instructions import INSTRUCTION

ONE = replace(
    INSTRUCTION,
    natural_key="capture|M|1|A1|10000|EUR|n:1",
    merchant_id="M",
    account_id="1",
    order_no="A1",
    state=InstructionState.PLANNED,
    hold="looks like a repeat",
    approved_by="",
)
DECIDES = (
    *("instruction_id", "natural_key", "merchant_id", "account_id", "order_no", "transaction_id"),
    *("currency", "amount", "payment_amount", "reason", "request_id", "hold"),
    *("review_flag", "recurring_id", "contract_name", "gateway_request_id"),
    *("payee", "payee_digest", "repeats", "sealed"),
)


DECLARED = {"anna": Approver(name="Anna Berg"), "jo": Approver(name="Jo Hill")}


def changed(name: str, value: Any) -> Instruction:
    """The instruction with one field changed."""
    return replace(ONE, **{name: value})


@given(
    name=st.sampled_from(DECIDES),
    text=st.text(alphabet="abcXYZ019|\x1f\x1e", min_size=1, max_size=20),
    number=st.integers(min_value=0, max_value=10**15),
)
def test_any_change_makes_it_another_list(name: str, text: str, number: int) -> None:
    """Whatever decides what would be sent is covered by the digest."""
    value = number if name.endswith("amount") else text
    other = changed(name, value)

    assert (list_of([other]).digest == list_of([ONE]).digest) is (getattr(ONE, name) == value)


def test_every_field_that_decides_is_covered() -> None:
    """A new field of an instruction is either part of the digest or known not to matter."""
    harmless = {"file_id", "line", "attempts", "baseline_status", "approved_by", "in_doubt_since"}
    harmless.add("again_for")  # the natural key of a second capture tells it apart

    names = {field.name for field in fields(Instruction)}
    assert names - harmless - set(DECIDES) == {"kind", "state"}


def test_the_order_of_the_rows_does_not_matter() -> None:
    """The same list is the same list, however it was read."""
    other = changed("instruction_id", "i2")

    assert list_of([ONE, other]).digest == list_of([other, ONE]).digest


def test_the_list_tells_sums_largest_and_repeats() -> None:
    """What an approver must see before saying yes."""
    yen = replace(ONE, instruction_id="i2", currency="JPY", amount=500, hold="")
    wanted = list_of([ONE, yen])
    named = replace(ONE, instruction_id="i3", hold="", repeats="i1")

    assert wanted.sums == {"EUR": 10000, "JPY": 500}
    assert sums_in_words(wanted.sums) == "100.00 EUR, 500 JPY"
    assert [one.instruction_id for one in wanted.largest] == ["i1", "i2"]
    assert [one.instruction_id for one in wanted.repeats] == ["i1"]
    assert list_of([named]).repeats == (named,)
    assert told_beside(replace(named, request_id="R-1", transaction_id="T9")) == (
        "i3 capture 100.00 EUR, order A1, transaction T9, request_id R-1: planned"
    )


def test_no_currency_hides_the_largest_of_another() -> None:
    """Ten stand at the head: each currency's largest, whatever a unit of another is worth."""
    yen = [
        replace(ONE, instruction_id=f"y{number}", currency="JPY", amount=10_000 + number)
        for number in range(15)
    ]
    euros = [replace(ONE, instruction_id=f"e{number}", amount=100 + number) for number in range(2)]

    shown = list_of([*yen, *euros]).largest

    assert [item.instruction_id for item in shown] == [
        "e1",
        "e0",
        *(f"y{14 - n}" for n in range(8)),
    ]


def test_the_list_names_payees_who_were_never_paid_before() -> None:
    """Also those of small payouts, which the ten largest do not show."""
    allowance = RuleAllowance(
        lambda _: CurrencyLimits(), approved={}, paid_before=frozenset({"known"})
    )
    payouts = [
        replace(ONE, instruction_id=digest, hold=hold)
        for digest in ("known", "new")
        for hold in (allowance.hold_on_payout(payee="DE…3000", payee_digest=digest),)
    ]

    assert [one.instruction_id for one in list_of([ONE, *payouts]).first_payees] == ["new"]


@pytest.mark.parametrize(
    ("person", "first", "said"),
    [
        (Approver(name="Anna  Berg", limit={"EUR": Decimal(500)}), "anna berg", "somebody else"),
        (Approver(name="Jo Hill", limit={"EUR": Decimal(500)}), "Ben", "somebody else"),
        (Approver(name="Anna Berg", limit={"EUR": Decimal(500)}), "anna", "somebody else"),
        (Approver(name="Anna", role="reviewer", limit={"EUR": Decimal(500)}), "Ben", "reviewer"),
        (Approver(name="Anna", limit={"USD": Decimal(500)}), "Ben", "no limit in EUR"),
        (Approver(name="Anna", limit={"EUR": Decimal("99.99")}), "Ben", "limit of Anna"),
        (Approver(name="Anna", limit={"EUR": Decimal(100)}), "Ben", ""),
    ],
)
def test_who_may_be_the_second(person: Approver, first: str, said: str) -> None:
    """Another person, an approver, with a limit that covers the list, who did not ask for it."""
    problem = problem_of_second(
        person,
        wanted=list_of([ONE]),
        others={first, "jo"},
        key=partial(person_key, declared=DECLARED),
    )

    assert said in problem
    assert bool(problem) is bool(said)


def test_whoever_asked_by_hand_is_a_requester() -> None:
    """Order files are nobody; a person who typed a command is somebody, whatever came since."""
    holds = [
        "looks like a repeat",
        "asked for by hand by jo: another person",
        "its approval ran out",
    ]

    assert requesters_of(holds) == {"jo"}
