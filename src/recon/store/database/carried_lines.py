"""Settlement lines that an earlier version kept in a table, for the upgrade that writes files."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sqlalchemy import Connection, column, inspect, select, table

from recon.matching.frames.sources import SETTLEMENT_COLUMNS
from recon.store.database.frames import frame_of_select

LAST_WITH_LINES = "0040"
"""The newest revision of a database that has all of them."""
SETTLED = "settled"
"""The name of these rows among all that are carried."""
ROWS_AT_ONCE = 50_000
COLUMNS = {name: kind for name, kind in SETTLEMENT_COLUMNS.items() if name != "source"}
_LINES = table("settlement_line", column("file_id"), column("line_id"), *map(column, COLUMNS))
_FACTS = table("order_facts", column("file_id"))


def files_with_lines(connection: Connection) -> list[str]:
    """Numbers of settlement files with lines in the table and no file of facts, oldest first."""
    known = inspect(connection)
    if not (known.has_table(_LINES.name) and known.has_table(_FACTS.name)):
        return []
    written = select(_FACTS.c.file_id).where(_FACTS.c.file_id == _LINES.c.file_id)
    numbers = connection.execute(
        select(_LINES.c.file_id).where(~written.exists()).distinct().order_by(_LINES.c.file_id)
    )
    return [str(number) for number in numbers.scalars()]


def lines_of_file(connection: Connection, file_id: int) -> Iterator[pd.DataFrame]:
    """COLUMNS of the lines of a file, in the order in which they were stored."""
    of_file = _LINES.c.file_id == file_id
    query = select(_LINES.c.line_id).where(of_file).order_by(_LINES.c.line_id)
    numbers = np.array(connection.execute(query).scalars().all(), dtype=np.int64)
    for start in range(0, len(numbers), ROWS_AT_ONCE):
        some = numbers[start : start + ROWS_AT_ONCE]
        between = _LINES.c.line_id.between(int(some[0]), int(some[-1]))
        lines = select(*(_LINES.c[name] for name in COLUMNS)).where(of_file, between)
        yield frame_of_select(connection, lines.order_by(_LINES.c.line_id), columns=COLUMNS)
