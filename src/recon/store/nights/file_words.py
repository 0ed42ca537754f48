"""What people said of the files of an account: to be read again, or let go; kept in the history."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, select

from recon.model.words import SourceFile, SourceKind
from recon.store.database.engine import Turn, join_turn
from recon.store.database.history import ChainLink, Event, append, links_of
from recon.store.nights import order_rows, runs
from recon.store.nights.runs import Run
from recon.store.schema import order_file, reject
from recon.store.schema.columns import Owner, in_account

ENTITY = "file"
FILES_LOOKED_AT_MAX = 1_000
"""Of earlier nights, to know how large a sender's files usually are."""
AGAIN, DISMISSED = "read again", "dismissed"


@dataclass(frozen=True, slots=True)
class FileWord:
    """One word as the desk signs it and the history keeps it."""

    entity: str
    file: str
    """Entity id: the version, or the content, that it is about."""
    said: str
    by: str
    reason: str
    sha256: str
    """Of the file."""
    account: str
    name: str
    turn: int = 0
    """Of a content that was set aside: how often it was by then."""

    @property
    def says(self) -> dict[str, str]:
        """As a word says it."""
        names = ("file", "said", "by", "reason", "account", "name")
        return {name: str(getattr(self, name)) for name in names} | {"turn": str(self.turn)}

    @property
    def details(self) -> dict[str, str]:
        """As its event tells it."""
        names = ("by", "reason", "sha256", "account", "name")
        return {name: str(getattr(self, name)) for name in names}


Counts = Callable[[FileWord], bool]
"""Whether a word is one that somebody said at the desk."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The newest version of a file of an account."""

    file_id: int
    run_id: str
    business_date: date
    version: int
    source: SourceFile
    read_at: datetime
    refused: str
    """Why nothing of it could be read; "" where it was read."""
    word: ChainLink | None
    """The last event of what people said of it, with `by` and `reason`."""


def newest_files(connection: Connection, owner: Owner, *, whole_file: str) -> list[KnownFile]:
    """The newest version of each file of an account, by name.

    `whole_file` is the column of the reject that stands for a file that could not be read.
    """
    newest = order_file.c.file_id.in_(order_rows.newest_files(owner))
    query = select(order_file).where(newest).order_by(order_file.c.name)
    rows = connection.execute(query).mappings().all()
    return [_known(connection, row, whole_file=whole_file) for row in rows]


def rows_before(connection: Connection, run: Run) -> list[tuple[str, int]]:
    """Name and rows of the order files of earlier nights, newest night first, newest version."""
    files = connection.execute(
        select(order_file.c.business_date, order_file.c.name, order_file.c.rows_read)
        .where(
            *in_account(order_file, run),
            order_file.c.kind == SourceKind.ORDERS,
            order_file.c.business_date < run.business_date,
            *runs.counting(run),
        )
        .order_by(order_file.c.business_date.desc(), order_file.c.file_id)
        .limit(FILES_LOOKED_AT_MAX)
    )
    newest = {(row.business_date, row.name): row.rows_read for row in files}
    return [(name, rows) for (_, name), rows in newest.items()]


def _last_word(connection: Connection, file_id: int) -> ChainLink | None:
    links = links_of(connection, [_entity(file_id)], entity=ENTITY)
    return links[-1] if links else None


def all_words(connection: Connection) -> list[FileWord]:
    """Every word on a version of a file, oldest first."""
    return [_file_word(link) for link in links_of(connection, entity=ENTITY)]


def _file_word(link: ChainLink) -> FileWord:
    """A word as its event has it; of a forged one may be missing what no word lacks."""
    names = ("by", "reason", "sha256", "account", "name")
    cells = {name: link.data.get(name, "") for name in names}
    return FileWord(ENTITY, link.entity_id, link.event, **cells)


def _counts(
    connection: Connection, run: Run, *, name: str, decision: str, counts: Counts
) -> ChainLink | None:
    """The last word on the newest version of a name, where it is this and counts at the desk."""
    newest = connection.scalar(order_rows.newest_files(run, order_file.c.name == name))
    last = _last_word(connection, newest) if newest else None
    if last is None or last.event != decision or not counts(_file_word(last)):
        return None
    return last


def dismissed(connection: Connection, run: Run, *, name: str, counts: Counts) -> str:
    """What told the version of a file from others that somebody let go; "" when nobody did.

    Whatever came after it under that name counts again.
    """
    word = _counts(connection, run, name=name, decision=DISMISSED, counts=counts)
    return word.data.get("identity", "") if word else ""


def known_file(
    connection: Connection, run: Run, *, name: str, sha256: str, counts: Counts
) -> SourceFile | None:
    """As `order_rows.known_file`, unless somebody said that this version is to be read again."""
    known = order_rows.known_file(connection, run, name=name, sha256=sha256)
    if known is None:
        return None
    word = _counts(connection, run, name=known.name, decision=AGAIN, counts=counts)
    return None if word and word.data.get("sha256", "") == sha256 else known


def say_again(
    connection: Connection,
    known_file: KnownFile,
    *,
    account: str,
    by: str,
    reason: str,
    at: datetime,
) -> FileWord:
    """Let the next night that meets this content read it once more; the word to be signed."""
    source, file = known_file.source, _entity(known_file.file_id)
    word = FileWord(ENTITY, file, AGAIN, by, reason, source.sha256, account, source.name)
    append(connection, [Event(ENTITY, file, AGAIN, word.details)], at=at)
    return word


def dismiss(
    connection: Connection,
    known_file: KnownFile,
    *,
    nothing: SourceFile,
    by: str,
    reason: str,
    at: datetime,
) -> FileWord:
    """Put a version without rows in place of one that could not be read; the word to be signed."""
    run = runs.get(connection, known_file.run_id)
    file_id = order_rows.insert_file(connection, run, source=nothing, at=at)
    account, source = f"{run.merchant_id}/{run.account_id}", known_file.source
    file = _entity(file_id)
    word = FileWord(ENTITY, file, DISMISSED, by, reason, source.sha256, account, source.name)
    # Within the turn of files; the history grows in the journal's.
    join_turn(connection, Turn.JOURNAL)
    details = word.details | {"identity": source.sha256}
    append(connection, [Event(ENTITY, file, DISMISSED, details)], at=at)
    return word


def _entity(file_id: int) -> str:
    return f"{ENTITY}-{file_id}"


def _known(connection: Connection, row: Mapping[Any, Any], *, whole_file: str) -> KnownFile:
    refused = connection.execute(
        select(reject.c.reason).where(
            reject.c.file_id == row["file_id"], reject.c.column == whole_file
        )
    ).scalar()
    word = _last_word(connection, row["file_id"])
    names = ("file_id", "run_id", "business_date", "version", "read_at")
    cells = {name: row[name] for name in names}
    return KnownFile(**cells, source=order_rows.source_file(row), refused=refused or "", word=word)


CONTENT = "file content"
SET_ASIDE, TRIED_AGAIN, MET = "set aside", "read again", "met again"


@dataclass(frozen=True, slots=True)
class SetAside:
    """Why a content is not read, and under which names it was met."""

    why: str
    names: frozenset[tuple[str, str, str]]
    """Merchant, account, name."""


def set_aside_content(connection: Connection, sha256: str, *, counts: Counts) -> SetAside | None:
    """What is known of a content that nobody is to try; None when it may be read.

    `counts` says of a word that it may be whether somebody said it at the desk.
    """
    return _folded(links_of(connection, [sha256], entity=CONTENT), counts=counts)


def set_aside(
    connection: Connection,
    sha256: str,
    *,
    why: str,
    name: tuple[str, str, str],
    at: datetime,
) -> None:
    """Let nobody try this content again; why is a sentence about it."""
    details = {"why": why, "name": list(name)}
    append(connection, [Event(CONTENT, sha256, SET_ASIDE, details)], at=at)


def note_met(
    connection: Connection, sha256: str, *, name: tuple[str, str, str], at: datetime
) -> None:
    """The same content lies under another name."""
    append(connection, [Event(CONTENT, sha256, MET, {"name": list(name)})], at=at)


def contents_of(connection: Connection, name: tuple[str, str, str]) -> tuple[str, ...]:
    """Every content that was met under a name and is set aside."""
    of_content: dict[str, list[ChainLink]] = {}
    for link in links_of(connection, entity=CONTENT):
        of_content.setdefault(link.entity_id, []).append(link)
    folded = {sha256: _folded(links, counts=lambda _: True) for sha256, links in of_content.items()}
    return tuple(
        sha256
        for sha256, content in folded.items()
        if content is not None and name in content.names
    )


def let_read_again(
    connection: Connection,
    contents: Iterable[str],
    *,
    name: tuple[str, str, str],
    by: str,
    reason: str,
    at: datetime,
) -> list[FileWord]:
    """Let contents that were set aside be tried once more; the words to be signed."""
    details = {"by": by, "reason": reason, "name": list(name)}
    words = []
    for sha256 in contents:
        turn = len(links_of(connection, [sha256], entity=CONTENT, event=SET_ASIDE))
        words.append(_word(sha256, details, turn=turn))
        append(connection, [Event(CONTENT, sha256, TRIED_AGAIN, details)], at=at)
    return words


def _word(sha256: str, data: Mapping[str, Any], *, turn: int) -> FileWord:
    merchant_id, account_id, name = map(str, data["name"])
    return FileWord(
        *(CONTENT, sha256, TRIED_AGAIN, str(data["by"]), str(data["reason"])),
        *(sha256, f"{merchant_id}/{account_id}", name),
        turn=turn,
    )


def _folded(links: Iterable[ChainLink], *, counts: Counts) -> SetAside | None:
    """What some events of one content come to, oldest first."""
    now: SetAside | None = None
    turn = 0
    for link in links:
        data = link.data
        merchant_id, account_id, file_name = map(str, data["name"])
        name = (merchant_id, account_id, file_name)
        if link.event == TRIED_AGAIN:
            now = None if counts(_word(link.entity_id, data, turn=turn)) else now
        elif link.event == SET_ASIDE:
            turn += 1
            now = SetAside(str(data["why"]), frozenset([name]))
        elif now is not None:
            now = SetAside(now.why, now.names | {name})
    return now
