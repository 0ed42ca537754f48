"""Protocols that are wrong in one place each: what a tired person might write one day.

A mutant is a change of the real code while a schedule is played. Each must be found; one that is
not tells that the schedules or the checker are too weak.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from protocol_world import World
from sqlalchemy import update

from recon.desk import endorsement as desk_endorsement
from recon.gateway_client import (
    BatchReply,
    NotSentError,
    RawReply,
    ReplyOutcome,
    UnknownOutcomeError,
)
from recon.gateway_client.replies import RowOutcome
from recon.instructions import eligibility, resolution
from recon.instructions.instruction import Intention, plain_id
from recon.instructions.money_requests import GatewayOfMoney
from recon.instructions.resolution import DoubtEvidence, Resolution
from recon.instructions.sender import Sender
from recon.model.uptime import uptime_of
from recon.model.words import InstructionKind, InstructionState
from recon.steps.ground import identity
from recon.steps.ground.identity import Person
from recon.steps.money import doubt, gate, settle
from recon.steps.money.doubt import Doubts
from recon.store.database import history
from recon.store.money import endorsement_rows, journal
from recon.store.money.endorsement_rows import OpenedWords
from recon.store.money.journal import StoredJournal
from recon.store.schema import instruction

Change = Callable[[pytest.MonkeyPatch], None]


def _doubt_is_released(patch: pytest.MonkeyPatch) -> None:
    """A time-out counts as not sent."""
    patch.setattr(StoredJournal, "doubt", StoredJournal.release)


def _silence_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    """No reply is taken for a request that did not leave."""
    real = Sender._send_once

    async def once(self: Any, batch_id: str, prepared: Any, **how: Any) -> bool:
        send = self._gateway.send

        async def widened(request: Any) -> Any:
            try:
                return await send(request)
            except UnknownOutcomeError as error:
                raise NotSentError(str(error), kind=error.kind) from error

        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(self._gateway, "send", widened)
            return await real(self, batch_id, prepared, **how)

    patch.setattr(Sender, "_send_once", once)


def _failure_is_final(patch: pytest.MonkeyPatch) -> None:
    """What is not known is called failed."""
    patch.setitem(journal.STATE_OF, ReplyOutcome.UNKNOWN, InstructionState.REJECTED)  # type: ignore[arg-type]


def _unknown_is_confirmed(patch: pytest.MonkeyPatch) -> None:
    """What is not known is called done."""
    patch.setitem(journal.STATE_OF, ReplyOutcome.UNKNOWN, InstructionState.CONFIRMED)  # type: ignore[arg-type]


def _claim_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    """The request leaves before it is written down."""
    real = StoredJournal.claim

    def claim(self: Any, batch_id: str, rows: Any, *, request: Any, at: Any) -> None:
        self._late = (batch_id, rows, {"request": request, "at": at})

    def settled(name: str) -> Callable[..., None]:
        after = getattr(StoredJournal, name)

        def wrapped(self: Any, batch_id: str, *args: Any, **kwargs: Any) -> None:
            late = getattr(self, "_late", None)
            if late is not None and late[0] == batch_id:
                self._late = None
                real(self, late[0], late[1], **late[2])
            after(self, batch_id, *args, **kwargs)

        return wrapped

    for name in ("release", "doubt", "keep_reply"):
        patch.setattr(StoredJournal, name, settled(name))
    patch.setattr(StoredJournal, "claim", claim)


def _sweep_releases(patch: pytest.MonkeyPatch) -> None:
    """A batch whose sender is gone is thought not to have left."""

    def sweep(doubts: Any) -> int:
        with doubts._store.reading() as connection:
            found = doubt.instruction_rows.open_batches(connection, doubts._run)
        for one in found:
            at = doubts._environment.clock()
            doubts._journal.release(one.batch_id, reason="gone", at=at)
        return len(found)

    patch.setattr(Doubts, "sweep", sweep)


def _sweep_sleeps(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks at what an earlier run left open."""
    patch.setattr(Doubts, "sweep", lambda _: 0)


def _kept_reply_is_believed(patch: pytest.MonkeyPatch) -> None:
    """A reply that was kept counts as good news without being read."""

    def judge_again(doubts: Any, found: Any) -> bool:
        with doubts._store.reading() as connection:
            count = len(doubt.instruction_rows.rows_of_batch(connection, found.batch_id))
        rows = tuple(RowOutcome(at, "", "", ReplyOutcome.DONE) for at in range(count))
        at = doubts._environment.clock()
        doubts._journal.record(found.batch_id, BatchReply(rows), at=at)
        return True

    patch.setattr(Doubts, "_judge_again", judge_again)


def _no_quarantine(patch: pytest.MonkeyPatch) -> None:
    """Answers count from the first moment."""
    patch.setattr(doubt, "quarantine", lambda _deadline: timedelta(0))


def _one_answer_is_enough_at_once(patch: pytest.MonkeyPatch) -> None:
    """The newest answer decides, however young."""
    patch.setattr(resolution, "_agreed", lambda seen: seen[-1])
    patch.setattr(doubt, "quarantine", lambda _deadline: timedelta(0))


def _refund_by_state(patch: pytest.MonkeyPatch) -> None:
    """A payment that shows a refund proves ours."""
    patch.setattr(
        resolution,
        "_refund",
        lambda *_, **__: Resolution(InstructionState.RESOLVED_APPLIED, "it shows a refund"),
    )


def _old_refund_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A refund that is not seen after a while did not happen."""

    def refund(agreed: Any, *, until: Any) -> Resolution:
        del agreed, until
        return Resolution(InstructionState.RESOLVED_NOT_APPLIED, "not seen")

    patch.setattr(resolution, "_refund", refund)


def _not_applied_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    """What one early answer does not show is approved anew, in the same night."""

    def resolve(doubts: Any) -> int:
        with doubts._store.writing() as connection:
            for item in doubts._in_doubt(connection):
                connection.execute(
                    update(instruction)
                    .where(instruction.c.instruction_id == item.instruction_id)
                    .values(state=InstructionState.APPROVED.value)
                )
                event = history.Event("instruction", item.instruction_id, "approved", {})
                history.append(connection, [event], at=doubts._environment.clock())
        return 0

    patch.setattr(Doubts, "resolve", resolve)


def _bounds_forget_doubt(patch: pytest.MonkeyPatch) -> None:
    """Only what is confirmed counts; what may still happen does not."""
    patch.setattr(eligibility, "_nothing_open", lambda *_: "")
    real = eligibility._refund

    def refund(item: Any, payment: Any, others: Any) -> str:
        return real(item, payment, [one for one in others if not one.is_open])

    patch.setitem(eligibility._JUDGES, item_kind("refund"), refund)  # type: ignore[arg-type]


def _history_is_skipped(patch: pytest.MonkeyPatch) -> None:
    """Outcomes are written without their events."""

    def append(connection: Any, _events: Any, *, at: Any) -> Any:
        del at
        return history.head(connection)

    patch.setattr(journal, "append", append)


def _claim_event_is_skipped(patch: pytest.MonkeyPatch) -> None:
    """Planning is written down, sending is not."""
    real = journal.append

    def append(connection: Any, events: Any, *, at: Any) -> Any:
        kept = [one for one in events if one.event != InstructionState.IN_FLIGHT.value]
        return real(connection, kept, at=at)

    patch.setattr(journal, "append", append)


def _judge(change: Callable[[Any, BatchReply], BatchReply]) -> Change:
    """A judge that changes what the real one found."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        real = GatewayOfMoney.read

        def read(self: Any, request: Any, reply: RawReply) -> BatchReply:
            return change(reply, real(self, request, reply))

        patch.setattr(GatewayOfMoney, "read", read)

    return apply


def _all(outcome: ReplyOutcome) -> Callable[[Any, BatchReply], BatchReply]:
    """Every row that is unknown becomes this."""

    def change(_reply: Any, result: BatchReply) -> BatchReply:
        rows = tuple(
            replace(row, outcome=outcome) if row.outcome is ReplyOutcome.UNKNOWN else row
            for row in result.rows
        )
        return replace(result, rows=rows)

    return change


def _success_is_enough(_reply: Any, result: BatchReply) -> BatchReply:
    """HTTP 200 means that it was done."""
    rows = tuple(replace(row, outcome=ReplyOutcome.DONE) for row in result.rows)
    return replace(result, rows=rows)


def _http_500_is_final(reply: Any, result: BatchReply) -> BatchReply:
    """A server that stumbled did nothing."""
    outcome = ReplyOutcome.NOT_SENT
    rows = tuple(replace(row, outcome=outcome) for row in result.rows)
    return replace(result, rows=rows) if reply.status >= 500 else result


def _rows_by_position(patch: pytest.MonkeyPatch) -> None:
    """Outcomes are written to the rows in another order than they were sent."""
    real = StoredJournal.record

    def record(self: Any, batch_id: str, result: BatchReply, *, at: Any) -> None:
        real(self, batch_id, replace(result, rows=result.rows[::-1]), at=at)

    patch.setattr(StoredJournal, "record", record)


def _claim_takes_anything(patch: pytest.MonkeyPatch) -> None:
    """What is in doubt may be claimed again, and settle hands it over."""
    real = settle.instruction_rows.find

    def find(connection: Any, *owner: Any, **wanted: Any) -> Any:
        if owner and wanted == {"state": (InstructionState.APPROVED,)}:
            connection.exec_driver_sql("PRAGMA query_only = 0")
            connection.execute(
                update(instruction)
                .where(instruction.c.state == InstructionState.IN_DOUBT.value)
                .values(state=InstructionState.APPROVED.value)
            )
        return real(connection, *owner, **wanted)

    patch.setattr(settle.instruction_rows, "find", find)


def _quarantine_by_the_wall(patch: pytest.MonkeyPatch) -> None:
    """A clock that was put forward ends the wait: it is taken for the one that nobody can set."""
    patch.setattr(World, "uptime", lambda world: uptime_of(world.clock))


def _earlier_answers_count(patch: pytest.MonkeyPatch) -> None:
    """What was asked before the doubt is evidence of it too."""
    patch.setattr(doubt.case_rows, "last_change", lambda *_: 0)


def _one_wait_for_all_answers(patch: pytest.MonkeyPatch) -> None:
    """When the quarantine is over tonight, answers from within it count."""
    real = DoubtEvidence.had_waited

    def had_waited(self: DoubtEvidence, _uptime: Any, *, much: timedelta) -> bool:
        return real(self, self.uptime, much=much)

    patch.setattr(DoubtEvidence, "had_waited", had_waited)


def _a_reboot_ends_the_wait(patch: pytest.MonkeyPatch) -> None:
    """On another boot than the doubt's nobody waits."""
    real = resolution.waited

    def waited(uptime: Any, *, readings: Any) -> timedelta:
        is_other = bool(readings) and readings[0].boot_id != uptime.boot_id
        return timedelta(days=1) if is_other else real(uptime, readings=readings)

    patch.setattr(resolution, "waited", waited)


def _any_boot_is_this(patch: pytest.MonkeyPatch) -> None:
    """Uptimes of two machines are compared."""

    def between(earlier: Any, later: Any) -> timedelta:
        return timedelta(milliseconds=later.milliseconds - earlier.milliseconds)

    patch.setattr(resolution, "between", between)


def _halves_are_whole(patch: pytest.MonkeyPatch) -> None:
    """Answers that differ still decide."""
    patch.setattr(resolution, "_agreed", lambda seen: seen[0])


def _not_sent_wide(patch: pytest.MonkeyPatch) -> None:
    """A reply that cannot be read counts as one that did not leave."""
    _judge(_all(ReplyOutcome.NOT_SENT))(patch)


def _another_id_is_another_wish(patch: pytest.MonkeyPatch) -> None:
    """Whoever gives a movement another id, or none, means another movement."""
    real = Intention.may_be

    def may_be(self: Intention, other: Intention, *, ids_unique: bool) -> bool:
        is_same = plain_id(self.request_id) == plain_id(other.request_id)
        return is_same and real(self, other, ids_unique=ids_unique)

    patch.setattr(Intention, "may_be", may_be)


def _nobody_looks_again(patch: pytest.MonkeyPatch) -> None:
    """What people took back while a night ran goes with its batch."""
    patch.setattr(journal, "left_out", lambda *_, **__: {})


def _numbers_are_not_read(patch: pytest.MonkeyPatch) -> None:
    """The gateway's numbers of refunds are stored, and nobody looks at them."""
    patch.setattr(Doubts, "note_refund_numbers", lambda _: 0)


def _nobody_is_contradicted(patch: pytest.MonkeyPatch) -> None:
    """A final state is final, whatever the gateway shows afterwards."""
    patch.setattr(Doubts, "_shown_against", lambda *_: {})


def _stopped_only_for_later_nights(patch: pytest.MonkeyPatch) -> None:
    """A night that runs does not hear that people stop everything."""
    patch.setattr(StoredJournal, "halted", lambda _: "")


def _first_row_is_taken(patch: pytest.MonkeyPatch) -> None:
    """Of rows that show one transaction in two ways the first is believed."""
    patch.setattr(settle, "shown_twice", lambda _: {})


def _over_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What the history knows to be sent or taken back may be sent when its row says so."""
    patch.setattr(gate.bound_rows, "back_again", lambda *_, **__: iter(()))


def _a_missing_word_is_not_missed(patch: pytest.MonkeyPatch) -> None:
    """The words that are there count, whatever else was said."""
    patch.setattr(OpenedWords, "taken_away", lambda *_: "")


def _links_of_words_are_not_read(patch: pytest.MonkeyPatch) -> None:
    """A word is missed by its number alone."""
    patch.setattr(OpenedWords, "_gone_from_links", lambda *_: 0)


def _short_names_are_people(patch: pytest.MonkeyPatch) -> None:
    """At the desk whoever has another short name is another person."""
    patch.setattr(Person, "refuse_second", lambda *_, **__: None)


def _short_names_sign(patch: pytest.MonkeyPatch) -> None:
    """The same under the desk's signature."""
    patch.setattr(desk_endorsement, "_is_same", lambda first, second: first.person == second.person)


def _terms_are_not_signed(patch: pytest.MonkeyPatch) -> None:
    """A yes is to an instruction, whatever it sends."""
    for module in (desk_endorsement, identity):
        patch.setattr(module, "terms_digest", lambda _: "0" * 64)


class _AnyText(str):
    """Is no other than any text."""

    __slots__ = ()

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


def _any_database_is_this(patch: pytest.MonkeyPatch) -> None:
    """What the desk signed counts, wherever it was said."""
    real = endorsement_rows.first_hash
    patch.setattr(endorsement_rows, "first_hash", lambda it: _AnyText(real(it)))


def _words_never_run_out(patch: pytest.MonkeyPatch) -> None:
    """A first word is half of an agreement for ever."""
    patch.setattr(desk_endorsement, "_in_time", lambda *_: True)


HELD_BY: Mapping[str, tuple[Change, ...]] = {
    "a sent yes is used again": (_over_is_forgotten,),
    "one person under two names": (_short_names_are_people, _short_names_sign),
    "the newest no is taken away": (_over_is_forgotten, _links_of_words_are_not_read),
    "a no among others is taken away": (_over_is_forgotten, _a_missing_word_is_not_missed),
    "a yes moves another payment": (_terms_are_not_signed,),
    "words of another database": (_any_database_is_this,),
    "a word that ran out is half": (_words_never_run_out,),
}
"""Attack -> what must all be gone before it moves money."""


def _all_of(changes: tuple[Change, ...]) -> Change:
    def apply(patch: pytest.MonkeyPatch) -> None:
        for change in changes:
            change(patch)

    return apply


def item_kind(name: str) -> Any:
    """The kind of that name."""
    return InstructionKind(name)


MUTANTS: Mapping[str, Change] = {
    "a doubt is released": _doubt_is_released,
    "silence is sent again": _silence_is_sent_again,
    "unknown is called failed": _failure_is_final,
    "unknown is called done": _unknown_is_confirmed,
    "sent before it is written down": _claim_is_not_committed,
    "the sweep releases": _sweep_releases,
    "the sweep sleeps": _sweep_sleeps,
    "a kept reply is believed": _kept_reply_is_believed,
    "no quarantine": _no_quarantine,
    "one early answer is enough": _one_answer_is_enough_at_once,
    "a refund is proven by the state": _refund_by_state,
    "an unseen refund did not happen": _old_refund_is_forgotten,
    "doubts are approved anew": _not_applied_is_sent_again,
    "bounds forget doubts": _bounds_forget_doubt,
    "no history of outcomes": _history_is_skipped,
    "no history of claims": _claim_event_is_skipped,
    "an unreadable reply is a refusal": _judge(_all(ReplyOutcome.REJECTED)),
    "an unreadable reply is a success": _judge(_all(ReplyOutcome.DONE)),
    "an unreadable reply was not sent": _not_sent_wide,
    "any reply is a success": _judge(_success_is_enough),
    "HTTP 500 did nothing": _judge(_http_500_is_final),
    "outcomes in another order": _rows_by_position,
    "claims take doubts too": _claim_takes_anything,
    "quarantine by the clock on the wall": _quarantine_by_the_wall,
    "answers from before the doubt count": _earlier_answers_count,
    "one wait for all answers": _one_wait_for_all_answers,
    "a reboot ends the wait": _a_reboot_ends_the_wait,
    "uptimes of two machines are compared": _any_boot_is_this,
    "differing answers decide": _halves_are_whole,
    "another id is another wish": _another_id_is_another_wish,
    "nobody looks again at the claim": _nobody_looks_again,
    "numbers are not read": _numbers_are_not_read,
    "nobody is contradicted": _nobody_is_contradicted,
    "stopped for later nights only": _stopped_only_for_later_nights,
    "the first of two rows is taken": _first_row_is_taken,
    **{f"without what holds: {attack}": _all_of(held) for attack, held in HELD_BY.items()},
}
