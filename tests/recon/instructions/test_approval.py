from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.config.approvers import Approver, person_key
from recon.config.limits import CurrencyLimits
from recon.instructions.approval import (
    decides_on,
    list_of,
    problem_of_others,
    problem_of_two,
    reported_with,
    requesters_of,
    sums_text,
)
from recon.instructions.instruction import ATTESTED, OF_PAYOUTS
from recon.instructions.planning import RuleAllowance
from recon.model.terms import InstructionState
from tests.recon.instructions.sample_instructions import INSTRUCTION

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
DECIDES = sorted({"instruction_id", "natural_key", "hold", *ATTESTED} - {"kind", OF_PAYOUTS})


def changed(name, value):
    return replace(ONE, **{name: value})


@given(
    name=st.sampled_from(DECIDES),
    text=st.text(alphabet="abcXYZ019|\x1f\x1e", min_size=1, max_size=20),
    number=st.integers(min_value=0, max_value=10**15),
)
def test_any_change_makes_it_another_list(name, text, number):
    value = number if name.endswith("amount") else text
    other = changed(name, value)

    assert (list_of([other]).digest == list_of([ONE]).digest) is (getattr(ONE, name) == value)


def test_the_order_of_the_rows_does_not_matter():
    other = changed("instruction_id", "i2")

    assert list_of([ONE, other]).digest == list_of([other, ONE]).digest


def test_the_list_tells_sums_largest_and_repeats():
    yen = replace(ONE, instruction_id="i2", currency="JPY", amount=500, hold="")
    approvals = list_of([ONE, yen])
    named = replace(ONE, instruction_id="i3", hold="", repeats="i1")

    assert approvals.sums == {"EUR": 10000, "JPY": 500}
    assert sums_text(approvals.sums) == "100.00 EUR, 500 JPY"
    assert [one.instruction_id for one in approvals.largest] == ["i1", "i2"]
    assert [one.instruction_id for one in approvals.repeats] == ["i1"]
    assert list_of([named]).repeats == (named,)
    assert reported_with(replace(named, request_id="R-1", transaction_id="T9")) == (
        "i3 capture 100.00 EUR, order A1, transaction T9, request_id R-1: planned"
    )


def test_no_currency_hides_the_largest_of_another():
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


def test_the_list_names_payees_who_were_never_paid_before():
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


ANNA = Approver(name="Anna", limit={"EUR": Decimal(100)})
REVIEWER = Approver(name="Dan", role="reviewer", limit={"EUR": Decimal(500)})
ASKED = Approver(name="Jo Hill", limit={"EUR": Decimal(500)})
DOLLARS = Approver(name="Eve", limit={"USD": Decimal(500)})
LOW = Approver(name="Ben", limit={"EUR": Decimal("99.99")})
MAY = decides_on(list_of([ONE]), requesters={"jo"}, key=partial(person_key, declared={"jo": ASKED}))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (REVIEWER, "Dan is a reviewer"),
        (ASKED, "Jo Hill asked for it"),
        (DOLLARS, "Eve has no limit in EUR"),
        (LOW, "the list sums to more EUR than the limit of Ben (99.99)"),
    ],
)
def test_one_of_two_is_an_approver_who_may_let_the_list_go(other, said):
    """In whatever order; two of whom neither may are told why each of them may not."""
    assert [problem_of_two(two, decides=MAY) for two in ((ANNA, other), (other, ANNA))] == [""] * 2
    problem = problem_of_two((other, LOW), decides=MAY)
    assert problem.startswith(f"one of two must be an approver who may: {said}")


def test_who_would_leave_nobody_behind_is_told():
    left = partial(problem_of_others, decides=MAY)
    assert left(REVIEWER, declared=[REVIEWER, LOW, ANNA]) == ""
    assert left(ANNA, declared=[REVIEWER, ANNA]) == ""
    assert left(REVIEWER, declared=[REVIEWER, LOW]) == (
        "after Dan nobody would be left for the second word: Dan is a reviewer; "
        "the list sums to more EUR than the limit of Ben (99.99)"
    )
    assert left(ANNA, declared=[ANNA]).endswith("approvers.toml declares nobody else")


def test_whoever_asked_by_hand_is_a_requester():
    """Order files are nobody; a person who typed a command is somebody, whatever came since."""
    holds = [
        "looks like a repeat",
        "asked for by hand by jo: another person",
        "its approval ran out",
    ]

    assert requesters_of(holds) == {"jo"}
