"""Answers that an earlier version kept as rows, for the upgrade that writes them to folders."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, column, func, inspect, literal, select, table, union_all

from recon.store.schema.columns import Instant

LAST_WITH_ANSWERS = "0030"
"""The newest revision of a database that has such rows."""
ANSWERED = "answered"
"""Under this name the migration is told which runs have their files: names of runs."""
_KEY = ("order_no", "answer", "reason")
_PAYMENT = (
    *("order_no", "transaction_id", "currency", "amount", "payment_status", "query_result"),
    *("reference_no", "detail"),
)


@dataclass(frozen=True, slots=True)
class CarriedPhase:
    """What a run asked of one account in one phase."""

    phase: str
    account_id: str
    asked: tuple[str, ...]
    """Every key, answered or not."""
    answers: Mapping[str, tuple[str, str]]
    payments: tuple[Mapping[str, Any], ...]
    at: datetime | None
    """When the last answer was kept."""


@dataclass(frozen=True, slots=True)
class CarriedOwner:
    """Whose a run is that no night has."""

    merchant_id: str
    account_id: str
    at: datetime


def runs_with_answers(connection: Connection) -> list[str]:
    """Runs with answers in rows, in the order in which they were asked."""
    if not inspect(connection).has_table("observation"):
        return []
    seen: Select[Any] = select(column("run_id"), func.min(column("observation_id")).label("first"))
    keys: Select[Any] = select(column("run_id"), literal(0).label("first")).distinct()
    both = union_all(
        seen.select_from(table("observation")).group_by(column("run_id")),
        keys.select_from(table("query_key")),
    ).subquery()
    # Of a run that was shown no payment it does not matter when it asked.
    query = select(both.c.run_id).group_by(both.c.run_id)
    return [*connection.execute(query.order_by(func.max(both.c.first), both.c.run_id)).scalars()]


def owner_of(connection: Connection, run_id: str) -> CarriedOwner | None:
    """Whose the payments of a run are; None where it was shown none."""
    whose: tuple[Any, ...] = (column("merchant_id"), column("account_id"))
    query = _of(run_id, "observation", *whose, column("queried_at", Instant))
    row = connection.execute(query.limit(1)).first()
    return None if row is None else CarriedOwner(*row)


def phases_of(connection: Connection, run_id: str, *, account_id: str) -> list[CarriedPhase]:
    """What a run asked, by phase; `account_id` is its own."""
    at = column("answered_at", Instant)
    keys = connection.execute(
        _of(run_id, "query_key", column("phase"), *map(column, _KEY), at).order_by(
            column("order_no")
        )
    ).all()
    queried = (column("transaction_date", Instant), column("queried_at", Instant))
    names: tuple[Any, ...] = (
        column("phase"),
        column("account_id"),
        *map(column, _PAYMENT),
        *queried,
    )
    seen = connection.execute(
        _of(run_id, "observation", *names).order_by(column("observation_id"))
    ).mappings()
    payments: dict[str, list[Mapping[str, Any]]] = {}
    for row in seen:
        payments.setdefault(row["phase"], []).append(dict(row))
    phases: dict[str, list[Any]] = {}
    for key in keys:
        phases.setdefault(key.phase, []).append(key)
    return [
        CarriedPhase(
            phase=phase,
            account_id=phase.rpartition(" of ")[2] if " of " in phase else account_id,
            asked=tuple(key.order_no for key in of_phase),
            answers={key.order_no: (key.answer, key.reason) for key in of_phase if key.answer},
            payments=tuple(payments.get(phase, ())),
            at=max((key.answered_at for key in of_phase if key.answered_at), default=None),
        )
        for phase, of_phase in sorted(phases.items())
    ]


def _of(run_id: str, source: str, *names: Any) -> Select[Any]:
    return select(*names).select_from(table(source)).where(column("run_id") == run_id)
