"""What a night compares of its settlement files, without a frame of all lines.

Their table is made when it is asked for; only the pay-outs, which say what of the books is told
here, stand beside the other sources.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain

import pandas as pd
import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.config.fee_contract import FACTS
from recon.config.rules import Rules
from recon.matching.frames.sources import SettledDays
from recon.matching.sides.contract_lines import PRICED
from recon.matching.sides.settlement_side import PAY_OUT
from recon.proof.night_tables import SETTLEMENT, TARIFFS
from recon.steps.compare.coded_rows import coded
from recon.steps.ground.environment import Environment
from recon.steps.money.settled import lines_of_night, month_volumes, settled_days
from recon.store import Connection
from recon.store.nights.input_rows import Inputs
from recon.store.nights.night_lines import AskedFor, NightLines, frame_of_lines
from recon.store.nights.runs import Run


@dataclass(frozen=True, slots=True)
class PartedSettlement:
    """What settlement files told of an account."""

    pay_outs: pd.DataFrame
    """SETTLEMENT_COLUMNS of the lines that say what a batch came to."""
    days: SettledDays
    volumes: pd.DataFrame | None
    """See Sources.volumes."""
    made: Mapping[str, Callable[[], pa.Table]]
    """Makes the tables of all lines, by their names; of tariffs no row where none tells any."""


def parted_settlement(
    connection: Connection,
    run: Run,
    *,
    asked: AskedFor,
    inputs: Inputs,
    rules: Rules,
    environment: Environment,
) -> PartedSettlement | None:
    """As `inputs.settlement_of`; None where no files are declared, or none told of the account."""
    if not inputs.settlement:
        return None
    until = inputs.last_file
    days = settled_days(connection, run, until=until, rules=rules)
    if days is None:
        return None
    lines = lines_of_night(connection, run, asked=asked, until=until, rules=rules)
    volumes = None
    if rules.fee_contract is not None and rules.fee_contract.asks_months:
        priced = lines.batches(connection, columns=["settled_on"], entry_types=PRICED)
        each = chain.from_iterable(table["settled_on"].unique().to_pylist() for table in priced)
        volumes = month_volumes(connection, run, days=each, until=until)
    paid = pa.concat_tables(lines.batches(connection, entry_types=[PAY_OUT]))
    made = {
        name: partial(_table, name, lines, telling=telling, environment=environment)
        for name, telling in ((SETTLEMENT, ()), (TARIFFS, FACTS))
    }
    return PartedSettlement(frame_of_lines(paid), days, volumes, made)


def _table(
    name: str, lines: NightLines, *, telling: tuple[str, ...], environment: Environment
) -> pa.Table:
    """The lines as a file has them."""
    schema = SCHEMAS[name].columns

    def coded_batches(connection: Connection) -> Iterator[pa.Table]:
        for table in lines.batches(connection, columns=schema.names, telling=telling):
            yield coded(table, schema=schema)

    with environment.store.reading() as connection:
        return pa.concat_tables(coded_batches(connection)).unify_dictionaries()
