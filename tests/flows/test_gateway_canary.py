"""That a night through a real Prefect server leaves nothing private where it could be read."""

import csv
import json
import logging
import re
import tempfile
from pathlib import Path

import pyotp
import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.model.terms import End
from recon.sandbox import SandboxOptions, serving
from recon.steps.money.approve import approve, waiting
from recon.steps.runtime.identity import identify
from tests.conformance.conftest import Target, interface_of, place_of
from tests.conformance.test_card_contract import card_payment
from tests.flows.flow_in_process import run_nightly
from tests.flows.leaking_gateway import (
    BIRTH_DATE,
    CARD,
    CODE,
    DASHED_CARD,
    DOCUMENT,
    FOREIGN_CARD,
    GROUPED_CARD,
    IBAN,
    NAME,
    SIGN_KEY,
    leaking,
)
from tests.recon.resting import resting
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, Merchant, write_config

pytestmark = pytest.mark.flow

MISPLACED_IBAN = "GB29NWBK60161331926819"
"""In a cell of an order file that is for something else."""
OUR_IBAN = "NL91ABNA0417164300"
STRANGER = "Example Tenant-Strangeways"
"""Stands on the merchant's statement, and is nobody's business here."""
CARD_CODE = re.compile(
    rb"(?i)(?:cvv|cvc|code)[^0-9a-z]{1,8}" + CODE.encode() + rb"|" + CODE.encode() + rb" is not the"
)
"""Four digits stand everywhere; these only behind their name."""
PAYEE = {
    "beneficiary.entity_type": "PERSONAL",
    "beneficiary.first_name": "Ana",
    "beneficiary.last_name": NAME,
    "beneficiary.date_of_birth": BIRTH_DATE,
    "beneficiary.bank_details.iban": IBAN,
    "beneficiary.bank_details.account_name": f"Ana {NAME}",
    "beneficiary.bank_details.bank_country_code": "DE",
    "beneficiary.additional_info.personal_id_number": DOCUMENT,
    "payment_date": "2026-11-20",
    "payment_method": "SWIFT",
}


@pytest.fixture
def merchant(tmp_path, sqlite_url):
    """A merchant whose gateway quotes secrets in every reply, and whose files hold some."""
    for name in ("config", "inbox", "reports", "tmp", "bank"):
        (tmp_path / name).mkdir()
    ledger = tmp_path / "ledger.csv"
    ledger.write_text(
        "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at\n"
    )
    write_config(tmp_path, ledger=ledger)
    banked(tmp_path)
    (tmp_path / "config" / "limits.toml").write_text("[limits.EUR]\nnight = 1000000\n")
    with serving(SandboxOptions(orders=300, sign_key=SIGN_KEY)) as sandbox:
        variables = {
            "RECON_SIGN_KEY": SIGN_KEY,
            "RECON_SEAL_KEY": Fernet.generate_key().decode(),
            "CODE_OF_ANN": CODE_SECRETS["ann"],
            "CODE_OF_JO": CODE_SECRETS["jo"],
            "RECON_DATABASE_URL": sqlite_url,
            "RECON_CONFIG_DIR": str(tmp_path / "config"),
        }
        yield Merchant(tmp_path, sandbox, variables)


def banked(folder):
    """A statement of the merchant's bank with an entry of somebody else beside the gateway's."""
    config = folder / "config"
    with (config / "rules.toml").open("a") as rules:
        rules.write(
            f'\n[bank.main]\niban = "{OUR_IBAN}"\ncurrency = "EUR"\n'
            f'accounts = ["{MERCHANT}/{ACCOUNT}"]\ncounterparty = ["Gateway Ltd"]\n'
        )
    with (config / "merchants.toml").open("a") as merchants:
        merchants.write(f'\n[bank.main]\ninbox = "{folder / "bank"}"\n')
    names = "iban,statement_no,from_date,to_date,opening,closing,entry_no,booked_on,value_on"
    head = f"{OUR_IBAN},1,2026-11-20,2026-11-20,10.00,20.00"
    (folder / "bank" / "s.csv").write_text(
        f"{names},currency,amount,counterparty,text\n"
        f"{head},1,2026-11-20,2026-11-20,EUR,15.00,Gateway Ltd,goodwill\n"
        f"{head},2,2026-11-20,2026-11-20,EUR,-5.00,{STRANGER},rent of {STRANGER}\n"
    )


def instructed(merchant):
    """A file that instructs every kind of movement, with rows that cannot be read beside them."""
    own = {"merchant_id": MERCHANT, "account_id": ACCOUNT, "sign_key": SecretStr(SIGN_KEY)}
    target = Target(place_of(merchant.sandbox.base_url, interface=interface_of("base"), **own))
    risky = target.pay(card_payment(order_no="canary-1", card="4000000000009235")).record
    plan = {"contract_name": "Gold plan", "interval": "day"}
    lasting = target.pay(card_payment(order_no="canary-2", subscription=plan)).record
    euros = {
        state: [p for p in merchant.payments(state) if p.currency == "EUR"]
        for state in ("authorised", "captured")
    }
    moved = {
        "capture": euros["authorised"][0],
        "cancel": euros["authorised"][1],
        "refund": euros["captured"][0],
    }
    rows: list[dict[str, str]] = [
        {
            "kind": kind,
            "order_no": payment.order_no,
            "transaction_id": payment.transaction_id,
            "amount": payment.amount,
            "reason": "returned",
        }
        for kind, payment in moved.items()
    ]
    rows += [
        {
            "kind": "review",
            "order_no": "canary-1",
            "transaction_id": risky.transaction_id,
            "amount": "10.00",
        },
        {
            "kind": "cancel_subscription",
            "recurring_id": lasting.recurring_id,
            "contract_name": "Gold plan",
        },
        {"kind": "payout", "amount": "250.00", **PAYEE},
        {"kind": "payout", "amount": IBAN, **PAYEE},
        {"kind": "refund", "order_no": GROUPED_CARD, "transaction_id": CARD, "amount": CARD},
        rows[0] | {"reason": f"card {GROUPED_CARD}"},
    ]
    write_file(merchant.inbox / "instructions-1.csv", rows)
    orders = [merchant.order(payment) for payment in moved.values()]
    bad = [
        merchant.order(moved["capture"], order_no="bad-1", amount=CARD),
        merchant.order(moved["refund"], order_no="bad-2", currency=MISPLACED_IBAN),
        merchant.order(
            euros["captured"][1],
            action="refund",
            action_amount="1.00",
            action_reason=f"card {GROUPED_CARD}",
        ),
        merchant.order(euros["captured"][2], order_no=f"ORD-{CARD}"),
        merchant.order(euros["captured"][2], order_no=GROUPED_CARD.replace(" ", "-")),
        merchant.order(euros["captured"][2], order_no=DASHED_CARD),
    ]
    merchant.drop(f"orders-{GROUPED_CARD}.csv", orders[0])
    merchant.drop("orders-caf\udce9.csv", orders[0])
    named = merchant.drop("orders-2.csv", merchant.order(euros["captured"][3]))
    header, row = named.read_text().splitlines()
    named.write_text(f"{header},{FOREIGN_CARD}\n{row},x\n")
    merchant.drop("orders-1.csv", *orders, *bad)
    # Files whose first line would be their header hold a payee there.
    for name in ("orders-2.csv", "instructions-2.csv"):
        (merchant.inbox / name).write_text(f"{','.join(PAYEE.values())}\n" * 2)


def write_file(path, rows):
    """An instruction file of the account."""
    common = {"merchant_id": MERCHANT, "account_id": ACCOUNT, "currency": "EUR"}
    names = list(dict.fromkeys([*common, "request_id", *(name for row in rows for name in row)]))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=names, restval="")
        writer.writeheader()
        for number, row in enumerate(rows):
            writer.writerow({**common, "request_id": f"I-{number}", **row})


CODE_SECRETS = {name: pyotp.random_base32() for name in ("ann", "jo")}
"""Of the one-time codes of two approvers."""
PEOPLE = """
[approvers.ann]
name = "Ann Berg"
code_secret_env = "CODE_OF_ANN"
limit = { EUR = 100000, USD = 100000, GBP = 100000, JPY = 10000000, KWD = 100000 }
[approvers.jo]
name = "Jo Hill"
code_secret_env = "CODE_OF_JO"
limit = { EUR = 100000, USD = 100000, GBP = 100000, JPY = 10000000, KWD = 100000 }
"""


def approve_all(merchant):
    """Two people let go what waits."""
    people = Path(merchant.variables["RECON_CONFIG_DIR"]) / "approvers.toml"
    people.write_text(PEOPLE)
    with merchant.environment() as environment:
        for name, secret in CODE_SECRETS.items():
            code = SecretStr(pyotp.TOTP(secret).at(merchant.clock()))
            person = identify(name, code=code, environment=environment)
            digest = waiting(environment).approvals.digest
            approve(digest, person=person, environment=environment)


def found_in(text, *, secrets):
    """The secrets that a place holds."""
    found = [secret for secret in secrets if secret.encode() in text]
    return [*found, "card code"] if CARD_CODE.search(text) else found


def test_nothing_private_rests_anywhere_after_a_night_in_prefect(
    server, merchant, monkeypatch, caplog, capfd
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(tempfile, "tempdir", str(merchant.folder / "tmp"))
    monkeypatch.setattr("recon.steps.runtime.environment.system_clock", merchant.clock)
    instructed(merchant)
    sentences: list[str] = []
    with leaking(merchant.sandbox.base_url) as gateway:
        merchant.variables["RECON_GATEWAY_BASE_URL"] = gateway.base_url
        merchant.night()
        approve_all(merchant)
        for name, value in merchant.variables.items():
            monkeypatch.setenv(name, value)
        verdict = run_nightly(merchant.request, server=server, progress=sentences.append)
    assert verdict in set(End)
    assert len(sentences) == 6
    assert set(gateway.answered) == {
        *("retrievalTrans", "capture", "cancel", "refund", "review"),
        *("cancelsubscription", "payout"),
    }
    for path in [*merchant.inbox.iterdir(), *(merchant.folder / "bank").iterdir()]:
        path.unlink()
    out, err = capfd.readouterr()
    spoken = "\n".join([*sentences, *(step.sentence for step in merchant.told), caplog.text])
    looked_at = [("spoken", f"{spoken}{out}{err}".encode())]
    looked_at += resting(merchant.folder, server.home)
    assert any(sentences[0].encode() in text for _, text in resting(server.home))
    for word in ("orders-2.csv", "instructions-2.csv", "1 new files of the bank main"):
        assert word in spoken
    for known in (b"492978", b"BANK_RECEIPT_UNKNOWN"):
        assert any(known in text for _, text in resting(merchant.folder))
    cards = (CARD, GROUPED_CARD, IBAN, MISPLACED_IBAN, DOCUMENT, BIRTH_DATE, NAME, SIGN_KEY)
    secrets = (*cards, STRANGER, merchant.variables["RECON_SEAL_KEY"], DASHED_CARD, FOREIGN_CARD)
    secrets = (*secrets, GROUPED_CARD.replace(" ", "-"), *CODE_SECRETS.values())
    secrets = (*secrets, *(json.dumps(secret)[1:-1] for secret in (DASHED_CARD, FOREIGN_CARD)))
    found = {place: found_in(text, secrets=secrets) for place, text in looked_at}
    assert {place: what for place, what in found.items() if what} == {}
