"""Before an inbox is read: remote files are fetched, and missing ones are waited for.

A remote folder that cannot be read, and an expected file that is missing, are each noted among the
night's sources as one rejected row, so that its verdict is INCOMPLETE; when a later run of the same
night succeeds, a version without rejects replaces it.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from recon.config.file_layouts import FileLayout, layout_of
from recon.config.file_sources import (
    S3,
    BankFolder,
    ExpectedFile,
    RemoteSource,
    SettlementFolder,
    moment_after,
)
from recon.config.settings import AccountSettings
from recon.files.formats.named_bytes import sha256_of
from recon.files.formats.raw_reader import SUFFIXES
from recon.files.formats.raw_table import refuse
from recon.files.inbox.arrived_files import LOOKS_MAX, NOT_REPORTED, WAITS_FOR, inbox, unsettled
from recon.files.inbox.arrived_files import Inbox as Waiting
from recon.files.inbox.fetching import RemoteFolder, fetch
from recon.files.kinds.archive import is_stored, save
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.model.terms import Reject, SourceFile, SourceKind
from recon.privacy.displayed_text import displayed_name
from recon.steps.files.file_decisions import dismissed, guarded
from recon.steps.files.incomplete import ABSENT, WHOLE_FILE, absent_sha256, unread
from recon.steps.runtime.environment import Environment
from recon.store import Connection
from recon.store.database.engine import Turn
from recon.store.nights import bank_rows, order_rows
from recon.store.nights.runs import Run


def still_written(
    paths: Iterable[Path],
    *,
    account: AccountSettings,
    layouts: tuple[FileLayout, ...] = (),
    environment: Environment,
) -> Mapping[Path, str]:
    """Files that kept changing throughout the wait, with the reason for people.

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
UNREAD_REPORTED_MAX = 10
"""Names shown of entries that no night reads; of any others only the number is given."""
WAIT_HOURS_MAX = 12
"""A night waits no longer than this, whatever the clock says."""

Sleep = Callable[[float], None]


Content = TypeVar("Content")


@dataclass
class DeclaredInbox(Generic[Content]):
    """An inbox as the night of one account reads it: each file whole, or not at all.

    Raises:
        SourceMissingError: its folder does not exist.
    """

    run: Run
    environment: Environment
    folder: AccountSettings | SettlementFolder | BankFolder
    called: str = "the inbox"
    """Its name in merchants.toml, for messages."""
    prefix: str = ""
    """Prefix of the names under which its files are noted."""
    waiting: Waiting = field(init=False)
    growing: Mapping[Path, str] = field(init=False)
    """Reasons why files that are still being written are not read."""
    fetched: list[str] = field(default_factory=list, init=False)
    left: dict[str, str] = field(default_factory=dict, init=False)
    """Remote file -> why it was not fetched."""
    failed: dict[str, str] = field(default_factory=dict, init=False)
    """Remote folder -> why it could not be read."""
    late: dict[str, str] = field(default_factory=dict, init=False)
    """Name of an expected file -> sentence on who is late with it."""
    kind: ClassVar[SourceKind] = SourceKind.ORDERS
    endings: ClassVar[tuple[str, ...]] = SUFFIXES

    def __post_init__(self) -> None:
        if not self.folder.inbox.is_dir():
            msg = (
                f"{self.called} {self.folder.inbox} does not exist; create it or correct "
                "merchants.toml"
            )
            raise SourceMissingError(msg)

    @cached_property
    def account(self) -> AccountSettings:
        """The account whose night reads the inbox."""
        settings, run = self.environment.settings, self.run
        return settings.account(run.merchant_id, account_id=run.account_id)

    def take(self, path: Path) -> Content | None:
        """Store one file whole; returns the outcome, which depends on the kind of inbox.

        Raises:
            SourceMissingError: it does not exist any more.
            SourceUnreadableError: its content does not fit its name, or it is still being written.
        """
        if problem := self.growing.get(path, ""):
            refuse(displayed_name(path.name), problem)
        sha256 = sha256_of(path)
        is_known, taken = self.known(path, sha256=sha256)
        if is_known:
            return taken
        with guarded(path, run=self.run, environment=self.environment, sha256=sha256):
            return self.take_new(path)

    def known(self, path: Path, *, sha256: str) -> tuple[bool, Content | None]:
        """Whether this very content was read before, and the outcome to report in that case.

        Files that stay in an inbox would otherwise cost each night what they cost the first.
        """
        raise NotImplementedError

    def take_new(self, path: Path) -> Content | None:
        """Read and store a file that is not known."""
        raise NotImplementedError

    def is_stored(self, path: Path, *, sha256: str) -> bool:
        """Whether a content is in the archive, or the account has no archive."""
        archive = self.account.archive
        return archive is None or is_stored(path, sha256=sha256, archive=archive)

    def keep(self, path: Path, source: SourceFile, *, private: str) -> str:
        """Archive a file before any of it is stored; returns why it was not archived, or ""."""
        archive = self.account.archive
        why = archive and save(path, sha256=source.sha256, private=private, archive=archive)
        return f"{displayed_name(path.name)}: {why}" if why else ""

    def is_noted(self, connection: Connection, source: SourceFile) -> bool:
        """Whether the rejected row for this unreadable file is already noted."""
        noted = bank_rows.newest_of(connection, self.run, name=source.name)
        return noted is not None and noted.sha256 == source.sha256

    def missed(self, _connection: Connection) -> set[str]:
        """Names of files missed on any night whose days are unknown until they arrive."""
        return set()

    def name_of(self, path: Path) -> str:
        """The name of a file in the database."""
        return f"{self.prefix}{displayed_name(path.name)}"

    def layout_of(self, path: Path) -> FileLayout:
        """The layout of a file."""
        return layout_of(path.name, layouts=self.folder.layouts)

    def each(
        self, *, sleep: Sleep
    ) -> Iterator[tuple[str, Content | None, SourceMissingError | SourceUnreadableError | None]]:
        """Fetch files, wait for expected ones, then take what has arrived, file by file.

        Yields for each file its displayed name, the outcome, and why it cannot be read, if so: it
        is then noted among the sources as one rejected row, so that every total includes it.
        """
        self._arrive(sleep)
        self.waiting = self._looked()
        self.growing = still_written(
            self.waiting.files,
            account=self.account,
            layouts=self.folder.layouts,
            environment=self.environment,
        )
        for path in self.waiting.files:
            taken: Content | None = None
            problem: SourceMissingError | SourceUnreadableError | None = None
            try:
                taken = self.take(path)
            except SourceMissingError as error:
                problem = error
            except SourceUnreadableError as error:
                problem = error
                self._note_unreadable(path, problem=str(error))
            yield displayed_name(path.name), taken, problem

    def sentence(self) -> str:
        """Sentences on files that were fetched, wait, or did not come; "" without any."""
        sentences = [f"{len(self.fetched)} files were fetched."] if self.fetched else []
        sentences += [f"{name} was not fetched: {why}." for name, why in self.left.items()]
        sentences += [f"{why}." for why in (*self.failed.values(), *self.late.values())]
        return left(self.waiting) + "".join(f" {sentence}" for sentence in sentences)

    def _looked(self) -> Waiting:
        return inbox(self.folder.inbox, layouts=self.folder.layouts, endings=self.endings)

    def _arrive(self, sleep: Sleep) -> None:
        """Fetch new files, wait for expected ones, and note what did not come."""
        missing: list[tuple[ExpectedFile, datetime]] = []
        for _ in range(WAIT_HOURS_MAX * 3600 // LOOK_AGAIN_SECONDS):
            self._fetch_all()
            missing = list(self._missing())
            now = self.environment.clock()
            ends = [until for _, until in missing if until > now]
            if not ends:
                break
            sleep(min(LOOK_AGAIN_SECONDS, max(1.0, (max(ends) - now).total_seconds())))
        for expected, _ in missing:
            name, until = expected.name(self.run.business_date), expected.wait_until
            waited = f", and was waited for until {until}" if until else ""
            self.late[name] = (
                f"{name} of {expected.sender} is not there: it was expected by "
                f"{expected.expected_by}{waited}; ask {expected.sender} for it"
            )
        if self.kind is SourceKind.ORDERS:
            # A person may have dismissed one, on the night that lacked it.
            with self.environment.store.reading() as connection:
                for name in [*self.late]:
                    if dismissed(connection, self.run, name=name, environment=self.environment):
                        del self.late[name]
        self._note_all()

    def _fetch_all(self) -> None:
        settle = timedelta(seconds=self.account.settle_seconds)
        self.left.clear()
        self.failed.clear()
        for source in self.folder.sources:
            try:
                with _opened(source, environment=self.environment.variables) as folder:
                    got = fetch(
                        folder,
                        inbox=self.folder.inbox,
                        patterns=source.files,
                        layouts=self.folder.layouts,
                        crash_point=self.environment.crash_point,
                        settle=partial(self.environment.pause, settle) if settle else None,
                    )
            except SourceUnreadableError as error:
                self.failed[source.shown] = str(error)
                continue
            self.fetched += got.names
            self.left |= dict(got.left)
            for name, why in got.misnamed.items():
                self.failed[source.shown] = f"{source.shown} holds {name}, which {why}"
            if got.unfinished:
                self.failed[source.shown] = (
                    f"{source.shown} did not give {', '.join(got.unfinished)}, which somebody was "
                    "writing; run the night again when it is complete"
                )

    def _missing(self) -> Iterator[tuple[ExpectedFile, datetime]]:
        """Expected files that have not arrived, and until when each is waited for."""
        here = {path.name for path in self._looked().files}
        calendar = self.environment.settings.rules.business_calendar
        closes = calendar.closes_at(self.run.business_date)
        for expected in self.folder.expected:
            if expected.name(self.run.business_date) not in here:
                clock_time = expected.wait_until
                yield (
                    expected,
                    moment_after(closes, clock_time=clock_time, zone=calendar.zone)
                    if clock_time
                    else closes,
                )

    @property
    def watched(self) -> list[str]:
        """Names of the remote folders and the expected files."""
        expected = [each.name(self.run.business_date) for each in self.folder.expected]
        return [*dict.fromkeys([*(source.shown for source in self.folder.sources), *expected])]

    def _note_all(self) -> None:
        problems = self.failed | self.late
        if not self.watched:
            return
        with self.environment.store.reading() as connection:
            noted = {
                source.name: source.rows_rejected > 0
                for source, _ in order_rows.files_of_night(connection, self.run)
                if source.sha256.startswith(ABSENT)
            }
            missed = self.missed(connection)
        for name in self.watched:
            stored = self.prefix + name
            if name in problems and not noted.get(stored, False):
                self.note_absent(stored, problem=problems[name])
            elif name not in problems and (noted.get(stored, False) or stored in missed):
                self.note_absent(stored)

    def note_absent(self, name: str, *, problem: str = "") -> None:
        """Note a missing file or folder as a source; without a problem, that it is there now."""
        with self.environment.store.writing(turn=Turn.ORDERS) as connection:
            at = self.environment.clock()
            sha256 = absent_sha256(name, problem, self.run.run_id, str(at))
            rejected = [Reject(self.kind, name, 0, WHOLE_FILE, problem, "")] if problem else []
            source = unread(self.kind, name, sha256=sha256, rejected=len(rejected))
            order_rows.insert_file(connection, self.run, rejects=rejected, source=source, at=at)

    def _note_unreadable(self, path: Path, *, problem: str) -> None:
        """Note a file that could not be read as one rejected row."""
        name = self.name_of(path)
        source = unread(
            self.kind,
            name,
            sha256=unreadable_identity(path, name=name),
            size_bytes=path.lstat().st_size,
        )
        rejects = [Reject(self.kind, name, 0, WHOLE_FILE, problem, "")]
        with self.environment.store.writing(turn=Turn.ORDERS) as connection:
            if not self.is_noted(connection, source):
                at = self.environment.clock()
                order_rows.insert_file(connection, self.run, rejects=rejects, source=source, at=at)


def _opened(
    source: RemoteSource, *, environment: Mapping[str, str]
) -> AbstractContextManager[RemoteFolder]:
    # Their libraries take seconds to load, and most nights need neither.
    if source.scheme == S3:
        from recon.files.inbox.s3_folder import s3_folder

        return s3_folder(source, environment=environment)
    from recon.files.inbox.sftp_folder import sftp_folder

    return sftp_folder(source, environment=environment)


def unreadable_identity(path: Path, *, name: str) -> str:
    """Hash that tells versions of an unreadable file apart by name, size and modification time."""
    status = path.lstat()
    identity = f"unreadable\x1f{name}\x1f{status.st_size}\x1f{status.st_mtime_ns}"
    return hashlib.sha256(identity.encode()).hexdigest()


def left(waiting: Waiting) -> str:
    """Up to two sentences: files that wait for a partner, and entries that no night reads."""
    later = [f"{name} is {why}" for name, why in waiting.skipped if why.startswith(WAITS_FOR)]
    sentence = f" Left for later: {'; '.join(later)}." if later else ""
    unread = [
        f"{name} ({why})"
        for name, why in waiting.skipped
        if why not in NOT_REPORTED and not why.startswith(WAITS_FOR)
    ]
    if not unread:
        return sentence
    more = len(unread) - UNREAD_REPORTED_MAX
    names = [*unread[:UNREAD_REPORTED_MAX], *([f"and {more} more"] if more > 0 else [])]
    return f"{sentence} Nothing was read of: {'; '.join(names)}."
