"""What the database keeps of a result: its totals, its words, and how many rows it has.

The rows themselves lie in the night's folder (`steps.ground.kept_results`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime

from sqlalchemy import Connection, delete, insert, select

from recon.matching.breaks.result import Reconciliation
from recon.model.words import ControlTotal, Verdict
from recon.store.database.bound_tables import SUMMARY
from recon.store.database.record import cells_of
from recon.store.nights import runs
from recon.store.schema import control_total, result_summary

SECTIONS: Mapping[str, str] = {
    "break": "breaks",
    "match": "matches",
    "pending": "pending",
    "unverified": "unverified",
}
"""Section of a result, as totals name it -> its frame, and its file in the night's folder."""

_TOTAL_COLUMNS = tuple(ControlTotal.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Summary:
    """A result in a few words."""

    as_of: datetime
    verdict: Verdict
    """As it was judged; the report may find it NOT PROVEN."""
    unmapped_codes: tuple[Mapping[str, str | int], ...]
    not_covered: tuple[str, ...]
    scope_of_assurance: tuple[Mapping[str, str | int], ...]
    rules_digest: str
    digest: str
    rows: Mapping[str, int]
    """Section -> rows."""
    exposure: Mapping[str, int]
    """Currency -> minor units at risk in open breaks."""


def save(connection: Connection, run_id: str, *, result: Reconciliation) -> Mapping[str, str]:
    """Keep one result in place of an earlier one of the same run; what binds its summary."""
    document = save_summary(connection, run_id, summary=summary_of(result))
    save_totals(connection, run_id, totals=result.control_totals)
    return cells_of(SUMMARY, {"document": document})


def summary_of(result: Reconciliation) -> Summary:
    """A result without its rows."""
    at_risk = result.breaks.groupby(result.breaks["currency"].astype(str))["exposure"].sum()
    return Summary(
        as_of=result.as_of,
        verdict=result.verdict,
        unmapped_codes=result.unmapped_codes,
        not_covered=result.not_covered,
        scope_of_assurance=result.scope_of_assurance,
        rules_digest=result.rules_digest,
        digest=result.digest,
        rows={name: result.rows_of(section) for name, section in SECTIONS.items()},
        exposure={str(currency): int(amount) for currency, amount in at_risk.items()},
    )


def save_summary(connection: Connection, run_id: str, *, summary: Summary) -> str:
    """Replace the summary of a run; the text that is stored."""
    connection.execute(delete(result_summary).where(result_summary.c.run_id == run_id))
    document = json.dumps(asdict(summary), sort_keys=True, default=_as_text)
    connection.execute(insert(result_summary).values(run_id=run_id, document=document))
    return document


def _as_text(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else int(str(value))


def save_totals(connection: Connection, run_id: str, *, totals: tuple[ControlTotal, ...]) -> None:
    """Replace the control totals of a run."""
    connection.execute(delete(control_total).where(control_total.c.run_id == run_id))
    rows = [
        {
            "run_id": run_id,
            "position": position,
            **{name: getattr(total, name) for name in _TOTAL_COLUMNS},
        }
        for position, total in enumerate(totals)
    ]
    if rows:
        connection.execute(insert(control_total), rows)


def load_summary(connection: Connection, run_id: str) -> Summary | None:
    """The summary of a run; None when it never came to a result."""
    document = connection.execute(
        select(result_summary.c.document).where(result_summary.c.run_id == run_id)
    ).scalar_one_or_none()
    if document is None:
        return None
    kept = json.loads(document)
    lists = ("unmapped_codes", "not_covered", "scope_of_assurance")
    typed = {"as_of": datetime.fromisoformat(kept["as_of"]), "verdict": Verdict(kept["verdict"])}
    return Summary(**{**kept, **typed, **{name: tuple(kept[name]) for name in lists}})


def load_totals(connection: Connection, run_id: str) -> tuple[ControlTotal, ...]:
    """The control totals of a run, in order."""
    rows = connection.execute(
        select(control_total)
        .where(control_total.c.run_id == run_id)
        .order_by(control_total.c.position)
    ).mappings()
    return tuple(ControlTotal(**{name: row[name] for name in _TOTAL_COLUMNS}) for row in rows)


def open_breaks(connection: Connection, run_id: str) -> int:
    """How many breaks a run left open; 0 when it never came to a result."""
    summary = load_summary(connection, run_id)
    return 0 if summary is None else summary.rows["break"]


def open_breaks_by_night(
    connection: Connection, *, merchant_id: str, account_id: str, before: date
) -> dict[date, int]:
    """Business date -> open breaks of its newest finished run, live before dry, for the trend."""
    nights = runs.last_finished(connection, merchant_id=merchant_id, account_id=account_id)
    return {
        day: open_breaks(connection, night.run_id)
        for day, night in sorted(nights.items())
        if day < before
    }
