"""Order rows that could not be read and still stand for their orders: listed, and decided."""

from collections.abc import Iterable, Sequence

import pandas as pd

from recon.model.errors import UsageError
from recon.model.words import BreakCode, Quarantined
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import Person
from recon.store.database.history import Event, append
from recon.store.nights import quarantine_rows, runs
from recon.store.nights.runs import Run

WHY_CHARACTERS_MIN = 10
PLACES_TOLD = 3


def outstanding_rows(environment: Environment) -> list[tuple[Run, tuple[Quarantined, ...]]]:
    """What stands now for each account that ever had a night."""
    with environment.store.reading() as connection:
        return [
            (run, quarantine_rows.outstanding(connection, run))
            for run in runs.newest_of_accounts(connection)
        ]


def dismiss_row(
    reject_id: int, *, person: Person, why: str, environment: Environment
) -> Quarantined:
    """Decide that a row stands for no order: the next night judges its order without it.

    Raises:
        UsageError: no such row stands for an order now, or the reason says nothing.
    """
    if len(why.strip()) < WHY_CHARACTERS_MIN:
        msg = f"say why the row stands for no order, in {WHY_CHARACTERS_MIN} characters or more"
        raise UsageError(msg)
    rows = {row.reject_id: row for _, reject in outstanding_rows(environment) for row in reject}
    if reject_id not in rows:
        known = ", ".join(map(str, sorted(rows))) or "none"
        msg = f"no rejected row {reject_id} stands for an order now (standing: {known})"
        raise UsageError(msg)
    row, by = rows[reject_id], person.declared.name
    details = {"source": row.source, "line": row.line, "order_no": row.order_no}
    with environment.store.writing() as connection:
        at = environment.clock()
        quarantine_rows.dismiss(connection, reject_id, by=by, why=why.strip(), at=at)
        event = Event(
            "rejected row", str(reject_id), "dismissed", {**details, "by": by, "why": why}
        )
        append(connection, [event], at=at)
    return row


def nameless_told(rows: Iterable[Quarantined], *, breaks: pd.DataFrame) -> list[str]:
    """A sentence when rows without an order number may be the orders that seem to be missing."""
    nameless = [row for row in rows if not row.order_no]
    orphans = int(breaks["code"].eq(BreakCode.MISSING_IN_ORDERS.value).sum())
    if not nameless or not orphans:
        return []
    sentence = (
        f"{len(nameless):,} order rows could not be read and name no order ({_places(nameless)}): "
        f"the {orphans:,} payments without an order may be theirs. Look there before anything is "
        "refunded."
    )
    return [sentence]


def _places(rows: Sequence[Quarantined]) -> str:
    places = [f"{row.source} line {row.line}" for row in rows[:PLACES_TOLD]]
    return ", ".join([*places, "…"] if len(rows) > PLACES_TOLD else places)
