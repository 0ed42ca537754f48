"""People around the nights: they know the truth, act at any time, and do not always say it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from deliveries import Intention

from recon.config.approvers import Approver
from recon.instructions.instruction import Instruction
from recon.model.errors import UsageError
from recon.model.terms import InstructionState
from recon.steps.approvals import people, verdicts
from recon.steps.money import approve, gate
from recon.steps.money.approve import Narrowing
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import Person, identify
from recon.store.money import instruction_rows

if TYPE_CHECKING:
    from protocol_world import World

PEOPLE = ("ann", "ben")
REASON = "looked it up in the portal"
MAY_STILL_MOVE = (
    *("approved", "in_flight", "in_doubt", "needs_human"),
    *("confirmed", "resolved_applied"),
)
TOO_EARLY_OR_LATE = (
    *("may still be carried out until", "there is nothing to decide", "said so already"),
)
TRUTHFUL, LYING, AT_ODDS = (False, False), (True, True), (False, True)
"""Which of the two says what is not true."""


DECLARED = {
    short: Approver(name=name, limit={"EUR": Decimal(1_000_000)})
    for short, name in zip(PEOPLE, ("Ann Lee", "Ben Orr"), strict=True)
}


def person_of(world: "World", short: str) -> Person:
    """Somebody who is declared and may say anything."""
    with world.environment() as environment:
        return identify(short, code=None, environment=environment)


def decide(
    world: "World",
    *,
    states: Sequence[InstructionState],
    lies: tuple[bool, bool] = TRUTHFUL,
) -> int:
    """Two people end what is in these states, and close every case; returns how many there were."""
    with world.environment() as environment:
        with environment.store.reading() as connection:
            waiting = instruction_rows.find(connection, state=states)
        ids = [item.instruction_id for item in waiting]
        if lies == TRUTHFUL:
            ids += [wanted for wanted in _open_cases(world) if wanted not in ids]
        for wanted in ids:
            _echo(world, wanted, lies=lies)
    return len(waiting)


def _echo(world: "World", wanted: str, *, lies: tuple[bool, bool]) -> None:
    for short, lie in zip(PEOPLE, lies, strict=True):
        applied = (wanted in world.moved()) != lie
        with _unless(*TOO_EARLY_OR_LATE):
            decision = verdicts.resolve(
                wanted,
                verdict="applied" if applied else "not_applied",
                evidence=REASON,
                person=person_of(world, short),
            )
            if decision.decided and lie:
                world.wrong.add(wanted)


def _open_cases(world: "World") -> list[str]:
    found = world.store.looking.execute(
        "SELECT instruction_id FROM contradiction WHERE closed_at IS NULL ORDER BY 1"
    )
    return [row[0] for row in found]


def look(world: "World") -> None:
    """Two people go through what waits: they approve what is still wanted, and reject the rest."""
    with world.environment() as environment:
        with environment.store.reading() as connection:
            items = instruction_rows.find(connection, state=(InstructionState.PLANNED,))
        for item in items:
            wish = intention_of(item)
            if world.merchant.wanted[wish] > _may_have_moved(world, wish):
                _approve(world, item, environment=environment)
            else:
                with _unless("it does not wait for approval"):
                    approve.reject(
                        [item.instruction_id],
                        person=person_of(world, PEOPLE[0]),
                        reason="told twice, wanted once",
                        environment=environment,
                    )


def _approve(world: "World", item: Instruction, *, environment: Environment) -> None:
    only = Narrowing(instruction_ids=(item.instruction_id,))
    world.merchant.purged[intention_of(item)] += 1
    for short in PEOPLE:
        with _unless("nothing waits for approval"):
            digest = approve.waiting(environment, only=only).approvals.digest
            approve.approve(
                digest, person=person_of(world, short), environment=environment, only=only
            )


def _may_have_moved(world: "World", wish: Intention) -> int:
    """How much of a wish is done or on its way, by the truth and by the journal."""
    happened = Counter(
        Intention(one.kind, one.transaction_id, one.amount)
        for one in world.gateway.happened
        if one.body_sha256
    )
    marks = ", ".join("?" * len(MAY_STILL_MOVE))
    (journal,) = world.store.looking.execute(
        "SELECT count(*) FROM instruction WHERE kind = ? AND order_no = ? AND amount = ? "  # noqa: S608
        f"AND state IN ({marks})",
        (wish.kind, wish.transaction_id, wish.amount, *MAY_STILL_MOVE),
    ).fetchone()
    return max(happened[wish], journal)


def withdraw_any(world: "World", *, number: int) -> None:
    with world.environment() as environment:
        with environment.store.reading() as connection:
            items = instruction_rows.find(
                connection, state=(InstructionState.APPROVED, InstructionState.PLANNED)
            )
        if items:
            wanted = items[number % len(items)].instruction_id
            with _unless("only one that was never sent"):
                people.withdraw(wanted, by="ann", reason="not meant", environment=environment)


def stop_sending(world: "World") -> None:
    with world.environment() as environment, _unless("nothing was changed"):
        gate.stop_sending(by="ann", reason="something is wrong", environment=environment)
    world.stopped = True


def allow_sending(world: "World") -> None:
    if not world.stopped:
        return
    with world.environment() as environment:
        for short in PEOPLE:
            person = person_of(world, short)
            gate.allow_sending(person=person, reason=REASON, environment=environment)
    world.stopped, world.gateway.forbidden = False, ""


def intention_of(item: Any) -> Intention:
    """What an instruction is about; in these worlds a payment bears the number of its order."""
    return Intention(item.kind.value, item.order_no, item.amount)


@contextmanager
def _unless(*excuses: str) -> Iterator[None]:
    """A word that came too early or too late; it can be said another day, or not at all."""
    try:
        yield
    except UsageError as error:
        if not any(excuse in str(error) for excuse in excuses):
            raise
