"""What a run asked the gateway and what it was told; a phase is `baseline` or `after` money."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pandas as pd
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from recon.matching.frames.sources import GATEWAY_COLUMNS, KEY_COLUMNS, frame_of
from recon.model.words import KeyAnswer
from recon.store.database.frames import frame_of_select
from recon.store.nights.runs import Run
from recon.store.schema import observation, query_key
from recon.store.schema.account_filter import account_values, in_account
from recon.store.schema.columns import REASON_CHARACTERS

BASELINE = "baseline"
AFTER = "after"
OWN_PHASES = (BASELINE, AFTER)
VALUES_PER_QUERY_MAX = 500
"""Orders named in one query; databases bound how many there may be."""

_PHASE = (
    query_key.c.run_id == bindparam("of_run"),
    query_key.c.phase == bindparam("of_phase"),
)
_KEYS = select(query_key.c.order_no).where(*_PHASE)
_ASK = insert(query_key)
_UNANSWERED = _KEYS.where(query_key.c.answer == "").order_by(query_key.c.order_no)
_ANSWERS = select(query_key.c.answer).where(*_PHASE)
_ANSWERED = select(query_key.c.order_no, query_key.c.answer).where(
    *_PHASE, query_key.c.answer != ""
)
_REASONS = (
    select(query_key.c.reason, func.count())
    .where(*_PHASE, query_key.c.answer == bindparam("told"))
    .group_by(query_key.c.reason)
    .order_by(func.count().desc(), query_key.c.reason)
)
_ANSWER = (
    update(query_key)
    .where(*_PHASE, query_key.c.order_no == bindparam("of_order"))
    .values(answer=bindparam("told"), reason=bindparam("because"), answered_at=bindparam("at"))
)
_FORGET = delete(observation).where(
    # By the index of keys: that of runs would look at all that the run has seen, for each key.
    *in_account(observation),
    observation.c.run_id == bindparam("of_run"),
    observation.c.phase == bindparam("of_phase"),
    observation.c.order_no == bindparam("of_order"),
)
_OBSERVE = insert(observation)
_OBSERVED = (
    select(observation)
    .where(
        observation.c.run_id == bindparam("of_run"),
        observation.c.account_id == bindparam("of_account"),
    )
    .order_by(observation.c.observation_id)
)
_ONLY = (
    select(observation.c.order_no, func.min(observation.c.transaction_id))
    .where(
        *in_account(observation),
        observation.c.run_id == bindparam("of_run"),
        observation.c.phase == bindparam("of_phase"),
        observation.c.order_no.in_(bindparam("wanted", expanding=True)),
    )
    .group_by(observation.c.order_no)
    .having(func.count(observation.c.transaction_id.distinct()) == 1)
)
_SEEN = (
    select(observation)
    .where(
        *in_account(observation),
        observation.c.order_no == bindparam("of_order"),
        observation.c.queried_at > bindparam("since"),
    )
    .order_by(observation.c.queried_at, observation.c.observation_id)
)


def sibling_phase(account_id: str) -> str:
    """The phase under which a run asks for another account of the merchant."""
    return f"{BASELINE} of {account_id}"


def open_phase(connection: Connection, run_id: str, *, phase: str, keys: Iterable[str]) -> None:
    """Note the keys to ask for; those noted before (a restart) stay as they are."""
    known = phase_keys(connection, run_id, phase=phase)
    rows = [
        {"run_id": run_id, "phase": phase, "order_no": key} for key in sorted(set(keys) - known)
    ]
    if rows:
        connection.execute(_ASK, rows)


def unanswered(connection: Connection, run_id: str, *, phase: str) -> list[str]:
    """Keys of the phase without a final answer."""
    return list(connection.execute(_UNANSWERED, _of(run_id, phase)).scalars())


def save(
    connection: Connection,
    run: Run,
    *,
    phase: str,
    answers: Mapping[str, tuple[KeyAnswer, str]],
    observations: Sequence[Mapping[str, Any]],
    at: datetime,
) -> None:
    """Store final answers (key -> answer and reason) with the payments they showed."""
    of_phase = _of(run.run_id, phase)
    if answers:
        owner = account_values(run)
        connection.execute(_FORGET, [of_phase | owner | {"of_order": key} for key in answers])
        key_rows = [
            {
                "of_order": key,
                "told": answer.value,
                "because": reason[:REASON_CHARACTERS],
                "at": at,
            }
            for key, (answer, reason) in answers.items()
        ]
        connection.execute(_ANSWER, [of_phase | key_row for key_row in key_rows])
    rows = [
        {
            "run_id": run.run_id,
            "phase": phase,
            "merchant_id": run.merchant_id,
            "account_id": run.account_id,
            **item,
        }
        for item in observations
    ]
    if rows:
        connection.execute(_OBSERVE, rows)


def counts(connection: Connection, run_id: str, *, phase: str) -> dict[str, int]:
    """How many keys have which answer."""
    answers = connection.execute(_ANSWERS, _of(run_id, phase)).scalars()
    tally: dict[str, int] = {}
    for answer in answers:
        tally[answer] = tally.get(answer, 0) + 1
    return tally


def phase_keys(connection: Connection, run_id: str, *, phase: str) -> set[str]:
    """All keys of a phase, answered or not."""
    return set(connection.execute(_KEYS, _of(run_id, phase)).scalars())


def phase_answers(connection: Connection, run_id: str, *, phase: str) -> dict[str, str]:
    """Key -> final answer of a phase."""
    rows = connection.execute(_ANSWERED, _of(run_id, phase))
    return {row.order_no: row.answer for row in rows}


def reasons(connection: Connection, run_id: str, *, phase: str, answer: KeyAnswer) -> list[str]:
    """Why keys of a phase have this answer, the most frequent reason first."""
    rows = connection.execute(_REASONS, _of(run_id, phase) | {"told": answer.value})
    return [reason for reason, _ in rows.all()]


def failed_keys(connection: Connection, run_id: str) -> set[str]:
    """Keys of the run's own account that got no usable answer before or after money moved."""
    rows = connection.execute(
        select(query_key.c.order_no).where(
            query_key.c.run_id == run_id,
            query_key.c.phase.in_(OWN_PHASES),
            query_key.c.answer == KeyAnswer.FAILED.value,
        )
    )
    return set(rows.scalars())


def newest_answers(connection: Connection, run: Run) -> dict[str, tuple[str, str]]:
    """Key -> (answer, phase), the `after` phase taking the place of the baseline."""
    rows = connection.execute(
        select(query_key.c.order_no, query_key.c.phase, query_key.c.answer)
        .where(
            query_key.c.run_id == run.run_id,
            query_key.c.phase.in_(OWN_PHASES),
            query_key.c.answer != "",
        )
        .order_by(query_key.c.order_no, query_key.c.phase)
    ).all()
    newest: dict[str, tuple[str, str]] = {}
    for row in sorted(rows, key=lambda row: row.phase == AFTER):
        newest[row.order_no] = (row.answer, row.phase)
    return newest


def only_payments(connection: Connection, run: Run, *, order_nos: Iterable[str]) -> dict[str, str]:
    """Order -> its transaction, for those orders whose baseline answer shows exactly one."""
    wanted = sorted(order_nos)
    rows: dict[str, str] = {}
    for start in range(0, len(wanted), VALUES_PER_QUERY_MAX):
        part = wanted[start : start + VALUES_PER_QUERY_MAX]
        values = _of(run.run_id, BASELINE) | {
            **account_values(run),
            "wanted": part,
        }
        rows |= dict(connection.execute(_ONLY, values).tuples().all())
    return rows


def observations_of(connection: Connection, run: Run) -> list[Mapping[Any, Any]]:
    """Every payment of the run's own account that its answers showed."""
    of_run = {"of_run": run.run_id, "of_account": run.account_id}
    return list(connection.execute(_OBSERVED, of_run).mappings())


def save_of_sibling(
    connection: Connection,
    run: Run,
    *,
    account_id: str,
    answers: Mapping[str, tuple[KeyAnswer, str]],
    observations: Sequence[Mapping[str, Any]],
    at: datetime,
) -> None:
    """Store what the gateway said of some keys under another account of the merchant."""
    phase = sibling_phase(account_id)
    open_phase(connection, run.run_id, phase=phase, keys=answers)
    sibling = replace(run, account_id=account_id)
    save(connection, sibling, phase=phase, answers=answers, observations=observations, at=at)


def sibling_frame(connection: Connection, run: Run) -> pd.DataFrame:
    """GATEWAY_COLUMNS of what the merchant's other accounts showed, "not found" included."""
    observed = connection.execute(
        select(observation)
        .where(observation.c.run_id == run.run_id, observation.c.account_id != run.account_id)
        .order_by(observation.c.observation_id)
    ).mappings()
    rows = [
        {**row, "answer": KeyAnswer.FOUND.value, "source": "gateway", "line": 0} for row in observed
    ]
    absent = connection.execute(
        select(query_key.c.phase, query_key.c.order_no)
        .where(
            query_key.c.run_id == run.run_id,
            query_key.c.phase.not_in(OWN_PHASES),
            query_key.c.answer == KeyAnswer.NOT_FOUND.value,
        )
        .order_by(query_key.c.phase, query_key.c.order_no)
    )
    rows += [
        {
            "merchant_id": run.merchant_id,
            "account_id": phase.removeprefix(f"{BASELINE} of "),
            "order_no": key,
            "answer": KeyAnswer.NOT_FOUND.value,
            "source": "gateway",
            "line": 0,
        }
        for phase, key in absent.all()
    ]
    return frame_of(rows, columns=GATEWAY_COLUMNS)


def seen_since(
    connection: Connection, run: Run, *, order_no: str, since: datetime
) -> list[Mapping[Any, Any]]:
    """All answers about an order since an instant over all runs, oldest first."""
    of_account = account_values(run)
    rows = connection.execute(_SEEN, of_account | {"of_order": order_no, "since": since})
    return list(rows.mappings())


def universe(connection: Connection, run: Run) -> pd.DataFrame:
    """KEY_COLUMNS of everything this run asked for."""
    keys = sorted(
        set(
            connection.execute(
                select(query_key.c.order_no).where(
                    query_key.c.run_id == run.run_id, query_key.c.phase.in_(OWN_PHASES)
                )
            ).scalars()
        )
    )
    return pd.DataFrame(
        {
            "merchant_id": pd.Series([run.merchant_id] * len(keys), dtype="str"),
            "account_id": pd.Series([run.account_id] * len(keys), dtype="str"),
            "order_no": pd.Series(keys, dtype="str"),
        }
    )[list(KEY_COLUMNS)]


def chargeback_keys(
    connection: Connection, run: Run, *, codes: Sequence[str], until: int
) -> pd.DataFrame:
    """KEY_COLUMNS of orders that any earlier answer showed with one of these codes.

    `until` is the last observation that counts.
    """
    query = (
        select(observation.c.merchant_id, observation.c.account_id, observation.c.order_no)
        .where(
            observation.c.merchant_id == run.merchant_id,
            observation.c.account_id == run.account_id,
            observation.c.run_id != run.run_id,
            observation.c.payment_status.in_(codes),
            observation.c.observation_id <= until,
        )
        .distinct()
        .order_by(observation.c.order_no)
    )
    return frame_of_select(connection, query, columns=KEY_COLUMNS)


def gateway_frame(connection: Connection, run: Run) -> pd.DataFrame:
    """GATEWAY_COLUMNS of the newest answers; keys without a payment stand as a row of their own."""
    newest = newest_answers(connection, run)
    rows = [
        {**row, "answer": newest[row["order_no"]][0], "source": "gateway", "line": 0}
        for row in observations_of(connection, run)
        if newest.get(row["order_no"], ("", ""))[1] == row["phase"]
    ]
    shown = {row["order_no"] for row in rows}
    rows += [
        {
            "merchant_id": run.merchant_id,
            "account_id": run.account_id,
            "order_no": key,
            "answer": answer,
            "source": "gateway",
            "line": 0,
        }
        for key, (answer, _) in newest.items()
        if key not in shown
    ]
    return frame_of(rows, columns=GATEWAY_COLUMNS)


def _of(run_id: str, phase: str) -> dict[str, Any]:
    return {"of_run": run_id, "of_phase": phase}
