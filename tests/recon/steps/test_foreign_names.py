"""File names, column names and ids of a stranger that no sink may hold as they stand."""

import csv
import json
import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from recon import cli
from recon.instructions.planning import TWO_PEOPLE
from recon.model.errors import HistoryBrokenError
from recon.model.nights import Mode, NightRequest
from recon.model.terms import Verdict
from recon.sandbox import SandboxOptions
from recon.steps.approvals import people
from recon.steps.compare.plain_files import PlainFilesRequest, reconcile_files
from recon.steps.files.file_decisions import dismiss, files_of
from recon.steps.files.ingest import ingest
from recon.steps.night import query
from recon.steps.night import query as asking
from recon.steps.runtime.gateway_answers import order_numbers
from recon.steps.runtime.identity import speaker
from recon.steps.runtime.night_folder import storages_of
from recon.store.database import outside_heads
from recon.store.database.history import Head
from recon.store.database.outside_heads import HeadFile
from recon.store.nights import order_rows, runs
from recon.store.nights.facts_rows import EVER
from recon.store.nights.stored_orders import StoredOrders
from recon.webhooks.receiver import Receiver
from reports.workbook_io import workbooks
from tests.recon.resting import resting
from tests.recon.steps.conftest import ACCOUNT, BUSINESS_DATE, MERCHANT, opened
from tests.recon.store.database.test_history import newest_note
from tests.recon.webhooks.told import PAYMENT, form

CARD = "4929-7801-6452-3877"
PLAIN_CARD = CARD.replace("-", "")
NAMES = (b"orders-caf\xe9.csv", f"orders-{CARD}.csv".encode(), "orders-a\u202eb.csv".encode())
SHOWN = ("orders-caf\\xe9.csv", "orders-4929-78**-****-3877.csv", "orders-a\\u202eb.csv")


CARD_IDS = (
    ("order_no", CARD),
    ("order_no", f"ORD-{PLAIN_CARD}"),
    ("order_no", f"ORD:{CARD.replace('-', '/')}"),
    ("transaction_id", CARD.replace("-", ".")),
    ("transaction_id", f"tx{PLAIN_CARD}"),
    ("request_id", f"R_{CARD.replace('-', '_')}"),
)


def everything(folder):
    """All bytes that rest below a folder, names too, but the inbox."""
    inbox = f"{folder / 'inbox'}"
    return b"".join(text for place, text in resting(folder) if not place.startswith(inbox))


@pytest.mark.parametrize("name", NAMES, ids=SHOWN)
def test_a_file_whose_name_cannot_be_kept_stops_no_night(merchant, name):
    """It is refused by a printable name and left, the other file is read, the night INCOMPLETE."""
    paid = merchant.payments("captured")[:2]
    merchant.drop("orders-1.csv", merchant.order(paid[0]))
    merchant.drop(os.fsdecode(name), merchant.order(paid[1]))
    assert merchant.night() is Verdict.INCOMPLETE
    shown = SHOWN[NAMES.index(name)]
    told = merchant.told[0].sentence
    assert "1 new order files with 1 rows accepted" in told
    assert f"1 refused as a whole and left in the inbox: {shown}: " in told
    assert "rename it" in told
    assert told.isprintable()
    assert PLAIN_CARD not in everything(merchant.folder).decode(errors="replace").replace("-", "")


@pytest.mark.parametrize("name", NAMES[:1], ids=SHOWN[:1])
def test_a_file_of_an_unreadable_name_is_let_go_by_its_shown_one(merchant, name):
    """What stands in `recon order-file check` is what `dismiss` takes; the next night is whole."""
    merchant.drop("orders-1.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.drop(os.fsdecode(name))
    merchant.night()
    with merchant.environment() as environment:
        known = files_of((MERCHANT, ACCOUNT), environment=environment)
        assert SHOWN[0] in [each.source.name for each in known]
        dismiss(
            SHOWN[0],
            account=(MERCHANT, ACCOUNT),
            person=speaker("Ann", code=None, environment=environment),
            reason="a stray file",
        )
    merchant.night()
    assert f"{SHOWN[0]} was not read: somebody dismissed it" in merchant.told[0].sentence


def test_an_id_with_a_card_number_refuses_its_row_and_rests_nowhere(merchant):
    """The rows are told by file, line and column; the number is in no table, report or sentence."""
    columns = [column for column, _ in CARD_IDS]
    path = merchant.drop("orders-1.csv", *map(merchant.order, merchant.payments("captured")[:7]))
    header, *rows = path.read_text().splitlines()
    names = [*header.split(","), "transaction_id"]
    action = {"action": "refund", "action_amount": "1.00", "request_id": "R-1"}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=names, restval="")
        writer.writeheader()
        for row, (column, text) in zip(rows, [*CARD_IDS, ("status", "paid")], strict=True):
            cells = dict(zip(names, row.split(","), strict=False))
            writer.writerow(cells | (action if column == "request_id" else {}) | {column: text})
    merchant.night()
    rejects = merchant.rows('SELECT source, line, "column", reason FROM reject')
    why = "looks like a card number, which does not belong here"
    assert sorted(rejects) == [
        ("orders-1.csv", line, column, why) for line, column in enumerate(columns, start=2)
    ]
    spoken = " ".join(step.sentence for step in merchant.told)
    kept = everything(merchant.folder).decode(errors="replace") + spoken
    assert [text for _, text in CARD_IDS if text in kept] == []
    assert PLAIN_CARD not in kept


def test_a_column_named_by_a_card_number_is_told_without_it(tmp_path):
    """In the notes, the workbook's sources and the summary of `recon reconcile`."""
    header = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"
    row = f"{MERCHANT},{ACCOUNT},A-1,EUR,1.00,paid,2026-11-20T10:00:00Z"
    orders, gateway = tmp_path / "orders.csv", tmp_path / "gateway.csv"
    orders.write_text(f"{header},{CARD} paid\n{row},x\n")
    gateway.write_text(
        "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,"
        "query_result,reference_no,transaction_date\n"
    )
    out = tmp_path / "out"
    request = PlainFilesRequest(
        orders=(orders,),
        gateway=(gateway,),
        ledger=(),
        instructions=(),
        settlement=(),
        rules_file=None,
        previous=None,
        as_of=date(2026, 11, 20),
        out=out,
    )
    reconcile_files(
        request,
        clock=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        write_workbook=workbooks().write,
        sheet_totals=workbooks().totals,
    )
    assert json.loads((out / "summary.json").read_text())["verdict"]
    kept = everything(out).decode(errors="replace")
    assert "4929-78**-****-3877 paid" in kept
    assert CARD not in kept


def test_a_night_of_a_worker_leaves_nothing_to_strangers(merchant):
    """Also where no command of ours set the umask: what a night itself makes is closed.

    Only the head of the history may be written by its group: the desk notes in it too.
    """
    merchant.drop("orders-1.csv", merchant.order(merchant.payments("captured")[0]))
    before = os.umask(0)
    try:
        merchant.night(workbooks=workbooks())
    finally:
        os.umask(before)
    made = [path for path in (merchant.folder / "reports").rglob("*") if path.is_file()]
    made += merchant.folder.glob("*.lock")
    assert len(made) > 2
    assert [path.name for path in made if path.stat().st_mode & 0o007] == []
    assert {path.name for path in made if path.stat().st_mode & 0o020} == {outside_heads.FILE_NAME}


ACCOUNTS = ("100042001", "100042002")
LOOKED_FOR_SECONDS = 0.2
"""Long enough for the other account to look, too, if nothing holds it back."""


@pytest.mark.postgresql
def test_of_an_inbox_that_two_accounts_read_at_once_each_order_stands_once(
    merchant, migrated_postgresql_url, monkeypatch
):
    """Orders of both accounts in one file, which each of them reads."""
    _declare_both(merchant)
    paid = merchant.payments("captured")[:20]
    rows = [merchant.order(one, account_id=ACCOUNTS[n % 2]) for n, one in enumerate(paid)]
    merchant.drop("orders.csv", *rows)
    real = order_rows.known_file

    def slowly(*args, **kwargs):
        found = real(*args, **kwargs)
        time.sleep(LOOKED_FOR_SECONDS)
        return found

    monkeypatch.setattr(order_rows, "known_file", slowly)
    threads = [
        threading.Thread(target=_ingest, args=(merchant, migrated_postgresql_url, account))
        for account in ACCOUNTS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with (
        merchant.environment(RECON_DATABASE_URL=migrated_postgresql_url) as environment,
        environment.store.reading() as connection,
    ):
        storages = storages_of(environment)
        orders = [
            number
            for account in ACCOUNTS
            for of_account in [runs.get(connection, f"run-{account}")]
            for column in StoredOrders(connection, of_account, storages).numbers(spans=EVER)
            for number in column.to_pylist()
        ]
    assert sorted(orders) == sorted(one.order_no for one in paid)


def _ingest(merchant, url, account):
    with merchant.environment(RECON_DATABASE_URL=url, seed=int(account)) as environment:
        request = NightRequest("100042", account, date(2026, 11, 20), Mode.LIVE)
        now = merchant.clock()
        with environment.store.writing() as connection:
            runs.start(connection, request, run_id=f"run-{account}", as_of=now, now=now)
        ingest(f"run-{account}", environment=environment)


def _declare_both(merchant):
    declared = merchant.folder / "config" / "merchants.toml"
    told = declared.read_text()
    declared.write_text(told + "\n" + told.replace(ACCOUNTS[0], ACCOUNTS[1]))


KEY = "a key of real money"


@pytest.fixture
def real(tmp_path, database_url, monkeypatch):
    """Its merchant, with a limit for euros alone, and a file that asks for two captures."""
    options = SandboxOptions(orders=300, sign_key=KEY)
    with opened(tmp_path, options=options, database_url=database_url) as merchant:
        merchant.variables["RECON_SIGN_KEY"] = KEY
        place = {"RECON_MERCHANT": MERCHANT, "RECON_ACCOUNT": ACCOUNT}
        for name, value in (merchant.variables | place).items():
            monkeypatch.setenv(name, value)
        (tmp_path / "config" / "limits.toml").write_text("[limits.EUR]\nnight = 1000000\n")
        wanted = {one.currency: one for one in merchant.payments("authorised")}
        rows = [merchant.order(wanted[code], action="capture") for code in ("EUR", "GBP")]
        merchant.drop("orders.csv", *rows)
        yield merchant


def test_real_money_moves_only_live_and_within_a_limit(real, capsys):
    """Without a word each command is a dry run and says so; live, what has no limit waits."""
    part = ["nightly", "--business-date", BUSINESS_DATE, "--only"]
    assert cli.main([*part, "ingest"]) == 0
    assert [cli.main([*part, only]) for only in ("settle", "payouts")] == [0, 0]
    dry = capsys.readouterr()
    assert dry.out.count("A dry run, for the gateway is not the sandbox") == 2
    assert "would send" in dry.err
    assert real.effects() == []

    assert cli.main([*part, "settle", "--live"]) == 0

    assert [(one["operation"], one["currency"]) for one in real.effects()] == [("capture", "EUR")]
    with real.environment() as environment, environment.store.reading() as connection:
        holds = connection.exec_driver_sql("SELECT hold FROM instruction WHERE state = 'planned'")
        assert [*holds.scalars()] == [f"{TWO_PEOPLE}: limits.toml sets no limit for GBP"]


def test_real_money_asked_for_by_hand_waits_for_another_person(real, capsys):
    """Nobody plays with it under any name; who is declared asks, and somebody else approves."""
    payment = next(one for one in real.payments("captured") if one.currency == "EUR")
    refund = [
        "gateway",
        "refund",
        payment.order_no,
        "--amount",
        payment.amount,
        "--as",
        "anna",
    ]
    assert cli.main(refund) == 2
    (real.folder / "config" / "approvers.toml").write_text('[approvers.anna]\nname = "Anna Berg"\n')

    assert cli.main(refund) == 3
    assert "another person approves it" in capsys.readouterr().out
    assert real.effects() == []


def test_an_order_that_only_a_notification_named_is_asked_for(merchant):
    """A payment that no order file has is found by what the gateway told of it."""
    payment = next(item for item in merchant.payments("captured") if item.currency == "EUR")
    message = {
        **PAYMENT,
        "order_no": payment.order_no,
        "transaction_id": payment.transaction_id,
        "amount": payment.amount,
    }
    with merchant.environment() as environment:
        receiver = Receiver(environment.settings, store=environment.store, clock=merchant.clock)
        place = {"merchant_id": "100042", "account_id": "100042001"}
        assert receiver.receive(form(message), **place).text == "success"

    merchant.drop("orders.csv", merchant.order(merchant.payments("authorised")[0]))
    merchant.move_money()

    (asked,) = (summary for summary in merchant.told if summary.step == "query")
    assert asked.figures["found"] == 2


def test_a_payment_that_only_an_instruction_file_names_is_asked_for(merchant):
    """It is asked about before its instruction is judged, so that the first night sends it."""
    one = next(item for item in merchant.payments("authorised") if item.currency == "EUR")
    header = "merchant_id,account_id,kind,request_id,order_no,transaction_id,currency,amount"
    row = f"100042,100042001,capture,R-1,{one.order_no},{one.transaction_id},EUR,{one.amount}"
    (merchant.inbox / "instructions-1.csv").write_text(f"{header}\n{row}\n")
    merchant.night()
    told = {summary.step: summary for summary in merchant.told}

    assert told["query"].figures["found"] == 1
    assert [row["operation"] for row in merchant.effects()] == ["capture"]


def test_a_payment_of_an_instruction_that_has_ended_is_asked_about_again(merchant, monkeypatch):
    """No order file names it and no break keeps it: what the gateway shows of it later is seen."""
    test_a_payment_that_only_an_instruction_file_names_is_asked_for(merchant)
    merchant.wait(hours=24)
    monkeypatch.setattr(query.StoredResult, "orders_left_open", lambda _: ())
    monkeypatch.setattr(query.GatewayAnswers, "failed_keys", lambda _: ())
    merchant.move_money(date="2026-11-21")
    (asked,) = (summary for summary in merchant.told if summary.step == "query")

    assert asked.figures["found"] == 1


def test_an_order_that_was_not_asked_about_is_not_called_unanswered(merchant, monkeypatch):
    """Why an instruction waits is true: nobody asked, where nobody asked."""
    one = next(item for item in merchant.payments("authorised") if item.currency == "EUR")
    merchant.drop("orders.csv", merchant.order(one, status="paid", action="capture"))
    monkeypatch.setattr(asking, "orders_in_question", lambda *_, **__: order_numbers([()]))
    merchant.night()
    with merchant.environment() as environment:
        ((_, (waiting, *_)),) = people.status(environment)

    assert "The gateway was not asked about this order tonight" in waiting.next_step
    assert "no usable answer" not in waiting.next_step


def copied(merchant):
    """The same merchant on a copy of its database; inbox, reports and gateway are shared."""
    path = merchant.sqlite_path
    other = path.with_name("copy.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, other)
    url = f"sqlite:///{other}"
    variables = {**merchant.variables, "RECON_DATABASE_URL": url}
    return replace(merchant, variables=variables, told=[], chance="copy")


def night_with(merchant, environment):
    """A live night in an environment of the test's own."""
    merchant.run(environment)


def refunded(merchant):
    """A copy of the merchant's database, and six refunds that wait in the shared inbox."""
    paid = [each for each in merchant.payments("captured") if each.currency == "EUR"][:6]
    merchant.drop("orders.csv", *[merchant.order(each) for each in paid])
    merchant.night()
    other = copied(merchant)
    refunds = [merchant.order(each, status="refunded", action="refund") for each in paid]
    merchant.drop("refunds.csv", *refunds)
    return other, paid


def test_a_copy_sends_nothing_once_a_night_has_sealed_what_it_read(merchant):
    """The seal is noted beside the databases before the first claim: the copy sees it and stops."""
    other, paid = refunded(merchant)
    played: list[str] = []

    def crash_point(at):
        if at == "before claim" and not played:
            played.append(at)
            meanwhile = threading.Thread(target=other.night)
            meanwhile.start()
            meanwhile.join()

    with merchant.environment() as environment:
        night_with(merchant, replace(environment, crash_point=crash_point))

    assert len(merchant.effects()) == len(paid)
    assert merchant.instruction_states() == {"confirmed": len(paid)}
    sentences = " ".join(summary.sentence for summary in other.told)
    assert "a copy beside the one that works" in sentences
    assert "0 sent in 0 batches" in sentences


def test_a_night_that_sees_a_foreign_link_after_its_claim_releases_the_batch(merchant):
    """Nothing of the batch leaves, nothing more is sent, and a sentence says why."""
    _, paid = refunded(merchant)
    played: list[str] = []

    def crash_point(at):
        if at == "before claim" and not played:
            played.append(at)
            side = HeadFile(merchant.folder / "reports")
            known = newest_note(side)
            foreign = Head(known.head.sequence + 9, "f" * 64)
            side.note(lambda: foreign, of="run of a copy", at=datetime.now(UTC))

    with merchant.environment() as environment, pytest.raises(HistoryBrokenError) as ended:
        night_with(merchant, replace(environment, crash_point=crash_point))

    assert played
    assert merchant.effects() == []
    assert merchant.instruction_states() == {"approved": len(paid)}
    assert "a copy beside the one that works" in str(ended.value)
    assert "sends nothing more" in str(ended.value)
