"""What evidence cannot decide, two people do: verdicts on doubts, and the release of a night.

A verdict states what happened, with the evidence as text; it never sends anything. Each person has
one verdict, and a later one replaces it; the doubt is decided as soon as two different people, one
of them an approver, state the same. A release lifts the hold on refunds of a NOT PROVEN night. A
decision that waits for a second person can be withdrawn by the first.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from recon.desk.endorsement import Endorsement, Kind
from recon.instructions.approval import decides_within
from recon.instructions.instruction import Instruction
from recon.instructions.resolution import quarantine, waited
from recon.model.errors import SpillError, UsageError
from recon.model.money import format_minor_units
from recon.model.terms import REJECTED_STATES, InstructionKind, InstructionState, Verdict
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.identity import Person, decide, names_of, take_back, waiting_on
from recon.steps.runtime.predecessor import refuse_closed, release_ended
from recon.store import Connection
from recon.store.database import history
from recon.store.database.history import append
from recon.store.money import case_rows, instruction_rows
from recon.store.money.instruction_rows import move
from recon.store.money.spill import (
    FOLDER,
    SPILL_BYTES_MAX,
    SUFFIX,
    exclude,
    read,
    refuse_unfit,
)
from recon.store.nights import notification_rows, runs
from recon.store.nights.notification_rows import GatewayMessage
from recon.store.people import decision_rows, resolution_rows
from recon.store.people.decision_rows import money_stated
from recon.store.schema import APPLIED

MESSAGES_DISPLAYED_MAX = 3
"""How many of the newest messages about one instruction are shown."""
DIGEST_CHARACTERS = 12
"""The characters of a message's digest by which a decision names it."""
_KINDS = {
    InstructionKind.CAPTURE: ("payment",),
    InstructionKind.CANCEL: ("payment",),
    InstructionKind.REFUND: ("refund received", "refund accepted", "refund result"),
    InstructionKind.PAYOUT: ("payout",),
    InstructionKind.CANCEL_SUBSCRIPTION: ("subscription",),
}
"""Kinds of messages that may be about an instruction."""


def messages_reported(
    connection: Connection, *, account: tuple[str, str], items: Collection[Instruction]
) -> dict[str, str]:
    """Map instruction id -> what the gateway reported about it, when, and how a decision names it.

    `items` are instructions of the account that need a decision; those without a message are left
    out.
    """
    messages = _messages(connection, account=account, items=items)
    return {own: _sentence(abouts) for own, abouts in messages.items() if abouts}


def named_message(connection: Connection, item: Instruction, *, digest: str) -> str:
    """Describe the message that a decision names by the first characters of its digest.

    Raises:
        UsageError: no message about this instruction, or more than one, begins with them.
    """
    account = (item.merchant_id, item.account_id)
    messages = _messages(connection, account=account, items=[item])[item.instruction_id]
    fitting = [message for message in messages if message.sha256.startswith(digest.lower())]
    if len(digest) < DIGEST_CHARACTERS or len(fitting) != 1:
        known = ", ".join(message.sha256[:DIGEST_CHARACTERS] for message in messages) or "none"
        msg = (
            f"message {digest} is none that the gateway sent of instruction {item.instruction_id} "
            f"(known: {known}); nothing was noted"
        )
        raise UsageError(msg)
    return _described(fitting[0])


def _messages(
    connection: Connection, *, account: tuple[str, str], items: Collection[Instruction]
) -> dict[str, list[GatewayMessage]]:
    """Return the messages that may be about each instruction, newest last."""
    if not items:
        return {}
    payments = {item.transaction_id for item in items} - {""}
    messages = notification_rows.about(connection, account, transaction_ids=payments)
    return {item.instruction_id: _of(item, messages=messages) for item in items}


def _of(item: Instruction, *, messages: Collection[GatewayMessage]) -> list[GatewayMessage]:
    fitting = [message for message in messages if message.kind in _KINDS.get(item.kind, ())]
    if item.kind is InstructionKind.PAYOUT:
        return [
            message
            for message in fitting
            if message.fields.get("request_id", "") == item.gateway_request_id
        ]
    if item.kind is InstructionKind.CANCEL_SUBSCRIPTION:
        return [
            message
            for message in fitting
            if message.fields.get("recurring_id", "") == item.recurring_id
        ]
    transaction_id = item.transaction_id
    return [
        message
        for message in fitting
        if transaction_id and message.transaction_id == transaction_id
    ]


def _sentence(messages: list[GatewayMessage]) -> str:
    described = "; ".join(_described(message) for message in messages[-MESSAGES_DISPLAYED_MAX:])
    more = len(messages) - MESSAGES_DISPLAYED_MAX
    earlier = f"; and {more} earlier" if more > 0 else ""
    return (
        f"Notified by the gateway: {described}{earlier}. Its signature covers ids alone: look it "
        "up, and name the message as evidence (`--message`)"
    )


def _described(about: GatewayMessage) -> str:
    money = ""
    if about.amount is not None and about.currency:
        money = f" of {format_minor_units(about.amount, currency=about.currency)} {about.currency}"
    return (
        f"{' '.join(filter(None, (about.kind, about.status)))}{money} at "
        f"{about.received_at:%Y-%m-%d %H:%M} UTC (message {about.sha256[:DIGEST_CHARACTERS]})"
    )


EVIDENCE_CHARACTERS_MIN = 10
NOT_APPLIED = "not_applied"
STATES = {
    APPLIED: InstructionState.RESOLVED_APPLIED,
    NOT_APPLIED: InstructionState.RESOLVED_NOT_APPLIED,
}
"""Verdict -> the state that it gives the instruction."""
UNDECIDED = frozenset({InstructionState.NEEDS_HUMAN, InstructionState.IN_DOUBT})
REPORTED_DONE = "said to be done elsewhere"
DONE_IN_PAGES = frozenset({InstructionKind.CANCEL_SUBSCRIPTION})
"""Kinds that may be done in the gateway's pages after a refusal, with no source that shows it."""


@dataclass(frozen=True, slots=True)
class DoubtDecision:
    """The result of one person's verdict on an instruction."""

    instruction: Instruction
    decided: bool
    others: tuple[Endorsement, ...] = ()
    """The verdicts of everybody else, as they were then."""
    before: str = ""
    """The person's own previous verdict, which no longer counts."""


def resolve(
    instruction_id: str, *, verdict: str, evidence: str, message: str = "", person: Person
) -> DoubtDecision:
    """Record one person's verdict; the result says whether the instruction is decided now.

    A final instruction that the gateway contradicts keeps its state: its case is closed. The
    verdict that a refused end of a subscription was done in the gateway's pages opens a case.

    Args:
        instruction_id: Of the doubt or the case.
        verdict: A key of STATES.
        evidence: What the person saw and where.
        message: First characters of the digest of a gateway message, stored with the evidence.
        person: Who gives the verdict.

    Raises:
        UsageError: no such verdict, no evidence, nothing in doubt, too early to state that nothing
            happened, no such message, the person repeats it, or nobody could be the second.
    """
    environment = person.environment
    _refuse_incomplete(verdict, evidence=evidence)
    person.refuse_unproven()
    _start_clock(instruction_id, environment=environment)
    with environment.store.writing() as connection:
        at = person.at
        instruction, has_case = _undecided(connection, instruction_id, verdict=verdict, at=at)
        if not has_case and verdict == NOT_APPLIED:
            _refuse_early(connection, instruction, environment=environment)
        named = message and named_message(connection, instruction, digest=message)
        stated = "; ".join(filter(None, (named, evidence.strip())))
        waiting = waiting_on(
            connection, Kind.DECISION, subject=instruction_id, environment=environment
        )
        others = tuple(each for each in waiting if not person.is_same(each.name))
        own = [each.says["verdict"] for each in waiting if each not in others]
        both = decide(
            connection,
            Kind.DECISION,
            instruction_id,
            person=person,
            says={"verdict": verdict, "evidence": stated},
            valid=None,
        )
        decision = DoubtDecision(instruction, both is not None, others, next(iter(own), ""))
        if both is None:
            return decision
        people = f"{both[0].name} and {both[1].as_text}"
        reason = f"{verdict} by {people}: {both[0].says['evidence']}; {stated}"
        if has_case:
            case_rows.close_case(connection, instruction_id, verdict=verdict, reason=reason, at=at)
        else:
            values = {"message": reason[:400], "hold": "", "outcome_at": at}
            moved = move(connection, instruction, to=STATES[verdict], values=values)
            moved = replace(moved, data={**moved.data, case_rows.DECIDED: verdict})
            read = case_rows.clock_event(instruction_id, uptime=environment.uptime())
            append(connection, [moved, read], at=at)
    return decision


def sentence_of(decision: DoubtDecision, *, verdict: str) -> str:
    """Describe the result of a verdict: who states what, and what it waits for."""
    item = decision.instruction
    what = f"{item.kind} of {item.subject}, {verdict}"
    against = [
        f"{statement.name} says {statement.says['verdict']}"
        for statement in decision.others
        if statement.says["verdict"] != verdict
    ]
    changed = f" Your earlier answer ({decision.before}) counts no more." if decision.before else ""
    if decision.decided:
        overruled = f" Not all said so: {', '.join(against)}." if against else ""
        return f"Decided: {what}.{changed}{overruled}"
    if against:
        return (
            f"Noted, and undecided: you say {verdict} of the {item.kind} of {item.subject}, "
            f"{', '.join(against)}. Both answers count until two people, one of them an approver, "
            f"say the same: look it up together.{changed}"
        )
    return f"Noted: {what}; it waits for a second person, one of the two an approver.{changed}"


def _undecided(
    connection: Connection, instruction_id: str, *, verdict: str, at: datetime
) -> tuple[Instruction, bool]:
    """Return the instruction to decide, and whether it is final and has a case."""
    instruction = instruction_rows.of_id(connection, instruction_id)
    has_case = instruction is not None and case_rows.has_case(
        connection, instruction_id, open_only=True
    )
    if instruction is not None and not has_case and verdict == APPLIED:
        has_case = _opened_case(connection, instruction, at=at)
    if instruction is None or (instruction.state not in UNDECIDED and not has_case):
        is_now = f"is {instruction.state}" if instruction else "does not exist"
        msg = f"instruction {instruction_id} {is_now}: there is nothing to decide"
        raise UsageError(msg)
    return instruction, has_case


def _opened_case(connection: Connection, instruction: Instruction, *, at: datetime) -> bool:
    """Open a case for a refused instruction that may be done elsewhere; return whether it did."""
    is_rejected = instruction.kind in DONE_IN_PAGES and instruction.state in REJECTED_STATES
    if not is_rejected or case_rows.has_case(connection, instruction.instruction_id):
        return False
    case_rows.open_case(connection, instruction, reason=REPORTED_DONE, at=at)
    return True


def _refuse_incomplete(verdict: str, *, evidence: str) -> None:
    if verdict not in STATES:
        msg = f"a verdict is one of {', '.join(STATES)}"
        raise UsageError(msg)
    if len(evidence.strip()) < EVIDENCE_CHARACTERS_MIN:
        msg = "say what you saw and where (--evidence), so that an auditor can follow it"
        raise UsageError(msg)


def _start_clock(instruction_id: str, *, environment: Environment) -> None:
    """Start the uptime clock of a doubt now, if its night ended before starting it."""
    with environment.store.writing() as connection:
        instruction = instruction_rows.of_id(connection, instruction_id)
        if instruction is not None and instruction.in_doubt_since is not None:
            case_rows.note_clocks(
                connection, [instruction_id], uptime=environment.uptime(), at=environment.clock()
            )


def _refuse_early(
    connection: Connection, instruction: Instruction, *, environment: Environment
) -> None:
    """Refuse the verdict that nothing happened while it may still happen."""
    if instruction.in_doubt_since is None:
        return
    now = environment.clock()
    deadline = timedelta(seconds=environment.settings.gateway.deadline_seconds)
    readings = case_rows.readings(connection, instruction.instruction_id)
    left = quarantine(deadline) - waited(environment.uptime(), readings=readings)
    if left > timedelta():
        ripe = now + left
        msg = (
            f"instruction {instruction.instruction_id} may still be carried out until "
            f"{ripe:%Y-%m-%d %H:%M:%S} UTC, because the gateway may be late; nothing was noted: "
            f"look it up again after that, and say {NOT_APPLIED} then"
        )
        raise UsageError(msg)


def release(run_id: str, *, reason: str, person: Person) -> bool:
    """Release the hold of a NOT PROVEN night as one person; True if it is the second.

    Raises:
        UsageError: no such run, its night is proven or released, or the decision does not count
            (`identity.decide`).
    """
    environment = person.environment
    with environment.store.writing() as connection:
        night = next((run for run in runs.finished(connection) if run.run_id == run_id), None)
        verdict = runs.get(connection, run_id).verdict if night else ""
        if night is None or verdict != Verdict.NOT_PROVEN or night.replaced:
            msg = f"run {run_id} holds nothing: only the newest run of a NOT PROVEN night does"
            raise UsageError(msg)
        both = decision_rows.who_released(connection, run_id, desk=environment.desk)
        if both and not release_ended(connection, run_id, environment=environment):
            msg = f"run {run_id} was released by {both[0]} and {both[1]}"
            raise UsageError(msg)
        says = {"reason": reason}
        return decide(connection, Kind.RELEASE, run_id, person=person, says=says) is not None


def agree_write_off(answer_id: int, *, person: Person) -> str:
    """Agree to a write-off as the second person; return the break it is about.

    Raises:
        UsageError: no write-off of that number waits, its amount is not stored any more, or the
            decision does not count (`identity.decide`): one of the two is an approver whose limit
            covers all write-offs of its workbook.
    """
    with person.environment.store.writing() as connection:
        waiting = {
            answer.answer_id: answer for answer in resolution_rows.waiting_write_offs(connection)
        }
        if answer_id not in waiting:
            known = ", ".join(map(str, sorted(waiting))) or "none"
            msg = f"no write-off {answer_id} waits (waiting: {known})"
            raise UsageError(msg)
        write_off = waiting[answer_id]
        # What was open at a close stays so there; a newer night's workbook can take the answer.
        night = runs.get(connection, write_off.run_id)
        saved = "nothing was agreed to, answer the break in the workbook of a newer night"
        refuse_closed(connection, night, saved=saved)
        if write_off.exposure is None:
            msg = (
                f"what break {write_off.break_id} came to in run {write_off.run_id} is not stored "
                "any more, so nobody can agree to write it off; answer it in a newer workbook"
            )
            raise UsageError(msg)
        sums = resolution_rows.write_offs_of_file(connection, write_off.file_sha256)
        kind, subject = Kind.WRITE_OFF, write_off.break_id
        says = money_stated((write_off.currency, write_off.exposure))
        decides = decides_within(sums, what="the write-offs of that workbook: it")
        person.refuse_second(write_off.given_by, decides=decides)
        decide(connection, kind, subject, person=person, says=says, decides=decides, valid=None)
        # Two answers of one sum, by two people, are a pair already: a third one agrees to either.
        if why := decision_rows.not_agreed(
            connection, kind, subject=subject, says=says, desk=person.environment.desk
        ):
            msg = f"{why}; nothing was agreed to, answer the break in a newer workbook"
            raise UsageError(msg)
        resolution_rows.agree(connection, answer_id, by=person.as_text, at=person.at)
    return write_off.break_id


SPILL_FILE = "spill file"


def exclude_file(path: Path, *, person: Person, reason: str) -> Path | None:
    """Record one person's decision that a spill file is set aside.

    Returns:
        The new path of the file; None while a second person must decide the same.

    Raises:
        UsageError: not a spill file of ours, one that fits and belongs to the next night, or the
            decision does not count (`identity.decide`).
    """
    environment = person.environment
    path = path.resolve()
    digest = _digest_of(path, environment=environment)
    with environment.store.writing() as connection:
        try:
            refuse_unfit(connection, read(path))
        except SpillError as error:
            why_not = str(error)
        else:
            msg = f"{path} fits this database: the next night reads it; nothing was changed"
            raise UsageError(msg)
        says = {"reason": reason}
        both = decide(connection, Kind.EXCLUDE_FILE, digest, person=person, says=says)
        if both is None:
            return None
        details = {
            "file": path.name,
            "by": names_of(both),
            "reason": reason.strip(),
            "unfit": why_not,
        }
        append(
            connection,
            [history.Event(SPILL_FILE, digest, "set aside", details)],
            at=environment.clock(),
        )
    # The history first: after a crash in between the file still stops the night.
    return exclude(path)


def _digest_of(path: Path, *, environment: Environment) -> str:
    """Return the SHA-256 of a file in one of the folders for spill files."""
    folders = [account.reports / FOLDER for account in environment.settings.accounts.values()]
    database = environment.store.path
    if database is not None:
        folders.append(database.with_name(f"{database.name}.{FOLDER}"))
    known = {folder.resolve() for folder in folders}
    if path.parent not in known or not path.name.endswith(SUFFIX) or not path.is_file():
        msg = f"{path} is no spill file of a declared account (…/{FOLDER}/*{SUFFIX})"
        raise UsageError(msg)
    with path.open("rb") as file:
        return hashlib.sha256(file.read(SPILL_BYTES_MAX)).hexdigest()


def decisions_taken_back(subject: str, *, person: Person) -> str:
    """Withdraw a person's decision on a subject; return what it was, as text.

    The subject is a list's digest, an instruction, a run, or what was to be allowed.

    Raises:
        UsageError: they decided nothing on it, or it is final already.
    """
    person.refuse_unproven()
    with person.environment.store.writing() as connection:
        taken = take_back(connection, subject, person=person)
    if not taken:
        msg = (
            f"{person.declared.name} decided nothing on {subject} that waits for a second person: "
            "what two people agreed to counts, and nobody takes it back alone; nothing was changed"
        )
        raise UsageError(msg)
    return taken
