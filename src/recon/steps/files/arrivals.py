"""Before an inbox is read: files are fetched from elsewhere, and missing ones are waited for.

A folder elsewhere that cannot be read, and a file that was expected and is not there, each stand
among the sources of the night as one rejected row, so that its verdict is INCOMPLETE; when a later
run of the same night succeeds, a version without rejects takes their place.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from recon.config.file_layouts import FileLayout, layout_of
from recon.config.file_sources import S3, ExpectedFile, RemoteSource, moment_after
from recon.config.settings import AccountSettings
from recon.files.formats.raw_reader import SUFFIXES
from recon.files.inbox.arrived_files import LOOKS_MAX, NOT_TOLD, WAITS_FOR, inbox, unsettled
from recon.files.inbox.arrived_files import Inbox as Waiting
from recon.files.inbox.fetching import Fetched, RemoteFolder, fetch
from recon.files.kinds.bank_file import ENDINGS
from recon.model.errors import SourceUnreadableError
from recon.model.words import Reject, SourceFile, SourceKind
from recon.steps.files.file_endorsements import counting
from recon.steps.files.incomplete import ABSENT, WHOLE_FILE, absent_sha256
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.store import Connection
from recon.store.database.engine import Turn
from recon.store.nights import bank_rows, file_words, order_rows
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import Settlements


def still_written(
    paths: Iterable[Path],
    *,
    account: AccountSettings,
    layouts: tuple[FileLayout, ...] = (),
    environment: Environment,
) -> Mapping[Path, str]:
    """Files that kept changing however long they were waited for, and the reason in words.

    A file whose layout names a `done_file` is complete when that is there, and is not waited for.
    """
    settle = timedelta(seconds=account.settle_seconds)
    unsettled_paths = unsettled(
        (path for path in paths if not layout_of(path.name, layouts=layouts).done_file),
        settle=settle,
        clock=environment.clock,
        pause=environment.pause,
    )
    waited = LOOKS_MAX * account.settle_seconds
    why = (
        f"is still being written: it was waited for over {waited} seconds and never left alone for "
        f"{account.settle_seconds}; nothing of it was taken: run again when it is complete"
    )
    return dict.fromkeys(unsettled_paths, why)


LOOK_AGAIN_SECONDS = 60
UNREAD_TOLD_MAX = 10
"""Names of entries that no night reads; of more it says how many."""
WAIT_HOURS_MAX = 12
"""A night waits no longer than this, whatever the clock says."""

Sleep = Callable[[float], None]


class DeclaredInbox(Protocol):
    """An inbox as it is declared: of order files, or of settlement files."""

    @property
    def inbox(self) -> Path:
        """The folder."""

    @property
    def layouts(self) -> tuple[FileLayout, ...]:
        """How its files are written."""

    @property
    def sources(self) -> tuple[RemoteSource, ...]:
        """Folders elsewhere whose files are fetched into it."""

    @property
    def expected(self) -> tuple[ExpectedFile, ...]:
        """Files that must be there for a night."""


@dataclass(slots=True)
class Arrivals:
    """What came and what did not."""

    fetched: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    """File elsewhere -> why it was not fetched."""
    failed: dict[str, str] = field(default_factory=dict)
    """Folder elsewhere -> why it could not be read."""
    late: dict[str, str] = field(default_factory=dict)
    """Name of an expected file -> who is late with it, in a sentence."""

    def sentence(self) -> str:
        """All of it; "" when there is nothing to tell."""
        sentences = [f"{len(self.fetched)} files were fetched."] if self.fetched else []
        sentences += [f"{name} was not fetched: {why}." for name, why in self.left.items()]
        sentences += [f"{why}." for why in (*self.failed.values(), *self.late.values())]
        return "".join(f" {sentence}" for sentence in sentences)


def arrivals(
    run: Run,
    *,
    account: DeclaredInbox,
    environment: Environment,
    sleep: Sleep,
    kind: SourceKind = SourceKind.ORDERS,
    prefix: str = "",
) -> Arrivals:
    """Fetch what is new, wait for what is expected, and note what did not come.

    `prefix` stands before the names under which it is noted.
    """
    arrivals = Arrivals()
    missing: list[tuple[ExpectedFile, datetime]] = []
    for _ in range(WAIT_HOURS_MAX * 3600 // LOOK_AGAIN_SECONDS):
        _fetch_all(arrivals, run, account=account, environment=environment)
        missing = list(_missing(run, account=account, environment=environment, kind=kind))
        now = environment.clock()
        ends = [until for _, until in missing if until > now]
        if not ends:
            break
        sleep(min(LOOK_AGAIN_SECONDS, max(1.0, (max(ends) - now).total_seconds())))
    for expected, _ in missing:
        name = expected.name(run.business_date)
        waited = f", and was waited for until {expected.wait_until}" if expected.wait_until else ""
        arrivals.late[name] = (
            f"{name} of {expected.sender} is not there: it was expected by "
            f"{expected.expected_by}{waited}; ask {expected.sender} for it"
        )
    if kind is SourceKind.ORDERS:
        _let_go(arrivals, run, environment=environment)
    noted_as = partial(_note_all, kind=kind, prefix=prefix)
    noted_as(arrivals, run, account=account, environment=environment)
    return arrivals


def _let_go(arrivals: Arrivals, run: Run, *, environment: Environment) -> None:
    """Files that were expected and that somebody let go, for the night that lacked them."""
    with environment.store.reading() as connection:
        counts = counting(connection, environment=environment)
        gone = [
            name
            for name in arrivals.late
            if file_words.dismissed(connection, run, name=name, counts=counts)
        ]
    for name in gone:
        del arrivals.late[name]


def _fetch_all(
    arrivals: Arrivals, run: Run, *, account: DeclaredInbox, environment: Environment
) -> None:
    of_orders = environment.settings.account(run.merchant_id, account_id=run.account_id)
    settle = timedelta(seconds=of_orders.settle_seconds)
    arrivals.left.clear()
    arrivals.failed.clear()
    for source in account.sources:
        try:
            came = _fetch(source, account=account, settle=settle, environment=environment)
        except SourceUnreadableError as error:
            arrivals.failed[source.shown] = str(error)
            continue
        arrivals.fetched += came.names
        arrivals.left |= dict(came.left)
        for name, why in came.misnamed.items():
            arrivals.failed[source.shown] = f"{source.shown} holds {name}, which {why}"
        if came.unfinished:
            arrivals.failed[source.shown] = (
                f"{source.shown} did not give {', '.join(came.unfinished)}, which somebody was "
                "writing; run the night again when it is complete"
            )


def _fetch(
    source: RemoteSource, *, account: DeclaredInbox, settle: timedelta, environment: Environment
) -> Fetched:
    with _opened(source, environment=environment.variables) as folder:
        return fetch(
            folder,
            inbox=account.inbox,
            patterns=source.files,
            layouts=account.layouts,
            crash_point=environment.crash_point,
            settle=partial(environment.pause, settle) if settle else None,
        )


def _opened(
    source: RemoteSource, *, environment: Mapping[str, str]
) -> AbstractContextManager[RemoteFolder]:
    # Their libraries take seconds to load, and most nights need neither.
    if source.scheme == S3:
        from recon.files.inbox.s3_folder import s3_folder

        return s3_folder(source, environment=environment)
    from recon.files.inbox.sftp_folder import sftp_folder

    return sftp_folder(source, environment=environment)


def _missing(
    run: Run, *, account: DeclaredInbox, environment: Environment, kind: SourceKind
) -> Iterator[tuple[ExpectedFile, datetime]]:
    """Expected files that are not there, and until when each is waited for."""
    endings = ENDINGS if kind is SourceKind.BANK else SUFFIXES
    waiting = inbox(account.inbox, layouts=account.layouts, endings=endings)
    here = {path.name for path in waiting.files}
    calendar = environment.settings.rules.business_calendar
    closes = calendar.closes_at(run.business_date)
    for expected in account.expected:
        if expected.name(run.business_date) not in here:
            until = expected.wait_until
            yield (
                expected,
                moment_after(closes, clock_time=until, zone=calendar.zone) if until else closes,
            )


def _note_all(
    arrivals: Arrivals,
    run: Run,
    *,
    account: DeclaredInbox,
    kind: SourceKind,
    prefix: str,
    environment: Environment,
) -> None:
    watched = [source.shown for source in account.sources]
    watched += [expected.name(run.business_date) for expected in account.expected]
    problems = arrivals.failed | arrivals.late
    if not watched:
        return
    with environment.store.reading() as connection:
        noted = {
            source.name: source.rows_rejected > 0
            for source, _ in order_rows.files_of_night(connection, run)
            if source.sha256.startswith(ABSENT)
        }
        missed = _missed(connection, run, kind=kind, environment=environment)
    note = partial(note_absent, run=run, environment=environment, kind=kind)
    for name in dict.fromkeys(watched):
        stored = prefix + name
        if name in problems and not noted.get(stored, False):
            note(stored, problem=problems[name])
        elif name not in problems and (noted.get(stored, False) or stored in missed):
            note(stored, problem="")


def _missed(
    connection: Connection, run: Run, *, kind: SourceKind, environment: Environment
) -> set[str]:
    """What any night missed of files that tell of days: until it is there, nobody knows those."""
    if kind is SourceKind.BANK:
        return bank_rows.not_right(connection, run)
    if kind is not SourceKind.SETTLEMENT:
        return set()
    settled = Settlements(connection, run, storages_of(environment))
    return {name for _, name in settled.missing(whole_file=WHOLE_FILE)}


def note_absent(
    name: str,
    *,
    problem: str,
    run: Run,
    environment: Environment,
    kind: SourceKind = SourceKind.ORDERS,
) -> None:
    """Put something that is not there among the sources; no problem: it is there now."""
    rejected = int(bool(problem))
    with environment.store.writing(turn=Turn.ORDERS) as connection:
        at = environment.clock()
        source = SourceFile(
            kind=kind,
            name=name,
            sha256=absent_sha256(name, problem, run.run_id, str(at)),
            size_bytes=0,
            rows_read=rejected,
            rows_accepted=0,
            rows_rejected=rejected,
            rows_skipped=0,
            rows_unassigned=rejected,
        )
        order_rows.insert_file(
            connection,
            run,
            rejects=[Reject(kind, name, 0, WHOLE_FILE, problem, "")][:rejected],
            source=source,
            at=at,
        )


def unreadable_identity(path: Path, *, name: str) -> str:
    """What tells versions of a file apart whose bytes are not trusted: name, size and time."""
    status = path.lstat()
    identity = f"unreadable\x1f{name}\x1f{status.st_size}\x1f{status.st_mtime_ns}"
    return hashlib.sha256(identity.encode()).hexdigest()


def unreadable(
    path: Path, *, problem: str, kind: SourceKind, name: str
) -> tuple[SourceFile, Reject]:
    """A file that could not be read, as one rejected row of a source."""
    status = path.lstat()
    source = SourceFile(
        kind=kind,
        name=name,
        sha256=unreadable_identity(path, name=name),
        size_bytes=status.st_size,
        rows_read=1,
        rows_accepted=0,
        rows_rejected=1,
        rows_skipped=0,
        rows_unassigned=1,
    )
    return source, Reject(kind, name, 0, WHOLE_FILE, problem, "")


def left(waiting: Waiting) -> str:
    """Which files wait for a partner, and what is none that a night reads, in two sentences."""
    later = [f"{name} is {why}" for name, why in waiting.skipped if why.startswith(WAITS_FOR)]
    sentence = f" Left for later: {'; '.join(later)}." if later else ""
    unread = [
        f"{name} ({why})"
        for name, why in waiting.skipped
        if why not in NOT_TOLD and not why.startswith(WAITS_FOR)
    ]
    if not unread:
        return sentence
    more = len(unread) - UNREAD_TOLD_MAX
    names = [*unread[:UNREAD_TOLD_MAX], *([f"and {more} more"] if more > 0 else [])]
    return f"{sentence} Nothing was read of: {'; '.join(names)}."
