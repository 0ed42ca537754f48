"""The rows of order files in the archive: whole with their row in the database, or nobody's."""

import hashlib
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.model.errors import ArchiveBrokenError, ArchiveError, HistoryBrokenError
from recon.steps.admin.doctor import checks
from recon.steps.files.ingest import ingest
from recon.steps.money.gate import gate_of
from recon.store.nights import facts_rows, runs
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, archive_of

pytestmark = pytest.mark.xdist_group("two deliveries")
"""They begin with the same nights, which are played once."""


def capture(merchant):
    one = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(one, action="capture", status="authorised"))


def archive_folder(merchant):
    return Path(archive_of(merchant).shown)


def facts_of(merchant):
    return sorted((archive_folder(merchant) / "facts").rglob("*.parquet"))


def ingested(merchant):
    with merchant.begun() as (_, environment):
        ingest("run-1", environment=environment)
        with environment.store.reading() as connection:
            return len(facts_rows.every(connection))


def test_each_file_lies_once_under_its_own_hash(merchant):
    """The file again under another name adds no file."""
    capture(merchant)
    (merchant.inbox / "copy.csv").write_bytes((merchant.inbox / "orders.csv").read_bytes())
    assert ingested(merchant) == 2

    files = facts_of(merchant)
    assert len(files) == 1
    assert {path.parent.relative_to(archive_folder(merchant)).as_posix() for path in files} == {
        "facts/orders/2026/11"
    }
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    assert hashes == [path.stem for path in files]


def test_who_is_killed_between_bytes_and_commit_left_nothing_that_counts(merchant):
    """The night that is started again stores the file once, and moves what it asks for once."""
    capture(merchant)
    child = os.fork()
    if child == 0:
        ingested_in_child(merchant)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    left = facts_of(merchant)
    merchant.move_money()

    assert len(left) == 1
    assert facts_of(merchant) == left
    assert [row["operation"] for row in merchant.effects()] == ["capture"]


def ingested_in_child(merchant, *, at="archived the orders:1"):
    """As `ingested`, in a process that is to be killed."""
    with merchant.begun("run-0", RECON_CRASH_AT=at) as (_, environment):
        ingest("run-0", environment=environment)


def test_an_archive_that_takes_nothing_stores_nothing_of_the_file(merchant):
    capture(merchant)
    root = archive_folder(merchant)
    root.write_text("no folder")
    with pytest.raises(ArchiveError, match=r"nothing of it was stored and nothing was sent: make"):
        merchant.night()
    assert merchant.effects() == []

    root.unlink()
    merchant.move_money()
    assert [row["operation"] for row in merchant.effects()] == ["capture"]


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_rows_that_were_changed_in_the_archive_stop_the_night_before_money(merchant, change):
    """Whichever file of theirs it is, where nothing has them still: a night reads it before it
    sends."""
    capture(merchant)
    ingested(merchant)
    (merchant.inbox / "orders.csv").unlink()
    others = merchant.payments("captured")
    for path, other in zip(facts_of(merchant), others, strict=False):
        merchant.drop(f"{other.order_no}.csv", merchant.order(other))
        kept = path.read_bytes()
        change(path)
        with pytest.raises(ArchiveBrokenError, match=f"{path.stem}.parquet of the archive is gone"):
            merchant.move_money()
        assert merchant.effects() == []
        path.write_bytes(kept)


STATED_TWICE = (
    *("TABLE asked AS", "SELECT DISTINCT order_no", "TABLE named AS", "FROM order_rows"),
)
"""What is asked of rows that two files have, in its order."""


@pytest.mark.parametrize("text", STATED_TWICE)
def test_a_look_up_that_died_before_money_holds_it_until_the_night_is_started_again(
    merchant, killed_at, text
):
    """The sentence says what ended it and what to do; then the capture is sent, once."""
    capture(merchant)
    again = merchant.payments("captured")[0]
    merchant.drop("first.csv", merchant.order(again))
    merchant.drop("second.csv", merchant.order(again, amount="1.00"))
    facts_rows._ANSWERED.clear()  # of the same files in another test
    killed = killed_at(text)

    died = r"goes no further: the process that asks DuckDB ended \(SIGKILL\); what was done before"
    with pytest.raises(ArchiveError, match=f"{died} is kept: start the night again"):
        merchant.move_money()
    assert len(killed) == 1
    assert merchant.effects() == []

    merchant.move_money()
    assert [row["operation"] for row in merchant.effects()] == ["capture"]


def past_the_code(merchant, statement, *values):
    """What the night's own login could write."""
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        connection.execute(statement, values)
        connection.commit()


def replace_file_and_row(merchant):
    """One amount is another in a file under its right hash, and the table names that file."""
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        (sha256,) = connection.execute("SELECT rows_sha256 FROM order_facts").fetchone()
    (path,) = (each for each in facts_of(merchant) if each.stem == sha256)
    table = pq.read_table(path)
    at = table.schema.get_field_index("amount")
    amounts = pa.array([amount + 100 for amount in table["amount"].to_pylist()], pa.int64())
    draft = path.with_name("draft")
    pq.write_table(table.set_column(at, table.schema.field(at), amounts), draft)
    forged = hashlib.sha256(draft.read_bytes()).hexdigest()
    draft.rename(path.with_name(f"{forged}.parquet"))
    past_the_code(
        merchant, "UPDATE order_facts SET rows_sha256 = ? WHERE rows_sha256 = ?", forged, sha256
    )


def hide_rows(merchant):
    """The table says that the file's orders are of a day that no night looks at."""
    past_the_code(merchant, "UPDATE order_facts_account SET ordered_to = ordered_from")
    past_the_code(merchant, "UPDATE order_facts_account SET ordered_from = '2020-01-01'")


@pytest.mark.parametrize("forge", [replace_file_and_row, hide_rows])
@pytest.mark.parametrize(("behind", "moved"), [("ingest", 0), ("settle", 1), ("query again", 1)])
def test_no_night_compares_order_rows_that_the_history_did_not_bind(merchant, forge, behind, moved):
    capture(merchant)

    def progress(told):
        if told.step == behind:
            forge(merchant)

    with (
        merchant.environment() as environment,
        pytest.raises(HistoryBrokenError, match="file 1 are not those that the history boun"),
    ):
        merchant.run(environment, progress=progress)
    assert len(merchant.effects()) == moved


def test_a_folder_that_leads_elsewhere_closes_the_gate_unopened(merchant):
    """What the table names is opened where the history bound it: else the gate says why."""
    capture(merchant)
    ingested(merchant)
    past_the_code(merchant, "UPDATE order_facts SET folder = '../../../../dev/shm'")
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            run = runs.get(connection, "run-1")
        closed = gate_of(run, environment=environment).closed_because

    assert "file 1 are not those that the history bound: they were changed past" in closed


def facts_kept(merchant):
    root = Path(archive_of(merchant).shown) / "facts"
    return {path: path.read_bytes() for path in sorted(root.rglob("*.parquet"))}


def two_deliveries(merchant):
    """A file, and a later version under its name that changes a row, repeats one and adds one."""
    one, two, three, *_ = merchant.payments("captured")
    file = merchant.drop("a.csv", merchant.order(one), merchant.order(two))
    merchant.move_money()
    shutil.move(file, merchant.inbox.parent / "first.csv")
    rows = (merchant.order(one, status="refunded"), merchant.order(two), merchant.order(three))
    merchant.drop("a.csv", *rows)
    merchant.move_money()


def next_night(merchant):
    """A night that has a new row of a known order; what its steps said."""
    two, *_, last = merchant.payments("captured")[1:5]
    merchant.drop("b.csv", merchant.order(two, status="refunded"), merchant.order(last))
    merchant.move_money()
    return " ".join(told.sentence for told in merchant.told)


def facts_reported(merchant):
    every = checks(merchant.variables, clock=merchant.clock, randomness=Random(1))
    return next(each for each in every if each.name == f"facts {MERCHANT}/{ACCOUNT}")


@pytest.mark.parametrize(
    ("spoilt", "name"),
    [
        (Path.unlink, "a.csv"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "found again.csv"),
        (lambda path: path.write_bytes(b""), "a.csv"),
    ],
    ids=["gone", "cut", "emptied"],
)
def test_lost_facts_are_read_again_from_the_inbox(begun, spoilt, name):
    """All of them, byte for byte, under whatever name their files lie there."""
    merchant = begun(two_deliveries)
    wanted = facts_kept(merchant)
    shutil.move(merchant.inbox.parent / "first.csv", merchant.inbox / "first.csv")
    shutil.move(merchant.inbox / "a.csv", merchant.inbox / name)
    assert len(wanted) == 2
    for path in wanted:
        spoilt(path)
    assert not facts_reported(merchant).ok

    told = next_night(merchant)

    known = facts_kept(merchant)
    assert {path: known[path] for path in wanted} == wanted
    assert "was read again from" in told
    assert facts_reported(merchant).ok


def test_lost_facts_are_read_again_from_the_files_that_were_kept(merchant):
    """Where merchants.toml names a folder for them, the inbox may be empty."""
    merchant.configure("merchants.toml", f'archive = "{merchant.folder / "kept"}"\n')
    two_deliveries(merchant)
    wanted = facts_kept(merchant)
    (merchant.inbox / "a.csv").unlink()
    for path in wanted:
        path.unlink()

    next_night(merchant)

    assert facts_kept(merchant).items() >= wanted.items()


def test_what_cannot_be_read_again_is_named_with_what_to_do(begun):
    merchant = begun(two_deliveries)
    lost = facts_kept(merchant)
    for path in lost:
        path.unlink()

    wanted = r"put a.csv with the SHA-256 [0-9a-f]{64} into its inbox again, or facts/orders/.*back"
    with pytest.raises(ArchiveBrokenError, match=wanted):
        next_night(merchant)
    assert "put a.csv with the SHA-256" in facts_reported(merchant).sentence
    assert merchant.effects() == []

    shutil.move(merchant.inbox.parent / "first.csv", merchant.inbox / "once more.csv")
    next_night(merchant)
    assert facts_kept(merchant).items() >= lost.items()


def test_rows_that_are_read_otherwise_today_take_no_place(merchant):
    """A changed layout gives other rows: the history binds those of the day."""
    one, *_ = merchant.payments("captured")
    merchant.drop("a.csv", merchant.order(one, ordered_at="2026-11-20T10:00:00"))
    merchant.move_money()
    (rows,) = facts_kept(merchant)
    rows.unlink()
    merchant.configure("merchants.toml", 'layouts = [{ files = "a*", zone = "Asia/Tokyo" }]\n')

    with pytest.raises(ArchiveBrokenError, match=r"a.csv is read otherwise today .* put facts/ord"):
        merchant.move_money()
    assert rows not in facts_kept(merchant)
