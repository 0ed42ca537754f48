"""A prepared close as files: those of the statement, what blocks it, and what is open."""

from pathlib import Path
from typing import Any

from recon.model.money import format_minor_units
from recon.steps.care.month_closes import PreparedClose
from recon.steps.care.month_files import csv_text, document_of, write_month_files

BLOCKER_COLUMNS = ("what", "owner", "where")
OPEN_COLUMNS = ("what", "count", "currency", "amount")


def close_name(close: PreparedClose) -> str:
    """How its workbook and its folder are called: `close-<merchant>-<account>-2026-11`."""
    statement = close.stated.statement
    return "-".join(("close", *statement.account, statement.month.name))


def write_close_files(close: PreparedClose, *, folder: Path) -> Path:
    """Write the tables and the script below a folder of the close's name; gives that folder.

    Raises:
        OSError: the folder cannot be written.
    """
    more = {
        "blockers.csv": csv_text(BLOCKER_COLUMNS, _blockers(close)),
        "open-at-close.csv": csv_text(OPEN_COLUMNS, _open_items(close)),
    }
    return write_month_files(close.stated, folder=folder, name=close_name(close), more=more)


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
