"""Does the database still have every word that this desk gave it?"""

import hmac

from recon.desk.memory import Memory, Spoken
from recon.model.errors import UsageError
from recon.steps.ground.environment import Environment
from recon.store.money import endorsement_saving


def refuse_lost(environment: Environment) -> None:
    """Hear nobody while words are missing.

    Raises:
        UsageError: the newest word that the desk remembers is not in the database.
    """
    memory, database = _memory(environment), _name_of(environment)
    known = None if memory is None else memory.newest(database)
    if known is None:
        return
    with environment.store.reading() as connection:
        found = endorsement_saving.signature_of(connection, known.sequence)
    if not hmac.compare_digest(found, known.signature):
        msg = (
            f"this desk signed word {known.sequence}, and the database lacks it: words of people "
            "were taken away, or an older backup is in use. Nobody is heard until whoever runs the "
            "desk knows which (`recon verify`), and says `recon desk restored`; nothing was changed"
        )
        raise UsageError(msg)


def remember(environment: Environment) -> None:
    """Keep the newest word, after the transaction that has it."""
    memory = _memory(environment)
    if memory is None:
        return
    with environment.store.reading() as connection:
        sequence = endorsement_saving.next_sequence(connection) - 1
        signature = endorsement_saving.signature_of(connection, sequence)
    if sequence:
        memory.keep(_name_of(environment), Spoken(sequence, signature))


def has_spoken(environment: Environment) -> bool:
    """Whether this desk ever gave this database a word, whatever the database says."""
    memory = _memory(environment)
    return memory is not None and memory.newest(_name_of(environment)) is not None


def go_on_restored(environment: Environment) -> int:
    """Go on with the words that the database has; the number of the newest that is lost, or 0."""
    memory, database = _memory(environment), _name_of(environment)
    known = None if memory is None else memory.newest(database)
    if memory is None or known is None:
        return 0
    try:
        refuse_lost(environment)
    except UsageError:
        memory.forget(database)
        remember(environment)
        return known.sequence
    return 0


def _memory(environment: Environment) -> Memory | None:
    path = environment.desk.memory
    return None if path is None else Memory(path)


def _name_of(environment: Environment) -> str:
    """The database as the desk's own settings name it, without its password."""
    return environment.store.url.render_as_string(hide_password=True)
