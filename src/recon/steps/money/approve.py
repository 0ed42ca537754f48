"""Approve or reject planned instructions; an approval needs two people and one fixed list.

The first approval names the digest of the list and is valid until the end of the next business day,
unless that person withdraws it. The second must name the same digest: the list is rebuilt from the
journal then, so any change gives another digest. One of the two, in either order, must be an
approver whose limit covers the list. Approving sends nothing; the next night does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from recon.config.approvers import person_key
from recon.desk.endorsement import Kind
from recon.instructions.approval import (
    ApprovalList,
    Decides,
    decides_on,
    list_of,
    problem_since,
    requesters_of,
)
from recon.instructions.instruction import Instruction, terms_of
from recon.model.business_date import Grace
from recon.model.errors import UsageError
from recon.model.terms import InstructionState
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import (
    Person,
    ended,
)
from recon.store import Connection
from recon.store.database.history import append
from recon.store.database.record import ROW
from recon.store.money import instruction_rows
from recon.store.money.endorsement_rows import holds_of, refuse_changed
from recon.store.money.instruction_rows import move
from recon.store.people import decision_rows
from recon.store.people.decision_rows import APPROVE, FirstDecision

VALID = Grace.parse("1bd")
REASON_CHARACTERS_MIN = 3


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Restricts the waiting instructions to a merchant, an account or ids; empty means all."""

    merchant_id: str = ""
    account_id: str = ""
    instruction_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """The list that waits for approval, and the first approver of it if there is one."""

    wanted: ApprovalList
    first_by: str
    valid_until: datetime | None
    related: Mapping[str, tuple[Instruction, ...]] = field(default_factory=dict)
    """Repeat -> the earlier instructions with the same intention, in their current state."""


def waiting(environment: Environment, *, only: Narrowing | None = None) -> Waiting:
    """Return all planned instructions that `only` admits, as one list to approve."""
    with environment.store.reading() as connection:
        wanted = list_of(_planned(connection, only or Narrowing()))
        first = decision_rows.open_decision(connection, APPROVE, subject=wanted.digest)
        related = {
            item.instruction_id: tuple(
                instruction_rows.find(connection, instruction_id=item.repeats.split())
            )
            for item in wanted.repeats
        }
    if first is None or ended(first, environment=environment):
        return Waiting(wanted, "", None, related)
    return Waiting(wanted, first.by.by, first.valid_until, related)


def approve(
    digest: str, *, person: Person, environment: Environment, only: Narrowing | None = None
) -> tuple[ApprovalList, bool]:
    """Record one approval of the list with this digest; return the list, and if it is now approved.

    Raises:
        UsageError: the list has changed, nothing waits, or the person may not approve it.
    """
    person.refuse_unproven()
    with environment.store.writing() as connection:
        now = environment.clock()
        first = decision_rows.open_decision(connection, APPROVE, subject=digest)
        if first is not None and (why := ended(first, environment=environment)):
            decision_rows.void(connection, first, why=why, at=now)
            first = None
        if first is None:
            wanted = _meant(connection, digest, only=only or Narrowing())
            refuse_changed(connection, wanted.items)
            decides = _decides(connection, wanted, environment=environment)
            person.refuse_alone(decides=decides)
            valid_until = environment.settings.rules.business_calendar.due_at(now, grace=VALID)
            decision_rows.save_first(
                connection,
                APPROVE,
                subject=digest,
                instruction_ids=[item.instruction_id for item in wanted.items],
                person=person.decision,
                valid_until=valid_until,
            )
            items = wanted.items
            person.endorse(connection, Kind.APPROVAL, digest, items=items, valid_until=valid_until)
            return wanted, False
        wanted = _of_ids(connection, first.instruction_ids)
        if wanted.digest != digest:
            decision_rows.void(connection, first, why="the list changed", at=now)
        else:
            _second(connection, wanted, first=first, person=person, environment=environment)
            return wanted, True
    msg = (
        f"the list {digest} changed since {first.by.by} approved it, so that word counts no more; "
        "look at the new list with `recon approve`"
    )
    raise UsageError(msg)


def _second(
    connection: Connection,
    wanted: ApprovalList,
    *,
    first: FirstDecision,
    person: Person,
    environment: Environment,
) -> None:
    refuse_changed(connection, wanted.items)
    decides = _decides(connection, wanted, environment=environment)
    person.refuse_second(first.by.by, decides=decides)
    both = f"{first.by.by}, {person.decision.as_text}"
    digest, items, until = wanted.digest, wanted.items, first.valid_until
    person.endorse(connection, Kind.APPROVAL, digest, items=items, valid_until=until)
    values = {"approved_by": both[:255], "approved_at": person.decision.at, "hold": ""}
    moved = [
        (item, move(connection, item, to=InstructionState.APPROVED, values=values))
        for item in wanted.items
    ]
    # The event stores what both people saw (the instruction's terms), not only that they approved.
    events = [replace(event, data={**event.data, ROW: terms_of(item)}) for item, event in moved]
    append(connection, events, at=person.decision.at)
    decision_rows.save_second(connection, first, person=person.decision)


def _decides(connection: Connection, wanted: ApprovalList, *, environment: Environment) -> Decides:
    holds = holds_of(connection, [item.instruction_id for item in wanted.items])
    key = partial(person_key, declared=environment.settings.approvers)
    return decides_on(wanted, asked_by=requesters_of(holds), key=key)


def take_back(connection: Connection, digest: str, *, person: Person) -> str:
    """Withdraw one's own first approval of a list; return what was withdrawn, "" for nothing."""
    first = decision_rows.open_decision(connection, APPROVE, subject=digest)
    if first is None or not person.is_same(first.by.by):
        return ""
    why = f"{person.decision.as_text} took it back"
    decision_rows.void(connection, first, why=why, at=person.decision.at)
    items = _of_ids(connection, first.instruction_ids).items
    person.endorse_taken_back(connection, Kind.APPROVAL, digest, items=items)
    return f"the yes to list {digest}"


def reject(
    instruction_ids: Sequence[str], *, person: Person, reason: str, environment: Environment
) -> tuple[int, tuple[str, ...]]:
    """Withdraw planned instructions; one person is enough, since no money moves.

    Returns:
        The number rejected, and the names of the people whose first approval is void as a result.

    Raises:
        UsageError: there is no reason or no such instruction, or one no longer waits for approval.
    """
    if len(reason.strip()) < REASON_CHARACTERS_MIN:
        msg = "say why (--reason); it is kept in the history"
        raise UsageError(msg)
    sentence = f"rejected by {person.decision.as_text}: {reason.strip()}"[:400]
    with environment.store.writing() as connection:
        items = []
        for wanted in instruction_ids:
            item = instruction_rows.of_id(connection, wanted)
            if item is None or item.state is not InstructionState.PLANNED:
                is_now = f"is {item.state}" if item else "does not exist"
                msg = (
                    f"instruction {wanted} {is_now}: it does not wait for approval; nothing was "
                    "changed"
                )
                raise UsageError(msg)
            items.append(item)
        person.endorse(connection, Kind.REJECTION, list_of(items).digest, items=items)
        values = {"hold": "", "message": sentence}
        events = [
            move(connection, item, to=InstructionState.WITHDRAWN, values=values) for item in items
        ]
        append(connection, events, at=person.decision.at)
        rejected = {*instruction_ids}
        overruled = [
            first
            for first in decision_rows.open_approvals(connection)
            if not rejected.isdisjoint(first.instruction_ids)
        ]
        for first in overruled:
            why = f"{person.decision.as_text} rejected some of it"
            decision_rows.void(connection, first, why=why, at=person.decision.at)
    stated_yes = {first.by.by for first in overruled if not person.is_same(first.by.by)}
    return len(items), tuple(sorted(stated_yes))


def lapse(environment: Environment) -> int:
    """Reset approvals by people that expired or became invalid to PLANNED; return how many."""
    with environment.store.writing() as connection:
        now = environment.clock()
        approved = instruction_rows.find(connection, state=(InstructionState.APPROVED,))
        ended = _ended(connection, approved, at=now, environment=environment)
        events = [
            move(
                connection,
                item,
                to=InstructionState.PLANNED,
                values={
                    "hold": ended[item.instruction_id],
                    "approved_by": "",
                    "approved_at": None,
                },
            )
            for item in approved
            if item.instruction_id in ended
        ]
        if events:
            append(connection, events, at=now)
    return len(events)


def _ended(
    connection: Connection,
    approved: Sequence[Instruction],
    *,
    at: datetime,
    environment: Environment,
) -> dict[str, str]:
    """Map instruction id -> why no approval by people is valid now; ignores approvals by rule."""
    items = {item.instruction_id: item for item in approved}
    current: set[str] = set()
    ended: dict[str, str] = {}
    for each in decision_rows.complete_approvals(connection, instruction_ids=items):
        problem = problem_since(
            each.people,
            wanted=list_of(items[own] for own in each.instruction_ids if own in items),
            declared=environment.settings.approvers,
        )
        if each.valid_until < at:
            why = "its approval ran out before it was sent; approve it again"
        elif problem:
            why = f"its approval counts no more: {problem}; approve it again"
        else:
            current.update(each.instruction_ids)
            continue
        ended |= dict.fromkeys(each.instruction_ids, why)
    return {wanted: why for wanted, why in ended.items() if wanted not in current}


def _planned(connection: Connection, only: Narrowing) -> list[Instruction]:
    return [
        item
        for item in instruction_rows.find(connection, state=(InstructionState.PLANNED,))
        if only.merchant_id in {"", item.merchant_id}
        and only.account_id in {"", item.account_id}
        and (not only.instruction_ids or item.instruction_id in only.instruction_ids)
    ]


def _meant(connection: Connection, digest: str, *, only: Narrowing) -> ApprovalList:
    wanted = list_of(_planned(connection, only))
    if not wanted.items:
        msg = "nothing waits for approval there"
        raise UsageError(msg)
    if wanted.digest != digest:
        msg = (
            f"the list is {wanted.digest} now, not {digest}: something changed since you looked, "
            "or other options chose it; look again with `recon approve`"
        )
        raise UsageError(msg)
    return wanted


def _of_ids(connection: Connection, instruction_ids: Sequence[str]) -> ApprovalList:
    found = instruction_rows.find_by(
        connection, None, column="instruction_id", values=instruction_ids
    )
    return list_of(item for (item,) in found.values())
