"""Runs as the history binds them, against what their table says now.

By its rows the next gate knows which nights were NOT PROVEN, and planning which nights there were:
a verdict that was changed past the code would let refunds go that a night held.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

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
    *(run.c[name] for name in OF_A_START),
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
        told = _Told(row["event"], row["at"], _data_of(row["data"]))
        events.setdefault(str(row["entity_id"]), []).append(told)
    # What a person sends by hand has events and no run.
    wanted = {name for name, told in events.items() if any(one.event == STARTED for one in told)}
    for row in connection.execute(_ROWS).mappings():
        wanted.discard(row["run_id"])
        if problem := _difference(row, told=events.get(row["run_id"], ())):
            yield f"run {row['run_id']}: {problem}; it was changed past the journal"
    for name in sorted(wanted):
        yield f"run {name}: the history knows it, its table does not; it was taken away"


def _data_of(text: str) -> Mapping[str, Any]:
    """What an event tells; of a link that was spoilt nothing, for the chain itself says so."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _difference(row: Mapping[Any, Any], *, told: Sequence[_Told]) -> str:
    if not told or told[0].event != STARTED:
        return "the history never heard of its start"
    for name, value in _expected(told).items():
        if row[name] != value:
            return f"its {name.replace('_', ' ')} is not the one of that night"
    written = {one.data.get("workbook_sha256", "") for one in told if one.event == REPORTED}
    if row["workbook_sha256"] not in written | {""}:
        return "its workbook is not one of that night"
    return ""


def _expected(told: Sequence[_Told]) -> dict[str, Any]:
    """What its row must say, as far as its events tell it; an earlier release told less."""
    start = told[0]
    wanted: dict[str, Any] = {"part": "", "predecessor": ""}
    wanted |= {name: start.data[name] for name in OF_A_START if name in start.data}
    wanted |= {"started_at": start.at, "status": "active", "finished_at": None}
    wanted |= dict.fromkeys((*DIGESTS, "verdict"), "")
    if "as_of" in start.data:
        wanted["as_of"] = datetime.fromisoformat(start.data["as_of"])
    for one in told[1:]:
        if one.event in {*ENDED, TAKEN_OVER}:
            status = "stopped" if one.event == TAKEN_OVER else one.event
            wanted |= {"status": status, "finished_at": one.at}
        elif one.event == RESUMED:
            wanted |= {"status": "active", "finished_at": None}
        elif one.event in {RECONCILED, REPORTED}:
            wanted |= {name: one.data[name] for name in DIGESTS if name in one.data}
            wanted |= {"verdict": one.data["verdict"]} if "verdict" in one.data else {}
    if not any("verdict" in one.data for one in told):
        del wanted["verdict"]  # an earlier release bound none
    if not any("result_digest" in one.data for one in told):
        wanted = {name: value for name, value in wanted.items() if name not in DIGESTS}
    return wanted
