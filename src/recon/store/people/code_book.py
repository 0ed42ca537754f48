"""Used and wrong one-time codes where the desk alone writes: a file beside its key.

In the database of the nights whoever has their login could take the rows away, and guess again or
use a code that was seen. The sandbox's desk has no file of its own and keeps them there.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection

from recon.model.errors import ConfigurationError
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
    if not path.exists():
        _make(path)
    with closing(_opened(path)) as book, book.writing() as connection:
        yield connection


def _make(path: Path) -> None:
    """Put an empty book in its place, unless somebody else did meanwhile.

    It gets its name when it is whole: SQLite waits for nobody where two turn one file to its log
    at the same time, and closing the file once would end the locks that others hold on it.
    """
    try:
        # For its owner alone, as the log beside it will be.
        number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".new")
        os.close(number)
        draft = Path(name)
        try:
            with closing(_opened(draft)) as book, book.writing() as connection:
                used_code.metadata.create_all(connection, tables=TABLES)
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    except OSError as error:
        msg = f"the desk's book of codes {path} cannot be written: {error.strerror}"
        raise ConfigurationError(msg) from error


def _opened(path: Path) -> Store:
    return Store(parse_url(f"sqlite:///{path}"))
