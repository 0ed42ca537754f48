"""The folder of parts: written by whoever does one, found by name and hash, removed for good."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recon.archive.rows_file import read_rows
from recon.archive.step_folder import whole_file, write_step
from recon.archive.storage import LocalStorage, Storage, s3_storage
from recon.config.night_archive import ArchiveSettings
from recon.model.errors import ArchiveBrokenError, ArchiveError
from recon.steps.compare import part_files
from recon.steps.compare.part_files import write_files
from recon.steps.ground.night_folder import COMPARED, IN_PARTS, SealedNight, is_attempt, rows_of
from tests.recon.archive.planted import NIGHT, about, orders, universe
from tests.recon.archive.test_storage import impatient
from tests.recon.files.s3_server import serving_s3

FOLDER = f"{NIGHT}/{IN_PARTS}"


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """An archive, here and elsewhere."""
    if request.param == "local":
        yield LocalStorage(tmp_path)
        return
    with serving_s3("parts") as server:
        settings = ArchiveSettings(
            path="s3://parts/archive",
            endpoint=server.address,
            region="us-east-1",
            access_key_env="ID",
            secret_key_env="SECRET",
        )
        keys = {"ID": "testing", "SECRET": "testing"}
        yield s3_storage(settings, keys=keys, patience=impatient())
        # The storage's state outlives a server.
        s3_storage(settings, keys=keys, patience=impatient()).clear("")


def night_in(storage: Storage) -> SealedNight:
    """A night that sealed what it compares."""
    compared = write_step(storage, night=NIGHT, about=about(COMPARED), parts=[])
    return SealedNight("20261120-1a2b3c4d", storage, {COMPARED: compared})


def tables() -> Iterator[tuple[str, Any]]:
    """What a part has to write."""
    yield "orders", orders(4200, 100)
    yield "universe", universe("W0", "W1")


def test_a_part_is_found_again_as_it_was_written_and_nothing_of_it_stays(storage: Storage) -> None:
    """By its name and hashes; done again it is the same, and removed it is gone with its folder."""
    night = night_in(storage)

    written = write_files(night, name="00003", rows=rows_of(tables()))

    assert written.folder.startswith(f"{FOLDER}/00003-")
    content = whole_file(storage, written, name="orders.parquet")
    assert read_rows(content, name="orders.parquet")["amount"].to_pylist() == [4200, 100]
    assert write_files(night, name="00003", rows=rows_of(tables())) == written
    assert {*storage.folders(NIGHT)} == {f"{NIGHT}/{COMPARED}", FOLDER}

    storage.clear(FOLDER)
    storage.clear(FOLDER)

    assert storage.folders(NIGHT) == [f"{NIGHT}/{COMPARED}"]
    with pytest.raises(ArchiveBrokenError, match=r"orders\.parquet is gone from the archive"):
        whole_file(storage, written, name="orders.parquet")


def test_two_processes_over_one_part_disturb_nobody(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was taken for dead and is not: each writes under a name of its own, the same content."""
    night = night_in(storage)
    first = write_files(night, name="00001", rows=rows_of(tables()))
    monkeypatch.setattr(part_files.platform, "node", lambda: "another machine")
    second = write_files(night, name="00001", rows=rows_of(tables()))

    assert first.folder != second.folder
    assert first.manifest.files == second.manifest.files
    whole_file(storage, first, name="universe.parquet")


def test_what_a_kill_left_of_parts_is_known_for_an_attempt() -> None:
    """Nobody takes it for a file that somebody put into a night."""
    assert is_attempt(f"{IN_PARTS}/00001-0123456789ab/orders.parquet")


def test_an_archive_that_cannot_be_written_ends_the_step_with_a_sentence(tmp_path: Path) -> None:
    """It says what is kept and what to do."""
    night = night_in(LocalStorage(tmp_path))
    (tmp_path / FOLDER).write_text("a file where the folder should be")

    with pytest.raises(ArchiveError, match=r"a part of the comparison could not .* again: .* says"):
        write_files(night, name="00001", rows=rows_of(tables()))
