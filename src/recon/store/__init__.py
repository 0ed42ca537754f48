"""The database: tables, migrations, the journal and the history.

`Connection` is passed to steps that read or write; only this package executes SQL on it.
"""

from sqlalchemy import Connection

__all__ = ["Connection"]
