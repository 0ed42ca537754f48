import os
import stat
from contextlib import suppress
from io import SEEK_END
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from recon.archive.facts_files import (
    facts_at,
    whole_facts,
    write_facts,
)
from recon.archive.rows_file import read_rows
from recon.archive.schemas import FileSchema
from recon.archive.step_folder import find_sealed, opened_file, sealed_step, step_problems
from recon.archive.storage import (
    LocalStorage,
    RetryDeadline,
    reachable,
    s3_storage,
)
from recon.config.night_archive import ArchiveSettings
from recon.model.errors import ArchiveBrokenError, ArchiveError
from tests.recon.archive.planted import NIGHT, written
from tests.recon.files.s3_server import serving_s3


def test_a_storage_that_fails_says_which_and_what_was_not_done(tmp_path):
    (tmp_path / "archive").write_text("a file where the folder should be")
    storage = LocalStorage(tmp_path / "archive")

    with (
        pytest.raises(
            ArchiveError, match=r"^nothing was sent: .*archive says: (Not a|File exists)"
        ),
        reachable(storage, doing="nothing was sent"),
        storage.writing("nights/a.parquet") as file,
    ):
        file.write(b"x")


def test_a_file_has_its_name_when_it_is_whole_and_not_before(tmp_path):
    """Whoever lists the archive never sees half a file under its name."""
    storage = LocalStorage(tmp_path / "archive")
    with storage.writing("a/b/c.parquet") as file:
        file.write(b"half")
        assert "a/b/c.parquet" not in storage.names("a")
    assert storage.read("a/b/c.parquet") == b"half"

    with suppress(KeyError), storage.writing("a/b/d.parquet") as file:
        file.write(b"half")
        raise KeyError
    assert storage.names("") == ["a/b/c.parquet"]


def test_nights_are_of_the_owner_and_the_group_only(tmp_path):
    """Nobody else on the machine reads orders and amounts."""
    storage = LocalStorage(tmp_path / "archive")
    with storage.writing("a/b.parquet") as file:
        file.write(b"x")

    path = tmp_path / "archive" / "a" / "b.parquet"
    assert stat.S_IMODE(path.stat().st_mode) & 0o137 == 0
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o027 == 0


def test_folders_are_moved_whole_and_nobody_is_moved_upon(tmp_path):
    """A folder that is set aside keeps every file; one that is there stays."""
    storage = LocalStorage(tmp_path)
    for name in ("night/inputs/a", "night/inputs/b"):
        with storage.writing(name) as file:
            file.write(name.encode())

    storage.move("night/inputs", to="night/inputs.superseded-1")

    assert storage.folders("night") == ["night/inputs.superseded-1"]
    assert storage.names("night") == ["night/inputs.superseded-1/a", "night/inputs.superseded-1/b"]
    assert storage.folders("other") == []
    with storage.writing("night/inputs/a") as file:
        file.write(b"new")
    with pytest.raises(OSError, match="not empty"):
        storage.move("night/inputs", to="night/inputs.superseded-1")


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_somebody_put_in_a_files_place_is_not_read(tmp_path, put):
    """A pipe keeps no night waiting, and what never ends fills no memory: each is named."""
    (tmp_path / "night").mkdir()
    put(tmp_path / "night" / "orders.parquet")

    with pytest.raises(OSError, match=r"night/orders\.parquet is no regular file"):
        LocalStorage(tmp_path).read("night/orders.parquet")


KEYS = {"S3_ID": "testing", "S3_SECRET": "testing"}
FOLDER = f"{NIGHT}/inputs"


BUCKETS = count(1)
"""The storage's state outlives a server: each test has a bucket of its own."""


@pytest.fixture
def bucket():
    return f"books{next(BUCKETS)}"


@pytest.fixture
def server(bucket):
    with serving_s3(bucket) as server:
        yield server


def impatient():
    """Without pauses, and without an end but of a few tries."""
    return RetryDeadline(pause=lambda _: None, elapsed=lambda: 0.0, seconds=1)


def storage_of(server, bucket):
    settings = ArchiveSettings(
        path=f"s3://{bucket}/archive",
        endpoint=server.address,
        region="us-east-1",
        access_key_env="S3_ID",
        secret_key_env="S3_SECRET",
    )
    return s3_storage(settings, keys=KEYS, deadline=impatient())


def test_a_night_in_a_storage_without_a_rename_is_written_checked_and_set_aside(server, bucket):
    """Objects, then the manifest: the same step as in a folder, by the same hash of its content."""
    storage = storage_of(server, bucket)
    first = written(storage, 4200, 100)

    assert sealed_step(storage, folder=FOLDER) == first
    assert step_problems(storage, first) == []
    assert written(storage, 4200, 100) == first
    with storage.local(NIGHT) as folder:
        assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == [
            "inputs/manifest.json",
            "inputs/orders.parquet",
            "inputs/rules.toml",
            "inputs/universe.parquet",
        ]

    second = written(storage, 4300, 100)
    assert storage.folders(NIGHT) == [FOLDER, f"{FOLDER}.superseded-1"]
    for sealed in (first, second):
        kept = find_sealed(storage, night=NIGHT, step="inputs", sha256=sealed.sha256)
        assert kept is not None
        assert step_problems(storage, kept) == []


def test_an_object_that_was_not_written_whole_is_not_there(server, bucket):
    storage = storage_of(server, bucket)
    with suppress(KeyError), storage.writing("nights/a.parquet") as file:
        file.write(b"half")
        raise KeyError

    assert storage.names("nights") == []


def test_a_storage_that_is_gone_says_so(server, bucket):
    storage = storage_of(server, bucket)
    server.process.stop()

    with (
        pytest.raises(ArchiveError, match=r"^nothing was sent: .* s3://books[0-9]+/archive says: "),
        reachable(storage, doing="nothing was sent"),
    ):
        written(storage, 1)


def test_parts_of_an_object_are_read_from_any_place(server, bucket):
    """A step's rows between two numbers; an object that was written anew is looked at anew."""
    storage = storage_of(server, bucket)
    step = written(storage, *range(4200, 4300))
    with opened_file(storage, step, name="orders.parquet") as file:
        file.seek(-4, SEEK_END)
        assert file.read() == b"PAR1"
    with storage.reading(f"{FOLDER}/orders.parquet") as (_, stamp):
        pass
    with storage.reading(f"{FOLDER}/orders.parquet") as (_, again):
        assert again == stamp

    with storage.writing(f"{FOLDER}/orders.parquet") as changed:
        changed.write(b"PAR1")
    with (
        pytest.raises(ArchiveBrokenError, match=r"orders.parquet has 4 bytes"),
        opened_file(storage, step, name="orders.parquet"),
    ):
        pass
    storage.remove(f"{FOLDER}/orders.parquet")
    with (
        pytest.raises(ArchiveBrokenError, match=r"orders.parquet is gone"),
        opened_file(storage, step, name="orders.parquet"),
    ):
        pass


FACTS_FOLDER = "facts/orders/2026/11"
NUMBERS = FileSchema("numbers", "facts", pa.schema([pa.field("key", pa.int64())]), ("key",))
PARTS = [pa.table([pa.array(numbers)], schema=NUMBERS.columns) for numbers in ([3, 1], [-(2**63)])]


def kept(storage):
    return write_facts(storage, PARTS, folder=FACTS_FOLDER, schema=NUMBERS, doing="not kept")


def test_rows_come_back_from_s3(server, bucket):
    storage = storage_of(server, bucket)

    file = kept(storage)
    content = whole_facts(storage, file, doing="not read")
    table = read_rows(content, name=file.path, schemas={NUMBERS.name: NUMBERS})
    assert table["key"].to_pylist() == [3, 1, -(2**63)]
    with facts_at([(storage, file)], doing="not read") as (path,):
        assert path.read_bytes() == content


def _cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def _swapped(path):
    other = write_facts(
        LocalStorage(path.parents[4]), PARTS[:1], folder=FACTS_FOLDER, schema=NUMBERS, doing=""
    )
    path.write_bytes((path.parents[4] / other.path).read_bytes())


@pytest.mark.parametrize("change", [Path.unlink, _cut, _swapped])
def test_a_file_that_is_another_is_refused_by_name(tmp_path, change):
    """Gone, cut, or another whole one in its place: the sentence says which, and what to do."""
    storage = LocalStorage(tmp_path)
    file = kept(storage)
    change(tmp_path / file.path)

    with pytest.raises(
        ArchiveBrokenError, match=f"not read: {file.path} .* reads it again from the file"
    ):
        whole_facts(storage, file, doing="not read")
    with (
        pytest.raises(ArchiveBrokenError, match=f"not read: {file.path}"),
        facts_at([(storage, file)], doing="not read"),
    ):
        pass


def test_a_file_that_was_looked_at_once_is_looked_at_again_where_it_was_written_since(tmp_path):
    storage = LocalStorage(tmp_path)
    file = kept(storage)
    with facts_at([(storage, file)], doing="not read") as paths:
        assert paths == [tmp_path / file.path]
    _swapped(tmp_path / file.path)
    with (
        pytest.raises(ArchiveBrokenError, match=f"not read: {file.path}"),
        facts_at([(storage, file)], doing="not read"),
    ):
        pass
