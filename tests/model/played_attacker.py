"""Somebody with the night's login, after the quiet nights: no money moves that people did not let.

Each attack lets people do honest things first, then writes what a login can write, and makes a row
or a switch say that money may go. What it breaks it never mends: it ends a schedule.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import played_people as people
from deliveries import Guise
from sqlalchemy import Connection, delete, update

from recon.desk.endorsement import Endorsement, Kind, endorse, instant, terms_digest
from recon.desk.held_keys import SANDBOX_KEYS
from recon.instructions.instruction import Instruction, terms_of
from recon.model.errors import ReconError
from recon.model.terms import InstructionKind, InstructionState
from recon.steps.money import approve, gate
from recon.steps.runtime.environment import Environment
from recon.store.database.history import Event, append
from recon.store.database.record import ROW
from recon.store.money import endorsement_rows, instruction_rows, sending_rows
from recon.store.schema import endorsement, instruction

if TYPE_CHECKING:
    from protocol_world import World

TARGET, OTHER, BESIDE = "X-0", "X-1", "X-2"
AMOUNT = 150
BOTH = "Ann Lee, Ben Orr"
ELSEWHERE = "22" * 32
"""The name of another database."""
WEEK_AND_MORE = timedelta(days=9)
NIGHTS = 2


def attacked(world: "World", name: str) -> list[str]:
    """What moved under an attack that nobody let go."""
    wanted = _waiting(world)
    if not wanted:
        return []
    ATTACKS[name](world, wanted)
    for _ in range(NIGHTS):
        _night(world)
    moved = sum(one.kind == "refund" and one.amount == AMOUNT for one in world.gateway.happened)
    beyond = moved - (name in LET_GO_ONCE)
    return [f"attack {name!r}: {beyond} movements that nobody let go"] if beyond > 0 else []


def _waiting(world: "World") -> str:
    """The id of a small refund that waits for people."""
    world.approve_by_rule(is_allowed=False)
    guise = Guise(transaction=True)
    world.instruct(InstructionKind.REFUND, TARGET, amount=AMOUNT, guise=guise)
    _night(world)
    with _looking(world) as (_, connection):
        planned = instruction_rows.find(connection, state=(InstructionState.PLANNED,))
    return next((item.instruction_id for item in planned if item.order_no == TARGET), "")


def _night(world: "World") -> None:
    """A night an hour later; one that ends at a closed gate is what the attack is to meet."""
    world.pass_time(timedelta(hours=1))
    with suppress(ReconError):
        world.night()


@contextmanager
def _looking(world: "World") -> Iterator[tuple[Environment, Connection]]:
    with world.environment() as environment, environment.store.reading() as connection:
        yield environment, connection


@contextmanager
def _writing(world: "World") -> Iterator[tuple[Environment, Connection]]:
    """Past all of the product's steps, by the login that its nights have."""
    with world.environment() as environment, environment.store.writing() as connection:
        yield environment, connection


def _item(connection: Connection, wanted: str) -> Instruction:
    (item,) = instruction_rows.find(connection, instruction_id=[wanted])
    return item


def _echo_yes(world: "World", wanted: str, *names: str) -> None:
    """Honest words of people; one that is refused is none."""
    only = approve.Narrowing(instruction_ids=(wanted,))
    for name in names:
        with world.environment() as environment, suppress(ReconError):
            digest = approve.waiting(environment, only=only).approvals.digest
            person = people.person_of(world, name)
            approve.approve(digest, person=person, environment=environment, only=only)


def _call_approved(world: "World", wanted: str, **changed: str) -> None:
    """State, names and history say that two people approved it, with these terms."""
    with _writing(world) as (environment, connection):
        at, item = environment.clock(), _item(connection, wanted)
        item = replace(item, **changed)  # type: ignore[arg-type] # texts of an instruction
        values = {"state": "approved", "approved_by": BOTH, "approved_at": at, "hold": ""}
        connection.execute(
            update(instruction)
            .where(instruction.c.instruction_id == wanted)
            .values(**values, **changed)
        )
        data = {
            "from": "planned",
            "approved_by": BOTH,
            "approved_at": str(at),
            ROW: terms_of(item),
        }
        append(connection, [Event("instruction", item.instruction_id, "approved", data)], at=at)


def _use_again(world: "World", wanted: str) -> None:
    """What two people approved was sent; its row says once more that it may go.

    Another refund of that payment explains what the gateway shows of it.
    """
    world.approve_by_rule(is_allowed=True)
    world.instruct(InstructionKind.REFUND, TARGET, amount=AMOUNT + 1)
    _night(world)
    _echo_yes(world, wanted, *people.PEOPLE)
    _night(world)
    _call_approved(world, wanted)


def _under_two_names(world: "World", wanted: str) -> None:
    """Ann said yes, then got another short name and says it again."""
    _echo_yes(world, wanted, "ann")
    ann = people.DECLARED["ann"]
    twice = {"ann": ann, "annie": ann.model_copy(update={"name": ann.name.upper()})}
    world.settings = world.settings.model_copy(update={"approvers": twice})
    _echo_yes(world, wanted, "annie")
    _call_approved(world, wanted)


def _take_no_away(world: "World", wanted: str, *, is_newest: bool) -> None:
    """Two people said yes, one of them no before a night came; the no is taken away."""
    _echo_yes(world, wanted, *people.PEOPLE)
    with _writing(world) as (environment, connection):
        connection.execute(
            update(instruction)
            .where(instruction.c.instruction_id == wanted)
            .values(state="planned")
        )
        event = Event("instruction", wanted, "planned", {"from": "approved"})
        append(connection, [event], at=environment.clock())
    with world.environment() as environment:
        person = people.person_of(world, "ann")
        ids = [wanted]
        approve.reject(ids, person=person, reason="not meant", environment=environment)
    with _looking(world) as (_, connection):
        no = endorsement_rows.next_sequence(connection) - 1
    if not is_newest:
        people.stop_sending(world)
        people.allow_sending(world)
    with _writing(world) as (_, connection):
        connection.execute(delete(endorsement).where(endorsement.c.sequence == no))
    _call_approved(world, wanted)


def _move_another(world: "World", wanted: str) -> None:
    """The words are about one payment, the row and its newest event about another."""
    _echo_yes(world, wanted, *people.PEOPLE)
    _call_approved(world, wanted, transaction_id=OTHER, order_no=OTHER)


def _bring_words(world: "World", wanted: str) -> None:
    """Two words about it from another database that the same desk serves, and their links."""
    with _writing(world) as (environment, connection):
        item, at = _item(connection, wanted), environment.clock()
        key = SANDBOX_KEYS.private
        assert key is not None
        for short, declared in people.DECLARED.items():
            sequence = endorsement_rows.next_sequence(connection)
            word = Endorsement(
                kind=Kind.APPROVAL,
                subject="a list there",
                items={item.instruction_id: terms_digest(terms_of(item))},
                says={},
                person=short,
                name=declared.name,
                role=declared.role,
                proven=False,
                at=instant(at),
                valid_until=instant(at + WEEK_AND_MORE),
                sequence=sequence,
                nonce=f"{sequence:032x}",
                database=ELSEWHERE,
            )
            endorsement_rows.save(connection, endorse(word, key=key), statement=word, at=at)
    _call_approved(world, wanted)


def _turn_on(world: "World") -> None:
    with _writing(world) as (environment, connection):
        at = environment.clock()
        if sending_rows.stopped(connection):
            sending_rows.turn_switch(connection, stop=False, by=BOTH, reason=people.REASON, at=at)


def _allow(world: "World", short: str) -> None:
    with world.environment() as environment, suppress(ReconError):
        person = people.person_of(world, short)
        gate.allow_sending(person=person, reason=people.REASON, environment=environment)


def _join_words(world: "World", wanted: str) -> None:
    """People stop all; one says go on, another so long after that it is a first word again."""
    people.stop_sending(world)
    _allow(world, "ann")
    world.pass_time(WEEK_AND_MORE)
    _allow(world, "ben")
    # What two people approve meanwhile waits for the end of the stop.
    _echo_yes(world, wanted, *people.PEOPLE)
    _turn_on(world)


ATTACKS: Mapping[str, Callable[["World", str], None]] = {
    "a sent yes is used again": _use_again,
    "one person under two names": _under_two_names,
    "the newest no is taken away": partial(_take_no_away, is_newest=True),
    "a no among others is taken away": partial(_take_no_away, is_newest=False),
    "a yes moves another payment": _move_another,
    "words of another database": _bring_words,
    "a word that ran out is half": _join_words,
}
LET_GO_ONCE = frozenset({"a sent yes is used again"})
"""Attacks in which people let it go, once, before the attacker comes."""
