"""Runs as the history binds them, against what their table says now.

By its rows the next gate knows which nights were NOT PROVEN, and planning which nights there were:
a verdict that was changed past the code would let refunds go that a night held.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, String, select, type_coerce

from recon.store.database.history import REPORTED
from recon.store.nights.runs import ENDED, RESUMED, STARTED, TAKEN_OVER
from recon.store.schema import history, run

ENTITY = "run"
RECONCILED = "reconciled"
"""The event that chains the rules and the result of a run."""
OF_A_START = ("business_date", "mode", "part", "predecessor", "merchant_id", "account_id")
DIGESTS = ("rules_digest", "result_digest")
_ROWS = select(
    run.c.run_id,
    # As it stands in the row: a text that was put there past the code may be no date.
    type_coerce(run.c.business_date, String).label("business_date"),
    *(run.c[name] for name in OF_A_START if name != "business_date"),
    *(run.c[name] for name in (*DIGESTS, "verdict", "status", "started_at", "finished_at")),
    *(run.c[name] for name in ("as_of", "workbook_sha256")),
).order_by(run.c.run_id)
_EVENTS = select(history).where(history.c.entity == ENTITY).order_by(history.c.sequence)


@dataclass(frozen=True, slots=True)
class _Told:
    """One event of a run."""

    event: str
    at: datetime
    data: Mapping[str, Any]


def changed_runs(connection: Connection) -> Iterator[str]:
    """Every run whose row is not what the history bound, in words."""
    events: dict[str, list[_Told]] = {}
    for row in connection.execute(_EVENTS).mappings():
        event = _Told(row["event"], row["at"], data_of(row["data"]))
        events.setdefault(str(row["entity_id"]), []).append(event)
    # What a person sends by hand has events and no run.
    wanted = {
        name
        for name, run_events in events.items()
        if any(event.event == STARTED for event in run_events)
    }
    for row in connection.execute(_ROWS).mappings():
        wanted.discard(row["run_id"])
        if problem := _difference(row, run_events=events.get(row["run_id"], ())):
            yield f"run {row['run_id']}: {problem}; it was changed past the journal"
    for name in sorted(wanted):
        yield f"run {name}: the history knows it, its table does not; it was taken away"


def data_of(text: str) -> Mapping[str, Any]:
    """What an event tells; of a link that was spoilt nothing, for the chain itself says so."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _difference(row: Mapping[Any, Any], *, run_events: Sequence[_Told]) -> str:
    if not run_events or run_events[0].event != STARTED:
        return "the history never heard of its start"
    for name, value in _expected(run_events).items():
        if row[name] != value:
            return f"its {name.replace('_', ' ')} is not the one of that night"
    written = {
        event.data.get("workbook_sha256", "") for event in run_events if event.event == REPORTED
    }
    if row["workbook_sha256"] not in written | {""}:
        return "its workbook is not one of that night"
    return ""


def _expected(run_events: Sequence[_Told]) -> dict[str, Any]:
    """What its row must say, as far as its events tell it."""
    start = run_events[0]
    wanted: dict[str, Any] = {"part": "", "predecessor": ""}
    wanted |= {name: start.data[name] for name in OF_A_START if name in start.data}
    wanted |= {"started_at": start.at, "status": "active", "finished_at": None}
    wanted |= dict.fromkeys((*DIGESTS, "verdict"), "")
    if "as_of" in start.data:
        wanted["as_of"] = datetime.fromisoformat(start.data["as_of"])
    for event in run_events[1:]:
        if event.event in {*ENDED, TAKEN_OVER}:
            status = "stopped" if event.event == TAKEN_OVER else event.event
            wanted |= {"status": status, "finished_at": event.at}
        elif event.event == RESUMED:
            wanted |= {"status": "active", "finished_at": None}
        elif event.event in {RECONCILED, REPORTED}:
            wanted |= {name: event.data[name] for name in DIGESTS if name in event.data}
            wanted |= {"verdict": event.data["verdict"]} if "verdict" in event.data else {}
    return wanted
