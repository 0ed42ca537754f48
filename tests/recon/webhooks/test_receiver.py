import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from sqlalchemy import select

from recon.config.settings import load_settings
from recon.store.database.engine import open_store
from recon.store.nights.notification_rows import VARIANTS_MAX
from recon.store.schema import notification
from recon.webhooks.receiver import Receiver
from tests.recon.webhooks.told import ACCOUNT, MERCHANT, PAYMENT, PERSONAL, REFUND, form

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def store(sqlite_url):
    opened = open_store(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture
def receiver(tmp_path, store):
    """The receiver of one declared account."""
    return _receiver(tmp_path, store)


def _receiver(tmp_path, store, **changed):
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "config" / "merchants.toml").write_text(
        f'[accounts."{MERCHANT}/{ACCOUNT}"]\ninbox = "in"\nreports = "out"\n'
    )
    settings = load_settings(
        {
            "RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9",
            "RECON_SIGN_KEY": "sandbox",
            "RECON_DATABASE_URL": store.url.render_as_string(hide_password=False),
            "RECON_CONFIG_DIR": str(tmp_path / "config"),
        }
        | changed
    )
    return Receiver(settings, store=store, clock=lambda: NOW)


def status(receiver, body, *, account=ACCOUNT):
    return receiver.receive(body, merchant_id=MERCHANT, account_id=account).status


def rows(store, table):
    """A whole table, as the file has it."""
    with closing(sqlite3.connect(str(store.path))) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608 - ours


def test_the_same_message_again_is_acknowledged_and_kept_once(receiver, store):
    assert [status(receiver, form(PAYMENT)) for _ in range(3)] == [200, 200, 200]

    (saved,) = rows(store, "notification")
    assert (saved["order_no"], saved["amount"], saved["times"]) == ("web-1", 1000, 3)


def test_a_message_that_contradicts_is_kept_beside_the_other_and_a_case(receiver, store):
    """The signature does not cover a refund's amount: neither is truer, and people see both."""
    bodies = [form(REFUND), form(REFUND | {"refund_amount": "9.99"})]

    assert [status(receiver, body) for body in bodies * 2] == [200, 200, 200, 200]
    saved = {row["amount"]: row["times"] for row in rows(store, "notification")}
    told = {
        json.loads(case["fields"])["refund_amount"] for case in rows(store, "notification_case")
    }
    assert saved == {250: 2, 999: 2}
    assert told == {"2.50", "9.99"}
    assert {case["problem"] for case in rows(store, "notification_case")} == {"contradiction"}


def test_a_lifted_signature_keeps_no_true_message_away(receiver, store):
    """The signature of a payment's message under a refund's result, sent before the true one."""
    signed = dict(parse_qsl(form(PAYMENT).decode()))
    lifted = signed | {name: REFUND[name] for name in REFUND if name.startswith("refund")}
    lifted |= {"webhooks_type": "REFUND RESULT", "refund_status": "1", "refund_amount": "0.01"}
    true = REFUND | {"webhooks_type": "REFUND RESULT", "refund_status": "1"}

    assert status(receiver, urlencode(lifted).encode()) == 200
    assert status(receiver, form(true)) == 200
    assert [row["amount"] for row in rows(store, "notification")] == [1, 250]


def test_a_flood_of_different_messages_about_one_thing_is_refused(receiver, store):
    """So many are kept beside each other; what comes then is a case, and not acknowledged."""
    answers = [
        status(receiver, form(REFUND | {"refund_amount": f"{number}.00"}))
        for number in range(1, VARIANTS_MAX + 3)
    ]
    assert answers == [200] * VARIANTS_MAX + [409, 409]
    assert len(rows(store, "notification")) == VARIANTS_MAX
    assert len(rows(store, "notification_case")) == VARIANTS_MAX + 1


@pytest.mark.parametrize(
    ("body", "answer", "problem"),
    [
        (form(PAYMENT, key="guessed"), 401, "forged"),
        (form(PAYMENT | {"account_id": "100042002"}), 403, "other account"),
        (b"{}", 400, "malformed"),
        (b"", 400, "malformed"),
    ],
)
def test_what_is_refused_is_a_case_once(receiver, store, body, answer, problem):
    assert [status(receiver, body), status(receiver, body)] == [answer, answer]

    (case,) = rows(store, "notification_case")
    assert (case["problem"], case["times"]) == (problem, 2)
    assert rows(store, "notification") == []


def test_an_account_nobody_declared_leaves_no_trace(receiver, store):
    assert status(receiver, form(PAYMENT), account="1") == 404

    assert rows(store, "notification_case") == []


def test_nothing_of_a_person_reaches_the_database(receiver, store):
    status(receiver, form({**PAYMENT, **PERSONAL}))
    status(receiver, form({**REFUND, **PERSONAL}, key="guessed"))

    written = b"".join(path.read_bytes() for path in Path(str(store.path)).parent.glob("recon.*"))
    for value in ("4111111111111111", "Cambridge Street", "ann@example.com", "12345678909", "DE89"):
        assert value.encode() not in written
    assert b"web-1" in written


def test_many_at_once_are_kept_once(receiver, store):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: status(receiver, form(PAYMENT)), range(24)))

    assert set(answers) == {200}
    (saved,) = rows(store, "notification")
    assert saved["times"] == 24


def test_what_cannot_be_kept_is_not_acknowledged(receiver, store):
    with closing(sqlite3.connect(str(store.path))) as connection:
        connection.execute("DROP TABLE notification")

    assert status(receiver, form(PAYMENT)) == 503


def test_without_its_signer_nothing_is_acknowledged_or_kept(tmp_path, store):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "gateway.toml").write_text("deadline_seconds = 0.1\n")
    nowhere = {"RECON_SIGN_KEY": "", "RECON_SIGNER": str(tmp_path / "nobody")}
    keyless = _receiver(tmp_path, store, **nowhere)

    assert status(keyless, form(PAYMENT)) == 503
    assert rows(store, "notification") == []


@pytest.mark.postgresql
def test_equal_messages_that_meet_on_postgresql_are_kept_once(tmp_path, migrated_postgresql_url):
    opened = open_store(migrated_postgresql_url)
    receiver = _receiver(tmp_path, opened)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: status(receiver, form(PAYMENT)), range(16)))
    with opened.reading() as connection:
        times = connection.execute(select(notification.c.times)).scalars().all()
    opened.close()

    assert set(answers) <= {200, 503}
    assert times == [answers.count(200)]
