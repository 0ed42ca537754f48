"""Folders of nights that may be let go, and letting them go.

A folder goes only when its month is closed, everything that it showed as open is closed, nothing of
today still reads it, and every byte of it was found as it was sealed in the same call. What stays
is in `let_go_nights`. The history has the names, bytes and the hash of the list before the first
file goes; whoever is killed in between is finished by the next call.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from recon.archive.step_folder import Sealed, whole_file
from recon.archive.storage import Storage, reachable
from recon.model.errors import (
    ArchiveBrokenError,
    ArchiveError,
    ConfigurationError,
    NightHeldError,
)
from recon.steps.care.needed_answers import speaks_against
from recon.steps.care.needed_nights import AllNeededNights, NeededNights
from recon.steps.care.sealed_closes import close_problems
from recon.steps.care.verify_folder import folder_problems
from recon.steps.ground.environment import Environment
from recon.steps.ground.let_go_nights import is_kept
from recon.steps.ground.night_folder import folder_of, is_attempt, storage_of
from recon.steps.ground.sealed_night import sealed_night
from recon.store import Connection
from recon.store.database import history
from recon.store.database.history import Head
from recon.store.database.night_lock import account_lock
from recon.store.nights import let_go_rows, runs, sign_off_rows
from recon.store.nights.let_go_rows import LetGo
from recon.store.nights.runs import Run

NIGHTS_AT_ONCE = 100
"""Folders that are looked through, byte by byte, in one go; the next time takes the rest."""
NAMES_TOLD_MAX = 50
"""Names of files in the link of the history; the manifests that stay have them all."""
HELD = "a night of the account is at work"
STRANGE = "lies in the folder of a night, and nobody sealed it"
UNREAD = "folders of old nights could not be looked at, and none of them was let go"


@dataclass(frozen=True, slots=True)
class OldNight:
    """The folder of one night that may go."""

    run: Run
    names: Sequence[str]
    """Of its files that go, below the archive."""
    size_bytes: int
    list_sha256: str


@dataclass(frozen=True, slots=True)
class OldNights:
    """What is older than nights are kept."""

    going: Sequence[OldNight] = ()
    half_gone: Sequence[LetGo] = ()
    """Let go before, and not to the end."""
    staying: Sequence[str] = ()
    """Why older ones stay, each reason with how many, as a sentence."""


def old_nights(environment: Environment, *, days: int) -> OldNights:
    """The folders that are older than so many days: those that may go, and why others stay."""
    going: list[OldNight] = []
    why: dict[str, list[date]] = {}
    with environment.store.reading() as connection:
        half_gone = let_go_rows.half_gone(connection)
        older = _older(connection, days=days, environment=environment)
        if not older:
            return OldNights((), half_gone)
        problem = _unsafe(connection, environment=environment)
        accounts = AllNeededNights(connection, environment, days)
        for run in older:
            reason = problem or _needed(accounts.of(run), run)
            if not reason and len(going) == NIGHTS_AT_ONCE:
                reason = f"{NIGHTS_AT_ONCE} nights go at once, the next time takes the rest"
            night = None if reason else _looked_at(connection, run, environment=environment)
            if isinstance(night, OldNight):
                going.append(night)
            else:
                why.setdefault(reason or night or "", []).append(run.business_date)
    staying = [f"{len(days)} older stay ({_span(days)}): {reason}" for reason, days in why.items()]
    return OldNights(going, half_gone, staying)


def let_go(
    nights: Iterable[OldNight], *, days: int, by: str, environment: Environment
) -> Iterator[str]:
    """Let these folders go, each under its account's lock; a sentence for each that stays.

    Everything is asked again: minutes may lie between what was shown and this.
    """
    with environment.store.reading() as connection:
        closes = history.head(connection)
        problem = _unsafe(connection, environment=environment)
    for night in nights:
        run = night.run
        try:
            with account_lock(
                environment.store, merchant_id=run.merchant_id, account_id=run.account_id
            ):
                reason = problem or _let_one_go(
                    night, days=days, by=by, closes=closes, environment=environment
                )
        except NightHeldError:
            reason = HELD
        if reason:
            yield f"the folder of {run.business_date} ({run.run_id}) stays: {reason}"


def finish(half_gone: Iterable[LetGo], *, environment: Environment) -> Iterator[str]:
    """Remove what is left of folders that were let go; a sentence for each that is not finished."""
    for going in half_gone:
        try:
            with account_lock(
                environment.store, merchant_id=going.merchant_id, account_id=going.account_id
            ):
                yield from _finish_one(going, environment=environment)
        except NightHeldError:
            yield f"files of {going.business_date} ({going.run_id}) are left: {HELD}"


def _older(connection: Connection, *, days: int, environment: Environment) -> list[Run]:
    """Finished runs of nights that are older, and were not let go yet; the oldest first."""
    before = environment.clock() - timedelta(days=days)
    day = before.date()
    gone = {each.run_id for each in let_go_rows.all_let_go(connection)}
    named = [
        each.run_id
        for each in runs.finished(connection)
        if each.business_date < day and each.run_id not in gone
    ]
    every = [runs.get(connection, run_id) for run_id in named]
    return sorted(
        (run for run in every if run.started_at < before), key=lambda run: run.business_date
    )


def _unsafe(connection: Connection, *, environment: Environment) -> str:
    """Why no night may go at all today; "" when nothing speaks against it."""
    _, broken = history.verify(connection)
    if broken:
        return f"{broken}: `recon verify`"
    problem = next(close_problems(connection, environment=environment), "")
    return f"{problem}: `recon verify`" if problem else ""


def _needed(account: NeededNights, run: Run) -> str:
    """Why a folder stays; also where that cannot be looked at."""
    try:
        return account.needs(run)
    except (ArchiveError, ConfigurationError) as error:
        return f"{UNREAD}: {error}"


def _looked_at(connection: Connection, run: Run, *, environment: Environment) -> OldNight | str:
    """The folder of a run, every byte of it as it was sealed; else why it stays."""
    try:
        problems = folder_problems(connection, run, environment=environment)
        if problems:
            return f"{problems[0]} (`recon verify {run.run_id}`)"
        reason = speaks_against(connection, run, environment=environment)
        return reason or _listed(connection, run, environment=environment)
    except (ArchiveError, ConfigurationError) as error:
        return f"{UNREAD}: {error}"


def _listed(connection: Connection, run: Run, *, environment: Environment) -> OldNight | str:
    """What of a whole folder goes."""
    storage = storage_of(run, environment=environment)
    sealed = _sealed(connection, run, environment=environment)
    sizes: dict[str, int] = {}
    with reachable(storage, doing=UNREAD):
        for name in _going(connection, run, storage=storage):
            if name in sealed:
                step, file = sealed[name]
                sizes[name] = len(whole_file(storage, step, name=file))
            elif _is_aside(name, run=run):
                sizes[name] = len(storage.read(name))
            else:
                return f"{name} {STRANGE}"
    listed = "\n".join(f"{size} {name}" for name, size in sizes.items())
    digest = hashlib.sha256(listed.encode()).hexdigest()
    return OldNight(run, [*sizes], sum(sizes.values()), digest)


def _sealed(
    connection: Connection, run: Run, *, environment: Environment
) -> dict[str, tuple[Sealed, str]]:
    """Each sealed file of a run's folder, by its name below the archive: its step, its own name."""
    steps = sealed_night(connection, run, environment=environment).steps.values()
    return {
        f"{step.folder}/{entry.name}": (step, entry.name)
        for step in steps
        for entry in step.manifest.files
    }


def _is_aside(name: str, *, run: Run) -> bool:
    """Whether a file is of an attempt that a night or a signature itself left."""
    return is_attempt(name.removeprefix(f"{folder_of(run)}/"))


def _going(connection: Connection, run: Run, *, storage: Storage) -> list[str]:
    """The files of a run's folder that do not stay when it goes, by name."""
    return [*_going_of(connection, run, names=storage.names(folder_of(run)))]


def _going_of(connection: Connection, run: Run, *, names: Iterable[str]) -> Iterator[str]:
    folder = folder_of(run)
    is_signed = bool(sign_off_rows.signatures(connection, run.run_id))
    for name in names:
        if not is_kept(name.removeprefix(f"{folder}/"), is_signed=is_signed):
            yield name


def _let_one_go(
    night: OldNight, *, days: int, by: str, closes: Head, environment: Environment
) -> str:
    """Let a folder go; why it stays."""
    run = night.run
    names = [name.removeprefix(f"{folder_of(run)}/") for name in night.names[:NAMES_TOLD_MAX]]
    with environment.store.reading() as connection:
        reason = _needed(NeededNights(connection, environment, run, days), run)
        again = reason or _looked_at(connection, run, environment=environment)
    if isinstance(again, str):
        return again
    if again.list_sha256 != night.list_sha256:
        return "its files are not those that were shown; the next housekeeping shows them"
    with environment.store.writing() as connection:
        # People may reopen a month, hand out a journal or plan by hand while no night runs.
        _, reason = history.verify(connection, after=closes)
        reason = reason or NeededNights(connection, environment, run, days).unsettled(run)
        if {*_going_of(connection, run, names=night.names)} != {*night.names}:
            reason = reason or "somebody signed it meanwhile"
        if reason:
            return reason
        going = LetGo(
            run.run_id,
            run.merchant_id,
            run.account_id,
            run.business_date,
            by,
            environment.clock(),
            len(night.names),
            night.size_bytes,
            night.list_sha256,
        )
        details = {"days": days, "folder": folder_of(run), "names": names}
        let_go_rows.note_let_go(connection, going, details=details)
    environment.crash_point("let a night go")
    try:
        _remove(run, names=night.names, environment=environment)
    except (ArchiveError, ConfigurationError) as error:
        return f"{error}; the next housekeeping tries again"
    return ""


def _finish_one(going: LetGo, *, environment: Environment) -> Iterator[str]:
    """Remove what is left of a folder, and nothing that is not what was let go."""
    with environment.store.reading() as connection:
        run = runs.get(connection, going.run_id)
        is_half_gone = going in let_go_rows.half_gone(connection)
    if not is_half_gone:
        return
    try:
        with environment.store.reading() as connection:
            names, strange = _left(connection, run, environment=environment)
        yield from strange
        if not strange:
            _remove(run, names=names, environment=environment)
    except (ArchiveError, ConfigurationError) as error:
        yield f"{error}; the next housekeeping tries again"


def _left(
    connection: Connection, run: Run, *, environment: Environment
) -> tuple[list[str], list[str]]:
    """What of a folder that was let go lies there still, and a sentence for what must not go."""
    storage = storage_of(run, environment=environment)
    sealed = _sealed(connection, run, environment=environment)
    names, strange = [], []
    with reachable(storage, doing=f"files of {folder_of(run)} are left"):
        for name in _going(connection, run, storage=storage):
            names.append(name)
            if name in sealed:
                step, file = sealed[name]
                try:
                    whole_file(storage, step, name=file)
                except ArchiveBrokenError as error:
                    strange.append(f"{error}: nothing more of that folder goes; look at why")
            elif not _is_aside(name, run=run):
                strange.append(f"{name} {STRANGE}: move it away, the next housekeeping goes on")
    return names, strange


def _remove(run: Run, *, names: Iterable[str], environment: Environment) -> None:
    """Remove files of a folder that was let go, and say so in the history.

    Raises:
        ArchiveError: they cannot be removed; the next call goes on.
    """
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing=f"files of {folder_of(run)} are left"):
        for name in names:
            storage.remove(name)
            environment.crash_point("removed a file of a night")
    with environment.store.writing() as connection:
        let_go_rows.note_gone(connection, run.run_id, at=environment.clock())


def _span(days: Sequence[date]) -> str:
    return str(days[0]) if len(days) == 1 else f"{min(days)} to {max(days)}"
