import os
import resource
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from recon.model.errors import OutputError, StoreError
from recon.store.database import history
from recon.store.database.history import (
    FILE_NAME,
    NOTHING,
    Event,
    Head,
    save_verified,
    verified,
)
from recon.store.database.outside_heads import HeadFile, NotedHead, OutsideHeads, problem_of
from recon.store.schema import batch

AT = datetime(2026, 11, 21, 2, 0, 0, 123456, tzinfo=UTC)


def _grown(store, *, events=5):
    with store.writing() as connection:
        for number in range(events):
            history.append(
                connection, [Event("run", f"r{number}", "started", {"n": number})], at=AT
            )


def _changed(store, change):
    with store.writing() as connection:
        if store.is_sqlite:
            connection.execute(text("DROP TRIGGER history_no_update"))
            connection.execute(text("DROP TRIGGER history_no_delete"))
        else:
            connection.execute(text("ALTER TABLE history DISABLE TRIGGER ALL"))
        connection.exec_driver_sql(change)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE history SET data = '{\"n\":9}' WHERE sequence = 3",
        "UPDATE history SET entity_id = 'other' WHERE sequence = 3",
        "UPDATE history SET previous_hash = hash WHERE sequence = 3",
        "DELETE FROM history WHERE sequence = 3",
    ],
)
def test_the_first_broken_link_is_named(store, change):
    _grown(store)
    _changed(store, change)
    with store.reading() as connection:
        _, problem = history.verify(connection)

    assert "history 3" in problem


@pytest.mark.parametrize(
    "change", ["UPDATE history SET event = 'x'", "DELETE FROM history WHERE sequence = 5"]
)
def test_the_database_itself_refuses_changes(store, change):
    _grown(store)

    with pytest.raises(StoreError), store.writing() as connection:
        connection.execute(text(change))


def test_writers_that_come_at_once_make_one_chain(store):
    refused: list[str] = []

    def write(who):
        for number in range(10):
            try:
                with store.writing() as connection:
                    history.append(connection, [Event("run", f"r{who}", "x", {"n": number})], at=AT)
            except StoreError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.reading() as connection:
        last, problem = history.verify(connection)

    assert (refused, last.sequence, problem) == ([], 30, "")


@pytest.mark.parametrize("claimed", [Head(10**12, ""), Head(-1, "")])
def test_a_link_that_is_not_there_is_vouched_for_by_nothing(store, claimed):
    """A head that claims an empty hash is no head: all of it is walked, or taken as restored."""
    _grown(store)
    with store.reading() as connection:
        assert not history.has_link(connection, claimed)
        assert history.has_link(connection, history.head(connection))
        assert history.has_link(connection, Head(0, history.GENESIS))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        # The part before is taken as it was found; the whole walk still sees a change there.
        ("UPDATE history SET event = 'x' WHERE sequence = 2", ""),
        ("UPDATE history SET event = 'x' WHERE sequence = 4", "history 4"),
        ("UPDATE history SET event = 'x' WHERE sequence = 5", "history 5"),
        ("DELETE FROM history WHERE sequence = 4", "history 4"),
    ],
)
def test_a_walk_from_a_verified_link_finds_what_was_changed_since(store, change, named):
    """Also the very first link after it, and reads no other."""
    _grown(store)
    with store.reading() as connection:
        middle = Head(3, history.hashes_of(connection, [3])[3])
    _changed(store, change)
    with store.reading() as connection:
        _, problem = history.verify(connection, after=middle)
        _, whole = history.verify(connection)

    assert (named in problem, bool(problem)) == (True, bool(named))
    assert (named or "history 2") in whole


HEAD = Head(7, "ab" * 32)


def test_a_verified_head_is_read_as_it_was_kept(tmp_path):
    save_verified(tmp_path, Head(3, "cd" * 32))
    save_verified(tmp_path, HEAD)

    assert verified(tmp_path) == HEAD
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sequence": 7}', '{"sequence":"x","hash":"y"}'])
def test_a_file_that_cannot_be_read_means_a_whole_walk(tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)

    assert verified(tmp_path) == NOTHING


def test_a_folder_that_is_not_there_costs_only_work(tmp_path):
    """Where nothing can be kept, the next night walks the whole chain."""
    save_verified(tmp_path / "gone", HEAD)

    assert verified(tmp_path / "gone") == NOTHING


def test_a_link_that_somebody_planted_leads_it_nowhere(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in (FILE_NAME, f"{FILE_NAME}.{os.getpid()}"):
        (tmp_path / name).symlink_to(victim)

    save_verified(tmp_path, HEAD)

    assert (verified(tmp_path), victim.read_text()) == (HEAD, "mine")


@contextmanager
def files_end_at(size):
    """As on a disk with so little room: a write that would go beyond is done in part."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def newest_note(file):
    return next(reversed(file.current().notes), None)


def _same(head):
    return head


def test_the_newest_whole_note_is_read(tmp_path):
    """Half a line that a crash left is no note, nor the beginning of the next one."""
    side = HeadFile(tmp_path)
    newest = [newest_note(side)]
    for head in (Head(3, "hash-3"), Head(7, "hash-7")):
        side.note(partial(_same, head), of="run-1", at=AT)
        with side.path.open("a") as file:
            file.write('{"sequence": 9, "ha')
        newest.append(newest_note(side))

    assert newest == [
        None,
        *(NotedHead(Head(n, f"hash-{n}"), "run-1", AT.isoformat()) for n in (3, 7)),
    ]


@pytest.mark.parametrize("line", ["nothing", "[]", '{"sequence": "x", "hash": ""}', "7"])
def test_a_changed_note_is_no_reason_to_go_on(tmp_path, line):
    side = HeadFile(tmp_path)
    side.path.write_text(line + "\n")

    with pytest.raises(OutputError, match=r"history-head\.jsonl"):
        newest_note(side)


def test_a_folder_that_cannot_be_written_stops_the_sender(tmp_path):
    side = HeadFile(tmp_path / "gone")

    with pytest.raises(OutputError, match="nothing more is sent"):
        side.note(lambda: Head(3, "hash-3"), of="run-1", at=AT)


def test_a_note_that_the_disk_took_in_part_is_no_note(tmp_path):
    """A full disk that takes half a line stops the sender, and the note before still counts."""
    side = HeadFile(tmp_path)
    side.note(lambda: Head(3, "hash-3"), of="run-1", at=AT)
    room = side.path.stat().st_size + 10
    with files_end_at(room), pytest.raises(OutputError, match="nothing more is sent"):
        side.note(lambda: Head(7, "hash-7"), of="run-2", at=AT)

    noted = newest_note(side)

    assert noted.head == Head(3, "hash-3")


def test_the_name_of_a_new_file_is_on_the_disk_too(tmp_path, monkeypatch):
    """A file whose name is lost with the power would make the next night a first one."""
    flushed: list[Path] = []
    fsync = os.fsync

    def seen(descriptor):
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    side = HeadFile(tmp_path)
    for head in (Head(3, "hash"), Head(7, "hash")):
        side.note(partial(_same, head), of="run-1", at=AT)

    assert flushed == [side.path, tmp_path, side.path]


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_somebody_put_in_its_place_is_neither_read_nor_written(tmp_path, kind):
    """Whoever may write the reports folder leads no note into another file, and stops no night."""
    victim, side = tmp_path / "victim", HeadFile(tmp_path)
    victim.write_bytes(b"bytes without an end of line")
    side.path.symlink_to(victim) if kind == "link" else os.mkfifo(side.path)

    with pytest.raises(OutputError, match=r"cannot be read"):
        side.current()
    with pytest.raises(OutputError, match=r"cannot be written"):
        side.note(partial(_same, Head(3, "hash-3")), of="run-1", at=AT)

    assert victim.read_bytes() == b"bytes without an end of line"


ACCOUNT = ("100042", "100042001")
WITHDRAWN = Event("instruction", "i1", "withdrawn", {})


@pytest.fixture
def noted(store, tmp_path):
    file = HeadFile(tmp_path)
    store.outside = OutsideHeads({ACCOUNT: file})
    return file


def add(store, *events):
    with store.writing() as connection:
        return history.append(connection, events, at=AT)


@pytest.mark.parametrize(
    ("entity", "event"),
    [
        *(("instruction", each) for each in ("withdrawn", "needs_human", "resolved_not_applied")),
        ("switch", "stopped"),
        ("endorsement", "approval"),
        ("break", "answered"),
        ("case", "opened"),
        ("run", "reported"),
        ("something", "that nobody thought of yet"),
    ],
)
def test_what_restricts_is_noted_pending_and_then_for_good(store, noted, entity, event):
    """Whatever is not known to be harmless: the link stands outside once it is committed."""
    head = add(store, Event(entity, "x", event, {}))

    lines = noted.path.read_text().splitlines()
    assert ['"pending":true' in line for line in lines] == [True, False]
    assert [one.head for one in noted.current().notes] == [head]


@pytest.mark.parametrize(
    ("entity", "event"),
    [("instruction", "in_flight"), ("batch", "claimed"), ("batch", "closed"), ("run", "started")],
)
def test_what_the_sender_notes_itself_is_not_noted_twice(store, noted, entity, event):
    add(store, Event(entity, "x", event, {}))

    assert not noted.path.exists()


def test_a_transaction_that_did_not_happen_binds_nobody(store, noted):
    """A pending note whose link is not in the history: the commit never happened."""
    noted.note(lambda: history.Head(1, "ab" * 32), of="instruction withdrawn", at=AT, pending=True)

    assert problem_of(noted, accounts=[ACCOUNT], reading=store.reading) == ""
    assert noted.current().unresolved


def test_an_error_within_the_transaction_notes_nothing(store, noted):
    """Nor does what a connection of the pool did before count for its next transaction."""
    with suppress(RuntimeError), store.writing() as connection:
        history.append(connection, [WITHDRAWN], at=AT)
        raise RuntimeError
    with store.writing():
        pass

    with store.reading() as connection:
        assert history.head(connection).sequence == 0
    assert not noted.path.exists()


def test_a_restriction_holds_although_it_cannot_be_noted(store, tmp_path):
    """To stop is never refused for want of a file; the person hears what is missing."""
    (tmp_path / "history-head.jsonl").mkdir()
    store.outside = OutsideHeads({ACCOUNT: HeadFile(tmp_path)})
    with pytest.raises(OutputError, match="instruction withdrawn: that stands in the database"):
        add(store, WITHDRAWN)
    with store.reading() as connection:
        assert history.head(connection).sequence == 1


def test_every_account_hears_of_it(store, tmp_path):
    files = {("m", name): HeadFile(tmp_path / name) for name in ("a", "b", "new")}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    store.outside = OutsideHeads(files)
    head = add(store, WITHDRAWN)

    newest = [newest_note(file) for file in files.values()]
    assert [note and note.head for note in newest] == [head, head, None]


def test_a_database_that_sent_money_needs_its_notes(store, noted):
    """A claim without a single note is no first night; another account's claim is none of ours."""
    place = dict(zip(("merchant_id", "account_id"), ACCOUNT, strict=True))
    row = {**place, "batch_id": "b1", "run_id": "r1", "kind": "refund", "rows": 1}
    with store.writing() as connection:
        connection.execute(insert(batch).values(**row, state="closed", body=b"", claimed_at=AT))
        history.append(connection, [Event("batch", "b1", history.CLAIMED, {})], at=AT)
    add(store, WITHDRAWN)

    assert "sent a batch of account 100042/100042001 at 2026-11-21 02:00 UTC" in problem_of(
        noted, accounts=[ACCOUNT], reading=store.reading
    )
    assert problem_of(noted, accounts=[("100042", "2")], reading=store.reading) == ""
    assert newest_note(noted) is None


def test_each_note_since_the_acceptance_must_be_there(store, noted):
    """Not the newest alone: what another database wrote in between is found, too."""
    add(store, WITHDRAWN)
    noted.note(lambda: history.Head(1, "cd" * 32), of="run other", at=AT)
    own = add(store, Event("batch", "b", "claimed", {}))
    noted.note(lambda: own, of="run own", at=AT)
    before = problem_of(noted, accounts=[ACCOUNT], reading=store.reading)
    noted.note(lambda: own, of="restore accepted", at=AT)

    assert "noted history 1 of run other" in before
    assert problem_of(noted, accounts=[ACCOUNT], reading=store.reading) == ""
