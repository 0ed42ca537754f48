"""Keys of many order files in few files: the same answers, whatever was merged."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from recon.archive.facts_files import FactsFile
from recon.matching.frames.sources import ORDER_COLUMNS, LoadCounts, frame_of
from recon.model.errors import ArchiveBrokenError
from recon.model.words import SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import facts_keys
from recon.store.nights.facts_keys import FULL, MERGED_FROM, KeyFile
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.runs import Run
from tests.recon.store.kept_files import keep

INBOX = ("100042", "100042001")
AT = datetime(2026, 11, 21, 2, tzinfo=UTC)


def keep_file(
    store: Store, run: Run, number: int, order_nos: list[str], *, storages: StorageOf
) -> LoadCounts:
    """An order file with these orders, whose content is the same each time."""
    place = {"merchant_id": INBOX[0], "account_id": INBOX[1], "line": 2, "currency": "EUR"}
    cells = [
        place | {"ordered_at": AT.isoformat(), "amount": 7, "status": "paid", "order_no": each}
        for each in order_nos
    ]
    name, count = f"orders-{number}.csv", len(cells)
    source = SourceFile(SourceKind.ORDERS, name, f"{number:064x}", 1, count, count, 0, 0)
    frame = frame_of(cells, columns=ORDER_COLUMNS)
    return keep(store, run, frame, source=source, storages=storages)


def merge_all(store: Store, *, storages: StorageOf, at_least: int = MERGED_FROM) -> list[int]:
    """Merge until nothing is left to merge; how many keys each file then has."""
    merged = []
    while True:
        with store.reading() as connection:
            each = facts_keys.merge(connection, INBOX, storages=storages, at_least=at_least)
        if each is None:
            return merged
        merged.append(each.row_count)
        with store.writing() as connection:
            facts_keys.save(connection, each, at=AT)


def read_of(store: Store) -> list[KeyFile]:
    """The files of keys that are read."""
    with store.reading() as connection:
        return facts_keys.key_files(connection, INBOX)


def test_few_files_are_opened_however_many_came(
    store: Store, run: Run, storages: StorageOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merged from four: of 4 times 4 files one is left, of one more two; every key is found."""
    monkeypatch.setattr(facts_keys, "MERGED_FROM", 4)
    for number in range(17):
        keep_file(store, run, number, [f"O-{number}"], storages=storages)
        merge_all(store, storages=storages, at_least=4)
        assert len(read_of(store)) < 2 * 4
    assert [each.file_count for each in read_of(store)] == [16, 1]

    again = keep_file(store, run, 17, ["O-0", "O-15", "O-16", "new"], storages=storages)
    assert (again.new, again.repeat) == (1, 3)


def test_a_file_of_many_keys_is_merged_no_more() -> None:
    """Opening it costs less than writing it once more."""
    for row_count, level in ((FULL, 1), (FULL + 1, None)):
        file = FactsFile("facts", "0" * 64, 1)
        assert KeyFile(INBOX, 1, 16, file, row_count, 16, is_merged=True).level == level


@pytest.fixture
def merged(store: Store, run: Run, storages: StorageOf) -> Store:
    """A database whose only files of keys are merged."""
    for number in range(MERGED_FROM):
        keep_file(store, run, number, [f"O-{number}"], storages=storages)
    assert merge_all(store, storages=storages) == [MERGED_FROM]
    return store


def test_a_file_of_merged_keys_that_is_another_stops_who_reads_it(
    merged: Store, run: Run, storages: StorageOf, tmp_path: Path
) -> None:
    """Nothing is taken for new by a file that was cut; verification names it too."""
    (each,) = read_of(merged)
    file = tmp_path / "archive" / each.file.path
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ArchiveBrokenError, match=each.file.sha256):
        keep_file(merged, run, 99, ["O-1"], storages=storages)
    with merged.reading() as connection:
        (problem,) = facts_keys.key_problems(connection, storages=storages)
    assert each.file.sha256 in problem


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE merged_keys SET sha256 = 'f'", "not those that the history bound"),
        ("UPDATE merged_keys SET first_file = 2", "not those that the history bound"),
        ("UPDATE merged_keys SET file_count = 1", "not those that the history bound"),
        ("DELETE FROM merged_keys", "were taken"),
    ],
)
def test_a_row_that_was_changed_past_the_journal_is_found(
    merged: Store, statement: str, words: str
) -> None:
    """A name for other keys, or for fewer files, would take orders that stand for new."""
    with merged.reading() as connection:
        assert [*facts_keys.changed_facts(connection)] == []
    with merged.writing() as connection:
        connection.execute(text(statement))
    with merged.reading() as connection:
        problems = [*facts_keys.changed_facts(connection)]
    assert any(words in problem for problem in problems)
