"""What a night compares of its settlement files, without a frame of all lines.

Their table is made when it is asked for; only the pay-outs, which say what of the books is told
here, stand beside the other sources.
"""

from collections.abc import Callable, Mapping
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
from recon.proof.night_tables import SETTLEMENT, TARIFFS, table_of
from recon.steps.compare.coded_rows import coded
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.steps.ground.window import BeforeOpening
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
    before: BeforeOpening,
    rules: Rules,
    environment: Environment,
) -> PartedSettlement | None:
    """As `settlement_of`; None where no files are declared, or none told of the account."""
    if not inputs.settlement:
        return None
    until = inputs.last_file
    days = settled_days(connection, run, until=until, rules=rules)
    if days is None:
        return None
    lines = lines_of_night(
        connection,
        run,
        asked=asked,
        until=until,
        rules=rules,
        storages=storages_of(environment),
    )
    volumes = None
    if rules.fee_contract is not None and rules.fee_contract.asks_months:
        priced = lines.batches(columns=["settled_on"], entry_types=PRICED)
        each = chain.from_iterable(table["settled_on"].unique().to_pylist() for table in priced)
        volumes = month_volumes(connection, lines, days=each, until=until)
    paid = before.lines(frame_of_lines(pa.concat_tables(lines.batches(entry_types=[PAY_OUT]))))
    made = {
        name: partial(_table, name, lines, before=before, telling=telling)
        for name, telling in ((SETTLEMENT, ()), (TARIFFS, FACTS))
    }
    return PartedSettlement(paid, days, volumes, made)


def _table(
    name: str, lines: NightLines, *, before: BeforeOpening, telling: tuple[str, ...]
) -> pa.Table:
    """The lines as a file has them."""
    schema = SCHEMAS[name].columns
    if before.order_nos:
        whole = map(frame_of_lines, lines.batches(telling=telling))
        tables = (table_of(before.lines(frame), name=name) for frame in whole)
    else:
        batches = lines.batches(columns=schema.names, telling=telling)
        tables = (coded(table, schema=schema) for table in batches)
    return pa.concat_tables(tables).unify_dictionaries()
