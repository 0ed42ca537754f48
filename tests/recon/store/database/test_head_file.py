import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from recon.model.errors import OutputError
from recon.store.database.history import Head
from recon.store.database.outside_heads import HeadFile, NotedHead

AT = datetime(2026, 11, 21, 2, tzinfo=UTC)


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """As on a disk with so little room: a write that would go beyond is done in part."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def newest_note(file: HeadFile) -> NotedHead | None:
    """The newest note that binds; None when there never was one."""
    return next(reversed(file.standing().notes), None)


def _same(head: Head) -> Head:
    return head


def test_the_newest_note_is_read(tmp_path: Path) -> None:
    """Notes are added at the end; the last one counts."""
    side = HeadFile(tmp_path)
    for head in (Head(3, "hash-3"), Head(7, "hash-7")):
        side.note(partial(_same, head), of="run-1", at=AT)

    noted = newest_note(side)

    assert noted is not None
    assert (noted.head, noted.of) == (Head(7, "hash-7"), "run-1")
    assert len(side.path.read_text().splitlines()) == 2


def test_without_a_file_there_is_no_note(tmp_path: Path) -> None:
    """A first night has nothing to compare with."""
    assert newest_note(HeadFile(tmp_path)) is None


def test_a_note_that_a_crash_cut_off_does_not_count(tmp_path: Path) -> None:
    """Half a line is not a note; the whole one before it is."""
    side = HeadFile(tmp_path)
    side.note(lambda: Head(3, "hash-3"), of="run-1", at=AT)
    with side.path.open("a") as file:
        file.write('{"sequence": 9, "ha')

    noted = newest_note(side)

    assert noted is not None
    assert noted.head.sequence == 3


@pytest.mark.parametrize("line", ["nothing", "[]", '{"sequence": "x", "hash": ""}', "7"])
def test_a_changed_note_is_no_reason_to_go_on(tmp_path: Path, line: str) -> None:
    """A file that somebody edited ends in a sentence that names it."""
    side = HeadFile(tmp_path)
    side.path.write_text(line + "\n")

    with pytest.raises(OutputError, match=r"history-head\.jsonl"):
        newest_note(side)


def test_a_folder_that_cannot_be_written_stops_the_sender(tmp_path: Path) -> None:
    """Without its note a batch must not leave."""
    side = HeadFile(tmp_path / "gone")

    with pytest.raises(OutputError, match="nothing more is sent"):
        side.note(lambda: Head(3, "hash-3"), of="run-1", at=AT)


def test_a_note_after_one_that_was_cut_off_is_whole(tmp_path: Path) -> None:
    """What a crash left is not the beginning of the next line, or no night would go on."""
    side = HeadFile(tmp_path)
    side.note(lambda: Head(3, "hash-3"), of="run-1", at=AT)
    with side.path.open("a") as file:
        file.write('{"sequence": 9, "ha')
    side.note(lambda: Head(7, "hash-7"), of="run-2", at=AT)

    noted = newest_note(side)

    assert noted is not None
    assert noted.head == Head(7, "hash-7")


def test_a_note_that_the_disk_took_in_part_is_no_note(tmp_path: Path) -> None:
    """A full disk that takes half a line stops the sender, and the note before still counts."""
    side = HeadFile(tmp_path)
    side.note(lambda: Head(3, "hash-3"), of="run-1", at=AT)
    room = side.path.stat().st_size + 10
    with files_end_at(room), pytest.raises(OutputError, match="nothing more is sent"):
        side.note(lambda: Head(7, "hash-7"), of="run-2", at=AT)

    noted = newest_note(side)

    assert noted is not None
    assert noted.head == Head(3, "hash-3")


def test_the_name_of_a_new_file_is_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose name is lost with the power would make the next night a first one."""
    flushed: list[Path] = []
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    side = HeadFile(tmp_path)
    for head in (Head(3, "hash"), Head(7, "hash")):
        side.note(partial(_same, head), of="run-1", at=AT)

    assert flushed == [side.path, tmp_path, side.path]


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_somebody_put_in_its_place_is_neither_read_nor_written(
    tmp_path: Path, kind: str
) -> None:
    """Whoever may write the reports folder leads no note into another file, and stops no night."""
    victim, side = tmp_path / "victim", HeadFile(tmp_path)
    victim.write_bytes(b"bytes without an end of line")
    side.path.symlink_to(victim) if kind == "link" else os.mkfifo(side.path)

    with pytest.raises(OutputError, match=r"cannot be read"):
        side.standing()
    with pytest.raises(OutputError, match=r"cannot be written"):
        side.note(partial(_same, Head(3, "hash-3")), of="run-1", at=AT)

    assert victim.read_bytes() == b"bytes without an end of line"
