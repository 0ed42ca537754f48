"""The result of a reconciliation in tables: what reports read and later nights carry forward."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pandas as pd
from sqlalchemy import Connection, delete, func, insert, select

from recon.matching.breaks.result import (
    AMOUNT_COLUMNS,
    BREAK_COLUMNS,
    EFFECT_COLUMNS,
    JOURNAL_COLUMNS,
    MATCH_COLUMNS,
    MOVEMENT_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
    Deferred,
    Reconciliation,
)
from recon.matching.frames.sources import (
    INSTANT,
    MINOR_UNITS,
    MINOR_UNITS_OR_BLANK,
    TEXT,
    frame_of,
)
from recon.model.words import ControlTotal, Verdict
from recon.store.database.frames import frame_of_select, rows_of
from recon.store.nights import runs
from recon.store.schema import (
    control_total,
    result_effect,
    result_row,
    result_summary,
)

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "break": BREAK_COLUMNS,
    "match": MATCH_COLUMNS,
    "pending": PENDING_COLUMNS,
    "unverified": UNVERIFIED_COLUMNS,
}
"""Section of `result_row` -> the columns of its frame."""

_IN_SUMMARY: Mapping[str, tuple[str, ...]] = {
    "movements": MOVEMENT_COLUMNS,
    "journals": JOURNAL_COLUMNS,
}
"""Frames that are kept in the summary of a run; nobody queries them by the row."""

_ID_NAMES = frozenset({"break_id", "match_id"})
_TOTAL_COLUMNS = tuple(ControlTotal.__dataclass_fields__)


def save(connection: Connection, run_id: str, *, result: Reconciliation) -> None:
    """Store one result in place of an earlier one of the same run."""
    for table in (result_row, result_effect, control_total, result_summary):
        connection.execute(delete(table).where(table.c.run_id == run_id))
    frames = (result.breaks, result.matches, result.pending, result.unverified)
    for section, frame in zip(SECTIONS, frames, strict=True):
        _insert_section(connection, run_id, section=section, frame=frame)
    effects = [
        {**row, "run_id": run_id, "position": position}
        for position, row in enumerate(rows_of(result.effects))
    ]
    if effects:
        connection.execute(insert(result_effect), effects)
    save_totals(connection, run_id, totals=result.control_totals)
    connection.execute(insert(result_summary).values(run_id=run_id, document=_summary_of(result)))


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


def load(
    connection: Connection, run_id: str, *, with_matches: bool = True
) -> Reconciliation | None:
    """The stored result of a run; None when it never got that far.

    Without its matches their frame is empty: `match_batch` reads them in parts.
    """
    document = connection.execute(
        select(result_summary.c.document).where(result_summary.c.run_id == run_id)
    ).scalar_one_or_none()
    if document is None:
        return None
    parsed = json.loads(document)
    limits = {} if with_matches else {"match": 0}
    frames = {
        name: _load_section(connection, run_id, section=name, rows_max=limits.get(name))
        for name in SECTIONS
    }
    effects = select(*(result_effect.c[name] for name in EFFECT_COLUMNS)).where(
        result_effect.c.run_id == run_id
    )
    kinds = {name: _kind(name) for name in EFFECT_COLUMNS}
    in_summary = _told_frames(parsed)
    return Reconciliation(
        as_of=datetime.fromisoformat(parsed["as_of"]),
        verdict=Verdict(parsed["verdict"]),
        breaks=frames["break"],
        effects=frame_of_select(
            connection, effects.order_by(result_effect.c.position), columns=kinds
        ),
        every_match=Deferred(lambda: frames["match"]),
        pending=frames["pending"],
        unverified=frames["unverified"],
        control_totals=load_totals(connection, run_id),
        sides=pd.DataFrame(parsed["sides"], columns=parsed["side_columns"]),
        unmapped_codes=tuple(parsed["unmapped_codes"]),
        not_covered=tuple(parsed["not_covered"]),
        scope_of_assurance=tuple(parsed["scope_of_assurance"]),
        rules_digest=parsed["rules_digest"],
        digest_of_all=Deferred(lambda: str(parsed["digest"])),
        movements=in_summary["movements"],
        journals=in_summary["journals"],
    )


def open_breaks(connection: Connection, run_id: str) -> pd.DataFrame | None:
    """The open breaks of a stored result, BREAK_COLUMNS; None when the run never got that far."""
    stored = select(result_summary.c.run_id).where(result_summary.c.run_id == run_id)
    if connection.execute(stored).scalar_one_or_none() is None:
        return None
    return _load_section(connection, run_id, section="break")


def orders_left_open(connection: Connection, run_id: str) -> set[str]:
    """The orders of a stored result's open breaks and of what waits within grace."""
    query = select(result_row.c.order_no).where(
        result_row.c.run_id == run_id, result_row.c.section.in_(("break", "pending"))
    )
    return {*connection.execute(query).scalars()}


def load_totals(connection: Connection, run_id: str) -> tuple[ControlTotal, ...]:
    """The control totals of a run, in order."""
    rows = connection.execute(
        select(control_total)
        .where(control_total.c.run_id == run_id)
        .order_by(control_total.c.position)
    ).mappings()
    return tuple(ControlTotal(**{name: row[name] for name in _TOTAL_COLUMNS}) for row in rows)


def section_counts(connection: Connection, run_id: str) -> dict[str, int]:
    """Rows per section, counted by the database: the independent side of T13."""
    counted = connection.execute(
        select(result_row.c.section, func.count())
        .where(result_row.c.run_id == run_id)
        .group_by(result_row.c.section)
    )
    return {section: int(rows) for section, rows in counted.all()}


def section_sums(connection: Connection, run_id: str, *, column: str) -> dict[tuple[str, str], int]:
    """(section, currency) -> sum of an amount column, computed by the database."""
    rows = connection.execute(
        select(
            result_row.c.section,
            result_row.c.currency,
            func.coalesce(func.sum(result_row.c[column]), 0),
        )
        .where(result_row.c.run_id == run_id)
        .group_by(result_row.c.section, result_row.c.currency)
    )
    return {(section, currency): int(total) for section, currency, total in rows.all()}


def open_breaks_by_night(
    connection: Connection, *, merchant_id: str, account_id: str, before: str
) -> dict[str, int]:
    """Business date -> open breaks of its newest finished run, live before dry, for the trend."""
    nights = runs.last_finished(connection, merchant_id=merchant_id, account_id=account_id)
    return {
        day: section_counts(connection, night.run_id).get("break", 0)
        for day, night in sorted(nights.items())
        if day < before
    }


def _insert_section(
    connection: Connection, run_id: str, *, section: str, frame: pd.DataFrame
) -> None:
    rows = []
    for position, cells in enumerate(rows_of(frame)):
        named = {("id" if name in _ID_NAMES else name): cells[name] for name in cells}
        if "first_seen" in named:
            named["first_seen"] = (
                "" if named["first_seen"] is None else str(named["first_seen"])[:10]
            )
        rows.append({**named, "run_id": run_id, "section": section, "position": position})
    if rows:
        connection.execute(insert(result_row), rows)


def match_batch(connection: Connection, run_id: str, *, first: int, rows_max: int) -> pd.DataFrame:
    """Matches of a run in order, from a position on; empty behind the last."""
    return _load_section(connection, run_id, section="match", first=first, rows_max=rows_max)


def _load_section(
    connection: Connection,
    run_id: str,
    *,
    section: str,
    first: int = 0,
    rows_max: int | None = None,
) -> pd.DataFrame:
    names = SECTIONS[section]
    query = (
        select(
            *(
                result_row.c.id.label(name) if name in _ID_NAMES else result_row.c[name]
                for name in names
            )
        )
        .where(result_row.c.run_id == run_id, result_row.c.section == section)
        .where(result_row.c.position >= first)
        .order_by(result_row.c.position)
        .limit(rows_max)
    )
    return frame_of_select(connection, query, columns={name: _kind(name) for name in names})


def _kind(name: str) -> str:
    if name in AMOUNT_COLUMNS or name == "age_days":
        return MINOR_UNITS_OR_BLANK
    return INSTANT if name == "due_at" else TEXT


def _told_frames(document: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """The frames of a summary; blank where a night of an earlier version kept none."""
    frames = {}
    for name, columns in _IN_SUMMARY.items():
        kept = document.get(name, {"data": [], "columns": columns})
        rows = (dict(zip(kept["columns"], cells, strict=True)) for cells in kept["data"])
        kinds = {column: MINOR_UNITS if column in _WHOLE else TEXT for column in columns}
        frames[name] = frame_of(rows, columns=kinds)
    return frames


_WHOLE = frozenset({"debit", "credit", "exposure", "exposure_before"})


def _summary_of(result: Reconciliation) -> str:
    summary: dict[str, Any] = {
        "as_of": result.as_of.isoformat(),
        "verdict": result.verdict.value,
        "side_columns": list(result.sides.columns),
        "sides": [list(row.values()) for row in rows_of(result.sides)],
        "unmapped_codes": [dict(item) for item in result.unmapped_codes],
        "not_covered": list(result.not_covered),
        "scope_of_assurance": [dict(item) for item in result.scope_of_assurance],
        "rules_digest": result.rules_digest,
        "digest": result.digest,
        **{name: getattr(result, name).to_dict("split") for name in _IN_SUMMARY},
    }
    return json.dumps(summary, sort_keys=True, default=int)
