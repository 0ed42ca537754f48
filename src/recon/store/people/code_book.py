"""Used and wrong one-time codes where the desk alone writes: a file beside its key.

In the database of the nights whoever has their login could take the rows away, and guess again or
use a code that was seen. The sandbox's desk has no file of its own and keeps them there.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection

from recon.model.errors import ConfigurationError
from recon.privacy.own_files import for_owner
from recon.store.database.engine import Store, parse_url
from recon.store.schema import used_code, wrong_code

TABLES = (used_code, wrong_code)


@contextmanager
def code_turn(path: Path | None, *, store: Store) -> Iterator[Connection]:
    """One transaction over the codes; nobody else looks or writes meanwhile.

    Raises:
        ConfigurationError: the file cannot be made.
    """
    if path is None:
        with store.writing() as connection:
            yield connection
        return
    try:
        os.close(for_owner(str(path), os.O_RDWR | os.O_CREAT))
    except OSError as error:
        msg = f"the desk's book of codes {path} cannot be written: {error.strerror}"
        raise ConfigurationError(msg) from error
    with closing(Store(parse_url(f"sqlite:///{path}"))) as book, book.writing() as connection:
        used_code.metadata.create_all(connection, tables=TABLES)
        yield connection
