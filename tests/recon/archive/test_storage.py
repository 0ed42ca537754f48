from pathlib import Path

import pytest

from recon.archive.storage import LocalStorage, reachable
from recon.model.errors import ArchiveError


def test_a_storage_that_fails_says_which_and_what_was_not_done(tmp_path: Path) -> None:
    """The sentence names the archive, its own words and what became of the money."""
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
