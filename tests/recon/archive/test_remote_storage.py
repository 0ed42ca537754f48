from collections.abc import Iterator
from contextlib import suppress
from io import SEEK_END
from itertools import count

import pytest

from recon.archive.step_folder import find_sealed, opened_file, sealed_step, step_problems
from recon.archive.storage import Patience, RemoteStorage, reachable, s3_storage
from recon.config.night_archive import ArchiveSettings
from recon.model.errors import ArchiveBrokenError, ArchiveError
from tests.recon.archive.planted import NIGHT, written
from tests.recon.files.s3_server import S3Server, serving_s3

KEYS = {"S3_ID": "testing", "S3_SECRET": "testing"}
FOLDER = f"{NIGHT}/inputs"


BUCKETS = count(1)
"""The storage's state outlives a server: each test has a bucket of its own."""


@pytest.fixture
def bucket() -> str:
    return f"books{next(BUCKETS)}"


@pytest.fixture
def server(bucket: str) -> Iterator[S3Server]:
    with serving_s3(bucket) as server:
        yield server


def impatient() -> Patience:
    """Without pauses, and without an end but of a few tries."""
    return Patience(pause=lambda _: None, elapsed=lambda: 0.0, seconds=1)


def storage_of(server: S3Server, bucket: str) -> RemoteStorage:
    settings = ArchiveSettings(
        path=f"s3://{bucket}/archive",
        endpoint=server.address,
        region="us-east-1",
        access_key_env="S3_ID",
        secret_key_env="S3_SECRET",
    )
    return s3_storage(settings, keys=KEYS, patience=impatient())


def test_a_night_in_a_storage_without_a_rename_is_written_checked_and_set_aside(
    server: S3Server, bucket: str
) -> None:
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
    assert storage.folders(NIGHT) == [FOLDER, f"{FOLDER}.aside-1"]
    for sealed in (first, second):
        kept = find_sealed(storage, night=NIGHT, step="inputs", sha256=sealed.sha256)
        assert kept is not None
        assert step_problems(storage, kept) == []


def test_an_object_that_was_not_written_whole_is_not_there(server: S3Server, bucket: str) -> None:
    """What broke off half-way has no name."""
    storage = storage_of(server, bucket)
    with suppress(KeyError), storage.writing("nights/a.parquet") as file:
        file.write(b"half")
        raise KeyError

    assert storage.names("nights") == []


def test_a_storage_that_is_gone_says_so(server: S3Server, bucket: str) -> None:
    """The sentence names the address and what was not done."""
    storage = storage_of(server, bucket)
    server.process.stop()

    with (
        pytest.raises(ArchiveError, match=r"^nothing was sent: .* s3://books[0-9]+/archive says: "),
        reachable(storage, doing="nothing was sent"),
    ):
        written(storage, 1)


def test_parts_of_an_object_are_read_from_any_place(server: S3Server, bucket: str) -> None:
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
