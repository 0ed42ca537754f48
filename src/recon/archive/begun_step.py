"""A step that is written in two goes: its large files while others are made, the rest at its end.

What lies there in between is read by whoever began it, and counts for nobody else: its manifest is
written last. As `step_folder.write_step`, no two files are held at once, and a step that is there
and says the same is used.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from recon.archive.manifest import About, FileEntry, Manifest
from recon.archive.step_folder import (
    Part,
    Sealed,
    clear_unsealed,
    expected_entry,
    kept_step,
    sealed_step,
    set_aside,
    step_problems,
    write_manifest,
    write_part,
)
from recon.archive.storage import Storage
from recon.model.errors import ArchiveBrokenError

Parts = Callable[[], Iterable[Part]]
"""The files of a step, made anew as often as they are asked for."""
CrashPoint = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BegunStep:
    """A step whose first files lie where they will be sealed."""

    folder: str
    """Below the archive."""
    entries: tuple[FileEntry, ...]
    is_sealed: bool
    """Whether they are of an earlier attempt, which was ended."""


def begin_step(
    storage: Storage, *, folder: str, parts: Parts, crash_point: CrashPoint = lambda _: None
) -> BegunStep:
    """Write the first files of a step, or use those that are there and say the same.

    Raises:
        OSError: the archive cannot be written; nothing that was sealed is changed.
    """
    kept = _sealed(storage, folder=folder)
    if kept is not None:
        known = {entry.name: entry for entry in kept.manifest.files}
        # A map holds no file while the next one is made, as a loop would.
        wanted = [*map(expected_entry, parts())]
        if all(_is_same(known.get(each.name), each) for each in wanted) and not step_problems(
            storage, kept
        ):
            return BegunStep(folder, tuple(known[each.name] for each in wanted), is_sealed=True)
        set_aside(storage, folder=folder)
    clear_unsealed(storage, folder=folder)
    entries = _written(storage, folder=folder, parts=parts(), crash_point=crash_point)
    return BegunStep(folder, entries, is_sealed=False)


def end_step(
    storage: Storage,
    begun: BegunStep,
    *,
    about: About,
    first: Parts,
    rest: Sequence[Part],
    crash_point: CrashPoint = lambda _: None,
) -> Sealed:
    """Write the other files of a step, and its manifest.

    Args:
        storage: the archive.
        begun: what was begun; a step with these files is used where all of it says the same.
        about: whose step it is.
        first: the files that it was begun with.
        rest: the others.
        crash_point: where tests end the process.

    Raises:
        OSError: the archive cannot be written; nothing that was sealed is changed.
    """
    folder, entries = begun.folder, begun.entries
    if begun.is_sealed:
        wanted = Manifest(about, (*entries, *map(expected_entry, rest)))
        if (kept := kept_step(storage, folder=folder, wanted=wanted)) is not None:
            return kept
        entries = _written(storage, folder=folder, parts=first(), crash_point=crash_point)
    entries += _written(storage, folder=folder, parts=rest, crash_point=crash_point)
    if entries:
        # No manifest over names that a loss of power could take back.
        storage.flush(folder)
    sealed = write_manifest(storage, Manifest(about, entries), folder=folder)
    crash_point("archived a manifest")
    return sealed


def _sealed(storage: Storage, *, folder: str) -> Sealed | None:
    """The step that is there; one whose manifest is none moves aside."""
    try:
        return sealed_step(storage, folder=folder)
    except ArchiveBrokenError:
        set_aside(storage, folder=folder)
        return None


def _is_same(known: FileEntry | None, wanted: FileEntry) -> bool:
    return known is not None and (known.rows, known.content) == (wanted.rows, wanted.content)


def _written(
    storage: Storage, *, folder: str, parts: Iterable[Part], crash_point: CrashPoint
) -> tuple[FileEntry, ...]:
    def write(part: Part) -> FileEntry:
        entry = write_part(storage, part, folder=folder, flushed=False)
        crash_point("archived a part")
        return entry

    return tuple(map(write, parts))
