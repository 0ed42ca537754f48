"""The database: tables, migrations, the journal and the history.

`Connection` is what a step holds while it reads or writes; only this package executes SQL on it.
"""

from sqlalchemy import Connection

__all__ = ["Connection"]
