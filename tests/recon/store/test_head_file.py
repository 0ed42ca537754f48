from datetime import UTC, datetime
from pathlib import Path

import pytest

from recon.errors import OutputError
from recon.store.head_file import HeadFile
from recon.store.history import Head

AT = datetime(2026, 11, 21, 2, tzinfo=UTC)


def test_the_newest_note_is_read(tmp_path: Path) -> None:
    """Notes are added at the end; the last one counts."""
    side = HeadFile(tmp_path)
    for number in (3, 7):
        side.note(Head(number, f"hash-{number}"), run_id="run-1", at=AT)

    noted = side.newest()

    assert noted is not None
    assert (noted.head, noted.run_id) == (Head(7, "hash-7"), "run-1")
    assert len(side.path.read_text().splitlines()) == 2


def test_without_a_file_there_is_no_note(tmp_path: Path) -> None:
    """A first night has nothing to compare with."""
    assert HeadFile(tmp_path).newest() is None


def test_a_note_that_a_crash_cut_off_does_not_count(tmp_path: Path) -> None:
    """Half a line is not a note; the whole one before it is."""
    side = HeadFile(tmp_path)
    side.note(Head(3, "hash-3"), run_id="run-1", at=AT)
    with side.path.open("a") as file:
        file.write('{"sequence": 9, "ha')

    noted = side.newest()

    assert noted is not None
    assert noted.head.sequence == 3


@pytest.mark.parametrize("line", ["nothing", "[]", '{"sequence": "x", "hash": ""}', "7"])
def test_a_changed_note_is_no_reason_to_go_on(tmp_path: Path, line: str) -> None:
    """A file that somebody edited ends in a sentence that names it."""
    side = HeadFile(tmp_path)
    side.path.write_text(line + "\n")

    with pytest.raises(OutputError, match=r"history-head\.jsonl"):
        side.newest()


def test_a_folder_that_cannot_be_written_stops_the_sender(tmp_path: Path) -> None:
    """Without its note a batch must not leave."""
    side = HeadFile(tmp_path / "gone")

    with pytest.raises(OutputError, match="nothing more is sent"):
        side.note(Head(3, "hash-3"), run_id="run-1", at=AT)
