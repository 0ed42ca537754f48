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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
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
class Spared:
    """What of one kind is older than it is kept."""

    kind: str
    days: int
    count: int
    size_bytes: int
    oldest: datetime | None
    files: tuple[Path, ...] = ()
    nights: tuple[Run, ...] = ()
    """Whose folders may go."""
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
        if kind.kind == NIGHTS:
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


def _old_nights(environment: Environment, *, days: int) -> Spared:
    """The folders that are older than so many days: those that may go, and why others stay."""
    going: list[tuple[Run, int]] = []
    why: dict[str, list[date]] = {}
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
            if not problem and len(going) >= NIGHTS_AT_ONCE:
                problem = f"{NIGHTS_AT_ONCE} nights go at once, the next time takes the rest"
            sizes, reason = (
                ({}, problem)
                if problem
                else _looked_at(connection, run, days=days, environment=environment)
            )
            if reason:
                why.setdefault(reason, []).append(run.business_date)
            else:
                going.append((run, sum(sizes.values())))
    notes = [f"{each}: files of it are left, --delete removes them" for each in half_gone]
    for reason, dates in why.items():
        span = f"{dates[0]}" if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        notes.append(f"{len(dates)} older stay ({span}): {reason}")
    return Spared(
        NIGHTS,
        days,
        len(going),
        sum(size for _, size in going),
        min((run.started_at for run, _ in going), default=None),
        nights=tuple(run for run, _ in going),
        notes=tuple(notes),
    )


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


def _looked_at(
    connection: Connection, run: Run, *, days: int, environment: Environment
) -> tuple[dict[str, int], str]:
    """The files of a folder that may go, by size, every byte as it was sealed; else why it stays.

    Of what the newest night shows as open, neither the breaks nor their orders may be in it.
    """
    try:
        if reason := next(_needs(connection, run, days=days, environment=environment), ""):
            return {}, reason
        nights = _live(connection, run)
        newest = KeptResult(connection, nights[max(nights)].run_id, environment)
        frames = newest.frames("breaks", "movements")
        shown, reopened = frames["breaks"], frames["movements"]["reopens"]
        is_open = {*shown["break_id"], *shown["order_no"], *reopened} - {""}
        own = KeptResult(connection, run.run_id, environment).open_breaks()
        if own is not None and {*own["break_id"], *own["order_no"]} & is_open:
            return {}, "a break that it shows is still open"
        if problems := folder_problems(connection, run, environment=environment):
            return {}, f"{problems[0]} (`recon verify {run.run_id}`)"
        sizes, keeping = _going(connection, run, environment=environment)
        return sizes, "".join(keeping[:1])
    except (ArchiveError, ConfigurationError) as error:
        return {}, f"{UNREAD}: {error}"


def _live(connection: Connection, run: Run) -> dict[date, Run]:
    """The finished live nights of a run's account by business date."""
    finished = runs.last_finished(connection, run)
    return {day: each for day, each in finished.items() if each.mode is Mode.LIVE}


def _needs(
    connection: Connection, run: Run, *, days: int, environment: Environment
) -> Iterator[str]:
    """Why the folder of a run stays by what the database has; nothing when nobody needs it."""

    def is_closed(day: date) -> bool:
        of_month = closed_months.state_of(connection, run.account, month=month_of(day))
        return of_month.closed is not None

    name, month = "/".join(run.account), month_of(run.business_date)
    if runs.let_go_of(connection, run.run_id) is not None:
        yield "somebody let it go at the same time"
    if not is_closed(run.business_date):
        yield f"{month} of {name} is not closed (`recon close {month}`)"
    after = [day for day in _live(connection, run) if day > run.business_date]
    if not after or not is_closed(min(after)):
        yield f"nights of {name} from {run.business_date} on are read by what is open"
    if any(out.run_id == run.run_id for out in journal_rows.not_seen_in_the_books(connection)):
        yield "a journal of it is not in the books yet"
    if run.run_id == journal_rows.newest_reader(connection, run):
        yield "its books are the newest that were read"
    # Money that its answers may decide: a night asks its merchant's other accounts too, and only
    # answers that came after an instruction was planned say anything of it.
    before = _before(days, environment=environment)
    parts = [part for part in answer_parts.of_run(connection, run.run_id) if part.answered]
    newest = max((part.last_at for part in parts if part.last_at is not None), default=before)
    for owner in sorted({run.account, *((part.merchant_id, part.account_id) for part in parts)}):
        if instruction_rows.open_money(connection, owner, before=max(before, newest)):
            which = "/".join(owner)
            yield f"an instruction or a case of {which} from before is still open (`recon status`)"


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
                    problems.append(f"{error}: nothing more of that folder goes; see who wrote it")
            elif is_attempt(below):
                sizes[name] = len(storage.read(name))
            else:
                problems.append(f"{name} {STRANGE}, the next housekeeping goes on")
    return sizes, problems


def _let_go(
    nights: Sequence[Run], *, days: int, by: str, environment: Environment
) -> Iterator[str]:
    """Let these folders go, then remove what is left of any; a sentence for each that stays.

    Everything is asked again: minutes may lie between what was shown and this.
    """
    with environment.store.reading() as connection:
        problem = _unsafe(connection, environment=environment) if nights else ""
    for run in nights:
        go = partial(_note_let_go, run, days=days, by=by, environment=environment)
        if reason := problem or _under_lock(run, go, environment=environment):
            yield f"the folder of {run.business_date} ({run.run_id}) stays: {reason}"
    with environment.store.reading() as connection:
        half_gone = runs.half_gone(connection)
    for going in half_gone:
        remove = partial(_remove, going, environment=environment)
        if reason := _under_lock(going, remove, environment=environment):
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


def _note_let_go(run: Run, *, days: int, by: str, environment: Environment) -> str:
    """Say in the history that a folder goes; why it stays.

    Its bytes are read while others may write. People may sign it, reopen its month or hand out a
    journal meanwhile: the transaction that notes it asks that again.
    """
    with environment.store.reading() as connection:
        names_under_it = sign_off_rows.signatures(connection, run.run_id)
        sizes, reason = _looked_at(connection, run, days=days, environment=environment)
    if reason:
        return reason
    listed = "\n".join(f"{size} {name}" for name, size in sizes.items())
    names = [name.removeprefix(f"{folder_of(run)}/") for name in [*sizes][:NAMES_TOLD_MAX]]
    with environment.store.writing() as connection:
        if reason := next(_needs(connection, run, days=days, environment=environment), ""):
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
            sum(sizes.values()),
            hashlib.sha256(listed.encode()).hexdigest(),
        )
        details = {"days": days, "folder": folder_of(run), "names": names}
        runs.note_let_go(connection, going, details=details)
    environment.crash_point("let a night go")
    return ""


def _remove(going: LetGo, *, environment: Environment) -> str:
    """Remove what is left of a folder, and nothing that is not what was let go; why it stays.

    Raises:
        ArchiveError: files cannot be removed; the next call goes on.
    """
    with environment.store.reading() as connection:
        if going not in runs.half_gone(connection):
            return ""
        run = runs.get(connection, going.run_id)
        sizes, problems = _going(connection, run, environment=environment)
    if problems:
        return "; ".join(problems)
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing=f"files of {folder_of(run)} are left"):
        for name in sizes:
            storage.remove(name)
            environment.crash_point("removed a file of a night")
    with environment.store.writing() as connection:
        runs.note_gone(connection, run.run_id, at=environment.clock())
    return ""
