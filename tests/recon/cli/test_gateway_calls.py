import json

import pytest

from recon import cli
from tests.recon.cli.conftest import effects
from tests.recon.cli.test_night_commands import gateway, prepared, prepared_once

__all__ = ["gateway", "prepared", "prepared_once"]
"""A demo that stopped before its night, as the tests of a night's commands have it."""


@pytest.fixture
def port(gateway, capsys):
    """A prepared demo with its sandbox running and its variables set; gives the port."""
    capsys.readouterr()
    return gateway


def seeded(port, *operations):
    """A seeded payment in euro of the default account that went through just these operations."""
    told: dict[str, list[dict[str, str]]] = {}
    for effect in effects(port):
        told.setdefault(effect["transaction_id"], []).append(effect)
    return next(
        rows[0]
        for rows in told.values()
        if tuple(row["operation"] for row in rows) == operations
        and rows[0]["account_id"] == "100042001"
        and rows[0]["currency"] == "EUR"
    )


def reported_by_us(port):
    """Operations that came through the API."""
    return [effect["operation"] for effect in effects(port) if effect["origin"] == "api"]


def test_query_shows_each_number_with_its_answer(port, capsys):
    payment = seeded(port, "authorise")

    code = cli.main(["gateway", "query", payment["order_no"], "nobodys-order"])

    out = capsys.readouterr().out.splitlines()
    assert code == 0
    assert out[0].split()[:3] == ["order_no", "transaction_id", "amount"]
    assert payment["transaction_id"] in out[1]
    assert "authorised" in out[1]
    assert "not known to the gateway" in out[2]
    assert reported_by_us(port) == []


def test_query_by_transaction_as_json(port, capsys):
    payment = seeded(port, "authorise")

    cli.main(["gateway", "query", "--transactions", payment["transaction_id"], "--json"])

    (row,) = json.loads(capsys.readouterr().out)
    assert row["order_no"] == payment["order_no"]
    assert row["amount"] == payment["amount"]


def test_query_without_a_usable_answer_ends_with_4(port, prepared, monkeypatch, capsys):
    assert port
    with (prepared.config / "gateway.toml").open("a") as pace:
        pace.write("read_retry_seconds = 0.5\n")
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "http://127.0.0.1:9")

    code = cli.main(["gateway", "query", "A1"])

    assert code == 4
    assert "no answer: the gateway could not be reached" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "before", "operation"),
    [
        (["capture"], ("authorise",), "capture"),
        (["capture", "--amount", "1.00"], ("authorise",), "capture"),
        (["cancel"], ("authorise",), "cancel"),
        (["refund", "--amount", "1.00", "--reason", "late"], ("authorise", "capture"), "refund"),
    ],
)
def test_money_by_hand_is_done_and_told(port, capsys, words, before, operation):
    payment = seeded(port, *before)

    code = cli.main(["gateway", *words, payment["order_no"], "--as", "anna"])

    out = capsys.readouterr().out
    assert code == 0, out
    assert "confirmed" in out
    assert reported_by_us(port) == [operation]


def refused(port, *words):
    """The exit code of a movement of an authorised payment, of which nothing left."""
    code = cli.main(["gateway", *words, seeded(port, "authorise")["order_no"], "--as", "a"])
    assert reported_by_us(port) == []
    return code


def test_while_all_sending_is_stopped_nothing_goes_by_hand(port, capsys):
    cli.main(["stop-sending", "--as", "anna", "--reason", "odd refunds"])

    assert refused(port, "capture") == 2
    assert "nothing was stored or sent" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["refund"], ["cancel", "--amount", "1.00"], ["capture", "--reason", "late"]]
)
def test_a_movement_takes_its_own_options_alone(port, words):
    payment = seeded(port, "authorise", "capture")

    assert cli.main(["gateway", *words, payment["order_no"], "--as", "anna"]) == 2
    assert reported_by_us(port) == []


def test_a_repeat_by_hand_waits_and_ends_with_3(port, capsys):
    payment = seeded(port, "authorise", "capture")
    words = ["gateway", "refund", payment["order_no"], "--amount", "1.00", "--as", "anna"]
    cli.main(words)
    capsys.readouterr()

    code = cli.main(words)

    assert code == 3
    assert "planned" in capsys.readouterr().out
    assert reported_by_us(port) == ["refund"]


def test_the_doctor_tells_each_line_and_ends_by_them(port, monkeypatch, capsys):
    assert port
    assert cli.main(["gateway", "doctor"]) == 0
    assert "ok    signature rule: accepted as configured" in capsys.readouterr().out
    monkeypatch.setenv("RECON_SIGN_KEY", "wrong")

    assert cli.main(["gateway", "doctor", "--json"]) == 1
    lines = json.loads(capsys.readouterr().out)
    assert [line["name"] for line in lines if not line["ok"]] == ["signature rule"]


def test_the_doctor_looks_at_the_orders_that_are_named(port, capsys):
    named = seeded(port, "authorise", "capture")

    assert cli.main(["gateway", "doctor", "--order", named["order_no"]]) == 0
    said = capsys.readouterr().out
    assert cli.main(["gateway", "doctor", "--refunded", "nobody-1"]) == 1

    assert f"ok    amounts of {named['currency']}: " in said
    assert f"3000 of order {named['order_no']} means paid" in said
    assert "WRONG named orders: the gateway shows no payment of nobody-1" in capsys.readouterr().out
