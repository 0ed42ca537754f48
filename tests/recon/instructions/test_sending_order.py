from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.instructions.eligibility import (
    Baseline,
    Cleared,
    Refused,
    ShownPayment,
    batches,
    clear,
    planned_batches,
    queue,
)
from recon.instructions.instruction import ROWS_PER_BATCH_MAX, Instruction
from recon.model.words import GatewayState, InstructionKind, InstructionState, KeyAnswer
from tests.recon.instructions.sample_instructions import INSTRUCTION

AT = datetime(2026, 11, 20, tzinfo=UTC)
BASE = replace(
    INSTRUCTION,
    instruction_id="i",
    natural_key="k",
    transaction_id="",
    amount=100,
    payment_amount=100,
)
AUTHORISED = 1_000


def _cleared(number: int, kind: InstructionKind, *, payment: str = "", days: int = 0) -> Cleared:
    instruction = replace(BASE, instruction_id=f"i{number}", kind=kind)
    shown = ShownPayment(payment or f"T{number}", GatewayState.PAID, "3000", "EUR", 100)
    return Cleared(instruction, replace(shown, dated=AT - timedelta(days=days)))


def test_captures_leave_first_and_the_oldest_authorisation_before_all() -> None:
    """What lapses soonest leaves first; refunds come behind all captures."""
    queued = queue(
        [
            _cleared(1, InstructionKind.REFUND, days=9),
            _cleared(2, InstructionKind.CAPTURE, days=1),
            _cleared(3, InstructionKind.CAPTURE, days=6),
        ],
        refusal=lambda _: "",
    )

    assert [item.instruction.instruction_id for item in queued.cleared] == ["i3", "i2", "i1"]


def test_the_second_instruction_of_a_payment_waits_and_says_for_which() -> None:
    """One payment is touched once a night; the other one names the first."""
    queued = queue(
        [
            _cleared(1, InstructionKind.REFUND, payment="T9"),
            _cleared(2, InstructionKind.CAPTURE, payment="T9"),
        ],
        refusal=lambda _: "",
    )

    assert [item.instruction.instruction_id for item in queued.cleared] == ["i2"]
    assert [item.reason for item in queued.refused] == [
        "instruction i2 of the same payment goes first"
    ]


def test_a_refused_instruction_does_not_block_the_next_of_its_payment() -> None:
    """What a limit stops leaves the payment free for what fits."""
    queued = queue(
        [
            _cleared(1, InstructionKind.REFUND, payment="T9"),
            _cleared(2, InstructionKind.REFUND, payment="T9"),
        ],
        refusal=lambda one: "too large" if one.instruction_id == "i1" else "",
    )

    assert [item.instruction.instruction_id for item in queued.cleared] == ["i2"]


def test_payouts_and_subscriptions_leave_one_by_one() -> None:
    """Their requests carry one row; the others fill batches of fifty."""
    rows = [_cleared(n, InstructionKind.CAPTURE) for n in range(ROWS_PER_BATCH_MAX + 1)]
    rows += [_cleared(100 + n, InstructionKind.PAYOUT) for n in range(2)]

    assert [(kind, len(group)) for kind, group in batches(rows)] == [
        (InstructionKind.CAPTURE, 50),
        (InstructionKind.CAPTURE, 1),
        (InstructionKind.PAYOUT, 1),
        (InstructionKind.PAYOUT, 1),
    ]


def test_a_planned_batch_tells_rows_and_sums_per_currency() -> None:
    """What a dry run says of a batch is what leaves: kind, rows, sum per currency."""
    yen = _cleared(2, InstructionKind.CAPTURE)
    yen = replace(yen, instruction=replace(yen.instruction, currency="JPY"))
    plans = planned_batches([_cleared(1, InstructionKind.CAPTURE), yen])

    assert [str(plan) for plan in plans] == ["capture 1 of 1.00 EUR and 1 of 100 JPY"]


_KINDS = st.sampled_from([InstructionKind.CAPTURE, InstructionKind.CANCEL, InstructionKind.REFUND])
_ENDS = st.sampled_from(
    [
        InstructionState.CONFIRMED,
        InstructionState.REJECTED,
        InstructionState.IN_DOUBT,
        InstructionState.NEEDS_HUMAN,
        InstructionState.RESOLVED_APPLIED,
        InstructionState.RESOLVED_NOT_APPLIED,
    ]
)
_SHOWN = st.sampled_from(
    [GatewayState.AUTHORISED, GatewayState.PAID, GatewayState.PARTIALLY_REFUNDED]
)
_NIGHTS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(
                _KINDS, st.integers(1, 2 * AUTHORISED), st.sampled_from(["A-1", "A-2"]), _ENDS
            ),
            min_size=1,
            max_size=5,
        ),
        # What the query shows may be stale or moved by hand in the portal: any state at all.
        st.lists(_SHOWN, min_size=2, max_size=2),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("multiple_captures", [False, True])
@given(nights=_NIGHTS)
@settings(max_examples=300, deadline=None)
def test_no_night_ever_lets_a_payment_move_more_than_it_holds(
    nights: list[
        tuple[list[tuple[InstructionKind, int, str, InstructionState]], list[GatewayState]]
    ],
    *,
    multiple_captures: bool,
) -> None:
    """Whatever is asked for, shown and answered: captures and refunds keep the bounds."""
    journal: list[Instruction] = []
    for number, (wanted, shown) in enumerate(nights):
        baselines = {
            order: Baseline(
                KeyAnswer.FOUND, (ShownPayment(f"T-{order}", state, "x", "EUR", AUTHORISED),)
            )
            for order, state in zip(("A-1", "A-2"), shown, strict=True)
        }
        judged = [
            clear(
                replace(
                    BASE,
                    instruction_id=f"i{number}-{position}",
                    kind=kind,
                    amount=amount,
                    order_no=order,
                ),
                baseline=baselines[order],
                others=[one for one in journal if one.order_no == order],
                multiple_captures=multiple_captures,
            )
            for position, (kind, amount, order, _) in enumerate(wanted)
        ]
        queued = queue(
            (item for item in judged if not isinstance(item, Refused)), refusal=lambda _: ""
        )
        for item in queued.cleared:
            position = int(item.instruction.instruction_id.split("-")[1])
            journal.append(
                replace(
                    item.instruction,
                    transaction_id=item.payment.transaction_id,
                    state=wanted[position][3],
                )
            )
        _refuse_broken_bounds(journal, multiple_captures=multiple_captures)


def _refuse_broken_bounds(journal: list[Instruction], *, multiple_captures: bool) -> None:
    of_payment: dict[str, list[Instruction]] = defaultdict(list)
    for item in journal:
        if item.may_have_moved:
            of_payment[item.transaction_id].append(item)
    for moved in of_payment.values():
        captures = [one.amount for one in moved if one.kind is InstructionKind.CAPTURE]
        refunds = [one.amount for one in moved if one.kind is InstructionKind.REFUND]
        assert sum(captures) <= AUTHORISED
        assert multiple_captures or len(captures) <= 1
        assert sum(refunds) <= (sum(captures) or AUTHORISED)
        assert sum(one.is_open for one in moved) <= 1
