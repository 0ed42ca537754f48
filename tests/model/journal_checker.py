"""Is a journal true? Judged by plain SQL against what really happened; knows nothing of the sender.

Every violation of the invariants of the protocol, in words:

I1 an instruction takes effect at most once; I2 what is believed to have moved did; I3 what is
believed not to have moved did not; I4 a payment gives back no more than it holds, counted with what
may still happen; I5 nothing took effect that was not written down before; I6 the history only
grows, and closes; I7 in the end nothing is in flight or in doubt; I8 one request at a time.
I9, the sums of the report, is held where reports are written.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

BELIEVED_DONE = ("confirmed", "resolved_applied")
BELIEVED_NOT_DONE = ("planned", "approved", "rejected", "withdrawn", "resolved_not_applied")
MAY_HAVE_MOVED = (*BELIEVED_DONE, "in_flight", "in_doubt", "needs_human")
GENESIS = "0" * 64


class Happened(Protocol):
    """One effect of the gateway's truth."""

    body_sha256: str
    position: int
    kind: str
    transaction_id: str
    amount: int


def violations(
    journal: sqlite3.Connection, effects: Sequence[Happened], *, ended: bool = False
) -> list[str]:
    """Every way in which the journal is not true; `ended`: nothing may be open any more."""
    of_instruction, strangers = _attributed(journal, effects)
    rows = journal.execute("SELECT instruction_id, state FROM instruction ORDER BY 1").fetchall()
    return [
        *strangers,
        *_counts(rows, of_instruction),
        *_bounds(journal),
        *_chain(journal),
        *_open_batches(journal),
        *(_left_open(rows) if ended else ()),
    ]


def shrunk(before: Sequence[str], journal: sqlite3.Connection) -> list[str]:
    """I6: links that were there and are there no more, or changed."""
    now = hashes(journal)
    return [] if now[: len(before)] == list(before) else ["I6: the history lost or changed a link"]


def hashes(journal: sqlite3.Connection) -> list[str]:
    """The chain as it stands."""
    return [row[0] for row in journal.execute("SELECT hash FROM history ORDER BY sequence")]


def _attributed(
    journal: sqlite3.Connection, effects: Sequence[Happened]
) -> tuple[Counter[str], list[str]]:
    """Effects per instruction, by the bytes that carried them; and those that nobody wrote down."""
    found = journal.execute(
        "SELECT b.body_sha256, a.position, a.instruction_id FROM attempt a "
        "JOIN batch b ON b.batch_id = a.batch_id"
    )
    carried = {(sha256, position): wanted for sha256, position, wanted in found}
    told: Counter[str] = Counter()
    strangers = []
    for effect in effects:
        if not effect.body_sha256:
            continue
        wanted = carried.get((effect.body_sha256, effect.position))
        if wanted is None:
            strangers.append(
                f"I5: a {effect.kind} of {effect.transaction_id} took effect and was not written "
                "down before"
            )
        else:
            told[wanted] += 1
    return told, strangers


def _counts(rows: Iterable[Any], effects: Counter[str]) -> Iterable[str]:
    for wanted, state in rows:
        count = effects[wanted]
        if count > 1:
            yield f"I1: instruction {wanted} took effect {count} times"
        if state in BELIEVED_DONE and count == 0:
            yield f"I2: instruction {wanted} is {state} and never took effect"
        if state in BELIEVED_NOT_DONE and count > 0:
            yield f"I3: instruction {wanted} is {state} and took effect"


def _bounds(journal: sqlite3.Connection) -> Iterable[str]:
    marks = ", ".join("?" * len(MAY_HAVE_MOVED))
    found = journal.execute(
        "SELECT transaction_id, kind, sum(amount), max(payment_amount) FROM instruction "  # noqa: S608
        f"WHERE state IN ({marks}) AND kind IN ('capture', 'refund') "
        "GROUP BY transaction_id, kind HAVING sum(amount) > max(payment_amount)",
        MAY_HAVE_MOVED,
    )
    for transaction_id, kind, total, bound in found:
        yield f"I4: {kind}s of {transaction_id} come to {total} of {bound}"


def _chain(journal: sqlite3.Connection) -> Iterable[str]:
    """I6: computed here once more from the stored text, not by the code that wrote it."""
    last = GENESIS
    found = journal.execute(
        "SELECT sequence, at, entity, entity_id, event, data, previous_hash, hash FROM history "
        "ORDER BY sequence"
    )
    for number, row in enumerate(found, start=1):
        sequence, at, entity, entity_id, event, data, previous, link = row
        parts = (last, str(number), _instant(at), entity, entity_id, event, data)
        expected = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
        if (sequence, previous, link) != (number, last, expected):
            yield f"I6: history {sequence} does not close"
            return
        last = link
    yield from _strayed(journal)


def _strayed(journal: sqlite3.Connection) -> Iterable[str]:
    found = journal.execute(
        "SELECT i.instruction_id, i.state, (SELECT h.event FROM history h WHERE h.entity = "
        "'instruction' AND h.entity_id = i.instruction_id ORDER BY h.sequence DESC LIMIT 1) told "
        "FROM instruction i WHERE told IS NULL OR told <> i.state"
    )
    for wanted, state, told in found:
        yield f"I6: instruction {wanted} is {state}, the history says {told}"


def _open_batches(journal: sqlite3.Connection) -> Iterable[str]:
    found = journal.execute(
        "SELECT merchant_id, account_id, count(*) FROM batch WHERE state <> 'closed' "
        "GROUP BY 1, 2 HAVING count(*) > 1"
    )
    for merchant_id, account_id, count in found:
        yield f"I8: {count} requests of {merchant_id}/{account_id} are on the wire at once"


def _left_open(rows: Iterable[Any]) -> Iterable[str]:
    for wanted, state in rows:
        if state in {"in_flight", "in_doubt"}:
            yield f"I7: instruction {wanted} is {state} although every evidence is there"


def _instant(stored: str) -> str:
    """As the history wrote it: UTC with microseconds."""
    moment = datetime.fromisoformat(stored)
    return (
        moment.replace(tzinfo=moment.tzinfo or UTC)
        .astimezone(UTC)
        .isoformat(timespec="microseconds")
    )
