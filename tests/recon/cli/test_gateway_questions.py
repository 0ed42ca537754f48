import json

import pytest

from recon import cli
from recon.sandbox import SandboxOptions, queries, serving
from tests.recon.sandbox.conftest import Caller


@pytest.fixture
def sandbox():
    with serving(SandboxOptions(orders=80, profile="extended")) as running:
        yield running


@pytest.fixture
def desk(tmp_path, sqlite_url, monkeypatch, sandbox):
    """A merchant's settings under the profile extended; gives the folder of its files."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "merchants.toml").write_text(
        '[accounts."100042/100042001"]\ninbox = "in"\nreports = "out"\n'
    )
    (config / "gateway.toml").write_text('profile = "extended"\n')
    for name, value in {
        "RECON_DATABASE_URL": sqlite_url,
        "RECON_SIGN_KEY": "sandbox",
        "RECON_CONFIG_DIR": str(config),
        "RECON_MERCHANT": "100042",
        "RECON_ACCOUNT": "100042001",
        "RECON_GATEWAY_BASE_URL": sandbox.base_url,
    }.items():
        monkeypatch.setenv(name, value)
    return config


def test_refunds_shows_each_number_with_its_refunds(desk, sandbox, capsys):
    assert desk
    caller = Caller(sandbox.base_url)
    with caller.http:
        payment = next(row for row in caller.captured() if row["currency"] == "EUR")
        asked = {"refund_amount": "1.00", "refund_reason": "late", "refund_reference": "ours-1"}
        caller.row("refund", payment | asked)

    assert (
        cli.main(["gateway", "query", "--refunds", payment["order_no"], "no-order", "--json"]) == 0
    )
    (found, none) = json.loads(capsys.readouterr().out)
    assert (found["refund_amount"], found["refund_reference"]) == ("1.00", "ours-1")
    assert none == {"order_no": "no-order", "answer": "no refund"}

    assert cli.main(["gateway", "query", "ours-1", "--references"]) == 0
    assert found["refund_reference_id"] in capsys.readouterr().out


def test_under_base_no_refunds_are_searched(desk, capsys):
    (desk / "gateway.toml").write_text('profile = "base"\n')

    assert cli.main(["gateway", "query", "--refunds", "SO1"]) == 2
    assert "only the profile extended has it" in capsys.readouterr().err


@pytest.mark.parametrize("amount", ["100", "1.5", "twelve"])
def test_an_amount_of_another_form_is_a_mistake_of_the_call(desk, sandbox, capsys, amount):
    (desk / "gateway.toml").write_text('profile = "extended"\ncalls_per_second = 1000\n')
    caller = Caller(sandbox.base_url)
    with caller.http:
        payment = next(row for row in caller.authorised() if row["currency"] == "EUR")
        order = payment["order_no"]
        commands = [
            ["capture", order, "--amount", amount, "--as", "anna"],
            [
                "authorise",
                "NEW-1",
                "--currency",
                "EUR",
                "--amount",
                amount,
                "--payment-method",
                "x",
            ],
        ]
        for words in commands:
            assert cli.main(["gateway", *words]) == 2, words
            assert "mount" in capsys.readouterr().err, words
        assert caller.effects() == []


def test_query_as_json_is_json_all_the_way(desk, sandbox, capsys, monkeypatch):
    assert desk
    sites = [{"site": "sandbox.example", "floors": [1, 2]}]
    monkeypatch.setattr(queries, "SITE", sites)
    caller = Caller(sandbox.base_url)
    with caller.http:
        caller.authorise(order_no="web-9", card="4000000000009235")
    assert cli.main(["gateway", "query", "web-9", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)

    assert row["risk"]["fraud_checks"] == [{"check_items": "risk_score", "status": "review"}]
    assert row["extra"] == {"website": sites}
