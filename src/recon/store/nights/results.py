"""Results of runs in the database: control totals, a summary, and row counts.

The rows themselves are in the night's folder (`steps.runtime.night_folder`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime

from sqlalchemy import Connection, select

from recon.matching.breaks.result import SECTIONS, Reconciliation
from recon.model.terms import ControlTotal, Verdict
from recon.store.database.bulk_rows import read, replace_rows
from recon.store.database.history import value_of
from recon.store.database.record import SUMMARY, cells_of
from recon.store.nights import runs
from recon.store.schema import control_total, result_summary
from recon.store.schema.columns import Owner


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a result."""

    as_of: datetime
    verdict: Verdict
    """Verdict of the comparison; the report may still lower it to NOT PROVEN."""
    unmapped_codes: tuple[Mapping[str, str | int], ...]
    not_covered: tuple[str, ...]
    scope_of_assurance: tuple[Mapping[str, str | int], ...]
    rules_digest: str
    words_digest: str
    digest: str
    rows: Mapping[str, int]
    """Section -> number of rows."""
    exposure: Mapping[str, int]
    """Currency -> minor units at risk in open breaks."""


OF_RESULT = (
    *("as_of", "verdict", "unmapped_codes", "not_covered", "scope_of_assurance"),
    *("rules_digest", "words_digest"),
)
"""Fields of a result that its summary has as they are."""


def save(connection: Connection, run_id: str, *, result: Reconciliation) -> Mapping[str, str]:
    """Store a run's result in place of an earlier one; return its summary's cells to attest."""
    at_risk = result.breaks.groupby(result.breaks["currency"].astype(str))["exposure"].sum()
    summary = Summary(
        **{name: getattr(result, name) for name in OF_RESULT},
        digest=result.digest,
        rows={name: result.rows_of(section) for name, section in SECTIONS.items()},
        exposure={str(currency): int(amount) for currency, amount in at_risk.items()},
    )
    saved = {"document": json.dumps(asdict(summary), sort_keys=True, default=_as_text)}
    replace_rows(connection, result_summary, run_id, [saved])
    save_totals(connection, run_id, totals=result.control_totals)
    return cells_of(SUMMARY, saved)


def _as_text(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else int(str(value))


def save_totals(connection: Connection, run_id: str, *, totals: tuple[ControlTotal, ...]) -> None:
    """Replace the control totals of a run."""
    rows = [{"position": position, **asdict(total)} for position, total in enumerate(totals)]
    replace_rows(connection, control_total, run_id, rows)


def load_summary(connection: Connection, run_id: str) -> Summary | None:
    """Return the summary of a run; None if it has no result."""
    document = connection.execute(
        select(result_summary.c.document).where(result_summary.c.run_id == run_id)
    ).scalar_one_or_none()
    if document is None:
        return None
    return value_of(Summary, json.loads(document))


def load_totals(connection: Connection, run_id: str) -> tuple[ControlTotal, ...]:
    """Return the control totals of a run, in order."""
    own = control_total.c.run_id == run_id
    order = [control_total.c.position]
    return tuple(read(connection, ControlTotal, control_total, own, order=order))


def open_breaks(connection: Connection, run_id: str) -> int:
    """Return how many breaks a run left open; 0 if it has no result."""
    summary = load_summary(connection, run_id)
    return 0 if summary is None else summary.rows["break"]


def open_breaks_by_night(connection: Connection, owner: Owner, *, before: date) -> dict[date, int]:
    """Return open breaks by business date, of the newest finished run, live preferred over dry."""
    nights = runs.last_finished(connection, owner)
    return {
        day: open_breaks(connection, night.run_id)
        for day, night in sorted(nights.items())
        if day < before
    }
