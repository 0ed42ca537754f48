"""Overrides of a stop: two different people say the same, and the second is an approver.

The first word holds until the end of the next business day, as an approval does, or as long as its
caller says. Towards a gateway
that moves real money each word needs a current one-time code.
"""

from collections.abc import Mapping

from recon.desk.endorsement import Kind
from recon.model.business_date import Grace
from recon.model.errors import UsageError
from recon.steps.ground.endorsed import Said, note_endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person, is_same, refuse_unproven, why_ended
from recon.store import Connection
from recon.store.money.endorsement_rows import override
from recon.store.people import agreement_rows
from recon.store.people.agreement_rows import FirstWord

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
        UsageError: no reason, an identity that no code proves, the first person again, or a
            reviewer as the second.
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
    first = agreement_rows.open_word(connection, what, subject=subject)
    if first is not None and (why_not := ended(first, environment=environment)):
        agreement_rows.void(connection, first, why=why_not, at=now)
        first = None
    if first is None:
        until = environment.settings.rules.business_calendar.due_at(now, grace=valid)
        agreement_rows.save_first(
            connection, what, subject=subject, reason=why, word=person.word, valid_until=until
        )
    else:
        until = first.valid_until
        refuse_as_second(person, first=first, environment=environment)
        agreement_rows.save_second(connection, first, reason=why, word=person.word)
    meaning = override(what, subject=subject)
    word = Said(Kind.OVERRIDE, meaning, says={"reason": why, **(says or {})}, valid_until=until)
    note_endorsed(connection, word, person=person, environment=environment)
    if first is None:
        return ""
    return f"{first.by.in_words} and {person.word.in_words}"


def waiting_words(environment: Environment) -> list[FirstWord]:
    """Overrides that wait for their second person, oldest first."""
    with environment.store.reading() as connection:
        words = agreement_rows.open_words(connection)
    return [word for word in words if not ended(word, environment=environment)]


def ended(first: FirstWord, *, environment: Environment) -> str:
    """Why a first word counts no more; "" while it does."""
    return why_ended(first.by.by, valid_until=first.valid_until, environment=environment)


def refuse_as_second(person: Person, *, first: FirstWord, environment: Environment) -> None:
    """Look at the second person before their word is noted.

    Raises:
        UsageError: it is the first person again, or no approver.
    """
    if is_same(person, first.by.by, environment=environment):
        msg = f"{first.by.by} said so already; a second person must say the same"
        raise UsageError(msg)
    if person.declared.role != "approver":
        msg = f"{person.declared.name} is a {person.declared.role}; an approver must be the second"
        raise UsageError(msg)
