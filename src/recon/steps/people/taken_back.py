"""Taking back one's own word, as long as it waits for somebody else's and so counts for nothing."""

from recon.model.errors import UsageError
from recon.steps.ground import two_words
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person, refuse_unproven
from recon.steps.money import approve
from recon.steps.people import sign_off, verdicts

EVERY = (
    approve.take_back,
    verdicts.take_back_verdict,
    verdicts.take_back_release,
    sign_off.take_back,
    two_words.take_back,
)
"""Each takes back what one person said of a subject; what that was, "" for nothing."""


def words_taken_back(subject: str, *, person: Person, environment: Environment) -> str:
    """Take back what a person said of a subject; what it was, in words.

    Args:
        subject: a list's digest, an instruction, a run, or what was to be allowed.
        person: whose word it is.
        environment: of the desk.

    Raises:
        UsageError: they said nothing of it, or it counts already.
    """
    refuse_unproven(person, environment=environment)
    with environment.store.writing() as connection:
        taken = [
            what
            for take_back in EVERY
            if (what := take_back(connection, subject, person=person, environment=environment))
        ]
    if not taken:
        msg = (
            f"{person.declared.name} has no word about {subject} that waits for a second person: "
            "what two people agreed to counts, and nobody takes it back alone; nothing was changed"
        )
        raise UsageError(msg)
    return " and ".join(taken)
