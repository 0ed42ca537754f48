"""A statement and a prepared close as files, and the digest of a close that its two people sign.

Tables are CSV, beside them one JSON document and the SQL as one script. Months are signed by what
they say, not by the bytes of a workbook: a night that ran since and moved nothing of the month
leaves the digest as it was.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from recon.model.money import format_minor_units
from recon.model.resolutions import with_answers
from recon.period.month_statement import (
    AMOUNT,
    CLOSING,
    DIFFERENCES,
    ITEMS,
    MOVED,
    MOVEMENTS,
    OPENING,
    RESERVE_MOVED,
    TRANSIT,
    MonthFigure,
)
from recon.privacy.own_files import make_folder, replace_result
from recon.steps.care.month_closes import PreparedClose
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


BLOCKER_COLUMNS = ("what", "owner", "where")
OPEN_COLUMNS = ("what", "count", "currency", "amount")
BREAK_COLUMNS = (
    *("break_id", "code", "order_no", "transaction_id", "currency", "exposure", "severity"),
    *("first_seen", "resolution", "owner", "comment", "about"),
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


LISTS = (
    *("opening-items.csv", "closing-items.csv", "facts.csv", "in-transit.csv", "books.csv"),
    *("journals.csv", "nights.csv", "open-breaks.csv", "blockers.csv", "open-at-close.csv"),
)
"""Files of a close that are signed beside its figures; the others say the same, or how it was
proven by the nights that are known."""
_NAMES: Mapping[str, str] = {
    **MOVEMENTS,
    **ITEMS,
    **TRANSIT,
    **DIFFERENCES,
    "in_transit": "In transit",
    "reserve": RESERVE_MOVED,
}
_KEY = 4
"""Cells of a figure that name it: currency, of, at, name."""


@dataclass(frozen=True, slots=True)
class SeenClose:
    """What somebody looks at who signs."""

    digest: str
    figures: Sequence[Sequence[Any]]
    """currency, of, at, name, count, amount in minor units."""
    lists: Mapping[str, str]
    """File -> SHA-256."""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name -> content of all files of the close: they are made once."""

    @property
    def document(self) -> dict[str, Any]:
        """As the history keeps it."""
        return {"figures": [[*figure] for figure in self.figures], "lists": dict(self.lists)}


def seen_close(close: PreparedClose) -> SeenClose:
    """The digest of a close, with what it is made of."""
    statement = close.stated.statement
    figures = [
        (each.currency, each.of, each.at, each.name, each.count, each.amount)
        for each in in_order(statement.figures)
    ]
    files = close_files(close)
    lists = {
        name: hashlib.sha256(files[name].encode()).hexdigest() for name in LISTS if name in files
    }
    which = (statement.account, statement.month.name, len(close.state.closes) + 1)
    whole = (which, close.prepared_verdict.value, figures, lists)
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    return SeenClose(digest, figures, lists, files)


def moved_since(seen: Mapping[str, Any], *, now: SeenClose) -> list[str]:
    """Which figures are others than when somebody looked, then which lists; each as a sentence."""
    figures = [*_figures_moved(_by_name(seen["figures"]), _by_name(now.figures))]
    before = seen["lists"]
    lists = [
        f"{name} is another list"
        for name in sorted({*before, *now.lists})
        if before.get(name) != now.lists.get(name)
    ]
    return [*figures, *lists]


def _by_name(figures: Sequence[Sequence[Any]]) -> dict[tuple[str, ...], tuple[int, int]]:
    return {tuple(each[:_KEY]): (int(each[_KEY]), int(each[_KEY + 1])) for each in figures}


def _figures_moved(
    then: Mapping[tuple[str, ...], tuple[int, int]], now: Mapping[tuple[str, ...], tuple[int, int]]
) -> Iterator[str]:
    for key in sorted({*then, *now}):
        before, after = then.get(key, (0, 0)), now.get(key, (0, 0))
        if before != after:
            currency, of, at, name = key
            named = _NAMES.get(name, name.replace("_", " "))
            yield (
                f"{of}, {at}, {named}: {_shown(before, currency)} then, "
                f"{_shown(after, currency)} now"
            )


def _shown(figure: tuple[int, int], currency: str) -> str:
    count, amount = figure
    return f"{format_minor_units(amount, currency=currency)} {currency} ({count})"
