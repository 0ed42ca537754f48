"""One desk at a time for a database: a second one would count wrong codes in a file of its own."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from recon.desk.held_keys import SOCKET
from recon.model.errors import ConfigurationError, NightHeldError
from recon.steps.ground.environment import Environment
from recon.store.database.night_lock import desk_lock


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
