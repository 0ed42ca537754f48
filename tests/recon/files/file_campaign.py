"""Bent files by the thousand: written, read in the reading process, judged, and what they took."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from recon.files.reader.door import MIB
from recon.model.errors import ReaderBrokenError
from tests.recon.files.read_apart import FILES_A_FORK, each_apart

REFUSED = "refused"
"""What a judge says of a file that is refused whole though a stricter reader reads it."""
WRITTEN_AT_ONCE = 20 * FILES_A_FORK


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
