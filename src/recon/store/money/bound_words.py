"""What people said, as the history binds it, against what their tables say now.

A word that lets money move or holds it: a release, a case, a turn of the switch, an agreement, a
verdict, an approval; and one that stands under figures: a signature, an answer to a break. Each was
written with its event; whoever changes, adds or takes away its row past the code leaves the event
as it was.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from sqlalchemy import Connection, Table, select

from recon.store.money import case_rows, sending_rows
from recon.store.nights import sign_off_rows
from recon.store.people import agreement_rows, resolution_rows
from recon.store.people.approval_rows import (
    COMPLETE,
    FIRST,
    OPEN,
    TAKEN_BACK,
    VOID,
    PersonsWord,
    list_digest,
    name_of,
)
from recon.store.schema import (
    agreement,
    approval,
    break_answer,
    contradiction,
    history,
    release,
    sending_switch,
    sign_off,
    verdict,
)
from recon.store.schema.columns import REASON_CHARACTERS

Row = Mapping[str, Any]
EVIDENCE_CHARACTERS = 1_000
PAYMENT = ("merchant_id", "account_id", "transaction_id")


@dataclass(frozen=True, slots=True)
class EntityEvent:
    """One event of an entity."""

    event: str
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bound:
    """How one table of words is held against its events."""

    table: Table
    entity: str
    key: str
    """The column with the entity's id."""
    order: str
    """The column by which the rows of one entity follow each other."""

    def expected(self, events: list[EntityEvent]) -> list[Row]:
        """What the rows of one entity must say, oldest first."""
        return _EXPECTED[self.table.name](events)


def changed_words(connection: Connection) -> Iterator[str]:
    """Every word about money whose row is not what the history bound, in words."""
    return _changed(connection, _BOUND)


def changed_names(connection: Connection) -> Iterator[str]:
    """Every signature and answer whose row is not what the history bound: they move no money."""
    return _changed(connection, _BOUND_NAMES)


def _changed(connection: Connection, of: Iterable[Bound]) -> Iterator[str]:
    for bound in of:
        rows: dict[str, list[Row]] = {}
        table_rows = connection.execute(select(bound.table).order_by(bound.table.c[bound.order]))
        for row in table_rows.mappings():
            rows.setdefault(str(row[bound.key]), []).append(dict(row))
        events = _events_of(connection, bound.entity)
        for key in sorted(rows.keys() | events.keys()):
            sides = (bound.expected(events.get(key, [])), rows.get(key, []))
            for wanted, spoken in zip_longest(*sides, fillvalue=None):
                if problem := _difference(wanted, spoken):
                    yield f"{bound.entity} {key}: {problem}; it was changed past the journal"


def _events_of(connection: Connection, entity: str) -> dict[str, list[EntityEvent]]:
    query = select(history).where(history.c.entity == entity).order_by(history.c.sequence)
    events: dict[str, list[EntityEvent]] = {}
    for row in connection.execute(query).mappings():
        event = EntityEvent(row["event"], row["at"], json.loads(row["data"]))
        events.setdefault(str(row["entity_id"]), []).append(event)
    return events


def _difference(expected: Row | None, row: Row | None) -> str:
    if row is None:
        return "the history knows it, its table does not"
    if expected is None:
        return "the history never heard of it"
    spoken = _spoken(row)
    for name, wanted in expected.items():
        if spoken[name] != wanted:
            return f"its {name.replace('_', ' ')} is not the one that was said"
    return ""


def _spoken(row: Row) -> dict[str, Any]:
    """A row with each name as its event tells it, and how many instructions a list has."""
    words = dict(row)
    for who in ("first", "second"):
        if f"{who}_by" in row:
            word = PersonsWord(
                row[f"{who}_by"], authenticated=row[f"{who}_authenticated"], at=row["first_at"]
            )
            words[f"{who}_by"] = word.in_words if word.by else "?" * word.authenticated
    for who in ("given", "signed"):
        if f"{who}_by" in row and "authenticated" in row:
            word = PersonsWord(
                row[f"{who}_by"], authenticated=row["authenticated"], at=row[f"{who}_at"]
            )
            words[f"{who}_by"] = word.in_words if word.by else ""
    if "instruction_ids" in row:
        ids = json.loads(row["instruction_ids"])
        words["instructions"], words["list"] = len(ids), list_digest(ids)
    words["closed"] = words.get("closed_at") is not None
    words["open"] = words.get("state") == OPEN
    return words


def _turns(events: list[EntityEvent]) -> list[Row]:
    return [
        {
            "stopped": event.event == "stopped",
            "turned_by": event.data["by"][: sending_rows.NAME_CHARACTERS],
            "reason": event.data["reason"],
            "at": event.at,
        }
        for event in events
    ]


def _releases(events: list[EntityEvent]) -> list[Row]:
    for number, event in enumerate(events):
        if event.event == VOID:
            # Until somebody releases it anew the row has nobody in it.
            return _releases(events[number + 1 :]) or [{"first_by": "", "second_by": ""}]
    if not events:
        return []
    first, second = events[0], events[-1] if len(events) > 1 else None
    return [
        {
            "reason": first.data["reason"][:REASON_CHARACTERS],
            "first_by": first.data["by"],
            "first_at": first.at,
            "second_by": second.data["by"] if second else "",
            "second_at": second.at if second else None,
        }
    ]


def _cases(events: list[EntityEvent]) -> list[Row]:
    """The first event of a case that is not its own opening is of another kind: it has no row."""
    opened = [event for event in events if event.event == "opened"]
    closed = [event for event in events if event.event == "closed"]
    return [
        {
            "told": event.data["told"][:REASON_CHARACTERS],
            "noted_at": event.at,
            "closed": bool(closed),
            "closed_at": closed[-1].at if closed else None,
            **{name: event.data[name] for name in PAYMENT},
        }
        for event in opened[:1]
    ]


def _pairs(events: list[EntityEvent]) -> list[Row]:
    """The words of two people: a first one, and what became of it."""
    rows: list[dict[str, Any]] = []
    for event in events:
        if event.event == FIRST:
            kept = {
                name: event.data[name]
                for name in ("what", "reason", "instructions", "list")
                if name in event.data
            }
            until = (
                {"valid_until": datetime.fromisoformat(event.data["valid_until"])}
                if "valid_until" in event.data
                else {}
            )
            first = {
                "first_by": event.data["by"],
                "first_at": event.at,
                "second_by": "",
                "second_at": None,
            }
            rows.append({**kept, **until, **first, "state": FIRST})
            continue
        same = [r for r in rows if r["state"] == FIRST and r.get("what") == event.data.get("what")]
        if not same:
            continue
        same[0]["state"] = COMPLETE if event.event == COMPLETE else VOID
        if event.event == COMPLETE:
            same[0].update(second_by=event.data["by"], second_at=event.at)
    return list(rows)


def _verdicts(events: list[EntityEvent]) -> list[Row]:
    rows: list[dict[str, Any]] = []
    for event in events:
        for row in rows:
            if name_of(row["given_by"]) in event.data["ends"]:
                row["open"] = False
        if event.event != TAKEN_BACK:
            rows.append(
                {
                    "verdict": event.data["verdict"],
                    "evidence": event.data["evidence"][:EVIDENCE_CHARACTERS],
                    "given_by": event.data["by"],
                    "given_at": event.at,
                }
            )
    return list(rows)


def _signatures(events: list[EntityEvent]) -> list[Row]:
    """One row a role: its newest signature, without a name where it was taken back."""
    rows: dict[str, Row] = {}
    for event in events:
        rows[event.data["role"]] = {
            "role": event.data["role"],
            "signed_by": "" if event.event == TAKEN_BACK else event.data["by"],
            "signed_at": event.at,
            "workbook_sha256": event.data["workbook_sha256"],
        }
    return [rows[role] for role in sorted(rows)]


def _answers(events: list[EntityEvent]) -> list[Row]:
    fields = ("version", "resolution", "owner", "comment")
    return [
        {**{name: event.data[name] for name in fields}, "given_by": event.data["by"]}
        for event in events
        if event.event == resolution_rows.ANSWERED
    ]


_BOUND = (
    Bound(sending_switch, sending_rows.SWITCH, "turn", "turn"),
    Bound(release, "release", "run_id", "run_id"),
    Bound(contradiction, case_rows.ENTITY, "instruction_id", "instruction_id"),
    Bound(agreement, agreement_rows.ENTITY, "subject", "agreement_id"),
    Bound(verdict, "verdict", "instruction_id", "verdict_id"),
    Bound(approval, "approval", "digest", "approval_id"),
)
_BOUND_NAMES = (
    Bound(sign_off, sign_off_rows.ENTITY, "run_id", "role"),
    Bound(break_answer, resolution_rows.ENTITY, "break_id", "version"),
)
_EXPECTED = {
    "sending_switch": _turns,
    "release": _releases,
    "contradiction": _cases,
    "agreement": _pairs,
    "verdict": _verdicts,
    "approval": _pairs,
    "sign_off": _signatures,
    "break_answer": _answers,
}
