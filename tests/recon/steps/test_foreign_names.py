"""File names, column names and ids of a stranger that no sink may hold as they stand."""

import csv
import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from recon.model.words import Verdict
from recon.steps.compare.plain_files import PlainFilesRequest, reconcile_files
from recon.steps.files.words_on_files import dismiss, files_of
from recon.steps.ground.identity import speaker
from recon.store.database import outside_heads
from reports.handed import workbooks
from tests.recon.resting import resting

from .conftest import ACCOUNT, MERCHANT, Merchant

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


def everything(folder: Path) -> bytes:
    """All bytes that rest below a folder, names too, but the inbox."""
    inbox = f"{folder / 'inbox'}"
    return b"".join(text for place, text in resting(folder) if not place.startswith(inbox))


@pytest.mark.parametrize("name", NAMES, ids=SHOWN)
def test_a_file_whose_name_cannot_be_kept_stops_no_night(merchant: Merchant, name: bytes) -> None:
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
def test_a_file_of_an_unreadable_name_is_let_go_by_its_shown_one(
    merchant: Merchant, name: bytes
) -> None:
    """What stands in `recon file` is what `dismiss` takes; the next night is whole."""
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
    assert f"{SHOWN[0]} was not read: somebody let it go" in merchant.told[0].sentence


def test_an_id_with_a_card_number_refuses_its_row_and_rests_nowhere(merchant: Merchant) -> None:
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
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        rejects = connection.execute('SELECT source, line, "column", reason FROM reject').fetchall()
    why = "looks like a card number, which does not belong here"
    assert sorted(rejects) == [
        ("orders-1.csv", line, column, why) for line, column in enumerate(columns, start=2)
    ]
    spoken = " ".join(step.sentence for step in merchant.told)
    kept = everything(merchant.folder).decode(errors="replace") + spoken
    assert [text for _, text in CARD_IDS if text in kept] == []
    assert PLAIN_CARD not in kept


def test_a_column_named_by_a_card_number_is_told_without_it(tmp_path: Path) -> None:
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
    )
    assert json.loads((out / "summary.json").read_text())["verdict"]
    kept = everything(out).decode(errors="replace")
    assert "4929-78**-****-3877 paid" in kept
    assert CARD not in kept


def test_a_night_of_a_worker_leaves_nothing_to_strangers(merchant: Merchant) -> None:
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
