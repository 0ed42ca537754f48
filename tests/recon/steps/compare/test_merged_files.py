"""Files with rows of all parts are merged by other processes, to the byte."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from recon.archive.step_folder import Sealed
from recon.model.errors import ArchiveBrokenError
from recon.model.nights import Mode
from recon.proof.night_parts import MERGED, Merged
from recon.steps.compare import merged_files
from recon.steps.compare.merged_files import ToMerge, merged_file
from recon.steps.ground.night_folder import sealed_night
from recon.store.nights import runs
from tests.recon.steps.compare.test_in_parts import filed, with_setting
from tests.recon.steps.conftest import Merchant
from tests.recon.steps.in_parts import compared_twice

pytestmark = pytest.mark.process


def merged_once_killed(asked: ToMerge, *, marks: str) -> Sealed:
    """Says who merged what; ends its process over the pending sets, written already, once."""
    path = Path(marks) / asked.name
    done = merged_file(asked)
    if asked.name == "pending" and not path.exists():
        path.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    path.write_text(str(os.getpid()))
    return done


def test_others_merge_the_files_and_one_that_dies_changes_nothing(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The head of the night merges none: each file is that of the whole night, byte for byte."""
    both = compared_twice(monkeypatch, orders_per_part=12)
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setattr(merged_files, "merged_file", partial(merged_once_killed, marks=str(marks)))
    monkeypatch.setattr(Merged, "file", None)
    with_setting(merchant, "compared_at_once = 2\n")
    filed(merchant)
    merchant.night(mode=Mode.DRY_RUN)

    assert len(both) == 1
    assert {path.name for path in marks.iterdir()} == {*MERGED}
    assert str(os.getpid()) not in {path.read_text() for path in marks.iterdir()}


def cut_after(asked: ToMerge, *, below: str) -> Sealed:
    """A file that loses a byte after it was merged."""
    done = merged_file(asked)
    (entry,) = done.manifest.files
    (path,) = Path(below).glob(f"**/{done.folder}/{entry.name}")
    path.write_bytes(path.read_bytes()[:-1])
    return done


def test_a_merged_file_that_was_changed_is_not_sealed(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is held against its hash while it is copied; the night ends and says which it was."""
    compared_twice(monkeypatch, orders_per_part=12)
    below = str(merchant.folder)
    monkeypatch.setattr(merged_files, "merged_file", partial(cut_after, below=below))
    with_setting(merchant, "compared_at_once = 2\n")
    filed(merchant)

    with pytest.raises(ArchiveBrokenError, match=r"in-parts/.*parquet has .* bytes, and was"):
        merchant.night(mode=Mode.DRY_RUN)
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.newest(connection, count=1)[0]
        assert "results" not in sealed_night(connection, run, environment=environment).steps
