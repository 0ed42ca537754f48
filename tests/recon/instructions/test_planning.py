from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from recon.config.limits import CurrencyLimits
from recon.instructions.instruction import Intention, reported_repeats, unagreed
from recon.instructions.planning import (
    CONTRADICTS,
    RULE_APPROVER,
    TWO_PEOPLE,
    Action,
    Known,
    OrderRow,
    Plan,
    RuleAllowance,
    SendingAllowance,
    plan,
    plan_again,
)
from recon.model.terms import InstructionKind, InstructionState, OrderStatus
from tests.recon.instructions.sample_instructions import INSTRUCTION

K, S = InstructionKind, InstructionState
REFUND = Action(
    action_id=1,
    file_id=1,
    file_name="orders-1.csv",
    line=2,
    merchant_id="100042",
    account_id="100042001",
    order_no="A-1",
    transaction_id="T1",
    kind=InstructionKind.REFUND,
    currency="EUR",
    order_amount=10_000,
    action_amount=4_000,
    reason="damaged",
    request_id="",
)


def _planned(*actions, known=None, auto_approve=True, ids_unique=False, prefix="i"):
    ids = count(1)
    return plan(
        actions,
        known=Known() if known is None else known,
        new_id=lambda: f"{prefix}{next(ids)}",
        auto_approve=auto_approve,
        ids_unique=ids_unique,
    )


def test_an_action_becomes_an_approved_instruction():
    made, waits = _planned(REFUND), _planned(REFUND, auto_approve=False)

    assert [(i.amount, i.payment_amount, i.state) for i in made.new] == [
        (4_000, 10_000, InstructionState.APPROVED)
    ]
    assert made.links == ((1, "i1"),)
    assert [(i.state, i.approved_by) for i in waits.new] == [(InstructionState.PLANNED, "")]
    assert _planned(replace(REFUND, action_amount=None)).new[0].amount == 10_000


def test_an_equal_row_twice_in_one_file_waits_for_a_person():
    made = _planned(REFUND, replace(REFUND, action_id=2, line=3))
    other = _planned(REFUND, replace(REFUND, action_id=2, action_amount=1_000))

    assert [i.state for i in made.new] == [InstructionState.APPROVED, InstructionState.PLANNED]
    assert made.new[0].natural_key != made.new[1].natural_key
    assert [i.hold for i in other.new] == ["", ""]


STRICT = {"request_id": "R-1", "strict": True}
NEWER = {"file_id": 2, "file_name": "orders-1.csv"}
SAME, REPEAT = "the same again", "a repeat of i1"
REPORTED_TWICE: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # A newer version of a file repeats nothing; an equal row from elsewhere is held, not lost.
    ({}, NEWER | {"line": 7}, SAME),
    ({}, {}, REPEAT),
    # File kind, id, a blank payment, a blank amount, another order of one payment: still one.
    (STRICT, {"transaction_id": "", "request_id": "R-2"}, REPEAT),
    ({"transaction_id": ""}, {"request_id": "R-1"}, REPEAT),
    ({"request_id": "R-1"}, {"transaction_id": ""}, REPEAT),
    ({}, NEWER | {"request_id": "R-1"}, REPEAT),
    ({"transaction_id": ""}, NEWER, REPEAT),
    ({"order_amount": 4_000, "action_amount": None}, {}, REPEAT),
    ({}, {"order_no": "A-2"}, REPEAT),
    # A row without a transaction means the one that the gateway shows for its order.
    ({}, {"order_no": "A-9", "transaction_id": ""}, REPEAT),
    # An order file repeats what an instruction file said of the payment: one instruction.
    (STRICT, {"transaction_id": "", "request_id": "R-1"}, SAME),
    # A correction of what may have been sent already is not sent on top of it.
    ({}, NEWER | {"action_amount": 5_000}, "in place of instruction i1"),
    # One request id means one instruction; with other content it is a question.
    ({"request_id": "R-1"}, {"request_id": "R-1", "action_amount": 5_000}, "request_id R-1 was"),
    # That of an instruction file, whatever it says: another order, kind or payment waits, too.
    (STRICT, STRICT, SAME),
    (STRICT, STRICT | {"order_no": "A-2", "transaction_id": "T3"}, "used by instruction i1 for"),
    (STRICT, STRICT | {"kind": K.CAPTURE}, "used by instruction i1 for"),
    (STRICT, STRICT | {"transaction_id": "T2"}, "used by instruction i1 for"),
]


@pytest.mark.parametrize(("first", "later", "comes_to"), REPORTED_TWICE)
def test_what_is_told_twice_is_the_same_again_or_waits_beside_the_first(first, later, comes_to):
    known = Known(only_payments={"A-9": "T1"})
    _planned(replace(REFUND, **first), known=known)
    told = {"action_id": 2, "file_id": 2, "file_name": "later.csv"} | later
    again = _planned(replace(REFUND, **told), known=known)

    if comes_to == SAME:
        assert again == Plan(new=(), links=((2, "i1"),))
        return
    (made,) = again.new
    assert (made.state, made.repeats) == (S.PLANNED, "i1" if comes_to == REPEAT else "")
    named = f"of instruction i1 from {replace(REFUND, **first).file_name}"
    assert (named if comes_to == REPEAT else comes_to) in made.hold


def test_a_payout_to_the_same_payee_names_the_first():
    """Two people approve every payout; they see that the payee had the same amount before."""
    payout = replace(
        REFUND,
        kind=InstructionKind.PAYOUT,
        order_no="",
        transaction_id="",
        request_id="P-1",
        strict=True,
        payee_digest="d1",
        content_digest="c1",
    )
    known = Known()
    allowance = RuleAllowance(lambda _: CurrencyLimits(), approved={})
    for action in (
        payout,
        replace(payout, action_id=2, request_id="P-2", content_digest="c2"),
        replace(payout, action_id=3, request_id="P-3", payee_digest="d2", content_digest="c3"),
    ):
        (made,) = plan(
            [action],
            known=known,
            new_id=lambda: f"i{len(known.near(Intention.of(payout))) + 1}",
            auto_approve=True,
            allowance=allowance,
        ).new
        assert (made.state, "every payout does" in made.hold) == ("planned", True)
        assert bool(made.repeats) is (action.request_id == "P-2")


def _row_of(refund_amount, *, file=1, name="orders-1.csv"):
    """A blank refund whose row says how much of the order is refunded in all."""
    row = OrderRow(OrderStatus.PARTIALLY_REFUNDED, "EUR", 10_000, refund_amount=refund_amount)
    return replace(REFUND, action_amount=None, row=row, file_id=file, file_name=name)


@pytest.mark.parametrize("request_id", ["", "r-1"])
def test_a_blank_refund_asks_for_what_is_left_of_its_rows_figure(request_id):
    """6.60, then 10.00 in all: 3.40 more. Told again, it is the same instruction, ended or not."""
    known = Known()
    first = _planned(replace(_row_of(660), request_id="r-0"), known=known)
    told = replace(_row_of(1_000, file=2, name="orders-2.csv"), request_id=request_id)
    grown = _planned(told, known=known, prefix="rest")
    again = _planned(replace(told, file_id=3), known=known)
    (of_first,), (of_rest,) = first.new, grown.new
    journal = [
        (replace(of_first, state=InstructionState.CONFIRMED), "orders-1.csv"),
        (replace(of_rest, state=InstructionState.REJECTED), "orders-2.csv"),
    ]
    ended = Known(journal)
    after = _planned(replace(told, file_id=4), known=ended)

    assert [one.amount for made in (first, grown) for one in made.new] == [660, 340]
    assert {one.hold for made in (first, grown) for one in made.new} == {""}
    assert (again.new, after.new) == ((), ())
    assert again.links[0][1] == after.links[0][1] == grown.new[0].instruction_id


def test_rows_that_ask_for_more_than_their_figure_together_wait():
    """Two parts of one file fit, a third is above what is left; no sum of a rule is used for it."""
    row = OrderRow(OrderStatus.PARTIALLY_REFUNDED, "EUR", 10_000, refund_amount=2_500)
    parts = [replace(REFUND, action_amount=units, row=row) for units in (1_000, 1_500, 500)]
    allowance = RuleAllowance(lambda _: CurrencyLimits(approved_by_rule_night=25), approved={})
    ids = count(1)
    made = plan(
        parts,
        known=Known(),
        new_id=lambda: f"i{next(ids)}",
        auto_approve=True,
        allowance=allowance,
    )

    assert [one.state.value for one in made.new] == ["approved", "approved", "planned"]
    assert made.new[2].hold.startswith(
        f"{CONTRADICTS}: refund of 5.00 EUR, but the row's refund_amount is 25.00 EUR, of which "
        "25.00 EUR is instructed already; two people approve it"
    )


def test_a_repeat_against_its_row_says_once_what_people_do():
    """Both facts, then the advice at their end."""
    row = OrderRow(OrderStatus.PARTIALLY_REFUNDED, "EUR", 10_000, refund_amount=1_000)
    made = _planned(*(replace(REFUND, action_id=each, row=row) for each in (1, 2)))

    assert made.new[0].hold.endswith("if it is meant so, else withdraw it")
    repeated = made.new[1].hold
    assert f"; {CONTRADICTS}: refund of 40.00 EUR" in repeated
    assert repeated.count("two people approve it") == 1
    assert repeated.endswith("if it is meant twice, else withdraw it")


def test_a_request_id_with_a_grown_refund_waits_and_keeps_its_own_key():
    """The same id, twice 3.40 of a figure that grew: for people, and never two of one key."""
    known = Known()
    keys = {
        one.natural_key
        for units in (340, 680)
        for one in _planned(
            replace(_row_of(units), request_id="r-1"), known=known, prefix=f"{units}-"
        ).new
    }

    assert len(keys) == 2


MAY = {
    "pending": {K.CAPTURE, K.CANCEL, K.REVIEW},
    "authorised": {K.CAPTURE, K.CANCEL, K.REVIEW},
    "paid": {K.CAPTURE, K.REFUND, K.REVIEW},
    "partially_refunded": {K.REFUND},
    "refunded": {K.REFUND, K.CANCEL},
    "cancelled": {K.CANCEL},
    "failed": {K.CANCEL},
}


@pytest.mark.parametrize("status", OrderStatus)
@pytest.mark.parametrize("kind", [K.CAPTURE, K.REFUND, K.CANCEL, K.REVIEW])
def test_a_status_bears_out_some_actions(status, kind):
    """Each kind by each status; what contradicts is said with both facts."""
    row = OrderRow(status, "EUR", 1_000, refund_amount=1_000)
    said = row.against(kind, amount=1_000)

    if kind in MAY[status]:
        assert said == ""
    else:
        assert said == f"{CONTRADICTS}: {kind} of 10.00 EUR, but the row's status is {status}"


@pytest.mark.parametrize(
    ("kind", "row", "amount", "before", "facts"),
    [
        (K.CAPTURE, OrderRow(OrderStatus.PAID, "JPY", 900, 500), 500, 0, ""),
        (
            *(K.CAPTURE, OrderRow(OrderStatus.PAID, "JPY", 900, 500), 501, 0),
            "capture of 501 JPY, but the row's expected_captured_amount is 500 JPY",
        ),
        (
            *(K.CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900, 500), 300, 300),
            (
                "capture of 3.00 EUR, but the row's expected_captured_amount is 5.00 EUR, "
                "of which 3.00 EUR is instructed already"
            ),
        ),
        (
            *(K.CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900, 0), 0, 0),
            "capture of 0.00 EUR, but the row's expected_captured_amount is 0.00 EUR",
        ),
        (
            *(K.CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900, 1_000), 1_000, 0),
            "capture of 10.00 EUR, but the row's amount is 9.00 EUR",
        ),
        (
            *(K.REFUND, OrderRow(OrderStatus.REFUNDED, "KWD", 9_000, None, 2_500), 2_501, 0),
            "refund of 2.501 KWD, but the row's refund_amount is 2.500 KWD",
        ),
        (K.REFUND, OrderRow(OrderStatus.PAID, "EUR", 900, None, 0), 900, 0, ""),
        (
            *(K.REFUND, OrderRow(OrderStatus.PAID, "EUR", 900, 500), 501, 0),
            "refund of 5.01 EUR, but the row's expected_captured_amount is 5.00 EUR",
        ),
        (
            *(K.REFUND, OrderRow(OrderStatus.REFUNDED, "EUR", 900), 500, 500),
            (
                "refund of 5.00 EUR, but the row's amount is 9.00 EUR, of which 5.00 EUR is "
                "instructed already"
            ),
        ),
        (K.CANCEL, OrderRow(OrderStatus.CANCELLED, "EUR", 900, 500), 900, 0, ""),
    ],
)
def test_a_row_bears_out_no_more_than_its_own_figure(kind, row, amount, before, facts):
    """By currency: the figure of the kind, less earlier ones where it is their sum."""
    assert row.against(kind, amount=amount, before=before).removeprefix(f"{CONTRADICTS}: ") == facts


@pytest.mark.parametrize(
    ("kind", "row", "before", "amount"),
    [
        (K.CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900, 500), 0, 500),
        (K.CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900), 0, 900),
        (K.REFUND, OrderRow(OrderStatus.PARTIALLY_REFUNDED, "EUR", 900, None, 300), 0, 300),
        (K.REFUND, OrderRow(OrderStatus.PARTIALLY_REFUNDED, "EUR", 900, None, 300), 100, 200),
        (K.REFUND, OrderRow(OrderStatus.REFUNDED, "EUR", 900, 800), 100, 700),
        (K.REFUND, OrderRow(OrderStatus.PAID, "EUR", 900, None, 0), 100, 900),
        (K.CANCEL, OrderRow(OrderStatus.CANCELLED, "EUR", 900, 500, 300), 0, 900),
    ],
)
def test_a_blank_amount_takes_the_rows_own_figure(kind, row, before, amount):
    """Else the whole order; of refunds what is left of it."""
    assert row.requested(kind, before=before) == amount


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


def _again(*ended, **options):
    return plan_again(
        ended,
        have_second=options.get("have_second", ()),
        new_id=iter(("i2", "i3")).__next__,
        auto_approve=options.get("auto_approve", True),
        allowance=RuleAllowance(lambda _: options.get("limits", CurrencyLimits()), approved={}),
    )


def test_a_second_capture_is_a_new_instruction_with_its_first_named():
    (second,) = _again(FIRST)

    assert _again(FIRST, have_second={FIRST.instruction_id}) == ()
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
def test_nothing_else_comes_again(changed):
    """Only a whole capture that surely did not happen, and only its first instruction."""
    assert _again(replace(FIRST, **changed)) == ()


def test_what_people_approved_waits_for_people_again():
    """An approval was for one instruction; the second has none."""
    (second,) = _again(replace(FIRST, approved_by="ann and ben"))
    (without_rule,) = _again(FIRST, auto_approve=False)

    for each in (second, without_rule):
        assert (each.state, each.approved_by) == (InstructionState.PLANNED, "")
    assert "people approved instruction i1" in second.hold


def test_the_limits_of_the_rule_hold_for_a_second_capture():
    (second,) = _again(FIRST, limits=CurrencyLimits(approved_by_rule=Decimal("99.99")))

    assert second.state is InstructionState.PLANNED
    assert "a rule approves at most 99.99 EUR" in second.hold


def _instruction(amount, kind=InstructionKind.REFUND):
    return replace(
        INSTRUCTION, kind=kind, amount=amount, payment_amount=amount, approved_by="rule: order file"
    )


def _rule(approved=0, **bounds):
    limits = CurrencyLimits(**{name: Decimal(text) for name, text in bounds.items()})
    return RuleAllowance(lambda _: limits, approved={"EUR": approved})


def _limited(before=None, **bounds):
    limits = CurrencyLimits(**{name: Decimal(text) for name, text in bounds.items()})
    sums = {name: {"EUR": amount} for name, amount in (before or {}).items()}
    return SendingAllowance(lambda _: limits, night=sums.get("night", {}), day=sums.get("day", {}))


def _hold(allowance, amount, kind=InstructionKind.REFUND):
    return allowance.hold_on(kind, currency="EUR", amount=amount)


def test_real_money_of_a_currency_without_a_limit_waits_for_people():
    bounds = {"EUR": CurrencyLimits(night=100), "USD": CurrencyLimits()}
    allowance = RuleAllowance(lambda code: bounds[code], approved={}, needs_limit=True)

    assert allowance.hold_on(InstructionKind.REFUND, currency="EUR", amount=900) == ""
    for kind in (InstructionKind.REFUND, InstructionKind.REVIEW):
        held = allowance.hold_on(kind, currency="USD", amount=1)
        assert held == "needs approval by two people: limits.toml sets no limit for USD"


@pytest.mark.parametrize(
    ("bounds", "amounts"),
    [
        ({"approved_by_rule": "500"}, {50_000: "", 50_001: "a rule approves at most 500 EUR at"}),
        # What was approved before counts, and what was not uses up nothing.
        (
            {"approved_by_rule_night": "200"},
            {4_000: "", 1_001: "would have approved 200.01 EUR this night", 1_000: "", 1: "200.01"},
        ),
        (
            {"approved_by_rule": "50", "approved_by_rule_night": "200"},
            {5_001: "at most 50 EUR", 5_000: ""},
        ),
    ],
)
def test_a_rule_approves_up_to_its_bounds_and_not_a_cent_more(bounds, amounts):
    allowance = _rule(approved=15_000, **bounds)

    for amount, why in amounts.items():
        told = _hold(allowance, amount)
        assert (bool(told), why in told) == (bool(why), True)
        assert told.startswith(TWO_PEOPLE) or not told


def test_every_payout_needs_two_people_and_a_new_payee_is_named():
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


@pytest.mark.parametrize("name", ["night", "day"])
def test_what_was_sent_before_counts_against_night_and_day(name):
    before = {name: 9_000}
    allowance = _limited(before=before, **{name: "100"})

    assert allowance.refusal(_instruction(1_000)) == ""
    assert f"this {name} would have sent 100.01 EUR" in allowance.refusal(_instruction(1))


INTENDED = replace(INSTRUCTION, kind=InstructionKind.REFUND, state=InstructionState.CONFIRMED)


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
def test_what_one_intention_is(changed, *, may_be):
    """Merchant, account, kind, payment, amount and currency; ids and names beside it are not."""
    one, other = Intention.of(INTENDED), Intention.of(replace(INTENDED, **changed))

    assert one.may_be(other, ids_unique=False) is may_be
    assert other.may_be(one, ids_unique=False) is may_be


def test_a_payment_that_the_gateway_shows_counts_where_no_row_names_it():
    unnamed = replace(INTENDED, order_no="A-2", transaction_id="")

    assert Intention.of(unnamed, queried_id="T1").may_be(Intention.of(INTENDED), ids_unique=False)
    assert not Intention.of(unnamed, queried_id="T2").may_be(
        Intention.of(INTENDED), ids_unique=False
    )


def test_a_review_has_no_amount():
    review = replace(INTENDED, kind=InstructionKind.REVIEW)

    assert Intention.of(review).what == Intention.of(replace(review, amount=0)).what


def test_the_payment_it_is_sent_for_is_compared():
    wanted = replace(INTENDED, instruction_id="i2", transaction_id="")
    elsewhere = replace(INTENDED, transaction_id="T2")

    def found(transaction_id):
        others = [INTENDED, wanted, replace(elsewhere, instruction_id="i3")]
        return [
            one.instruction_id
            for one in unagreed(
                wanted, others=others, transaction_id=transaction_id, ids_unique=False
            )
        ]

    assert (found("T1"), found("T2"), found("T3")) == (["i1"], ["i3"], [])


def test_why_it_waits_names_the_first_and_counts_the_others():
    told = reported_repeats([INTENDED, replace(INTENDED, instruction_id="i2")])

    assert told.startswith("looks like a repeat of instruction i1 and 1 more, which is confirmed")
