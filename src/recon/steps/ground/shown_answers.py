"""What the gateway's answers show, question by question, read from the files that hold them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import SCHEMAS
from recon.config.rules import Rules
from recon.instructions.resolution import TAKEN, Seen
from recon.matching.frames.sorting import LEADING, many_in_order
from recon.matching.frames.sources import GATEWAY_COLUMNS, KEY_COLUMNS
from recon.model.uptime import Uptime
from recon.model.words import GatewayState, KeyAnswer
from recon.proof.night_tables import frame_of_table
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_answers import (
    answers_in,
    files_of_run,
    newest_of_run,
    parts_table,
    rows_where,
    still_kept,
    table_of_run,
)
from recon.store import Connection
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import BASELINE, OF_ACCOUNT, OWN_PHASES
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import hashes_of

RUNS_LOOKED_BACK_MAX = 40
"""So many runs are looked through for an order of which the newest answers say nothing."""
_PAYMENT = ("order_no", "transaction_id", "currency", "amount", "payment_status")
_RISK = '"risk": {"'
"""So begins what an answer says of risk, where it says anything."""


def failures(
    connection: Connection, run: Run, *, phase: str, environment: Environment
) -> tuple[dict[str, int], list[str]]:
    """How many keys have which answer, and why some have none, the most frequent first."""
    asked: dict[str, Any] = {"phases": [phase], "columns": ["answer", "reason"]}
    files = files_of_run(connection, run, environment=environment, **asked)
    outcome, different = _told(files)
    if different < sum(outcome.answers.values()):
        # A later file answers some keys again: then only all of them together say what counts.
        whole = table_of_run(connection, run, environment=environment, **asked)
        outcome, _ = _told([whole])
    by_number = sorted(outcome.reasons.items(), key=lambda it: (-it[1], it[0]))
    return dict(outcome.answers), [why for why, _ in by_number]


class _Told(NamedTuple):
    """What answers say."""

    answers: Counter[str]
    """Answer -> keys."""
    reasons: Counter[str]
    """Why a key has no answer -> keys."""


def _told(tables: Iterable[pa.Table]) -> tuple[_Told, int]:
    """What some files say, each by itself, and how many keys they name in all."""
    outcome, hashes = _Told(Counter(), Counter()), [np.zeros(0, np.int64)]
    for table in tables:
        outcome.answers.update(_counted(table))
        failed = _where(table, answer=KeyAnswer.FAILED.value)
        outcome.reasons.update(failed["reason"].cast(pa.string()).to_pylist())
        hashes.append(np.unique(hashes_of(table)))
    return outcome, len(np.unique(np.concatenate(hashes)))


def _counted(table: pa.Table) -> Counter[str]:
    """Answer -> keys; those that were found, as nearly all are, without an object for each."""
    is_found = pc.equal(table["answer"].cast(pa.string()), KeyAnswer.FOUND.value)
    others = pc.unique(table["order_no"].filter(pc.invert(is_found)))
    other_answers = answers_in(table.filter(pc.is_in(table["order_no"], value_set=others)))
    counts = Counter(other_answers.values())
    if rest := pc.count_distinct(table["order_no"]).as_py() - len(other_answers):
        counts[KeyAnswer.FOUND.value] += rest
    return counts


def failed_keys(connection: Connection, run: Run, *, environment: Environment) -> set[str]:
    """Keys of the run's own account that got no usable answer before or after money moved."""
    table = table_of_run(
        connection, run, phases=OWN_PHASES, environment=environment, columns=["answer"]
    )
    return set(_where(table, answer=KeyAnswer.FAILED.value)["order_no"].to_pylist())


def gateway_frame(connection: Connection, run: Run, *, environment: Environment) -> pd.DataFrame:
    """GATEWAY_COLUMNS of the newest answers; keys without a payment stand as a row of their own.

    Many are in the order of their numbers, in which orders are, too: where each order has its one
    answer, what both name is then held once.
    """
    frame = _frame(
        newest_of_run(connection, run, environment=environment, columns=[*GATEWAY_COLUMNS])
    )
    return many_in_order(frame, by=[*LEADING, "transaction_id", "reference_no"])


def sibling_frame(connection: Connection, run: Run, *, environment: Environment) -> pd.DataFrame:
    """GATEWAY_COLUMNS of what the merchant's other accounts showed, "not found" included."""
    parts = answer_parts.of_run(connection, run.run_id)
    phases = {part.phase for part in parts if part.phase.startswith(OF_ACCOUNT)}
    table = table_of_run(connection, run, phases=phases, environment=environment)
    is_shown = pc.is_valid(table["queried_at"])
    answer = table["answer"].cast(pa.string())
    is_absent = pc.and_(pc.invert(is_shown), pc.equal(answer, KeyAnswer.NOT_FOUND.value))
    words = pc.if_else(is_shown, KeyAnswer.FOUND.value, KeyAnswer.NOT_FOUND.value)
    judged = table.set_column(table.schema.get_field_index("answer"), "answer", words)
    return _frame(judged.filter(pc.or_(is_shown, is_absent)))


def baseline_answers(
    connection: Connection,
    run: Run,
    *,
    order_nos: Collection[str],
    environment: Environment,
) -> dict[str, str]:
    """Key -> final answer of some orders before money moved."""
    return answers_in(
        rows_where(
            connection,
            run,
            phases=[BASELINE],
            wanted=_among("order_no", order_nos),
            columns=["answer"],
            environment=environment,
        )
    )


def baseline_payments(
    connection: Connection, run: Run, *, order_nos: Collection[str], environment: Environment
) -> list[Mapping[str, Any]]:
    """Payments of some orders before money moved, also where other orders' answers show them."""
    columns = [*_PAYMENT, "transaction_date"]
    named = _among("order_no", order_nos)
    asked: dict[str, Any] = {"columns": columns, "environment": environment}
    own = _baseline(connection, run, wanted=named, **asked)
    paid = _among("transaction_id", {*own["transaction_id"].to_pylist()})
    return list(_baseline(connection, run, wanted=paid, **asked).select(columns).to_pylist())


def only_payments(
    connection: Connection, run: Run, *, order_nos: Collection[str], environment: Environment
) -> dict[str, str]:
    """Order -> its transaction, for those orders whose baseline answer shows exactly one."""
    if not order_nos:
        return {}
    columns = ["transaction_id"]
    named = _among("order_no", order_nos)
    shown = _baseline(connection, run, wanted=named, columns=columns, environment=environment)
    grouped = shown.group_by("order_no").aggregate(
        [("transaction_id", "count_distinct"), ("transaction_id", "min")]
    )
    return {
        row["order_no"]: row["transaction_id_min"]
        for row in grouped.to_pylist()
        if row["transaction_id_count_distinct"] == 1
    }


def statuses_shown(
    connection: Connection, run: Run, *, transactions: Collection[str], environment: Environment
) -> dict[str, list[str]]:
    """Transaction -> the statuses that the baseline shows of it, of those that it shows."""
    if not transactions:
        return {}
    asked = ["transaction_id", "payment_status"]
    paid = _among("transaction_id", transactions)
    table = _baseline(connection, run, wanted=paid, columns=asked, environment=environment)
    columns = (table["transaction_id"], table["payment_status"].cast(pa.string()))
    statuses: dict[str, list[str]] = {}
    for payment, status in zip(*(column.to_pylist() for column in columns), strict=True):
        statuses.setdefault(payment, []).append(status)
    return statuses


def _baseline(
    connection: Connection,
    run: Run,
    *,
    wanted: Callable[[pa.Table], pa.ChunkedArray],
    columns: Collection[str],
    environment: Environment,
) -> pa.Table:
    """Some columns of the wanted payments among those that were shown before money moved."""
    return _shown(
        rows_where(
            connection,
            run,
            phases=[BASELINE],
            wanted=wanted,
            columns=[*columns, "queried_at"],
            environment=environment,
        )
    )


def risks_shown(
    connection: Connection, run: Run, *, transactions: Collection[str], environment: Environment
) -> list[Mapping[str, Any]]:
    """Transaction, time and detail of some payments of whose risk the answers say something."""
    if not transactions:
        return []
    columns = ["transaction_id", "queried_at", "detail"]
    table = _shown(
        rows_where(
            connection,
            run,
            phases=OWN_PHASES,
            wanted=_among("transaction_id", transactions),
            columns=columns,
            environment=environment,
        )
    )
    says = pc.match_substring(table["detail"], _RISK)
    return list(table.filter(says).select(columns).to_pylist())


def first_taken(
    connection: Connection,
    run: Run,
    *,
    transactions: Collection[str],
    rules: Rules,
    environment: Environment,
) -> dict[str, datetime]:
    """Transaction -> when this run's answers first showed its money as taken, of those shown so."""
    if not transactions:
        return {}
    rows = rows_where(
        connection,
        run,
        phases=OWN_PHASES,
        wanted=_among("transaction_id", transactions),
        columns=["transaction_id", "payment_status", "queried_at"],
        environment=environment,
    ).to_pylist()
    taken: dict[str, datetime] = {}
    for row in rows:
        if rules.state_of(row["payment_status"]) in TAKEN:
            known = taken.get(row["transaction_id"], row["queried_at"])
            taken[row["transaction_id"]] = min(known, row["queried_at"])
    return taken


def seen_of(
    rows: Iterable[Mapping[str, Any]], *, transaction_id: str, rules: Rules
) -> Iterator[Seen]:
    """What answers said of a payment, in the order of coming: its state, or that it was not shown.

    `rows`: see `kept_answers.evidence`.
    """
    for row in rows:
        if row["queried_at"] is not None and row["transaction_id"] == transaction_id:
            yield Seen(rules.state_of(row["payment_status"]), row["queried_at"], uptime_in(row))
        elif row["answer"] == KeyAnswer.NOT_FOUND and row["is_of_run"]:
            yield Seen(GatewayState.NONE, row["answered_at"], uptime_in(row))


def uptime_in(row: Mapping[str, Any]) -> Uptime:
    """What clocks showed when an answer was asked for."""
    return Uptime(row["boot_id"], row["uptime_ms"], row["gateway_at"])


def authorised_at(
    connection: Connection, run: Run, *, order_nos: Collection[str], environment: Environment
) -> dict[str, datetime]:
    """When the newest answers date the payment of each order, the first where it has several."""
    missing = {order_no for order_no in order_nos if order_no}
    dates: dict[str, datetime] = {}
    for table in _newest_first(connection, run, missing=missing, environment=environment):
        shown = table.filter(_is_in(table["order_no"], missing))
        shown = shown.filter(pc.is_valid(shown["transaction_date"]))
        oldest = shown.group_by("order_no").aggregate([("transaction_date", "min")])
        dates |= {row["order_no"]: row["transaction_date_min"] for row in oldest.to_pylist()}
        missing -= set(dates)
    return dates


def orders_of_transactions(
    connection: Connection, run: Run, *, transactions: Collection[str], environment: Environment
) -> set[str]:
    """The orders for which the newest answers show some transactions."""
    missing, orders = set(transactions), set[str]()
    for table in _newest_first(connection, run, missing=missing, environment=environment):
        shown = table.filter(_is_in(table["transaction_id"], missing))
        orders.update(shown["order_no"].to_pylist())
        missing -= set(shown["transaction_id"].to_pylist())
    return orders - {""}


def chargeback_keys(
    connection: Connection,
    run: Run,
    *,
    codes: Collection[str],
    until: int,
    environment: Environment,
) -> pd.DataFrame:
    """KEY_COLUMNS of orders that any earlier answer showed with one of these codes.

    `until` is the last file of answers that counts.
    """
    known = answer_parts.charged_back_keys(connection, run, codes=codes, until=until)
    parts = answer_parts.judged_otherwise(connection, run, codes=codes, until=until)
    kept = still_kept(connection, parts)
    if not kept:
        return known
    table = parts_table(kept, environment=environment)
    shown = table.filter(_is_in(table["payment_status"].cast(pa.string()), codes))
    keys = {*known["order_no"], *shown["order_no"].to_pylist()}
    cells = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    return pd.DataFrame(
        {
            name: pd.Series([cells.get(name, key) for key in sorted(keys)], dtype="str")
            for name in KEY_COLUMNS
        }
    )


def _newest_first(
    connection: Connection, run: Run, *, missing: set[str], environment: Environment
) -> Iterator[pa.Table]:
    """The payments of each run's answers about an account, as long as something is missing.

    Whoever reads them takes out of `missing` what was shown.
    """
    if not missing:
        return
    by_run = groupby(reversed(answer_parts.of_account(connection, run)), key=attrgetter("run_id"))
    for number, (_, parts) in enumerate(by_run):
        if number == RUNS_LOOKED_BACK_MAX or not missing:
            return
        kept = still_kept(connection, parts)
        yield _shown(parts_table(kept[::-1], environment=environment))


def _frame(table: pa.Table) -> pd.DataFrame:
    rows = table.num_rows
    constant = {"source": pa.repeat("gateway", rows), "line": pa.repeat(0, rows)}
    columns = [
        (
            table[field.name]
            if field.name in table.column_names
            else constant.get(field.name, pa.nulls(rows))
        ).cast(_plain(field.type))
        for field in SCHEMAS["answers"].columns
    ]
    schema = pa.schema(
        [
            pa.field(field.name, _plain(field.type), nullable=field.nullable)
            for field in SCHEMAS["answers"].columns
        ]
    )
    return frame_of_table(pa.table(columns, schema=schema))[[*GATEWAY_COLUMNS]]


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _shown(table: pa.Table) -> pa.Table:
    """The rows that are payments."""
    return table.filter(pc.is_valid(table["queried_at"]))


def _where(table: pa.Table, **words: str) -> pa.Table:
    for name, word in words.items():
        table = table.filter(pc.equal(table[name].cast(pa.string()), word))
    return table


def _among(name: str, words: Iterable[str]) -> Callable[[pa.Table], pa.ChunkedArray]:
    """Says which rows have one of these words in a column."""
    among = pa.array([*words], pa.string())
    return lambda table: pc.is_in(table[name], value_set=among)


def _is_in(column: pa.ChunkedArray, wanted: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array([*wanted], pa.string()))
