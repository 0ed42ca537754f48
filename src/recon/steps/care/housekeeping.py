"""What is older than retention.toml keeps: shown, or deleted with a line in the history.

Only what a key names is looked at: plain files of folders that we fill, never through a link, and
replies of batches that are closed and decided. The history is written first, so that nothing ever
disappears without a word in it.
"""

import hashlib
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recon.config.retention import Backups
from recon.files.formats.named_bytes import sha256_of
from recon.files.inbox.arrived_files import inbox
from recon.files.kinds.bank_file import ENDINGS
from recon.model.errors import UsageError
from recon.privacy.shown_text import shown_name
from recon.steps.care.old_nights import OldNights, finish, let_go, old_nights
from recon.steps.ground.environment import Environment
from recon.steps.ground.stages import FOLDER as METRICS
from recon.store.database import history
from recon.store.money import retention_rows
from recon.store.money.spill import ASIDE
from recon.store.money.spill import FOLDER as SPILL
from recon.store.nights import bank_rows
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
    nights: OldNights | None = None
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
    spared = [
        _spared(kind, days, files, environment=environment)
        for kind, days, files in _kinds(environment)
        if days is not None
    ]
    if keeps.backups is not None:
        spared.append(_backups(keeps.backups, environment=environment))
    if keeps.replies_days is not None:
        with environment.store.reading() as connection:
            before = _before(keeps.replies_days, environment=environment)
            old = retention_rows.old_replies(connection, before=before)
        days = keeps.replies_days
        spared.append(Spared(REPLIES, days, old.count, old.size_bytes, old.oldest))
    if keeps.nights_days is not None:
        spared.append(_nights(keeps.nights_days, environment=environment))
    return tuple(spared)


def delete(
    spared: Iterable[Spared], *, by: str, environment: Environment
) -> tuple[tuple[Spared, ...], tuple[str, ...]]:
    """Delete what `housekeeping` found; what it was, and a sentence for each file that stayed.

    Raises:
        UsageError: nobody is named.
    """
    if not by.strip():
        msg = "say who deletes (--as); nothing was deleted"
        raise UsageError(msg)
    nights = [kind for kind in spared if kind.nights is not None]
    wanted = tuple(kind for kind in spared if kind.count and kind.nights is None)
    with environment.store.writing() as connection:
        events = [
            history.Event(ENTITY, kind.kind, DELETES, _told(kind, by=by.strip())) for kind in wanted
        ]
        history.append(connection, events, at=environment.clock())
        for kind in wanted:
            if kind.kind == REPLIES:
                before = _before(kind.days, environment=environment)
                retention_rows.forget_replies(connection, before=before)
    stayed = [*_unlinked(path for kind in wanted for path in kind.files)]
    for kind in nights:
        stayed += _let_go(kind, by=by.strip(), environment=environment)
    gone = tuple(kind for kind in nights if kind.count)
    return wanted + gone, tuple(stayed)


def _nights(days: int, *, environment: Environment) -> Spared:
    """Folders of nights that may go; why others stay."""
    old = old_nights(environment, days=days)
    left = [f"{going}: files of it are left, --delete removes them" for going in old.half_gone]
    return Spared(
        NIGHTS,
        days,
        len(old.going),
        sum(night.size_bytes for night in old.going),
        min((night.run.started_at for night in old.going), default=None),
        nights=old,
        notes=(*left, *old.staying),
    )


def _let_go(spared: Spared, *, by: str, environment: Environment) -> Iterator[str]:
    """Let folders of nights go, and finish what an earlier call began."""
    if spared.nights is not None:
        yield from finish(spared.nights.half_gone, environment=environment)
        yield from let_go(spared.nights.going, days=spared.days, by=by, environment=environment)


def _kinds(environment: Environment) -> Iterator[tuple[str, int | None, Iterable[Path]]]:
    """Each kind of file: its name, how long it is kept, and the files there are."""
    settings = environment.settings
    keeps, accounts = settings.retention, settings.accounts.values()
    archives = {account.archive for account in accounts if account.archive is not None}
    reports = {account.reports for account in accounts}
    database = environment.store.path
    spills = {folder / SPILL for folder in reports}
    if database is not None:
        spills.add(database.with_name(f"{database.name}.{SPILL}"))
    yield "archived order files", keeps.archive_days, _in(archives, names="[!.]*", deep=True)
    statements = _read_statements(environment) if keeps.statements_days is not None else ()
    yield "statements of banks that were read", keeps.statements_days, statements
    metrics = {folder / METRICS for folder in reports}
    yield "figures of stages", keeps.metrics_days, _in(metrics, names="*.json")
    yield "logs that were moved away", keeps.logs_days, _old_logs(environment)
    yield "spill files set aside", keeps.set_aside_days, _in(spills, names=f"*{ASIDE}")
    workbooks = _replaced(environment) if keeps.replaced_workbooks_days is not None else ()
    yield "replaced workbooks", keeps.replaced_workbooks_days, workbooks


def _in(folders: Iterable[Path], *, names: str, deep: bool = False) -> Iterator[Path]:
    for folder in sorted(folders):
        yield from sorted(folder.rglob(names) if deep else folder.glob(names))


def _read_statements(environment: Environment) -> Iterator[Path]:
    """Statements in the inboxes of banks whose very content a night has read."""
    days = environment.settings.retention.statements_days or 0
    before = _before(days, environment=environment)
    for bank, folder in sorted(environment.settings.banks.items()):
        waiting = inbox(folder.inbox, layouts=folder.layouts, endings=ENDINGS)
        for path in [path for at, path in _dated(waiting.files) if at < before][:FILES_MAX]:
            name, sha256 = bank_rows.name_of(bank, shown_name(path.name)), sha256_of(path)
            with environment.store.reading() as connection:
                read = bank_rows.read_before(connection, name=name, sha256=sha256)
            if read is not None:
                yield path


def _old_logs(environment: Environment) -> Iterator[Path]:
    """`night.log.1`, `night.log-20261120.gz`: beside the log, never the log itself."""
    log = environment.variables.get(LOG_VARIABLE, "").strip()
    if log:
        path = Path(log)
        yield from sorted(
            {*path.parent.glob(f"{path.name}.*"), *path.parent.glob(f"{path.name}-*")}
        )


def _replaced(environment: Environment) -> list[Path]:
    """Workbooks of replaced runs that nobody signed, where they lie in a declared folder."""
    folders = {account.reports.resolve() for account in environment.settings.accounts.values()}
    with environment.store.reading() as connection:
        paths = [Path(path) for path in retention_rows.replaced_workbooks(connection)]
    return sorted(path for path in paths if path.resolve().parent in folders)


def _backups(keeps: Backups, *, environment: Environment) -> Spared:
    """All but the newest of the old ones."""
    dated = sorted(_dated(_in({keeps.folder}, names=keeps.files)), reverse=True)
    old = [path for _, path in dated[keeps.keep :]]
    return _spared("backups", keeps.days, old, environment=environment)


def _spared(kind: str, days: int, files: Iterable[Path], *, environment: Environment) -> Spared:
    before = _before(days, environment=environment)
    old = sorted((at, path) for at, path in _dated(files) if at < before)[:FILES_MAX]
    size = sum(path.lstat().st_size for _, path in old)
    oldest = old[0][0] if old else None
    return Spared(kind, days, len(old), size, oldest, tuple(path for _, path in old))


def _dated(files: Iterable[Path]) -> Iterator[tuple[datetime, Path]]:
    """When each plain file was last written; links and folders are left out."""
    for path in files:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            yield datetime.fromtimestamp(status.st_mtime, UTC), path


def _before(days: int, *, environment: Environment) -> datetime:
    return environment.clock() - timedelta(days=days)


def _told(spared: Spared, *, by: str) -> dict[str, object]:
    names = [path.name for path in spared.files]
    listed = "\n".join(str(path) for path in spared.files)
    return {
        "by": by,
        "days": spared.days,
        "count": spared.count,
        "bytes": spared.size_bytes,
        "names": names[:NAMES_TOLD_MAX],
        "list_sha256": hashlib.sha256(listed.encode()).hexdigest(),
    }


def _unlinked(files: Iterable[Path]) -> Iterator[str]:
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            yield f"{path} stays ({error.strerror}); the next housekeeping tries again"
