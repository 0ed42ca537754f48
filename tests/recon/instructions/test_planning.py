from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from recon.config.limits import CurrencyLimits
from recon.instructions.instruction import Intention
from recon.instructions.planning import (
    CONTRADICTS,
    Action,
    Earlier,
    Known,
    OrderRow,
    Plan,
    RuleAllowance,
    plan,
)
from recon.model.words import InstructionKind, InstructionState, OrderStatus

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


def _planned(
    *actions: Action,
    known: Known | None = None,
    auto_approve: bool = True,
    ids_unique: bool = False,
    prefix: str = "i",
) -> Plan:
    ids = count(1)
    return plan(
        actions,
        known=Known() if known is None else known,
        new_id=lambda: f"{prefix}{next(ids)}",
        auto_approve=auto_approve,
        ids_unique=ids_unique,
    )


def test_an_action_becomes_an_approved_instruction() -> None:
    """A row of an order file is approved by rule where the account says so."""
    made = _planned(REFUND)

    assert [(i.amount, i.payment_amount, i.state) for i in made.new] == [
        (4_000, 10_000, InstructionState.APPROVED)
    ]
    assert made.links == ((1, "i1"),)


def test_without_rule_approval_it_waits() -> None:
    """Where the account does not approve by rule, an instruction is only planned."""
    made = _planned(REFUND, auto_approve=False)

    assert [(i.state, i.approved_by) for i in made.new] == [(InstructionState.PLANNED, "")]


def test_a_blank_amount_means_the_whole_order() -> None:
    """An action without an amount moves the order's amount."""
    made = _planned(replace(REFUND, action_amount=None))

    assert made.new[0].amount == 10_000


def test_a_new_version_of_a_file_repeats_nothing() -> None:
    """The same action in a newer version of the same file is the same instruction."""
    known = Known()
    _planned(REFUND, known=known)
    again = _planned(replace(REFUND, action_id=2, file_id=9, line=7), known=known)

    assert again == Plan(new=(), links=((2, "i1"),))


def test_an_equal_action_from_another_file_waits_for_a_person() -> None:
    """An equal refund from elsewhere is not lost and not sent: it is held, naming the first."""
    known = Known()
    _planned(REFUND, known=known)
    again = _planned(replace(REFUND, action_id=2, file_name="orders-2.csv"), known=known)

    assert [(i.state, "i1 from orders-1.csv" in i.hold) for i in again.new] == [
        (InstructionState.PLANNED, True)
    ]


def test_an_equal_row_twice_in_one_file_waits_for_a_person() -> None:
    """The second of two equal refunds in one file is held; position alone makes no difference."""
    made = _planned(REFUND, replace(REFUND, action_id=2, line=3))

    assert [i.state for i in made.new] == [InstructionState.APPROVED, InstructionState.PLANNED]
    assert made.new[0].natural_key != made.new[1].natural_key


@pytest.mark.parametrize(("ids_unique", "second"), [(True, "approved"), (False, "planned")])
def test_another_request_id_is_another_refund_only_where_ids_are_unique(
    *, ids_unique: bool, second: str
) -> None:
    """Two equal refunds with ids of their own; the same id again is the same one in any file."""
    first = replace(REFUND, request_id="R-1")
    known = Known()
    other = replace(first, action_id=2, request_id="R-2")
    made = _planned(first, other, known=known, ids_unique=ids_unique)
    again = _planned(replace(first, action_id=3, file_name="later.csv"), known=known)

    assert [i.state for i in made.new] == ["approved", second]
    assert made.new[1].repeats == ("" if ids_unique else "i1")
    assert again == Plan(new=(), links=((3, "i1"),))


@pytest.mark.parametrize("second", ["", "r-1", "R-1 "])
def test_an_id_that_is_missing_or_written_otherwise_is_no_other_id(second: str) -> None:
    """Ids declared unique count where both are given and differ in more than case or space."""
    known = Known()
    _planned(replace(REFUND, request_id="R-1"), known=known, ids_unique=True)
    later = replace(REFUND, action_id=2, request_id=second, file_name="later.csv")
    again = _planned(later, known=known, ids_unique=True)

    assert [(i.state, i.repeats) for i in again.new] == [("planned", "i1")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"request_id": "R-1", "strict": True}, {"transaction_id": "", "request_id": "R-2"}),
        ({"transaction_id": ""}, {"request_id": "R-1"}),
        ({"request_id": "R-1"}, {"transaction_id": ""}),
        ({}, {"request_id": "R-1", "file_name": "orders-1.csv", "file_id": 2}),
        ({"transaction_id": ""}, {"file_name": "orders-1.csv", "file_id": 2}),
        ({"order_amount": 4_000, "action_amount": None}, {}),
        ({}, {"order_no": "A-2"}),
    ],
)
def test_the_same_intention_told_otherwise_waits_beside_the_first(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    """File kind, id, a blank payment, a blank amount, another order of one payment: still one."""
    known = Known()
    _planned(replace(REFUND, **first), known=known)
    later = {"action_id": 2, "file_id": 2, "file_name": "later.csv"} | second
    again = _planned(replace(REFUND, **later), known=known)

    assert [(i.state, i.repeats) for i in again.new] == [("planned", "i1")]


def test_a_row_that_says_no_more_with_the_same_id_is_the_same_instruction() -> None:
    """An order file repeats what an instruction file said of the payment: one instruction."""
    known = Known()
    _planned(replace(REFUND, request_id="R-1", strict=True), known=known)
    later = replace(
        REFUND, action_id=2, file_id=2, file_name="orders.csv", transaction_id="", request_id="R-1"
    )

    assert _planned(later, known=known) == Plan(new=(), links=((2, "i1"),))


def test_two_payments_of_one_order_are_two_intentions() -> None:
    """Equal refunds of two transactions both go, and both are known when the file comes again."""
    known = Known()
    other = replace(REFUND, action_id=2, line=3, transaction_id="T2")
    made = _planned(REFUND, other, known=known)
    again = _planned(
        replace(other, action_id=3, file_id=2), replace(REFUND, action_id=4, file_id=2), known=known
    )

    assert [i.state for i in made.new] == ["approved", "approved"]
    assert again == Plan(new=(), links=((3, "i2"), (4, "i1")))


def test_a_payment_that_only_the_gateway_names_is_compared() -> None:
    """A row without a transaction means the one that the gateway shows for its order."""
    known = Known(shown={"A-9": "T1"})
    _planned(REFUND, known=known)
    later = replace(
        REFUND, action_id=2, order_no="A-9", transaction_id="", file_name="orders-2.csv"
    )

    assert [(i.state, i.repeats) for i in _planned(later, known=known).new] == [("planned", "i1")]


def test_an_instruction_of_an_earlier_release_is_still_known() -> None:
    """Its natural key names the order alone; the payment became known when it was sent."""
    sent = replace(Intention.of(REFUND), request_id="")
    key = "refund|100042|100042001|A-1|4000|EUR|n:1"
    known = Known([Earlier(sent, "i0", key, "orders-1.csv", InstructionState.CONFIRMED)])
    row = replace(REFUND, transaction_id="", file_id=2)

    assert _planned(row, known=known) == Plan(new=(), links=((1, "i0"),))
    other = _planned(replace(row, file_name="orders-2.csv"), known=known)
    assert [(i.state, i.repeats) for i in other.new] == [("planned", "i0")]


def test_a_row_that_now_names_its_payment_is_a_question() -> None:
    """It may be meant to send what could not be sent without it: people decide, none is lost."""
    known = Known()
    _planned(replace(REFUND, transaction_id=""), known=known)
    named = _planned(replace(REFUND, action_id=2, file_id=2), known=known)

    assert [(i.transaction_id, i.state) for i in named.new] == [("T1", "planned")]


def test_a_payout_to_the_same_payee_names_the_first() -> None:
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


def test_a_changed_amount_in_a_newer_version_waits_for_a_person() -> None:
    """A correction of what may have been sent already is not sent on top of it."""
    known = Known()
    _planned(REFUND, known=known)
    changed = replace(REFUND, action_id=2, file_id=2, action_amount=5_000)
    again = _planned(changed, known=known)

    assert [(i.state, "i1" in i.hold) for i in again.new] == [(InstructionState.PLANNED, True)]


def test_a_row_added_to_a_newer_version_is_new() -> None:
    """When the first refund still stands in the newer version, a second one is meant."""
    known = Known()
    _planned(REFUND, known=known)
    kept = replace(REFUND, action_id=2, file_id=2)
    added = replace(REFUND, action_id=3, file_id=2, line=3, action_amount=1_000)
    again = _planned(kept, added, known=known)

    assert [(i.amount, i.state) for i in again.new] == [(1_000, InstructionState.APPROVED)]


def test_a_request_id_used_for_another_amount_waits_for_a_person() -> None:
    """One request id means one instruction; with other content it is a question."""
    known = Known()
    _planned(replace(REFUND, request_id="R-1"), known=known)
    again = _planned(
        replace(REFUND, action_id=2, request_id="R-1", action_amount=5_000), known=known
    )

    assert [(i.state, "R-1" in i.hold) for i in again.new] == [(InstructionState.PLANNED, True)]


def test_another_amount_is_another_instruction() -> None:
    """A different amount of the same order is its own instruction."""
    made = _planned(REFUND, replace(REFUND, action_id=2, action_amount=1_000))

    assert [i.hold for i in made.new] == ["", ""]


def test_a_request_id_of_an_instruction_file_stands_for_one_instruction() -> None:
    """The same id for another order, kind or payment waits for a person who sees the first one."""
    known = Known()
    first = replace(REFUND, request_id="R-1", strict=True, file_name="instructions-1.csv")
    _planned(first, known=known)
    others = [
        replace(first, order_no="A-2", transaction_id="T3"),
        replace(first, kind=InstructionKind.CAPTURE),
        replace(first, transaction_id="T2"),
    ]

    assert _planned(first, known=known).new == ()
    for other in others:
        (made,) = _planned(other, known=known).new
        assert (made.state, "used by instruction i1 for" in made.hold) == ("planned", True)


def test_a_payout_is_never_approved_by_a_rule() -> None:
    """With an allowance that bounds nothing, a payout still waits for two people."""
    payout = replace(REFUND, kind=InstructionKind.PAYOUT, request_id="P-1", strict=True)
    allowance = RuleAllowance(lambda _: CurrencyLimits(), approved={})
    made = plan(
        [payout], known=Known(), new_id=lambda: "i1", auto_approve=True, allowance=allowance
    )

    assert [(i.state, "two people" in i.hold) for i in made.new] == [("planned", True)]


def _row_of(refund_amount: int, *, file: int = 1, name: str = "orders-1.csv") -> Action:
    """A blank refund whose row says how much of the order is refunded in all."""
    row = OrderRow(OrderStatus.PARTIALLY_REFUNDED, "EUR", 10_000, refund_amount=refund_amount)
    return replace(REFUND, action_amount=None, row=row, file_id=file, file_name=name)


@pytest.mark.parametrize("request_id", ["", "r-1"])
def test_a_blank_refund_asks_for_what_is_left_of_its_rows_figure(request_id: str) -> None:
    """6.60, then 10.00 in all: 3.40 more. Told again, it is the same instruction, ended or not."""
    known = Known()
    first = _planned(replace(_row_of(660), request_id="r-0"), known=known)
    told = replace(_row_of(1_000, file=2, name="orders-2.csv"), request_id=request_id)
    grown = _planned(told, known=known, prefix="rest")
    again = _planned(replace(told, file_id=3), known=known)
    ended = Known(replace(one, state=_state_of(one)) for one in _every(known, told))
    after = _planned(replace(told, file_id=4), known=ended)

    assert [one.amount for made in (first, grown) for one in made.new] == [660, 340]
    assert {one.hold for made in (first, grown) for one in made.new} == {""}
    assert (again.new, after.new) == ((), ())
    assert again.links[0][1] == after.links[0][1] == grown.new[0].instruction_id


def _every(known: Known, action: Action) -> list[Earlier]:
    return known.beside(Intention.of(action))


def _state_of(one: Earlier) -> InstructionState:
    is_rest = one.intention.amount == 340
    return InstructionState.REJECTED if is_rest else InstructionState.CONFIRMED


def test_rows_that_ask_for_more_than_their_figure_together_wait() -> None:
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


def test_a_request_id_with_a_grown_refund_waits_and_keeps_its_own_key() -> None:
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
