"""Contracts 4 to 7: capture, review, cancel and refund, by the real client against the sandbox."""

from decimal import Decimal
from typing import Any

import pytest

from recon.gateway_client import (
    CancelRow,
    CaptureRow,
    InvalidRequestError,
    RefundRow,
    ReplyOutcome,
    ReviewRow,
    SignatureState,
)

ROWS = {"capture": CaptureRow, "cancel": CancelRow, "review": ReviewRow}
LIMITS = {"capture": 50, "cancel": 50, "refund": 50, "review": 100}


def rows_for(operation, payments, **more):
    made: list[Any] = []
    for payment in payments:
        fields = payment | {"amount": Decimal(payment["amount"])}
        if operation == "refund":
            fields |= {"refund_amount": Decimal(payment["amount"]), "refund_reason": "returned"}
            made.append(RefundRow(**(fields | more)))
        else:
            made.append(ROWS[operation](**(fields | more)))
    return made


def payments_for(sandbox, operation):
    """Seeded payments on which the operation is possible."""
    return sandbox.captured() if operation == "refund" else sandbox.authorised()


def true_effects(sandbox):
    return [
        (effect["operation"], effect["transaction_id"], effect["amount"])
        for effect in sandbox.effects()
    ]


DONE = {
    "capture": ReplyOutcome.DONE,
    "cancel": ReplyOutcome.DONE,
    "review": ReplyOutcome.DONE,
    "refund": ReplyOutcome.ACCEPTED,
}
STATE_AFTER = {"capture": "3000", "cancel": "5000", "refund": "4100"}


@pytest.mark.parametrize("operation", sorted(DONE))
def test_good_rows_take_effect_once_each(sandbox, target, operation):
    payments = payments_for(sandbox, operation)[:3]
    reply = target.move(operation, rows_for(operation, payments))
    assert [row.outcome for row in reply.rows] == [DONE[operation]] * 3
    assert reply.signature is SignatureState.VALID
    assert (reply.findings, bool(reply.stop_reason)) == ((), False)
    amount = "" if operation == "review" else None
    assert true_effects(sandbox) == [
        (operation, row["transaction_id"], row["amount"] if amount is None else amount)
        for row in payments
    ]


@pytest.mark.parametrize("operation", sorted(STATE_AFTER))
def test_the_query_shows_what_a_batch_did(sandbox, target, operation):
    (payment,) = payments_for(sandbox, operation)[:1]
    target.move(operation, rows_for(operation, [payment]))
    (record,) = target.ask(trades=[payment["transaction_id"]]).found
    assert record.payment_status == STATE_AFTER[operation]


@pytest.mark.parametrize("operation", ["capture", "cancel", "refund"])
def test_what_was_done_in_full_is_refused_the_second_time(sandbox, target, operation):
    rows = rows_for(operation, payments_for(sandbox, operation)[:1])
    target.move(operation, rows)
    before = true_effects(sandbox)
    (second,) = target.move(operation, rows).rows
    assert second.outcome is ReplyOutcome.FAILED
    assert second.code
    assert second.message
    assert true_effects(sandbox) == before


@pytest.mark.parametrize("operation", sorted(DONE))
def test_one_bad_row_fails_alone(sandbox, target, operation):
    payments = payments_for(sandbox, operation)[:3]
    payments[1] = payments[1] | {"transaction_id": "77777777777777777777"}
    reply = target.move(operation, rows_for(operation, payments))
    wanted = [DONE[operation], ReplyOutcome.FAILED, DONE[operation]]
    assert [row.outcome for row in reply.rows] == wanted
    assert len(true_effects(sandbox)) == 2


@pytest.mark.parametrize(("operation", "rows_max"), sorted(LIMITS.items()))
def test_a_full_batch_is_taken_and_a_larger_one_never_sent(sandbox, target, operation, rows_max):
    (payment,) = payments_for(sandbox, operation)[:1]
    many = [
        payment | {"transaction_id": f"{number:020d}", "order_no": f"C{number}"}
        for number in range(rows_max + 1)
    ]
    reply = target.move(operation, rows_for(operation, many[:rows_max]))
    assert [row.outcome for row in reply.rows] == [ReplyOutcome.FAILED] * rows_max
    calls = sandbox.http.get("/_sandbox/health").json()["requests"]
    with pytest.raises(InvalidRequestError):
        target.move(operation, rows_for(operation, many))
    assert sandbox.http.get("/_sandbox/health").json()["requests"] == calls


@pytest.mark.parametrize("operation", sorted(DONE))
def test_a_payment_of_another_account_is_refused(sandbox, target, operation):
    others = [e for e in sandbox.effects(origin="seed") if e["account_id"] != "100042001"]
    names = ("transaction_id", "order_no", "currency", "amount")
    payment = {name: others[0][name] for name in names}
    (row,) = target.move(operation, rows_for(operation, [payment])).rows
    assert row.outcome is ReplyOutcome.FAILED
    assert true_effects(sandbox) == []


def test_a_part_of_an_authorisation_can_be_captured(sandbox, target):
    """The captured amount is the row's, the rest lapses."""
    payment = next(row for row in sandbox.authorised() if row["currency"] == "EUR")
    part = Decimal(payment["amount"]) - Decimal("0.01")
    (row,) = target.move("capture", rows_for("capture", [payment], amount=part)).rows
    assert row.outcome is ReplyOutcome.DONE
    assert true_effects(sandbox) == [("capture", payment["transaction_id"], str(part))]


def test_more_than_was_authorised_is_not_captured(sandbox, target):
    payment = next(row for row in sandbox.authorised() if row["currency"] == "EUR")
    above = Decimal(payment["amount"]) + Decimal("0.01")
    (row,) = target.move("capture", rows_for("capture", [payment], amount=above)).rows
    assert row.outcome is ReplyOutcome.FAILED
    assert true_effects(sandbox) == []


def test_partial_refunds_are_numbered_and_bounded(sandbox, target):
    payment = next(row for row in sandbox.captured() if row["currency"] == "EUR")
    whole = Decimal(payment["amount"])
    part = (whole / 2).quantize(Decimal("0.01")) + Decimal("0.01")
    first = target.move("refund", rows_for("refund", [payment], refund_amount=part)).rows[0]
    over = target.move("refund", rows_for("refund", [payment], refund_amount=part)).rows[0]
    rest = target.move("refund", rows_for("refund", [payment], refund_amount=whole - part)).rows[0]
    assert first.refund_reference_id == f"{payment['transaction_id']}-01"
    assert (over.outcome, over.refund_reference_id) == (ReplyOutcome.FAILED, "")
    assert rest.refund_reference_id == f"{payment['transaction_id']}-02"
    assert sandbox.invariants()["over_refunded"] == 0
