"""Sign-off of a night by a reviewer and an approver of one workbook; and the list of all nights.

They sign in any order. A signature covers the workbook's SHA-256, which the person states: whoever
looked at another file than the current one cannot sign. It is refused while a high-severity break
lacks an owner or a comment, and it is void once the night, or an earlier one, was run again. A
person may withdraw their signature until both are given.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from recon.archive.step_folder import Document, Sealed
from recon.config.approvers import person_key
from recon.desk.endorsement import Kind
from recon.desk.held_keys import HeldKeys
from recon.files.formats.named_bytes import sha256_of
from recon.instructions.approval import problem_of_role
from recon.matching.breaks.result import subject_of
from recon.matching.classifying.severity import urgency
from recon.model.errors import ArchiveError, ConfigurationError, NightPurgedError, UsageError
from recon.model.resolutions import StoredAnswer, answered_text, lacking, still_there
from recon.model.terms import DIGITS_READ, SEVERE, Verdict
from recon.steps.runtime.environment import Environment, account_of
from recon.steps.runtime.identity import Person
from recon.steps.runtime.night_folder import (
    SIGNED,
    STEPS,
    StoredResult,
    Terms,
    links,
    newest,
    record_sealed,
    refuse_purged,
    write,
)
from recon.steps.runtime.predecessor import (
    BEFORE_OPENING,
    MISSING,
    NO_BUSINESS_DAY,
    STILL_OPEN,
    missed_without_a_run,
)
from recon.store import Connection
from recon.store.database.bulk_rows import rows_of
from recon.store.database.record import RUN, changed
from recon.store.nights import input_rows, runs, sign_off_rows
from recon.store.nights.runs import Run
from recon.store.nights.sign_off_rows import ROLES, Signature
from recon.store.people import resolution_rows

ANSWERS, SIGNATURES, WORKBOOK = "answers.jsonl", "signatures.json", "workbook.xlsx"


@dataclass(frozen=True, slots=True)
class NightToSign:
    """The night that a person wants to sign, and in which role."""

    run_id: str
    role: str
    """Reviewer or approver."""
    seen: str
    """SHA-256 of the file that the person looked at, or at least its first DIGITS_READ digits."""


class SignedCopy(Protocol):
    """Makes the workbook with its signatures and answers; `reports` provides it."""

    def __call__(
        self,
        content: bytes,
        *,
        signatures: Sequence[Signature],
        answers: Mapping[str, StoredAnswer],
        timezone: str,
    ) -> bytes:
        """Return the bytes of the copy."""


def write_signature(
    run: Run,
    *,
    signatures: Sequence[Signature],
    answers: Mapping[str, StoredAnswer],
    copy: SignedCopy,
    environment: Environment,
) -> Sealed:
    """Write the folder of the last of these signatures; it has no effect yet.

    `signatures` are those of the workbook, the new one last; `answers` are by break.

    Raises:
        ArchiveError: the archive cannot be written; nothing that was sealed is changed.
        OutputError: no signed copy can be made of the workbook.
        UsageError: the file changed while it was read.
    """
    signature, path = signatures[-1], Path(run.workbook)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != signature.workbook_sha256:
        msg = f"{path} was changed while it was signed: look at it, then sign again"
        raise UsageError(msg)
    zone = environment.settings.rules.calendar.timezone
    stamped = copy(content, signatures=signatures, answers=answers, timezone=zone)
    with environment.store.reading() as connection:
        recorded = newest(links(connection, run.run_id))
        inputs = input_rows.load(connection, run.run_id)
        rules = runs.digests_of(connection, run.run_id)["rules_digest"]
    rows = ({"break_id": key, **asdict(saved)} for key, saved in sorted(answers.items()))
    lines = "".join(json.dumps(row, sort_keys=True, default=str) + "\n" for row in rows)
    names = [{**asdict(each), "at": each.at.isoformat()} for each in signatures]
    return write(
        run,
        f"{SIGNED}{signature.role}",
        files=[
            Document(ANSWERS, lines.encode()),
            Document(SIGNATURES, f"{json.dumps(names, indent=2, sort_keys=True)}\n".encode()),
            Document(WORKBOOK, stamped),
        ],
        terms=Terms(inputs.previous_run_id if inputs else "", rules),
        after={step: recorded[step] for step in STEPS if step in recorded},
        environment=environment,
    )


NIGHTS_MAX = 400
"""The maximum range of one list: a year and some days."""
BREAKS_DISPLAYED_MAX = 3


@dataclass(frozen=True, slots=True)
class Night:
    """One day of one account: its night, or why it has none."""

    merchant_id: str
    account_id: str
    business_date: date
    run_id: str
    """Empty if it never ran."""
    status: str
    """The verdict, or that it stopped or is still running; without a night that it is missing, was
    skipped and why, or that none was due."""
    signed: tuple[Signature, ...]
    """Valid signatures; void ones are not included."""
    void_because: str
    """Which run made earlier signatures void."""
    unsigned_days: int
    """Days since the night while a signature is missing; 0 once both are given."""
    workbook: str = ""
    """The path to which the run's workbook was written."""
    workbook_sha256: str = ""

    @property
    def due(self) -> bool:
        """Whether a night is expected on this day."""
        return self.status not in (NO_BUSINESS_DAY, BEFORE_OPENING, STILL_OPEN)

    @property
    def signed_text(self) -> str:
        """Who signed its workbook, and for how many days a signature has been missing."""
        names = ", ".join(f"{signature.role} {signature.by}" for signature in self.signed)
        days = f"{self.unsigned_days} day{'s' * (self.unsigned_days != 1)}"
        if not names:
            return f"not signed for {days}" if self.unsigned_days else "not signed"
        return f"signed by {names}" + (f", unsigned for {days}" if self.unsigned_days else "")

    @property
    def exit_code(self) -> int:
        """The exit code of its verdict; a missing or stopped night counts as NOT PROVEN."""
        if self.status in set(Verdict):
            return Verdict(self.status).exit_code
        return Verdict.NOT_PROVEN.exit_code if self.status in {MISSING, "stopped"} else 0


def file_to_sign(run_id: str, *, environment: Environment) -> tuple[str, str]:
    """Return path and SHA-256 of a run's current workbook file; "" if there is none."""
    with environment.store.reading() as connection:
        known = runs.is_known(connection, run_id)
        path = Path(runs.get(connection, run_id).workbook) if known else Path()
    return (str(path), sha256_of(path)) if path.is_file() else ("", "")


@dataclass(frozen=True, slots=True)
class _Signing:
    """The state that a signature covers."""

    night: Run
    run: Run
    before: tuple[Signature, ...]
    answers: Mapping[str, StoredAnswer]


def sign(to_sign: NightToSign, *, person: Person, copy: SignedCopy) -> Night:
    """Sign a night's workbook as one person.

    The signature's folder is written first; the transaction that stores the signature attests it.

    Raises:
        UsageError: the person may not sign, or the night or its workbook cannot be signed.
        NightPurgedError: the night's folder was purged.
        ArchiveError: the archive cannot be written.
        OutputError: no signed copy can be made of the workbook.
    """
    environment = person.environment
    role = to_sign.role
    if role not in ROLES:
        msg = f"a role is one of {', '.join(ROLES)}"
        raise UsageError(msg)
    person.refuse_unproven()
    with environment.store.reading() as connection:
        signing = _allowed(connection, to_sign, person=person)
    digest = signing.night.workbook_sha256
    name = Signature(role, person.declared.name, person.proven, person.at, digest)
    sealed = write_signature(
        signing.run,
        signatures=(*signing.before, name),
        answers=signing.answers,
        copy=copy,
        environment=environment,
    )
    with environment.store.writing() as connection:
        if _allowed(connection, to_sign, person=person) != signing:
            msg = "somebody answered or signed at the same time: look at it, then sign again"
            raise UsageError(msg)
        record_sealed(connection, signing.run, sealed=[sealed], environment=environment)
        says = {"role": role, "workbook_sha256": digest}
        person.endorse(connection, Kind.SIGN_OFF, to_sign.run_id, says=says)
        environment.crash_point("signed off")
        return _night_of(connection, signing.night, environment=environment)


def _allowed(connection: Connection, to_sign: NightToSign, *, person: Person) -> _Signing:
    """Return what the person may sign.

    Raises:
        UsageError: they may not sign it, or it is not what they looked at.
    """
    night = _run_of(connection, to_sign.run_id)
    _refuse_person(connection, night, role=to_sign.role, person=person)
    answers, _ = _refuse_night(connection, night, environment=person.environment)
    _refuse_unseen(connection, night, seen=to_sign.seen)
    names = sign_off_rows.signatures(connection, night.run_id, desk=person.environment.desk)
    before = tuple(names[role] for role in ROLES if role in names)
    return _Signing(night, runs.get(connection, night.run_id), before, answers)


def to_sign(run_id: str, *, environment: Environment) -> str:
    """Describe what a night still lacks before both signatures are given, in a sentence.

    "" for a run that nobody signs: a dry run, a part, or one that has not finished.
    """
    with environment.store.reading() as connection:
        run, _ = _live_run(connection, run_id)
        if run is None or run.status != "finished":
            return ""
        names = sign_off_rows.signatures(connection, run_id, desk=environment.desk)
        left = [role for role in ROLES if role not in names]
        if not left:
            return f"Signed: {_reported(names)}; nothing is missing."
        try:
            _run_of(connection, run_id)
            answers, severities = _refuse_night(connection, run, environment=environment)
        except (UsageError, NightPurgedError, ArchiveError, ConfigurationError) as error:
            return f"Not to be signed yet: {error}."
    zone = environment.settings.rules.business_calendar.zone
    left_open = still_there(severities, answers, night=run.started_at, zone=zone)
    status = "; ".join(filter(None, (answered_text(severities, answers), left_open)))
    missing = " and ".join(left)
    return f"You may sign (`recon sign-off {run_id}`), as {missing}: {status}."


def answers_of(night: Night, *, environment: Environment) -> Mapping[str, StoredAnswer]:
    """Return the stored answers to the account's breaks, by break id."""
    with environment.store.reading() as connection:
        return resolution_rows.stored_answers(connection, (night.merchant_id, night.account_id))


def nights(first: date, *, last: date, environment: Environment) -> list[Night]:
    """Return every day of every declared account: its night, or that it is missing or not due.

    Raises:
        UsageError: the range is empty or too long.
    """
    days = (last - first).days + 1
    if not 1 <= days <= NIGHTS_MAX:
        msg = f"name a range of 1 to {NIGHTS_MAX} nights, not {days}"
        raise UsageError(msg)
    with environment.store.reading() as connection:
        live = sign_off_rows.live_runs(connection, first=first, last=last)
        newest = {(run.merchant_id, run.account_id, run.business_date): run for run in live}
        return [
            night
            for account in map(account_of, sorted(environment.settings.accounts))
            for night in _nights_of(
                account,
                days=[first + timedelta(days=number) for number in range(days)],
                newest=newest,
                connection=connection,
                environment=environment,
            )
        ]


def _nights_of(
    account: tuple[str, str],
    *,
    days: Sequence[date],
    newest: Mapping[tuple[str, str, date], Run],
    connection: Connection,
    environment: Environment,
) -> Iterator[Night]:
    """Yield the days of one account, in order."""
    now, rules = environment.clock(), environment.settings.rules
    today = now.date()
    nights = runs.live_nights(connection, account)
    for day in days:
        night = newest.get((*account, day))
        if night is not None:
            yield _night_of(connection, night, environment=environment)
            continue
        status = missed_without_a_run(day, nights=nights, rules=rules, now=now)
        waits = (today - day).days if status == MISSING else 0
        yield Night(*account, day, "", status, (), "", waits)


def _night_of(connection: Connection, run: Run, *, environment: Environment) -> Night:
    desk, today = environment.desk, environment.clock().date()
    names = sign_off_rows.signatures(connection, run.run_id, desk=desk)
    since = min((name.at for name in names.values()), default=None)
    void = sign_off_rows.replaced_by(connection, run, since=since) if since else ""
    because = f"run {void} replaced it" if void else _earlier_signed(connection, run, desk=desk)
    counting = () if void else tuple(names[role] for role in ROLES if role in names)
    day = run.business_date
    complete = len(counting) == len(ROLES)
    status = run.verdict if run.status == "finished" else run.status
    return Night(
        run.merchant_id,
        run.account_id,
        day,
        run.run_id,
        status,
        counting,
        because,
        0 if complete else (today - day).days,
        run.workbook,
        run.workbook_sha256,
    )


def _earlier_signed(connection: Connection, run: Run, *, desk: HeldKeys) -> str:
    """Return which signed run of the same night this finished one replaced, and who had signed."""
    if run.status != "finished":
        return ""
    earlier = sign_off_rows.signed_earlier(connection, run, desk=desk)
    if earlier is None:
        return ""
    signers = _reported(sign_off_rows.signatures(connection, earlier, desk=desk))
    return f"run {run.run_id} replaced run {earlier}, which {signers} had signed"


def later_run(connection: Connection, run_id: str) -> str:
    """Return the run that replaced a live run; "" if none did, or there is no such run."""
    this, _ = _live_run(connection, run_id)
    return sign_off_rows.replaced_by(connection, this, since=this.started_at) if this else ""


def notes_on(run_id: str, *, connection: Connection, desk: HeldKeys) -> tuple[str, ...]:
    """Return page-one notes on signatures that this run, or a later one, makes void."""
    this, live = _live_run(connection, run_id)
    if this is None:
        return ()
    notes = [
        f"Run {run.run_id} of this night was signed by {who}; this run replaces it: sign this one."
        for run in live
        if run.started_at < this.started_at and run.business_date == this.business_date
        if run.account == this.account
        if (who := _reported(sign_off_rows.signatures(connection, run.run_id, desk=desk)))
    ]
    later = sign_off_rows.replaced_by(connection, this, since=this.started_at)
    if later:
        notes.append(f"Run {later} replaced this run: do not sign this workbook, sign the newest.")
    return tuple(notes)


def _live_run(connection: Connection, run_id: str) -> tuple[Run | None, Sequence[Run]]:
    """Return the live run of this id or None, and all live runs."""
    live = sign_off_rows.live_runs(connection, first=date.min, last=date.max)
    return next((run for run in live if run.run_id == run_id), None), live


def _reported(names: Mapping[str, Signature]) -> str:
    """Return who signed, as "Dan Orr (reviewer) and Anna Berg (approver)"."""
    return " and ".join(f"{names[role].by} ({role})" for role in ROLES if role in names)


def _run_of(connection: Connection, run_id: str) -> Run:
    run, _ = _live_run(connection, run_id)
    if run is None or run.status != "finished":
        msg = f"there is no finished live run {run_id} (`recon nights` lists them)"
        raise UsageError(msg)
    later = sign_off_rows.replaced_by(connection, run, since=run.started_at)
    if later:
        msg = f"run {run_id} was replaced by run {later}: sign that night's newest workbook"
        raise UsageError(msg)
    return run


def _refuse_person(connection: Connection, signed: Run, *, role: str, person: Person) -> None:
    names = sign_off_rows.signatures(connection, signed.run_id, desk=person.environment.desk)
    if role in names:
        msg = f"{names[role].by} signed run {signed.run_id} as {role} already"
        raise UsageError(msg)
    refuse_role(role, person=person)
    for name in names.values():
        if person.is_same(name.by):
            msg = f"{name.by} signed as {name.role}; somebody else signs as {role}"
            raise UsageError(msg)
        if name.workbook_sha256 != signed.workbook_sha256:
            msg = (
                f"{name.by} signed another file of run {signed.run_id} as {name.role}: "
                f"{name.by} takes that back (`recon sign-off {signed.run_id} --take-back`) and "
                "looks at this one first"
            )
            raise UsageError(msg)
        # Every answer must be covered by the signature of someone who did not import it.
        brought = resolution_rows.importers(connection, signed.run_id, since=name.at)
        if any(person.is_same(by) for by in brought):
            msg = (
                f"{person.declared.name} brought answers in after {name.by} had signed as "
                f"{name.role}: {name.by} takes that back (`recon sign-off {signed.run_id} "
                "--take-back`), looks at them and signs again; nothing was signed"
            )
            raise UsageError(msg)


def refuse_role(role: str, *, person: Person) -> None:
    """Check a role, and that somebody is left for the other one, before anything is signed.

    Raises:
        UsageError: the person is no approver and signs as one, or nobody could sign as the other.
    """
    if role == "approver" and (problem := problem_of_role(person.declared)):
        msg = f"{problem}; an approver signs as approver, nothing was signed"
        raise UsageError(msg)
    (other,) = set(ROLES) - {role}
    declared = person.environment.settings.approvers
    mine = person_key(person.short, declared=declared)
    left = [each for short, each in declared.items() if short != mine]
    if not any(other == "reviewer" or not problem_of_role(each) for each in left):
        msg = (
            f"after {person.declared.name} as {role} nobody would be left to sign as {other} "
            "(approvers.toml); nothing was signed"
        )
        raise UsageError(msg)


def _refuse_night(
    connection: Connection, signed: Run, *, environment: Environment
) -> tuple[Mapping[str, StoredAnswer], Mapping[str, str]]:
    """Return its answers and the severity of each break, unless the night cannot be signed."""
    if signed.verdict == Verdict.NOT_PROVEN:
        msg = f"the night of {signed.business_date} is NOT PROVEN: nobody can sign it"
        raise UsageError(msg)
    refuse_purged(connection, signed.run_id)
    path = Path(signed.workbook)
    if not path.is_file() or sha256_of(path) != signed.workbook_sha256:
        msg = (
            f"{signed.workbook or 'the workbook'} is not the file that run {signed.run_id} wrote; "
            "where somebody saved answers into it, bring them in (`recon import-resolutions`), "
            f"which writes the workbook again with them; else `recon workbook {signed.run_id}` "
            "does; then look at that one"
        )
        raise UsageError(msg)
    breaks = StoredResult(connection, signed.run_id, environment).open_breaks()
    rows = [] if breaks is None else rows_of(breaks)
    severities = {str(row["break_id"]): str(row["severity"]) for row in rows}
    every = resolution_rows.stored_answers(connection, signed.account)
    answers = {key: saved for key, saved in every.items() if key in severities}
    alone = [] if breaks is None else not_looked_after(breaks, saved=answers)
    if alone:
        named = ", ".join(subject_of(row) for row in alone[:BREAKS_DISPLAYED_MAX])
        severe, _ = lacking(severities, answers)
        msg = (
            f"{len(alone)} of {severe} high and critical breaks have no owner or no comment "
            f"({named}): answer them in the workbook and import it (`recon import-resolutions`)"
        )
        raise UsageError(msg)
    return answers, severities


def _refuse_unseen(connection: Connection, signed: Run, *, seen: str) -> None:
    """Refuse a file that the person did not look at, or whose stored row was tampered with."""
    if problem := next(changed(connection, RUN), ""):
        msg = f"{problem}: nobody signs until `recon verify` agrees"
        raise UsageError(msg)
    if len(seen) < DIGITS_READ:
        msg = f"say which file you looked at: the first {DIGITS_READ} digits of its SHA-256"
        raise UsageError(msg)
    if not signed.workbook_sha256.startswith(seen):
        msg = (
            f"{signed.workbook} is not the file that you looked at: its SHA-256 begins with "
            f"{signed.workbook_sha256[:DIGITS_READ]}, yours with {seen[:DIGITS_READ]}; look at "
            "the one that lies there now, and sign that one"
        )
        raise UsageError(msg)


def not_looked_after(
    breaks: pd.DataFrame, *, saved: Mapping[str, StoredAnswer]
) -> list[Mapping[str, Any]]:
    """Return breaks of severity high or above without owner or comment, most urgent first."""
    severe = breaks[breaks["severity"].isin(SEVERE)]
    return [
        row
        for row in sorted(rows_of(severe), key=urgency)
        if not ((answer := saved.get(row["break_id"])) and answer.answer.is_looked_after)
    ]
