"""What is older than retention.toml keeps: shown, or deleted with a line in the history.

Only what a key names is looked at: plain files of folders that we fill, never through a link,
replies of batches that are closed and decided, and folders of nights. Such a folder goes only when
its month is closed, everything that it showed as open is closed, nothing of today still reads it,
and every byte of it was found as it was sealed in the same call; what stays is in `night_folder`.
The history is written first, so that nothing ever disappears without a word in it; whoever is
killed in between is finished by the next call.
"""

import hashlib
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

from recon.archive.step_folder import whole_file
from recon.archive.storage import reachable
from recon.files.formats.named_bytes import sha256_of
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.bank_file import ENDINGS
from recon.model.business_date import month_of
from recon.model.errors import (
    ArchiveBrokenError,
    ArchiveError,
    ConfigurationError,
    NightHeldError,
    UsageError,
)
from recon.model.nights import Mode
from recon.privacy.shown_text import shown_name
from recon.steps.care.verify import STRANGE, folder_problems, forgotten_folders
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_results import KeptResult
from recon.steps.ground.night_folder import (
    RESULTS,
    folder_of,
    is_attempt,
    is_kept,
    sealed_night,
    storage_of,
)
from recon.steps.ground.stages import FOLDER as METRICS
from recon.steps.month.folders import close_problems
from recon.store import Connection
from recon.store.database import history
from recon.store.database.night_lock import account_lock
from recon.store.money import instruction_rows
from recon.store.money.lasting_journal import ASIDE
from recon.store.money.lasting_journal import FOLDER as SPILL
from recon.store.nights import answer_parts, bank_rows, journal_rows, runs, sign_off_rows
from recon.store.nights.runs import LetGo, Run
from recon.store.people import closed_months
from recon.store.schema.columns import OfAccount
from recon.telling.night_log import LOG_VARIABLE

ENTITY = "retention"
DELETES = "deletes"
FILES_MAX = 100_000
"""Of one kind in one go; the next time takes the rest."""
NAMES_TOLD_MAX = 50
REPLIES = "replies of closed batches"
NIGHTS = "folders of nights"


@dataclass(frozen=True, slots=True)
class OldNight:
    """The folder of one night that may go."""

    run: Run
    sizes: Mapping[str, int]
    """Name below the archive -> bytes, of its files that go."""

    @property
    def size_bytes(self) -> int:
        """Of all of them."""
        return sum(self.sizes.values())


@dataclass(frozen=True, slots=True)
class Spared:
    """What of one kind is older than it is kept."""

    kind: str
    days: int
    count: int
    size_bytes: int
    oldest: datetime | None
    files: tuple[Path, ...] = ()
    nights: tuple[OldNight, ...] = ()
    """Folders that may go."""
    half_gone: tuple[LetGo, ...] = ()
    """Folders that were let go before, and not to the end."""
    notes: tuple[str, ...] = ()
    """What stays though it is older, and what an earlier call left, each as a sentence."""

    def __str__(self) -> str:
        words = f"{self.kind}, kept {self.days} days: {self.count} older"
        if self.oldest is None:
            return words
        return (
            f"{words} ({self.size_bytes / 1024**2:.1f} MiB, the oldest of {self.oldest:%Y-%m-%d})"
        )


def housekeeping(environment: Environment) -> tuple[Spared, ...]:
    """What is older than it is kept, for each kind that has an age; nothing changes."""
    keeps = environment.settings.retention
    spared = []
    for kind, days, files in _kinds(environment):
        if days is not None:
            before = _before(days, environment=environment)
            old = sorted((at, path) for at, path in _dated(files(before)) if at < before)
            paths = tuple(path for _, path in old[:FILES_MAX])
            size = sum(path.lstat().st_size for path in paths)
            oldest = old[0][0] if old else None
            spared.append(Spared(kind, days, len(paths), size, oldest, paths))
    if (days := keeps.replies_days) is not None:
        with environment.store.reading() as connection:
            before = _before(days, environment=environment)
            replies = instruction_rows.old_replies(connection, before=before)
        spared.append(Spared(REPLIES, days, replies.count, replies.size_bytes, replies.oldest))
    if keeps.nights_days is not None:
        spared.append(_old_nights(environment, days=keeps.nights_days))
    return tuple(spared)


def delete(
    spared: Iterable[Spared], *, by: str, environment: Environment
) -> tuple[tuple[Spared, ...], tuple[str, ...]]:
    """Delete what `housekeeping` found; what it was, and a sentence for each file that stayed.

    Raises:
        UsageError: nobody is named.
    """
    by = by.strip()
    if not by:
        msg = "say who deletes (--as); nothing was deleted"
        raise UsageError(msg)
    spared = [*spared]
    wanted = [kind for kind in spared if kind.count and kind.kind != NIGHTS]
    with environment.store.writing() as connection:
        events = [history.Event(ENTITY, kind.kind, DELETES, _told(kind, by=by)) for kind in wanted]
        history.append(connection, events, at=environment.clock())
        for kind in wanted:
            if kind.kind == REPLIES:
                before = _before(kind.days, environment=environment)
                instruction_rows.forget_replies(connection, before=before)
    stayed = []
    for path in (path for kind in wanted for path in kind.files):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            stayed.append(f"{path} stays ({error.strerror}); the next housekeeping tries again")
    for kind in spared:
        stayed += _finished(kind.half_gone, environment=environment)
        stayed += _let_go(kind.nights, days=kind.days, by=by, environment=environment)
    gone = (kind for kind in spared if kind.count and kind.kind == NIGHTS)
    return (*wanted, *gone), tuple(stayed)


Files = Callable[[datetime], Iterable[Path]]
"""Files of a kind, by the instant before which one is older than it is kept."""


def _kinds(environment: Environment) -> Iterator[tuple[str, int | None, Files]]:
    """Each kind of file: its name, how many days it is kept, and the files there are."""
    settings, variables = environment.settings, environment.variables
    keeps, accounts = settings.retention, settings.accounts.values()
    archives = {account.archive for account in accounts if account.archive is not None}
    reports = {account.reports for account in accounts}
    database = environment.store.path
    spills = {folder / SPILL for folder in reports}
    if database is not None:
        spills.add(database.with_name(f"{database.name}.{SPILL}"))
    metrics = {folder / METRICS for folder in reports}
    log = variables.get(LOG_VARIABLE, "").strip()
    # `night.log.1`, `night.log-20261120.gz`: beside the log, never the log itself.
    logs = [f"{Path(log).name}{mark}*" for mark in ".-"] if log else []
    beside = {Path(log).parent}
    statements = partial(_read_statements, environment=environment)
    yield "archived order files", keeps.archive_days, lambda _: _in(archives, "**/[!.]*")
    yield "statements of banks that were read", keeps.statements_days, statements
    yield "figures of stages", keeps.metrics_days, lambda _: _in(metrics, "*.json")
    yield "logs that were moved away", keeps.logs_days, lambda _: _in(beside, *logs)
    yield "spill files set aside", keeps.set_aside_days, lambda _: _in(spills, f"*{ASIDE}")
    replaced = keeps.replaced_workbooks_days
    yield "replaced workbooks", replaced, lambda _: _replaced(environment)
    if (backups := keeps.backups) is not None:
        dated = _dated(_in({backups.folder}, backups.files))
        old = [path for _, path in sorted(dated, reverse=True)[backups.keep :]]
        yield "backups", backups.days, lambda _: old


def _in(folders: Iterable[Path], *names: str) -> list[Path]:
    return sorted({path for folder in folders for name in names for path in folder.glob(name)})


def _read_statements(before: datetime, *, environment: Environment) -> Iterator[Path]:
    """Statements in the inboxes of banks whose very content a night has read."""
    for bank, folder in sorted(environment.settings.banks.items()):
        waiting = inbox(folder.inbox, layouts=folder.layouts, endings=ENDINGS)
        for path in [path for at, path in _dated(waiting.files) if at < before][:FILES_MAX]:
            name, sha256 = bank_rows.name_of(bank, shown_name(path.name)), sha256_of(path)
            with environment.store.reading() as connection:
                read = bank_rows.read_before(connection, name=name, sha256=sha256)
            if read is not None:
                yield path


def _replaced(environment: Environment) -> list[Path]:
    """Workbooks of replaced runs that nobody signed, where they lie in a declared folder."""
    folders = {account.reports.resolve() for account in environment.settings.accounts.values()}
    with environment.store.reading() as connection:
        paths = [Path(path) for path in instruction_rows.replaced_workbooks(connection)]
    return sorted(path for path in paths if path.resolve().parent in folders)


def _dated(files: Iterable[Path]) -> Iterator[tuple[datetime, Path]]:
    """When each plain file was last written; links and folders are left out."""
    for path in files:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            yield datetime.fromtimestamp(status.st_mtime, UTC), path


def _before(days: int, *, environment: Environment) -> datetime:
    return environment.clock() - timedelta(days=days)


def _told(spared: Spared, *, by: str) -> dict[str, object]:
    listed = "\n".join(map(str, spared.files))
    return {
        "by": by,
        "days": spared.days,
        "count": spared.count,
        "bytes": spared.size_bytes,
        "names": [path.name for path in spared.files[:NAMES_TOLD_MAX]],
        "list_sha256": hashlib.sha256(listed.encode()).hexdigest(),
    }


NIGHTS_AT_ONCE = 100
"""Folders that are looked through, byte by byte, in one go; the next time takes the rest."""
UNREAD = "folders of old nights could not be looked at, and none of them was let go"


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
        finished = runs.last_finished(self.connection, self.like)
        return {day: run for day, run in finished.items() if run.mode is Mode.LIVE}

    @cached_property
    def _read_from(self) -> date:
        """From this business date on nights are read: by the newest one, and by open months."""
        name, until = self.like.account, self.environment.clock().date()
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
        if (reader := journal_rows.newest_reader(self.connection, self.like)) is not None:
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
        frames = KeptResult(self.connection, newest, self.environment).frames("breaks", "movements")
        breaks, reopened = frames["breaks"], frames["movements"]["reopens"]
        return {*breaks["break_id"], *breaks["order_no"], *reopened} - {""}

    def unsettled(self, run: Run) -> str:
        """Why the folder of a run stays by what the database has; "" when nothing needs it.

        Raises:
            ArchiveError: the newest night cannot be read.
        """
        name, month = self.like.account, month_of(run.business_date)
        if runs.let_go_of(self.connection, run.run_id) is not None:
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
        before = _before(self.days, environment=self.environment)
        parts = [part for part in answer_parts.of_run(self.connection, run.run_id) if part.answered]
        newest = max((part.last_at for part in parts if part.last_at is not None), default=before)
        asked = {(part.merchant_id, part.account_id): part for part in parts}
        owners: tuple[OfAccount, ...] = (run, *asked.values())
        for owner in owners:
            if instruction_rows.open_money(self.connection, owner, before=max(before, newest)):
                which = f"{owner.merchant_id}/{owner.account_id}"
                return (
                    f"an instruction or a case of {which} from before is still open (`recon "
                    "status`)"
                )
        return ""

    def looked_at(self, run: Run, *, many: int = 0) -> OldNight | str:
        """The folder of a run that may go, every byte of it as it was sealed; else why it stays.

        `many`: how many go already in the same call.
        """
        connection, environment = self.connection, self.environment
        try:
            if reason := self.unsettled(run):
                return reason
            own = KeptResult(connection, run.run_id, environment).open_breaks()
            if own is not None and {*own["break_id"], *own["order_no"]} & self._open:
                return "a break that it shows is still open"
            if many >= NIGHTS_AT_ONCE:
                return f"{NIGHTS_AT_ONCE} nights go at once, the next time takes the rest"
            if problems := folder_problems(connection, run, environment=environment):
                return f"{problems[0]} (`recon verify {run.run_id}`)"
            sizes, keeping = _going(connection, run, environment=environment)
            return keeping[0] if keeping else OldNight(run, sizes)
        except (ArchiveError, ConfigurationError) as error:
            return f"{UNREAD}: {error}"


def _old_nights(environment: Environment, *, days: int) -> Spared:
    """The folders that are older than so many days: those that may go, and why others stay."""
    going: list[OldNight] = []
    why: dict[str, list[date]] = {}
    accounts: dict[tuple[str, str], _Account] = {}
    before = _before(days, environment=environment)
    with environment.store.reading() as connection:
        half_gone = runs.half_gone(connection)
        gone = {each.run_id for each in runs.all_let_go(connection)}
        named = [
            runs.get(connection, each.run_id)
            for each in runs.finished(connection)
            if each.business_date < before.date() and each.run_id not in gone
        ]
        older = [run for run in named if run.started_at < before]
        problem = _unsafe(connection, environment=environment) if older else ""
        for run in sorted(older, key=lambda run: run.business_date):
            account = accounts.setdefault(run.account, _Account(connection, environment, run, days))
            night = problem or account.looked_at(run, many=len(going))
            if isinstance(night, OldNight):
                going.append(night)
            else:
                why.setdefault(night, []).append(run.business_date)
    notes = [f"{each}: files of it are left, --delete removes them" for each in half_gone]
    for reason, dates in why.items():
        span = f"{dates[0]}" if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        notes.append(f"{len(dates)} older stay ({span}): {reason}")
    return Spared(
        NIGHTS,
        days,
        len(going),
        sum(night.size_bytes for night in going),
        min((night.run.started_at for night in going), default=None),
        nights=tuple(going),
        half_gone=tuple(half_gone),
        notes=tuple(notes),
    )


def _let_go(
    nights: Sequence[OldNight], *, days: int, by: str, environment: Environment
) -> Iterator[str]:
    """Let these folders go, each under its account's lock; a sentence for each that stays.

    Everything is asked again: minutes may lie between what was shown and this.
    """
    if not nights:
        return
    with environment.store.reading() as connection:
        problem = _unsafe(connection, environment=environment)
    for night in nights:
        run = night.run
        go = partial(_let_one_go, night, days=days, by=by, environment=environment)
        if reason := problem or _under_lock(run, go, environment=environment):
            yield f"the folder of {run.business_date} ({run.run_id}) stays: {reason}"


def _finished(half_gone: Iterable[LetGo], *, environment: Environment) -> Iterator[str]:
    """Remove what is left of folders that were let go; a sentence for each that is not finished."""
    for going in half_gone:
        go = partial(_finish_one, going, environment=environment)
        if reason := _under_lock(going, go, environment=environment):
            yield f"files of {going.business_date} ({going.run_id}) are left: {reason}"


def _under_lock(of: OfAccount, go: Callable[[], str], *, environment: Environment) -> str:
    """Let something go while nobody else works at its account; why it stays."""
    try:
        with account_lock(environment.store, of):
            return go()
    except NightHeldError:
        return "a night of the account is at work"
    except (ArchiveError, ConfigurationError) as error:
        return f"{error}; the next housekeeping tries again"


def _unsafe(connection: Connection, *, environment: Environment) -> str:
    """Why no night may go at all today; "" when nothing speaks against it."""
    _, broken = history.verify(connection)
    problem = broken or next(
        chain(
            close_problems(connection, environment=environment),
            forgotten_folders(connection, environment=environment),
        ),
        "",
    )
    return f"{problem}: `recon verify`" if problem else ""


def _going(
    connection: Connection, run: Run, *, environment: Environment
) -> tuple[dict[str, int], list[str]]:
    """The files of a run's folder that go with it, by size, and what must not go, in sentences."""
    storage, folder = storage_of(run, environment=environment), folder_of(run)
    is_signed = bool(sign_off_rows.signatures(connection, run.run_id))
    sealed = {
        f"{step.folder}/{entry.name}": (step, entry)
        for step in sealed_night(connection, run, environment=environment).steps.values()
        for entry in step.manifest.files
    }
    sizes: dict[str, int] = {}
    problems: list[str] = []
    with reachable(storage, doing=UNREAD):
        for name in storage.names(folder):
            below = name.removeprefix(f"{folder}/")
            if is_kept(below, is_signed=is_signed):
                continue
            if name in sealed:
                step, entry = sealed[name]
                try:
                    sizes[name] = len(whole_file(storage, step, name=entry.name))
                except ArchiveBrokenError as error:
                    problems.append(f"{error}: nothing more of that folder goes; look at why")
            elif is_attempt(below):
                sizes[name] = len(storage.read(name))
            else:
                problems.append(f"{name} {STRANGE}, the next housekeeping goes on")
    return sizes, problems


def _let_one_go(night: OldNight, *, days: int, by: str, environment: Environment) -> str:
    """Let a folder go; why it stays.

    Its bytes are read while others may write. People may sign it, reopen its month or hand out a
    journal meanwhile: the transaction that notes it asks that again.
    """
    run, sizes = night.run, night.sizes
    with environment.store.reading() as connection:
        names_under_it = sign_off_rows.signatures(connection, run.run_id)
        again = _Account(connection, environment, run, days).looked_at(run)
    if isinstance(again, str):
        return again
    if again.sizes != sizes:
        return "its files are not those that were shown; the next housekeeping shows them"
    listed = "\n".join(f"{size} {name}" for name, size in sizes.items())
    names = [name.removeprefix(f"{folder_of(run)}/") for name in [*sizes][:NAMES_TOLD_MAX]]
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
            len(sizes),
            night.size_bytes,
            hashlib.sha256(listed.encode()).hexdigest(),
        )
        details = {"days": days, "folder": folder_of(run), "names": names}
        runs.note_let_go(connection, going, details=details)
    environment.crash_point("let a night go")
    _remove(run, names=sizes, environment=environment)
    return ""


def _finish_one(going: LetGo, *, environment: Environment) -> str:
    """Remove what is left of a folder, and nothing that is not what was let go; why it stays."""
    with environment.store.reading() as connection:
        if going not in runs.half_gone(connection):
            return ""
        run = runs.get(connection, going.run_id)
        sizes, problems = _going(connection, run, environment=environment)
    if not problems:
        _remove(run, names=sizes, environment=environment)
    return "; ".join(problems)


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
        runs.note_gone(connection, run.run_id, at=environment.clock())
