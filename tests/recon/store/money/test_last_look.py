"""In the transaction that claims: what was taken back, or carried out meanwhile, does not leave."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from recon.instructions.eligibility import Cleared, ShownPayment
from recon.instructions.instruction import Instruction
from recon.instructions.planning import Plan
from recon.model.words import GatewayState, InstructionKind, InstructionState
from recon.store.database.engine import Store
from recon.store.money import instruction_rows
from recon.store.money.journal import left_out
from recon.store.nights.runs import Run
from tests.recon.instructions.sample_instructions import INSTRUCTION

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
WANTED = replace(INSTRUCTION, kind=InstructionKind.REFUND, file_id=None, request_id="R-1")
DONE = replace(
    WANTED,
    instruction_id="i0",
    natural_key="k0",
    state=InstructionState.CONFIRMED,
    request_id="R-2",
)
ALONE: dict[str, Any] = {"order_no": "", "transaction_id": ""}


def _left_out(store: Store, run: Run, *items: Instruction, ids_unique: bool = False) -> list[str]:
    wanted = items[0]
    paid = ShownPayment(wanted.transaction_id, GatewayState.PAID, "3000", "EUR", 10_000)
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan(items, ()), at=AT)
        found = left_out(connection, [Cleared(wanted, paid)], ids_unique=ids_unique)
    return list(found.values())


def test_what_may_leave_is_not_left_out(store: Store, run: Run) -> None:
    """Approved, and nothing else means the same."""
    assert _left_out(store, run, WANTED, replace(DONE, amount=1)) == []


@pytest.mark.parametrize("state", ["confirmed", "in_flight", "in_doubt", "needs_human"])
def test_what_another_carried_out_meanwhile_is_left_out(store: Store, run: Run, state: str) -> None:
    """A second one of the intention is not claimed, whoever claimed the first."""
    done = replace(DONE, state=InstructionState(state))
    (told,) = _left_out(store, run, WANTED, done)

    assert f"repeat of instruction i0, which is {state}" in told


@pytest.mark.parametrize(
    ("wanted", "ids_unique"), [(replace(WANTED, repeats="i0"), False), (WANTED, True)]
)
def test_what_people_or_the_merchant_allow_beside_it_leaves(
    store: Store, run: Run, wanted: Instruction, *, ids_unique: bool
) -> None:
    """Approved with the first one named, or under ids that are declared unique."""
    assert _left_out(store, run, wanted, DONE, ids_unique=ids_unique) == []


@pytest.mark.parametrize(
    "about",
    [
        {**ALONE, "kind": InstructionKind.PAYOUT, "payee_digest": "d1"},
        {**ALONE, "kind": InstructionKind.CANCEL_SUBSCRIPTION, "recurring_id": "s1"},
    ],
)
def test_payouts_and_subscriptions_are_known_by_what_they_are_about(
    store: Store, run: Run, about: dict[str, Any]
) -> None:
    """A payee or a subscription stands in the place of the payment."""
    other = {"payee_digest": "d2", "recurring_id": "s2"}
    elsewhere = replace(DONE, **(about | {name: other[name] for name in other if name in about}))

    assert _left_out(store, run, replace(WANTED, **about), elsewhere) == []
    told = _left_out(
        store,
        run,
        replace(WANTED, **about, instruction_id="i5", natural_key="k5"),
        replace(DONE, **about, instruction_id="i6", natural_key="k6"),
    )
    assert len(told) == 1


@pytest.mark.parametrize("state", ["withdrawn", "rejected", "confirmed", "in_doubt"])
def test_what_is_no_longer_approved_is_left_out(store: Store, run: Run, state: str) -> None:
    """What people or another run did with it since this run looked."""
    stands = replace(WANTED, state=InstructionState(state), message="changed their mind")
    paid = ShownPayment(WANTED.transaction_id, GatewayState.PAID, "3000", "EUR", 10_000)
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan([stands], ()), at=AT)
        found = left_out(connection, [Cleared(WANTED, paid)], ids_unique=True)

    assert found == {"i1": f"it is {state} since this run looked: changed their mind"}


def test_a_row_that_is_gone_is_left_out(store: Store) -> None:
    """What the journal does not have is not sent."""
    gone = Cleared(WANTED, ShownPayment("T1", GatewayState.PAID, "3000", "EUR", 10_000))
    with store.reading() as connection:
        found = left_out(connection, [gone], ids_unique=False)

    assert found == {"i1": "the journal does not have it any more"}


def test_what_an_account_asks_of_the_journal_is_its_own(store: Store, run: Run) -> None:
    """An instruction of a neighbour is no repeat, no doubt and no limit of this account."""
    others = replace(run, account_id="100042002")
    theirs = replace(DONE, account_id="100042002")
    with store.writing() as connection:
        instruction_rows.save_plan(connection, run, plan=Plan((WANTED,), ()), at=AT)
        instruction_rows.save_plan(connection, others, plan=Plan((theirs,), ()), at=AT)
        kinds = [InstructionKind.REFUND]
        by_account = [
            [each.instruction_id for each in instruction_rows.find(connection, owner, kind=kinds)]
            for owner in (run, others, None)
        ]

    assert by_account == [[WANTED.instruction_id], ["i0"], [WANTED.instruction_id, "i0"]]
