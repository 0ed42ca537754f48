"""The files of the gateway's answers, read as their hashes in the database have them.

A file counts of its own phase only, and of a key that was answered twice in a phase the newest.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.rows_file import read_rows
from recon.archive.schemas import ANSWER_SCHEMAS, REPLIES
from recon.archive.storage import reachable
from recon.model.errors import ArchiveBrokenError
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import NOT_READ, storage_at
from recon.store.nights.answer_parts import AnswerPart
from recon.store.nights.order_keys import hashes_of

EVERY_COLUMN = tuple(REPLIES.columns.names)
ANSWER = "answer"
_ALWAYS = ("phase", *REPLIES.key[1:4], ANSWER)
"""Columns without which nobody knows whose an answer is, and that it is one."""
UNREAD = f"what the gateway answered {NOT_READ}"


def read_part(
    part: AnswerPart, *, environment: Environment, columns: Collection[str] = EVERY_COLUMN
) -> pa.Table:
    """The rows of a file, exactly as its hash has them, and of its own phase."""
    _, merchant_id, account_id, *_ = part.path.split("/")
    storage = storage_at((merchant_id, account_id), environment=environment)
    with reachable(storage, doing=UNREAD):
        try:
            content = storage.read(part.path)
        except FileNotFoundError:
            content = b""
    if hashlib.sha256(content).hexdigest() != part.sha256:
        msg = (
            f"{part.path} is not in the archive {storage.shown}, or is not the file whose hash the "
            "database keeps: put the night's folder back from a backup of the archive"
        )
        raise ArchiveBrokenError(msg)
    wanted = (
        None if columns is EVERY_COLUMN else [n for n in EVERY_COLUMN if n in {*columns, *_ALWAYS}]
    )
    table = read_rows(content, name=part.path, schemas=ANSWER_SCHEMAS, columns=wanted)
    own = pc.and_(
        pc.equal(table["phase"].cast(pa.string()), part.phase),
        pc.equal(table["account_id"].cast(pa.string()), part.account_id),
    )
    return table.filter(own)


def answers_in_file(
    part: AnswerPart, *, environment: Environment, columns: Collection[str]
) -> pa.Table:
    """The rows of a file that is of answers; of the keys that were asked, too, there are files."""
    table = read_part(part, environment=environment, columns=columns)
    if ANSWER not in table.column_names:
        msg = (
            f"{part.path} is not what the history binds of the gateway's answers: it holds none, "
            "and the database counts some of it; put the database back from a backup"
        )
        raise ArchiveBrokenError(msg)
    return table


def joined(
    parts: Sequence[AnswerPart],
    *,
    environment: Environment,
    columns: Collection[str] = EVERY_COLUMN,
) -> pa.Table:
    """The answers of some files; of a key that was answered twice in a phase the newest."""
    by_phase: dict[tuple[str, str], list[pa.Table]] = {}
    for part in parts:
        table = answers_in_file(part, environment=environment, columns=columns)
        by_phase.setdefault((part.run_id, part.phase), []).append(table)
    tables = [table for of_phase in by_phase.values() for table in once(of_phase)]
    if not tables:
        return REPLIES.columns.empty_table()
    return pa.concat_tables(tables).unify_dictionaries()


def once(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """The files of one phase, each without the keys that a later one answers.

    Where no key is answered twice they are given back as they are.
    """
    # Whoever counts the numbers themselves holds each of them once more. Two of one hash cost a
    # look at every row, no more.
    hashes = [np.unique(hashes_of(table)) for table in tables]
    if len(np.unique(np.concatenate(hashes))) == sum(map(len, hashes)):
        return [*tables]
    later = pa.array([], pa.string())
    kept: list[pa.Table] = []
    for table in reversed(tables):
        kept.append(table.filter(pc.invert(pc.is_in(table["order_no"], value_set=later))))
        later = pa.concat_arrays([later, table["order_no"].combine_chunks()])
    return kept[::-1]


def chosen(
    parts: Sequence[AnswerPart],
    *,
    wanted: Callable[[pa.Table], pa.ChunkedArray],
    environment: Environment,
    columns: Collection[str],
) -> pa.Table:
    """As `joined`, of the rows that are wanted, with no more than one file held at a time.

    `wanted`: of rows with these columns, which.
    """
    kept = []
    for part in parts:
        table = answers_in_file(part, environment=environment, columns=columns)
        if (rows := table.filter(wanted(table))).num_rows:
            kept.append((part, rows))
    # A later file may say of a key what is not wanted: then the earlier one says nothing.
    newest = _newest(parts, of=[rows for _, rows in kept], environment=environment)
    tables = [
        rows.filter(
            pa.array(
                [newest[part.phase, key] == part.part_id for key in rows["order_no"].to_pylist()]
            )
        )
        for part, rows in kept
    ]
    if not tables:
        return joined([], environment=environment)
    return pa.concat_tables(tables).unify_dictionaries()


def _newest(
    parts: Sequence[AnswerPart], *, of: Sequence[pa.Table], environment: Environment
) -> Mapping[tuple[str, str], int]:
    """Phase and key of some rows -> the number of the newest file that answers it."""
    newest: dict[tuple[str, str], int] = {}
    if not of:
        return newest
    keys = pc.unique(pa.concat_tables(of)["order_no"])
    for part in parts:
        named = read_part(part, environment=environment, columns=["order_no"])["order_no"]
        for key in named.filter(pc.is_in(named, value_set=keys)).to_pylist():
            newest[part.phase, key] = part.part_id
    return newest
