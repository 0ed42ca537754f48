"""What parts of a comparison wrote, until its results are sealed: a folder that no link binds.

Each part is a step of its own in there, with a manifest. Whoever does a part writes under a name of
its own: one that was taken for dead, and is not, disturbs nobody.
"""

import hashlib
import os
import platform
from collections.abc import Iterable
from dataclasses import replace

from recon.archive.step_folder import Rows, Sealed, write_step
from recon.archive.storage import reachable
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import COMPARED, IN_PARTS, SealedNight, folder_of, storage_of
from recon.store.nights.runs import Run

UNWRITTEN = (
    "a part of the comparison could not be written; what was read, answered and sent is kept: make "
    "the archive writable, then start the night again"
)
NAME_DIGITS = 12


def write_files(night: SealedNight, *, name: str, rows: Iterable[Rows]) -> Sealed:
    """Write the files of a part; one that was written by this process already is used.

    Args:
        night: whose part it is.
        name: of the part.
        rows: each file's, made when they are asked for.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    compared = night.steps[COMPARED]
    folder = f"{compared.folder.rpartition('/')[0]}/{IN_PARTS}"
    step = f"{name}-{_own_name()}"
    after = {COMPARED: compared.sha256}
    about = replace(compared.manifest.about, step=step, after=after, compared={}, absent=())
    with reachable(night.storage, doing=UNWRITTEN):
        return write_step(night.storage, night=folder, about=about, parts=rows)


def remove_files(run: Run, *, environment: Environment) -> None:
    """Remove what parts of a run wrote, of this start of the night and of those before.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing="parts of the comparison that are done could not be removed"):
        storage.clear(f"{folder_of(run)}/{IN_PARTS}")


def _own_name() -> str:
    """Of this process, among those of all machines."""
    own = f"{platform.node()} {os.getpid()}"
    return hashlib.sha256(own.encode()).hexdigest()[:NAME_DIGITS]
