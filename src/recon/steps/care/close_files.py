"""A prepared close as files: those of the statement, what blocks it, and what is open."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from recon.model.money import format_minor_units
from recon.model.resolutions import with_answers
from recon.steps.care.month_closes import PreparedClose
from recon.steps.care.month_files import csv_text, document_of, month_files, write_files

BLOCKER_COLUMNS = ("what", "owner", "where")
OPEN_COLUMNS = ("what", "count", "currency", "amount")
BREAK_COLUMNS = (
    *("break_id", "code", "order_no", "transaction_id", "currency", "exposure", "severity"),
    *("first_seen", "resolution", "owner", "comment"),
)


def close_name(close: PreparedClose) -> str:
    """How its workbook and its folder are called: `close-<merchant>-<account>-2026-11`."""
    statement = close.stated.statement
    return "-".join(("close", *statement.account, statement.month.name))


def close_files(close: PreparedClose) -> dict[str, str]:
    """Name -> content of every file: those of the statement, and beside them the close's own."""
    return {
        **month_files(close.stated),
        "blockers.csv": csv_text(BLOCKER_COLUMNS, _blockers(close)),
        "open-at-close.csv": csv_text(OPEN_COLUMNS, _open_items(close)),
        "open-breaks.csv": csv_text(BREAK_COLUMNS, _open_breaks(close)),
    }


def write_close_files(close: PreparedClose, *, files: Mapping[str, str], folder: Path) -> Path:
    """Write its files (`close_files`) below a folder of the close's name; gives that folder.

    Raises:
        OSError: the folder cannot be written.
    """
    return write_files(files, folder=folder / close_name(close))


def close_document(close: PreparedClose) -> dict[str, Any]:
    """The close for programs; amounts as text."""
    return {
        "verdict": close.verdict.value,
        "blockers": _blockers(close),
        "open_items": _open_items(close),
        "statement": document_of(close.stated),
    }


def _blockers(close: PreparedClose) -> list[dict[str, Any]]:
    return [{name: getattr(each, name) for name in BLOCKER_COLUMNS} for each in close.blockers]


def _open_items(close: PreparedClose) -> list[dict[str, Any]]:
    return [
        {
            "what": each.what,
            "count": each.count,
            "currency": each.currency,
            "amount": format_minor_units(each.amount, currency=each.currency)
            if each.currency
            else "",
        }
        for each in close.open_items
    ]


def _open_breaks(close: PreparedClose) -> Iterator[Mapping[str, Any]]:
    """What the last night by the close shows as open, with what people answered."""
    rows = close.stated.statement.breaks.sort_values("break_id").to_dict("records")
    for row in with_answers(rows, close.answers):
        cells = {name: row[name] for name in BREAK_COLUMNS}
        at_risk, currency = row["exposure"], str(row["currency"])
        shown = "" if pd.isna(at_risk) else format_minor_units(int(at_risk), currency=currency)
        cells["exposure"] = shown
        yield cells
