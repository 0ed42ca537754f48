"""What a run came to as rows of text for the UI: its control totals and its open breaks.

What does not tie and what is gravest comes first; words and amounts are those of the workbook.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recon.model.money import format_minor_units
from recon.model.words import ControlTotal
from recon.steps.compare.shown_breaks import BREAKS_SHOWN_MAX, rows_of_breaks
from recon.steps.ground import kept_results
from recon.store.nights import results
from reports.sheets.proof_words import QUESTIONS, proof_words
from reports.sheets.words import words_of

if TYPE_CHECKING:
    import pandas as pd

    from recon.steps.ground.environment import Environment

COUNT = "count"
BEYOND_THE_EDGE = ("effect on orders", "effect on ledger", "owed to", "code", "reason", "break")
"""Columns of a break that a page shows to whoever scrolls, or searches."""


def breaks_of(run_id: str, *, environment: "Environment") -> tuple[list[dict[str, str]], int]:
    """The first hundred open breaks of a run, and how many there are in all."""
    with environment.store.reading() as connection:
        breaks = kept_results.open_breaks(connection, run_id, environment=environment)
    if breaks is None:
        return [], 0
    return rows_on_the_page(breaks), len(breaks)


def rows_on_the_page(breaks: "pd.DataFrame") -> list[dict[str, str]]:
    """A row a break, the gravest first: the columns that no page cuts say what is wrong.

    Args:
        breaks: as `rows_of_breaks` takes it; a hundred of them are shown.
    """
    return [_on_the_page(row) for row in rows_of_breaks(breaks, at_most=BREAKS_SHOWN_MAX)]


def _on_the_page(row: Mapping[str, str]) -> dict[str, str]:
    return {
        "order": row["order"],
        "what is wrong": words_of(row["code"]).title,
        "severity": row["severity"],
        "money at risk": f"{row['money at risk']} {row['currency']}".strip(),
        "age in days": row["age in days"],
        **{name: row[name] for name in BEYOND_THE_EDGE},
    }


def totals_of(run_id: str, *, environment: "Environment") -> tuple[ControlTotal, ...]:
    """The control totals that the run has stored."""
    with environment.store.reading() as connection:
        return results.load_totals(connection, run_id)


def rows_of_totals(totals: Sequence[ControlTotal]) -> list[dict[str, str]]:
    """One row per equation, both sides written out; those that do not tie come first."""
    return [_row_of_total(total) for total in sorted(totals, key=lambda total: total.passed)]


def _row_of_total(total: ControlTotal) -> dict[str, str]:
    return {
        "ties": "yes" if total.passed else "NO",
        "what must be equal": proof_words(total.name),
        "currency": total.currency,
        "first figure": _written(total.left, of=total),
        "second figure": _written(total.right, of=total),
        "difference": _written(total.difference, of=total),
        "ref.": total.id,
        "what was proven": QUESTIONS.get(total.id, ""),
    }


def _written(figure: int, *, of: ControlTotal) -> str:
    """A count as it is, an amount in its currency's units."""
    if of.measure == COUNT or not of.currency:
        return str(figure)
    return format_minor_units(figure, currency=of.currency)
