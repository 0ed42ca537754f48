"""What the gateway was asked and what it answered, written to the night's folder as it comes.

Each shard's answers are a file, which counts once the database has its hash. At the end of a query
the files are one step of the night: its manifest names them, and the history binds the manifest.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.fields import FileSchema
from recon.archive.manifest import FileEntry
from recon.archive.schemas import ASKED, OF_ANSWERS, REPLIES
from recon.archive.step_folder import Rows, seal_parts, write_part
from recon.archive.storage import MAKE_WRITABLE, reachable
from recon.model.nights import Mode
from recon.steps.ground.answer_files import (
    EVERY_COLUMN,
    UNREAD,
    answers_in_file,
    chosen,
    joined,
    read_part,
)
from recon.steps.ground.answer_rows import (
    ReplyRows,
    asked_table,
    chargeback_codes,
    charged_back_in,
    codes_in,
)
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    Terms,
    about_of,
    bind,
    bound_step,
    folder_of,
    links,
    storage_of,
)
from recon.steps.ground.order_numbers import OrderNumbers, order_numbers
from recon.store import Connection
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import AnswerPart
from recon.store.nights.let_go_rows import let_go_of
from recon.store.nights.runs import Run

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
