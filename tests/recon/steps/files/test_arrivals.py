"""Files that break their reader: refused by name, set aside by content, and the night goes on."""

import random
import socket
import sqlite3
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import select

from recon.archive.schemas import SCHEMAS
from recon.config.file_sources import LedgerSource
from recon.config.settings import AccountSettings
from recon.files.inbox.fetching import RemoteFile
from recon.files.reader_process import FileReader, bounds_of
from recon.matching.frames.sources import LEDGER_COLUMNS, frame_of
from recon.model.nights import Mode
from recon.model.terms import Verdict
from recon.proof.night_tables import frame_of_table
from recon.steps.admin.doctor import LEDGER_ROWS_MAX, checks
from recon.steps.files import arrivals, file_decisions
from recon.steps.files.ingest import ingest
from recon.steps.files.store_ledger import store_ledger
from recon.steps.runtime.identity import speaker
from recon.steps.runtime.night_folder import StoredLedger
from recon.store.nights import facts_rows, order_rows, runs
from recon.store.schema import order_file
from tests.recon.files.whole_read import read_ledgers, spooled_file

EXPECTED = """
[[accounts."100042/100042001".expected]]
file = "orders-{date}.csv"
sender = "the shop"
expected_by = "01:00"
wait_until = "03:00"
"""


def declare(merchant, text):
    merchant.configure("merchants.toml", text)


def with_archive(merchant):
    """The folder in which what is read is kept from now on."""
    place: Path = merchant.folder / "archive"
    merchant.configure("merchants.toml", f'archive = "{place}"\ninbox =', instead_of="inbox =")
    return place


def told(merchant, *, pause=None, **sleeping):
    with merchant.begun() as (_, environment):
        used = replace(environment, pause=pause) if pause else environment
        return ingest("run-1", environment=used, **sleeping).sentence


def test_a_night_waits_for_a_file_that_comes_late(merchant):
    declare(merchant, EXPECTED)
    slept: list[float] = []

    def sleep(seconds):
        slept.append(seconds)
        merchant.now += timedelta(seconds=seconds)
        if len(slept) == 5:
            merchant.drop("orders-2026-11-20.csv", merchant.order(merchant.payments("captured")[0]))

    sentence = told(merchant, sleep=sleep)
    assert len(slept) == 5
    assert "1 new order files" in sentence
    assert "expected" not in sentence


def test_who_is_late_is_told_and_the_same_night_heals(merchant):
    declare(merchant, EXPECTED)
    merchant.wait(hours=2)
    paid = merchant.payments("captured")
    merchant.drop("other.csv", merchant.order(paid[0]))
    assert merchant.night() is Verdict.INCOMPLETE
    assert "orders-2026-11-20.csv of the shop is not there" in merchant.told[0].sentence
    assert "expected by 01:00, and was waited for until 03:00" in merchant.told[0].sentence
    assert _rejects(merchant) == ["orders-2026-11-20.csv"]
    merchant.drop("orders-2026-11-20.csv", merchant.order(paid[1]))
    merchant.night()
    assert "is not there" not in merchant.told[0].sentence
    assert _sources_with_rejects(merchant) == []


def test_a_night_waits_no_longer_than_its_bound(merchant):
    """A clock that stands still does not hold the night for ever."""
    declare(merchant, EXPECTED)
    looks: list[float] = []
    assert "was waited for until 03:00" in told(merchant, sleep=looks.append)
    assert len(looks) <= 12 * 60


def test_a_server_that_cannot_be_reached_is_told_and_the_night_goes_on(merchant, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (merchant.folder / "known_hosts").write_text("")
    declare(
        merchant,
        f"""
[[accounts."100042/100042001".sources]]
url = "sftp://u@127.0.0.1:{port}/out"
known_hosts_file = "{merchant.folder / "known_hosts"}"
password_env = "SFTP_PASSWORD"
""",
    )
    monkeypatch.setitem(merchant.variables, "SFTP_PASSWORD", "secret")
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    sentence = told(merchant)
    assert "1 new order files" in sentence
    assert f"sftp://u@127.0.0.1:{port}/out cannot be read" in sentence
    assert _rejects(merchant) == [f"sftp://u@127.0.0.1:{port}/out"]


def test_a_file_that_somebody_writes_elsewhere_leaves_the_night_incomplete(merchant, monkeypatch):
    """Nothing of it is read, its folder stands among the sources; the same night heals."""
    merchant.configure("merchants.toml", "settle_seconds = 5", instead_of="settle_seconds = 0")
    declare(
        merchant,
        """
[[accounts."100042/100042001".sources]]
url = "s3://books/out"
access_key_env = "A"
secret_key_env = "S"
""",
    )
    kept = merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    text = kept.read_bytes()
    kept.unlink()
    monkeypatch.setattr(arrivals, "_opened", lambda *_, **__: nullcontext(_Uploading(text)))
    moments: list[timedelta] = []
    _Uploading.ends = False
    sentence = told(merchant, pause=moments.append)
    assert "orders.csv was not fetched: is still being written" in sentence
    assert set(moments) == {timedelta(seconds=5)}
    assert _rejects(merchant) == ["s3://books/out"]
    _Uploading.ends = True
    with merchant.environment() as environment:
        later = replace(environment, pause=moments.append)
        assert "1 new order files" in ingest("run-1", environment=later).sentence
    assert _sources_with_rejects(merchant) == []


class _Uploading:
    """A folder elsewhere whose file grows with every look until it ends."""

    ends = False

    def __init__(self, text):
        self._text, self._looks = text, 0

    def entries(self):
        return [self.again("orders.csv")]

    def again(self, name):
        self._looks += not self.ends
        size = len(self._text)
        return RemoteFile(name, size, datetime(2026, 11, 20, tzinfo=UTC), f"{self._looks}")

    def parts(self, _):
        return [self._text]


def test_the_same_file_again_is_nothing_and_other_content_is_a_new_version(merchant):
    one, other = map(merchant.order, merchant.payments("captured")[:2])
    path = merchant.drop("orders.csv", one, one)
    assert told(merchant).startswith("1 new order files with 2 rows accepted and 0 rejected; 0 ")

    def again():
        with merchant.environment() as environment:
            sentence = ingest("run-1", environment=environment).sentence
            with environment.store.reading() as connection:
                named = order_file.c.name, order_file.c.version, order_file.c.rows_repeat
                files = [tuple(row) for row in connection.execute(select(*named))]
                return (
                    sentence,
                    files,
                    sum(facts.row_count for facts in facts_rows.every(connection)),
                )

    known = "0 new order files with 0 rows accepted and 0 rejected; "
    first = ("orders.csv", 1, 0)
    assert again() == (f"{known}1 files were known already.", [first], 2)
    (merchant.inbox / "copy.csv").write_bytes(path.read_bytes())
    reported_before = " Told before, and counted once: copy.csv (2 rows)."
    files = [first, ("copy.csv", 1, 0)]
    sentence = f"1{known[1:]}1 files were known already.{reported_before}"
    assert again() == (sentence, files, 4)
    assert again() == (f"{known}2 files were known already.", files, 4)
    merchant.drop("orders.csv", one, other)
    (merchant.inbox / "copy.csv").unlink()
    sentence, files, rows = again()
    assert sentence.startswith("1 new order files with 2 rows accepted")
    assert (files, rows) == ([first, ("copy.csv", 1, 0), ("orders.csv", 2, 0)], 6)


def test_a_file_that_stays_in_the_inbox_is_read_once(merchant, monkeypatch):
    """By its hash alone it is known; what was refused, or is not in the archive, is read again."""
    place = with_archive(merchant)
    kept = merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    (merchant.inbox / "bad.csv").write_text("no,such,header\n")
    read: list[str] = []

    def spooled(path, **how):
        read.append(path.name)
        return spooled_file(path, **how)

    monkeypatch.setattr("recon.steps.files.ingest.order_file", spooled)
    told(merchant)

    def again():
        read.clear()
        with merchant.environment() as environment:
            sentence = ingest("run-1", environment=environment).sentence
        assert "1 files were known already. 1 refused as a whole" in sentence
        return sorted(read)

    assert sorted(read) == ["bad.csv", "orders.csv"]
    assert again() == ["bad.csv"]
    next(place.rglob("*.csv")).unlink()
    assert again() == ["bad.csv", "orders.csv"]
    assert [found.read_bytes() for found in place.rglob("*.csv")] == [kept.read_bytes()]
    assert again() == ["bad.csv"]


def test_what_was_read_is_kept_unless_it_is_private(merchant):
    """Order files lie in the archive by hash; one with card numbers in any column does not."""
    place = with_archive(merchant)
    row = merchant.order(merchant.payments("captured")[0])
    kept = merchant.drop("orders.csv", row)
    private = merchant.inbox / "private.csv"
    head, line = kept.read_text().splitlines()
    private.write_text(f"{head},note\n{line},card 4111 1111 1111 1111 please\n")
    sentence = told(merchant)
    assert "Not archived: private.csv: it holds card numbers in column note" in sentence
    assert "4111" not in sentence
    assert [found.read_bytes() for found in place.rglob("*.csv")] == [kept.read_bytes()]


def _rejects(merchant):
    return [source for (source,) in merchant.rows("SELECT source FROM reject")]


def _sources_with_rejects(merchant):
    with merchant.environment() as environment, environment.store.reading() as connection:
        (found,) = runs.newest_of_accounts(connection)
        return [item.source for item in order_rows.rejects_of_night(connection, found)]


PLACE = ("100042", "100042001")
LARGE_BYTES = 20_000
LEDGER = "ledger.csv"
"""The ledger of every night here, which is right but in one test."""


NOTES = "order_no,notes\n" + "A-1,nothing to see here\n" * 100_000
"""More than fits into what a process of the libraries has left of its own."""


MIB = 2**20
SETTLEMENT = """
[accounts."100042/100042001".settlement]
inbox = "{path}"
"""


def of_this_test(size_bytes):
    """As always, but a large file gets no more memory than the libraries have by themselves."""
    bounds = bounds_of(size_bytes)
    return replace(bounds, data_bytes=16 * MIB) if size_bytes > LARGE_BYTES else bounds


@pytest.fixture
def reader(monkeypatch):
    """A reader that large files break."""
    reader = FileReader(bounds=of_this_test)
    monkeypatch.setattr("recon.files.reader.file_reader", lambda: reader)
    yield reader
    reader.close()


@pytest.fixture
def tries(reader, monkeypatch):
    names: list[str] = []
    read = reader.read

    def counted(file, work, **arguments):
        if file.name != LEDGER or file.read_text() == NOTES:
            names.append(file.name)
        return read(file, work, **arguments)

    monkeypatch.setattr(reader, "read", counted)
    return names


def test_the_night_goes_on_without_a_file_that_broke_its_reader(merchant, tries):
    orders = [merchant.order(one) for one in merchant.payments("captured")[:5]]
    merchant.drop("a-good.csv", *orders[:2])
    merchant.drop("z-good.csv", *orders[2:4])
    (merchant.inbox / "m-bomb.csv").write_text(NOTES)
    verdict = merchant.night(mode=Mode.DRY_RUN)

    assert verdict is Verdict.INCOMPLETE
    assert tries == ["a-good.csv", "m-bomb.csv", "z-good.csv"]
    told = merchant.said("ingest")
    assert "2 new order files with 4 rows accepted" in told
    assert "1 refused as a whole and left in the inbox: m-bomb.csv" in told
    assert "its content is set aside: no night tries it again, under whatever name" in told

    # A name is not set aside, only what lay under it.
    merchant.drop("m-bomb.csv", orders[4])
    merchant.night(mode=Mode.DRY_RUN)
    assert "1 new order files with 1 rows accepted" in merchant.said("ingest")
    assert "refused as a whole" not in merchant.said("ingest")


def test_the_same_content_is_not_tried_again_wherever_it_lies(merchant, tries):
    (merchant.inbox / "bomb.csv").write_text(NOTES)
    merchant.night(mode=Mode.DRY_RUN)
    assert tries == ["bomb.csv"]

    settled = merchant.folder / "settled"
    settled.mkdir()
    for place in (merchant.inbox / "copy.csv", settled / "day.csv", merchant.folder / LEDGER):
        place.write_text(NOTES)
    merchant.configure("merchants.toml", SETTLEMENT.format(path=settled))
    merchant.night(mode=Mode.DRY_RUN)

    assert tries == ["bomb.csv"]
    told = merchant.said("ingest")
    for name in ("bomb.csv", "copy.csv", "day.csv"):
        assert f"{name} was not read: this content is set aside (bomb.csv " in told
    ledger_source = merchant.said("query")
    assert "ledger.csv was not read: this content is set aside (bomb.csv " in ledger_source


def test_somebody_may_let_it_be_tried_once_more(merchant, tries):
    """By any name under which it was met; what breaks its reader again is set aside again."""
    (merchant.inbox / "bomb.csv").write_text(NOTES)
    merchant.night(mode=Mode.DRY_RUN)
    (merchant.inbox / "bomb.csv").rename(merchant.inbox / "copy.csv")
    merchant.night(mode=Mode.DRY_RUN)
    assert tries == ["bomb.csv"]

    with merchant.environment() as environment:
        ann = speaker("Ann", code=None, environment=environment)
        file_decisions.read_again("copy.csv", account=PLACE, person=ann, reason="more memory now")
    for _ in range(2):
        merchant.night(mode=Mode.DRY_RUN)
    assert tries == ["bomb.csv", "copy.csv"]


COLUMNS = "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at"
ROW = ("E-1", "100042", "100042001", "A-1", "capture", "EUR", "10.5", "2026-01-05T10:00:00Z")
CARD = "4111111111111111"


def kept(merchant, ledger, **settings):
    with merchant.begun() as (run, environment):
        place = AccountSettings(
            inbox=merchant.inbox,
            reports=merchant.folder,
            ledger=ledger,
            archive=merchant.folder / "kept",
            settle_seconds=settings.pop("settle_seconds", 0),
        )
        accounts = {"100042/100042001": place}
        changed = replace(
            environment,
            settings=environment.settings.model_copy(update={"accounts": accounts}),
            **settings,
        )
        told = store_ledger(run, environment=changed)
        with environment.store.reading() as connection:
            found = StoredLedger(connection, run, changed)
            source = found.source
            names = SCHEMAS["ledger"].columns.names
            frames = map(frame_of_table, found.batches(names)) if source else ()
            none = frame_of((), columns=LEDGER_COLUMNS)
            return told, source and (pd.concat([none, *frames], ignore_index=True), source)


def ledger_source(merchant, *rows):
    path = merchant.folder / "books.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"create table entry ({COLUMNS.replace('amount', 'amount numeric')})")
        connection.executemany("insert into entry values (?,?,?,?,?,?,?,?)", rows)
    return LedgerSource(url=f"sqlite:///{path}", query=f"select {COLUMNS} from entry")  # noqa: S608 - the test's own table


def csv_file(merchant, *rows):
    path = merchant.folder / "ledger.csv"
    path.write_text("".join(f"{line}\n" for line in (COLUMNS, *map(",".join, rows))))
    return LedgerSource(path=path)


def archived(merchant):
    return [path for path in (merchant.folder / "kept").rglob("*") if path.is_file()]


def test_what_a_query_gave_is_kept_by_its_hash_and_can_be_read_again(merchant):
    """A year later the file of the archive gives the entries that the night compared."""
    told, (entries, source) = kept(merchant, ledger_source(merchant, ROW))
    (path,) = archived(merchant)
    assert told == ""
    assert path.name == f"{source.sha256}.jsonl"
    with merchant.environment() as environment:
        rules = environment.settings.rules
    again = read_ledgers(LedgerSource(path=path), environment={}, rules=rules).entries
    # An extract has no header, so its rows stand one line higher.
    places = ["source", "line"]
    assert again.drop(columns=places).equals(entries.drop(columns=places))


def test_a_ledger_file_is_kept_as_it_was(merchant):
    row = (*ROW[:6], "10.50", ROW[7])
    ledger = csv_file(merchant, row)
    _, (_, source) = kept(merchant, ledger)
    (path,) = archived(merchant)
    assert path.name == f"{source.sha256}.csv"
    assert path.read_bytes() == ledger.path.read_bytes()


@pytest.mark.parametrize("make", [ledger_source, csv_file])
def test_a_ledger_with_card_numbers_is_not_kept(merchant, make):
    """The night says so, with the column and never the number."""
    told, _ = kept(merchant, make(merchant, (CARD, *ROW[1:])))
    assert "it holds card numbers in column entry_id" in told
    assert CARD not in told
    assert archived(merchant) == []


def test_a_ledger_file_that_is_still_written_is_refused(merchant):
    """Half of the ledger is worse than none."""
    ledger = csv_file(merchant, ROW)

    def keep_writing(_):
        ledger.path.write_bytes(ledger.path.read_bytes() + b"\n")

    told, found = kept(merchant, ledger, settle_seconds=5, pause=keep_writing)

    assert "The ledger could not be read: " in told
    assert "ledger.csv is still being written" in told
    assert found is None


HEADER = "merchant_id,account_id,order_no,currency,amount,status,ordered_at"


def _found(merchant, name):
    told = checks(merchant.variables, clock=merchant.clock, randomness=random.Random(1))
    (check,) = [one for one in told if one.name.split()[0] == name]
    return check


def _ledger_source(merchant, *, currency, rows):
    """A SQLite ledger of so many rows, declared for the account."""
    path = merchant.folder / "books.sqlite"
    entries = [
        (
            f"E{n:05}",
            "100042",
            "100042001",
            f"A-{n}",
            "capture",
            currency,
            "10.00",
            "2026-11-20T10:00:00Z",
        )
        for n in range(rows)
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"create table entry ({COLUMNS})")
        connection.executemany("insert into entry values (?,?,?,?,?,?,?,?)", entries)
    declared = merchant.folder / "config" / "merchants.toml"
    lines = [one for one in declared.read_text().splitlines() if not one.startswith("ledger")]
    query = f"select {COLUMNS} from entry"  # noqa: S608 - the test's own table
    lines.append(f'ledger = {{ url = "sqlite:///{path}", query = "{query}" }}')
    declared.write_text("\n".join(lines))


def test_ten_rows_of_a_ledgers_query_are_read(merchant):
    _ledger_source(merchant, currency="EUR", rows=500)
    check = _found(merchant, "ledger")

    assert check.ok, check.sentence
    assert f"{LEDGER_ROWS_MAX} of {LEDGER_ROWS_MAX} rows read can be taken" in check.sentence


def test_a_ledger_whose_rows_would_be_refused_is_not_ok(merchant):
    _ledger_source(merchant, currency="EURO", rows=3)
    check = _found(merchant, "ledger")

    assert not check.ok
    assert "0 of 3 rows read can be taken, 3 would be refused; the first in line " in check.sentence
    assert "currency: " in check.sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("order_no;amount\nA-1;10\n", "bad.csv"),
        (
            f"{HEADER}\n100042,100042001,A-1,EUR,12.5,paid,2026-11-20T10:00:00Z\n",
            "bad.csv: every row would be refused; the first in line 2, amount: ",
        ),
    ],
)
def test_an_inbox_file_that_a_night_would_refuse_is_not_ok(merchant, content, words):
    merchant.drop("good.csv", merchant.order(merchant.payments("captured")[0]))
    (merchant.inbox / "bad.csv").write_text(content)
    check = _found(merchant, "inbox")

    assert not check.ok
    assert words in check.sentence
    assert "good.csv" not in check.sentence
