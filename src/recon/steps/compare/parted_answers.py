"""The answers that a night in parts compares, as its file has them."""

import pandas as pd
import pyarrow as pa

from recon.archive.answer_schemas import ANSWERS, REPLIES
from recon.archive.schemas import SCHEMAS
from recon.proof.night_tables import table_of
from recon.steps.ground.environment import Environment
from recon.steps.ground.newest_answers import newest_of_run
from recon.store.nights.runs import Run

COLUMNS = SCHEMAS[ANSWERS].columns
SHARED = tuple(name for name in COLUMNS.names if name in REPLIES.columns.names)


def parted_answers(run: Run, *, joined: pd.DataFrame, environment: Environment) -> pa.Table:
    """The run's own answers and those of other accounts that join them.

    Args:
        run: whose answers are compared.
        joined: GATEWAY_COLUMNS of other accounts.
        environment: where the archive is.

    Raises:
        ArchiveError: a file cannot be read, or is not as it was sealed.
    """
    with environment.store.reading() as connection:
        newest = newest_of_run(connection, run, environment=environment, columns=SHARED)
    own = pa.table([_column(newest, field=field) for field in COLUMNS], schema=COLUMNS)
    return pa.concat_tables([own, table_of(joined, name=ANSWERS)]).unify_dictionaries()


def _column(replies: pa.Table, *, field: pa.Field) -> pa.ChunkedArray:
    if field.name in SHARED:
        return replies[field.name].cast(field.type)
    if field.name == "source":
        return pa.chunked_array([pa.repeat("gateway", len(replies)).cast(field.type)])
    if field.name == "line":
        return pa.chunked_array([pa.repeat(pa.scalar(0, field.type), len(replies))])
    return pa.chunked_array([pa.nulls(len(replies), field.type)])
