from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from recon.model.terms import SourceFile, SourceKind
from recon.store.database import history
from recon.store.database.engine import Turn
from recon.store.nights import notification_rows, order_rows
from recon.store.nights.notification_rows import (
    GatewayMessage,
    counts,
    evidence_of,
    order_nos_reported,
    save,
    save_case,
    signed_states,
)
from recon.store.nights.order_rows import ACTIONS, all_changed_actions, changed_actions

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
SOURCE = SourceFile(SourceKind.INSTRUCTIONS, "pay.csv", "a" * 64, 1, 3, 3, 0, 0)
OTHER = "100042009"
NUMBERS = ("line", "amount", "action_amount", "expected_captured_amount", "refund_amount")


def arrive(store, run, *lines):
    place = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    row = {"order_no": "A-1", "action": "refund", "currency": "EUR", "amount": 1_000}
    rows: list[dict[str, Any]] = [{**place, **row, "line": line} for line in lines]
    rows += [{**place, **row, "account_id": OTHER, "line": 9, "action_amount": 5}]
    for actions in (rows[:-1], rows[-1:]):
        with store.writing(turn=Turn.ORDERS) as connection:
            order_rows.save_file(connection, run, actions=actions, rejects=(), source=SOURCE, at=AT)
            grown = history.grown(connection)
        # A database that forgot a file reads it again: nothing is noted outside for it.
        assert not grown.what


def problems(store, run):
    with store.reading() as connection:
        return [*changed_actions(connection, run)], [*all_changed_actions(connection)]


def change(store, statement):
    with store.writing() as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize(
    ("change_to", "here", "everywhere"),
    [
        # They are planned.
        ("SET instruction_id = 'i', sealed = ''", "", ""),
        # A file that the history never heard of asks for nothing.
        ("SET file_id = 3 - file_id", *["the history has no event of them"] * 2),
        # What is changed of one account closes that account's gate, and no other's.
        (f"SET action_amount = 6 WHERE account_id = '{OTHER}'", "", f"account 100042/{OTHER}"),
    ],
)
def test_waiting_actions_are_what_arrived(store, run, change_to, here, everywhere):
    """Held against the history by the account's night, and of all accounts by `recon verify`."""
    arrive(store, run, 2, 3)
    assert problems(store, run) == ([], [])
    change(store, f"UPDATE order_action {change_to}")
    for words, found in zip((here, everywhere), problems(store, run), strict=True):
        assert bool(words) == bool(found)
        assert any(words in one for one in found) or not words


@pytest.mark.parametrize("column", [name for name in ACTIONS.columns if "_id" not in name])
def test_each_column_that_is_changed_is_found(store, run, column):
    arrive(store, run, 2, 3)
    other = "7" if column in NUMBERS else "'xyz'"
    change(store, f"UPDATE order_action SET {column} = {other}")  # noqa: S608 - of this test
    here, everywhere = problems(store, run)

    assert len(here) == 1
    assert len(everywhere) == 2
    assert "pay.csv (number" in here[0]
    assert "they do not say what arrived" in here[0]


def test_actions_that_are_gone_are_missed(store, run):
    arrive(store, run, 2, 3)
    change(store, "DELETE FROM order_action WHERE line < 9")
    here, everywhere = problems(store, run)

    assert here == []
    assert ["its table has 0 of 2 rows" in one for one in everywhere] == [True]


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PLACE = ("m", "a")


def told(number, *, kind="refund result", amount=5, sha256="x", status="1", at=NOW):
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


def test_evidence_is_what_messages_say_of_the_transactions_asked_for(store):
    with store.writing() as connection:
        for place, number, minutes in ((PLACE, 1, 2), (PLACE, 2, 1), (PLACE, 3, 0)):
            save(connection, place, message=told(number, at=NOW + timedelta(minutes=minutes)))
        save(connection, ("m", "b"), message=told(1))
        found = evidence_of(connection, PLACE, transaction_ids=["t1", "t2"])

    assert [(one.transaction_id, one.amount, one.sha256) for one in found] == [
        ("t2", 5, "x"),
        ("t1", 5, "x"),
    ]
    assert found[0].received_at == NOW + timedelta(minutes=1)
    assert found[0].fields == told(2).fields


def test_a_failure_is_no_evidence_of_an_effect(store):
    """A failed or unknown status proves nothing; what was taken on needs no status."""
    with store.writing() as connection:
        save(connection, PLACE, message=told(1, status="0"))
        save(connection, PLACE, message=told(2, status="77"))
        save(connection, PLACE, message=told(3, status=""))
        save(connection, PLACE, message=told(4, kind="refund accepted", status=""))
        wanted = ["t1", "t2", "t3", "t4"]
        found = evidence_of(connection, PLACE, transaction_ids=wanted)

    assert [one.transaction_id for one in found] == ["t4"]


def test_orders_told_lately_are_asked_for(store):
    with store.writing() as connection:
        save(connection, PLACE, message=told(1, at=NOW - timedelta(days=2)))
        save(connection, PLACE, message=told(2))
        found = order_nos_reported(connection, PLACE, since=NOW - timedelta(days=1))

    assert found == {"o2"}


def test_cases_are_bounded(store, monkeypatch):
    """A flood of refused messages cannot fill the database."""
    monkeypatch.setattr(notification_rows, "CASES_PER_ACCOUNT_MAX", 2)
    with store.writing() as connection:
        for number in (1, 2, 3, 1):
            case = {"problem": "forged", "reason": "r", "body_sha256": str(number), "fields": {}}
            save_case(connection, PLACE, case=case, at=NOW)
        assert counts(connection) == {"stored": 0, "forged": 3}


def test_only_what_the_signature_covers_is_a_signed_state(store):
    """Of messages about the payment itself, and only in the signed fields."""
    fields = {"order_no": "o1", "transaction_id": "t1", "currency": "EUR", "amount": "5.00"}
    fields |= {"order_status": "3000", "payment_status": "4100"}
    with store.writing() as connection:
        for kind in ("payment", "refund result"):
            one = replace(told(1, kind=kind), fields=fields)
            save(connection, PLACE, message=one)
        found = signed_states(connection, PLACE, transaction_id="t1")
        others = signed_states(connection, PLACE, transaction_id="t2")

    signed = {name: fields[name] for name in notification_rows.SIGNED_FIELDS}
    assert [(state.fields, state.received_at) for state in found] == [(signed, NOW)]
    assert others == []


def test_signed_states_that_contradict_each_other_are_no_evidence(store):
    """Two amounts under two right signatures: neither ends a doubt, another state still may."""
    fields = {"order_no": "o1", "transaction_id": "t1", "currency": "EUR", "amount": "5.00"}
    with store.writing() as connection:
        for number, changed in enumerate(
            ({"order_status": "1"}, {"order_status": "1", "amount": "9.00"}, {"order_status": "0"})
        ):
            one = told(number, kind="payment", sha256=str(number))
            one = replace(one, transaction_id="t1", fields=fields | changed)
            save(connection, PLACE, message=one)
        found = signed_states(connection, PLACE, transaction_id="t1")

    assert [(state.fields["amount"], state.fields["order_status"]) for state in found] == [
        ("5.00", "0")
    ]
