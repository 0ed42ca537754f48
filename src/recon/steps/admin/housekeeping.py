"""List what is older than retention.toml allows, or delete it with an event in the history.

Only what a setting names is considered: plain files in folders that we write, never through a link;
replies of batches that are closed and decided; and folders of nights. A night's folder is purged
only if its month is closed, everything it showed as open is closed, nothing current still reads it,
and every byte was found as sealed in the same call; `night_folder` defines what stays. The history
is written first, so that nothing ever disappears without a record; a call that was killed in
between is completed by the next one.
"""

import hashlib
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path

from recon.archive.storage import reachable
from recon.files.formats.named_bytes import sha256_of
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.bank_file import ENDINGS
from recon.model.business_date import month_of
from recon.model.errors import (
    ArchiveError,
    ConfigurationError,
    NightHeldError,
    ReconError,
    UsageError,
)
from recon.notify.night_log import LOG_VARIABLE
from recon.steps.admin.verify import forgotten_folders, night_files
from recon.steps.runtime.closed_folders import close_problems
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_end import FOLDER as METRICS
from recon.steps.runtime.night_folder import (
    StoredResult,
    folder_of,
    storage_of,
)
from recon.store import Connection
from recon.store.database import history
from recon.store.database.night_lock import account_lock
from recon.store.money import instruction_rows
from recon.store.money.spill import EXCLUDED
from recon.store.money.spill import FOLDER as SPILL
from recon.store.nights import answer_parts, journal_rows, order_rows, runs, sign_off_rows
from recon.store.nights.runs import PurgedNight, Run
from recon.store.people import closed_months

ENTITY = "retention"
DELETES = "deletes"
FILES_MAX = 100_000
"""Files of one kind in one call; the next call takes the rest."""
NIGHTS_AT_ONCE = 100
"""Folders verified, byte by byte, in one call; the next call takes the rest."""
NAMES_REPORTED_MAX = 50
REPLIES = "replies of closed batches"
NIGHTS = "folders of nights"
UNREAD = "folders of old nights could not be looked at, and none of them was purged"


@dataclass(frozen=True, slots=True)
class Expired:
    """What of one kind is older than its retention."""

    kind: str
    days: int
    count: int
    size_bytes: int
    oldest: datetime | None
    files: tuple[Path, ...] = ()
    nights: tuple[Run, ...] = ()
    """The runs whose folders may be purged."""
    notes: tuple[str, ...] = ()
    """What stays though it is older, and what an earlier call left, each as a sentence."""

    def __str__(self) -> str:
        sentence = f"{self.kind}, kept {self.days} days: {self.count} older"
        if self.oldest is None:
            return sentence
        mebibytes = self.size_bytes / 1024**2
        return f"{sentence} ({mebibytes:.1f} MiB, the oldest of {self.oldest:%Y-%m-%d})"


def housekeeping(
    environment: Environment, *, by: str | None = None
) -> tuple[tuple[Expired, ...], tuple[str, ...]]:
    """Return what is older than its retention, by kind; delete it if `by` names who deletes.

    Also returns a sentence for each file or folder that could not be deleted.

    Raises:
        UsageError: `by` is blank; nothing was deleted.
    """
    if by is not None and not (by := by.strip()):
        msg = "say who deletes (--as); nothing was deleted"
        raise UsageError(msg)
    now, keeps = environment.clock(), environment.settings.retention
    expired = [*_old_files(environment, now=now)]
    if (days := keeps.replies_days) is not None:
        with environment.store.reading() as connection:
            old = instruction_rows.old_replies(connection, before=now - timedelta(days))
        expired.append(Expired(REPLIES, days, *old))
    stayed = [] if by is None else [*_delete(expired, by=by, now=now, environment=environment)]
    if (days := keeps.nights_days) is not None:
        nights = _Nights(environment, days, now - timedelta(days=days), by)
        expired.append(nights.expired(stayed))
    return tuple(expired), tuple(stayed)


def _old_files(environment: Environment, *, now: datetime) -> Iterator[Expired]:
    for kind, days, files in _kinds(environment):
        if days is not None:
            before = now - timedelta(days=days)
            old = sorted(each for each in _dated(files()) if each[0] < before)[:FILES_MAX]
            if kind == STATEMENTS:
                with environment.store.reading() as connection:
                    taken = order_rows.contents_ingested(connection)
                old = [each for each in old if sha256_of(each[1]) in taken]
            paths = tuple(path for _, path in old)
            size = sum(path.lstat().st_size for path in paths)
            yield Expired(kind, days, len(paths), size, old[0][0] if old else None, paths)


def _delete(
    expired: Iterable[Expired], *, by: str, now: datetime, environment: Environment
) -> Iterator[str]:
    """Record the deletion in the history, then delete; yield a sentence for each that stays."""
    due = [kind for kind in expired if kind.count]
    with environment.store.writing() as connection:
        for kind in due:
            details = {"by": by, "days": kind.days, "count": kind.count, "bytes": kind.size_bytes}
            details |= {"names": [path.name for path in kind.files[:NAMES_REPORTED_MAX]]}
            details |= {"list_sha256": _digest(map(str, kind.files))}
            event = history.Event(ENTITY, kind.kind, DELETES, details)
            history.append(connection, [event], at=environment.clock())
            if kind.kind == REPLIES:
                instruction_rows.forget_replies(connection, before=now - timedelta(kind.days))
    for path in (path for kind in due for path in kind.files):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            yield f"{path} stays ({error.strerror}); the next housekeeping tries again"


def _digest(listed: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()


STATEMENTS = "statements of banks that were read"


def _kinds(
    environment: Environment,
) -> Iterator[tuple[str, int | None, Callable[[], Iterable[Path]]]]:
    """Yield each kind of file: its name, its retention in days, and what lists its files."""
    settings, keeps = environment.settings, environment.settings.retention
    accounts, database = settings.accounts.values(), environment.store.path
    archives = {account.archive for account in accounts if account.archive is not None}
    reports = {account.reports for account in accounts}
    spills = {folder / SPILL for folder in reports}
    if database is not None:
        spills.add(database.with_name(f"{database.name}.{SPILL}"))
    log = Path(environment.variables.get(LOG_VARIABLE, "").strip())
    # `night.log.1`, `night.log-20261120.gz`: rotated logs, never the log itself.
    logs = [f"{log.name}{mark}*" for mark in ".-"] if log.name else []
    banks = settings.banks.values()
    yield "archived order files", keeps.archive_days, lambda: _in(archives, "**/[!.]*")
    yield (
        STATEMENTS,
        keeps.statements_days,
        lambda: chain.from_iterable(
            inbox(bank.inbox, layouts=bank.layouts, endings=ENDINGS).files for bank in banks
        ),
    )
    metrics = {folder / METRICS for folder in reports}
    yield "figures of stages", keeps.metrics_days, lambda: _in(metrics, "*.json")
    yield "logs that were moved away", keeps.logs_days, lambda: _in({log.parent}, *logs)
    yield "excluded spill files", keeps.excluded_days, lambda: _in(spills, f"*{EXCLUDED}")
    replaced = keeps.replaced_workbooks_days
    yield "replaced workbooks", replaced, lambda: _replaced(environment)
    if (backups := keeps.backups) is not None:
        dated = _dated(_in({backups.folder}, backups.files))
        old = [path for _, path in sorted(dated, reverse=True)[backups.keep :]]
        yield "backups", backups.days, lambda: old


def _in(folders: Iterable[Path], *names: str) -> list[Path]:
    return sorted({path for folder in folders for name in names for path in folder.glob(name)})


def _replaced(environment: Environment) -> list[Path]:
    """Return workbooks of replaced runs without a signature that are in a declared folder."""
    folders = {account.reports.resolve() for account in environment.settings.accounts.values()}
    with environment.store.reading() as connection:
        signed = sign_off_rows.signed_runs(connection, desk=environment.desk)
        finished = runs.finished(connection)
    paths = {Path(run.workbook) for run in finished if run.replaced and run.workbook}
    paths -= {Path(run.workbook) for run in finished if not run.replaced or run.run_id in signed}
    return sorted(path for path in paths if path.resolve().parent in folders)


def _dated(files: Iterable[Path]) -> Iterator[tuple[datetime, Path]]:
    """Yield each plain file with its time of last change; links and folders are left out."""
    for path in files:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            yield datetime.fromtimestamp(status.st_mtime, UTC), path


class _StaysError(ReconError):
    """The reason why a folder is not purged."""


@dataclass(frozen=True, slots=True)
class _Nights:
    """Folders of nights from before an instant; they are purged only if `by` is given."""

    environment: Environment
    days: int
    before: datetime
    by: str | None

    def expired(self, stayed: list[str]) -> Expired:
        """Return the older folders: those that may be purged, or were, and why others stay.

        `stayed` gets a sentence for each that could not be checked or deleted.
        """
        with self.environment.store.reading() as connection:
            purged = runs.purged_run_ids(connection)
            started = {
                each.run_id for each in runs.all_purged(connection)
            }  # whatever the limit now
            older = [
                run
                for run in sorted(runs.finished(connection), key=lambda run: run.business_date)
                if run.run_id not in purged
                if run.run_id in started
                or (run.business_date < self.before.date() and run.started_at < self.before)
            ]
            problem = _unsafe(connection, environment=self.environment) if older else ""
        sizes: dict[Run, int] = {}
        why: dict[str, list[date]] = {}
        for run in older:
            if not problem and len(sizes) >= NIGHTS_AT_ONCE:
                problem = f"{NIGHTS_AT_ONCE} nights go at once, the next time takes the rest"
            reason, is_failed = problem, False
            if not problem:
                try:
                    with account_lock(self.environment.store, run) if self.by else nullcontext():
                        sizes[run] = self._purge(run)
                except _StaysError as error:
                    reason = str(error)
                except NightHeldError:
                    reason, is_failed = "a night of the account is at work", True
                except (ArchiveError, ConfigurationError) as error:
                    reason, is_failed = f"{error}; the next housekeeping tries again", True
            if reason:
                why.setdefault(reason, []).append(run.business_date)
            if is_failed:
                left = f"files of {run.business_date} ({run.run_id}) are left"
                stayed.append(f"{left}: {reason}")
        notes = []
        for reason, dates in why.items():
            span = f"{dates[0]}" if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
            notes.append(f"{len(dates)} older stay ({span}): {reason}")
        oldest = min((run.started_at for run in sizes), default=None)
        size, nights = sum(sizes.values()), (*sizes,)
        return Expired(NIGHTS, self.days, len(sizes), size, oldest, nights=nights, notes=(*notes,))

    def _purge(self, run: Run) -> int:
        """Verify every byte of a folder; if `by` is given, record its purge and remove its files.

        Bytes are read while others may write. Meanwhile people may sign the night, reopen its month
        or export a journal, so the transaction that records the purge checks that again. If a
        call was ended after recording it, the next one removes what is left of the sealed files.
        """
        environment, by = self.environment, self.by
        with environment.store.reading() as connection:
            is_noted = runs.purged_night_of(connection, run.run_id) is not None
            names_under_it = sign_off_rows.signatures(connection, run.run_id, desk=environment.desk)
            if not is_noted:
                self._refuse_needed(connection, run)
                self._refuse_open(connection, run)
            sizes = _going(connection, run, environment)
        size = sum(sizes.values())
        if by is None:
            return size
        if not is_noted:
            with environment.store.writing() as connection:
                self._refuse_needed(connection, run)
                names_now = sign_off_rows.signatures(connection, run.run_id, desk=environment.desk)
                if names_now != names_under_it:
                    msg = "somebody signed it meanwhile; the next housekeeping looks again"
                    raise _StaysError(msg)
                about = (run.run_id, *run.account, run.business_date, by, environment.clock())
                listed = _digest(f"{size} {name}" for name, size in sizes.items())
                going = PurgedNight(*about, len(sizes), size, listed)
                runs.note_purged(connection, going, days=self.days)
            environment.crash_point("purged a night")
        storage = storage_of(run, environment=environment)
        with reachable(storage, doing=f"files of {folder_of(run)} are left"):
            for name in sizes:
                storage.remove(name)
                environment.crash_point("removed a file of a night")
        with environment.store.writing() as connection:
            runs.note_folder_purged(connection, run.run_id, at=environment.clock())
        return size

    def _refuse_open(self, connection: Connection, run: Run) -> None:
        """Refuse a night if the newest still shows one of its breaks or orders as open."""
        nights = runs.live_nights(connection, run)
        newest = StoredResult(connection, nights[max(nights)].run_id, self.environment)
        frames = newest.frames("breaks", "movements")
        breaks, reopened = frames["breaks"], frames["movements"]["reopens"]
        is_open = {*breaks["break_id"], *breaks["order_no"], *reopened} - {""}
        own = StoredResult(connection, run.run_id, self.environment).open_breaks()
        if own is not None and {*own["break_id"], *own["order_no"]} & is_open:
            raise _StaysError("a break that it shows is still open")

    def _refuse_needed(self, connection: Connection, run: Run) -> None:
        """Refuse a night that is still needed, by what the database has."""
        if reason := next(self.needs(connection, run), ""):
            raise _StaysError(reason)

    def needs(self, connection: Connection, run: Run) -> Iterator[str]:
        """Yield why a folder must stay, by what the database has; nothing if it is not needed."""

        def is_closed(day: date) -> bool:
            of_month = closed_months.state_of(connection, run.account, month=month_of(day))
            return of_month.closed is not None

        name, month = "/".join(run.account), month_of(run.business_date)
        if not is_closed(run.business_date):
            yield f"{month} of {name} is not closed (`recon close {month}`)"
        after = [day for day in runs.live_nights(connection, run) if day > run.business_date]
        if not after or not is_closed(min(after)):
            yield f"nights of {name} from {run.business_date} on are read by what is open"
        if any(out.run_id == run.run_id for out in journal_rows.not_seen_in_ledger(connection)):
            yield "a journal of it is not in the ledger yet"
        if run.run_id == journal_rows.newest_reader(connection, run):
            yield "its ledger is the newest that was read"
        # Money that its answers may decide: a night also queries its merchant's other accounts, and
        # only answers that came after an instruction was planned show anything of it.
        files = [part for part in answer_parts.of_run(connection, run.run_id) if part.answered]
        answered = [part.last_at for part in files if part.last_at is not None]
        others = ((part.merchant_id, part.account_id) for part in files)
        for owner in sorted({run.account, *others}):
            before = max(self.before, *answered)
            if instruction_rows.open_money(connection, owner, before=before):
                yield (
                    f"an instruction or a case of {'/'.join(owner)} from before is still open "
                    "(`recon status`)"
                )


def _unsafe(connection: Connection, *, environment: Environment) -> str:
    """Return why no night may be purged at all today; "" if nothing prevents it."""
    _, broken = history.verify(connection)
    problem = broken or next(
        chain(
            close_problems(connection, environment=environment),
            forgotten_folders(connection, environment=environment),
        ),
        "",
    )
    return f"{problem}: `recon verify`" if problem else ""


def _going(connection: Connection, run: Run, environment: Environment) -> dict[str, int]:
    """Return the files of a run's folder to purge, with sizes; a fault in one keeps all of them."""
    sizes: dict[str, int] = {}
    for file, stays in night_files(connection, run, environment=environment):
        if file.fault:
            msg = f"{file.fault}: nothing more of that folder goes; see who wrote it"
            raise _StaysError(msg)
        if not stays:
            sizes[file.name] = len(file.content or b"")
    return sizes
