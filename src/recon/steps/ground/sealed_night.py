"""The files of a night as they were sealed, whichever of its steps holds them.

Every file that is read is held against its manifest, and the manifest against the newest link of
the history that binds its step: what was changed since is refused by name, never shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import pandas as pd
import pyarrow as pa

from recon.archive.manifest import FileEntry
from recon.archive.rows_file import read_rows, row_batches
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Sealed, find_sealed, opened_file, whole_file
from recon.archive.storage import Storage, reachable
from recon.model.errors import ArchiveBrokenError, NightLetGoError
from recon.proof.night_tables import frame_of_table, plain_table
from recon.steps.ground.environment import Environment
from recon.steps.ground.let_go_nights import is_kept
from recon.steps.ground.night_folder import (
    BOOKS,
    INPUTS,
    PROOF,
    folder_of,
    links,
    storage_of,
)
from recon.store import Connection
from recon.store.nights.let_go_rows import LetGo, let_go_of
from recon.store.nights.runs import Run

UNREAD = "the folder of a night could not be read"


@dataclass(frozen=True, slots=True)
class SealedNight:
    """The steps of one run that the history binds, each by its newest link."""

    run_id: str
    storage: Storage
    steps: Mapping[str, Sealed]
    let_go: LetGo | None = None
    """How its folder was let go; None while it is kept."""

    @property
    def moved(self) -> dict[str, str]:
        """Files that lie elsewhere than their schema says: path -> path, from the night's folder.

        They were compared in another version than before money, or their step was written anew.
        """
        return self._elsewhere(lambda path: path)

    @property
    def set_aside(self) -> dict[str, str]:
        """Files whose step was set aside since: path as the sealed statements have it -> path now.

        A step that was written anew takes the place of the one that this night compared.
        """
        return self._elsewhere(self._compared)

    def has(self, name: str) -> bool:
        """Whether the night sealed such a table; not every night has every one.

        Raises:
            ArchiveBrokenError: its step is not in the archive.
        """
        sealed, file = self._place(name)
        return any(entry.name == file for entry in sealed.manifest.files)

    def rows(self, name: str) -> int:
        """How many rows a table has, by its manifest alone; 0 for one that was not sealed.

        Raises:
            ArchiveBrokenError: its step is not in the archive.
        """
        sealed, file = self._place(name)
        return sum(entry.rows for entry in sealed.manifest.files if entry.name == file)

    def entry(self, name: str) -> tuple[str, FileEntry]:
        """The step of a table that was sealed, and what its manifest says of it.

        Raises:
            ArchiveBrokenError: its step is not in the archive.
        """
        sealed, file = self._place(name)
        entry = next(entry for entry in sealed.manifest.files if entry.name == file)
        return sealed.manifest.about.step, entry

    def content(self, name: str) -> tuple[bytes, str]:
        """The bytes of a table as they were sealed, and the file's name for sentences.

        Raises:
            ArchiveError: it cannot be reached, is not as it was sealed, or was let go.
        """
        sealed, file = self._place(name)
        if self.let_go is not None and not is_kept(f"{sealed.manifest.about.step}/{file}"):
            raise NightLetGoError(str(self.let_go))
        with reachable(self.storage, doing=UNREAD):
            return whole_file(self.storage, sealed, name=file), f"{sealed.folder}/{file}"

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[BinaryIO, str]]:
        """As `content`, of a table of which only parts are read."""
        sealed, file = self._place(name)
        if self.let_go is not None and not is_kept(f"{sealed.manifest.about.step}/{file}"):
            raise NightLetGoError(str(self.let_go))
        with reachable(self.storage, doing=UNREAD), ExitStack() as stack:
            opened = stack.enter_context(opened_file(self.storage, sealed, name=file))
            yield opened, f"{sealed.folder}/{file}"

    def table(self, name: str) -> pa.Table:
        """A table by the name of its schema; see `content`."""
        content, path = self.content(name)
        return plain_table(read_rows(content, name=path), name=name)

    def batches(self, name: str, *, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of a file as it lies there, some rows at a time; see `content`."""
        content, path = self.content(name)
        yield from row_batches(content, name=path, columns=columns)

    def as_sealed(self, file: str) -> bytes:
        """The bytes of a file by its place in the night's folder; see `content`."""
        step, _, name = file.partition("/")
        sealed = self._step(step)
        with reachable(self.storage, doing=UNREAD):
            return whole_file(self.storage, sealed, name=name)

    def frame(self, name: str) -> pd.DataFrame:
        """A table as the frame that it was made of, its rows by key; see `content`."""
        return frame_of_table(self.table(name))

    def statements(self) -> dict[str, str]:
        """The SQL that was sealed with the night, by name, byte for byte as it was.

        Raises:
            ArchiveError: it cannot be reached, or is not as it was sealed.
        """
        sealed = self.steps[PROOF]
        names = [entry.name for entry in sealed.manifest.files if entry.name.endswith(".sql")]
        with reachable(self.storage, doing=UNREAD):
            return {name: whole_file(self.storage, sealed, name=name).decode() for name in names}

    def _place(self, name: str) -> tuple[Sealed, str]:
        step, _, file = self._compared(SCHEMAS[name].path).partition("/")
        return self._step(step), file

    def _step(self, step: str) -> Sealed:
        if step not in self.steps:
            msg = (
                f"the step {step} of run {self.run_id} is not in the archive {self.storage.shown}, "
                "or is not the one whose hash the history keeps: put the night's folder back from "
                "a backup of the archive"
            )
            raise ArchiveBrokenError(msg)
        return self.steps[step]

    def _elsewhere(self, named: Callable[[str], str]) -> dict[str, str]:
        """Path as files are named -> path now, of those that lie elsewhere."""
        lies = {named(schema.path): self._path(schema.path) for schema in SCHEMAS.values()}
        return {path: other for path, other in lies.items() if other != path}

    def _path(self, path: str) -> str:
        step, _, file = self._compared(path).partition("/")
        folder = self.steps[step].folder.rpartition("/")[2] if step in self.steps else step
        return f"{folder}/{file}"

    def _compared(self, path: str) -> str:
        """The file that was compared in place of one of the inputs; what came last says it."""
        for sealed in reversed([*self.steps.values()]):
            path = sealed.manifest.about.compared.get(path, path)
        return path


def sealed_night(connection: Connection, run: Run, *, environment: Environment) -> SealedNight:
    """The sealed steps of a run; one that is gone from the archive is not among them.

    Raises:
        ArchiveError: the archive cannot be reached, or a manifest is none.
    """
    storage = storage_of(run, environment=environment)
    bound = {link.step: link for link in links(connection, run.run_id)}
    with reachable(storage, doing=UNREAD):
        each_step = {
            step: find_sealed(
                storage, night=link.folder.rpartition("/")[0], step=step, sha256=link.sha256
            )
            for step, link in bound.items()
        }
        inputs = each_step.get(INPUTS)
        meant = inputs.manifest.about.after.get(BOOKS) if inputs else None
        if meant is not None:
            # Books that were read anew since, in a run that was started again, say nothing of it.
            each_step[BOOKS] = find_sealed(storage, night=folder_of(run), step=BOOKS, sha256=meant)
    steps = {step: sealed for step, sealed in each_step.items() if sealed is not None}
    return SealedNight(run.run_id, storage, steps, let_go_of(connection, run.run_id))
