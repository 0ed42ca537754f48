"""A statement as files: tables as CSV, one JSON document, and its SQL as one script."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recon.model.money import format_minor_units
from recon.period.month_statement import AMOUNT, CLOSING, MOVED, OPENING, MonthFigure
from recon.privacy.own_files import make_folder, replace_result
from recon.steps.care.month_statements import StatedMonth
from recon.steps.ground.csv_columns import csv_parts

ORDER = {OPENING: 0, MOVED: 1, CLOSING: 2}
FIGURE_COLUMNS = ("currency", "of", "at", "name", "count", "amount")
SCRIPT = "statement.sql"
_AMOUNTS = frozenset({"amount", "shown", "debit", "credit"})
"""Columns of minor units."""


def name_of(stated: StatedMonth) -> str:
    """How its workbook and its folder are called: `statement-<merchant>-<account>-2026-11`."""
    statement = stated.statement
    return "-".join(("statement", *statement.account, statement.month.name))


def write_month_files(stated: StatedMonth, *, files: Mapping[str, str], folder: Path) -> Path:
    """Write its files (`month_files`) below a folder of the statement's name; gives that folder.

    Raises:
        OSError: the folder cannot be written.
    """
    return write_files(files, folder=folder / name_of(stated))


def write_files(files: Mapping[str, str], *, folder: Path) -> Path:
    """Write files by name into a folder, which is made; gives it back.

    Raises:
        OSError: the folder cannot be written.
    """
    make_folder(folder)
    for name, text in files.items():
        replace_result(folder / name, text)
    return folder


def month_files(stated: StatedMonth) -> dict[str, str]:
    """Name -> content of every file; amounts with the decimals of their currency."""
    statement = stated.statement
    frames: dict[str, pd.DataFrame | None] = {
        "opening-items": statement.opening_items,
        "closing-items": statement.closing_items,
        "facts": statement.facts,
        "straddling": statement.straddling,
        "in-transit": statement.transit,
        "books": statement.books,
        "told-by-nights": statement.told,
        "journals": statement.journals,
    }
    tables = {f"{name}.csv": _table(frame) for name, frame in frames.items() if frame is not None}
    nights = [
        {
            "night": each.business_date.isoformat(),
            "run": each.run_id,
            "standing": each.standing,
            "trouble": each.trouble,
        }
        for each in stated.nights
    ]
    figures = [_cells(figure) for figure in in_order(statement.figures)]
    return {
        "figures.csv": csv_text(FIGURE_COLUMNS, figures),
        **tables,
        "proof.csv": csv_text(_PROOF, proof_rows(stated)),
        "nights.csv": csv_text(("night", "run", "standing", "trouble"), nights),
        SCRIPT: statement.sql,
    }


_PROOF = ("id", "name", "currency", "measure", "left", "right", "holds")


def proof_rows(stated: StatedMonth) -> list[dict[str, Any]]:
    """The equations with both sides; amounts as text."""
    rows = []
    for each in stated.statement.equations:
        sides: dict[str, int | str] = {"left": each.left, "right": each.right}
        if each.measure == AMOUNT:
            sides = {
                name: format_minor_units(number, currency=each.currency)
                for name, number in (("left", each.left), ("right", each.right))
            }
        about = {"id": each.id, "name": each.name, "currency": each.currency}
        rows.append({**about, "measure": each.measure, **sides, "holds": each.holds})
    return rows


def document_of(stated: StatedMonth) -> dict[str, Any]:
    """The statement for programs; amounts as text."""
    statement = stated.statement
    return {
        "merchant": statement.account[0],
        "account": statement.account[1],
        "month": statement.month.name,
        "known_by": stated.known_by,
        "proven": stated.is_proven,
        "troubles": stated.troubles,
        "first_month": stated.is_first,
        "settlement_covered": statement.is_settled,
        "bank_covered": statement.transit is not None,
        "books_covered": statement.books is not None,
        "rules": dict(stated.rules),
        "figures": [_cells(figure) for figure in in_order(statement.figures)],
        "proof": proof_rows(stated),
        "refunds_not_measured": [refund.payment for refund in statement.unknown_refunds],
    }


def in_order(figures: Sequence[MonthFigure]) -> list[MonthFigure]:
    """By currency and what they are of, opening before movements before closing."""
    return sorted(figures, key=lambda each: (each.currency, each.of, ORDER[each.at], each.name))


def _cells(figure: MonthFigure) -> dict[str, Any]:
    cells = {name: getattr(figure, name) for name in FIGURE_COLUMNS}
    return {**cells, "amount": format_minor_units(figure.amount, currency=figure.currency)}


def _table(frame: pd.DataFrame) -> str:
    columns = [*map(str, frame.columns)]
    parts = csv_parts(frame, columns=columns, amounts=_AMOUNTS.intersection(columns))
    return b"".join(parts).decode()


def csv_text(
    columns: Sequence[str], rows: Iterator[Mapping[str, Any]] | Sequence[Mapping[str, Any]]
) -> str:
    """Rows as a CSV file with a header."""
    target = io.StringIO()
    writer = csv.DictWriter(target, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return target.getvalue()
