"""What needs a person: the list on page one of the workbook and in `recon status`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from recon.desk.endorsement import Endorsement, Kind
from recon.instructions.instruction import IF_MEANT_TWICE, Instruction
from recon.instructions.planning import IF_MEANT
from recon.instructions.resolution import NO_QUERY_SHOWS
from recon.matching.breaks.result import subject_of
from recon.model.business_date import AHEAD_MAX
from recon.model.errors import (
    ArchiveError,
    ConfigurationError,
    NightHeldError,
    NightPurgedError,
    UsageError,
)
from recon.model.figures import Attention
from recon.model.money import Money
from recon.model.nights import Account, Mode
from recon.model.terms import InstructionKind, InstructionState
from recon.steps.approvals.verdicts import messages_reported
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import GatewayAnswers
from recon.steps.runtime.identity import every_waiting, waiting_on
from recon.steps.runtime.night_end import end_of, not_verified
from recon.steps.runtime.night_folder import StoredResult
from recon.steps.runtime.predecessor import held_nights
from recon.store import Connection
from recon.store.database.bulk_rows import rows_of
from recon.store.database.history import append
from recon.store.database.night_lock import account_lock
from recon.store.money import case_rows, instruction_rows, sending_rows
from recon.store.money.case_rows import Case
from recon.store.money.instruction_rows import move
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.people import resolution_rows
from recon.store.people.resolution_rows import WaitingWriteOff

WITHDRAWABLE = frozenset({InstructionState.PLANNED, InstructionState.APPROVED})

ATTENTION_MAX = 10_000
"""Maximum rows of the list; more than that have one cause and are not separate tasks."""

LINES_DISPLAYED_MAX = 20
"""Entries shown on a terminal or a page; the workbook has them all."""
_STATE_LABELS = {
    InstructionState.IN_FLIGHT: "in flight",
    InstructionState.IN_DOUBT: "in doubt",
    InstructionState.NEEDS_HUMAN: "undecided",
    InstructionState.PLANNED: "waiting for approval",
    InstructionState.APPROVED: "not sent",
}
_NEXT = {
    InstructionState.IN_FLIGHT: "Start the night again: it is never sent twice.",
    InstructionState.IN_DOUBT: (
        "Do not send it again. A later night asks the gateway; look it up in the portal if urgent."
    ),
    InstructionState.NEEDS_HUMAN: (
        "Look it up in the gateway's portal; two people record what they find (`recon resolve`)."
    ),
    InstructionState.PLANNED: "Two people approve it (`recon approve`), or it is rejected.",
    InstructionState.APPROVED: "It waits for the next night; withdraw it if it is not meant.",
}
_BY_COMMAND = "`recon approve` shows it, `recon withdraw` takes it back."
_LOOK_UP = (
    "Do not send it again. No question to the gateway shows it: look it up in the portal; two "
    "people record what they find (`recon resolve`)."
)
_TOO_LATE = {
    InstructionState.IN_FLIGHT: (
        "is on its way to the gateway and cannot be taken back; whether it takes effect stands in "
        "`recon status` when the reply is there"
    ),
    InstructionState.IN_DOUBT: (
        "was sent and is in doubt: it may have taken effect or still may; do not send it again"
    ),
    InstructionState.NEEDS_HUMAN: (
        "may have been sent, and nobody knows what became of it: look it up in the portal, and "
        "two people record it (`recon resolve`)"
    ),
    InstructionState.CONFIRMED: "was carried out",
}
DOUBTFUL = frozenset(
    {InstructionState.IN_FLIGHT, InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN}
)
STOPPED = "sending is stopped"
_OPEN = "Look it up in the portal; two people record what is true (`recon resolve`)."
_CLOSED = f"Nothing more is sent for this payment: {_OPEN[:1].lower()}{_OPEN[1:]}"
_URGENT_FIRST = tuple(_STATE_LABELS)


@dataclass(frozen=True, slots=True)
class _Context:
    """Information in addition to the journal's rows, by instruction id or order."""

    verdicts: Mapping[str, Sequence[Endorsement]]
    approvals: Mapping[str, str]
    ends: Mapping[str, datetime]
    messages: Mapping[str, str]
    """Messages that the gateway sent by itself."""
    stopped: str
    """Why nothing is sent at all; shown once, above the list."""

    def verdicts_given(self, item: Instruction) -> str:
        """Return each person's verdict while undecided, as a sentence; "" if there is none."""
        given = self.verdicts.get(item.instruction_id, ())
        each = ", ".join(f"{one.name} says {one.says['verdict']}" for one in given)
        if len({one.says["verdict"] for one in given}) > 1:
            return f"Undecided: {each}; two people must say the same."
        return f"{each}: a second must." if each else ""

    def message(self, item: Instruction) -> str:
        """Return what the gateway reported about it, as a sentence; "" for nothing."""
        message = self.messages.get(item.instruction_id)
        return f"{message}." if message else ""


def attention(run: Run, *, environment: Environment) -> tuple[Attention, ...]:
    """Return what needs a person: cases, what lapses, money in doubt, what waits; oldest first."""
    with environment.store.reading() as connection:
        waiting = instruction_rows.find(connection, run, state=instruction_rows.UNFINISHED)
        open_cases = case_rows.open_cases(connection, run)
        items = [*waiting, *(each.item for each in open_cases)]
        context = _context(connection, run, items=items, environment=environment)
        cases = tuple(_case_of(case, context=context) for case in open_cases)
        others = (
            *_held_nights(connection, run, environment=environment),
            *_write_offs(connection, run, environment=environment),
        )
    now = environment.clock()
    warned = timedelta(days=environment.settings.rules.authorisation.warn_days)
    lines = [
        _attention_of(each, context=context, lapses_before=now + warned)
        for each in _urgent_first(waiting)
    ]
    lines.sort(key=lambda entry: not entry.lapses)
    unverified = [
        _of_no_payment("answer not verified", since=run.started_at, next_step=_sentence(reason))
        for reason in not_verified(run, environment=environment)
    ]
    return (*cases, *lines, *unverified, *others)[:ATTENTION_MAX]


def attention_lines(waiting: Sequence[Attention], *, now: datetime) -> Iterator[tuple[bool, str]]:
    """Yield a line for each entry, and whether it belongs below the previous line.

    Consecutive entries with the same next step are listed below one line with that step.
    """
    for next_step, alike in groupby(waiting[:LINES_DISPLAYED_MAX], key=attrgetter("next_step")):
        entries = [_line_of(entry, now=now) for entry in alike]
        if len(entries) == 1:
            yield False, f"{entries[0]}. {next_step}"
        else:
            yield False, f"Each of these {len(entries)}: {next_step}"
            yield from ((True, entry) for entry in entries)
    if (left := len(waiting) - LINES_DISPLAYED_MAX) > 0:
        yield False, f"and {left} more; `recon status --json` has all of them"


def _line_of(entry: Attention, *, now: datetime) -> str:
    """Format what it is, its subject, the money at risk, its age, and the id for commands."""
    of_what = f": {entry.subject}" if entry.subject else ""
    amount = entry.currency and Money.of_minor_units(entry.amount, currency=entry.currency)
    money, own = f", {amount}" * bool(amount), f" [{entry.instruction_id}]"
    since = f"since {entry.since:%Y-%m-%d %H:%M} ({max(0, (now - entry.since).days)} days)"
    return f"{entry.what}{of_what}{money}, {since}{own * bool(entry.instruction_id)}"


def _context(
    connection: Connection, run: Run, *, items: Sequence[Instruction], environment: Environment
) -> _Context:
    may_have_moved = [item for item in items if item.state not in WITHDRAWABLE]
    captures = [item.order_no for item in items if item.kind is InstructionKind.CAPTURE]
    dated = GatewayAnswers(connection, run, environment).authorised_at(captures)
    valid = timedelta(days=environment.settings.rules.authorisation.valid_days)
    verdicts: dict[str, list[Endorsement]] = {}
    for verdict in every_waiting(connection, Kind.DECISION, environment=environment):
        verdicts.setdefault(verdict.subject, []).append(verdict)
    return _Context(
        verdicts=verdicts,
        approvals={
            own: first.name
            for first in every_waiting(connection, Kind.APPROVAL, environment=environment)
            for own in first.items
        },
        # A date that cannot be right is ignored.
        ends={
            own: since + valid
            for own, since in dated.items()
            if since <= environment.clock() + AHEAD_MAX
        },
        messages=messages_reported(connection, account=run.account, items=may_have_moved),
        stopped=str(sending_rows.stopped(connection) or ""),
    )


def _case_of(case: Case, *, context: _Context) -> Attention:
    """Return the entry of a contradicted final instruction; its payment is closed for sending."""
    item = case.item
    sentences = [
        _sentence(case.reason),
        context.verdicts_given(item),
        context.message(item),
        _CLOSED if item.transaction_id else _OPEN,
    ]
    entry = _entry(
        item, what="contradicted", sentences=sentences, since=case.noted_at, context=context
    )
    return replace(entry, is_undecided=True)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _entry(
    item: Instruction, *, what: str, sentences: Iterable[str], since: datetime, context: _Context
) -> Attention:
    """Return an entry with what all entries about instructions have in common."""
    return Attention(
        what=f"{item.kind} {what}",
        order_no=item.order_no,
        transaction_id=item.transaction_id,
        currency=item.currency,
        amount=item.amount,
        since=since,
        next_step=" ".join(filter(None, sentences)),
        instruction_id=item.instruction_id,
        message=context.messages.get(item.instruction_id, ""),
        subject=item.subject,
    )


def _of_no_payment(what: str, *, since: datetime, next_step: str) -> Attention:
    return Attention(what, "", "", currency="", amount=0, since=since, next_step=next_step)


def _held_nights(
    connection: Connection, run: Run, *, environment: Environment
) -> Iterator[Attention]:
    """Yield NOT PROVEN nights that hold refunds until two people release them."""
    nights = runs.last_finished(connection, run)
    account = run.account
    for day, ended in held_nights(connection, account, environment=environment).items():
        if day == run.business_date and nights[day].run_id != run.run_id:
            continue  # this run replaces that one, and is the subject of the page
        run_id = nights[day].run_id
        waiting = waiting_on(connection, Kind.RELEASE, subject=run_id, environment=environment)
        if waiting:
            first = f"{waiting[0].name} released it; a second person must. "
        elif ended:
            first = f"That it was released counts no more: {ended}. "
        else:
            first = ""
        next_step = (
            f"{first}The night of {day} holds refunds: run it again, or two people release "
            f"it (`recon approve --hold {run_id}`)."
        )
        yield _of_no_payment("night not proven", since=nights[day].as_of, next_step=next_step)


def _write_offs(
    connection: Connection, run: Run, *, environment: Environment
) -> Iterator[Attention]:
    """Yield write-offs entered in workbooks that no second person has agreed to."""
    for answer, order in write_offs(connection, environment=environment, account=run.account):
        next_step = (
            f"{answer.given_by} wrote off break {answer.break_id}: a second person agrees, one "
            f"of the two an approver (`recon approve --write-off {answer.answer_id}`)."
        )
        entry = _of_no_payment("write-off waits", since=answer.given_at, next_step=next_step)
        currency = answer.currency if answer.exposure is not None else ""
        amount = answer.exposure or 0
        yield replace(entry, order_no=order, subject=order, currency=currency, amount=amount)


def write_offs(
    connection: Connection, *, environment: Environment, account: Account | None = None
) -> Iterator[tuple[WaitingWriteOff, str]]:
    """Yield every write-off that waits for a second person, with the order or batch of its break.

    The subject is "" if the night's folder cannot be read: the write-off is listed all the same.
    """
    waiting = [
        answer
        for answer in resolution_rows.waiting_write_offs(connection)
        if account in {None, (answer.merchant_id, answer.account_id)}
    ]
    break_ids = {answer.break_id for answer in waiting}
    subjects: dict[tuple[str, str], str] = {}
    for run_id in {answer.run_id for answer in waiting}:
        with suppress(ArchiveError, ConfigurationError, NightPurgedError):
            breaks = StoredResult(connection, run_id, environment).open_breaks()
            rows = [] if breaks is None else rows_of(breaks[breaks["break_id"].isin(break_ids)])
            subjects |= {(run_id, str(row["break_id"])): subject_of(row) for row in rows}
    for answer in waiting:
        yield answer, subjects.get((answer.run_id, answer.break_id), "")


def status(environment: Environment) -> list[tuple[Run, tuple[Attention, ...]]]:
    """Return the newest run of every account with what needs a person there."""
    with environment.store.reading() as connection:
        newest = runs.newest_of_accounts(connection)
    return [(run, attention(run, environment=environment)) for run in newest]


def undecided(environment: Environment) -> list[tuple[Run, Attention]]:
    """Return what two people may decide, over all accounts, with the gateway's messages."""
    return [
        (run, instruction)
        for run, unfinished in status(environment)
        for instruction in unfinished
        if instruction.is_undecided
    ]


def status_of(run: Run, *, environment: Environment) -> str:
    """Describe the status of a run: how it ended and why, working, died, or stopped and why."""
    dry = " (dry run, nothing was sent)" if run.mode is Mode.DRY_RUN else ""
    if run.status == "active":
        if is_held(run, environment=environment):
            return f"working, {run.owner}{dry}"
        return (
            f"died after {run.step or 'its start'} ({run.owner}): start the night again, "
            f"what was sent is never sent twice{dry}"
        )
    if run.status == "finished" and run.verdict:
        # `MONEY IN DOUBT (BREAKS OPEN): In doubt: 50 captures …`; the verdict alone if that is all.
        end = end_of(run, environment=environment)
        context = f" ({end.verdict})" if end.undone.kind else ""
        return f"{end.kind}{context}" + (f": {end.sentence}" if end.sentence else "") + dry
    return f"stopped after {run.step or 'its start'}{dry}" + (
        f": {run.problem}" if run.problem else ""
    )


def is_held(run: Run, *, environment: Environment) -> bool:
    """Return whether a process works on the account now."""
    try:
        with account_lock(environment.store, run), environment.store.reading() as connection:
            return runs.living(connection, run) is not None
    except NightHeldError:
        return True


def withdraw(instruction_id: str, *, by: str, reason: str, environment: Environment) -> Instruction:
    """Withdraw an instruction that was never sent; it can never be sent afterwards.

    Withdrawing moves no money, so one person is enough; name and reason are in the history.

    Raises:
        UsageError: there is no such instruction, it can no longer be withdrawn, or name or reason
            is missing.
    """
    if not by.strip() or not reason.strip():
        msg = "say who withdraws it (--as) and why (--reason)"
        raise UsageError(msg)
    with environment.store.writing() as connection:
        instruction = instruction_rows.of_id(connection, instruction_id)
        if instruction is None:
            msg = f"there is no instruction {instruction_id} (`recon status` shows their ids)"
            raise UsageError(msg)
        if instruction.state not in WITHDRAWABLE:
            why = _TOO_LATE.get(instruction.state, f"is {instruction.state}")
            msg = (
                f"instruction {instruction_id} {why}: only one that was never sent can be "
                "withdrawn; nothing was changed"
            )
            raise UsageError(msg)
        why = f"withdrawn by {by.strip()}: {reason.strip()}"
        event = move(
            connection,
            instruction,
            to=InstructionState.WITHDRAWN,
            values={"hold": "", "message": why[:400]},
        )
        append(connection, [event], at=environment.clock())
    return instruction


def _urgent_first(waiting: Iterable[Instruction]) -> list[Instruction]:
    # Without a file it was requested by hand, so that it is listed even when approved.
    urgent = [
        each
        for each in waiting
        if each.hold or each.state is not InstructionState.APPROVED or each.file_id is None
    ]
    return sorted(
        urgent,
        key=lambda each: (_URGENT_FIRST.index(each.state), _since(each), each.natural_key),
    )


def _since(item: Instruction) -> datetime:
    return next(filter(None, (item.in_doubt_since, item.sent_at, item.planned_at)))


def _attention_of(item: Instruction, *, context: _Context, lapses_before: datetime) -> Attention:
    state, own = item.state, item.instruction_id
    next_step = _NEXT[state]
    reason = item.hold or item.message
    if reason and reason == context.stopped:
        reason = STOPPED
    # A hold that ends with what two people do needs the commands alone.
    if state is InstructionState.PLANNED and reason.endswith((IF_MEANT, IF_MEANT_TWICE)):
        next_step = _BY_COMMAND
    # The next step never promises an answer that cannot come.
    if state is InstructionState.IN_DOUBT and item.kind in NO_QUERY_SHOWS:
        next_step = _LOOK_UP
    ends = context.ends.get(item.order_no) if item.kind is InstructionKind.CAPTURE else None
    lapses = ends is not None and ends <= lapses_before
    sentences = [
        f"The authorisation ends {ends:%Y-%m-%d %H:%M} UTC." if ends and lapses else "",
        _sentence(reason),
        context.verdicts_given(item),
        f"{context.approvals[own]} approved it." if own in context.approvals else "",
        context.message(item),
        # The id by which the gateway's portal finds a payout, which has no id of ours.
        f"The gateway knows it as request {item.gateway_request_id}."
        if state in DOUBTFUL and item.kind is InstructionKind.PAYOUT
        else "",
        next_step,
    ]
    since = _since(item)
    entry = _entry(
        item, what=_STATE_LABELS[state], sentences=sentences, since=since, context=context
    )
    is_undecided = state in DOUBTFUL - {InstructionState.IN_FLIGHT}
    return replace(entry, lapses=lapses, is_undecided=is_undecided)
