from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recon.store.database.engine import Store
from recon.store.nights import notification_rows
from recon.store.nights.notification_rows import (
    GatewayMessage,
    Kept,
    counts,
    evidence_of,
    keep,
    keep_case,
    order_nos_told,
    signed_states,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PLACE = ("m", "a")


def told(
    number: int,
    *,
    kind: str = "refund result",
    amount: int = 5,
    sha256: str = "x",
    status: str = "1",
    at: datetime = NOW,
) -> GatewayMessage:
    return GatewayMessage(
        kind=kind,
        identity_sha256=f"identity {number} {kind}",
        sha256=sha256,
        order_no=f"o{number}",
        transaction_id=f"t{number}",
        currency="EUR",
        amount=amount,
        status=status,
        fields={"refund_reference_id": f"t{number}-01", "refund_reference": "ours"},
        received_at=at,
    )


def test_evidence_is_what_messages_say_of_the_transactions_asked_for(store: Store) -> None:
    """Oldest first, of this account only, with amount, time and hash."""
    with store.writing() as connection:
        for place, number, minutes in ((PLACE, 1, 2), (PLACE, 2, 1), (PLACE, 3, 0)):
            keep(connection, place, message=told(number, at=NOW + timedelta(minutes=minutes)))
        keep(connection, ("m", "b"), message=told(1))
        found = evidence_of(connection, PLACE, transaction_ids=["t1", "t2"])

    assert [(one.transaction_id, one.amount, one.sha256) for one in found] == [
        ("t2", 5, "x"),
        ("t1", 5, "x"),
    ]
    assert found[0].received_at == NOW + timedelta(minutes=1)
    assert found[0].fields == told(2).fields


def test_a_failure_is_no_evidence_of_an_effect(store: Store) -> None:
    """A failed or unknown status proves nothing; what was taken on needs no status."""
    with store.writing() as connection:
        keep(connection, PLACE, message=told(1, status="0"))
        keep(connection, PLACE, message=told(2, status="77"))
        keep(connection, PLACE, message=told(3, status=""))
        keep(connection, PLACE, message=told(4, kind="refund accepted", status=""))
        wanted = ["t1", "t2", "t3", "t4"]
        found = evidence_of(connection, PLACE, transaction_ids=wanted)

    assert [one.transaction_id for one in found] == ["t4"]


def test_a_message_is_kept_once_and_beside_what_says_otherwise(store: Store) -> None:
    """The same again counts up; another content of one identity is kept too, and told."""
    with store.writing() as connection:
        answers = [
            keep(connection, PLACE, message=one)
            for one in (told(1), told(1), told(1, sha256="y", amount=9), told(1))
        ]
        found = evidence_of(connection, PLACE, transaction_ids=["t1"])

    assert answers == [Kept.ALONE, Kept.ALONE, Kept.BESIDE_OTHERS, Kept.BESIDE_OTHERS]
    assert [one.amount for one in found] == [5, 9]


def test_orders_told_lately_are_asked_for(store: Store) -> None:
    """What was told before the window does not keep an order in the night's questions."""
    with store.writing() as connection:
        keep(connection, PLACE, message=told(1, at=NOW - timedelta(days=2)))
        keep(connection, PLACE, message=told(2))
        found = order_nos_told(connection, PLACE, since=NOW - timedelta(days=1))

    assert found == {"o2"}


def test_cases_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of refused messages cannot fill the database."""
    monkeypatch.setattr(notification_rows, "CASES_PER_ACCOUNT_MAX", 2)
    with store.writing() as connection:
        for number in (1, 2, 3, 1):
            case = {"problem": "forged", "reason": "r", "body_sha256": str(number), "fields": {}}
            keep_case(connection, PLACE, case=case, at=NOW)
        assert counts(connection) == {"kept": 0, "forged": 3}


def test_only_what_the_signature_covers_is_a_signed_state(store: Store) -> None:
    """Of messages about the payment itself, and only in the signed fields."""
    fields = {"order_no": "o1", "transaction_id": "t1", "currency": "EUR", "amount": "5.00"}
    fields |= {"order_status": "3000", "payment_status": "4100"}
    with store.writing() as connection:
        for kind in ("payment", "refund result"):
            one = replace(told(1, kind=kind), fields=fields)
            keep(connection, PLACE, message=one)
        found = signed_states(connection, PLACE, transaction_id="t1")
        others = signed_states(connection, PLACE, transaction_id="t2")

    signed = {name: fields[name] for name in notification_rows.SIGNED_FIELDS}
    assert [(state.fields, state.received_at) for state in found] == [(signed, NOW)]
    assert others == []


def test_signed_states_that_contradict_each_other_are_no_evidence(store: Store) -> None:
    """Two amounts under two right signatures: neither ends a doubt, another state still may."""
    fields = {"order_no": "o1", "transaction_id": "t1", "currency": "EUR", "amount": "5.00"}
    with store.writing() as connection:
        for number, changed in enumerate(
            ({"order_status": "1"}, {"order_status": "1", "amount": "9.00"}, {"order_status": "0"})
        ):
            one = told(number, kind="payment", sha256=str(number))
            one = replace(one, transaction_id="t1", fields=fields | changed)
            keep(connection, PLACE, message=one)
        found = signed_states(connection, PLACE, transaction_id="t1")

    assert [(state.fields["amount"], state.fields["order_status"]) for state in found] == [
        ("5.00", "0")
    ]
