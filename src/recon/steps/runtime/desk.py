"""The desk before it takes a word: its files are its own, it is the only one, it forgot nothing."""

import hmac
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from recon.config.keys import given
from recon.desk.held_keys import SOCKET, HeldKeys, LastSignature, Memory
from recon.model.errors import ConfigurationError, NightHeldError, UsageError
from recon.privacy.own_files import others_may_change
from recon.steps.runtime.environment import Environment
from recon.store.database.engine import Store
from recon.store.database.night_lock import desk_lock
from recon.store.money import endorsement_rows

CONFIG_DIR = "RECON_CONFIG_DIR"


def refuse_open_files(environment: Environment) -> None:
    """Hear nobody while others could declare approvers, or move the gateway to the sandbox.

    Towards the sandbox nothing is looked at: a demo runs under any umask.

    Raises:
        ConfigurationError: naming the file and what closes it.
    """
    if not environment.desk.must_be_proven or not given(environment.variables, CONFIG_DIR):
        return
    for path in sorted(Path(environment.variables[CONFIG_DIR]).glob("*.toml")):
        if others_may_change(path):
            msg = (
                f"{path} says who is heard at the desk, and others can change it: let root or the "
                f"desk's login own it and its folder (chmod go-w {path} {path.parent}); nothing "
                "was changed"
            )
            raise ConfigurationError(msg)


def refuse_lost(environment: Environment) -> None:
    """Hear nobody while words are missing.

    Raises:
        UsageError: the newest word that the desk remembers is not in the database.
    """
    known = _lost(_memory(environment), store=environment.store)
    if known is not None:
        msg = (
            f"this desk signed word {known.sequence}, and the database lacks it: words of people "
            "were taken away, or an older backup is in use. Nobody is heard until whoever runs the "
            "desk knows which (`recon verify`), and says `recon desk --restored`; nothing was "
            "changed"
        )
        raise UsageError(msg)


def remember(environment: Environment) -> None:
    """Keep the newest word, after the transaction that has it."""
    memory = _memory(environment)
    if memory is None:
        return
    with environment.store.reading() as connection:
        sequence = endorsement_rows.next_sequence(connection) - 1
        signature = endorsement_rows.signature_of(connection, sequence)
    if sequence:
        memory.save(name_of(environment.store), LastSignature(sequence, signature))


def go_on_restored(environment: Environment) -> int:
    """Go on with the words that the database has; the number of the newest that is lost, or 0."""
    memory = _memory(environment)
    known = _lost(memory, store=environment.store)
    if memory is None or known is None:
        return 0
    memory.forget(name_of(environment.store))
    remember(environment)
    return known.sequence


def lost_endorsement(desk: HeldKeys, *, store: Store) -> str:
    """Why people's words may be missing, by what the desk published; "" when none is known to be.

    For a night. What is published is read first: the snapshot taken afterwards must have it.
    """
    known = _lost(None if desk.published is None else Memory(desk.published), store=store)
    if known is None:
        return ""
    return (
        f"the desk said at {desk.published} that it signed word {known.sequence}, and the database "
        "lacks it: words of people were taken away, or an older backup is in use (`recon verify`, "
        "then `recon desk --restored` as the desk's login)"
    )


def _lost(memory: Memory | None, *, store: Store) -> LastSignature | None:
    """The newest word that was remembered, where the database lacks it."""
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
    """The database as desk and nights name it, whatever their logins there are."""
    if store.path is not None:
        return f"sqlite:///{store.path.resolve()}"
    url = store.url
    host = url.host or url.query.get("host", "")
    return f"postgresql://{host}:{url.port or ''}/{url.database}"


@contextmanager
def the_desk(environment: Environment) -> Iterator[Callable[[], None]]:
    """Be the desk while the block runs; what it gives refuses to go on when that was lost.

    The sandbox's desk is everybody's: its codes are counted in the database itself.

    Raises:
        ConfigurationError: another process is the desk of this database.
    """
    if environment.desk.memory is None:
        yield lambda: None
        return
    with ExitStack() as held:
        try:
            stands = held.enter_context(desk_lock(environment.store))
        except NightHeldError as error:
            msg = (
                "a desk hears people of this database already: speak to it at its socket "
                f"({SOCKET}), or end it first; nothing was changed"
            )
            raise ConfigurationError(msg) from error
        one_by_one = threading.Lock()

        def go_on() -> None:
            with one_by_one:
                if not stands():
                    msg = (
                        "this desk lost its connection to the database, so that another desk may "
                        "hear people by now: start it again; nothing was changed"
                    )
                    raise ConfigurationError(msg)

        yield go_on
