"""The gate before money is sent: control totals, the history chain, unproven nights.

A failed total or a broken chain closes the gate for everything. An unproven earlier night, or a
ledger that could not be read, holds refunds and payouts only; captures and cancels go on, since
authorisations lapse.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path

from recon.config.limits import CurrencyLimits
from recon.desk.endorsement import Kind
from recon.desk.held_keys import HeldKeys
from recon.instructions.instruction import Instruction
from recon.instructions.planning import (
    RULE_APPROVER,
    TWO_PEOPLE,
    RuleAllowance,
    SendingAllowance,
)
from recon.model.business_date import BusinessCalendar, midnight
from recon.model.errors import HistoryBrokenError, UsageError
from recon.model.terms import ControlTotal, InstructionKind, InstructionState
from recon.privacy.own_files import make_folder
from recon.steps.files.incomplete import WHOLE_FILE
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.gateway_answers import unbound
from recon.steps.runtime.identity import (
    REASON_CHARACTERS_MAX,
    Person,
    decide,
    lost_endorsement,
    names_of,
)
from recon.steps.runtime.predecessor import held_nights
from recon.store import Connection
from recon.store.database import history, record
from recon.store.database.engine import Store
from recon.store.database.history import NOTHING, Event, Head, save_verified, verified
from recon.store.database.outside_heads import (
    ACCEPTED_RESTORE,
    HeadFile,
    first_foreign,
    missing,
    problem_of,
)
from recon.store.database.record import BEFORE_MONEY, INSTRUCTION, changed_in, tampered
from recon.store.money import case_rows, endorsement_rows, instruction_rows, sending_rows
from recon.store.money.endorsement_rows import Endorsed, start_problem
from recon.store.money.instruction_rows import move
from recon.store.money.sending_rows import Stopped
from recon.store.nights import facts_rows, journal_rows, order_rows, runs
from recon.store.nights.runs import Run
from recon.store.people.decision_rows import not_agreed

ENTITY = "database"
ACCEPTED = ACCEPTED_RESTORE
SUBJECT_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Accepts:
    """What people accept as lost when they accept a restored database."""

    lost: Mapping[str, str] = field(default_factory=dict)
    """Account -> the newest noted link that the database lacks; absent where it lacks none."""
    after: int = 0
    """The link of the previous acceptance; 0 if there was none."""

    @property
    def subject(self) -> str:
        """The digest that identifies this acceptance."""
        document = json.dumps([dict(self.lost), self.after], sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()[:SUBJECT_DIGITS]

    @property
    def says(self) -> dict[str, str]:
        """The fields recorded with a person's decision."""
        return {"lost": json.dumps(dict(self.lost), sort_keys=True), "after": str(self.after)}


def noted(head: Head) -> str:
    """Format a link as "sequence:hash"."""
    return f"{head.sequence}:{head.hash}"


def what_is_lost(connection: Connection, *, environment: Environment) -> Accepts:
    """Return what would be lost by accepting the database in its current state."""
    lost = {}
    for name, account in sorted(environment.settings.accounts.items()):
        notes = HeadFile(account.reports).current().notes
        if notes and first_foreign(connection, notes) is not None:
            lost[name] = noted(notes[-1].head)
    return Accepts(lost, max((link for link, _ in _events(connection)), default=0))


def given_up(connection: Connection, *, account: str) -> int:
    """Return the newest link of an account that was accepted as lost; 0 if there is none."""
    lost = (accepts.lost.get(account, "0:") for _, accepts in _events(connection))
    return max((int(link.partition(":")[0]) for link in lost), default=0)


def unagreed(file: HeadFile, *, account: tuple[str, str], environment: Environment) -> str:
    """Return why the restore that a head file rests on is not endorsed; "" if it is."""
    accepted = file.accepted()
    if accepted is None:
        return ""
    acceptance, before = accepted
    name = "/".join(account)
    desk = environment.desk
    with environment.store.reading() as connection:
        link = acceptance.head.sequence
        if (accepts := dict(_events(connection)).get(link)) is None:
            return f"{file.path} says that a restore was accepted, and the history does not"
        if problem := _unendorsed_restore(connection, desk, link=link, accepts=accepts):
            return f"{problem}; nothing is sent (`recon approve --hold restore`)"
        lacks = before is not None and first_foreign(connection, [before]) is not None
        if lacks and before is not None and accepts.lost.get(name) != noted(before.head):
            return (
                f"{file.path} has link {before.head.sequence} before the restore that was "
                "accepted, and nobody accepted that it is lost (`recon approve --hold restore`)"
            )
    return ""


def unendorsed_restores(connection: Connection, desk: HeldKeys) -> Iterator[str]:
    """Yield a problem for each recorded acceptance that lacks valid endorsements by two people."""
    for link, accepts in _events(connection):
        if problem := _unendorsed_restore(connection, desk, link=link, accepts=accepts):
            yield problem


def _unendorsed_restore(
    connection: Connection, desk: HeldKeys, *, link: int, accepts: Accepts
) -> str:
    why = not_agreed(connection, Kind.ACCEPT_RESTORE, subject=accepts.subject, desk=desk)
    return f"the restore of link {link} counts as accepted, but {why}" if why else ""


def _events(connection: Connection) -> Iterator[tuple[int, Accepts]]:
    for link in history.links_of(connection, entity=ENTITY, event=ACCEPTED):
        yield link.sequence, link.value(Accepts)


NOTIFIED = "the database was restored: it may have been sent after the backup was made"


def restored_since(run: Run, *, environment: Environment) -> str:
    """Return why the database is older than an earlier state of it; "" if it is not."""
    account, file = run.account, _file_of(run, environment=environment)
    missing_link = link_missing(environment.store, reports=file.path.parent, account=account)
    return missing_link or unagreed(file, account=account, environment=environment)


def link_missing(store: Store, *, reports: Path, account: tuple[str, str]) -> str:
    """Describe what the head file in `reports` has and this database lacks; "" for nothing."""
    return problem_of(HeadFile(reports), accounts=[account], reading=store.reading)


def note_head(run: Run, *, environment: Environment) -> None:
    """Write the newest link to the head file in the reports folder; it is on disk on return.

    Raises:
        HistoryBrokenError: the file has a link that this database lacks. Such a database notes
            nothing: its own link would vouch for it in the next night, and the newest database
            would look restored when it is put back. Only people can accept it.
        OutputError: the file cannot be written.
    """
    file = _file_of(run, environment=environment)

    def own_head() -> Head | str:
        current = file.current()
        # Read only now: this snapshot must include what the file has.
        with environment.store.reading() as connection:
            problem = missing(connection, file, current=current, accounts=[run.account])
            return problem or history.head(connection)

    if foreign := file.note(own_head, of=f"run {run.run_id}", at=environment.clock()):
        msg = f"{foreign}. This run sends nothing more"
        raise HistoryBrokenError(msg)


def _file_of(run: Run, *, environment: Environment) -> HeadFile:
    return HeadFile(
        environment.settings.account(run.merchant_id, account_id=run.account_id).reports
    )


def by_people_only(connection: Connection, run: Run, *, calendar: BusinessCalendar) -> bool:
    """Return whether the run may meet files that the restored database knew and has lost.

    True for every business date up to the one open when people accepted the restore, and for the
    account's first whole night after that, whatever its date: it reads what had arrived by then.
    """
    moments = [link.at for link in history.links_of(connection, entity=ENTITY, event=ACCEPTED)]
    if not moments:
        return False
    moment = max(moments)
    open_then = calendar.business_date_of(moment)
    return run.business_date <= open_then or not runs.any_finished_since(
        connection, run, since=moment
    )


def accept_restore(*, person: Person, reason: str, environment: Environment) -> int | None:
    """Record one person's acceptance of a restored database.

    Returns:
        How many instructions now wait for people; None while a second person must accept it too.

    Raises:
        UsageError: the person's decision does not count (`identity.decide`).
        HistoryBrokenError: the restored chain itself is broken.
    """
    with environment.store.writing() as connection:
        now = environment.clock()
        _, problem = history.verify(connection)
        if problem := problem or next(tampered(connection, INSTRUCTION), ""):
            # No acceptance can repair a history whose chain is broken.
            msg = (
                f"{problem}. This database was not only restored: nothing was accepted. Keep it, "
                "restore another backup, and run `recon verify` on that one"
            )
            raise HistoryBrokenError(msg)
        accepts = what_is_lost(connection, environment=environment)
        head = noted(history.head(connection))
        both = decide(
            connection,
            Kind.ACCEPT_RESTORE,
            accepts.subject,
            person=person,
            says={"reason": reason, "head": head, **accepts.says},
        )
        if both is None:
            return None
        waiting = instruction_rows.find(connection, state=endorsement_rows.UNSENT)
        events = [
            move(
                connection,
                item,
                to=InstructionState.NEEDS_HUMAN,
                values={"message": NOTIFIED, "hold": "", "in_doubt_since": now},
            )
            for item in waiting
        ]
        waiting_ids = [item.instruction_id for item in waiting]
        case_rows.note_clocks(connection, waiting_ids, uptime=environment.uptime(), at=now)
        details = {"by": names_of(both), "reason": reason.strip(), "instructions": len(waiting)}
        details |= history.document_of(accepts)
        accepted = history.append(
            connection, [*events, Event(ENTITY, ENTITY, ACCEPTED, details)], at=now
        )
    for account in environment.settings.accounts.values():
        make_folder(account.reports)
        HeadFile(account.reports).note(lambda: accepted, of=ACCEPTED_RESTORE, at=now)
    return len(waiting)


UNTIED_DISPLAYED_MAX = 3
"""The number of failed control totals named in a message."""
HELD_KINDS = frozenset({InstructionKind.REFUND, InstructionKind.PAYOUT})


@dataclass(frozen=True, slots=True)
class Gate:
    """The decision of the gate for one run."""

    closed_because: str
    """If not empty, nothing may be sent."""
    held_because: str
    """If not empty, refunds and payouts wait."""

    def hold_on(self, kind: InstructionKind) -> str:
        """Return why this kind of instruction waits; "" if it may be sent."""
        return self.closed_because or (self.held_because if kind in HELD_KINDS else "")


def evaluate(
    *, chain_problem: str, unproven_nights: Mapping[date, str], ledger_unread: str = ""
) -> Gate:
    """Return the gate decided by everything except the control totals (see `tied`).

    `unproven_nights` maps each date to why its release does not count ("" if there is none);
    `ledger_unread` is why the ledger was not read.
    """
    closed = f"the history does not hold: {chain_problem}" if chain_problem else ""
    held = []
    if unproven_nights:
        dates = ", ".join(
            f"{day} ({why})" if why else str(day) for day, why in unproven_nights.items()
        )
        held.append(
            f"the night of {dates} is NOT PROVEN; refunds wait until it is run again and proven, "
            "or two people release it (`recon approve --hold`)"
        )
    if ledger_unread:
        held.append(
            f"the ledger was not read ({ledger_unread}); refunds and payouts wait until it is, "
            "captures and cancels go on"
        )
    return Gate(closed, "; ".join(held))


def gate_of(run: Run, *, environment: Environment) -> Gate:
    """Return the gate of one run before it sends, without its control totals."""
    foreign = restored_since(run, environment=environment)
    if not foreign and _file_of(run, environment=environment).current().unresolved:
        # A process ended between its note and the end of its commit. If this database has its
        # link, that note becomes final with the newest link; if not, the commit never happened.
        note_head(run, environment=environment)
    endorsements = Endorsed(environment.desk)
    lost = lost_endorsement(environment.desk, store=environment.store)
    with environment.store.reading() as connection:
        problem = _history_problem(connection, run, environment=environment) or foreign or lost
        unproven = held_nights(connection, run.account, environment=environment)
        problem = (
            problem
            or unbound(connection, run, environment=environment)
            # An approval, or the end of a stop, that the approvals service never signed.
            or start_problem(connection, environment.desk)
            or next(endorsements.row_problems(connection, at=environment.clock()), "")
            or endorsements.taken_away(connection)
        )
        unread = journal_rows.unread(connection, run.run_id, whole_file=WHOLE_FILE)
    return evaluate(chain_problem=problem, unproven_nights=unproven, ledger_unread=unread)


def tied(gate: Gate, *, totals: Sequence[ControlTotal]) -> Gate:
    """Return the gate, closed for everything if a control total fails or none was computed."""
    untied = "; ".join(
        f"{total.id} {total.name}: {total.left} is not {total.right}"
        for total in [total for total in totals if not total.passed][:UNTIED_DISPLAYED_MAX]
    )
    if totals and not untied:
        return gate
    return _closed(gate, f"a control total before money does not tie: {untied or 'none was asked'}")


def _history_problem(connection: Connection, run: Run, *, environment: Environment) -> str:
    """Return why the chain is broken or a stored row was changed; "" if neither.

    Only links since the account's last verified head are read; `recon verify` reads them all.
    """
    folder = environment.settings.account(run.merchant_id, account_id=run.account_id).reports
    before = verified(folder)
    if not history.has_link(connection, before):
        before = NOTHING
    head, problem = history.verify(connection, after=before)
    if not problem:
        save_verified(folder, head)
    return (
        problem
        or next(record.tampered(connection, INSTRUCTION), "")
        or next(endorsement_rows.back_again(connection), "")
        or next(record.changed(connection, INSTRUCTION, where=endorsement_rows.MAY_LEAVE), "")
        or next(changed_in(connection, BEFORE_MONEY), "")
        or next(order_rows.changed_actions(connection, run), "")
        or next(facts_rows.changed(connection), "")
    )


NAME_CHARACTERS_MAX = 100
NOT_BY_RULE = f"{TWO_PEOPLE}: a rule approved it earlier, and no rule approves for it now"


def stop_sending(*, by: str, reason: str, environment: Environment) -> None:
    """Stop all sending from now on: a running night ends before its next batch.

    Raises:
        UsageError: name or reason is missing or too long, or sending is already stopped.
    """
    name, why = by.strip(), reason.strip()
    if not name or not why:
        msg = "say who does it (--as) and why (--reason); nothing was changed"
        raise UsageError(msg)
    if len(name) > NAME_CHARACTERS_MAX or len(why) > REASON_CHARACTERS_MAX:
        msg = (
            f"a name has at most {NAME_CHARACTERS_MAX} characters and a reason "
            f"{REASON_CHARACTERS_MAX}; nothing was changed"
        )
        raise UsageError(msg)
    with environment.store.writing() as connection:
        stop = sending_rows.stopped(connection)
        if stop is not None:
            msg = f"{stop}; nothing was changed"
            raise UsageError(msg)
        sending_rows.turn_switch(connection, stop=True, by=name, reason=why, at=environment.clock())


def allow_sending(*, person: Person, reason: str, environment: Environment) -> bool:
    """Record one person's agreement to send again; True if it is the second and sending resumes.

    Raises:
        UsageError: sending is not stopped, or the decision does not count (`identity.decide`).
    """
    with environment.store.writing() as connection:
        stop = sending_rows.stopped(connection)
        if stop is None:
            msg = "sending is not stopped; nothing was changed"
            raise UsageError(msg)
        says = {"reason": reason}
        both = decide(connection, Kind.ALLOW_SENDING, str(stop.turn), person=person, says=says)
        if both is not None:
            by, why, at = names_of(both), reason.strip(), environment.clock()
            sending_rows.turn_switch(connection, stop=False, by=by, reason=why, at=at)
    return both is not None


def sending_stopped(environment: Environment) -> Stopped | None:
    """Return who stopped all sending; None while money may be sent."""
    with environment.store.reading() as connection:
        return sending_rows.stopped(connection)


def halted(gate: Gate, *, environment: Environment) -> Gate:
    """Return the gate, closed for everything while sending is stopped."""
    stop = sending_stopped(environment)
    if stop is None:
        return gate
    return _closed(gate, str(stop))


def _closed(gate: Gate, because: str) -> Gate:
    return replace(gate, closed_because="; ".join(filter(None, (because, gate.closed_because))))


class Allowances:
    """What limits.toml still allows one run to approve by rule, and to send."""

    def __init__(self, connection: Connection, run: Run, *, environment: Environment) -> None:
        self._connection, self._run, self._settings = connection, run, environment.settings
        self._calendar = environment.settings.rules.business_calendar
        self._clock = environment.clock
        self._account = environment.settings.account(run.merchant_id, account_id=run.account_id)

    def rule(self) -> RuleAllowance:
        """Return what planning may still approve by rule, less what it approved earlier tonight."""
        connection, run = self._connection, self._run
        approved = sending_rows.approved_by_rule(connection, run)
        return self._rule(approved, paid_before=sending_rows.paid_payees(connection, run))

    def _rule(
        self, approved: Mapping[str, int], *, paid_before: AbstractSet[str] = frozenset()
    ) -> RuleAllowance:
        return RuleAllowance(
            self._bounds,
            approved=approved,
            paid_before=paid_before,
            needs_limit=not self._settings.is_sandbox,
        )

    def rule_approves(self) -> bool:
        """Return whether a rule may approve at all tonight; if not, everything waits for people."""
        return self._account.auto_approve and not by_people_only(
            self._connection, self._run, calendar=self._calendar
        )

    def no_longer_by_rule(self, approved: Iterable[Instruction]) -> dict[str, str]:
        """Map instruction id -> why its rule, evaluated again, no longer approves it.

        What an earlier night (a dry run too) approved by rule is valid only within today's rule:
        each night's sum is counted again under today's limits, starting with what was already sent
        of it.
        """
        by_rule = [item for item in approved if item.approved_by == RULE_APPROVER]
        if not by_rule:
            return {}
        if not self.rule_approves():
            return dict.fromkeys((item.instruction_id for item in by_rule), NOT_BY_RULE)
        nights = sending_rows.nights_planned(self._connection, self._run)
        used = sending_rows.used_by_rule(self._connection, self._run, nights=nights.values())
        allowances: dict[date, RuleAllowance] = {}
        reasons = {}
        for item in by_rule:
            night = nights.get(item.instruction_id, self._run.business_date)
            if night not in allowances:
                allowances[night] = self._rule(used.get(night, {}))
            if because := allowances[night].hold_on(
                item.kind, currency=item.currency, amount=item.amount
            ):
                reasons[item.instruction_id] = because
        return reasons

    def sending(self) -> SendingAllowance:
        """Return what may still be sent in this night and on this calendar day."""
        today = self._calendar.local_date(self._clock())
        start, end = (
            midnight(day, zone=self._calendar.zone) for day in (today, today + timedelta(days=1))
        )
        return SendingAllowance(
            self._bounds,
            night=sending_rows.sent_this_night(self._connection, self._run),
            day=sending_rows.sent_between(self._connection, self._run, start=start, end=end),
        )

    def _bounds(self, currency: str) -> CurrencyLimits:
        account = f"{self._run.merchant_id}/{self._run.account_id}"
        return self._settings.limits.of(account, currency=currency)
