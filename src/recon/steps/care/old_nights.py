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

from recon.archive.step_folder import ASIDE
from recon.archive.storage import Storage, reachable
from recon.model.errors import ArchiveError, ConfigurationError, NightHeldError
from recon.model.nights import Mode
from recon.steps.care.sealed_closes import close_problems
from recon.steps.care.verify_folder import folder_problems
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment
from recon.steps.ground.let_go_nights import is_kept
from recon.steps.ground.night_folder import RESULTS, STEPS, folder_of, links, storage_of
from recon.steps.ground.sealed_night import sealed_night
from recon.store import Connection
from recon.store.database import history
from recon.store.database.night_lock import account_lock
from recon.store.money import retention_rows
from recon.store.nights import journal_rows, ledger_rows, let_go_rows, runs, sign_off_rows
from recon.store.nights.let_go_rows import LetGo
from recon.store.nights.runs import Run
from recon.store.people import closed_months

NIGHTS_AT_ONCE = 100
"""Folders that are looked through, byte by byte, in one go; the next time takes the rest."""
NAMES_TOLD_MAX = 50
"""Names of files in the link of the history; the manifests that stay have them all."""
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
    why: dict[str, list[str]] = {}
    with environment.store.reading() as connection:
        half_gone = let_go_rows.half_gone(connection)
        older = _older(connection, days=days, environment=environment)
        if not older:
            return OldNights((), half_gone)
        problem = _unsafe(connection, environment=environment)
        accounts = _Accounts(connection, environment, days)
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
    """Let these folders go, each under its account's lock; a sentence for each that stays."""
    for night in nights:
        run = night.run
        try:
            with account_lock(
                environment.store, merchant_id=run.merchant_id, account_id=run.account_id
            ):
                yield from _let_one_go(night, days=days, by=by, environment=environment)
        except NightHeldError:
            yield (
                f"the folder of {run.business_date} ({run.run_id}) stays: a night of the account "
                "is at work"
            )


def finish(half_gone: Iterable[LetGo], *, environment: Environment) -> Iterator[str]:
    """Remove what is left of folders that were let go; a sentence for each that is not finished."""
    for going in half_gone:
        with environment.store.reading() as connection:
            run = runs.get(connection, going.run_id)
        yield from _remove(run, environment=environment)


def _older(connection: Connection, *, days: int, environment: Environment) -> list[Run]:
    """Finished runs of nights that are older, and were not let go yet; the oldest first."""
    before = environment.clock() - timedelta(days=days)
    day = before.date().isoformat()
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


def _needed(account: "_Account", run: Run) -> str:
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
        return _listed(connection, run, environment=environment)
    except (ArchiveError, ConfigurationError) as error:
        return f"{UNREAD}: {error}"


def _listed(connection: Connection, run: Run, *, environment: Environment) -> OldNight | str:
    """What of a whole folder goes."""
    storage = storage_of(run, environment=environment)
    steps = sealed_night(connection, run, environment=environment).steps.values()
    sealed = {
        f"{step.folder}/{entry.name}": entry for step in steps for entry in step.manifest.files
    }
    sizes: dict[str, int] = {}
    with reachable(storage, doing=UNREAD):
        for name in _going(connection, run, storage=storage):
            if name not in sealed and ASIDE not in name.removeprefix(folder_of(run)):
                return f"{name} lies in the folder of a night, and nobody sealed it"
            sizes[name] = sealed[name].bytes if name in sealed else len(storage.read(name))
    listed = "\n".join(f"{size} {name}" for name, size in sizes.items())
    digest = hashlib.sha256(listed.encode()).hexdigest()
    return OldNight(run, [*sizes], sum(sizes.values()), digest)


def _going(connection: Connection, run: Run, *, storage: Storage) -> list[str]:
    """The files of a run's folder that do not stay when it goes, by name."""
    folder = folder_of(run)
    is_signed = bool(sign_off_rows.signatures(connection, run.run_id))
    return [
        name
        for name in storage.names(folder)
        if not is_kept(name.removeprefix(f"{folder}/"), is_signed=is_signed)
    ]


def _let_one_go(night: OldNight, *, days: int, by: str, environment: Environment) -> Iterator[str]:
    run = night.run
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
    names = [name.removeprefix(f"{folder_of(run)}/") for name in night.names[:NAMES_TOLD_MAX]]
    with environment.store.reading() as connection:
        reason = _needed(_Account(connection, environment, run, days), run)
    with environment.store.writing() as connection:
        # People may close or reopen a month, or let the same folder go, while no night runs.
        reason = reason or _Account(connection, environment, run, days).unsettled(run)
        if not reason:
            details = {"days": days, "folder": folder_of(run), "names": names}
            let_go_rows.note_let_go(connection, going, details=details)
    if reason:
        yield f"the folder of {run.business_date} ({run.run_id}) stays: {reason}"
        return
    environment.crash_point("let a night go")
    yield from _remove(run, environment=environment)


def _remove(run: Run, *, environment: Environment) -> Iterator[str]:
    """Remove the files of a folder that was let go, and say so in the history."""
    try:
        storage = storage_of(run, environment=environment)
        with reachable(storage, doing=f"files of {folder_of(run)} are left"):
            with environment.store.reading() as connection:
                names = _going(connection, run, storage=storage)
            for name in names:
                storage.remove(name)
                environment.crash_point("removed a file of a night")
    except (ArchiveError, ConfigurationError) as error:
        yield f"{error}; the next housekeeping tries again"
        return
    with environment.store.writing() as connection:
        let_go_rows.note_gone(connection, run.run_id, at=environment.clock())


@dataclass(frozen=True)
class _Account:
    """What of an account's nights is still needed."""

    connection: Connection
    environment: Environment
    like: Run
    """Any run of it."""
    days: int

    @property
    def _name(self) -> tuple[str, str]:
        return self.like.merchant_id, self.like.account_id

    @cached_property
    def live(self) -> dict[str, Run]:
        """Its finished live nights by business date."""
        finished = runs.last_finished(
            self.connection, merchant_id=self._name[0], account_id=self._name[1]
        )
        return {day: run for day, run in finished.items() if run.mode is Mode.LIVE}

    @cached_property
    def first_open(self) -> str:
        """The first month with a night that nobody closed, with nothing closed after it."""
        until = self.environment.clock().date()
        months = sorted({day[:7] for day in self.live})
        return next((month for month in months if not self._is_shut(month, until=until)), "9999-99")

    @cached_property
    def read_from(self) -> str:
        """The business date from which on nights are read: by the next one, and by open months."""
        before = [day for day in self.live if day[:7] < self.first_open]
        return max(before, default="")

    @cached_property
    def needed(self) -> dict[str, str]:
        """Run -> what still reads its folder."""
        needed = {each.run_id: "a journal of it is not in the books yet" for each in self._journals}
        reader = ledger_rows.newest_reader(self.connection, self.like)
        if reader is not None:
            needed[reader] = "its books are the newest that were read"
        newest = runs.newest_live(
            self.connection, merchant_id=self._name[0], account_id=self._name[1]
        )
        for run in (newest, self.live[max(self.live)]):
            if run is None:
                continue
            needed[run.run_id] = "it is the newest of its account"
            night = sealed_night(self.connection, run, environment=self.environment)
            if RESULTS in night.steps:
                before = night.steps[RESULTS].manifest.about.predecessor
                needed.setdefault(before, "the newest night carried its breaks forward")
        return needed

    @property
    def _journals(self) -> list[journal_rows.Out]:
        return journal_rows.not_seen_in_the_books(self.connection)

    @cached_property
    def open_money(self) -> bool:
        """Whether money of before is not decided; its evidence lies in answers of nights."""
        before = self.environment.clock() - timedelta(days=self.days)
        return retention_rows.open_money(self.connection, self.like, before=before)

    @cached_property
    def open_breaks(self) -> set[str]:
        """Breaks that are open today, what they open again, and the orders that they are of."""
        newest = self.live[max(self.live)]
        frames = kept_results.frames(
            self.connection,
            newest.run_id,
            names=("breaks", "movements"),
            environment=self.environment,
        )
        names = {*frames["breaks"]["break_id"], *frames["breaks"]["order_no"]}
        return (names | {*frames["movements"]["reopens"]}) - {""}

    def needs(self, run: Run) -> str:
        """Why the folder of a run of the account stays; "" when nothing needs it.

        Raises:
            ArchiveError: the newest night, or this one, cannot be read.
        """
        which = "/".join(self._name)
        if reason := self.unsettled(run):
            return reason
        if run.business_date >= self.read_from or not self.live:
            return f"nights of {which} from {self.read_from} on are read by what is open"
        if run.run_id in self.needed:
            return self.needed[run.run_id]
        if not {link.step for link in links(self.connection, run.run_id)} >= {*STEPS}:
            return "its folder is not whole"
        if self.open_money:
            return f"an instruction or a case of {which} from before is still open (`recon status`)"
        own = kept_results.open_breaks(self.connection, run.run_id, environment=self.environment)
        shown = set() if own is None else {*own["break_id"], *own["order_no"]}
        still = len(shown & self.open_breaks)
        return f"a break that it shows is still open ({which})" if still else ""

    def unsettled(self, run: Run) -> str:
        """Why the folder stays by what people said; "" when its month is closed."""
        month, which = run.business_date[:7], "/".join(self._name)
        if let_go_rows.let_go_of(self.connection, run.run_id) is not None:
            return "somebody let it go at the same time"
        if closed_months.state_of(self.connection, self._name, month=month).closed is None:
            return f"{month} of {which} is not closed (`recon close {month}`)"
        return ""

    def _is_shut(self, month: str, *, until: date) -> bool:
        closed = closed_months.closed_since(self.connection, self._name, month=month, until=until)
        return closed is not None


class _Accounts:
    """Each account's answers, asked once."""

    def __init__(self, connection: Connection, environment: Environment, days: int) -> None:
        self._asked = (connection, environment, days)
        self._known: dict[tuple[str, str], _Account] = {}

    def of(self, run: Run) -> _Account:
        """The account of a run."""
        connection, environment, days = self._asked
        return self._known.setdefault(
            (run.merchant_id, run.account_id), _Account(connection, environment, run, days)
        )


def _span(days: Sequence[str]) -> str:
    return days[0] if len(days) == 1 else f"{min(days)} to {max(days)}"
