"""Identity and agreement of people: a declared person, proven by a current one-time code.

A code counts once, also within its thirty seconds; after some wrong ones whoever gave them must
wait, and nobody else. Secrets come from the environment or a file of mode 0600 and are never
stored, printed or logged. A decision is signed by the desk in the transaction that notes it.

To override a stop, two different people decide the same, in any order, one of them an approver.

The first decision is valid until the end of the next business day, as an approval is, or as long as
its caller says; until the second is given its person may take it back. With a gateway that moves
real money each decision needs a current one-time code.

The desk, which accepts decisions, is one process per database: its files are its own, and it works
only while the database has every endorsement that it signed.
"""

import hmac
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path

import pyotp
from pydantic import SecretStr

from recon.config.approvers import Approver, person_key
from recon.config.keys import given, key_of_file
from recon.desk.endorsement import (
    OVERRIDES,
    Endorsement,
    Kind,
    endorse,
    essence_of,
    instant,
    named,
)
from recon.desk.held_keys import SET_UP, SOCKET, HeldKeys, LastSignature, Memory
from recon.instructions.approval import Decides, problem_of_others, problem_of_role, problem_of_two
from recon.instructions.money_requests import EndorsementsOf, InstructionEndorsements
from recon.model.business_date import Grace
from recon.model.errors import ConfigurationError, NightHeldError, UsageError
from recon.privacy.own_files import others_may_change
from recon.steps.runtime.environment import Environment, is_on_this_machine
from recon.store import Connection
from recon.store.database.engine import Store
from recon.store.database.night_lock import desk_lock
from recon.store.money import endorsement_rows
from recon.store.money.endorsement_rows import Endorsed
from recon.store.people import decision_rows
from recon.store.people.decision_rows import code_turn, states_of, unexpired
from recon.store.schema import endorsement

CODE_SECONDS = 30
CODE_WINDOW_STEPS = 1
"""A code of the step before or after still counts: clocks differ."""
WRONG_CODES_MAX = 5
"""Wrong codes for one person from one login; after that each try waits, longer and longer."""
WRONG_CODES_WITHIN = timedelta(hours=1)
WAIT_FIRST = timedelta(minutes=1)
WAIT_MAX = timedelta(minutes=15)
NAME_CHARACTERS_MAX = 100
NONCE_BITS = 128
VALID = Grace.parse("1bd")
REASON_CHARACTERS_MIN = 10
REASON_CHARACTERS_MAX = 300


@dataclass(frozen=True, slots=True)
class Person:
    """A person who is identified now."""

    short: str
    declared: Approver
    proven: bool
    """Whether a one-time code proved it."""
    at: datetime
    environment: Environment = field(repr=False)
    """Environment of the process that accepts the decision."""
    before: str = ""
    """Sentence on wrong codes given in this name since the last decision; "" for none."""

    @property
    def as_text(self) -> str:
        """The full name, and whether a one-time code proved it."""
        return named(self.declared.name, proven=self.proven)

    def is_same(self, other: str) -> bool:
        """Whether a noted name is that of this person."""
        declared = self.environment.settings.approvers
        own = person_key(self.declared.name, declared=declared)
        return own == person_key(other, declared=declared)

    def refuse_unproven(self) -> None:
        """Refuse a person without a one-time code where real money is concerned.

        Raises:
            UsageError: the gateway is not on this machine, and no one-time code is set up for them.
        """
        if not self.proven and not is_on_this_machine(self.environment.settings):
            msg = (
                f"this counts with a current one-time code only, and none is set up for "
                f"{self.short} (`recon enrol {self.short}`); nothing was changed"
            )
            raise UsageError(msg)

    def refuse_second(self, first: str, *, decides: Decides = problem_of_role) -> None:
        """Check both people before the decision of the second is noted.

        Raises:
            UsageError: they are one person, or neither is the approver that is needed.
        """
        if self.is_same(first):
            msg = f"{first} said so already; a second person must say the same"
            raise UsageError(msg)
        declared = self.environment.settings.approvers
        other = declared.get(person_key(first, declared=declared)) or self.declared
        if problem := problem_of_two((other, self.declared), decides=decides):
            msg = f"{problem}; nothing was changed"
            raise UsageError(msg)

    def refuse_alone(self, *, decides: Decides = problem_of_role) -> None:
        """Check who could be the second before the decision of the first is noted.

        Raises:
            UsageError: nobody who is declared could.
        """
        declared = self.environment.settings.approvers.values()
        if problem := problem_of_others(self.declared, declared=declared, decides=decides):
            msg = f"{problem}; nothing was changed"
            raise UsageError(msg)

    def endorse(
        self,
        connection: Connection,
        kind: Kind,
        subject: str,
        *,
        items: Mapping[str, str] | None = None,
        says: Mapping[str, str] | None = None,
        valid_until: datetime | None = None,
    ) -> None:
        """Sign and store what the person agrees to now, as the desk.

        Raises:
            UsageError: this process is not the desk, so no decision can be endorsed here.
        """
        desk = self.environment.desk
        if desk.private is None:
            msg = (
                "this process is not the desk, so nobody's decision counts here: give it through "
                "`recon serve desk` (RECON_DESK_SOCKET)"
                if desk.public
                else f"there is no desk, so nobody's decision counts: {SET_UP}"
            )
            raise UsageError(f"{msg}; nothing was changed")
        nonce, at = f"{self.environment.randomness.getrandbits(NONCE_BITS):032x}", self.at
        decision = Endorsement(
            kind=kind,
            subject=subject,
            items=items or {},
            says=says or {},
            person=self.short,
            name=self.declared.name,
            role=self.declared.role,
            proven=self.proven,
            at=instant(at),
            valid_until=instant(valid_until) if valid_until else "",
            sequence=endorsement_rows.next_sequence(connection),
            nonce=nonce,
            database=endorsement_rows.named_database(connection, chance=nonce, at=at),
        )
        endorsement_rows.save(
            connection, endorse(decision, key=desk.private), statement=decision, at=at
        )


def identify(
    short: str, *, code: SecretStr | None, environment: Environment, origin: str = ""
) -> Person:
    """The declared person behind a name, authenticated where a secret is configured.

    `origin` is the login that gave the code, as the socket reports it; "" is this process's own.

    Raises:
        UsageError: nobody of that name; no code; a wrong, used or late code; or too many wrong
            ones.
        ConfigurationError: the person's secret is named but missing, or also another person's.
    """
    every = environment.settings.approvers
    known_as = person_key(short, declared=every)
    declared = every.get(known_as)
    if declared is None:
        known = ", ".join(sorted(every)) or "nobody"
        msg = f"approvers.toml declares no {short!r} (declared: {known}); nothing was changed"
        raise UsageError(msg)
    short = known_as
    secret = code_secret(declared, short=short, variables=environment.variables)
    before = ""
    if secret is not None:
        _refuse_shared(secret, short=short, environment=environment)
        who = (short, origin or f"login {os.geteuid()}")
        before = _check_code(who, secret=secret, code=code, environment=environment)
    return Person(short, declared, secret is not None, environment.clock(), environment, before)


def speaker(
    name: str, *, code: SecretStr | None, environment: Environment, origin: str = ""
) -> Person:
    """The person who decides something that moves no money.

    Where people are declared it is one of them, proven as everywhere; with a gateway on this
    machine and nobody declared, any name is accepted.

    Raises:
        UsageError: no name, nobody of that name is declared, or as `identify` says.
    """
    free = " ".join(name.split())
    if not free or len(free) > NAME_CHARACTERS_MAX:
        msg = f"say who does it (--as), in at most {NAME_CHARACTERS_MAX} characters"
        raise UsageError(msg)
    if not environment.settings.approvers and is_on_this_machine(environment.settings):
        anybody = Approver.model_construct(name=free)
        return Person(free, anybody, proven=False, at=environment.clock(), environment=environment)
    return identify(name, code=code, environment=environment, origin=origin)


def code_secret(
    declared: Approver, *, short: str, variables: Mapping[str, str]
) -> SecretStr | None:
    """The secret of a person's one-time codes; None if none is named.

    Raises:
        ConfigurationError: it is named, but missing or not readable here.
    """
    if declared.code_secret_file is not None:
        return SecretStr(key_of_file(declared.code_secret_file))
    if not declared.code_secret_env:
        return None
    secret = variables.get(declared.code_secret_env, "").strip()
    if not secret:
        msg = (
            f"the environment variable {declared.code_secret_env} with the secret of {short} is "
            "not set; without it nobody can prove to be that person"
        )
        raise ConfigurationError(msg)
    return SecretStr(secret)


def _refuse_shared(secret: SecretStr, *, short: str, environment: Environment) -> None:
    """Refuse one secret under two names, wherever stored: one person could be two by it."""
    mine = _bare(secret)
    for other, declared in environment.settings.approvers.items():
        if other == short:
            continue
        try:
            theirs = code_secret(declared, short=other, variables=environment.variables)
        except ConfigurationError:
            # Missing here or not readable by this login: then it proves nobody here either.
            continue
        if theirs is not None and hmac.compare_digest(_bare(theirs), mine):
            msg = (
                f"{short} and {other} have the same secret of one-time codes: each person needs "
                "their own (`recon enrol`); nothing was changed"
            )
            raise ConfigurationError(msg)


def _bare(secret: SecretStr) -> bytes:
    """The secret in the form codes are made of: base32 without case, blanks and padding."""
    return "".join(secret.get_secret_value().split()).rstrip("=").casefold().encode()


def _check_code(
    who: tuple[str, str], *, secret: SecretStr, code: SecretStr | None, environment: Environment
) -> str:
    """Use up a right code; returns a sentence on wrong ones given in this name before, or ""."""
    short, origin = who
    if code is None:
        msg = f"{short} proves to be {short} with the current one-time code (--code)"
        raise UsageError(msg)
    problem = before = ""
    is_wrong = False
    # One transaction counts, checks and notes: simultaneous tries are counted one by one, each at
    # the time of its turn and never before the one it waited for. It is committed even if the call
    # fails.
    with code_turn(environment.desk.codes, store=environment.store) as connection:
        now = environment.wall_clock()
        step = _step_of(secret, code=code.get_secret_value(), at=int(now.timestamp()))
        wrong = decision_rows.wrong_codes(
            connection, short, origin=origin, since=now - WRONG_CODES_WITHIN
        )
        if wrong and (until := waits_until(wrong)) > now:
            problem = (
                f"{len(wrong)} wrong codes for {short} came from here ({origin}): wait, then try "
                f"again at {until:%H:%M:%S} UTC; {short} may decide from elsewhere meanwhile"
            )
        elif step is None:
            decision_rows.note_wrong_code(connection, short, origin=origin, at=now)
            problem, is_wrong = f"the code of {short} is not right; nothing was changed", True
        else:
            before = _reported_before(connection, short)
            if not decision_rows.use_code(connection, short, time_step=step, at=now):
                problem = f"the code of {short} was used before; wait for the next one"
    if is_wrong:
        with environment.store.writing() as connection:
            at = environment.clock()
            decision_rows.notify_wrong_code(connection, short, origin=origin, at=at)
    if problem:
        raise UsageError(problem)
    return before


def waits_until(wrong: Sequence[datetime]) -> datetime:
    """When the next try counts, after wrong codes at these instants, oldest first.

    The first few cause no wait; each further one doubles it, up to `WAIT_MAX`.
    """
    beyond = len(wrong) - WRONG_CODES_MAX
    if beyond < 0:
        return wrong[-1]
    return wrong[-1] + min(WAIT_FIRST * (1 << beyond), WAIT_MAX)


def _reported_before(connection: Connection, short: str) -> str:
    """Sentence on wrong codes in a person's name since their last decision, to inform them."""
    tried = decision_rows.wrong_since_last_decision(connection, short)
    return "; ".join(
        f"{count} wrong codes were given in your name ({origin})"
        for origin, count in sorted(tried.items())
    )


def _step_of(secret: SecretStr, *, code: str, at: int) -> int | None:
    try:
        codes = pyotp.TOTP(secret.get_secret_value(), interval=CODE_SECONDS)
        for offset in range(-CODE_WINDOW_STEPS, CODE_WINDOW_STEPS + 1):
            moment = at + offset * CODE_SECONDS
            if codes.verify(code.strip(), for_time=moment):
                return moment // CODE_SECONDS
    except (ValueError, TypeError) as error:
        msg = "the secret of the one-time codes is not base32 of 128 bits or more; enrol again"
        raise ConfigurationError(msg) from error
    return None


def endorsements_for_signer(environment: Environment) -> EndorsementsOf:
    """Function that loads the endorsements by which a signing process checks a batch itself."""
    known = Endorsed(environment.desk)

    def decisions(instruction_ids: Sequence[str]) -> InstructionEndorsements:
        with environment.store.reading() as connection:
            attested, signed = known.passed_on(connection, instruction_ids)
        return InstructionEndorsements(attested, [asdict(endorsement) for endorsement in signed])

    return decisions


def waiting_on(
    connection: Connection, kind: Kind, *, subject: str, environment: Environment
) -> list[Endorsement]:
    """Decisions on one subject that wait for a second person, oldest first."""
    found = decision_rows.state_of(connection, kind, subject=subject, desk=environment.desk)
    return [*_counting(found.waiting, environment=environment)]


def every_waiting(
    connection: Connection, *kinds: Kind, environment: Environment
) -> list[Endorsement]:
    """All decisions of some kinds that wait for their second person, oldest first."""
    at = environment.clock()
    found = (
        _counting(each.waiting, environment=environment)
        for kind in kinds
        for each in states_of(connection, kind, unexpired(at), desk=environment.desk).values()
    )
    return sorted(chain.from_iterable(found), key=lambda each: each.sequence)


def _counting(waiting: Iterable[Endorsement], *, environment: Environment) -> Iterator[Endorsement]:
    """Those that have not expired, and whose person is declared in the same role."""
    at, declared = environment.clock(), environment.settings.approvers
    for each in waiting:
        now = declared.get(person_key(each.name, declared=declared))
        if each.ends_at >= at and (not declared or (now is not None and now.role == each.role)):
            yield each


def decide(
    connection: Connection,
    kind: Kind,
    subject: str,
    *,
    person: Person,
    items: Mapping[str, str] | None = None,
    says: Mapping[str, str] | None = None,
    decides: Decides = problem_of_role,
    valid: Grace | None = VALID,
) -> tuple[Endorsement, Endorsement] | None:
    """Take in one person's decision; that of both people if it is the second, else None.

    Args:
        connection: Of the transaction in which it is stored, and its effect if it is the second.
        kind: Of the decision.
        subject: What it is about; what somebody else saw otherwise is another subject.
        person: Who decides.
        items: The instructions, with the digest of their terms, if it is about some.
        says: What is signed besides; of an override its reason, among others.
        decides: Tells who can be the approver among the two.
        valid: How long the first decision waits for the second; None: for ever.

    Raises:
        UsageError: no reason, an identity that no code proves, the first person again, no approver
            among them, or nobody who could be the second.
    """
    environment, content = person.environment, {**(says or {})}
    if kind in OVERRIDES:
        content["reason"] = _stated_why(content["reason"])
    person.refuse_unproven()
    before = decision_rows.state_of(connection, kind, subject=subject, desk=environment.desk)
    counting = [*_counting(before.waiting, environment=environment)]
    alike = [each for each in counting if essence_of(each.says) == essence_of(content)]
    alike.sort(key=lambda each: not person.is_same(each.name))
    # Reviewers may say the same of a doubt, until an approver does.
    if alike and (kind is not Kind.DECISION or person.is_same(alike[0].name)):
        person.refuse_second(alike[0].name, decides=decides)
    else:
        person.refuse_alone(decides=decides)
    until = None
    if valid is not None:
        calendar = environment.settings.rules.business_calendar
        ends = calendar.due_at(environment.clock(), grace=valid)
        until = alike[0].ends_at if alike else ends
    for each in before.waiting:
        if each not in counting:
            whose = {"of": kind.value, "whose": each.person}
            person.endorse(connection, Kind.TAKEN_BACK, subject, items=each.items, says=whose)
    person.endorse(connection, kind, subject, items=items, says=content, valid_until=until)
    after = decision_rows.state_of(connection, kind, subject=subject, desk=environment.desk)
    return after.pairs[-1] if len(after.pairs) > len(before.pairs) else None


def names_of(both: tuple[Endorsement, Endorsement]) -> str:
    """Both names, in order."""
    return " and ".join(each.as_text for each in both)


def _stated_why(reason: str) -> str:
    why = reason.strip()
    if not REASON_CHARACTERS_MIN <= len(why) <= REASON_CHARACTERS_MAX:
        msg = (
            "say why (--reason), so that somebody can understand it next year: "
            f"{REASON_CHARACTERS_MIN} to {REASON_CHARACTERS_MAX} characters; nothing was changed"
        )
        raise UsageError(msg)
    return why


def waiting_decisions(environment: Environment) -> list[Endorsement]:
    """Overrides that wait for their second person, oldest first."""
    with environment.store.reading() as connection:
        return every_waiting(connection, *OVERRIDES, environment=environment)


TAKEN_BACK: Mapping[Kind, str] = {
    Kind.APPROVAL: "the yes to list {0.subject}",
    Kind.DECISION: "the word {0.says[verdict]} about instruction {0.subject}",
    Kind.SIGN_OFF: "the signature as {0.says[role]} under run {0.subject}",
    **dict.fromkeys(OVERRIDES, "the word for {0.kind.value!r}"),
}
"""Kinds of decisions that one may take back -> how they are named."""


def take_back(connection: Connection, subject: str, *, person: Person) -> str:
    """Withdraw a person's decisions on a subject that wait; returns which, "" for none.

    The subject is that of the decision, or what was to be allowed, such as `allow-sending`.
    """
    allowed = subject.replace("-", " ")
    own = [
        each
        for kind in TAKEN_BACK
        for found in states_of(
            connection,
            kind,
            *([] if kind == allowed else [endorsement.c.subject == subject]),
            desk=person.environment.desk,
        ).values()
        for each in found.waiting
        if person.is_same(each.name)
    ]
    for each in own:
        of = {"of": each.kind.value}
        person.endorse(connection, Kind.TAKEN_BACK, each.subject, items=each.items, says=of)
    return " and ".join(TAKEN_BACK[each.kind].format(each) for each in own)


CONFIG_DIR = "RECON_CONFIG_DIR"


def refuse_open_files(environment: Environment) -> None:
    """Refuse to accept decisions while others could declare approvers or switch to the sandbox.

    With the sandbox nothing is checked: a demo runs under any umask.

    Raises:
        ConfigurationError: naming the file and how to protect it.
    """
    if not environment.desk.must_be_proven or not given(environment.variables, CONFIG_DIR):
        return
    for path in sorted(Path(environment.variables[CONFIG_DIR]).glob("*.toml")):
        if others_may_change(path):
            msg = (
                f"{path} says who may decide at the desk, and others can change it: let root or "
                f"the desk's login own it and its folder (chmod go-w {path} {path.parent}); "
                "nothing was changed"
            )
            raise ConfigurationError(msg)


def refuse_lost(environment: Environment) -> None:
    """Refuse to accept decisions while endorsements are missing.

    Raises:
        UsageError: the newest endorsement that the desk remembers is not in the database, or one
            among the others is gone or not the desk's.
    """
    known = _lost(_memory(environment), store=environment.store)
    if known is not None:
        msg = (
            f"this desk signed decision {known.sequence}, and the database lacks it: decisions of "
            "people were removed, or an older backup is in use. None is taken until whoever runs "
            "the desk knows which (`recon verify`), and says `recon serve desk --restored`; "
            "nothing was changed"
        )
        raise UsageError(msg)
    with environment.store.reading() as connection:
        lost = Endorsed(environment.desk).taken_away(connection)
    if lost:
        msg = (
            f"{lost}. Restore the newest backup, or make a new key for the desk and decide again "
            "what was not sent; nothing was changed"
        )
        raise UsageError(msg)


def remember(environment: Environment) -> None:
    """Remember the newest endorsement, after the transaction that stored it."""
    memory = _memory(environment)
    if memory is None:
        return
    with environment.store.reading() as connection:
        sequence = endorsement_rows.next_sequence(connection) - 1
        signature = endorsement_rows.signature_of(connection, sequence)
    if sequence:
        memory.save(name_of(environment.store), LastSignature(sequence, signature))


def go_on_restored(environment: Environment) -> int:
    """Go on with the endorsements in the database; returns the number of the newest lost, or 0."""
    memory = _memory(environment)
    known = _lost(memory, store=environment.store)
    if memory is None or known is None:
        return 0
    memory.forget(name_of(environment.store))
    remember(environment)
    return known.sequence


def lost_endorsement(desk: HeldKeys, *, store: Store) -> str:
    """Why endorsements may be missing, by what the desk published; "" when none is known to be.

    For a night. The published file is read first: the snapshot taken afterwards must have it.
    """
    known = _lost(None if desk.published is None else Memory(desk.published), store=store)
    if known is None:
        return ""
    return (
        f"the desk said at {desk.published} that it signed decision {known.sequence}, and the "
        "database lacks it: decisions were removed, or an older backup is in use (`recon verify`, "
        "then `recon serve desk --restored` as the desk's login)"
    )


def _lost(memory: Memory | None, *, store: Store) -> LastSignature | None:
    """The newest endorsement that was remembered, where the database lacks it."""
    known = None if memory is None else memory.newest(name_of(store))
    if known is None:
        return None
    with store.reading() as connection:
        stored = endorsement_rows.signature_of(connection, known.sequence)
    return None if hmac.compare_digest(stored, known.signature) else known


def _memory(environment: Environment) -> Memory | None:
    desk = environment.desk
    return None if desk.memory is None else Memory(desk.memory, published=desk.published)


def name_of(store: Store) -> str:
    """Name of the database that is the same for desk and nights, whatever their logins there."""
    if store.path is not None:
        return f"sqlite:///{store.path.resolve()}"
    url = store.url
    host = url.host or url.query.get("host", "")
    return f"postgresql://{host}:{url.port or ''}/{url.database}"


@contextmanager
def the_desk(environment: Environment) -> Iterator[Callable[[], None]]:
    """Be the desk while the block runs; yields a check that fails once the desk's lock was lost.

    The sandbox's desk is everybody's: its codes are counted in the database itself.

    Raises:
        ConfigurationError: another process is the desk of this database.
    """
    if environment.desk.memory is None:
        yield lambda: None
        return
    with ExitStack() as held:
        try:
            still_held = held.enter_context(desk_lock(environment.store))
        except NightHeldError as error:
            msg = (
                "a desk takes decisions for this database already: connect to it at its socket "
                f"({SOCKET}), or end it first; nothing was changed"
            )
            raise ConfigurationError(msg) from error
        one_by_one = threading.Lock()

        def go_on() -> None:
            with one_by_one:
                if not still_held():
                    msg = (
                        "this desk lost its connection to the database, so that another desk may "
                        "take decisions by now: start it again; nothing was changed"
                    )
                    raise ConfigurationError(msg)

        yield go_on
