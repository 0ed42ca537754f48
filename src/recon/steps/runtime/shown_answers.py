"""What the gateway's answers show, question by question, read from the files that hold them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import FileEntry
from recon.config.rules import Rules
from recon.instructions.resolution import TAKEN, Seen
from recon.matching.frames.sources import GATEWAY_COLUMNS, KEY_COLUMNS
from recon.model.terms import GatewayState, KeyAnswer
from recon.model.uptime import Uptime
from recon.proof.night_tables import frame_of_table
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import storage_at
from recon.steps.runtime.stored_answers import (
    EVERY_COLUMN,
    answers_in,
    bound_entries,
    chargeback_codes,
    keys_in,
    read_part,
)
from recon.store import Connection
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import AFTER, BASELINE, OF_ACCOUNT, OWN_PHASES, AnswerPart
from recon.store.nights.runs import Run, let_go_of

RUNS_LOOKED_BACK_MAX = 40
"""So many runs are looked through for an order of which the newest answers say nothing."""
_PAYMENT = ("order_no", "transaction_id", "currency", "amount", "payment_status")
_RISK = '"risk": {"'
"""So begins what an answer says of risk, where it says anything."""


@dataclass(frozen=True, slots=True)
class ShownAnswers:
    """What a run's answers say, and the earlier ones of its account.

    Every question raises ArchiveError where a file of answers cannot be read, or is not the one
    whose hash the database has.
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
        """REPLIES of some phases of the run; of a key that was answered twice the newest.

        Args:
            phases: Of which.
            columns: Those that are asked for; the key and the phase are there in any case.
            among: A column and some words: only rows that have one of them there.
        """
        parts = answer_parts.of_run(self.connection, self.run.run_id)
        files = [part for part in parts if part.phase in phases and part.answered]
        if among is None:
            return answers_in(files, environment=self.environment, columns=columns)
        name, words = among
        any_of = pa.array([*words], pa.string())
        return answers_in(
            files if words else (),
            environment=self.environment,
            columns=columns,
            wanted=lambda table: pc.is_in(table[name], value_set=any_of),
        )

    def newest(self, columns: Collection[str] = EVERY_COLUMN) -> pa.Table:
        """REPLIES of the run's own account, the `after` phase taking the place of the baseline."""
        table = self.rows(OWN_PHASES, columns=columns)
        is_after = pc.equal(table["phase"].cast(pa.string()), AFTER)
        again = table.filter(is_after)["order_no"].combine_chunks()
        is_replaced = pc.and_(pc.invert(is_after), pc.is_in(table["order_no"], value_set=again))
        return table.filter(pc.invert(is_replaced))

    def asked_keys(self) -> pa.Array:
        """All keys that the run asked for of its own account, each once."""
        parts = answer_parts.of_run(self.connection, self.run.run_id)
        own = [part for part in parts if part.phase in OWN_PHASES]
        return keys_in(own, environment=self.environment)

    def failures(self, phase: str = BASELINE) -> tuple[dict[str, int], list[str]]:
        """How many keys have which answer, and why some have none, the most frequent first."""
        table = self.rows([phase], columns=["answer", "reason"])
        # Those that were found, as nearly all are, are counted without an object for each.
        is_found = pc.equal(table["answer"].cast(pa.string()), KeyAnswer.FOUND.value)
        others = pc.unique(table["order_no"].filter(pc.invert(is_found)))
        other_answers = _by_key(table.filter(pc.is_in(table["order_no"], value_set=others)))
        counts = Counter(other_answers.values())
        if rest := pc.count_distinct(table["order_no"]).as_py() - len(other_answers):
            counts[KeyAnswer.FOUND.value] += rest
        reasons = Counter(_failed(table)["reason"].cast(pa.string()).to_pylist())
        return dict(counts), sorted(reasons, key=lambda why: (-reasons[why], why))

    def failed_keys(self) -> set[str]:
        """Keys of the run's own account that got no usable answer before or after money moved."""
        return set(_failed(self.rows(OWN_PHASES, columns=["answer"]))["order_no"].to_pylist())

    def gateway_frame(self) -> pd.DataFrame:
        """GATEWAY_COLUMNS of the newest answers; a key without a payment is a row of its own."""
        return _frame(self.newest(GATEWAY_COLUMNS))

    def sibling_frame(self) -> pd.DataFrame:
        """GATEWAY_COLUMNS of what the merchant's other accounts showed, "not found" included."""
        parts = answer_parts.of_run(self.connection, self.run.run_id)
        table = self.rows({part.phase for part in parts if part.phase.startswith(OF_ACCOUNT)})
        is_shown = pc.is_valid(table["queried_at"])
        answer = table["answer"].cast(pa.string())
        is_absent = pc.and_(pc.invert(is_shown), pc.equal(answer, KeyAnswer.NOT_FOUND.value))
        words = pc.if_else(is_shown, KeyAnswer.FOUND.value, KeyAnswer.NOT_FOUND.value)
        evaluated = table.set_column(table.schema.get_field_index("answer"), "answer", words)
        return _frame(evaluated.filter(pc.or_(is_shown, is_absent)))

    def before_money(self, order_nos: Collection[str]) -> dict[str, str]:
        """Key -> final answer of some orders before money moved."""
        return _by_key(self.rows(columns=["answer"], among=("order_no", order_nos)))

    def payments(self, order_nos: Collection[str]) -> list[Mapping[str, Any]]:
        """Payments of some orders before money moved, also where others' answers show them."""
        columns = [*_PAYMENT, "transaction_date"]
        own = self._shown("order_no", order_nos, columns=columns)
        paid = {*own["transaction_id"].to_pylist()}
        return list(
            self._shown("transaction_id", paid, columns=columns).select(columns).to_pylist()
        )

    def only_payments(self, order_nos: Collection[str]) -> dict[str, str]:
        """Order -> its transaction, for those orders whose baseline answer shows exactly one."""
        shown = self._shown("order_no", order_nos, columns=["transaction_id"])
        grouped = shown.group_by("order_no").aggregate(
            [("transaction_id", "count_distinct"), ("transaction_id", "min")]
        )
        return {
            row["order_no"]: row["transaction_id_min"]
            for row in grouped.to_pylist()
            if row["transaction_id_count_distinct"] == 1
        }

    def statuses_shown(self, transactions: Collection[str]) -> dict[str, list[str]]:
        """Transaction -> the statuses that the baseline shows of it, of those that it shows."""
        names = ["transaction_id", "payment_status"]
        table = self._shown("transaction_id", transactions, columns=names)
        statuses: dict[str, list[str]] = {}
        for row in table.select(names).to_pylist():
            statuses.setdefault(row["transaction_id"], []).append(row["payment_status"])
        return statuses

    def risks_shown(self, transactions: Collection[str]) -> list[Mapping[str, Any]]:
        """Transaction, time and detail of some payments of whose risk the answers say something."""
        columns = ["transaction_id", "queried_at", "detail"]
        table = self._shown("transaction_id", transactions, columns=columns, phases=OWN_PHASES)
        says = pc.match_substring(table["detail"], _RISK)
        return list(table.filter(says).select(columns).to_pylist())

    def first_taken(self, transactions: Collection[str]) -> dict[str, datetime]:
        """Transaction -> when the run first showed its money as taken, of those shown so."""
        names = ["transaction_id", "payment_status", "queried_at"]
        rules = self.environment.settings.rules
        taken: dict[str, datetime] = {}
        table = self.rows(OWN_PHASES, columns=names, among=("transaction_id", transactions))
        for row in table.to_pylist():
            if rules.state_of(row["payment_status"]) in TAKEN:
                known = taken.get(row["transaction_id"], row["queried_at"])
                taken[row["transaction_id"]] = min(known, row["queried_at"])
        return taken

    def evidence(self, order_no: str, *, after: int) -> list[Mapping[str, Any]]:
        """What sealed answers of all runs, asked after a link of the history, say of an order.

        They are in the order of coming; no clock was asked.

        Answers that no history binds are no evidence; of nights that were let go nothing is known
        here, and no night goes while money of before it is in doubt.
        """
        rows: list[Mapping[str, Any]] = []
        bound: dict[str, Mapping[str, FileEntry]] = {}
        known = answer_parts.of_account(self.connection, self.run, after=after)
        for part in still_stored(self.connection, known):
            writer = _writer_id(part)
            if writer not in bound:
                _, merchant_id, account_id, *_ = part.path.split("/")
                storage = storage_at((merchant_id, account_id), environment=self.environment)
                bound[writer] = bound_entries(self.connection, writer, storage=storage)
            if bound[writer].get(part.path) != part.entry:
                continue
            table = read_part(part, environment=self.environment)
            about = pc.and_(
                pc.equal(table["order_no"], order_no), pc.greater_equal(table["asked_after"], after)
            )
            shown = table.filter(about).to_pylist()
            rows += [{**row, "is_of_run": part.is_of_run} for row in shown]
        return rows

    def authorised_at(self, order_nos: Collection[str]) -> dict[str, datetime]:
        """When the newest answers date the payment of each order, the first of several."""
        missing = {order_no for order_no in order_nos if order_no}
        dates: dict[str, datetime] = {}
        for table in self._newest_first(missing):
            shown = table.filter(_is_in(table["order_no"], missing))
            shown = shown.filter(pc.is_valid(shown["transaction_date"]))
            oldest = shown.group_by("order_no").aggregate([("transaction_date", "min")])
            dates |= {row["order_no"]: row["transaction_date_min"] for row in oldest.to_pylist()}
            missing -= set(dates)
        return dates

    def orders_of(self, transactions: Collection[str]) -> set[str]:
        """The orders for which the newest answers show some transactions."""
        missing, orders = set(transactions), set[str]()
        for table in self._newest_first(missing):
            shown = table.filter(_is_in(table["transaction_id"], missing))
            orders.update(shown["order_no"].to_pylist())
            missing -= set(shown["transaction_id"].to_pylist())
        return orders - {""}

    def chargeback_keys(self, rules: Rules, *, until: int) -> pd.DataFrame:
        """KEY_COLUMNS of orders that any earlier answer showed as charged back.

        `until` is the last file of answers that counts.
        """
        asked: dict[str, Any] = {"codes": chargeback_codes(rules), "until": until}
        known = answer_parts.charged_back_keys(self.connection, self.run, **asked)
        parts = answer_parts.read_otherwise(self.connection, self.run, **asked)
        saved = still_stored(self.connection, parts)
        if not saved:
            return known
        table = answers_in(saved, environment=self.environment)
        shown = table.filter(_is_in(table["payment_status"].cast(pa.string()), asked["codes"]))
        keys = {*known["order_no"], *shown["order_no"].to_pylist()}
        cells = {"merchant_id": self.run.merchant_id, "account_id": self.run.account_id}
        return pd.DataFrame(
            {
                name: pd.Series([cells.get(name, key) for key in sorted(keys)], dtype="str")
                for name in KEY_COLUMNS
            }
        )

    def _shown(
        self,
        name: str,
        words: Collection[str],
        *,
        columns: Collection[str],
        phases: Collection[str] = (BASELINE,),
    ) -> pa.Table:
        """Some columns of the payments that have one of these words in a column."""
        named = (name, words)
        return _payments(self.rows(phases, columns=[*columns, "queried_at"], among=named))

    def _newest_first(self, missing: set[str]) -> Iterator[pa.Table]:
        """The payments of each run's answers about an account, as long as something is missing.

        Whoever reads them takes out of `missing` what was shown.
        """
        if not missing:
            return
        every = answer_parts.of_account(self.connection, self.run)
        by_run = groupby(reversed(every), key=attrgetter("run_id"))
        for number, (_, parts) in enumerate(by_run):
            if number == RUNS_LOOKED_BACK_MAX or not missing:
                return
            saved = still_stored(self.connection, parts)[::-1]
            yield _payments(answers_in(saved, environment=self.environment))


def still_stored(connection: Connection, parts: Iterable[AnswerPart]) -> list[AnswerPart]:
    """The files of nights whose folder was not let go, in their order."""
    known = [*parts]
    writers = {_writer_id(part) for part in known}
    gone = {run_id for run_id in writers if let_go_of(connection, run_id) is not None}
    return [part for part in known if _writer_id(part) not in gone]


def _writer_id(part: AnswerPart) -> str:
    """The run in whose folder a file lies."""
    return part.path.split("/")[4]


def seen_of(
    rows: Iterable[Mapping[str, Any]], *, transaction_id: str, rules: Rules
) -> Iterator[Seen]:
    """What answers said of a payment, in the order of coming: its state, or that it was not shown.

    `rows`: see `ShownAnswers.evidence`.
    """
    for row in rows:
        if row["queried_at"] is not None and row["transaction_id"] == transaction_id:
            yield Seen(rules.state_of(row["payment_status"]), row["queried_at"], uptime_in(row))
        elif row["answer"] == KeyAnswer.NOT_FOUND and row["is_of_run"]:
            yield Seen(GatewayState.NONE, row["answered_at"], uptime_in(row))


def uptime_in(row: Mapping[str, Any]) -> Uptime:
    """What clocks showed when an answer was asked for."""
    return Uptime(row["boot_id"], row["uptime_ms"], row["gateway_at"])


def _frame(table: pa.Table) -> pd.DataFrame:
    rows = table.num_rows
    constant = {"source": pa.repeat("gateway", rows), "line": pa.repeat(0, rows)}
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in SCHEMAS["answers"].columns
    ]
    named = {*table.column_names}
    columns = [
        (table[name] if name in named else constant.get(name, pa.nulls(rows))).cast(field.type)
        for field in fields
        for name in [field.name]
    ]
    return frame_of_table(pa.table(columns, schema=pa.schema(fields)))[[*GATEWAY_COLUMNS]]


def _payments(table: pa.Table) -> pa.Table:
    """The rows that are payments."""
    return table.filter(pc.is_valid(table["queried_at"]))


def _failed(table: pa.Table) -> pa.Table:
    """The rows of keys without a usable answer."""
    return table.filter(pc.equal(table["answer"].cast(pa.string()), KeyAnswer.FAILED.value))


def _by_key(table: pa.Table) -> dict[str, str]:
    """Key -> answer of some rows."""
    columns = (table[name].cast(pa.string()).to_pylist() for name in ("order_no", "answer"))
    return dict(zip(*columns, strict=True))


def _is_in(column: pa.ChunkedArray, wanted: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array([*wanted], pa.string()))
