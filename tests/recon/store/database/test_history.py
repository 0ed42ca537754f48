import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from recon.model.errors import StoreError
from recon.store.database import history
from recon.store.database.engine import Store
from recon.store.database.history import (
    FILE_NAME,
    GENESIS,
    NOTHING,
    Event,
    Head,
    keep_verified,
    verified,
)

AT = datetime(2026, 11, 21, 2, 0, 0, 123456, tzinfo=UTC)


def _grown(store: Store, *, events: int = 5) -> None:
    with store.writing() as connection:
        for number in range(events):
            history.append(
                connection, [Event("run", f"r{number}", "started", {"n": number})], at=AT
            )


def _changed(store: Store, change: str) -> None:
    with store.writing() as connection:
        if store.is_sqlite:
            connection.execute(text("DROP TRIGGER history_no_update"))
            connection.execute(text("DROP TRIGGER history_no_delete"))
        else:
            connection.execute(text("ALTER TABLE history DISABLE TRIGGER ALL"))
        connection.exec_driver_sql(change)


def test_an_untouched_chain_closes(store: Store) -> None:
    _grown(store)
    with store.reading() as connection:
        head, problem = history.verify(connection)

        assert (head, problem) == (history.head(connection), "")
    assert head.sequence == 5
    assert head.hash != GENESIS


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE history SET data = '{\"n\":9}' WHERE sequence = 3",
        "UPDATE history SET entity_id = 'other' WHERE sequence = 3",
        "UPDATE history SET previous_hash = hash WHERE sequence = 3",
        "DELETE FROM history WHERE sequence = 3",
    ],
)
def test_the_first_broken_link_is_named(store: Store, change: str) -> None:
    """Whatever is edited or cut out past the triggers, verify names link 3 or its gap."""
    _grown(store)
    _changed(store, change)
    with store.reading() as connection:
        _, problem = history.verify(connection)

    assert "history 3" in problem


@pytest.mark.parametrize(
    "change", ["UPDATE history SET event = 'x'", "DELETE FROM history WHERE sequence = 5"]
)
def test_the_database_itself_refuses_changes(store: Store, change: str) -> None:
    _grown(store)

    with pytest.raises(StoreError), store.writing() as connection:
        connection.execute(text(change))


def test_an_event_exists_only_with_its_transaction(store: Store) -> None:

    def fail_after_the_event() -> None:
        with store.writing() as connection:
            history.append(connection, [Event("run", "r", "started", {})], at=AT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_the_event()
    with store.reading() as connection:
        assert history.head(connection).sequence == 0


def test_writers_that_come_at_once_make_one_chain(store: Store) -> None:
    """Events of several writers stand one after the other, none is refused and none lost."""
    refused: list[str] = []

    def write(who: int) -> None:
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
def test_a_link_that_is_not_there_is_vouched_for_by_nothing(store: Store, claimed: Head) -> None:
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
def test_a_walk_from_a_verified_link_finds_what_was_changed_since(
    store: Store, change: str, named: str
) -> None:
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


def test_a_verified_head_is_read_as_it_was_kept(tmp_path: Path) -> None:
    keep_verified(tmp_path, Head(3, "cd" * 32))
    keep_verified(tmp_path, HEAD)

    assert verified(tmp_path) == HEAD
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sequence": 7}', '{"sequence":"x","hash":"y"}'])
def test_a_file_that_cannot_be_read_means_a_whole_walk(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)

    assert verified(tmp_path) == NOTHING


def test_a_folder_that_is_not_there_costs_only_work(tmp_path: Path) -> None:
    """Where nothing can be kept, the next night walks the whole chain."""
    keep_verified(tmp_path / "gone", HEAD)

    assert verified(tmp_path / "gone") == NOTHING


def test_a_link_that_somebody_planted_leads_it_nowhere(tmp_path: Path) -> None:
    """Under the name of the file, or of a draft that could be guessed."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in (FILE_NAME, f"{FILE_NAME}.{os.getpid()}"):
        (tmp_path / name).symlink_to(victim)

    keep_verified(tmp_path, HEAD)

    assert (verified(tmp_path), victim.read_text()) == (HEAD, "mine")
