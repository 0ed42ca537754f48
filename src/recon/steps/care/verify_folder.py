"""Does the folder of a night still say what was sealed? Every byte, and each link that binds it."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from recon.archive.step_folder import (
    Sealed,
    find_sealed,
    sealed_step,
    step_problems,
    whole_file,
)
from recon.archive.storage import Storage, reachable
from recon.model.errors import ArchiveBrokenError
from recon.steps.compare.second_proof import proven_again
from recon.steps.ground.environment import Environment, account_of
from recon.steps.ground.let_go_nights import is_kept
from recon.steps.ground.night_folder import (
    INPUTS,
    Link,
    links,
    storage_at,
    storage_of,
)
from recon.steps.money.restore import given_up
from recon.store import Connection
from recon.store.database import history
from recon.store.nights import runs, sign_off_rows
from recon.store.nights.let_go_rows import let_go_of
from recon.store.nights.runs import Run

UNREAD = "nothing of it could be looked at"


def folder_problems(connection: Connection, run: Run, *, environment: Environment) -> list[str]:
    """What of a run's folder is not as it was sealed, each as a sentence; none when all is.

    Of a folder that was let go everything is looked at that is kept of one.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage = storage_of(run, environment=environment)
    look = _whole
    if let_go_of(connection, run.run_id) is not None:
        look = partial(_kept, is_signed=bool(sign_off_rows.signatures(connection, run.run_id)))
    problems: list[str] = []
    with reachable(storage, doing=UNREAD):
        for link in _binding(links(connection, run.run_id)):
            of_link = _of_link(storage, link, look=look)
            problems += [f"run {run.run_id}: {problem}" for problem in of_link]
    return problems


def sql_problems(run: Run, *, environment: Environment) -> list[str]:
    """What the SQL in a night's folder comes to otherwise than the night, each as a sentence.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    totals = proven_again(run, environment=environment)
    return [
        f"run {run.run_id}: {total.id} {total.name}: night {total.left}, SQL {total.right}"
        for total in totals
        if not total.passed
    ]


def missing_steps(connection: Connection, run: Run, *, environment: Environment) -> list[str]:
    """Steps that the history binds and the archive does not have, without a look into their files.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing=UNREAD):
        return [
            f"run {run.run_id}: {_gone(storage, link)}"
            for link in _binding(links(connection, run.run_id))
            if _is_gone(storage, link)
        ]


def forgotten_nights(connection: Connection, *, environment: Environment) -> Iterator[str]:
    """Folders of runs that only a later state of the database can have known.

    What nights on another copy of it left, before this one was put back, is no business of its, nor
    what began on links that two people accepted as lost.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    newest = history.head(connection).sequence
    for name in sorted(environment.settings.accounts):
        account_name = account_of(name)
        storage = storage_at(account_name, environment=environment)
        known = max(newest, given_up(connection, account=name))
        with reachable(storage, doing=UNREAD):
            for day in storage.folders(f"nights/{account_name[0]}/{account_name[1]}"):
                for folder in storage.folders(day):
                    if runs.is_known(connection, folder.rpartition("/")[2]):
                        continue
                    if _began_after(storage, folder) > known:
                        yield (
                            f"the archive {storage.shown} has {folder}, which was written after "
                            f"link {newest} of the history, the newest that this database has: it "
                            "is older than the archive; put the newest database back"
                        )


def _began_after(storage: Storage, folder: str) -> int:
    """The number of the newest link when the first step of a folder was written; 0: it has none."""
    try:
        sealed = sealed_step(storage, folder=f"{folder}/{INPUTS}")
    except ArchiveBrokenError:
        return 0
    return int(sealed.manifest.about.history_before.split(":")[0]) if sealed else 0


def _binding(bound: Iterable[Link]) -> list[Link]:
    """The newest link of each step."""
    return list({link.step: link for link in bound}.values())


def _of_link(
    storage: Storage, link: Link, *, look: Callable[[Storage, Sealed], list[str]]
) -> list[str]:
    night = link.folder.rpartition("/")[0]
    try:
        sealed = find_sealed(storage, night=night, step=link.step, sha256=link.sha256)
    except ArchiveBrokenError as error:
        return [str(error)]
    return [_gone(storage, link)] if sealed is None else look(storage, sealed)


def _whole(storage: Storage, sealed: Sealed) -> list[str]:
    """Every file of a step."""
    return step_problems(storage, sealed)


def _kept(storage: Storage, sealed: Sealed, *, is_signed: bool) -> list[str]:
    """The files of a step that stay when its night is let go."""
    problems = []
    for entry in sealed.manifest.files:
        if is_kept(f"{sealed.manifest.about.step}/{entry.name}", is_signed=is_signed):
            try:
                whole_file(storage, sealed, name=entry.name)
            except ArchiveBrokenError as error:
                problems.append(str(error))
    return problems


def _is_gone(storage: Storage, link: Link) -> bool:
    night = link.folder.rpartition("/")[0]
    try:
        return find_sealed(storage, night=night, step=link.step, sha256=link.sha256) is None
    except ArchiveBrokenError:
        return False  # it is there, of a version that cannot be read here; a look into it says so


def _gone(storage: Storage, link: Link) -> str:
    return (
        f"{link.folder}/manifest.json of the archive {storage.shown} is gone, or is not the one "
        "whose hash the history keeps: the folder was moved, changed, swapped or restored from an "
        "older copy; put it back from a backup of the archive"
    )
