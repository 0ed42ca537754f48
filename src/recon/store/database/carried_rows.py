"""Results that an earlier version kept as rows, for the upgrade that writes them to folders."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Select, column, inspect, select, table

from recon.archive.schemas import SCHEMAS
from recon.matching.breaks.result import AMOUNT_COLUMNS
from recon.matching.frames.sources import INSTANT, MINOR_UNITS_OR_BLANK, TEXT, frame_of
from recon.store.database.frames import frame_of_select
from recon.store.schema.columns import at_column

LAST_WITH_ROWS = "0027"
"""The newest revision of a database that has such rows."""
CARRIED = "carried"
"""Under this name the migration is told which runs have their folder: names of runs."""
SECTIONS: Mapping[str, str] = {
    "break": "breaks",
    "match": "matches",
    "pending": "pending",
    "unverified": "unverified",
}
_IDS = {"break_id": "id", "match_id": "id"}
DUE = "due_at"
_AT = at_column(DUE).type
_KEPT_AS_JSON = ("sides", "movements", "journals")


def nights_with_rows(connection: Connection) -> list[str]:
    """Runs with a result in rows, sorted."""
    if not inspect(connection).has_table("result_row"):
        return []
    kept: Select[Any] = select(column("run_id")).select_from(table("result_summary"))
    return sorted(connection.execute(kept).scalars())


def result_frames(connection: Connection, run_id: str) -> dict[str, pd.DataFrame]:
    """The rows of a result by the names of the night's files."""
    document = connection.execute(
        _of_run("result_summary", names=("document",), run_id=run_id)
    ).scalar_one()
    summary = json.loads(document)
    frames = {
        name: _frame(connection, run_id, name=name, section=section)
        for section, name in SECTIONS.items()
    }
    frames["effects"] = _frame(connection, run_id, name="effects")
    for name in _KEPT_AS_JSON:
        frames[name] = _from_summary(summary, name=name)
    return frames


def rules_digest(connection: Connection, run_id: str) -> str:
    """By which rules a run was judged."""
    query = _of_run("result_summary", names=("document",), run_id=run_id)
    return str(json.loads(connection.execute(query).scalar_one())["rules_digest"])


def _frame(connection: Connection, run_id: str, *, name: str, section: str = "") -> pd.DataFrame:
    names = SCHEMAS[name].columns.names
    source = "result_row" if section else "result_effect"
    query = _of_run(source, names=names, run_id=run_id).order_by(column("position"))
    if section:
        query = query.where(column("section") == section)
    return frame_of_select(connection, query, columns={each: _kind(each) for each in names})


def _of_run(source: str, *, names: Sequence[str], run_id: str) -> Select[Any]:
    ids = _IDS if source == "result_row" else {}
    chosen = (column(ids.get(name, name), _AT if name == DUE else None) for name in names)
    labelled = (each.label(name) for each, name in zip(chosen, names, strict=True))
    return select(*labelled).select_from(table(source)).where(column("run_id") == run_id)


def _from_summary(summary: Mapping[str, Any], *, name: str) -> pd.DataFrame:
    """A frame of the summary; blank where a night of a still earlier version kept none."""
    names = SCHEMAS[name].columns.names
    if name == "sides":
        kept = {"columns": summary["side_columns"], "data": summary["sides"]}
    else:
        kept = summary.get(name, {"data": [], "columns": names})
    rows = (dict(zip(kept["columns"], cells, strict=True)) for cells in kept["data"])
    whole = {"debit", "credit", "exposure", "exposure_before", "count", "amount"}
    kinds = {each: MINOR_UNITS_OR_BLANK if each in whole else TEXT for each in names}
    return frame_of(rows, columns=kinds)


def _kind(name: str) -> str:
    if name in AMOUNT_COLUMNS or name == "age_days":
        return MINOR_UNITS_OR_BLANK
    return INSTANT if name == DUE else TEXT
