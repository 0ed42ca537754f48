import os
import sys
from datetime import UTC, datetime, timedelta

import pytest

from recon.config.file_layouts import FileLayout
from recon.files.inbox.arrived_files import inbox, unsettled
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.steps.files.arrivals import left


def test_order_files_are_listed_by_name_and_the_rest_is_named(tmp_path):
    for name in ("b.csv", "a.xlsx", "C.PARQUET", ".hidden.csv", "~$a.xlsx", "d.csv.part", "e.pdf"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "b.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    found = inbox(tmp_path)
    assert [path.name for path in found.files] == ["C.PARQUET", "a.xlsx", "b.csv"]
    assert dict(found.skipped) == {
        ".hidden.csv": "hidden or temporary",
        "~$a.xlsx": "hidden or temporary",
        "d.csv.part": "hidden or temporary",
        "e.pdf": "does not end in .csv, .xlsx, .parquet, .jsonl, .xml",
        "folder.csv": "not a regular file",
        "link.csv": "not a regular file",
        "pipe.csv": "not a regular file",
    }


def test_what_no_night_reads_is_named_in_the_nights_sentence(tmp_path):
    """A packed file, a link or a folder may be a day's orders: somebody must hear of it."""
    for name in (".hidden.csv", "a.csv", "b.csv.gz"):
        (tmp_path / name).write_text("x")
    (tmp_path / "c.csv").symlink_to(tmp_path / "a.csv")
    assert left(inbox(tmp_path)) == (
        " Nothing was read of: b.csv.gz (does not end in .csv, .xlsx, .parquet, .jsonl, .xml); "
        "c.csv (not a regular file)."
    )
    for number in range(10):
        (tmp_path / f"d{number}.csv").mkdir()
    assert left(inbox(tmp_path)).endswith("; d7.csv (not a regular file); and 2 more.")


def test_a_file_waits_for_its_done_file(tmp_path):
    layouts = (FileLayout(files="a*", done_file=".done", control_file=".control"),)
    for name in ("a.csv", "a.csv.control", "b.csv"):
        (tmp_path / name).write_text("x")
    found = inbox(tmp_path, layouts=layouts)
    assert [path.name for path in found.files] == ["b.csv"]
    assert left(found) == " Left for later: a.csv is not complete yet: waits for a.csv.done."
    (tmp_path / "a.csv.done").write_text("")
    complete = inbox(tmp_path, layouts=layouts)
    assert [path.name for path in complete.files] == ["a.csv", "b.csv"]
    beside = "stands beside an order file"
    assert dict(complete.skipped) == {"a.csv.control": beside, "a.csv.done": beside}
    assert left(complete) == ""


def test_an_inbox_that_does_not_exist_is_the_configurations_mistake(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in ("none", "file"):
        with pytest.raises(SourceMissingError, match="create it or correct its path"):
            inbox(tmp_path / place)


def test_the_number_of_files_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["recon.files.inbox.arrived_files"], "FILES_MAX", 2)
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("x")
    with pytest.raises(SourceUnreadableError, match="holds 3 files; at most 2"):
        inbox(tmp_path)


SETTLE = timedelta(seconds=5)
WRITTEN = datetime(2026, 11, 21, 1, 0, tzinfo=UTC)


def written(folder, name="a.csv"):
    """A file whose last change was at WRITTEN."""
    path = folder / name
    path.write_text("x")
    os.utime(path, (WRITTEN.timestamp(),) * 2)
    return path


def test_a_file_that_was_left_alone_long_enough_is_not_waited_for(tmp_path):
    pauses: list[timedelta] = []
    for age, waits in ((5, 0), (4, 1)):
        pauses.clear()
        path = written(tmp_path)
        now = WRITTEN + timedelta(seconds=age)
        assert (
            unsettled([path], settle=SETTLE, clock=lambda now=now: now, pause=pauses.append) == ()
        )
        assert pauses == [SETTLE] * waits


def test_a_file_from_the_future_is_looked_at_twice(tmp_path):
    path, pauses = written(tmp_path), []
    before = WRITTEN - timedelta(days=1)
    assert unsettled([path], settle=SETTLE, clock=lambda: before, pause=pauses.append) == ()
    assert pauses == [SETTLE]


def test_a_file_that_is_gone_and_no_settle_time_are_not_waited_for(tmp_path):
    """Reading says of the one that it is gone; who hands files over by renaming need not wait."""
    for path, settle in ((tmp_path / "gone.csv", SETTLE), (written(tmp_path), timedelta())):
        assert unsettled([path], settle=settle, clock=lambda: WRITTEN, pause=pytest.fail) == ()
