"""What restricts money is noted outside the database as well, whoever does it and wherever.

`Store.writing` asks here: a transaction whose events restrict anything (a withdrawal, a rejection,
sending that was stopped, a verdict, a night that is NOT PROVEN) notes its newest link beside the
reports of every account, as pending before the commit and for good after it. The sender's own
events are not among them: it notes its claims itself, before a byte leaves (`steps.restore`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection

from recon.model.errors import OutputError
from recon.store.database import history
from recon.store.database.head_file import HeadFile, HeadNotes, NotedHead
from recon.store.database.history import Grown, Head

Account = tuple[str, str]
"""Merchant and account."""
Reading = Callable[[], AbstractContextManager[Connection]]
"""Opens one snapshot of the database."""


class OutsideHeads:
    """The head files of every account that one database serves."""

    def __init__(self, files: Mapping[Account, HeadFile]) -> None:
        self._accounts: dict[HeadFile, list[Account]] = {}
        by_path = {file.path: file for file in files.values()}
        for account, file in files.items():
            self._accounts.setdefault(by_path[file.path], []).append(account)

    def pending(self, connection: Connection) -> Callable[[], None]:
        """Note what this transaction is about to commit; call what comes back after the commit.

        That raises OutputError when what was done stands, but a file does not have it.
        """
        grown = history.grown(connection)
        if grown is None or not grown.restricts:
            return _nothing
        noting = _Noting(grown)
        for file, accounts in self._accounts.items():
            if file.path.parent.is_dir():
                noting.begin(file, head=partial(_own_head, connection, file, accounts))
        return noting.confirm


def _nothing() -> None:
    pass


@dataclass(slots=True)
class _Noting:
    """One link on its way into the head files."""

    grown: Grown
    noted: list[HeadFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def begin(self, file: HeadFile, *, head: Callable[[], Head | str]) -> None:
        """Before the commit. A database that is not the newest vouches for nothing."""
        try:
            foreign = file.note(head, of=self.grown.what, at=self.grown.at, pending=True)
        except OutputError as error:
            # To forbid is never refused for want of a file.
            self.problems.append(str(error))
        else:
            if not foreign:
                self.noted.append(file)

    def confirm(self) -> None:
        """After the commit."""
        for file in self.noted:
            try:
                file.note(lambda: self.grown.head, of=self.grown.what, at=self.grown.at)
            except OutputError as error:
                self.problems.append(str(error))
        if self.problems:
            msg = (
                f"{self.grown.what}: that stands in the database, but a backup restored from "
                f"before it would not know: {self.problems[0]}"
            )
            raise OutputError(msg)


def _own_head(connection: Connection, file: HeadFile, accounts: Sequence[Account]) -> Head | str:
    foreign = missing(connection, file, standing=file.standing(), accounts=accounts)
    return foreign or history.head(connection)


def problem_of(file: HeadFile, *, accounts: Iterable[Account], reading: Reading) -> str:
    """What the head file knows and the database does not, in words; "" for nothing.

    The file is read first: whatever it has by then the snapshot taken afterwards must have.

    Raises:
        OutputError: the file cannot be read.
    """
    standing = file.standing()
    with reading() as connection:
        return missing(connection, file, standing=standing, accounts=accounts)


def missing(
    connection: Connection, file: HeadFile, *, standing: HeadNotes, accounts: Iterable[Account]
) -> str:
    """What the notes of a head file say against this database; "" for nothing."""
    if not standing.notes:
        return _without_notes(connection, file, accounts=accounts)
    foreign = first_foreign(connection, standing.notes)
    if foreign is None:
        return ""
    head = history.head(connection)
    return (
        f"{file.path} noted history {foreign.head.sequence} of {foreign.of} at {foreign.at}, "
        f"this database ends with {head.sequence} and does not have it: it is a backup that was "
        "restored, a copy beside the one that works, or another database. What was sent since is "
        "not known here: put the newest database back, or let two people run `recon db "
        "accept-restore`"
    )


def first_foreign(connection: Connection, notes: Sequence[NotedHead]) -> NotedHead | None:
    """The oldest note whose link this database does not have."""
    hashes = history.hashes_of(connection, [note.head.sequence for note in notes])
    for note in notes:
        if not note.head.hash or hashes.get(note.head.sequence) != note.head.hash:
            return note
    return None


def _without_notes(connection: Connection, file: HeadFile, *, accounts: Iterable[Account]) -> str:
    for account in accounts:
        noted = history.last_noted(connection, account)
        if noted is not None:
            entity, at = noted
            did = "sent a batch" if entity == "batch" else "reported a night"
            return (
                f"{file.path} is not there or empty, but this database {did} of account "
                f"{'/'.join(account)} at {at:%Y-%m-%d %H:%M} UTC and noted it there: without that "
                "file nobody can tell whether this is the newest database. Put the file back, also "
                "where the reports folder was moved without it; if it is lost, let two people run "
                "`recon db accept-restore`"
            )
    return ""
