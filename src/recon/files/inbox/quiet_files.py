"""Whether files are still being written: none is read before nobody has touched it for a while.

A file that was cut between two rows looks whole. Where nothing beside it says that it is complete,
only time does: its size, time and identity stay as they are.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

LOOKS_MAX = 12
"""A file that changed between as many looks is left; each is a settle time after the one before."""

_Version = tuple[int, int, int]


def unsettled(
    paths: Iterable[Path],
    *,
    settle: timedelta,
    clock: Callable[[], datetime],
    pause: Callable[[timedelta], None],
) -> tuple[Path, ...]:
    """Wait until files have been left alone for `settle`; those that never were.

    A file whose last change is older by the clock is believed at once. One that is gone counts as
    settled: reading it will say so.
    """
    now = clock()
    waiting = [path for path in paths if settle and not _is_older(path, than=now - settle)]
    for _ in range(LOOKS_MAX):
        if not waiting:
            break
        before = {path: _version_of(path) for path in waiting}
        pause(settle)
        waiting = [path for path in waiting if _version_of(path) != before[path]]
    return tuple(waiting)


def _is_older(path: Path, *, than: datetime) -> bool:
    version = _version_of(path)
    return version is None or datetime.fromtimestamp(version[2] / 1e9, tz=UTC) <= than


def _version_of(path: Path) -> _Version | None:
    """What changes when a file does; nothing when it is gone."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)
