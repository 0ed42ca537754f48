"""Overrides of a stop: two different people say the same, in any order, one of them an approver.

The first word holds until the end of the next business day, as an approval does, or as long as its
caller says; until the second is said its person may take it back. Towards a gateway
that moves real money each word needs a current one-time code.
"""

from collections.abc import Iterable, Mapping

from recon.desk.endorsement import Kind
from recon.instructions.approval import Decides, problem_of_rest, problem_of_role, problem_of_two
from recon.instructions.instruction import Instruction
from recon.model.business_date import Grace
from recon.model.errors import UsageError
from recon.steps.ground.endorsed import Said, note_endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person, is_same, key_of, refuse_unproven, why_ended
from recon.store import Connection
from recon.store.money.endorsement_rows import override
from recon.store.people import closed_months, decision_rows
from recon.store.people.decision_rows import FirstWord

VALID = Grace.parse("1bd")
REASON_CHARACTERS_MIN = 10
REASON_CHARACTERS_MAX = 300

ACCEPT_RESTORE = "accept restore"
SET_ASIDE = "set file aside"


def agreed(
    connection: Connection,
    what: str,
    *,
    subject: str,
    reason: str,
    person: Person,
    environment: Environment,
    says: Mapping[str, str] | None = None,
    valid: Grace = VALID,
) -> str:
    """One person's word for an override; both names when it is the second, "" when the first.

    `says` is what the desk signs beside the reason, `valid` how long the first word stands.

    Raises:
        UsageError: no reason, an identity that no code proves, the first person again, no approver
            among them, or nobody who could be the second.
    """
    why = reason.strip()
    if not REASON_CHARACTERS_MIN <= len(why) <= REASON_CHARACTERS_MAX:
        msg = (
            "say why (--reason), so that somebody can understand it next year: "
            f"{REASON_CHARACTERS_MIN} to {REASON_CHARACTERS_MAX} characters; nothing was changed"
        )
        raise UsageError(msg)
    refuse_unproven(person, environment=environment)
    now = environment.clock()
    first = decision_rows.open_word(connection, what, subject=subject)
    if first is not None and (why_not := ended(first, environment=environment)):
        decision_rows.void(connection, first, why=why_not, at=now)
        first = None
    if first is None:
        refuse_alone(person, environment=environment)
        until = environment.settings.rules.business_calendar.due_at(now, grace=valid)
        decision_rows.save_first(
            connection, what, subject=subject, reason=why, word=person.word, valid_until=until
        )
    else:
        until = first.valid_until
        refuse_two(person, first=first.by.by, environment=environment)
        decision_rows.save_second(connection, first, reason=why, word=person.word)
    meaning = override(what, subject=subject)
    word = Said(Kind.OVERRIDE, meaning, says={"reason": why, **(says or {})}, valid_until=until)
    note_endorsed(connection, word, person=person, environment=environment)
    if first is None:
        return ""
    return f"{first.by.in_words} and {person.word.in_words}"


def waiting_words(environment: Environment) -> list[FirstWord]:
    """Overrides that wait for their second person, oldest first."""
    with environment.store.reading() as connection:
        words = decision_rows.open_words(connection)
    return [word for word in words if not ended(word, environment=environment)]


def ended(first: FirstWord, *, environment: Environment) -> str:
    """Why a first word counts no more; "" while it does."""
    return why_ended(first.by.by, valid_until=first.valid_until, environment=environment)


def take_back(
    connection: Connection, subject: str, *, person: Person, environment: Environment
) -> str:
    """Take back one's first words for an override; what they were, "" for none.

    The subject is what was to be allowed, such as `allow-sending`, or what the word was about.
    """
    words = [
        word
        for word in decision_rows.open_words(connection)
        if {subject, subject.replace("-", " ")} & {word.what, word.subject}
        and is_same(person, word.by.by, environment=environment)
    ]
    for word in words:
        why = f"{person.word.in_words} took it back"
        decision_rows.void(connection, word, why=why, at=person.word.at)
        if word.what == closed_months.CLOSE:
            closed_months.note_taken_back(connection, word.subject, why=why, at=person.word.at)
        meaning = override(word.what, subject=word.subject)
        note_taken_back(connection, Kind.OVERRIDE, meaning, person=person, environment=environment)
    return " and ".join(f"the word for {word.what!r}" for word in words)


def note_taken_back(
    connection: Connection,
    kind: Kind,
    subject: str,
    *,
    person: Person,
    environment: Environment,
    items: Iterable[Instruction] = (),
) -> None:
    """The desk's signature under one person's word that what they said counts no more."""
    word = Said(Kind.TAKEN_BACK, subject, items=items, says={"of": kind.value})
    note_endorsed(connection, word, person=person, environment=environment)


def refuse_two(
    person: Person, *, first: str, environment: Environment, decides: Decides = problem_of_role
) -> None:
    """Look at both people before the word of the second is noted.

    Raises:
        UsageError: they are one person, or neither is the approver whom it needs.
    """
    if is_same(person, first, environment=environment):
        msg = f"{first} said so already; a second person must say the same"
        raise UsageError(msg)
    other = environment.settings.approvers.get(key_of(first, environment=environment))
    problem = problem_of_two((other or person.declared, person.declared), decides=decides)
    if problem:
        msg = f"{problem}; nothing was changed"
        raise UsageError(msg)


def refuse_alone(
    person: Person, *, environment: Environment, decides: Decides = problem_of_role
) -> None:
    """Look who could say the same before the word of the first is noted.

    Raises:
        UsageError: nobody who is declared could.
    """
    declared = environment.settings.approvers.values()
    if problem := problem_of_rest(person.declared, declared=declared, decides=decides):
        msg = f"{problem}; nothing was changed"
        raise UsageError(msg)
