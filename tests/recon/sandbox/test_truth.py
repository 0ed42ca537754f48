"""The book, its ledger of effects and their invariants, the seeded population."""

import sqlite3
from contextlib import contextmanager

import httpx
import pytest

from recon.sandbox import SandboxOptions, serving
from recon.sandbox.database import Database


def test_a_transaction_is_all_or_nothing():
    database = Database(None)
    with pytest.raises(sqlite3.OperationalError):  # noqa: PT012, SIM117 - the failure is the second
        with database.transaction():
            database.write_note("seed", value="1")
            database.execute("INSERT INTO nowhere VALUES (1)")
    assert database.note("seed") == ""
    with database.transaction():
        database.write_note("seed", value="2")
    assert database.note("seed") == "2"
    database.close()


INJECTED = "INSERT INTO effect SELECT NULL, {columns} FROM effect WHERE origin = 'api' LIMIT 1"
COLUMNS = (
    "operation, origin, merchant_id, account_id, order_no, transaction_id, currency, {amount},"
    " committed_at, refund_reference_id, refund_reason, refund_reference, request_id, {log}"
)
SOUND = {
    "double_effects": 0,
    "over_captured": 0,
    "over_refunded": 0,
    "effects_without_client_record": 0,
    "double_intentions": 0,
}


def plant(state, *, amount="amount", log="request_log_id"):
    """Repeat the first effect of the API in the ledger, behind the sandbox's back."""
    columns = COLUMNS.format(amount=amount, log=log)
    connection = sqlite3.connect(state)
    connection.execute(INJECTED.format(columns=columns))
    connection.commit()
    connection.close()


def invariants_after(state, caller, *, operation, plan):
    """The invariants of a sandbox in whose ledger something was planted after one call."""
    with serving(SandboxOptions(orders=60, state=state)) as sandbox:
        client = caller(sandbox.base_url)
        with client.http:
            row = (client.captured() if operation == "refund" else client.authorised())[0]
            client.row(operation, row | {"refund_amount": row["amount"]})
            assert client.invariants() == SOUND
            plant(state, **plan)
            return client.invariants()


@pytest.mark.parametrize("operation", ["capture", "cancel", "refund"])
def test_a_planted_double_effect_is_counted(gateway, tmp_path, operation):
    counted = invariants_after(tmp_path / "s.sqlite", type(gateway), operation=operation, plan={})
    assert counted["double_effects"] == 1


def test_planted_excess_is_counted(gateway, tmp_path):
    caller = type(gateway)
    captured = invariants_after(tmp_path / "a", caller, operation="capture", plan={"amount": "1"})
    assert (captured["over_captured"], captured["over_refunded"]) == (1, 0)
    refunded = invariants_after(tmp_path / "b", caller, operation="refund", plan={"amount": "1"})
    assert (refunded["over_captured"], refunded["over_refunded"]) == (0, 1)
    assert refunded["double_effects"] == 0


def test_an_effect_that_no_request_explains_is_counted(gateway, tmp_path):
    counted = invariants_after(
        tmp_path / "s.sqlite", type(gateway), operation="cancel", plan={"log": "'RL99999999'"}
    )
    assert counted["effects_without_client_record"] == 1


@pytest.mark.parametrize("statement", ["DELETE FROM effect", "UPDATE effect SET amount = 1"])
def test_the_ledger_is_append_only(tmp_path, statement):
    state = tmp_path / "s.sqlite"
    with serving(SandboxOptions(orders=10, state=state)) as sandbox:
        before = httpx.get(f"{sandbox.base_url}/_sandbox/effects", trust_env=False).content
        connection = sqlite3.connect(state)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
        connection.close()
        assert httpx.get(f"{sandbox.base_url}/_sandbox/effects", trust_env=False).content == before


@contextmanager
def client_of(options):
    """A client of a sandbox of its own."""
    with (
        serving(options) as sandbox,
        httpx.Client(base_url=sandbox.base_url, trust_env=False) as http,
    ):
        yield http


def test_state_file_keeps_population_clock_and_effects(tmp_path):
    state = tmp_path / "sandbox.sqlite"
    plan = [{"operation": "capture", "kind": "fin", "nth": 2}]
    with client_of(SandboxOptions(orders=50, state=state)) as http:
        http.post("/_sandbox/clock", json={"seconds": 3600})
        http.post("/_sandbox/faults", json=plan)
        before = http.get("/_sandbox/effects").content
    with client_of(SandboxOptions(orders=99, seed=7, state=state)) as http:
        assert http.get("/_sandbox/effects").content == before
        assert http.get("/_sandbox/clock").json() == {"now": "2026-11-20T23:00:00Z"}
        (kept,) = http.get("/_sandbox/faults").json()["rules"]
        assert kept["rule"] == plan[0]
