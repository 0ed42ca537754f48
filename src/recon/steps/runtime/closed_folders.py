"""Read back the sealed folder of a closed month, verified against the history."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from recon.archive.step_folder import Sealed, step_problems, whole_file
from recon.archive.storage import Storage, reachable
from recon.desk.endorsement import Kind
from recon.model.errors import ArchiveError, ConfigurationError
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import Link, recorded_step, storage_at
from recon.store import Connection
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth
from recon.store.people.decision_rows import not_agreed

FOLDER = "periods"
"""The folder inside the archive, next to the nights."""
DOCUMENT = "close.json"
UNREAD = "the folder of a closed month could not be read"


def period_folder(account: tuple[str, str], month: str) -> str:
    """Return the path inside the archive of the closes of a month."""
    return "/".join((FOLDER, *account, month))


class ClosedFolder(NamedTuple):
    """The sealed folder of a close."""

    storage: Storage
    sealed: Sealed

    def file(self, name: str) -> bytes:
        """Read one file as it was sealed.

        Raises:
            ArchiveError: it is missing, or is not the file that was sealed.
        """
        with reachable(self.storage, doing=UNREAD):
            return whole_file(self.storage, self.sealed, name=name)

    @property
    def document(self) -> dict[str, Any]:
        """The document of the close for programs; see `file`."""
        document: dict[str, Any] = json.loads(self.file(DOCUMENT))
        return document


def closed_folder(closed: ClosedMonth, *, environment: Environment) -> ClosedFolder:
    """Return the folder of a close, as anchored in the history.

    Raises:
        ArchiveError: it is missing, another one, or cannot be reached.
    """
    storage = storage_at(closed.account, environment=environment)
    link = Link(closed.folder.rpartition("/")[2], closed.folder, closed.manifest)
    return ClosedFolder(storage, recorded_step(storage, link, doing=UNREAD))


def close_problems(connection: Connection, *, environment: Environment) -> Iterator[str]:
    """Yield a sentence for each closed month that is not as it was signed and sealed."""
    desk = environment.desk
    for closed in closed_months.all_closes(connection):
        which = f"{closed.month} of {'/'.join(closed.account)}"
        period, says = (
            closed_months.period_of(closed.account, closed.month),
            {"digest": closed.digest},
        )
        if why := not_agreed(connection, Kind.CLOSE, subject=period, says=says, desk=desk):
            yield f"{which} counts as closed, but {why}"
        try:
            storage, sealed = closed_folder(closed, environment=environment)
            with reachable(storage, doing=UNREAD):
                yield from (f"{which}: {fault}" for fault in step_problems(storage, sealed))
        except (ArchiveError, ConfigurationError) as error:
            yield f"{which}: {error}"
    for manifest in closed_months.all_reopened(connection):
        if why := not_agreed(connection, Kind.REOPEN, subject=manifest, desk=desk):
            yield f"a month was reopened (its folder's manifest is {manifest[:12]}…), but {why}"
