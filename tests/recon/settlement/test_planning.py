from dataclasses import replace
from itertools import count

from recon.limits import CurrencyLimits
from recon.model import InstructionKind, InstructionState
from recon.settlement.allowance import RuleAllowance
from recon.settlement.planning import Action, Known, Plan, plan

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
    occurrence=1,
)


def _planned(*actions: Action, known: Known | None = None, auto_approve: bool = True) -> Plan:
    ids = count(1)
    return plan(
        actions,
        known=Known() if known is None else known,
        new_id=lambda: f"i{next(ids)}",
        auto_approve=auto_approve,
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
    made = _planned(REFUND, replace(REFUND, action_id=2, line=3, occurrence=2))

    assert [i.state for i in made.new] == [InstructionState.APPROVED, InstructionState.PLANNED]
    assert made.new[0].natural_key != made.new[1].natural_key


def test_a_request_id_of_its_own_makes_an_intended_repeat() -> None:
    """Two equal refunds with different request ids are two; the same id again is the same."""
    first = replace(REFUND, request_id="R-1")
    known = Known()
    made = _planned(first, replace(first, action_id=2, request_id="R-2"), known=known)
    again = _planned(replace(first, action_id=3, file_name="later.csv"), known=known)

    assert [i.state for i in made.new] == [InstructionState.APPROVED] * 2
    assert again == Plan(new=(), links=((3, "i1"),))


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
        replace(first, order_no="A-2"),
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
