"""People's decisions on files that nights took or refused: read it again, or dismiss it.

A file whose layout was corrected has the same bytes, so a night would call it known; a stray file
that cannot be read would make its night INCOMPLETE for ever. A content that crashed its reader is
not read again. Name and reason are in the history, and count only if signed at the desk.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from recon.desk.endorsement import Kind
from recon.desk.held_keys import HeldKeys
from recon.files.formats.named_bytes import sha256_of
from recon.model.errors import ReaderBrokenError, SourceUnreadableError, UsageError
from recon.model.terms import SourceFile, SourceKind
from recon.privacy.displayed_text import displayed_name
from recon.steps.files.incomplete import WHOLE_FILE, absent_sha256, unread
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import Person
from recon.store import Connection
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import ChainLink, Event, append, links_of
from recon.store.nights import order_rows, runs
from recon.store.nights.order_rows import KnownFile
from recon.store.nights.runs import Run
from recon.store.people.decision_rows import is_stated
from recon.store.schema import order_file
from recon.store.schema.columns import REASON_CHARACTERS

ENTITY = "file"
AGAIN, DISMISSED = "read again", "dismissed"
CONTENT = "file content"
QUARANTINED, TRIED_AGAIN, MET = "set aside", "read again", "met again"
UNTIL = (
    "no night tries it again, under whatever name, until somebody says `recon order-file check "
    "--again`"
)
REASON_WORDS_MIN = 2
InboxName = tuple[str, str, str]
"""Merchant, account, name."""


@dataclass(frozen=True, slots=True)
class FileDecision:
    """One decision as the desk signs it and the history stores it."""

    file: str
    """Entity id: the version, or the content, that it is about."""
    decided: str
    by: str
    reason: str
    sha256: str
    """Of the file."""
    account: str
    name: str
    turn: int = 0
    """For a content that was set aside: how many times it had been by then."""

    @property
    def says(self) -> dict[str, str]:
        """The statement that is endorsed.

        It has the very version, account and name, decision and reason; the file's hash is the
        subject. So a decision that was used, or is on another file, is not valid.
        """
        names = ("file", "decided", "by", "reason", "account", "name", "turn")
        return {name: str(getattr(self, name)) for name in names}

    def is_endorsed(self, connection: Connection, desk: HeldKeys) -> bool:
        """Whether a person endorsed it at the desk."""
        return is_stated(connection, Kind.FILE, subject=self.sha256, says=self.says, desk=desk)


_OF_WORD = ("by", "reason", "sha256", "account", "name")
"""Fields of a decision in its event."""


def files_of(account: tuple[str, str], *, environment: Environment) -> list[KnownFile]:
    """The newest version of each file of an account, by name."""
    environment.settings.account(account[0], account_id=account[1])
    with environment.store.reading() as connection:
        return [
            replace(file, decision=_last_decision(connection, file.file_id))
            for file in order_rows.newest_versions(connection, account, whole_file=WHOLE_FILE)
        ]


def _last_decision(connection: Connection, file_id: int) -> ChainLink | None:
    links = links_of(connection, [_entity(file_id)], entity=ENTITY)
    return links[-1] if links else None


def _entity(file_id: int) -> str:
    return f"{ENTITY}-{file_id}"


def _file_decision(link: ChainLink) -> FileDecision:
    """The decision in an event; a forged event may lack fields that every real one has."""
    cells = {name: link.data.get(name, "") for name in _OF_WORD}
    return FileDecision(link.entity_id, link.event, **cells)


def unendorsed_files(connection: Connection, desk: HeldKeys) -> Iterator[str]:
    """Sentences on decisions about files that were not endorsed at the desk."""
    for decision in map(_file_decision, links_of(connection, entity=ENTITY)):
        if not decision.is_endorsed(connection, desk):
            yield (
                f"file {decision.name} counts as {decision.decided} by {decision.by}, "
                "but the desk did not endorse it"
            )


def _stated(
    connection: Connection, run: Run, *, name: str, decision: str, environment: Environment
) -> ChainLink | None:
    """The last decision on the newest version of a name, if it is `decision` and endorsed."""
    newest = connection.scalar(order_rows.newest_files(run, order_file.c.name == name))
    last = _last_decision(connection, newest) if newest else None
    if last is None or last.event != decision:
        return None
    counts = _file_decision(last).is_endorsed(connection, environment.desk)
    return last if counts else None


def dismissed(connection: Connection, run: Run, *, name: str, environment: Environment) -> str:
    """Hash that identifies the version of a file that a person dismissed; "" without one.

    Whatever came after it under that name counts again.
    """
    decision = _stated(connection, run, name=name, decision=DISMISSED, environment=environment)
    return decision.data.get("identity", "") if decision else ""


def known_file(
    connection: Connection, run: Run, *, name: str, sha256: str, environment: Environment
) -> SourceFile | None:
    """Like `order_rows.known_file`, unless people decided to have this version read again."""
    known = order_rows.known_file(connection, run, name=name, sha256=sha256)
    if known is None:
        return None
    decision = _stated(connection, run, name=known.name, decision=AGAIN, environment=environment)
    return None if decision and decision.data.get("sha256", "") == sha256 else known


def record_decision(
    connection: Connection, decision: FileDecision, *, at: datetime, **more: str
) -> FileDecision:
    """Store a decision in the history; it counts once it is signed."""
    details = {name: str(getattr(decision, name)) for name in _OF_WORD}
    append(connection, [Event(ENTITY, decision.file, decision.decided, details | more)], at=at)
    return decision


@contextmanager
def guarded(path: Path, *, run: Run, environment: Environment, sha256: str = "") -> Iterator[str]:
    """Give the content's hash to a block that reads the file; a content set aside is refused.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it was set aside before, or is now, as it crashed its reader.
    """
    sha256 = sha256 or sha256_of(path)
    displayed = displayed_name(path.name)
    name = (run.merchant_id, run.account_id, displayed)

    def note(event: str, **more: object) -> None:
        with environment.store.writing() as connection:
            details = {**more, "name": list(name)}
            append(connection, [Event(CONTENT, sha256, event, details)], at=environment.clock())

    with environment.store.reading() as connection:
        links = links_of(connection, [sha256], entity=CONTENT)
        known = _folded(links, counts=lambda each: each.is_endorsed(connection, environment.desk))
    if known is not None:
        if name not in known.names:
            note(MET)
        msg = f"{displayed} was not read: this content is set aside ({known.why}); {UNTIL}"
        raise SourceUnreadableError(msg)
    try:
        yield sha256
    except ReaderBrokenError as error:
        if sha256_of(path) != sha256:
            raise  # it was replaced meanwhile: nobody knows which content it was
        note(QUARANTINED, why=str(error))
        msg = f"{error}; its content is set aside: {UNTIL}"
        raise SourceUnreadableError(msg) from None


@dataclass(frozen=True, slots=True)
class _Quarantine:
    """Why a content is not read, and the names under which it was met."""

    why: str
    names: frozenset[InboxName]


def _folded(
    links: Iterable[ChainLink], *, counts: Callable[[FileDecision], bool]
) -> _Quarantine | None:
    """The state after the events of one content, oldest first; None when it may be read."""
    now: _Quarantine | None = None
    turn = 0
    for link in links:
        name = _inbox_name(link.data)
        if link.event == TRIED_AGAIN:
            now = None if counts(_content_decision(link.entity_id, link.data, turn=turn)) else now
        elif link.event == QUARANTINED:
            turn += 1
            now = _Quarantine(str(link.data["why"]), frozenset([name]))
        elif now is not None:
            now = _Quarantine(now.why, now.names | {name})
    return now


def _inbox_name(data: Mapping[str, Any]) -> InboxName:
    merchant_id, account_id, name = map(str, data["name"])
    return merchant_id, account_id, name


def _content_decision(sha256: str, data: Mapping[str, Any], *, turn: int) -> FileDecision:
    merchant_id, account_id, name = _inbox_name(data)
    by, reason, account = str(data["by"]), str(data["reason"]), f"{merchant_id}/{account_id}"
    return FileDecision(sha256, TRIED_AGAIN, by, reason, sha256, account, name, turn=turn)


def read_again(name: str, *, account: tuple[str, str], person: Person, reason: str) -> None:
    """Let the next night read a file once more, though its content is known or was set aside.

    Raises:
        UsageError: there is no such file, or the reason is missing.
    """
    environment, by = person.environment, person.declared.name
    reason = _stated_why(reason)
    known = {file.source.name: file for file in files_of(account, environment=environment)}
    inbox_name = (*account, name)
    with environment.store.reading() as connection:
        of_content: dict[str, list[ChainLink]] = {}
        for link in links_of(connection, entity=CONTENT):
            of_content.setdefault(link.entity_id, []).append(link)
    # By every name under which a content was met.
    folded = {sha256: _folded(links, counts=bool) for sha256, links in of_content.items()}
    quarantined = [
        sha256 for sha256, content in folded.items() if content and inbox_name in content.names
    ]
    if name not in known and not quarantined:
        raise _unknown(name, account=account)
    with environment.store.writing() as connection:
        at, decisions = environment.clock(), []
        for sha256 in quarantined:
            details = {"by": by, "reason": reason, "name": list(inbox_name)}
            turn = len(links_of(connection, [sha256], entity=CONTENT, event=QUARANTINED))
            decisions.append(_content_decision(sha256, details, turn=turn))
            append(connection, [Event(CONTENT, sha256, TRIED_AGAIN, details)], at=at)
        if name in known:
            file = known[name]
            about = (file.source.sha256, "/".join(account), name)
            decision = FileDecision(_entity(file.file_id), AGAIN, by, reason, *about)
            decisions.append(record_decision(connection, decision, at=at))
        for decision in decisions:
            person.endorse(connection, Kind.FILE, decision.sha256, says=decision.says)


def dismiss(name: str, *, account: tuple[str, str], person: Person, reason: str) -> KnownFile:
    """Dismiss a file that could not be read, or that was expected and never came.

    A version without rows takes its place.

    Raises:
        UsageError: there is no such file, rows of it were taken, or the reason is missing.
    """
    environment, by = person.environment, person.declared.name
    reason = _stated_why(reason)
    known = {file.source.name: file for file in files_of(account, environment=environment)}
    if name not in known:
        raise _unknown(name, account=account)
    file = known[name]
    if file.source.kind is SourceKind.SETTLEMENT:
        msg = (
            f"{name} is a settlement file: without it nobody knows what was settled on its days; "
            "nothing was changed: ask the gateway for a correct one"
        )
        raise UsageError(msg)
    if not file.refused:
        msg = (
            f"{name} was read ({file.source.rows_accepted} rows taken): only a file that was "
            "refused whole, or never came, can be dismissed; nothing was changed: let a corrected "
            "version of the same name arrive"
        )
        raise UsageError(msg)
    with environment.store.writing(turn=Turn.ORDERS) as connection:
        at = environment.clock()
        nothing = unread(
            file.source.kind, name, sha256=absent_sha256(name, str(at), by, reason), rejected=0
        )
        run = runs.get(connection, file.run_id)
        file_id = order_rows.insert_file(connection, run, source=nothing, at=at)
        about = (file.source.sha256, "/".join(run.account), name)
        decision = FileDecision(_entity(file_id), DISMISSED, by, reason, *about)
        # Still in the turn of files; the history is appended to in that of the journal.
        join_turn(connection, Turn.JOURNAL)
        record_decision(connection, decision, at=at, identity=file.source.sha256)
        person.endorse(connection, Kind.FILE, decision.sha256, says=decision.says)
    return file


def _unknown(name: str, *, account: tuple[str, str]) -> UsageError:
    return UsageError(
        f"no night of {'/'.join(account)} has met a file {name} (`recon order-file check` names "
        "them)"
    )


def _stated_why(reason: str) -> str:
    if len(reason.split()) < REASON_WORDS_MIN or len(reason) > REASON_CHARACTERS:
        msg = f"say why in words (--reason): {REASON_WORDS_MIN} at least; kept in the history"
        raise UsageError(msg)
    return reason.strip()
