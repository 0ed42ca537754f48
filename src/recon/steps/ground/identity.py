"""Who is it? A declared person, proven by a current one-time code where a secret is named.

A code counts once, also within its thirty seconds; after some wrong ones whoever gave them waits,
and nobody else. Secrets come from the environment or a file of mode 0600 and are never stored,
printed or logged.
"""

import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyotp
from pydantic import SecretStr

from recon.config.approvers import Approver, has_left, person_key
from recon.config.keys import key_of_file
from recon.model.errors import ConfigurationError, UsageError
from recon.steps.ground.environment import Environment, is_on_this_machine
from recon.store import Connection
from recon.store.people import decision_rows
from recon.store.people.code_book import code_turn
from recon.store.people.decision_rows import PersonsWord

CODE_SECONDS = 30
CODE_WINDOW_STEPS = 1
"""A code of the step before or after still counts: clocks differ."""
WRONG_CODES_MAX = 5
"""Of one person from one login; after that each try waits, longer and longer."""
WRONG_CODES_WITHIN = timedelta(hours=1)
WAIT_FIRST = timedelta(minutes=1)
WAIT_MAX = timedelta(minutes=15)
NAME_CHARACTERS_MAX = 100


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who speaks now."""

    short: str
    declared: Approver
    word: PersonsWord
    before: str = ""
    """What wrong codes were given in this name since they last spoke; "" for none."""


def identify(
    short: str, *, code: SecretStr | None, environment: Environment, origin: str = ""
) -> Person:
    """The declared person behind a name, authenticated where a secret is configured.

    `origin` is whose login gave the code, as the socket tells it; "" is this process's own.

    Raises:
        UsageError: nobody of that name, no code or a wrong, used or late one, or too many wrong
            ones.
        ConfigurationError: the person's secret is named but not there, or also another person's.
    """
    known_as = key_of(short, environment=environment)
    declared = environment.settings.approvers.get(known_as)
    if declared is None:
        known = ", ".join(sorted(environment.settings.approvers)) or "nobody"
        msg = f"approvers.toml declares no {short!r} (declared: {known}); nothing was changed"
        raise UsageError(msg)
    short = known_as
    secret = _secret_of(declared, short=short, environment=environment)
    before = ""
    if secret is not None:
        _refuse_shared(secret, short=short, environment=environment)
        who = (short, origin or own_login())
        before = _check_code(who, secret=secret, code=code, environment=environment)
    word = PersonsWord(declared.name, authenticated=secret is not None, at=environment.clock())
    return Person(short, declared, word, before)


def speaker(
    name: str, *, code: SecretStr | None, environment: Environment, origin: str = ""
) -> Person:
    """Who decides what moves no money.

    Where people are declared it is one of them, who proves it as everywhere; a gateway on this
    machine, without any of them, is played with under any name.

    Raises:
        UsageError: no name, nobody of that name is declared, or as `identify` says.
    """
    free = " ".join(name.split())
    if not free or len(free) > NAME_CHARACTERS_MAX:
        msg = f"say who does it (--as), in at most {NAME_CHARACTERS_MAX} characters"
        raise UsageError(msg)
    if not environment.settings.approvers and is_on_this_machine(environment.settings):
        word = PersonsWord(free, authenticated=False, at=environment.clock())
        return Person(free, Approver.model_construct(name=free), word)
    return identify(name, code=code, environment=environment, origin=origin)


def key_of(name: str, *, environment: Environment) -> str:
    """Who a name means, however it was typed (`approvers.person_key`)."""
    return person_key(name, declared=environment.settings.approvers)


def why_ended(name: str, *, valid_until: datetime, environment: Environment) -> str:
    """Why the first of two words, and by whom it was, counts no more; "" while it does."""
    if valid_until < environment.clock():
        return "no second person said the same in time"
    if has_left(name, declared=environment.settings.approvers):
        return f"approvers.toml does not declare {name} any more"
    return ""


def is_same(person: Person, other: str, *, environment: Environment) -> bool:
    """Whether a name that was noted is that of the person who speaks now."""
    return key_of(person.declared.name, environment=environment) == key_of(
        other, environment=environment
    )


def refuse_unproven(person: Person, *, environment: Environment) -> None:
    """A name that no code proved decides nothing about real money.

    Raises:
        UsageError: the gateway is not on this machine, and no one-time code is set up for them.
    """
    if not person.word.authenticated and not is_on_this_machine(environment.settings):
        msg = (
            f"this counts with a current one-time code only, and none is set up for "
            f"{person.short} (`recon approver enrol {person.short}`); nothing was changed"
        )
        raise UsageError(msg)


def _secret_of(declared: Approver, *, short: str, environment: Environment) -> SecretStr | None:
    if declared.code_secret_file is not None:
        return SecretStr(key_of_file(declared.code_secret_file))
    if not declared.code_secret_env:
        return None
    secret = environment.variables.get(declared.code_secret_env, "").strip()
    if not secret:
        msg = (
            f"the environment variable {declared.code_secret_env} with the secret of {short} is "
            "not set; without it nobody can prove to be that person"
        )
        raise ConfigurationError(msg)
    return SecretStr(secret)


def _refuse_shared(secret: SecretStr, *, short: str, environment: Environment) -> None:
    """One secret under two names would let one person be two, wherever it is written."""
    mine = _bare(secret)
    for other, declared in environment.settings.approvers.items():
        if other == short:
            continue
        try:
            theirs = _secret_of(declared, short=other, environment=environment)
        except ConfigurationError:
            # Missing here or not readable by this login: then it proves nobody here either.
            continue
        if theirs is not None and hmac.compare_digest(_bare(theirs), mine):
            msg = (
                f"{short} and {other} have the same secret of one-time codes: each person needs "
                "their own (`recon approver enrol`); nothing was changed"
            )
            raise ConfigurationError(msg)


def _bare(secret: SecretStr) -> bytes:
    """The secret as codes are made of it: base32 knows no case, blanks or padding."""
    return "".join(secret.get_secret_value().split()).rstrip("=").casefold().encode()


def _check_code(
    who: tuple[str, str], *, secret: SecretStr, code: SecretStr | None, environment: Environment
) -> str:
    """Take a right code once; what wrong ones were given in this name before, in words."""
    short, origin = who
    if code is None:
        msg = f"{short} proves to be {short} with the current one-time code (--code)"
        raise UsageError(msg)
    problem = before = ""
    is_wrong = False
    # One transaction counts, judges and notes: tries at the same time are counted one by one, each
    # at the instant of its turn and never before the one it waited for. It is kept although the
    # call fails.
    with code_turn(environment.desk.codes, store=environment.store) as connection:
        now = environment.wall_clock()
        step = _step_of(secret, code=code.get_secret_value(), at=int(now.timestamp()))
        wrong = decision_rows.wrong_codes(
            connection, short, origin=origin, since=now - WRONG_CODES_WITHIN
        )
        if wrong and (until := waits_until(wrong)) > now:
            problem = (
                f"{len(wrong)} wrong codes for {short} came from here ({origin}): wait, then try "
                f"again at {until:%H:%M:%S} UTC; {short} may speak from elsewhere meanwhile"
            )
        elif step is None:
            decision_rows.note_wrong_code(connection, short, origin=origin, at=now)
            problem, is_wrong = f"the code of {short} is not right; nothing was changed", True
        else:
            before = _told_before(connection, short)
            if not decision_rows.use_code(connection, short, time_step=step, at=now):
                problem = f"the code of {short} was used before; wait for the next one"
    if is_wrong:
        with environment.store.writing() as connection:
            at = environment.clock()
            decision_rows.tell_wrong_code(connection, short, origin=origin, at=at)
    if problem:
        raise UsageError(problem)
    return before


def waits_until(wrong: Sequence[datetime]) -> datetime:
    """When the next try counts, after wrong codes at these instants, oldest first.

    Some are free; each further one doubles the wait, up to `WAIT_MAX`.
    """
    beyond = len(wrong) - WRONG_CODES_MAX
    if beyond < 0:
        return wrong[-1]
    return wrong[-1] + min(WAIT_FIRST * (1 << beyond), WAIT_MAX)


def _told_before(connection: Connection, short: str) -> str:
    """What was tried in somebody's name since they last spoke, so that they hear of it."""
    tried = decision_rows.wrong_since_last_word(connection, short)
    return "; ".join(
        f"{count} wrong codes were given in your name ({origin})"
        for origin, count in sorted(tried.items())
    )


def own_login() -> str:
    """Whose login on this machine this process runs under."""
    return f"login {os.geteuid()}"


def _step_of(secret: SecretStr, *, code: str, at: int) -> int | None:
    """The time step that a code belongs to; None when it is wrong."""
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
