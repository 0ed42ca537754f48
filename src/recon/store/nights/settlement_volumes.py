"""What the settlement files of an account come to, day by day, for prices that go by months."""

import pandas as pd
from sqlalchemy import Connection, case, func, select

from recon.matching.frames.sources import VOLUME_COLUMNS, frame_of
from recon.matching.sides.contract_lines import PRICED
from recon.store.nights.runs import Run
from recon.store.nights.settled_sums import of_account
from recon.store.schema import order_file, settled_sum


def volumes_of(connection: Connection, run: Run, *, since: str, until: int | None) -> pd.DataFrame:
    """VOLUME_COLUMNS of all lines settled since a day, as of the last file that counts.

    Late is what files of the business date tell of days up to the last one that was told before.
    """
    line = settled_sum
    before = (
        select(func.max(line.c.settled_on))
        .join(order_file, order_file.c.file_id == line.c.file_id)
        .where(*of_account(run, until=until), order_file.c.business_date < run.business_date)
        .scalar_subquery()
    )
    tonight = order_file.c.business_date == run.business_date
    late = case((tonight & (line.c.settled_on <= before), 1), else_=0).label("late")
    columns = [line.c[name] for name in VOLUME_COLUMNS if name in line.c and name != "base"]
    sums = (func.sum(line.c.line_count).label("lines"), func.sum(line.c.base).label("base"))
    query = (
        select(*columns, late, *sums)
        .join(order_file, order_file.c.file_id == line.c.file_id)
        .where(*of_account(run, until=until), line.c.settled_on >= since)
        .where(line.c.entry_type.in_(PRICED))
        .group_by(*columns, late)
        .order_by(*columns, late)
    )
    rows = [
        {**row, **{name: int(row[name]) for name in ("lines", "base")}}
        for row in connection.execute(query).mappings()
    ]
    return frame_of(rows, columns=VOLUME_COLUMNS)
