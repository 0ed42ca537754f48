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
from itertools import chain

from recon.config.approvers import person_key
from recon.desk.endorsement import Endorsement, Kind, terms_digest
from recon.instructions.approval import (
    ApprovalList,
    Decides,
    decides_on,
    list_of,
    problem_since,
    requesters_of,
)
from recon.instructions.instruction import Instruction, terms_of
from recon.instructions.planning import RULE_APPROVER
from recon.model.errors import UsageError
from recon.model.terms import InstructionState
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import Person, decide, every_waiting, waiting_on
from recon.store import Connection
from recon.store.database.history import append
from recon.store.database.record import ROW
from recon.store.money import instruction_rows
from recon.store.money.endorsement_rows import holds_of, refuse_changed
from recon.store.money.instruction_rows import move
from recon.store.people.decision_rows import endorsed_since, states_of

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

    approvals: ApprovalList
    first_by: str
    valid_until: datetime | None
    related: Mapping[str, tuple[Instruction, ...]] = field(default_factory=dict)
    """Repeat -> the earlier instructions with the same intention, in their current state."""


def waiting(environment: Environment, *, only: Narrowing | None = None) -> Waiting:
    """Return all planned instructions that `only` admits, as one list to approve."""
    with environment.store.reading() as connection:
        approvals = list_of(_planned(connection, only or Narrowing()))
        first = _first(connection, approvals.digest, environment=environment)
        related = {
            item.instruction_id: tuple(
                instruction_rows.find(connection, instruction_id=item.repeats.split())
            )
            for item in approvals.repeats
        }
    if first is None:
        return Waiting(approvals, "", None, related)
    return Waiting(approvals, first.name, first.ends_at, related)


def approve(
    digest: str, *, person: Person, environment: Environment, only: Narrowing | None = None
) -> tuple[ApprovalList, datetime | None]:
    """Record one approval of the list with this digest.

    Returns the list, and until when it may be sent; None while it waits for a second person.

    Raises:
        UsageError: the list has changed, nothing waits, or the person may not approve it.
    """
    with environment.store.writing() as connection:
        if first := _first(connection, digest, environment=environment):
            only = Narrowing(instruction_ids=tuple(first.items))
        approvals = _meant(connection, digest, only=only or Narrowing())
        refuse_changed(connection, approvals.items)
        both = decide(
            connection,
            Kind.APPROVAL,
            digest,
            person=person,
            items=_digests_of(approvals),
            decides=_decides(connection, approvals, environment=environment),
        )
        if both is not None:
            _approved(connection, approvals, both=both)
    return approvals, None if both is None else min(each.ends_at for each in both)


def _first(connection: Connection, digest: str, *, environment: Environment) -> Endorsement | None:
    first = waiting_on(connection, Kind.APPROVAL, subject=digest, environment=environment)
    return first[0] if first else None


def _approved(
    connection: Connection, approvals: ApprovalList, *, both: tuple[Endorsement, Endorsement]
) -> None:
    first, second = both
    at = second.made_at
    by = f"{first.name}, {second.as_text}"[:255]
    values = {"approved_by": by, "approved_at": at, "hold": ""}
    moved = [
        (item, move(connection, item, to=InstructionState.APPROVED, values=values))
        for item in approvals.items
    ]
    # The event stores what both people saw (the instruction's terms), not only that they approved.
    events = [replace(event, data={**event.data, ROW: terms_of(item)}) for item, event in moved]
    append(connection, events, at=at)


def _digests_of(approvals: ApprovalList) -> dict[str, str]:
    return {item.instruction_id: terms_digest(terms_of(item)) for item in approvals.items}


def _decides(
    connection: Connection, approvals: ApprovalList, *, environment: Environment
) -> Decides:
    holds = holds_of(connection, [item.instruction_id for item in approvals.items])
    key = partial(person_key, declared=environment.settings.approvers)
    return decides_on(approvals, requesters=requesters_of(holds), key=key)


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
    sentence = f"rejected by {person.as_text}: {reason.strip()}"[:400]
    with environment.store.writing() as connection:
        items = []
        for own in instruction_ids:
            item = instruction_rows.of_id(connection, own)
            if item is None or item.state is not InstructionState.PLANNED:
                is_now = f"is {item.state}" if item else "does not exist"
                msg = (
                    f"instruction {own} {is_now}: it does not wait for approval; nothing was "
                    "changed"
                )
                raise UsageError(msg)
            items.append(item)
        rejected = {*instruction_ids}
        overruled = [
            first
            for first in every_waiting(connection, Kind.APPROVAL, environment=environment)
            if not rejected.isdisjoint(first.items)
        ]
        approvals = list_of(items)
        person.endorse(connection, Kind.REJECTION, approvals.digest, items=_digests_of(approvals))
        values = {"hold": "", "message": sentence}
        events = [
            move(connection, item, to=InstructionState.WITHDRAWN, values=values) for item in items
        ]
        append(connection, events, at=person.at)
    stated_yes = {first.name for first in overruled if not person.is_same(first.name)}
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
    by_people = (item for item in approved if item.approved_by != RULE_APPROVER)
    oldest = min((item.approved_at for item in by_people if item.approved_at), default=at)
    current: set[str] = set()
    ended: dict[str, str] = {}
    # As stored, whatever key signed it: to lapse only takes away, and words of an old key must.
    known = states_of(connection, Kind.APPROVAL, endorsed_since(Kind.APPROVAL, oldest)).values()
    for first, second in chain.from_iterable(each.pairs for each in known):
        if first.items.keys().isdisjoint(items):
            continue
        problem = problem_since(
            (first.name, second.name),
            approvals=list_of(items[own] for own in first.items if own in items),
            declared=environment.settings.approvers,
        )
        if first.ends_at < at:
            why = "its approval ran out before it was sent; approve it again"
        elif problem:
            why = f"its approval counts no more: {problem}; approve it again"
        else:
            current.update(first.items)
            continue
        ended |= dict.fromkeys(first.items, why)
    return {approvals: why for approvals, why in ended.items() if approvals not in current}


def _planned(connection: Connection, only: Narrowing) -> list[Instruction]:
    ids = frozenset(only.instruction_ids)
    return [
        item
        for item in instruction_rows.find(connection, state=(InstructionState.PLANNED,))
        if only.merchant_id in {"", item.merchant_id}
        and only.account_id in {"", item.account_id}
        and (not ids or item.instruction_id in ids)
    ]


def _meant(connection: Connection, digest: str, *, only: Narrowing) -> ApprovalList:
    approvals = list_of(_planned(connection, only))
    if not approvals.items:
        msg = "nothing waits for approval there"
        raise UsageError(msg)
    if approvals.digest != digest:
        msg = (
            f"the list is {approvals.digest} now, not {digest}: something changed since you "
            "looked, or other options chose it; look again with `recon approve`"
        )
        raise UsageError(msg)
    return approvals
