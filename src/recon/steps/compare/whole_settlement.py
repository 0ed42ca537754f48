"""What a night that is compared whole takes of its settlement files."""

import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.coding import is_word
from recon.matching.frames.sources import SettledDays
from recon.matching.sides.contract_lines import PRICED
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import storages_of
from recon.steps.money.settled import lines_of_night, month_volumes, settled_days
from recon.store import Connection
from recon.store.nights.input_rows import Inputs
from recon.store.nights.night_lines import AskedFor
from recon.store.nights.runs import Run


def settlement_of(
    connection: Connection,
    run: Run,
    *,
    asked: AskedFor,
    inputs: Inputs,
    rules: Rules,
    environment: Environment,
) -> tuple[pd.DataFrame | None, SettledDays | None, pd.DataFrame | None]:
    """The lines, the days they prove and their months; nothing where no files are declared.

    Months are None where no contract asks for them.
    """
    if not inputs.settlement:
        return None, None, None
    until, storages = inputs.last_file, storages_of(environment)
    days = settled_days(connection, run, until=until, rules=rules)
    if days is None:
        return None, None, None
    asked_for = lines_of_night(
        connection, run, asked=asked, until=until, rules=rules, storages=storages
    )
    lines, contract = asked_for.frame(), rules.fee_contract
    if contract is None or not contract.asks_months:
        return lines, days, None
    priced = lines["settled_on"][is_word(lines["entry_type"], *PRICED)]
    return lines, days, month_volumes(connection, asked_for, days=priced, until=until)
