"""Is a journal true? Judged by plain SQL against what really happened; knows nothing of the sender.

Every violation of the invariants of the protocol, in words:

I1 an instruction takes effect at most once; I2 what is believed to have moved did; I3 what is
believed not to have moved did not; I4 a payment gives back no more than it holds, counted with what
may still happen; I5 nothing took effect that was not written down before; I6 the history only
grows, and closes; I7 in the end nothing is in flight or in doubt; I8 one request at a time.
I9, the sums of the report, is held where reports are written.

An instruction is a file's word; an intention is what the merchant really wanted, and only who
writes the files knows it (`Known`):
I10 an intention takes effect once, however often, in whatever file and under whatever id it is
told, unless people let another go; I11 nothing takes effect that nobody wanted; I12 whatever was
wanted is known in the end; I13 a belief that is not true, because the truth came too late or people
said what is not so, has a case in the end as soon as the gateway shows it; I14 nothing leaves that
people had stopped; I15 numbers of refunds that repeat, or count one that is not ours, have a case
in the end.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    batch_id: str
    """The batch on the wire at that moment, where the gateway saw it; "" where it cannot."""


class Wish(Protocol):
    """One movement of money that a merchant wants."""

    @property
    def kind(self) -> str: ...

    @property
    def transaction_id(self) -> str: ...

    @property
    def amount(self) -> int: ...


@dataclass(frozen=True)
class Known:
    """What only those know who write the files, play the people and are the gateway."""

    may_happen: Mapping[Any, int]
    """Wish -> how often it may take effect."""
    misjudged: Collection[str] = ()
    """Instructions of which the journal may believe what is not true."""


def violations(
    journal: sqlite3.Connection,
    effects: Sequence[Happened],
    *,
    known: Known | None = None,
    ended: bool = False,
) -> list[str]:
    """Every way in which the journal is not true; `ended`: nothing may be open any more."""
    of_instruction, strangers = _attributed(journal, effects)
    rows = journal.execute("SELECT instruction_id, state FROM instruction ORDER BY 1").fetchall()
    judged = [row for row in rows if known is None or row[0] not in known.misjudged]
    return [
        *strangers,
        *_counts(judged, of_instruction),
        *_doubled(rows, of_instruction),
        *_bounds(journal),
        *_chain(journal),
        *_open_batches(journal),
        *(unwanted(effects, may_happen=known.may_happen) if known else ()),
        *(_left_open(rows) if ended else ()),
        *(_lost(journal, known=known) if ended and known else ()),
        *(_without_a_case(journal, of_instruction, known=known) if ended and known else ()),
        *(_miscounted(journal) if ended and known else ()),
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
        "SELECT b.body_sha256, b.batch_id, a.position, a.instruction_id FROM attempt a "
        "JOIN batch b ON b.batch_id = a.batch_id"
    )
    carried: dict[tuple[str, str, int], str] = {}
    for sha256, batch_id, position, wanted in found:
        carried[sha256, batch_id, position] = carried[sha256, "", position] = wanted
    told: Counter[str] = Counter()
    strangers = []
    for effect in effects:
        if not effect.body_sha256:
            continue
        wanted = carried.get((effect.body_sha256, effect.batch_id, effect.position))
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
        if state in BELIEVED_DONE and count == 0:
            yield f"I2: instruction {wanted} is {state} and never took effect"
        if state in BELIEVED_NOT_DONE and count > 0:
            yield f"I3: instruction {wanted} is {state} and took effect"


def _doubled(rows: Iterable[Any], effects: Counter[str]) -> Iterable[str]:
    for wanted, _ in rows:
        if effects[wanted] > 1:
            yield f"I1: instruction {wanted} took effect {effects[wanted]} times"


def unwanted(effects: Sequence[Happened], *, may_happen: Mapping[Any, int]) -> list[str]:
    """By the money alone: what carried it, and what the journal thinks of it, says nothing here."""
    allowed = {_place(wish): count for wish, count in may_happen.items()}
    found = []
    for place, count in sorted(Counter(map(_place, filter(_is_ours, effects))).items()):
        told = "a {} of {} by {}".format(*place)
        if place not in allowed:
            found.append(f"I11: {told} took effect and nobody wanted it")
        elif count > allowed[place]:
            found.append(f"I10: {told} took effect {count} times, {allowed[place]} may")
    return found


def _is_ours(effect: Happened) -> bool:
    return bool(effect.body_sha256)


def _place(wish: Wish) -> tuple[str, str, int]:
    return wish.kind, wish.transaction_id, wish.amount


def _lost(journal: sqlite3.Connection, *, known: Known) -> Iterable[str]:
    found = journal.execute("SELECT DISTINCT kind, order_no, amount FROM instruction")
    have = {tuple(row) for row in found}
    for wish in known.may_happen:
        order_no = wish.order_no or wish.transaction_id
        if (wish.kind, order_no, wish.amount) not in have:
            yield f"I12: a {wish.kind} of {order_no} by {wish.amount} was wanted and is not known"


_MISJUDGED = """
SELECT i.instruction_id, i.state, i.kind, (
    SELECT count(*) FROM instruction o WHERE o.transaction_id = i.transaction_id
    AND o.kind = i.kind AND o.instruction_id <> i.instruction_id
    AND o.state IN ('confirmed', 'resolved_applied', 'in_flight', 'in_doubt', 'needs_human'))
FROM instruction i WHERE i.state IN ('resolved_applied', 'resolved_not_applied')
AND NOT EXISTS (SELECT 1 FROM contradiction c WHERE c.instruction_id = i.instruction_id)
"""
_MISCOUNTED = """
SELECT transaction_id, count(*), count(DISTINCT refund_reference_id),
    max(CAST(substr(refund_reference_id, -2) AS INTEGER)), (
        SELECT count(*) FROM instruction o WHERE o.kind = 'refund'
        AND o.transaction_id = i.transaction_id AND o.refund_reference_id = ''
        AND o.state IN ('resolved_applied', 'in_flight', 'in_doubt', 'needs_human'))
FROM instruction i
WHERE kind = 'refund' AND state = 'confirmed' AND refund_reference_id <> ''
AND NOT EXISTS (SELECT 1 FROM contradiction c WHERE c.transaction_id = i.transaction_id)
GROUP BY transaction_id
"""


def _without_a_case(
    journal: sqlite3.Connection, effects: Counter[str], *, known: Known
) -> Iterable[str]:
    """No state shows that a refund did not happen, nor what another of its kind explains."""
    for wanted, state, kind, beside in journal.execute(_MISJUDGED):
        is_wrong = (effects[wanted] > 0) != (state in BELIEVED_DONE)
        shown = {"capture", "cancel"} if state in BELIEVED_DONE else {"capture", "cancel", "refund"}
        if wanted in known.misjudged and is_wrong and kind in shown and not beside:
            yield f"I13: instruction {wanted} is {state}, which is not true, and no case says so"


def _miscounted(journal: sqlite3.Connection) -> Iterable[str]:
    for place, refunds, numbers, last, unnumbered in journal.execute(_MISCOUNTED):
        if numbers < refunds:
            yield f"I15: {refunds} refunds of {place} have {numbers} numbers, and no case says so"
        if last > refunds + unnumbered:
            yield (
                f"I15: refunds of {place} are numbered up to {last}, {refunds + unnumbered} of "
                "them are known, and no case says so"
            )


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
    yield from _tampered(journal)


def _tampered(journal: sqlite3.Connection) -> Iterable[str]:
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
