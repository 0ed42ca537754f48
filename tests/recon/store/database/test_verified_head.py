"""How far the chain was walked before: it may save work and hide nothing that came later."""

import os
from pathlib import Path

import pytest

from recon.store.database.history import FILE_NAME, NOTHING, Head, keep_verified, verified

HEAD = Head(7, "ab" * 32)


def test_a_verified_head_is_read_as_it_was_kept(tmp_path: Path) -> None:
    """The newest one counts, and nothing else is left in the folder."""
    keep_verified(tmp_path, Head(3, "cd" * 32))
    keep_verified(tmp_path, HEAD)

    assert verified(tmp_path) == HEAD
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sequence": 7}', '{"sequence":"x","hash":"y"}'])
def test_a_file_that_cannot_be_read_means_a_whole_walk(tmp_path: Path, text: str) -> None:
    """A damaged mark is as good as none."""
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
