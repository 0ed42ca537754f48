"""What the gateway was asked and what it answered, written to the night's folder as it comes.

Each shard's answers are a file, which counts once the database has its hash. At the end of a query
the files are one step of the night: its manifest names them, and the history binds the manifest.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.rows_file import ROWS_PER_GROUP, read_rows
from recon.archive.schemas import ANSWER_SCHEMAS, ASKED, OF_ANSWERS, REPLIES, FileSchema
from recon.archive.step_folder import FileEntry, Rows, seal_parts, write_part
from recon.archive.storage import MAKE_WRITABLE, Storage, reachable
from recon.config.rules import Rules
from recon.instructions.queries import KeyAnswers
from recon.model.errors import ArchiveBrokenError
from recon.model.terms import GatewayState, KeyAnswer
from recon.model.uptime import Uptime
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    NOT_READ,
    Terms,
    about_of,
    bind,
    bound_step,
    folder_of,
    links,
    newest,
    storage_at,
    storage_of,
)
from recon.store import Connection
from recon.store.database.history import head
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import AnswerPart
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import Hashes, hashes_of
from recon.store.schema.columns import REASON_CHARACTERS

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


def answers_in(
    parts: Sequence[AnswerPart],
    *,
    environment: Environment,
    columns: Collection[str] = EVERY_COLUMN,
    wanted: Callable[[pa.Table], pa.ChunkedArray] | None = None,
) -> pa.Table:
    """REPLIES of some files in the order of coming; of a key answered twice in a phase the newest.

    `columns`: those that are asked for; the key and the phase are there in any case. `wanted` says
    which rows are; no more than those of one file are held beside them.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    tables: list[pa.Table] = []
    # Whoever counts the numbers themselves holds each of them once more. Two of one hash cost a
    # look at every row, no more.
    hashes: dict[tuple[str, str], list[Hashes]] = {}
    for part in parts:
        table = read_part(part, environment=environment, columns=columns)
        if ANSWER not in table.column_names:
            msg = (
                f"{part.path} is not what the history binds of the gateway's answers: it holds "
                "none, and the database counts some of it; put the database back from a backup"
            )
            raise ArchiveBrokenError(msg)
        hashes.setdefault((part.run_id, part.phase), []).append(np.unique(hashes_of(table)))
        tables.append(table if wanted is None else table.filter(wanted(table)))
    if any(len(np.unique(np.concatenate(some))) < sum(map(len, some)) for some in hashes.values()):
        later: dict[tuple[str, str], pa.Array] = {}
        for place, part in reversed([*enumerate(parts)]):
            named = read_part(part, environment=environment, columns=["order_no"])["order_no"]
            known = later.get((part.run_id, part.phase), pa.array([], pa.string()))
            again = pc.is_in(tables[place]["order_no"], value_set=known)
            tables[place] = tables[place].filter(pc.invert(again))
            later[part.run_id, part.phase] = pa.concat_arrays([known, named.combine_chunks()])
    if not tables:
        return REPLIES.columns.empty_table()
    return pa.concat_tables(tables).unify_dictionaries()


_SHOWN = (KeyAnswer.FOUND, "")
"""Of a payment whose key has no answer of its own."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When questions were asked, at the earliest."""

    at: datetime
    """By the clock on the wall."""
    uptime: Uptime
    after: int
    """The newest link of the history then."""


def this_moment(environment: Environment) -> Moment:
    """Taken before a question is asked."""
    with environment.store.reading() as connection:
        after = head(connection).sequence
    return Moment(environment.clock(), environment.uptime(), after)


@dataclass(frozen=True, slots=True)
class ReplyRows:
    """Final answers about some keys of one account as rows of a file: a tenth of the memory."""

    phase: str
    account_id: str
    answered: int
    """Keys."""
    asked: Moment
    table: pa.Table
    """Columns of REPLIES: a row per payment, and one per key that showed none."""


def reply_rows(
    run: Run,
    got: KeyAnswers,
    *,
    asked: Moment,
    phase: str = answer_parts.BASELINE,
    account_id: str = "",
) -> ReplyRows:
    """The rows of some answers; they cost least while the answers have just come."""
    account_id = account_id or run.account_id
    order_nos = [row["order_no"] for row in got.observations]
    silent = [*got.answers.keys() - set(order_nos)]
    order_nos += silent
    evaluated = [got.answers.get(order_no, _SHOWN) for order_no in order_nos]
    columns: dict[str, Sequence[Any]] = {
        "order_no": order_nos,
        "answer": [answer for answer, _ in evaluated],
        "reason": [why[:REASON_CHARACTERS] for _, why in evaluated],
    }
    beside = {
        "phase": phase,
        "merchant_id": run.merchant_id,
        "account_id": account_id,
        "answered_at": asked.at,
        "asked_after": asked.after,
        "boot_id": asked.uptime.boot_id,
        "uptime_ms": asked.uptime.milliseconds,
        "gateway_at": got.gateway_at,
    }
    columns |= {name: [value] * len(order_nos) for name, value in beside.items()}
    for field in REPLIES.columns:
        if field.name not in columns:
            blank = "" if pa.types.is_dictionary(field.type) or field.type == pa.string() else None
            shown = [row.get(field.name, blank) for row in got.observations]
            columns[field.name] = [*shown, *[blank] * len(silent)]
    arrays = [pa.array(columns[field.name], field.type) for field in REPLIES.columns]
    table = pa.table(arrays, schema=REPLIES.columns)
    return ReplyRows(phase, account_id, len(got.answers), asked, table)


def chargeback_codes(rules: Rules) -> list[str]:
    """The codes of payments that were charged back."""
    wanted = GatewayState.CHARGEBACK.value
    return [code for code, state in rules.payment_status.items() if state == wanted]


def _codes_in(table: pa.Table) -> dict[str, dict[str, tuple[int, str]]]:
    """Field -> code -> how many payments show it, and the first of their orders."""
    codes: dict[str, dict[str, tuple[int, str]]] = {}
    for name in answer_parts.FIELDS:
        shown = pa.table({"code": table[name].cast(pa.string()), "order_no": table["order_no"]})
        shown = shown.filter(pc.not_equal(shown["code"], ""))
        counted = shown.group_by("code").aggregate([("order_no", "count"), ("order_no", "min")])
        codes[name] = {
            row["code"]: (row["order_no_count"], row["order_no_min"]) for row in counted.to_pylist()
        }
    return codes


PARTS = 8
"""By the last byte of each number."""
Numbers: TypeAlias = "pa.Array | pa.ChunkedArray | Iterable[str]"


class OrderNumbers(Sequence[str]):
    """Each once and sorted; a text is made of those alone that somebody takes."""

    def __init__(self, column: pa.Array) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            taken: list[str] = self.column[index].to_pylist()
            return taken
        number: str = self.column[index].as_py()
        return number


def order_numbers(parts: Iterable[Numbers]) -> OrderNumbers:
    """All that the parts name, the blank one included."""
    chunks: list[pa.Array] = []
    for part in parts:
        if isinstance(part, pa.ChunkedArray):
            chunks += [chunk.cast(pa.string()) for chunk in part.chunks]
        elif isinstance(part, pa.Array):
            chunks.append(part.cast(pa.string()))
        else:
            chunks.append(pa.array([*part], pa.string()))
    every = _apart(pa.chunked_array(chunks, pa.string()))
    del chunks  # the order is found beside one column, not beside all
    different = pa.concat_arrays([pc.unique(some) for some in every])
    return OrderNumbers(different.take(pc.sort_indices(different)))


def _apart(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Many numbers in parts that share none: counting takes several times the room of its texts."""
    if len(column) <= ROWS_PER_GROUP:
        yield column
        return
    ends = pc.binary_slice(column.cast(pa.binary()), -1).dictionary_encode()
    codes = np.concatenate([chunk.indices.fill_null(0).to_numpy() for chunk in ends.chunks]).astype(
        np.uint8
    )
    for part in range(PARTS):
        yield column.filter(pa.array(codes % PARTS == part))


UNWRITTEN = f"what the gateway answered could not be kept, so nothing was sent: {MAKE_WRITABLE}"
UNWRITTEN_AFTER = (
    "what the gateway answered after money moved could not be kept; what was sent stands in the "
    "database and is not sent twice: make the archive writable, then start the night again"
)


def note_asked(
    run: Run, *, phase: str, keys: OrderNumbers | Iterable[str], environment: Environment
) -> OrderNumbers:
    """Note the keys to ask for; those without a final answer, sorted.

    What was noted before (a restart) stays as it is.

    Raises:
        ArchiveError: the archive cannot be written or read.
    """
    with environment.store.reading() as connection:
        every = answer_parts.of_run(connection, run.run_id)
    parts = [part for part in every if part.phase == phase]
    known = keys_in(parts, environment=environment)
    given = [part for part in parts if part.answered]
    answered = answers_in(given, environment=environment, columns=[ANSWER])["order_no"]
    wanted = keys if isinstance(keys, OrderNumbers) else order_numbers([keys])
    new = _not_among(wanted.column, known)
    if len(new):
        cells = {"phase": phase, "merchant_id": run.merchant_id, "account_id": run.account_id}
        codes = pa.array(np.zeros(len(new), np.int32))
        arrays = [
            pa.DictionaryArray.from_arrays(codes, [cells[field.name]])
            if field.name in cells
            else new.cast(field.type)
            for field in ASKED.columns
        ]
        table = pa.table(arrays, schema=ASKED.columns)
        _save(run, ASKED, table, environment=environment, phase=phase, asked=len(new))
    # Of a night that begins there is nothing but these.
    both = order_numbers([known, new]).column if len(known) else new
    return OrderNumbers(_not_among(both, answered))


def _not_among(column: pa.Array, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Looking them up takes several times the room of these: where there are none, nobody looks."""
    if not len(others):
        return column
    return column.filter(pc.invert(pc.is_in(column, value_set=others)))


def save(run: Run, *rows: ReplyRows, environment: Environment) -> None:
    """Write some final answers of one phase and account to a file, and commit its hash.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    given = [some for some in rows if some.answered]
    if not given:
        return
    table = pa.concat_tables([some.table for some in given]).unify_dictionaries()
    codes = chargeback_codes(environment.settings.rules)
    status = table["payment_status"].cast(pa.string())
    wanted = pa.array([code for code in codes if code], pa.string())
    back = table.filter(pc.is_in(status, value_set=wanted))
    columns = (back[name].cast(pa.string()).to_pylist() for name in ("order_no", "payment_status"))
    _save(
        run,
        REPLIES,
        table.combine_chunks(),
        charged_back=zip(*columns, strict=True),
        environment=environment,
        phase=given[0].phase,
        account_id=given[0].account_id,
        answered=sum(some.answered for some in given),
        last_at=pc.max(pc.coalesce(table["queried_at"], table["answered_at"])).as_py(),
        asked_after=pc.max(table["asked_after"]).as_py(),
        codes=json.dumps(_codes_in(table), sort_keys=True),
        chargeback_codes=answer_parts.joined_codes(codes),
    )


def _save(
    run: Run,
    schema: FileSchema,
    table: pa.Table,
    /,
    *,
    environment: Environment,
    phase: str,
    account_id: str = "",
    charged_back: Iterable[tuple[str, str]] = (),
    **figures: Any,
) -> None:
    storage = storage_of(run, environment=environment)
    with environment.store.reading() as connection:
        step, _ = _open_step(connection, run)
        number = len(answer_parts.of_run(connection, run.run_id)) + 1
    folder = f"{folder_of(run)}/{step}"
    with reachable(storage, doing=_not_stored(phase)):
        entry = write_part(storage, Rows.of(table, schema=schema, number=number), folder=folder)
    environment.crash_point("archived some answers")
    part = AnswerPart(
        run_id=run.run_id,
        phase=phase,
        merchant_id=run.merchant_id,
        account_id=account_id or run.account_id,
        path=f"{folder}/{entry.name}",
        schema_label=entry.schema,
        sha256=entry.sha256,
        size_bytes=entry.bytes,
        row_count=entry.rows,
        **figures,
    )
    with environment.store.writing() as connection:
        answer_parts.save(connection, part, charged_back=charged_back)


def seal(run: Run, *, environment: Environment) -> None:
    """Make the files of the answers a step of the night, and bind it; nothing where none is new.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    storage = storage_of(run, environment=environment)
    with environment.store.reading() as connection:
        step, number = _open_step(connection, run)
        folder = f"{folder_of(run)}/{step}"
        parts = [p for p in answer_parts.of_run(connection, run.run_id) if p.folder == folder]
        bound = newest(links(connection, run.run_id))
    if not parts:
        return
    after = {
        f"{OF_ANSWERS}-{before}": bound[f"{OF_ANSWERS}-{before}"] for before in range(1, number)
    }
    terms = Terms("", environment.settings.rules.digest)
    about = about_of(run, step, terms=terms, after=after, environment=environment)
    with reachable(storage, doing=_not_stored(parts[-1].phase)):
        sealed = seal_parts(
            storage, night=folder_of(run), about=about, entries=[part.entry for part in parts]
        )
    environment.crash_point("archived the answers")
    with environment.store.writing() as connection:
        bind(connection, run, sealed=[sealed], environment=environment)


def _not_stored(phase: str) -> str:
    """What becomes of the night when its archive fails, and what to do."""
    return UNWRITTEN_AFTER if phase == answer_parts.AFTER else UNWRITTEN


def _open_step(connection: Connection, run: Run) -> tuple[str, int]:
    """The step that answers which come now belong to, and its number."""
    bound = {link.step for link in links(connection, run.run_id)}
    number = 1 + sum(step.startswith(f"{OF_ANSWERS}-") for step in bound)
    return f"{OF_ANSWERS}-{number}", number


def keys_in(parts: Iterable[AnswerPart], *, environment: Environment) -> pa.Array:
    """All keys of some files, answered or not, each once: a column takes an eighth of a set."""
    files = [part for part in parts if part.schema_label == ASKED.label.decode()]
    of_number: dict[str, Any] = {"columns": ["order_no"], "environment": environment}
    columns = (read_part(part, **of_number)["order_no"] for part in files)
    if len(files) == 1:
        # Each file names a key once: nobody has to look for repeats.
        return pa.concat_arrays([pa.array([], pa.string()), *next(columns).chunks])
    return order_numbers(columns).column


def bound_entries(
    connection: Connection, run_id: str, *, storage: Storage
) -> Mapping[str, FileEntry]:
    """Path -> entry of each file of answers that the history of a run binds."""
    entries: dict[str, FileEntry] = {}
    for link in links(connection, run_id):
        if link.step.startswith(f"{OF_ANSWERS}-"):
            sealed = bound_step(storage, link, doing=UNREAD)
            entries |= {f"{link.folder}/{entry.name}": entry for entry in sealed.manifest.files}
    return entries


def unbound(connection: Connection, run: Run, *, environment: Environment) -> str:
    """Why the answers that a run has are not those that its history binds; "" when they are.

    Raises:
        ArchiveError: the archive cannot be read.
    """
    storage = storage_of(run, environment=environment)
    bound = bound_entries(connection, run.run_id, storage=storage)
    parts = answer_parts.of_run(connection, run.run_id)
    saved = {part.path: part.entry for part in parts}
    tampered = sorted(path for path in {*bound, *saved} if bound.get(path) != saved.get(path))
    if tampered:
        return f"{tampered[0]} is not what the history binds of the gateway's answers"
    for part in parts:
        if part.schema_label == ASKED.label.decode() and part.asked != part.row_count:
            return f"{part.path} has {part.row_count} keys, and {part.asked} are counted"
    return ""
