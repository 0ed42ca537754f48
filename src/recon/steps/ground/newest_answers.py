"""What the gateway answered last of each order: after money moved, else before it."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from recon.steps.ground.answer_files import EVERY_COLUMN
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_answers import table_of_run
from recon.store import Connection
from recon.store.nights import answer_parts
from recon.store.nights.runs import Run


def newest_of_run(
    connection: Connection,
    run: Run,
    *,
    environment: Environment,
    columns: Collection[str] = EVERY_COLUMN,
) -> pa.Table:
    """REPLIES of the run's own account, the `after` phase taking the place of the baseline."""
    return _newest(
        table_of_run(
            connection,
            run,
            phases=answer_parts.OWN_PHASES,
            environment=environment,
            columns=columns,
        )
    )


def _newest(table: pa.Table) -> pa.Table:
    is_after = pc.equal(table["phase"].cast(pa.string()), answer_parts.AFTER)
    again = table.filter(is_after)["order_no"].combine_chunks()
    is_replaced = pc.and_(pc.invert(is_after), pc.is_in(table["order_no"], value_set=again))
    return table.filter(pc.invert(is_replaced))
