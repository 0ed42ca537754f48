import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from recon.archive.storage import LocalStorage, reachable
from recon.model.errors import ArchiveError


def test_a_storage_that_fails_says_which_and_what_was_not_done(tmp_path: Path) -> None:
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


def test_a_file_has_its_name_when_it_is_whole_and_not_before(tmp_path: Path) -> None:
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


def test_nights_are_of_the_owner_and_the_group_only(tmp_path: Path) -> None:
    """Nobody else on the machine reads orders and amounts."""
    storage = LocalStorage(tmp_path / "archive")
    with storage.writing("a/b.parquet") as file:
        file.write(b"x")

    path = tmp_path / "archive" / "a" / "b.parquet"
    assert stat.S_IMODE(path.stat().st_mode) & 0o137 == 0
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o027 == 0


def test_folders_are_moved_whole_and_nobody_is_moved_upon(tmp_path: Path) -> None:
    """A folder that is set aside keeps every file; one that is there stays."""
    storage = LocalStorage(tmp_path)
    for name in ("night/inputs/a", "night/inputs/b"):
        with storage.writing(name) as file:
            file.write(name.encode())

    storage.move("night/inputs", to="night/inputs.aside-1")

    assert storage.folders("night") == ["night/inputs.aside-1"]
    assert storage.names("night") == ["night/inputs.aside-1/a", "night/inputs.aside-1/b"]
    assert storage.folders("other") == []
    with storage.writing("night/inputs/a") as file:
        file.write(b"new")
    with pytest.raises(OSError, match="not empty"):
        storage.move("night/inputs", to="night/inputs.aside-1")


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_somebody_put_in_a_files_place_is_not_read(tmp_path: Path, put: Any) -> None:
    """A pipe keeps no night waiting, and what never ends fills no memory: each is named."""
    (tmp_path / "night").mkdir()
    put(tmp_path / "night" / "orders.parquet")

    with pytest.raises(OSError, match=r"night/orders\.parquet is no regular file"):
        LocalStorage(tmp_path).read("night/orders.parquet")
