"""The sandbox's truth and a journal in one form, so that one checker judges every campaign."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from recon.model.money import parse_minor_units

CLASSIFIED = ("instruction", "attempt", "batch", "history", "contradiction")
ENDED_WITHOUT_EFFECT = frozenset({"rejected", "withdrawn", "resolved_not_applied"})
MOVING = frozenset({"capture", "cancel", "refund"})
NOBODY = "nobody wrote it down"


@dataclass(frozen=True)
class Effect:
    """One effect of the sandbox's truth; `body_sha256` of the request that must have carried it."""

    kind: str
    transaction_id: str
    amount: int
    order_no: str
    currency: str
    body_sha256: str = NOBODY
    position: int = 0
    batch_id: str = ""


def effects_of(rows: Iterable[Mapping[str, str]]) -> list[Effect]:
    """Rows of the sandbox's ledger of effects; a cancel may have no amount."""
    return [
        Effect(
            row["operation"],
            row["transaction_id"],
            parse_minor_units(row["amount"], currency=row["currency"]) if row["amount"] else 0,
            row["order_no"],
            row["currency"],
        )
        for row in rows
    ]


def carried(journal: sqlite3.Connection, effects: Iterable[Effect]) -> Counter[str]:
    """Effects per instruction; in these worlds each wish has a payment of its own."""
    known = {
        (kind, order): wanted
        for wanted, kind, order in journal.execute(
            "SELECT DISTINCT i.instruction_id, i.kind, i.order_no FROM instruction i "
            "JOIN attempt a ON a.instruction_id = i.instruction_id"
        )
    }
    return Counter(known.get((one.kind, one.order_no), "") for one in effects)


def attributed(journal: sqlite3.Connection, effects: Iterable[Effect]) -> list[Effect]:
    """Each effect with a request that was written down for it, if any was."""
    carriers = {
        (kind, order): {"body_sha256": sha256, "position": position}
        for kind, order, sha256, position in journal.execute(
            "SELECT i.kind, i.order_no, b.body_sha256, a.position FROM attempt a "
            "JOIN batch b ON b.batch_id = a.batch_id "
            "JOIN instruction i ON i.instruction_id = a.instruction_id"
        )
    }
    return [replace(one, **carriers.get((one.kind, one.order_no), {})) for one in effects]


def forgotten(
    journal: sqlite3.Connection, effects: Iterable[Effect], *, wanted: Iterable[tuple[str, str]]
) -> list[str]:
    """Kinds and orders that the journal does not know, or knows and never did."""
    moved = {(one.kind, one.order_no) for one in effects}
    # What was told twice may have been rejected once: what moved is not lost.
    states = {
        (kind, order): state
        for kind, order, state in journal.execute(
            "SELECT kind, order_no, state FROM instruction "
            "ORDER BY state NOT IN ('rejected', 'withdrawn', 'resolved_not_applied')"
        )
    }
    return [
        *(f"lost: {one} was instructed and is not known" for one in {*wanted} - {*states}),
        *(
            f"lost: {one} is {state} and never moved"
            for one, state in states.items()
            if one not in moved and state not in ENDED_WITHOUT_EFFECT
        ),
    ]


def journal_of(database_url: str) -> sqlite3.Connection:
    """The journal as SQLite, whatever it is kept in."""
    if database_url.startswith("sqlite:///"):
        return sqlite3.connect(database_url.removeprefix("sqlite:///"))
    journal = sqlite3.connect(":memory:")
    with psycopg.connect(database_url) as connection:
        for table in CLASSIFIED:
            found = connection.execute(f"SELECT * FROM {table}")  # type: ignore[arg-type]  # noqa: S608
            names = [column.name for column in found.description or ()]
            marks = ", ".join("?" * len(names))
            journal.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            journal.executemany(
                f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608
                [[_plain(cell) for cell in row] for row in found],
            )
    return journal


def _plain(cell: Any) -> Any:
    if hasattr(cell, "isoformat"):
        return cell.isoformat()
    return json.dumps(cell) if isinstance(cell, dict | list) else cell
