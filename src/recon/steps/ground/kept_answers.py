"""What the gateway was asked and what it answered, written to the night's folder as it comes.

Each shard's answers are a file, which counts once the database has its hash. At the end of a query
the files are one step of the night: its manifest names them, and the history binds the manifest.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.rows_file import ROWS_PER_GROUP, read_rows
from recon.archive.schemas import ANSWER_SCHEMAS, ASKED, OF_ANSWERS, REPLIES, FileSchema
from recon.archive.step_folder import FileEntry, Rows, seal_parts, write_part
from recon.archive.storage import MAKE_WRITABLE, reachable
from recon.config.rules import Rules
from recon.model.errors import ArchiveBrokenError
from recon.model.nights import Mode
from recon.model.uptime import Uptime
from recon.model.words import GatewayState, KeyAnswer
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    NOT_READ,
    Terms,
    about_of,
    bind,
    bound_step,
    folder_of,
    links,
    storage_at,
    storage_of,
)
from recon.store import Connection
from recon.store.database.history import head
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import AnswerPart
from recon.store.nights.runs import Run, let_go_of
from recon.store.nights.stored_orders import hashes_of
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


CODE_FIELDS = ("payment_status", "query_result")
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
class Replies:
    """Final answers about some keys of one account."""

    phase: str
    account_id: str
    answers: Mapping[str, tuple[KeyAnswer, str]]
    """Order number -> answer and the reason of a failure."""
    payments: Sequence[Mapping[str, Any]]
    """One row per payment shown, as `recon.instructions.queries` has them."""
    asked: Moment
    gateway_at: datetime | None = None


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


def reply_rows(run: Run, replies: Replies) -> ReplyRows:
    """The rows of some answers; they cost least while the answers have just come."""
    table = _table(run, replies)
    answered = len(replies.answers)
    return ReplyRows(replies.phase, replies.account_id, answered, replies.asked, table)


def asked_table(run: Run, keys: pa.Array, *, phase: str) -> pa.Table:
    """Columns of ASKED."""
    cells = {"phase": phase, "merchant_id": run.merchant_id, "account_id": run.account_id}
    arrays = [
        _repeated(cells[field.name], field, times=len(keys))
        if field.name in cells
        else keys.cast(field.type)
        for field in ASKED.columns
    ]
    return pa.table(arrays, schema=ASKED.columns)


def _table(run: Run, replies: Replies) -> pa.Table:
    answers, shown = replies.answers, replies.payments
    order_nos = [row["order_no"] for row in shown]
    silent = [*answers.keys() - set(order_nos)]
    order_nos += silent
    judged = [answers.get(order_no, _SHOWN) for order_no in order_nos]
    columns: dict[str, Sequence[Any]] = {
        "order_no": order_nos,
        "answer": [answer for answer, _ in judged],
        "reason": [why[:REASON_CHARACTERS] for _, why in judged],
    }
    beside = {
        "phase": replies.phase,
        "merchant_id": run.merchant_id,
        "account_id": replies.account_id,
        "answered_at": replies.asked.at,
        "asked_after": replies.asked.after,
        "boot_id": replies.asked.uptime.boot_id,
        "uptime_ms": replies.asked.uptime.milliseconds,
        "gateway_at": replies.gateway_at,
    }
    schema = REPLIES.columns
    for field in (field for field in schema if field.name not in {*columns, *beside}):
        blank = "" if _is_text(field) else None
        columns[field.name] = [row.get(field.name, blank) for row in shown] + [blank] * len(silent)
    arrays = [
        _repeated(beside[field.name], field, times=len(order_nos))
        if field.name in beside
        else _array(columns[field.name], field)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def chargeback_codes(rules: Rules) -> list[str]:
    """The codes of payments that were charged back."""
    wanted = GatewayState.CHARGEBACK.value
    return [code for code, state in rules.payment_status.items() if state == wanted]


def charged_back_in(table: pa.Table, *, codes: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Order and code of each payment with one of these codes."""
    if "payment_status" not in table.column_names:
        return ()
    status = table["payment_status"].cast(pa.string())
    wanted = pc.is_in(status, value_set=pa.array([code for code in codes if code], pa.string()))
    shown = table.filter(wanted)
    columns = (shown[name].cast(pa.string()).to_pylist() for name in ("order_no", "payment_status"))
    return zip(*columns, strict=True)


def codes_in(table: pa.Table) -> dict[str, dict[str, tuple[int, str]]]:
    """Field -> code -> how many payments show it, and the first of their orders."""
    codes: dict[str, dict[str, tuple[int, str]]] = {}
    for name in CODE_FIELDS:
        shown = pa.table({"code": table[name].cast(pa.string()), "order_no": table["order_no"]})
        shown = shown.filter(pc.not_equal(shown["code"], ""))
        counted = shown.group_by("code").aggregate([("order_no", "count"), ("order_no", "min")])
        codes[name] = {
            row["code"]: (row["order_no_count"], row["order_no_min"]) for row in counted.to_pylist()
        }
    return codes


def _is_text(field: pa.Field) -> bool:
    return bool(pa.types.is_dictionary(field.type) or pa.types.is_string(field.type))


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    return pa.array(values, _plain(field)).cast(field.type)


def _repeated(value: Any, field: pa.Field, *, times: int) -> pa.Array:
    if pa.types.is_dictionary(field.type):
        codes = pa.array(np.zeros(times, field.type.index_type.to_pandas_dtype()))
        return pa.DictionaryArray.from_arrays(codes, pa.array([value], _plain(field)))
    return pa.repeat(pa.scalar(value, field.type), times)


def _plain(field: pa.Field) -> pa.DataType:
    return field.type.value_type if pa.types.is_dictionary(field.type) else field.type


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
    chunks = [chunk for part in parts for chunk in _columns_of(part)]
    every = _apart(pa.chunked_array(chunks, pa.string()))
    del chunks  # the order is found beside one column, not beside all
    different = pa.concat_arrays([pc.unique(some) for some in every])
    return OrderNumbers(different.take(pc.sort_indices(different)))


def _columns_of(part: Numbers) -> list[pa.Array]:
    if isinstance(part, pa.ChunkedArray):
        return [chunk.cast(pa.string()) for chunk in part.chunks]
    if isinstance(part, pa.Array):
        return [part.cast(pa.string())]
    return [pa.array([*part], pa.string())]


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
        known = asked_keys(connection, run, phases=[phase], environment=environment)
        answered = table_of_run(
            connection, run, phases=[phase], environment=environment, columns=["answer"]
        )["order_no"]
    wanted = keys if isinstance(keys, OrderNumbers) else order_numbers([keys])
    new = _not_among(wanted.column, known)
    if len(new):
        table = asked_table(run, new, phase=phase)
        _keep(run, ASKED, table, environment=environment, phase=phase, asked=len(new))
    # Of a night that begins there is nothing but these.
    every = order_numbers([known, new]).column if len(known) else new
    return OrderNumbers(_not_among(every, answered))


def _not_among(column: pa.Array, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Looking them up takes several times the room of these: where there are none, nobody looks."""
    if not len(others):
        return column
    return column.filter(pc.invert(pc.is_in(column, value_set=others)))


def keep(run: Run, *rows: ReplyRows, environment: Environment) -> None:
    """Write some final answers of one phase and account to a file, and commit its hash.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    given = [some for some in rows if some.answered]
    if not given:
        return
    rules = environment.settings.rules
    table = pa.concat_tables([some.table for some in given]).unify_dictionaries()
    codes = chargeback_codes(rules)
    _keep(
        run,
        REPLIES,
        table.combine_chunks(),
        environment=environment,
        phase=given[0].phase,
        account_id=given[0].account_id,
        answered=sum(some.answered for some in given),
        last_at=pc.max(pc.coalesce(table["queried_at"], table["answered_at"])).as_py(),
        asked_after=pc.max(table["asked_after"]).as_py(),
        codes=json.dumps(codes_in(table), sort_keys=True),
        chargeback_codes=answer_parts.joined_codes(codes),
    )


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
        bound = {link.step: link.sha256 for link in links(connection, run.run_id)}
    if not parts:
        return
    after = {
        f"{OF_ANSWERS}-{before}": bound[f"{OF_ANSWERS}-{before}"] for before in range(1, number)
    }
    terms = Terms("", environment.settings.rules.digest)
    about = about_of(run, step, terms=terms, after=after, environment=environment)
    with reachable(storage, doing=_not_kept(parts[-1].phase)):
        sealed = seal_parts(
            storage, night=folder_of(run), about=about, entries=[part.entry for part in parts]
        )
    environment.crash_point("archived the answers")
    with environment.store.writing() as connection:
        bind(connection, run, sealed=[sealed], environment=environment)


def unbound(connection: Connection, run: Run, *, environment: Environment) -> str:
    """Why the answers that a run has are not those that its history binds; "" when they are.

    Raises:
        ArchiveError: the archive cannot be read.
    """
    bound = _bound_entries(connection, run, environment=environment)
    parts = answer_parts.of_run(connection, run.run_id)
    kept = {part.path: part.entry for part in parts}
    strayed = sorted(path for path in {*bound, *kept} if bound.get(path) != kept.get(path))
    if strayed:
        return f"{strayed[0]} is not what the history binds of the gateway's answers"
    for part in parts:
        if part.schema_label == ASKED.label.decode() and part.asked != part.row_count:
            return f"{part.path} has {part.row_count} keys, and {part.asked} are counted"
    return ""


def asked_keys(
    connection: Connection, run: Run, *, phases: Collection[str], environment: Environment
) -> pa.Array:
    """All keys of some phases, answered or not, each once: a column takes an eighth of a set."""
    parts = answer_parts.of_run(connection, run.run_id)
    files = [p for p in parts if p.phase in phases and p.schema_label == ASKED.label.decode()]
    of_number: dict[str, Any] = {"columns": ["order_no"], "environment": environment}
    columns = (read_part(part, **of_number)["order_no"] for part in files)
    if len(files) == 1:
        # Each file names a key once: nobody has to look for repeats.
        return pa.concat_arrays([pa.array([], pa.string()), *next(columns).chunks])
    return order_numbers(columns).column


def answers_in(table: pa.Table) -> dict[str, str]:
    """Key -> answer of some rows."""
    columns = (table[name].cast(pa.string()).to_pylist() for name in ("order_no", "answer"))
    return dict(zip(*columns, strict=True))


def table_of_run(
    connection: Connection,
    run: Run,
    *,
    phases: Collection[str],
    environment: Environment,
    columns: Collection[str] = EVERY_COLUMN,
) -> pa.Table:
    """Columns of REPLIES of some phases of a run; of a key that was answered twice the newest.

    `columns`: those that are asked for; the key and the phase are there in any case.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    parts = answer_parts.of_run(connection, run.run_id)
    wanted = [part for part in parts if part.phase in phases and part.answered]
    return joined(wanted, environment=environment, columns=columns)


def files_of_run(
    connection: Connection,
    run: Run,
    *,
    phases: Collection[str],
    environment: Environment,
    columns: Collection[str],
) -> Iterator[pa.Table]:
    """As `table_of_run` file by file, of a key that was answered twice both answers.

    Raises:
        ArchiveError: see `table_of_run`.
    """
    for part in answer_parts.of_run(connection, run.run_id):
        if part.phase in phases and part.answered:
            yield answers_in_file(part, environment=environment, columns=columns)


def rows_where(
    connection: Connection,
    run: Run,
    *,
    phases: Collection[str],
    wanted: Callable[[pa.Table], pa.ChunkedArray],
    columns: Collection[str],
    environment: Environment,
) -> pa.Table:
    """Those rows of `table_of_run` that are wanted; see `answer_files.chosen`.

    Raises:
        ArchiveError: see `table_of_run`.
    """
    parts = answer_parts.of_run(connection, run.run_id)
    files = [part for part in parts if part.phase in phases and part.answered]
    return chosen(files, wanted=wanted, environment=environment, columns=columns)


def evidence(
    connection: Connection, run: Run, *, order_no: str, after: int, environment: Environment
) -> list[Mapping[str, Any]]:
    """What sealed answers of all runs, asked after a link of the history, say of an order.

    They are in the order of coming; no clock was asked.

    Answers that no history binds are no evidence; of nights that were let go nothing is known here,
    and no night goes while money of before it is in doubt.

    Raises:
        ArchiveError: a file cannot be read, or is not as it was sealed.
    """
    rows: list[Mapping[str, Any]] = []
    bound: dict[str, Mapping[str, FileEntry]] = {}
    known = answer_parts.of_account(connection, run, after=after)
    for part in still_kept(connection, known):
        if part.run_id not in bound:
            writer = _writer_of(part, like=run)
            bound[part.run_id] = _bound_entries(connection, writer, environment=environment)
        if bound[part.run_id].get(part.path) != part.entry:
            continue
        table = read_part(part, environment=environment)
        about = pc.and_(
            pc.equal(table["order_no"], order_no), pc.greater_equal(table["asked_after"], after)
        )
        shown = table.filter(about).to_pylist()
        rows += [{**row, "is_of_run": part.is_of_run} for row in shown]
    return rows


def still_kept(connection: Connection, parts: Iterable[AnswerPart]) -> list[AnswerPart]:
    """The files of nights whose folder was not let go, in their order."""
    known = [*parts]
    gone = {
        run_id
        for run_id in {_writer_id(part) for part in known}
        if let_go_of(connection, run_id) is not None
    }
    return [part for part in known if _writer_id(part) not in gone]


def parts_table(parts: Iterable[AnswerPart], *, environment: Environment) -> pa.Table:
    """REPLIES of some files, in the order of coming."""
    return joined([*parts], environment=environment)


def _keep(
    run: Run,
    schema: FileSchema,
    table: pa.Table,
    /,
    *,
    environment: Environment,
    phase: str,
    account_id: str = "",
    **figures: Any,
) -> None:
    storage = storage_of(run, environment=environment)
    with environment.store.reading() as connection:
        step, _ = _open_step(connection, run)
        number = len(answer_parts.of_run(connection, run.run_id)) + 1
    folder = f"{folder_of(run)}/{step}"
    with reachable(storage, doing=_not_kept(phase)):
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
        content=entry.content,
        size_bytes=entry.bytes,
        row_count=entry.rows,
        **figures,
    )
    charged_back = charged_back_in(table, codes=part.chargeback_codes.split(";"))
    with environment.store.writing() as connection:
        answer_parts.save(connection, part, charged_back=charged_back)


def _not_kept(phase: str) -> str:
    """What becomes of the night when its archive fails, and what to do."""
    return UNWRITTEN_AFTER if phase == answer_parts.AFTER else UNWRITTEN


def _open_step(connection: Connection, run: Run) -> tuple[str, int]:
    """The step that answers which come now belong to, and its number."""
    bound = {link.step for link in links(connection, run.run_id)}
    number = 1 + sum(step.startswith(f"{OF_ANSWERS}-") for step in bound)
    return f"{OF_ANSWERS}-{number}", number


def _bound_entries(
    connection: Connection, run: Run, *, environment: Environment
) -> Mapping[str, FileEntry]:
    """Path -> entry of each file of answers that the history of a run binds."""
    storage = storage_of(run, environment=environment)
    entries: dict[str, FileEntry] = {}
    for link in links(connection, run.run_id):
        if not link.step.startswith(f"{OF_ANSWERS}-"):
            continue
        sealed = bound_step(storage, link, doing=UNREAD)
        entries |= {f"{link.folder}/{entry.name}": entry for entry in sealed.manifest.files}
    return entries


def _writer_id(part: AnswerPart) -> str:
    """The run in whose folder a file lies."""
    return part.path.split("/")[4]


def _writer_of(part: AnswerPart, *, like: Run) -> Run:
    """The run that wrote a file, as far as its folder tells it."""
    _, merchant_id, account_id, business_date, run_id, *_ = part.path.split("/")
    return Run(
        run_id=run_id,
        merchant_id=merchant_id,
        account_id=account_id,
        business_date=date.fromisoformat(business_date),
        mode=Mode.LIVE,
        **{
            name: getattr(like, name)
            for name in (
                *("status", "step", "owner", "started_at", "as_of"),
                *("verdict", "workbook", "problem"),
            )
        },
    )


def newest_of_run(
    connection: Connection,
    run: Run,
    *,
    environment: Environment,
    columns: Collection[str] = EVERY_COLUMN,
) -> pa.Table:
    """REPLIES of the run's own account, the `after` phase taking the place of the baseline."""
    return _newest_phase(
        table_of_run(
            connection,
            run,
            phases=answer_parts.OWN_PHASES,
            environment=environment,
            columns=columns,
        )
    )


def _newest_phase(table: pa.Table) -> pa.Table:
    is_after = pc.equal(table["phase"].cast(pa.string()), answer_parts.AFTER)
    again = table.filter(is_after)["order_no"].combine_chunks()
    is_replaced = pc.and_(pc.invert(is_after), pc.is_in(table["order_no"], value_set=again))
    return table.filter(pc.invert(is_replaced))
