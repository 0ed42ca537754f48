"""What a run came to as rows of text for the UI: its control totals and its open breaks.

What does not tie and what is gravest comes first; words and amounts are those of the workbook.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from flows.artifacts import ROWS_SHOWN_MAX
from recon.model.money import format_minor_units
from recon.model.words import ControlTotal, Severity
from recon.steps.ground import kept_results
from recon.store.nights import results
from reports.sheets.proof_words import QUESTIONS, proof_words

if TYPE_CHECKING:
    from recon.steps.ground.environment import Environment

COUNT = "count"
GRAVEST_FIRST = {severity.value: -rank for rank, severity in enumerate(Severity)}


def breaks_of(run_id: str, *, environment: "Environment") -> tuple[list[dict[str, str]], int]:
    """The first hundred open breaks of a run, and how many there are in all."""
    with environment.store.reading() as connection:
        breaks = kept_results.open_breaks(connection, run_id, environment=environment)
    return ([], 0) if breaks is None else (rows_of_breaks(breaks), len(breaks))


def rows_of_breaks(breaks: pd.DataFrame) -> list[dict[str, str]]:
    """Rows for a table: one per break, at most ROWS_SHOWN_MAX.

    Args:
        breaks: Frame with `recon.matching.breaks.result.BREAK_COLUMNS`, minor units.
    """
    rank = breaks["severity"].map(GRAVEST_FIRST)
    order = breaks.assign(_rank=rank).sort_values(["_rank", "exposure"], ascending=[True, False])
    return [_row_of_break(row) for row in order.head(ROWS_SHOWN_MAX).to_dict("records")]


def _row_of_break(row: Mapping[Any, Any]) -> dict[str, str]:
    currency = str(row["currency"])
    return {
        "order": str(row["order_no"]),
        "code": str(row["code"]),
        "severity": str(row["severity"]),
        "currency": currency,
        "exposure": _amount(row["exposure"], currency=currency),
        "effect on orders": _amount(row["effect_orders"], currency=currency),
        "effect on ledger": _amount(row["effect_ledger"], currency=currency),
        "owed to": str(row["owed_to"]),
        "age in days": str(row["age_days"]),
        "reason": str(row["reason"]),
        "break": str(row["break_id"]),
    }


def _amount(minor_units: Any, *, currency: str) -> str:
    """Blank where the side is absent."""
    if pd.isna(minor_units) or not currency:
        return ""
    return format_minor_units(int(minor_units), currency=currency)


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
