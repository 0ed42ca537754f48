import csv
import logging

import pyotp
import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.instructions.planning import RULE_APPROVER
from recon.model.nights import PLANS, Part
from recon.model.terms import InstructionState
from recon.steps.money.approve import approve, waiting
from recon.steps.night.report import Workbooks
from recon.steps.night.whole_night import run
from recon.steps.runtime.identity import identify
from recon.store.database.history import append
from recon.store.money import instruction_rows
from recon.store.money.instruction_rows import move
from recon.store.money.journal import StoredJournal
from reports.reading.workbook_check import sheet_totals
from reports.workbook import write_workbook
from tests.recon.resting import resting
from tests.recon.steps.conftest import SECRETS
from tests.recon.steps.people import declared

IBAN = "DE89370400440532013000"
CANARIES = (
    *(IBAN, "Ana Quill", "Quill", "4417119900", "1980-02-29", "ana@canary.test", "912345678"),
    *("Rua das Flores 24", "https://files.canary.test/passport.png", "Lisboa Velha"),
)
"""Values of a payee that must rest nowhere in clear."""

PAYOUT = {
    "merchant_id": "100042",
    "account_id": "100042001",
    "kind": "payout",
    "request_id": "P-1",
    "currency": "EUR",
    "amount": "250.00",
    "reason": "supplier invoice",
    "beneficiary.entity_type": "PERSONAL",
    "beneficiary.first_name": "Ana",
    "beneficiary.last_name": "Quill",
    "beneficiary.date_of_birth": "1980-02-29",
    "beneficiary.bank_details.iban": IBAN,
    "beneficiary.bank_details.account_name": "Ana Quill",
    "beneficiary.bank_details.account_currency": "EUR",
    "beneficiary.bank_details.bank_country_code": "DE",
    "beneficiary.additional_info.personal_id_number": "4417119900",
    "beneficiary.additional_info.personal_email": "ana@canary.test",
    "beneficiary.additional_info.personal_mobile_number": "912345678",
    "beneficiary.address.street_address": "Rua das Flores 24",
    "beneficiary.address.city": "Lisboa Velha",
    "beneficiary.address.country_code": "PT",
    "beneficiary.person_documents.file_type": "PASSPORT",
    "beneficiary.person_documents.file_url": "https://files.canary.test/passport.png",
    "payment_date": "2026-11-20",
    "payment_method": "SWIFT",
    "fee_paid_by": "PAYER",
}


def drop_instructions(merchant, *rows, name="instructions-1.csv"):
    """Put an instruction file into the inbox."""
    names = list(dict.fromkeys(column for row in rows for column in row))
    with (merchant.inbox / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=names, restval="")
        writer.writeheader()
        writer.writerows(rows)


def _refund(payment, **changed):
    return {
        "merchant_id": "100042",
        "account_id": "100042001",
        "kind": "refund",
        "request_id": "R-1",
        "order_no": payment.order_no,
        "transaction_id": payment.transaction_id,
        "currency": payment.currency,
        "amount": "1.00",
    } | changed


def _paid(merchant):
    return next(p for p in merchant.payments("captured") if p.currency == "EUR")


PEOPLE = declared(ann="Ann Berg", jo="Jo Hill", limit="EUR = 100000")


def _approve_by_two(merchant):
    """Two people let go what waits."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    with merchant.environment() as environment:
        for name in ("ann", "jo"):
            person = identify(name, code=None, environment=environment)
            digest = waiting(environment).approvals.digest
            approve(digest, person=person, environment=environment)


def _approve(merchant, *, by):
    """Past people: a state and a name, as whoever has the database could write them."""
    (instruction_id,) = merchant.rows("SELECT instruction_id FROM instruction")[0]
    with merchant.environment() as environment, environment.store.writing() as connection:
        found = instruction_rows.of_id(connection, instruction_id)
        values = {"hold": "", "approved_by": by}
        event = move(connection, found, to=InstructionState.APPROVED, values=values)
        append(connection, [event], at=environment.clock())


def test_a_payout_approved_by_a_rule_is_refused(sealing_merchant):
    """Even a journal that says a rule approved it does not move a payout."""
    drop_instructions(sealing_merchant, PAYOUT)
    sealing_merchant.move_money()
    _approve(sealing_merchant, by=RULE_APPROVER)
    sealing_merchant.move_money()

    assert sealing_merchant.rows("SELECT count(*) FROM batch") == [(0,)]


def test_a_payout_without_a_seal_key_leaves_its_file_in_the_inbox(merchant):
    """No payee is stored without the key; with it the same file is read the next night."""
    drop_instructions(merchant, PAYOUT)
    merchant.move_money()
    told = merchant.said("ingest")
    assert "RECON_SEAL_KEY is not set" in told
    merchant.variables["RECON_SEAL_KEY"] = Fernet.generate_key().decode()
    merchant.move_money()

    assert merchant.rows("SELECT state FROM instruction") == [("planned",)]


def test_nothing_of_a_payee_rests_in_clear_after_a_whole_night(sealing_merchant, caplog):
    """Database, its log, workbook, reports, logs and spoken sentences: no value of a payee."""
    merchant = sealing_merchant
    caplog.set_level(logging.DEBUG)
    books = Workbooks(write=write_workbook, totals=sheet_totals)
    bad = PAYOUT | {"request_id": "P-2", "payment_date": "soon"}
    drop_instructions(merchant, PAYOUT, bad)
    merchant.night(workbooks=books)
    told = [step.sentence for step in merchant.told]
    _approve_by_two(merchant)
    merchant.night(workbooks=books)
    told += [step.sentence for step in merchant.told]
    (merchant.inbox / "instructions-1.csv").unlink()
    sent = merchant.rows("SELECT kind, rows, length(body_sha256) FROM batch")

    assert sent == [("payout", 1, 64)]
    key = merchant.variables["RECON_SEAL_KEY"]
    for place, text in _everything(merchant.folder, "\n".join([*told, caplog.text])):
        found = [one for one in (*CANARIES, key) if one.encode() in text]
        assert found == [], place


def two_approve(merchant):
    """Two people with current codes say yes to everything that waits."""
    with merchant.environment() as environment:
        digest = waiting(environment).approvals.digest
        for name, secret in SECRETS.items():
            code = SecretStr(pyotp.TOTP(secret).at(int(merchant.now.timestamp()) + 1))
            person = identify(name, code=code, environment=environment)
            approve(digest, person=person, environment=environment)


def test_a_payout_that_could_never_go_is_approved_by_nobody(paying_merchant):
    """What the client would not send is a reject of the file, with its column, before anybody."""
    merchant = paying_merchant
    sources = {"source_currency": "EUR", "source_amount": "300.00"}
    drop_instructions(merchant, PAYOUT | sources)
    merchant.move_money()

    assert merchant.rows("SELECT count(*) FROM instruction") == [(0,)]
    assert merchant.rows('SELECT line, "column" FROM reject') == [(2, "source_amount")]


def test_a_kept_reply_of_a_payout_is_judged_after_a_crash(paying_merchant, monkeypatch):
    """The reply rests without the payee's details and is still proof; nothing is sent again."""
    merchant = paying_merchant
    drop_instructions(merchant, PAYOUT)
    merchant.move_money()
    two_approve(merchant)
    with monkeypatch.context() as patch:
        patch.setattr(StoredJournal, "record", _crash)
        with pytest.raises(Killed):
            merchant.move_money()
    ((reply,),) = merchant.rows("SELECT reply FROM batch")
    merchant.move_money()
    ((state, gateway_id),) = merchant.rows("SELECT state, transaction_id FROM instruction")

    assert [one for one in CANARIES if one.encode() in reply] == []
    assert [row["transaction_id"] for row in merchant.effects()] == [gateway_id]
    assert state == "confirmed"


class Killed(BaseException):
    """The process is gone; a KeyboardInterrupt would leave asyncio with what it still holds."""


def _crash(*_, **__):
    """Between keeping a reply and judging it."""
    raise Killed


def _everything(folder, spoken):
    yield "spoken", spoken.encode()
    yield from resting(folder)


def _did(merchant, *parts):
    """Parts one after the other; what has moved by then."""
    for wanted in parts:
        with merchant.environment() as environment:
            run(
                merchant.request,
                plan=PLANS[wanted],
                environment=environment,
                workbooks=merchant.workbooks(),
                progress=merchant.told.append,
            )
    return [row["operation"] for row in merchant.effects()]


def test_a_part_for_payouts_sends_payouts_alone(paying_merchant):
    """An approved refund beside the payout waits for its night."""
    merchant = paying_merchant
    drop_instructions(merchant, PAYOUT)
    unapproved = _did(merchant, Part.INGEST, Part.SETTLE)
    two_approve(merchant)
    drop_instructions(merchant, _refund(_paid(merchant)), name="instructions-2.csv")

    assert unapproved == []
    assert _did(merchant, Part.INGEST, Part.PAYOUTS) == ["payout"]
    assert _did(merchant, Part.SETTLE) == ["payout", "refund"]
