"""Signed approvals (endorsements) in the database, and checks against what the history attests.

The approvals service signs endorsements; any process with its public key can verify them. Each is
stored as a row and as a link of the history, so that a deleted row, even the newest, is noticed.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, select

from recon.desk.endorsement import (
    Endorsement,
    Kind,
    Signed,
    is_filled_in,
    row_problem,
    state_of_decision,
)
from recon.desk.held_keys import HeldKeys
from recon.instructions.eligibility import Eligible
from recon.instructions.instruction import ATTESTED, Instruction, Terms, terms_of
from recon.instructions.planning import RULE_APPROVER
from recon.model.errors import EndorsementError, GateClosedError
from recon.model.terms import InstructionState
from recon.store.database.history import Event, append, first_hash, links_of
from recon.store.database.record import INSTRUCTION, PROBLEMS_MAX, ROW, difference, folded, named
from recon.store.money.instruction_rows import find
from recon.store.people.decision_rows import ENTITY, NO_KEY, digest_of, endorsement_of, not_agreed
from recon.store.schema import endorsement, history, instruction, sending_switch
from recon.store.schema.columns import among, id_of

UNSENT = (InstructionState.PLANNED, InstructionState.APPROVED)
MAY_LEAVE = instruction.c.state.in_(UNSENT)

_OVER = frozenset(InstructionState) - {
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.IN_FLIGHT,
}
"""States from which no transition leads back to a sendable one (see `instruction.FOLLOWS`)."""


def events_of(
    connection: Connection, instruction_ids: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """Return the data of the history events of some instructions by id, oldest first."""
    by_id: dict[str, list[Mapping[str, Any]]] = {}
    for link in links_of(connection, instruction_ids, entity=INSTRUCTION.entity):
        by_id.setdefault(link.entity_id, []).append(link.data)
    return by_id


def holds_of(connection: Connection, instruction_ids: Sequence[str]) -> list[str]:
    """Return every hold reason that some instructions ever had; the row has only the newest."""
    events = events_of(connection, instruction_ids)
    return [
        str(event.get("hold", "")) for events_of_item in events.values() for event in events_of_item
    ]


def refuse_changed(connection: Connection, items: Iterable[Instruction]) -> None:
    """Refuse instructions whose row differs from what the history attests.

    Raises:
        GateClosedError: An instruction differs (which and how); the transaction must end.
    """
    listed = list(items)
    events = events_of(connection, [item.instruction_id for item in listed])
    for item in listed:
        _refuse(item, attested=attested_by(events.get(item.instruction_id, ())))


def refuse_changed_rows(connection: Connection, rows: Sequence[Eligible]) -> None:
    """Check rows against the history right before their claim, both as sent and as stored now.

    Raises:
        GateClosedError: An instruction differs (which and how); nothing may be claimed.
    """
    ids = [row.instruction.instruction_id for row in rows]
    events = events_of(connection, ids)
    for row in rows:
        attested = attested_by(events.get(row.instruction.instruction_id, ()))
        _refuse(meant(row, attested=attested), attested=attested)
    refuse_changed(connection, find(connection, instruction_id=ids))


def meant(row: Eligible, *, attested: Terms) -> Instruction:
    """Return the instruction of an eligible row as it would be sent, for comparison.

    A payment that an earlier claim of this night filled in is left out. If the history attests a
    transaction id, the one that would be sent is used.
    """
    named = str(attested.get("transaction_id", ""))
    return replace(
        row.instruction,
        transaction_id=row.payment.transaction_id if named else "",
        payment_amount=int(attested.get("payment_amount", 0)),
    )


def _refuse(item: Instruction, *, attested: Terms) -> None:
    if problem := difference(INSTRUCTION, terms_of(item), then=attested):
        what = named(INSTRUCTION, item.instruction_id, problem=problem)
        msg = f"the history does not hold: {what}; nothing of this was sent or approved"
        raise GateClosedError(msg)


def attested_by(events: Iterable[Mapping[str, Any]]) -> Terms:
    """Return the terms that the events of one instruction attest; later events take precedence."""
    cells = folded(event.get(ROW, {}) for event in events)
    return {name: cell for name, cell in cells.items() if name in ATTESTED}


def back_again(connection: Connection) -> Iterator[str]:
    """Yield a problem for each sendable instruction that the history shows as already ended."""
    was_over = (
        select(history.c.entity_id, history.c.event, instruction.c.state)
        .join(instruction, instruction.c.instruction_id == history.c.entity_id)
        .where(
            history.c.entity == INSTRUCTION.entity,
            history.c.event.in_(_OVER),
            MAY_LEAVE,
        )
        .order_by(history.c.sequence)
        .limit(PROBLEMS_MAX)
    )
    for row in connection.execute(was_over):
        yield (
            f"instruction {row.entity_id} is {row.state}, but was {row.event.replace('_', ' ')} "
            "before, from which nothing leads back: it was changed past the journal"
        )


BY_HAND = "by hand: "
"""Prefix of the approver for a movement that one person makes by hand in the sandbox."""
# A subquery per row uses the index; a list of all planned ids would be read for every batch.
_WAS_PLANNED = (
    select(history.c.sequence)
    .where(
        history.c.entity_id == instruction.c.instruction_id,
        history.c.entity == "instruction",
        history.c.event == InstructionState.PLANNED,
    )
    .exists()
)


LATEST = 2**63 - 1
"""An upper bound of all endorsement numbers."""

_IN_HISTORY = ("reason", "role", "verdict", "evidence", "of")
"""What of a statement the history repeats, for whoever reads it."""
ITEMS_AT_ONCE = 500
"""Number of instructions whose events are loaded into memory at once."""
DOCUMENTS_AT_ONCE = 20
"""Number of endorsement documents that are loaded and verified at once."""
_DOCUMENTS = select(endorsement).order_by(endorsement.c.sequence)


class Endorsed:
    """Reads stored endorsements and verifies their signatures, each document once."""

    def __init__(self, keys: HeldKeys) -> None:
        """Start with nothing loaded; without a public key no endorsement ever counts."""
        self._keys = keys
        self._opened: dict[int, Endorsement] = {}
        self._digests: dict[int, str] = {}
        self._unopened: dict[int, str] = {}
        self._of_item: dict[str, list[Endorsement]] = {}
        self._links: list[Mapping[str, Any]] = []
        self._newest_link = 0

    def statements(self, connection: Connection) -> list[Endorsement]:
        """Return all endorsements with a valid signature, oldest first."""
        self._look(connection)
        return list(self._opened.values())

    def about(self, connection: Connection, instruction_id: str) -> Sequence[Endorsement]:
        """Return the valid endorsements about one instruction."""
        self._look(connection)
        return self._of_item.get(instruction_id, ())

    def approvals(
        self, connection: Connection, instruction_ids: Iterable[str]
    ) -> Iterator[tuple[Endorsement, Endorsement]]:
        """Yield each two people's approval of a list with some of these instructions, in order."""
        about = {
            each.sequence: each for it in instruction_ids for each in self.about(connection, it)
        }
        lists = (each.subject for each in about.values() if each.kind is Kind.APPROVAL)
        for subject in dict.fromkeys(lists):
            yield from state_of_decision(
                about.values(),
                Kind.APPROVAL,
                subject=subject,
                must_be_proven=self._keys.must_be_proven,
            ).pairs

    def signed(self, connection: Connection, instruction_ids: Sequence[str]) -> list[Signed]:
        """Return the signed documents about some instructions, to be passed on to the signer."""
        statements = {
            statement.sequence for it in instruction_ids for statement in self.about(connection, it)
        }
        chosen = among(connection, endorsement.c.sequence, statements)
        rows = connection.execute(_DOCUMENTS.where(chosen))
        return [Signed(row.document, row.signature, row.key_id) for row in rows]

    def broken(self, connection: Connection) -> Iterator[str]:
        """Yield a problem for each row that is not a valid endorsement, and for missing rows."""
        self._look(connection)
        for sequence, why in self._unopened.items():
            yield f"endorsement {sequence}: {why}"
        for missing in self._missing(connection, there={*self._opened, *self._unopened}, first=1):
            yield f"endorsement {missing} is missing, or is not what the history has"

    def taken_away(self, connection: Connection) -> str:
        """Return why a rejection may be missing among the endorsements; "" when none is missing.

        Rows before the first valid one were signed with another key, and nothing relies on them.
        """
        self._look(connection)
        first = min(self._opened, default=LATEST)
        missing = next(self._missing(connection, there=self._opened, first=first), 0)
        if not missing:
            return ""
        return (
            f"endorsement {missing} is gone or not the desk's: a rejection may be missing there, "
            "so no decision of people counts (`recon verify`)"
        )

    def _missing(
        self, connection: Connection, *, there: Container[int], first: int
    ) -> Iterator[int]:
        """Yield numbers from `first` on without a row, then those that differ from the history.

        Numbers are assigned without gaps, so a gap shows a deletion even if the link was deleted
        too. The newest number is checked by its link.
        """
        for link in links_of(connection, entity=ENTITY, after=self._newest_link):
            self._links.append(link.data)
            self._newest_link = link.sequence
        newest = max((*self._opened, *self._unopened), default=0)
        yield from (number for number in range(first, newest + 1) if number not in there)
        ours = (stated for stated in self._links if stated["key"] == self._keys.name)
        yield from (
            int(stated["number"])
            for stated in ours
            if self._digests.get(stated["number"]) != stated["sha256"]
        )

    def _look(self, connection: Connection) -> None:
        if self._keys.public is None:
            return
        known = connection.execute(select(endorsement.c.sequence)).scalars()
        new = [each for each in known if each not in self._opened and each not in self._unopened]
        if not new:  # as at nearly every instruction of a batch
            return
        here = first_hash(connection)
        query = _DOCUMENTS.where(among(connection, endorsement.c.sequence, new))
        with connection.execute(query.execution_options(yield_per=DOCUMENTS_AT_ONCE)) as rows:
            for row in rows:
                try:
                    statement = endorsement_of(row, desk=self._keys, here=here)
                except EndorsementError as error:
                    self._unopened[row.sequence] = str(error)
                    continue
                self._opened[row.sequence] = statement
                self._digests[row.sequence] = digest_of(row.signature)
                for item in statement.items:
                    self._of_item.setdefault(item, []).append(statement)

    def refuse_rows(self, connection: Connection, instruction_ids: Sequence[str]) -> None:
        """Check the endorsements of some instructions right before their claim.

        Raises:
            GateClosedError: An instruction is not covered by the endorsement of two people.
        """
        problems = self.row_problems(connection, only=instruction_ids)
        for problem in filter(None, chain(problems, [self.taken_away(connection)])):
            msg = f"{problem}; nothing of this was sent"
            raise GateClosedError(msg)

    def row_problems(
        self,
        connection: Connection,
        *,
        only: Sequence[str] | None = None,
        at: datetime | None = None,
        states: Iterable[str] = (InstructionState.APPROVED,),
    ) -> Iterator[str]:
        """Yield instructions stored as approved by people without a valid endorsement.

        Args:
            connection: Of the database.
            only: Ids of the instructions to check; None checks all.
            at: The instant at which the approvals must still be valid; None skips that check.
            states: Check only instructions in these states.
        """
        yield from self._by_rule(connection, only=only)
        approved = self._approved(connection, only=only, states=states)
        for start in range(0, len(approved), ITEMS_AT_ONCE):
            ids = approved[start : start + ITEMS_AT_ONCE]
            events = events_of(connection, ids)
            for instruction_id in ids:
                item_events = events.get(instruction_id, [])
                if problem := self._row_problem(
                    connection, instruction_id, item_events=item_events, at=at
                ):
                    yield (
                        f"instruction {instruction_id} counts as approved, but {problem}: no "
                        "signature covers it (`recon approve`)"
                    )

    def passed_on(
        self, connection: Connection, instruction_ids: Sequence[str]
    ) -> tuple[dict[str, dict[str, str | int]], list[Signed]]:
        """Return the terms people approved by instruction id, and the signed endorsements."""
        events = events_of(connection, instruction_ids)
        approved = {
            instruction_id: dict(yeses[-1][ROW])
            for instruction_id, item_events in events.items()
            if (yeses := _yeses(item_events))
        }
        return approved, self.signed(connection, instruction_ids)

    def _row_problem(
        self,
        connection: Connection,
        instruction_id: str,
        *,
        item_events: Sequence[Mapping[str, Any]],
        at: datetime | None,
    ) -> str:
        if self._keys.public is None:
            return NO_KEY
        # Row against history is compared elsewhere; this checks the terms that people approved.
        yeses = _yeses(item_events)
        if not yeses:
            return "the history has no approval of it"
        terms = yeses[-1][ROW]
        if not is_filled_in(terms, now=attested_by(item_events)):
            return "it is not what people approved any more"
        return row_problem(
            instruction_id,
            terms=terms,
            endorsements=self.about(connection, instruction_id),
            must_be_proven=self._keys.must_be_proven,
            at=at,
        )

    def _approved(
        self, connection: Connection, *, only: Sequence[str] | None, states: Iterable[str]
    ) -> list[str]:
        by_people = instruction.c.approved_by != RULE_APPROVER
        query = (
            select(instruction.c.instruction_id, instruction.c.approved_by)
            .where(by_people, instruction.c.state.in_(list(states)), *_among(only))
            .order_by(instruction.c.instruction_id)
        )
        return [
            row.instruction_id
            for row in connection.execute(query)
            # Movements by hand without an endorsement are accepted only in the sandbox.
            if self._keys.must_be_proven or not row.approved_by.startswith(BY_HAND)
        ]

    @staticmethod
    def _by_rule(connection: Connection, *, only: Sequence[str] | None) -> Iterator[str]:
        by_rule = instruction.c.approved_by == RULE_APPROVER
        query = (
            select(instruction.c.instruction_id)
            .where(by_rule, _WAS_PLANNED, *_among(only))
            .order_by(instruction.c.instruction_id)
            .limit(PROBLEMS_MAX)
        )
        for instruction_id in connection.execute(query).scalars():
            yield (
                f"instruction {instruction_id} counts as approved by a rule, but it waited for "
                "people: no rule lets it go"
            )


def _among(only: Sequence[str] | None) -> Sequence[ColumnElement[bool]]:
    return () if only is None else (instruction.c.instruction_id.in_(list(only)),)


def _yeses(item_events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the events of one instruction that record an approval and the approved terms."""
    return [
        item_event
        for item_event in item_events
        if item_event.get("approved_by") and ROW in item_event
    ]


def start_problem(connection: Connection, desk: HeldKeys) -> str:
    """Return why sending may not resume although the switch allows it; "" when it may."""
    newest = select(sending_switch).order_by(sending_switch.c.turn.desc()).limit(2)
    turns = connection.execute(newest).all()
    if not turns or turns[0].stopped or turns[0].turn == 1:
        return ""
    if len(turns) == 1:
        return "sending was allowed again, but the stop before it is gone from its table"
    stop = str(turns[1].turn)
    why = not_agreed(connection, Kind.ALLOW_SENDING, subject=stop, desk=desk)
    return f"sending was allowed again, but {why} (`recon stop-sending`)" if why else ""


def save(connection: Connection, signed: Signed, *, statement: Endorsement, at: datetime) -> None:
    """Store an endorsement and its link of the history; only the signed document is evidence."""
    connection.execute(
        insert(endorsement).values(
            sequence=statement.sequence,
            kind=statement.kind,
            subject=statement.subject,
            person=statement.person,
            at=at,
            valid_until=datetime.fromisoformat(statement.valid_until)
            if statement.valid_until
            else None,
            document=signed.document,
            signature=signed.signature,
            key_id=signed.key,
        )
    )
    details = {
        "number": statement.sequence,
        "key": signed.key,
        "sha256": digest_of(signed.signature),
        "by": statement.as_text,
        **{name: statement.says[name] for name in _IN_HISTORY if name in statement.says},
    }
    event = Event(ENTITY, id_of(statement.subject), statement.kind.value, details)
    append(connection, [event], at=at)


def named_database(connection: Connection, *, chance: str, at: datetime) -> str:
    """Return the hash that identifies this database; an empty chain starts with `chance`."""
    if not first_hash(connection):
        append(connection, [Event("desk", "desk", "opened", {"chance": chance})], at=at)
    return first_hash(connection)


def next_sequence(connection: Connection) -> int:
    """Return the number for the next endorsement, within the caller's write transaction.

    A number is never reused, even if the row of its endorsement was deleted.
    """
    newest = connection.scalar(select(func.max(endorsement.c.sequence))) or 0
    links = links_of(connection, entity=ENTITY)
    return max(newest, int(links[-1].data["number"]) if links else 0) + 1


def signature_of(connection: Connection, sequence: int) -> str:
    """Return the signature of one endorsement; "" if there is none with that number."""
    signature = connection.execute(
        select(endorsement.c.signature).where(endorsement.c.sequence == sequence)
    ).scalar_one_or_none()
    return signature or ""
