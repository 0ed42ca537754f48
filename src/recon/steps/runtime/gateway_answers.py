"""The gateway's queried keys and answers: written to the night's folder, and read from it.

Each shard's answers are a file, which counts once the database has its hash. At the end of a query
the files become one step of the night: its manifest names them, and the history records the
manifest. `GatewayAnswers` reads them for each question that is asked of them.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.rows_file import read_rows
from recon.archive.schemas import ANSWER_SCHEMAS, QUERIED, REPLIES, SCHEMAS, FileSchema
from recon.archive.step_folder import FileEntry, Rows, seal_files, write_file
from recon.archive.storage import MAKE_WRITABLE, Storage, reachable
from recon.config.rules import Rules
from recon.instructions.queries import KeyAnswers
from recon.instructions.resolution import CAPTURED_STATES, ObservedPayment
from recon.matching.frames.sources import GATEWAY_COLUMNS, KEY_COLUMNS
from recon.model.errors import ArchiveBrokenError
from recon.model.terms import GatewayState, KeyAnswer
from recon.model.uptime import Uptime
from recon.proof.night_tables import frame_of_table
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    ANSWERS,
    NOT_READ,
    Terms,
    about_of,
    answer_steps,
    folder_of,
    links,
    newest,
    record_sealed,
    recorded_step,
    storage_at,
    storage_of,
)
from recon.store import Connection
from recon.store.database.history import head
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import AFTER, BASELINE, OF_ACCOUNT, OWN_PHASES, AnswerPart
from recon.store.nights.runs import Run, purged_night_of
from recon.store.schema.columns import REASON_CHARACTERS

EVERY_COLUMN = tuple(REPLIES.columns.names)
ANSWER_COLUMNS = SCHEMAS["answers"].columns
ANSWER = "answer"
_ALWAYS = ("phase", *REPLIES.key[1:4], ANSWER)
"""Columns that identify the order and account of an answer, and show that it is one."""
UNREAD = f"what the gateway answered {NOT_READ}"


def read_answers(
    part: AnswerPart, *, environment: Environment, columns: Collection[str] = EVERY_COLUMN
) -> pa.Table:
    """The rows of a file, checked against its hash, of its own phase and account only."""
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
    names = [name for name in EVERY_COLUMN if name in {*columns, *_ALWAYS}]
    table = read_rows(content, name=part.path, schemas=ANSWER_SCHEMAS, columns=names)
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
    among: tuple[str, Collection[str]] | None = None,
) -> pa.Table:
    """REPLIES of some files in order of arrival; of a key with two answers in a phase the newest.

    Args:
        parts: The files.
        environment: Gives access to the archive.
        columns: Needed columns; the key and the phase are there in any case.
        among: A column and some values: only rows with one of these values, the others are in
            memory one file at a time.

    Raises:
        ArchiveError: a file cannot be read, or is not the one whose hash the database has.
    """
    tables, keys, of_rows = [REPLIES.columns.empty_table()], [], []
    for number, part in enumerate(parts):
        of_file = [*columns, *([among[0]] if among else [])]
        table = read_answers(part, environment=environment, columns=of_file)
        if ANSWER not in table.column_names:
            msg = (
                f"{part.path} is not what the history binds of the gateway's answers: it holds "
                "none, and the database counts some of it; put the database back from a backup"
            )
            raise ArchiveBrokenError(msg)
        is_needed = (
            _is_in(table[among[0]], among[1]).to_numpy() if among else np.ones(len(table), bool)
        )
        keys += table["order_no"].chunks
        named = {"file": number, "of": f"{part.phase} of {part.run_id}", "needed": is_needed}
        of_rows.append(pd.DataFrame(named, index=range(len(table))))
        tables.append(table.filter(pa.array(is_needed)))
    if len(tables) == 1:
        return tables[0]
    rows = pd.concat(of_rows, ignore_index=True)
    rows["key"] = pa.concat_arrays(keys).dictionary_encode().indices.to_numpy()
    newest = rows.groupby(["of", "key"])["file"].transform("max").eq(rows["file"])
    table = pa.concat_tables(tables[1:]).unify_dictionaries()
    return table.filter(pa.array(newest[rows["needed"]]))


_FOUND = (KeyAnswer.FOUND, "")
"""Answer for a payment whose key has no answer of its own."""
_BLANK = {
    field.name: ""
    for field in REPLIES.columns
    if pa.types.is_dictionary(field.type) or field.type == pa.string()
}
"""Texts of a key without a payment; its numbers and times are missing."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The earliest time at which queries were sent."""

    at: datetime
    """By the wall clock."""
    uptime: Uptime
    after: int
    """Sequence number of the newest history link at that time."""


def this_moment(environment: Environment) -> Moment:
    """The current moment, taken before a query is sent."""
    with environment.store.reading() as connection:
        after = head(connection).sequence
    return Moment(environment.clock(), environment.uptime(), after)


@dataclass(frozen=True, slots=True)
class ReplyRows:
    """Final answers about some keys of one account as rows of a file, in a tenth of the memory."""

    phase: str
    account_id: str
    answered: int
    """Number of keys."""
    sent: Moment
    table: pa.Table
    """Columns of REPLIES: a row per payment, and one per key without a payment."""


def reply_rows(
    run: Run,
    got: KeyAnswers,
    *,
    sent: Moment,
    phase: str = answer_parts.BASELINE,
    account_id: str = "",
) -> ReplyRows:
    """The rows of some answers; best made as soon as the answers arrive, to save memory."""
    constants: dict[str, Any] = {
        "phase": phase,
        "merchant_id": run.merchant_id,
        "account_id": account_id or run.account_id,
        "answered_at": sent.at,
        "asked_after": sent.after,
        "boot_id": sent.uptime.boot_id,
        "uptime_ms": sent.uptime.milliseconds,
        "gateway_at": got.gateway_at,
    }
    silent = got.answers.keys() - {row["order_no"] for row in got.observations}
    rows = []
    for row in [*got.observations, *({"order_no": order_no} for order_no in silent)]:
        answer, why = got.answers.get(row["order_no"], _FOUND)
        evaluated = {"answer": answer, "reason": why[:REASON_CHARACTERS]}
        rows.append({**_BLANK, **row, **constants, **evaluated})
    table = pa.Table.from_pylist(rows, schema=REPLIES.columns)
    return ReplyRows(phase, constants["account_id"], len(got.answers), sent, table)


def chargeback_codes(rules: Rules) -> list[str]:
    """The payment status codes that mean a chargeback."""
    chargeback = GatewayState.CHARGEBACK.value
    return [code for code, state in rules.payment_status.items() if state == chargeback]


def _codes_in(table: pa.Table) -> dict[str, dict[str, tuple[int, str]]]:
    """Field -> code -> the number of payments with it, and the first of their orders."""
    codes: dict[str, dict[str, tuple[int, str]]] = {}
    for name in answer_parts.FIELDS:
        of_orders = pa.table({"code": table[name].cast(pa.string()), "order_no": table["order_no"]})
        of_orders = of_orders.filter(pc.not_equal(of_orders["code"], ""))
        counted = of_orders.group_by("code").aggregate([("order_no", "count"), ("order_no", "min")])
        codes[name] = {
            row["code"]: (row["order_no_count"], row["order_no_min"]) for row in counted.to_pylist()
        }
    return codes


_NO_KEYS = pa.schema([("order_no", pa.string())]).empty_table()


def order_numbers(parts: "Iterable[pa.Array | pa.ChunkedArray | Iterable[str]]") -> pa.Array:
    """All order numbers in the parts, each once and sorted, including the blank one.

    A column takes an eighth of the memory of a set of texts.
    """
    columns = (
        part if isinstance(part, pa.Array | pa.ChunkedArray) else pa.array([*part], pa.string())
        for part in parts
    )
    tables = (pa.table({"order_no": column.cast(pa.string())}) for column in columns)
    different = pc.unique(pa.concat_tables([_NO_KEYS, *tables])["order_no"])
    return different.take(pc.sort_indices(different))


UNWRITTEN = f"what the gateway answered could not be kept, so nothing was sent: {MAKE_WRITABLE}"
UNWRITTEN_AFTER = (
    "what the gateway answered after money moved could not be kept; what was sent stands in the "
    "database and is not sent twice: make the archive writable, then start the night again"
)


def note_queried(
    run: Run, *, phase: str, keys: "pa.Array | Iterable[str]", environment: Environment
) -> pa.Array:
    """Note the keys to query; returns those without a final answer, sorted.

    Keys that were noted before (a restart) stay as they are.

    Raises:
        ArchiveError: the archive cannot be written or read.
    """
    with environment.store.reading() as connection:
        every = answer_parts.of_run(connection, run.run_id)
    parts = [part for part in every if part.phase == phase]
    known = keys_in(parts, environment=environment)
    given = [part for part in parts if part.answered]
    answered = answers_in(given, environment=environment, columns=[ANSWER])["order_no"]
    new = _not_among(order_numbers([keys]), known)
    if len(new):
        cells = {"phase": phase, "merchant_id": run.merchant_id, "account_id": run.account_id}
        columns = (
            pa.repeat(cells[field.name], len(new)) if field.name in cells else new
            for field in QUERIED.columns
        )
        table = pa.table([*columns], QUERIED.columns.names).cast(QUERIED.columns)
        _save(run, QUERIED, table, environment=environment, phase=phase, asked=len(new))
    return _not_among(order_numbers([known, new]), answered)


def _not_among(column: pa.Array, others: pa.Array | pa.ChunkedArray) -> pa.Array:
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
    back = table.filter(_is_in(table["payment_status"], filter(None, codes)))
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
        step = _open_step(connection, run)
        number = len(answer_parts.of_run(connection, run.run_id)) + 1
    folder = f"{folder_of(run)}/{step}"
    with reachable(storage, doing=_not_stored(phase)):
        entry = write_file(storage, Rows.of(table, schema=schema, number=number), folder=folder)
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
    """Make the files of answers a step of the night, and link it; does nothing without new files.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    storage = storage_of(run, environment=environment)
    with environment.store.reading() as connection:
        step = _open_step(connection, run)
        folder = f"{folder_of(run)}/{step}"
        parts = [p for p in answer_parts.of_run(connection, run.run_id) if p.folder == folder]
        recorded = newest(links(connection, run.run_id))
    if not parts:
        return
    after = {before: recorded[before] for before in answer_steps(recorded)}
    terms = Terms("", environment.settings.rules.digest)
    about = about_of(run, step, terms=terms, after=after, environment=environment)
    with reachable(storage, doing=_not_stored(parts[-1].phase)):
        sealed = seal_files(
            storage, night=folder_of(run), about=about, entries=[part.entry for part in parts]
        )
    environment.crash_point("archived the answers")
    with environment.store.writing() as connection:
        record_sealed(connection, run, sealed=[sealed], environment=environment)


def _not_stored(phase: str) -> str:
    """State of the night when its archive fails, and what to do."""
    return UNWRITTEN_AFTER if phase == answer_parts.AFTER else UNWRITTEN


def _open_step(connection: Connection, run: Run) -> str:
    return f"{ANSWERS}{1 + len(answer_steps(newest(links(connection, run.run_id))))}"


def keys_in(parts: Iterable[AnswerPart], *, environment: Environment) -> pa.Array:
    """All keys of some files, answered or not, each once."""
    files = [part for part in parts if part.schema_label == QUERIED.label.decode()]
    tables = (read_answers(part, environment=environment, columns=["order_no"]) for part in files)
    return order_numbers(table["order_no"] for table in tables)


def recorded_entries(
    connection: Connection, run_id: str, *, storage: Storage
) -> Mapping[str, FileEntry]:
    """Path -> manifest entry of each file of answers that the history of a run records."""
    entries: dict[str, FileEntry] = {}
    for link in links(connection, run_id):
        if link.step.startswith(ANSWERS):
            sealed = recorded_step(storage, link, doing=UNREAD)
            entries |= {f"{link.folder}/{entry.name}": entry for entry in sealed.manifest.files}
    return entries


def unbound(connection: Connection, run: Run, *, environment: Environment) -> str:
    """Why a run's answers are not those that its history records; "" when they are.

    Raises:
        ArchiveError: the archive cannot be read.
    """
    storage = storage_of(run, environment=environment)
    recorded = recorded_entries(connection, run.run_id, storage=storage)
    parts = answer_parts.of_run(connection, run.run_id)
    saved = {part.path: part.entry for part in parts}
    tampered = sorted(path for path in {*recorded, *saved} if recorded.get(path) != saved.get(path))
    if tampered:
        return f"{tampered[0]} is not what the history binds of the gateway's answers"
    for part in parts:
        if part.schema_label == QUERIED.label.decode() and part.asked != part.row_count:
            return f"{part.path} has {part.row_count} keys, and {part.asked} are counted"
    return ""


RUNS_LOOKED_BACK_MAX = 40
"""Number of runs searched, newest first, for orders that newer answers do not have."""
_PAYMENT = ("order_no", "transaction_id", "currency", "amount", "payment_status")
_RISK = '"risk": {"'
"""Beginning of the risk data in the detail of an answer that has any."""


@dataclass(frozen=True, slots=True)
class GatewayAnswers:
    """The answers of a run, and the earlier ones of its account.

    Every method raises ArchiveError where a file of answers cannot be read, or is not the one whose
    hash the database has.
    """

    connection: Connection
    run: Run
    environment: Environment

    def rows(
        self,
        phases: Collection[str] = (BASELINE,),
        *,
        columns: Collection[str] = EVERY_COLUMN,
        among: tuple[str, Collection[str]] | None = None,
    ) -> pa.Table:
        """REPLIES of some phases of the run; of a key that was answered twice only the newest.

        Args:
            phases: Which phases.
            columns: Needed columns; the key and the phase are there in any case.
            among: A column and some values: only rows with one of these values.
        """
        parts = answer_parts.of_run(self.connection, self.run.run_id)
        is_empty = among is not None and not among[1]
        files = [part for part in parts if part.phase in phases and part.answered and not is_empty]
        return answers_in(files, environment=self.environment, columns=columns, among=among)

    def newest(self, columns: Collection[str] = EVERY_COLUMN) -> pa.Table:
        """REPLIES of the run's own account; answers of phase `after` replace the baseline."""
        table = self.rows(OWN_PHASES, columns=columns)
        is_after = pc.equal(table["phase"].cast(pa.string()), AFTER)
        again = table.filter(is_after)["order_no"].combine_chunks()
        is_replaced = pc.and_(pc.invert(is_after), pc.is_in(table["order_no"], value_set=again))
        return table.filter(pc.invert(is_replaced))

    def queried_keys(self) -> pa.Array:
        """All keys of its own account that the run queried, each once."""
        parts = answer_parts.of_run(self.connection, self.run.run_id)
        own = [part for part in parts if part.phase in OWN_PHASES]
        return keys_in(own, environment=self.environment)

    def failures(self, phase: str = BASELINE) -> tuple[dict[str, int], list[str]]:
        """Number of keys by answer, and the reasons of failed answers, the most frequent first."""
        table = self.rows([phase], columns=["answer", "reason"])
        answer = table["answer"].cast(pa.string())
        keys = pa.table({"answer": answer, "order_no": table["order_no"]})
        by_answer = keys.group_by("answer").aggregate([("order_no", "count_distinct")]).to_pylist()
        counts = {row["answer"]: row["order_no_count_distinct"] for row in by_answer}
        reasons = Counter(_failed(table)["reason"].cast(pa.string()).to_pylist())
        return counts, sorted(reasons, key=lambda why: (-reasons[why], why))

    def failed_keys(self) -> set[str]:
        """Keys of the run's own account without a usable answer before or after money moved."""
        return set(_failed(self.rows(OWN_PHASES, columns=["answer"]))["order_no"].to_pylist())

    def gateway_frame(self) -> pd.DataFrame:
        """GATEWAY_COLUMNS of the newest answers; a key without a payment is a row of its own."""
        return _frame(self.newest(GATEWAY_COLUMNS))

    def sibling_frame(self) -> pd.DataFrame:
        """GATEWAY_COLUMNS of answers in the merchant's other accounts, "not found" included."""
        parts = answer_parts.of_run(self.connection, self.run.run_id)
        table = self.rows({part.phase for part in parts if part.phase.startswith(OF_ACCOUNT)})
        is_reported = pc.is_valid(table["queried_at"])
        answer = table["answer"].cast(pa.string())
        is_absent = pc.and_(pc.invert(is_reported), pc.equal(answer, KeyAnswer.NOT_FOUND.value))
        values = pc.if_else(is_reported, KeyAnswer.FOUND.value, KeyAnswer.NOT_FOUND.value)
        evaluated = table.set_column(table.schema.get_field_index("answer"), "answer", values)
        return _frame(evaluated.filter(pc.or_(is_reported, is_absent)))

    def before_money(self, order_nos: Collection[str]) -> dict[str, str]:
        """Key -> final answer of some orders before money moved."""
        table = self.rows(columns=["answer"], among=("order_no", order_nos))
        return {row["order_no"]: row["answer"] for row in table.to_pylist()}

    def payments(self, order_nos: Collection[str]) -> list[Mapping[str, Any]]:
        """Payments of some orders before money moved, under every order that shows them."""
        columns = [*_PAYMENT, "transaction_date"]
        own = self._answered("order_no", order_nos, columns=columns)
        paid = {*own["transaction_id"].to_pylist()}
        return list(
            self._answered("transaction_id", paid, columns=columns).select(columns).to_pylist()
        )

    def only_payments(self, order_nos: Collection[str]) -> dict[str, str]:
        """Order -> its transaction, for those orders whose baseline answer shows exactly one."""
        found = _grouped(
            self._answered("order_no", order_nos, columns=["transaction_id"]),
            by="order_no",
            column="transaction_id",
        )
        return {key: each[0] for key, each in found.items() if len({*each}) == 1}

    def statuses_reported(self, transactions: Collection[str]) -> dict[str, list[str]]:
        """Transaction -> its statuses in the baseline, for those that appear there."""
        by, column = "transaction_id", "payment_status"
        return _grouped(self._answered(by, transactions, columns=[column]), by=by, column=column)

    def risks_reported(self, transactions: Collection[str]) -> list[Mapping[str, Any]]:
        """Transaction, time and detail of some payments, where the answer has risk data."""
        columns = ["transaction_id", "queried_at", "detail"]
        table = self._answered("transaction_id", transactions, columns=columns, phases=OWN_PHASES)
        says = pc.match_substring(table["detail"], _RISK)
        return list(table.filter(says).select(columns).to_pylist())

    def first_taken(self, transactions: Collection[str]) -> dict[str, datetime]:
        """Transaction -> when the run first showed its money as taken, of those shown so."""
        names = ["transaction_id", "payment_status", "queried_at"]
        rules = self.environment.settings.rules
        captured_at: dict[str, datetime] = {}
        table = self.rows(OWN_PHASES, columns=names, among=("transaction_id", transactions))
        for row in table.to_pylist():
            if rules.state_of(row["payment_status"]) in CAPTURED_STATES:
                known = captured_at.get(row["transaction_id"], row["queried_at"])
                captured_at[row["transaction_id"]] = min(known, row["queried_at"])
        return captured_at

    def evidence(self, order_no: str, *, after: int) -> list[Mapping[str, Any]]:
        """Rows on an order in sealed answers of all runs that were queried after a history link.

        They are in order of arrival, without relying on any clock.

        Answers that no history records are no evidence; those of purged nights are not available
        here, and no night is purged while older money is in doubt.
        """
        rows: list[Mapping[str, Any]] = []
        recorded: dict[str, Mapping[str, FileEntry]] = {}
        known = answer_parts.of_account(self.connection, self.run, after=after)
        for part in still_stored(self.connection, known):
            writer = _writer_id(part)
            if writer not in recorded:
                _, merchant_id, account_id, *_ = part.path.split("/")
                storage = storage_at((merchant_id, account_id), environment=self.environment)
                recorded[writer] = recorded_entries(self.connection, writer, storage=storage)
            if recorded[writer].get(part.path) != part.entry:
                continue
            table = read_answers(part, environment=self.environment)
            about = pc.and_(
                pc.equal(table["order_no"], order_no), pc.greater_equal(table["asked_after"], after)
            )
            found = table.filter(about).to_pylist()
            rows += [{**row, "is_of_run": part.is_of_run} for row in found]
        return rows

    def authorised_at(self, order_nos: Collection[str]) -> dict[str, datetime]:
        """Order -> its payment's date in the newest answers with one, the first of several."""
        dates = self._newest_reported("order_no", order_nos, column="transaction_date")
        return {order_no: min(each) for order_no, each in dates.items()}

    def orders_of(self, transactions: Collection[str]) -> set[str]:
        """The orders of some transactions, by the newest answers that show them."""
        orders = self._newest_reported("transaction_id", transactions, column="order_no")
        return {*chain.from_iterable(orders.values())} - {""}

    def chargeback_keys(self, rules: Rules, *, until: int) -> pd.DataFrame:
        """KEY_COLUMNS of orders that any earlier answer showed as charged back.

        `until` is the last file of answers that counts.
        """
        where: dict[str, Any] = {"codes": chargeback_codes(rules), "until": until}
        known = answer_parts.charged_back_keys(self.connection, self.run, **where)
        parts = answer_parts.read_otherwise(self.connection, self.run, **where)
        saved = still_stored(self.connection, parts)
        if not saved:
            return known
        of_status = ("payment_status", where["codes"])
        found = answers_in(saved, environment=self.environment, columns=(), among=of_status)
        keys = {*known["order_no"], *found["order_no"].to_pylist()}
        cells = {"merchant_id": self.run.merchant_id, "account_id": self.run.account_id}
        return pd.DataFrame(
            {
                name: pd.Series([cells.get(name, key) for key in sorted(keys)], dtype="str")
                for name in KEY_COLUMNS
            }
        )

    def _answered(
        self,
        name: str,
        values: Collection[str],
        *,
        columns: Collection[str],
        phases: Collection[str] = (BASELINE,),
    ) -> pa.Table:
        """Some columns of the payments that have one of the given values in a column."""
        among = (name, values)
        return _payments(self.rows(phases, columns=[*columns, "queried_at"], among=among))

    def _newest_reported(
        self, name: str, values: Collection[str], *, column: str
    ) -> dict[str, list[Any]]:
        """Value of a column -> another column of its payments, in the newest run that shows any."""
        missing, found = {*values} - {""}, dict[str, list[Any]]()
        every = answer_parts.of_account(self.connection, self.run)
        by_run = groupby(reversed(every), key=attrgetter("run_id"))
        for _, parts in islice(by_run, RUNS_LOOKED_BACK_MAX if missing else 0):
            table = answers_in(
                still_stored(self.connection, parts)[::-1],
                environment=self.environment,
                columns=[column, "queried_at"],
                among=(name, missing),
            )
            rows = _payments(table.filter(pc.is_valid(table[column])))
            found |= _grouped(rows, by=name, column=column)
            missing -= found.keys()
            if not missing:
                break
        return found


def still_stored(connection: Connection, parts: Iterable[AnswerPart]) -> list[AnswerPart]:
    """The files of nights whose folder was not purged, in their order."""
    known = [*parts]
    writers = {_writer_id(part) for part in known}
    purged = {run_id for run_id in writers if purged_night_of(connection, run_id) is not None}
    return [part for part in known if _writer_id(part) not in purged]


def _writer_id(part: AnswerPart) -> str:
    return part.path.split("/")[4]


def observed_of(
    rows: Iterable[Mapping[str, Any]], *, transaction_id: str, rules: Rules
) -> Iterator[ObservedPayment]:
    """The states of a payment in order of arrival, or that it was not shown.

    `rows`: see `GatewayAnswers.evidence`.
    """
    for row in rows:
        if row["queried_at"] is not None and row["transaction_id"] == transaction_id:
            yield ObservedPayment(
                rules.state_of(row["payment_status"]), row["queried_at"], uptime_in(row)
            )
        elif row["answer"] == KeyAnswer.NOT_FOUND and row["is_of_run"]:
            yield ObservedPayment(GatewayState.NONE, row["answered_at"], uptime_in(row))


def uptime_in(row: Mapping[str, Any]) -> Uptime:
    """Clock readings at the time an answer was queried."""
    return Uptime(row["boot_id"], row["uptime_ms"], row["gateway_at"])


def as_compared(replies: pa.Table) -> pa.Table:
    """Answers in the columns in which a night compares them."""
    cells = {"source": "gateway", "line": 0}
    columns = [
        replies[field.name].cast(field.type)
        if field.name in replies.column_names
        else pa.repeat(pa.scalar(cells.get(field.name)), len(replies)).cast(field.type)
        for field in ANSWER_COLUMNS
    ]
    return pa.table(columns, schema=ANSWER_COLUMNS)


def _frame(table: pa.Table) -> pd.DataFrame:
    plain = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in ANSWER_COLUMNS
    ]
    return frame_of_table(as_compared(table).cast(pa.schema(plain)))[[*GATEWAY_COLUMNS]]


def _payments(table: pa.Table) -> pa.Table:
    return table.filter(pc.is_valid(table["queried_at"]))


def _failed(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(table["answer"].cast(pa.string()), KeyAnswer.FAILED.value))


def _grouped(table: pa.Table, *, by: str, column: str) -> dict[str, list[Any]]:
    """Each value of a column -> the values of another one beside it."""
    values: dict[str, list[Any]] = {}
    for row in table.select([by, column]).to_pylist():
        values.setdefault(row[by], []).append(row[column])
    return values


def _is_in(column: pa.ChunkedArray, values: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(column.cast(pa.string()), value_set=pa.array([*values], pa.string()))
