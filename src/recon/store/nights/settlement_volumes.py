"""What the settlement files of an account come to, day by day, for prices that go by months."""

from collections import defaultdict

import pandas as pd
from sqlalchemy import Connection, case, func, select

from recon.matching.frames.sources import VOLUME_COLUMNS, frame_of
from recon.matching.sides.contract_lines import PRICED
from recon.store.nights.runs import Run
from recon.store.nights.settled_lines import Repeats
from recon.store.nights.settled_sums import BY, of_account
from recon.store.schema import order_file, settled_sum

_ONE_SUM = ("file_id", *BY, "is_own")
_COUNTED = ("line_count", "base")


def volumes_of(
    connection: Connection, run: Run, *, since: str, repeats: Repeats, until: int | None
) -> pd.DataFrame:
    """VOLUME_COLUMNS of all lines settled since a day, as of the last file that counts.

    Late is what files of the business date tell of days up to the last one that was told before.
    """
    line = settled_sum.c
    before = (
        select(func.max(line.settled_on))
        .join(order_file, order_file.c.file_id == line.file_id)
        .where(*of_account(run, until=until), order_file.c.business_date < run.business_date)
        .scalar_subquery()
    )
    tonight = order_file.c.business_date == run.business_date
    late = case((tonight & (line.settled_on <= before), 1), else_=0).label("late")
    query = (
        select(*(line[name] for name in (*_ONE_SUM, *_COUNTED)), late)
        .join(order_file, order_file.c.file_id == line.file_id)
        .where(*of_account(run, until=until), line.settled_on >= since)
        .where(line.entry_type.in_(PRICED))
    )
    names = [name for name in VOLUME_COLUMNS if name in {*BY, "late"}]
    twice = {tuple(row[n] for n in _ONE_SUM): row for row in repeats.sums.to_pylist()}
    volumes: dict[tuple[str | int, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in connection.execute(query).mappings():
        repeat = twice.get(tuple(row[name] for name in _ONE_SUM), {})
        counted = volumes[tuple(row[name] for name in names)]
        for at, name in enumerate(_COUNTED):
            counted[at] += row[name] - repeat.get(name, 0)
    rows = [
        {**dict(zip(names, key, strict=True)), "lines": lines, "base": base}
        for key, (lines, base) in sorted(volumes.items())
        if lines
    ]
    return frame_of(rows, columns=VOLUME_COLUMNS)
