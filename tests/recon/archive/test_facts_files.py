"""Files of facts are what was written, under the name of their own hash, here and on S3."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from recon.archive.facts_files import (
    FactsFile,
    facts_at,
    read_facts,
    rows_in,
    whole_facts,
    write_facts,
)
from recon.archive.schemas import ORDER_FACTS, FileSchema
from recon.archive.storage import LocalStorage, Storage
from recon.model.errors import ArchiveBrokenError, ArchiveError
from tests.recon.archive.test_remote_storage import bucket, server, storage_of

__all__ = ["bucket", "server"]

FOLDER = "facts/orders/2026/11"
NUMBERS = FileSchema("numbers", "facts", pa.schema([pa.field("key", pa.int64())]), ("key",))
PARTS = [pa.table([pa.array(numbers)], schema=NUMBERS.columns) for numbers in ([3, 1], [-(2**63)])]


def written(storage: Storage) -> FactsFile:
    return write_facts(storage, PARTS, folder=FOLDER, schema=NUMBERS, doing="not kept")


def read(storage: Storage, file: FactsFile) -> list[int]:
    table = read_facts(storage, file, schema=NUMBERS, doing="not read")
    numbers: list[int] = table["key"].to_pylist()
    return numbers


def test_rows_come_back_in_their_order(tmp_path: Path) -> None:
    """Part after part, never sorted; the same rows again are the same file."""
    storage = LocalStorage(tmp_path)
    file = written(storage)

    assert read(storage, file) == [3, 1, -(2**63)]
    assert rows_in(whole_facts(storage, file, doing=""), path=file.path) == 3
    assert written(storage) == file
    assert storage.names("facts") == [file.path]


def test_rows_come_back_from_s3(server: ThreadedMotoServer, bucket: str) -> None:
    storage = storage_of(server, bucket)

    file = written(storage)
    assert read(storage, file) == [3, 1, -(2**63)]
    with facts_at([(storage, file)], doing="not read") as (path,):
        assert path.read_bytes() == whole_facts(storage, file, doing="")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _swapped(path: Path) -> None:
    other = write_facts(
        LocalStorage(path.parents[4]), PARTS[:1], folder=FOLDER, schema=NUMBERS, doing=""
    )
    path.write_bytes((path.parents[4] / other.path).read_bytes())


@pytest.mark.parametrize("change", [Path.unlink, _cut, _swapped])
def test_a_file_that_is_another_is_refused_by_name(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Gone, cut, or another whole one in its place: the sentence says which, and what to do."""
    storage = LocalStorage(tmp_path)
    file = written(storage)
    change(tmp_path / file.path)

    with pytest.raises(
        ArchiveBrokenError, match=f"not read: {file.path} .* reads it again from the file"
    ):
        read(storage, file)
    with (
        pytest.raises(ArchiveBrokenError, match=f"not read: {file.path}"),
        facts_at([(storage, file)], doing="not read"),
    ):
        pass


def test_a_file_that_was_looked_at_once_is_looked_at_again_where_it_was_written_since(
    tmp_path: Path,
) -> None:
    storage = LocalStorage(tmp_path)
    file = written(storage)
    with facts_at([(storage, file)], doing="not read") as paths:
        assert paths == [tmp_path / file.path]
    _swapped(tmp_path / file.path)
    with (
        pytest.raises(ArchiveBrokenError, match=f"not read: {file.path}"),
        facts_at([(storage, file)], doing="not read"),
    ):
        pass


def test_a_schema_that_is_not_asked_for_is_refused(tmp_path: Path) -> None:
    """A whole file of other rows is no file of these, whatever its hash says."""
    storage = LocalStorage(tmp_path)
    file = written(storage)

    with pytest.raises(ArchiveBrokenError, match="numbers/1"):
        read_facts(storage, file, schema=ORDER_FACTS, doing="")


def test_an_archive_that_takes_nothing_says_what_was_not_done(tmp_path: Path) -> None:
    """What is no folder takes no file; nothing is left of it."""
    (tmp_path / "archive").write_text("no folder")

    with pytest.raises(ArchiveError, match="not kept: the archive of nights"):
        written(LocalStorage(tmp_path / "archive"))
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]
