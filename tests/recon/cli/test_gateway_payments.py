import json
import logging
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from contextlib import closing

import httpx
import pytest

from recon import cli
from recon.config.settings import load_settings
from recon.sandbox import SandboxOptions, serving
from recon.steps.runtime.environment import system_clock
from recon.store.database.engine import open_store
from recon.webhooks.receiver import Receiver
from tests.recon.cli import played_gateway
from tests.recon.gateway_client.sample_payouts import PAYOUT
from tests.recon.webhooks.told import PAYMENT, PERSONAL, form

CARD = {
    "card": "4111111111111111",
    "expiration_month": "05",
    "expiration_year": "2031",
    "security_code": "917",
}
SHOPPER = {
    "first_name": "Ana",
    "last_name": "Examplova",
    "shopper_email": "ana@example.test",
    "document": "4417119900",
    "birth_date": "02-29-1980",
}
SIGN_KEY = "a-key-that-nobody-may-see"
SECRETS = (
    *(CARD["card"], CARD["card"][:-1] + "2", SIGN_KEY, "DE89370400440532013000", "4417119900"),
    *("02-29-1980", "1980-02-29", "ana@example.test", "Examplova", "912345678"),
    *("12345678909", "ann@example.com", "Cambridge Street"),
)
ORDER = ["SO-1", "--currency", "EUR", "--amount", "42.50"]


def private(path, fields, *, mode=384):
    path.write_text(json.dumps(fields))
    path.chmod(mode)
    return str(path)


def contract(desk):
    fields = {"recurring_id": "R1", "contract_name": "Gold plan"}
    return private(desk.parent / "contract.json", fields)


@pytest.fixture
def desk(tmp_path, migrated, monkeypatch):
    """A folder with a merchant's settings; the temporary files of this process go there too."""
    work = tmp_path / "work"
    (work / "config").mkdir(parents=True)
    (work / "config" / "merchants.toml").write_text(
        '[accounts."100042/100042001"]\ninbox = "in"\nreports = "out"\n'
    )
    monkeypatch.setattr(tempfile, "tempdir", str(work))
    for name, value in {
        "RECON_DATABASE_URL": f"sqlite:///{shutil.copy(migrated, work / 'recon.sqlite')}",
        "RECON_SIGN_KEY": "sandbox",
        "RECON_CONFIG_DIR": str(work / "config"),
        "RECON_MERCHANT": "100042",
        "RECON_ACCOUNT": "100042001",
        "RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    return work


@pytest.fixture
def asked(desk, monkeypatch):
    assert desk
    with played_gateway.played_gateway() as (base_url, requests):
        monkeypatch.setenv("RECON_GATEWAY_BASE_URL", base_url)
        yield requests


@pytest.fixture
def by_card(desk, monkeypatch):
    """A sandbox's address, and the words that pay there with card and shopper of private files."""
    card = private(desk.parent / "card.json", CARD)
    shopper = private(desk.parent / "shopper.json", SHOPPER)
    with serving(SandboxOptions(orders=5)) as sandbox:
        monkeypatch.setenv("RECON_GATEWAY_BASE_URL", sandbox.base_url)
        words = ["gateway", "authorise", *ORDER, "--card-file", card, "--fields", shopper]
        yield sandbox.base_url, words


def test_a_card_payment_at_the_sandbox(by_card, capsys):
    _, words = by_card
    code = cli.main(words)
    shown = capsys.readouterr().out
    again = cli.main(words)

    assert code == 0, shown
    assert "outcome: done" in shown
    assert "411111" in shown
    assert CARD["card"] not in shown
    assert again == 1
    assert "I0061" in capsys.readouterr().out


def test_a_reply_that_proves_nothing_is_shown_with_what_is_wrong_in_it(by_card, capsys):
    base_url, words = by_card
    rules = {"rules": [{"kind": "wrong_signature"}]}
    httpx.post(f"{base_url}/_sandbox/faults", json=rules).raise_for_status()
    cli.main(words)

    shown = capsys.readouterr().out
    assert "outcome: unknown" in shown
    assert "signature" in shown.partition("message: ")[2].partition("\n")[0]


def test_a_card_from_the_prompt_is_not_echoed(asked, desk, monkeypatch, capsys):
    answers = iter(CARD.values())
    monkeypatch.setattr("getpass.getpass", lambda *_words, **_options: next(answers))
    shopper = private(desk.parent / "shopper.json", SHOPPER)

    code = cli.main(["gateway", "authorise", *ORDER, "--fields", shopper])

    out, err = capsys.readouterr()
    assert code == 0, err
    assert asked[0]["card"] == CARD["card"]
    assert CARD["card"] not in out + err


@pytest.mark.parametrize(
    ("mode", "fields", "words"),
    [
        (0o644, CARD, "chmod 600"),
        (0o600, {"card": "4"}, "must hold exactly"),
        (0o600, CARD | {"card": "4111111111111112"}, "card is not a card number"),
    ],
)
def test_a_card_file_that_is_not_private_or_not_a_card_is_refused(
    asked, desk, capsys, mode, fields, words
):
    card = private(desk.parent / "card.json", fields, mode=mode)

    assert cli.main(["gateway", "authorise", *ORDER, "--card-file", card]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "4111" not in told
    assert asked == []


def test_a_card_has_no_other_way_in(asked, desk, capsys):
    shopper = private(desk.parent / "shopper.json", SHOPPER | CARD)

    assert cli.main(["gateway", "authorise", *ORDER, "--fields", shopper]) == 2
    assert "a card comes from --card-file" in capsys.readouterr().err
    assert asked == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["authorise", *ORDER], "--live-card"),
        (["cancel-subscription", "nowhere.json"], "instruction file"),
        (["payout", "nowhere.json"], "instruction file"),
    ],
)
def test_what_no_journal_would_know_is_for_the_sandbox_only(
    desk, monkeypatch, capsys, command, words
):
    assert desk
    monkeypatch.setenv("RECON_GATEWAY_BASE_URL", "https://gateway.example.test")

    assert cli.main(["gateway", *command]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "othing was sent" in told


def test_another_method_names_the_issuers_page(asked, desk, capsys):
    fields = private(desk.parent / "f.json", {"return_url": "https://shop.example.test/back"})

    code = cli.main(
        ["gateway", "authorise", *ORDER, "--payment-method", "PIX", "--fields", fields, "--json"]
    )

    shown = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (shown["outcome"], shown["issuer_url"]) == ("pending", "https://issuer.example.test/pay")
    assert len(asked) == 1


def test_the_hosted_page_can_be_kept_for_a_browser(asked, desk, capsys):
    page = desk / "page.html"
    back = ["--return-url", "https://shop.example.test/back", "--page", str(page)]

    assert cli.main(["gateway", "checkout", *ORDER, *back]) == 0
    assert "posts_to: /v1/checkout" in capsys.readouterr().out
    assert page.stat().st_mode & 0o777 == 0o600
    assert b"orderAmount" in page.read_bytes()
    assert len(asked) == 1


def test_two_ways_to_pay_in_one_call_are_a_slip(asked):
    words = ["--payment-method", "x", "--card-file", "card.json"]
    assert cli.main(["gateway", "authorise", *ORDER, *words]) == 2
    assert asked == []


def test_a_payout_and_the_end_of_a_subscription(asked, desk, capsys):
    fields = {name: value for name, value in PAYOUT.items() if name != "request_id"}

    assert cli.main(["gateway", "payout", private(desk.parent / "p.json", fields)]) == 0
    shown = capsys.readouterr().out
    assert cli.main(["gateway", "cancel-subscription", contract(desk)]) == 0
    assert [request["path"] for request in asked] == ["/v1/payout", "/v1/cancelsubscription"]
    assert f"request_id: {asked[0]['request_id']}" in shown
    assert "status: COMPLETED" in shown


def test_a_gateway_that_says_nothing_is_told_apart(desk, capsys):
    assert cli.main(["gateway", "cancel-subscription", contract(desk)]) == 1
    assert "nothing was sent" in capsys.readouterr().out
    assert desk


def test_an_outcome_that_is_not_known_names_where_it_can_be_seen(asked, desk, monkeypatch, capsys):
    monkeypatch.setattr(played_gateway, "ANSWERS", defaultdict(lambda: lambda _fields: b"?"))
    payee = private(desk.parent / "payee.json", PAYOUT)
    back = private(desk.parent / "back.json", {"return_url": "https://shop.example.test/back"})
    calls = {
        "authorise": [*ORDER, "--payment-method", "wallet", "--fields", back],
        "payout": [payee],
        "cancel-subscription": [contract(desk)],
    }
    sentences = {}
    for name, words in calls.items():
        assert cli.main(["gateway", name, *words]) == 4
        sentences[name] = capsys.readouterr().out

    assert len(asked) == len(calls)
    assert "Ask `recon gateway query`" in sentences["authorise"]
    for name in ("payout", "cancel-subscription"):
        assert "recon gateway query" not in sentences[name]
        assert "No question to the gateway shows it: look it up in the portal" in sentences[name]


def test_no_secret_reaches_any_place(asked, desk, monkeypatch, capsys, caplog):
    """Cards, codes, keys, bank details, documents and birth dates: sent, and found nowhere.

    Right calls, wrong ones and a crash with its kept error text, then every file we wrote, every
    log record and every stream.
    """
    caplog.set_level(logging.DEBUG)
    shopper = private(desk.parent / "shopper.json", SHOPPER)
    card = private(desk.parent / "card.json", CARD)
    wrong = private(desk.parent / "wrong.json", CARD | {"card": CARD["card"][:-1] + "2"})
    payee = private(desk.parent / "payee.json", PAYOUT)
    bad_payee = private(
        desk.parent / "bad.json", PAYOUT | {"payment_amount": "DE89370400440532013000"}
    )
    fields = ["--fields", shopper]
    cli.main(["gateway", "authorise", *ORDER, *fields, "--card-file", card])
    cli.main(["gateway", "authorise", *ORDER, *fields, "--card-file", wrong])
    cli.main(["gateway", "payout", payee, "--json"])
    cli.main(["gateway", "payout", bad_payee])
    _notify(desk)
    monkeypatch.setattr("recon.gateway_client.gateway.read_payment_reply", _crash)
    cli.main(["--debug", "gateway", "authorise", *ORDER, *fields, "--card-file", card])
    cli.main(["gateway", "authorise", *ORDER, *fields, "--card-file", card])
    monkeypatch.setenv("RECON_SIGN_KEY", SIGN_KEY)
    cli.main(["gateway", "cancel-subscription", contract(desk)])
    cli.main(["gateway", "doctor"])

    out, err = capsys.readouterr()
    streams = out + err + caplog.text
    files = {path: path.read_bytes() for path in desk.rglob("*") if path.is_file()}
    assert any(path.name.startswith("recon-error-") for path in files)
    assert asked[0]["card"] == CARD["card"]
    for secret in SECRETS:
        assert secret not in streams
        assert [path for path, content in files.items() if secret.encode() in content] == []


def _notify(desk):
    """One message that is believed and one that is not, both with a person's data in them."""
    import os

    settings = load_settings(os.environ)
    store = open_store(settings.database_url.get_secret_value())
    receiver = Receiver(settings, store=store, clock=system_clock)
    for key in ("sandbox", "guessed"):
        body = form({**PAYMENT, **PERSONAL}, key=key)
        receiver.receive(body, merchant_id="100042", account_id="100042001")
    store.close()
    with closing(sqlite3.connect(desk / "recon.sqlite")) as connection:
        counted = [
            connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608 - ours
            for name in ("notification", "notification_case")
        ]
    assert counted == [1, 1]


def _crash(prepared, raw, **options):
    msg = f"a bug while reading {prepared!r} {raw.status} {sorted(options)}"
    raise RuntimeError(msg)
