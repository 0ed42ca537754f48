"""The rows of a file of answers, and what its row in the database says of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import ASKED, REPLIES
from recon.config.rules import Rules
from recon.model.uptime import Uptime
from recon.model.words import GatewayState, KeyAnswer
from recon.steps.ground.environment import Environment
from recon.store.database.history import head
from recon.store.nights.runs import Run
from recon.store.schema.columns import REASON_CHARACTERS

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
