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
from functools import cached_property

from recon.archive.step_folder import Sealed, whole_file
from recon.archive.storage import Storage, reachable
from recon.model.business_date import month_of
from recon.model.errors import (
    ArchiveBrokenError,
    ArchiveError,
    ConfigurationError,
    NightHeldError,
)
from recon.model.nights import Mode
from recon.steps.care.sealed_closes import close_problems
from recon.steps.care.verify_folder import folder_problems
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment
from recon.steps.ground.let_go_nights import is_kept
from recon.steps.ground.night_folder import (
    RESULTS,
    STEPS,
    folder_of,
    is_attempt,
    links,
    storage_of,
)
from recon.steps.ground.sealed_night import sealed_night
from recon.store import Connection
from recon.store.database import history
from recon.store.database.night_lock import account_lock
from recon.store.money import retention_rows
from recon.store.nights import (
    answer_parts,
    journal_rows,
    ledger_rows,
    let_go_rows,
    runs,
    sign_off_rows,
)
from recon.store.nights.let_go_rows import LetGo
from recon.store.nights.runs import Run
from recon.store.people import closed_months
from recon.store.schema.account_filter import OfAccount

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


@dataclass(frozen=True)
class _Account:
    """What of an account's nights is still read or open, asked once."""

    connection: Connection
    environment: Environment
    like: Run
    """Any run of it."""
    days: int

    @cached_property
    def _live(self) -> dict[date, Run]:
        """Its finished live nights by business date."""
        name = {"merchant_id": self.like.merchant_id, "account_id": self.like.account_id}
        finished = runs.last_finished(self.connection, **name)
        return {day: run for day, run in finished.items() if run.mode is Mode.LIVE}

    @cached_property
    def _read_from(self) -> date:
        """From this business date on nights are read: by the newest one, and by open months."""
        name, until = (self.like.merchant_id, self.like.account_id), self.environment.clock().date()
        opens = min(
            (
                month
                for month in {month_of(day) for day in self._live}
                if not closed_months.closed_since(self.connection, name, month=month, until=until)
            ),
            default="9999-99",
        )
        return max((day for day in self._live if month_of(day) < opens), default=date.min)

    @cached_property
    def _needed(self) -> dict[str, str]:
        """Run -> what still reads its folder."""
        out = journal_rows.not_seen_in_the_books(self.connection)
        needed = {each.run_id: "a journal of it is not in the books yet" for each in out}
        if (reader := ledger_rows.newest_reader(self.connection, self.like)) is not None:
            needed[reader] = "its books are the newest that were read"
        newest = self._live[max(self._live)]
        needed[newest.run_id] = "it is the newest of its account"
        night = sealed_night(self.connection, newest, environment=self.environment)
        if RESULTS in night.steps:
            before = night.steps[RESULTS].manifest.about.predecessor
            needed.setdefault(before, "the newest night carried its breaks forward")
        return needed

    @cached_property
    def _open(self) -> set[str]:
        """Breaks that are open today, what they open again, and the orders that they are of."""
        newest = self._live[max(self._live)].run_id
        frames = kept_results.frames(
            self.connection, newest, names=("breaks", "movements"), environment=self.environment
        )
        breaks, reopened = frames["breaks"], frames["movements"]["reopens"]
        return {*breaks["break_id"], *breaks["order_no"], *reopened} - {""}

    def unsettled(self, run: Run) -> str:
        """Why the folder of a run stays by what the database has; "" when nothing needs it.

        Raises:
            ArchiveError: the newest night cannot be read.
        """
        name, month = (self.like.merchant_id, self.like.account_id), month_of(run.business_date)
        if let_go_rows.let_go_of(self.connection, run.run_id) is not None:
            return "somebody let it go at the same time"
        if closed_months.state_of(self.connection, name, month=month).closed is None:
            return f"{month} of {'/'.join(name)} is not closed (`recon close {month}`)"
        if run.business_date >= self._read_from or not self._live:
            return f"nights of {'/'.join(name)} from {self._read_from} on are read by what is open"
        return self._needed.get(run.run_id, "") or self._undecided(run)

    def _undecided(self, run: Run) -> str:
        """Money that answers of a run may decide: a night asks its merchant's other accounts too.

        Only answers that came after an instruction was planned say anything of it.
        """
        before = self.environment.clock() - timedelta(days=self.days)
        parts = [part for part in answer_parts.of_run(self.connection, run.run_id) if part.answered]
        newest = max((part.last_at for part in parts if part.last_at is not None), default=before)
        asked = {(part.merchant_id, part.account_id): part for part in parts}
        owners: tuple[OfAccount, ...] = (run, *asked.values())
        for owner in owners:
            if retention_rows.open_money(self.connection, owner, before=max(before, newest)):
                which = f"{owner.merchant_id}/{owner.account_id}"
                return (
                    f"an instruction or a case of {which} from before is still open (`recon "
                    "status`)"
                )
        return ""

    def _still_open(self, run: Run) -> str:
        """Why the folder of a run stays by what it shows; "" when nothing of it is open."""
        connection, environment = self.connection, self.environment
        if not {link.step for link in links(connection, run.run_id)} >= {*STEPS}:
            return "its folder is not whole"
        own = kept_results.open_breaks(connection, run.run_id, environment=environment)
        is_open = own is not None and {*own["break_id"], *own["order_no"]} & self._open
        return "a break that it shows is still open" if is_open else ""

    def looked_at(self, run: Run, *, many: int = 0) -> OldNight | str:
        """The folder of a run that may go, every byte of it as it was sealed; else why it stays.

        `many`: how many go already in the same call.
        """
        connection, environment = self.connection, self.environment
        try:
            if reason := self.unsettled(run) or self._still_open(run):
                return reason
            if many >= NIGHTS_AT_ONCE:
                return f"{NIGHTS_AT_ONCE} nights go at once, the next time takes the rest"
            if problems := folder_problems(connection, run, environment=environment):
                return f"{problems[0]} (`recon verify {run.run_id}`)"
            return _listed(connection, run, environment=environment)
        except (ArchiveError, ConfigurationError) as error:
            return f"{UNREAD}: {error}"


def old_nights(environment: Environment, *, days: int) -> OldNights:
    """The folders that are older than so many days: those that may go, and why others stay."""
    going: list[OldNight] = []
    why: dict[str, list[date]] = {}
    accounts: dict[tuple[str, str], _Account] = {}
    with environment.store.reading() as connection:
        half_gone = let_go_rows.half_gone(connection)
        older = _older(connection, days=days, environment=environment)
        problem = _unsafe(connection, environment=environment) if older else ""
        for run in older:
            account = accounts.setdefault(
                (run.merchant_id, run.account_id), _Account(connection, environment, run, days)
            )
            night = problem or account.looked_at(run, many=len(going))
            if isinstance(night, OldNight):
                going.append(night)
            else:
                why.setdefault(night, []).append(run.business_date)
    staying = [f"{len(days)} older stay ({_span(days)}): {reason}" for reason, days in why.items()]
    return OldNights(going, half_gone, staying)


def let_go(
    nights: Iterable[OldNight], *, days: int, by: str, environment: Environment
) -> Iterator[str]:
    """Let these folders go, each under its account's lock; a sentence for each that stays.

    Everything is asked again: minutes may lie between what was shown and this.
    """
    with environment.store.reading() as connection:
        problem = _unsafe(connection, environment=environment)
    for night in nights:
        run = night.run
        try:
            with account_lock(
                environment.store, merchant_id=run.merchant_id, account_id=run.account_id
            ):
                reason = problem or _let_one_go(night, days=days, by=by, environment=environment)
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
    gone = {each.run_id for each in let_go_rows.all_let_go(connection)}
    named = [
        each.run_id
        for each in runs.finished(connection)
        if each.business_date < before.date() and each.run_id not in gone
    ]
    every = [runs.get(connection, run_id) for run_id in named]
    return sorted(
        (run for run in every if run.started_at < before), key=lambda run: run.business_date
    )


def _unsafe(connection: Connection, *, environment: Environment) -> str:
    """Why no night may go at all today; "" when nothing speaks against it."""
    _, broken = history.verify(connection)
    problem = broken or next(close_problems(connection, environment=environment), "")
    return f"{problem}: `recon verify`" if problem else ""


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
    folder = folder_of(run)
    is_signed = bool(sign_off_rows.signatures(connection, run.run_id))
    return [
        name
        for name in storage.names(folder)
        if not is_kept(name.removeprefix(f"{folder}/"), is_signed=is_signed)
    ]


def _let_one_go(night: OldNight, *, days: int, by: str, environment: Environment) -> str:
    """Let a folder go; why it stays.

    Its bytes are read while others may write. People may sign it, reopen its month or hand out a
    journal meanwhile: the transaction that notes it asks that again.
    """
    run = night.run
    names = [name.removeprefix(f"{folder_of(run)}/") for name in night.names[:NAMES_TOLD_MAX]]
    try:
        with environment.store.reading() as connection:
            names_under_it = sign_off_rows.signatures(connection, run.run_id)
            again = _Account(connection, environment, run, days).looked_at(run)
        if isinstance(again, str):
            return again
        if again.list_sha256 != night.list_sha256:
            return "its files are not those that were shown; the next housekeeping shows them"
        with environment.store.writing() as connection:
            if reason := _Account(connection, environment, run, days).unsettled(run):
                return reason
            names_now = sign_off_rows.signatures(connection, run.run_id)
            if names_now != names_under_it:
                return "somebody signed it meanwhile; the next housekeeping looks again"
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
        _remove(run, names=night.names, environment=environment)
    except (ArchiveError, ConfigurationError) as error:
        return f"{error}; the next housekeeping tries again"
    return ""


def _finish_one(going: LetGo, *, environment: Environment) -> Iterator[str]:
    """Remove what is left of a folder, and nothing that is not what was let go."""
    try:
        with environment.store.reading() as connection:
            if going not in let_go_rows.half_gone(connection):
                return
            run = runs.get(connection, going.run_id)
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
