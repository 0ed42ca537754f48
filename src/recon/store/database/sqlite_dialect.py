"""SQLite as the store uses it: every transaction begun by ourselves, every statement compiled once.

SQLAlchemy keeps compiled statements by engine and finds them by the identity of a dialect. A store
has three engines, and a process that serves people opens one store after another: a statement that
was compiled for one of them is right for all, for none of them differs in what it understands.
"""

from typing import Any

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

DRIVER = "sqlite+recon"
"""The name of the dialect in a URL."""
STATEMENTS_MAX = 2_000
"""Compiled statements that are kept; a night has some hundred."""
COMPILED: LRUCache[Any, Any] = LRUCache(STATEMENTS_MAX)
"""For `create_engine`'s execution option `compiled_cache`."""


class OwnSqlite(SQLiteDialect_pysqlite):
    """The driver's dialect that begins transactions by a statement of ours; all are alike."""

    supports_statement_cache = True

    def __init__(self, begin: str = "BEGIN", **options: Any) -> None:
        # Not by keyword only: `create_engine` would not see that it is wanted.
        super().__init__(**options)
        self._begin = begin

    def do_begin(self, dbapi_connection: Any) -> None:
        """Not by a listener: while there is one, every statement asks for listeners of its own."""
        dbapi_connection.dbapi_connection.execute(self._begin)

    def __eq__(self, other: object) -> bool:
        """What one compiled is right for the other."""
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register(DRIVER.replace("+", "."), __name__, OwnSqlite.__name__)
