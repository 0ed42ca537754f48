"""Bent files by the thousand: written, read in the reading process, judged, and what they took.

Many are read by one fork, which a campaign of 100,000 can pay for. Each is read by the night's own
functions, by the real task, under the real bounds, and what it took is measured for itself; only
the fork is shared. That is weaker than a night, which forks for each file, so every tenth batch is
read as a night reads it, and so is each file of a batch that broke.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

from recon.files.reader import file_reader, files, reader_process
from recon.files.reader.reader_process import MIB, SMALL_BYTES, Read
from recon.model.errors import ReaderBrokenError

FILES_A_FORK = 25
ALONE_EVERY = 10
"""Batches; one of so many is read with a fork for each file."""
PEAK_BYTES_MAX = 512 * MIB
MILLISECONDS_MAX = 20_000
FORGET_PEAK = "5"
"""What the kernel is told so that the peak of a process begins anew."""
REFUSED = "refused"
"""What a judge says of a file that is refused whole though a stricter reader reads it."""
WRITTEN_AT_ONCE = 20 * FILES_A_FORK


class Took(NamedTuple):
    """What the reader of one file took."""

    peak_bytes: int
    milliseconds: int
    """Of the processor."""
    alone: bool
    """In a fork of its own."""

    @property
    def too_much(self) -> str:
        """Which bound of a file below 10 MB it passed, or ""."""
        if self.peak_bytes > PEAK_BYTES_MAX:
            return f"took {self.peak_bytes // MIB} MiB"
        if self.milliseconds > MILLISECONDS_MAX:
            return f"took {self.milliseconds} ms"
        return ""


class _NotedError(Exception):
    """The reader was asked, and nothing is read yet."""


class _Noting:
    """In place of the night's reader: notes what it is asked."""

    def __init__(self) -> None:
        self.tasks: list[reader_process.Task] = []

    @contextmanager
    def read(self, file: Path, work: Callable[..., Any], /, **arguments: Any) -> Iterator[Read]:
        assert file.stat().st_size < SMALL_BYTES
        self.tasks.append(reader_process.Task(work, arguments, ""))
        raise _NotedError
        yield


class _LaidAside(NamedTuple):
    """In place of the night's reader: gives what a fork laid aside for one file."""

    folder: Path
    number: int

    @contextmanager
    def read(self, file: Path, work: Callable[..., Any], /, **_: Any) -> Iterator[Read]:
        rows, facts = _beside(self.folder, self.number)
        with rows.open("rb") as row_file, facts.open("rb") as fact_file:
            try:
                yield Read(reader_process.read_facts(fact_file, of=work), row_file)
            except reader_process.BrokenParcelError:
                msg = f"{file.name} broke its reader, which gave back what no reader writes"
                raise ReaderBrokenError(msg) from None


def each_apart(reads: Sequence[Callable[[], Any]], *, folder: Path) -> Iterator[tuple[Any, Took]]:
    """What each call of a reader of the night gives, and what its file took.

    Args:
        reads: Each reads one file below 10 MB; called twice.
        folder: Where a fork may lay rows aside.
    """
    for number, first in enumerate(range(0, len(reads), FILES_A_FORK)):
        batch = reads[first : first + FILES_A_FORK]
        together = number % ALONE_EVERY != ALONE_EVERY - 1
        ends = _in_one_fork(batch, folder=folder) if together else None
        for at, read in enumerate(batch):
            code, peak_bytes, milliseconds = ends[at] if ends else (reader_process.GAVE_UP, 0, 0)
            if code:
                yield _alone(read)
                continue
            with pytest.MonkeyPatch.context() as patch:
                laid = _LaidAside(folder, at)
                patch.setattr(files, "file_reader", lambda laid=laid: laid)
                yield read(), Took(peak_bytes, milliseconds, alone=False)


def _alone(read: Callable[[], Any]) -> tuple[Any, Took]:
    """As a night reads a file."""
    value = read()
    ended = file_reader().ended
    assert ended is not None
    return value, Took(ended.peak_bytes, ended.milliseconds, alone=True)


def _in_one_fork(
    reads: Sequence[Callable[[], object]], *, folder: Path
) -> list[tuple[int, int, int]] | None:
    """How each task ended, its peak and its milliseconds; nothing when one broke the fork."""
    noting = _Noting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "file_reader", lambda: noting)
        for read in reads:
            with pytest.raises(_NotedError):
                read()
    first = noting.tasks[0].arguments
    path = first["source"].path if "source" in first else first["path"]
    try:
        with file_reader().read(path, one_after_the_other, tasks=noting.tasks, folder=folder) as r:
            ends: list[tuple[int, int, int]] = r.facts
            return ends
    except ReaderBrokenError:
        return None


def one_after_the_other(
    rows: IO[bytes],  # noqa: ARG001 - each file has its own
    *,
    tasks: Sequence[reader_process.Task],
    folder: Path,
) -> list[tuple[int, int, int]]:
    """A task of a fork: several files; how each ended, its peak in bytes and its milliseconds."""
    return [_measured(task, folder=folder, number=number) for number, task in enumerate(tasks)]


def _measured(task: reader_process.Task, *, folder: Path, number: int) -> tuple[int, int, int]:
    Path("/proc/self/clear_refs").write_text(FORGET_PEAK)
    began = time.process_time_ns()
    rows, facts = _beside(folder, number)
    with rows.open("w+b") as row_file, facts.open("w+b") as fact_file:
        code = reader_process._answer(task, rows=row_file, facts=fact_file)
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return code, peak * 1024, (time.process_time_ns() - began) // 1_000_000


def _beside(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"{number}.rows", folder / f"{number}.facts"


class Bent(NamedTuple):
    """One case, its file written."""

    number: int
    read: Callable[[], Any]
    """By the night's own functions."""
    judged: Callable[[Any], str]
    """What is wrong with what was read, REFUSED, or ""."""


class Played(NamedTuple):
    """What came of some cases."""

    files: int
    alone: int
    """Of them read with a fork of their own."""
    refused: int
    problems: list[str]
    peak_bytes: int
    """The most that any took."""
    milliseconds: int
    """As `peak_bytes`."""


def played(numbers: Sequence[int], *, made: Callable[[int, Path], Bent], folder: Path) -> Played:
    """Write, read and judge these cases."""
    result = Played(0, 0, 0, [], 0, 0)
    for first in range(0, len(numbers), WRITTEN_AT_ONCE):
        some = numbers[first : first + WRITTEN_AT_ONCE]
        result = _and(result, _some_played(some, made=made, folder=folder))
    return result


def figures_of(result: Played) -> str:
    """For whoever reads the log of a campaign."""
    return (
        f"{result.files} files, {result.alone} in a fork of their own, {result.refused} refused "
        f"though strictly right, {len(result.problems)} problems; at most "
        f"{result.peak_bytes // MIB} MiB and {result.milliseconds} ms"
    )


def _some_played(
    numbers: Sequence[int], *, made: Callable[[int, Path], Bent], folder: Path
) -> Played:
    cases = []
    for at, number in enumerate(numbers):
        own = folder / f"{at:04}"
        own.mkdir(exist_ok=True)
        cases.append(made(number, own))
    alone = refused = peak = longest = 0
    problems = []
    reads = [partial(_read_or_broken, case.read) for case in cases]
    for case, (found, took) in zip(cases, each_apart(reads, folder=folder), strict=True):
        alone, peak = alone + took.alone, max(peak, took.peak_bytes)
        longest = max(longest, took.milliseconds)
        broken = str(found) if isinstance(found, ReaderBrokenError) else took.too_much
        wrong = broken or case.judged(found)
        refused += wrong == REFUSED
        if wrong and wrong != REFUSED:
            problems.append(f"case {case.number}: {wrong}")
    return Played(len(cases), alone, refused, problems, peak, longest)


def _read_or_broken(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except ReaderBrokenError as error:
        return error


def _and(one: Played, other: Played) -> Played:
    return Played(
        one.files + other.files,
        one.alone + other.alone,
        one.refused + other.refused,
        one.problems + other.problems,
        max(one.peak_bytes, other.peak_bytes),
        max(one.milliseconds, other.milliseconds),
    )
