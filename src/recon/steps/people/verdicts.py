"""What evidence cannot decide, two people do: verdicts on doubts, and the release of a night.

A verdict says what happened, with the evidence in words; it never sends. Whoever gives the first
word cannot give the second. A release lifts the hold that a NOT PROVEN night puts on refunds.
"""

from datetime import datetime, timedelta

from recon.config.approvers import has_left
from recon.desk.endorsement import Kind
from recon.model.errors import UsageError
from recon.model.words import REJECTED_STATES, InstructionKind, InstructionState, Verdict
from recon.settlement.approval import beyond_limit
from recon.settlement.instruction import Instruction
from recon.settlement.resolution import quarantine, ripe_at
from recon.steps.ground.closed_dates import refuse_closed
from recon.steps.ground.endorsed import Said, note_endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person, is_same, refuse_unproven
from recon.steps.ground.releases import release_ended
from recon.steps.money.told_messages import named_message
from recon.store import Connection
from recon.store.database.history import append
from recon.store.money import case_rows, endorsement_rows, evidence_rows, instruction_rows
from recon.store.money.journal import move
from recon.store.nights import runs
from recon.store.people import approval_rows, resolution_rows
from recon.store.people.approval_rows import FirstVerdict, Release
from recon.store.people.resolution_rows import WaitingWriteOff
from recon.store.schema.case_tables import APPLIED

EVIDENCE_CHARACTERS_MIN = 10
NOT_APPLIED = "not_applied"
STATES = {
    APPLIED: InstructionState.RESOLVED_APPLIED,
    NOT_APPLIED: InstructionState.RESOLVED_NOT_APPLIED,
}
"""What people may say -> what it makes of the instruction."""
UNDECIDED = frozenset({InstructionState.NEEDS_HUMAN, InstructionState.IN_DOUBT})
ELSEWHERE = "said to be done elsewhere"
DONE_ELSEWHERE = frozenset({InstructionKind.CANCEL_SUBSCRIPTION})
"""Kinds of which a refused one may be done in the gateway's pages, and no source shows it."""


def resolve(
    instruction_id: str,
    *,
    verdict: str,
    evidence: str,
    message: str = "",
    person: Person,
    environment: Environment,
) -> tuple[Instruction, bool]:
    """One person's verdict; the instruction, and whether it is decided now.

    A final instruction that the gateway contradicts keeps its state: its case is closed. That a
    refused end of a subscription was done in the gateway's pages opens one.

    Args:
        instruction_id: Of the doubt or the case.
        verdict: A key of STATES.
        evidence: What the person saw and where.
        message: First characters of a message of the gateway's, kept beside the evidence.
        person: Who says it.
        environment: Of the process.

    Raises:
        UsageError: no such verdict, no evidence, nothing is in doubt, too early to say that nothing
            happened, no such message, or the first person says it again.
    """
    _refuse_words(verdict, evidence=evidence)
    refuse_unproven(person, environment=environment)
    _start_clock(instruction_id, environment=environment)
    with environment.store.writing() as connection:
        at = person.word.at
        instruction, has_case = _undecided(connection, instruction_id, verdict=verdict, at=at)
        if not has_case and verdict == NOT_APPLIED:
            _refuse_early(connection, instruction, environment=environment)
        seen = _seen(connection, instruction, message=message, evidence=evidence)
        word = Said(Kind.DECISION, instruction_id, says={"verdict": verdict, "evidence": seen})
        first = _first_word(connection, word, person=person, environment=environment)
        if first is None or first.verdict != verdict:
            approval_rows.save_verdict(
                connection, instruction_id, decision=verdict, evidence=seen, word=person.word
            )
            return instruction, False
        both = f"{first.given_by} and {person.word.in_words}"
        reason = f"{verdict} by {both}: {first.evidence}; {seen}"
        if has_case:
            case_rows.close_case(connection, instruction_id, verdict=verdict, reason=reason, at=at)
        else:
            _decide(connection, instruction, verdict=verdict, reason=reason, at=at)
        approval_rows.close_verdict(connection, first.verdict_id)
    return instruction, True


def _decide(
    connection: Connection, instruction: Instruction, *, verdict: str, reason: str, at: datetime
) -> None:
    """The doubt ends in the state that both people named."""
    values = {"message": reason[:400], "hold": "", "outcome_at": at}
    decided = move(connection, instruction, to=STATES[verdict], values=values)
    append(connection, [decided], at=at)


def _undecided(
    connection: Connection, instruction_id: str, *, verdict: str, at: datetime
) -> tuple[Instruction, bool]:
    """The instruction that somebody has to decide, and whether it is final and has a case."""
    instruction = instruction_rows.of_id(connection, instruction_id)
    has_case = instruction is not None and case_rows.has_open_case(connection, instruction_id)
    if instruction is not None and not has_case and verdict == APPLIED:
        has_case = _opened_case(connection, instruction, at=at)
    if instruction is None or (instruction.state not in UNDECIDED and not has_case):
        is_now = f"is {instruction.state}" if instruction else "does not exist"
        msg = f"instruction {instruction_id} {is_now}: there is nothing to decide"
        raise UsageError(msg)
    return instruction, has_case


def _opened_case(connection: Connection, instruction: Instruction, *, at: datetime) -> bool:
    """Whether it is one that was refused and may be done elsewhere; it has a case then."""
    refused = instruction.kind in DONE_ELSEWHERE and instruction.state in REJECTED_STATES
    if not refused or case_rows.had_case(connection, instruction.instruction_id):
        return False
    case_rows.open_case(connection, instruction, reason=ELSEWHERE, at=at)
    return True


def _first_word(
    connection: Connection, word: Said, *, person: Person, environment: Environment
) -> FirstVerdict | None:
    """Who spoke first, if anybody did; this word is endorsed beside it."""
    first = approval_rows.open_verdict(connection, word.subject)
    if first is not None and has_left(first.given_by, declared=environment.settings.approvers):
        first = None  # this word takes its place
    if first is not None and first.verdict == word.says["verdict"]:
        _refuse_same(person, first=first.given_by, environment=environment)
    note_endorsed(connection, word, person=person, environment=environment)
    return first


def _seen(connection: Connection, instruction: Instruction, *, message: str, evidence: str) -> str:
    """The message that somebody goes by, where they name one, and what they saw."""
    named = message and named_message(connection, instruction, digest=message)
    return "; ".join(filter(None, (named, evidence.strip())))


def _refuse_words(verdict: str, *, evidence: str) -> None:
    if verdict not in STATES:
        msg = f"a verdict is one of {', '.join(STATES)}"
        raise UsageError(msg)
    if len(evidence.strip()) < EVIDENCE_CHARACTERS_MIN:
        msg = "say what you saw and where (--evidence), so that an auditor can follow it"
        raise UsageError(msg)


def _start_clock(instruction_id: str, *, environment: Environment) -> None:
    """A doubt whose night ended before it started the clock that nobody can set: it starts now."""
    with environment.store.writing() as connection:
        instruction = instruction_rows.of_id(connection, instruction_id)
        if instruction is not None and instruction.in_doubt_since is not None:
            evidence_rows.note_clocks(
                connection, [instruction_id], uptime=environment.uptime(), at=environment.clock()
            )


def _refuse_early(
    connection: Connection, instruction: Instruction, *, environment: Environment
) -> None:
    """That nothing happened is nobody's to say while it may still happen."""
    if instruction.in_doubt_since is None:
        return
    now = environment.clock()
    deadline = timedelta(seconds=environment.settings.gateway.deadline_seconds)
    ripe = ripe_at(
        instruction.in_doubt_since,
        waited=evidence_rows.waited(
            connection, instruction.instruction_id, uptime=environment.uptime()
        ),
        now=now,
        quarantined_for=quarantine(deadline),
    )
    if now < ripe:
        msg = (
            f"instruction {instruction.instruction_id} may still be carried out until "
            f"{ripe:%Y-%m-%d %H:%M:%S} UTC, because the gateway may be late; nothing was noted: "
            f"look it up again after that, and say {NOT_APPLIED} then"
        )
        raise UsageError(msg)


def release(run_id: str, *, reason: str, person: Person, environment: Environment) -> bool:
    """One person lifts the hold of a NOT PROVEN night; True when it is the second.

    Raises:
        UsageError: no reason, no such run, its night is proven, or the first person says it again.
    """
    if len(reason.strip()) < EVIDENCE_CHARACTERS_MIN:
        msg = "say why refunds may go on (--reason); it is kept in the history"
        raise UsageError(msg)
    refuse_unproven(person, environment=environment)
    with environment.store.writing() as connection:
        night = next((run for run in runs.finished(connection) if run.run_id == run_id), None)
        verdict = runs.get(connection, run_id).verdict if night else ""
        if night is None or verdict != Verdict.NOT_PROVEN or night.replaced:
            msg = f"run {run_id} holds nothing: only the newest run of a NOT PROVEN night does"
            raise UsageError(msg)
        first = approval_rows.release_of(connection, run_id)
        ended = release_ended(connection, run_id, environment=environment)
        if first is not None and not ended:
            _refuse_released(first, person=person, environment=environment)
        approval_rows.save_release(
            connection, run_id, reason=reason.strip(), word=person.word, ended=ended
        )
        note_endorsed(
            connection,
            Said(Kind.RELEASE, run_id, says={"reason": reason.strip()}),
            person=person,
            environment=environment,
        )
    return first is not None and not ended


def _refuse_released(first: Release, *, person: Person, environment: Environment) -> None:
    """Look at the second person before their word is noted."""
    if first.second_by:
        msg = f"run {first.run_id} was released by {first.first_by} and {first.second_by}"
        raise UsageError(msg)
    _refuse_same(person, first=first.first_by, environment=environment)
    _refuse_reviewer(person)


def agree_write_off(answer_id: int, *, person: Person, environment: Environment) -> str:
    """The second person agrees to a write-off; the break it is about.

    Raises:
        UsageError: no write-off of that number waits, the person gave it, is no approver, or may
            not give up as much as the write-offs of its workbook come to; nothing was changed.
    """
    refuse_unproven(person, environment=environment)
    with environment.store.writing() as connection:
        waiting = {
            answer.answer_id: answer for answer in resolution_rows.waiting_write_offs(connection)
        }
        if answer_id not in waiting:
            known = ", ".join(map(str, sorted(waiting))) or "none"
            msg = f"no write-off {answer_id} waits (waiting: {known})"
            raise UsageError(msg)
        wanted = waiting[answer_id]
        given_by = wanted.given_by
        if is_same(person, given_by, environment=environment):
            msg = f"{given_by} gave this write-off; somebody else must agree"
            raise UsageError(msg)
        _refuse_reviewer(person)
        _refuse_closed_month(connection, wanted, environment=environment)
        _refuse_beyond_limit(connection, wanted, person=person)
        resolution_rows.agree(connection, answer_id, by=person.word.in_words, at=person.word.at)
        money = resolution_rows.write_off_of(connection, answer_id)
        note_write_off(
            connection,
            wanted.break_id,
            money=money,
            person=person,
            environment=environment,
        )
    return wanted.break_id


def note_write_off(
    connection: Connection,
    break_id: str,
    *,
    money: tuple[str, int] | None,
    person: Person,
    environment: Environment,
) -> None:
    """The desk's signature under one person's word that this much of a break is written off."""
    note_endorsed(
        connection,
        Said(
            Kind.WRITE_OFF,
            break_id,
            says={} if money is None else endorsement_rows.money_said(money),
        ),
        person=person,
        environment=environment,
    )


def _refuse_closed_month(
    connection: Connection, answer: WaitingWriteOff, *, environment: Environment
) -> None:
    """What was open at a close stays so there; a newer night's workbook takes the answer again."""
    run = runs.get(connection, answer.run_id)
    refuse_closed(
        connection,
        (run.merchant_id, run.account_id),
        business_date=run.business_date,
        kept="nothing was agreed to, answer the break in the workbook of a newer night",
        environment=environment,
    )


def _refuse_beyond_limit(
    connection: Connection, answer: WaitingWriteOff, *, person: Person
) -> None:
    """Many small write-offs in one workbook are one large one."""
    if resolution_rows.write_off_of(connection, answer.answer_id) is None:
        msg = (
            f"what break {answer.break_id} came to in run {answer.run_id} is not stored any "
            "more, so nobody can agree to write it off; answer it in a newer workbook"
        )
        raise UsageError(msg)
    sums = resolution_rows.write_offs_of_file(connection, answer.file_sha256)
    for currency, amount in sums.items():
        what = "the write-offs of that workbook: it"
        problem = beyond_limit(person.declared, currency=currency, amount=amount, what=what)
        if problem:
            msg = f"{problem}; let somebody with a higher limit agree; nothing was changed"
            raise UsageError(msg)


def _refuse_reviewer(person: Person) -> None:
    if person.declared.role != "approver":
        msg = f"{person.declared.name} is a {person.declared.role}; an approver must agree"
        raise UsageError(msg)


def _refuse_same(person: Person, *, first: str, environment: Environment) -> None:
    if is_same(person, first, environment=environment):
        msg = f"{first} said so already; a second person must say the same"
        raise UsageError(msg)
