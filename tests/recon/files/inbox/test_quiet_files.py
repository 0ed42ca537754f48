import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recon.files.inbox.arrived_files import LOOKS_MAX, unsettled

SETTLE = timedelta(seconds=5)
WRITTEN = datetime(2026, 11, 21, 1, 0, tzinfo=UTC)


def written(folder: Path, name: str = "a.csv") -> Path:
    """A file whose last change was at WRITTEN."""
    path = folder / name
    path.write_text("x")
    os.utime(path, (WRITTEN.timestamp(),) * 2)
    return path


def grow(path: Path) -> None:
    """Somebody writes to it."""
    with path.open("a") as out:
        out.write("x")


def test_a_file_that_was_left_alone_long_enough_is_not_waited_for(tmp_path: Path) -> None:
    """Its age by the clock decides; a second less, and it is looked at again."""
    pauses: list[timedelta] = []
    for age, waits in ((5, 0), (4, 1)):
        pauses.clear()
        path = written(tmp_path)
        now = WRITTEN + timedelta(seconds=age)
        assert (
            unsettled([path], settle=SETTLE, clock=lambda now=now: now, pause=pauses.append) == ()
        )
        assert pauses == [SETTLE] * waits


def test_a_file_from_the_future_is_looked_at_twice(tmp_path: Path) -> None:
    """A server whose clock is ahead does not make a file look finished."""
    path, pauses = written(tmp_path), []
    before = WRITTEN - timedelta(days=1)
    assert unsettled([path], settle=SETTLE, clock=lambda: before, pause=pauses.append) == ()
    assert pauses == [SETTLE]


def test_a_growing_file_is_waited_for_until_it_stands_still(tmp_path: Path) -> None:
    """It settles one look after its last change, and its neighbour waits no longer than it must."""
    path, still = written(tmp_path), written(tmp_path, "b.csv")
    looks: list[int] = []

    def pause(_: timedelta) -> None:
        looks.append(len(looks))
        if len(looks) <= 3:
            grow(path)

    assert unsettled([path, still], settle=SETTLE, clock=lambda: WRITTEN, pause=pause) == ()
    assert len(looks) == 4


def test_a_file_that_never_stands_still_is_left(tmp_path: Path) -> None:
    """The wait has an end, and only the growing file is named; a replaced one grows too."""
    growing, replaced = written(tmp_path), written(tmp_path, "r.csv")
    gone, still = tmp_path / "gone.csv", written(tmp_path, "s.csv")
    looks: list[timedelta] = []

    def pause(much: timedelta) -> None:
        looks.append(much)
        grow(growing)
        written(tmp_path, "next").rename(replaced)

    paths = [growing, replaced, gone, still]
    found = unsettled(paths, settle=SETTLE, clock=lambda: WRITTEN, pause=pause)
    assert found == (growing, replaced)
    assert len(looks) == LOOKS_MAX


def test_no_settle_time_reads_at_once(tmp_path: Path) -> None:
    """Who hands files over by renaming need not wait."""
    assert (
        unsettled([written(tmp_path)], settle=timedelta(), clock=lambda: WRITTEN, pause=print) == ()
    )
