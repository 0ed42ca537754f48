"""The open breaks of a night as rows of text, for the terminal and the UI.

Order, labels and amounts are those of the workbook.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from recon.matching.breaks.result import subject_of
from recon.matching.classifying.severity import owed_text, risk_of_break, urgency
from recon.model.business_date import BusinessCalendar, Grace
from recon.model.figures import Attention
from recon.model.money import format_minor_units
from recon.model.resolutions import StoredAnswer
from recon.model.terms import SEVERE

ANSWERED_WITHIN = Grace.parse("1bd")
"""A severe break has an owner and a comment by the next business day: nobody signs before that."""


def severe_breaks(
    breaks: pd.DataFrame,
    *,
    answers: Mapping[str, StoredAnswer],
    calendar: BusinessCalendar,
    began_at: datetime,
) -> tuple[Attention, ...]:
    """The severe breaks with their owner and due date, the most urgent first.

    Args:
        breaks: Frame with `recon.matching.breaks.result.BREAK_COLUMNS`, minor units.
        answers: Break id -> its stored answer, where somebody gave one.
        calendar: Calendar of the rules of the comparison.
        began_at: When the night began; a break answered before that is still open.
    """
    severe = breaks[breaks["severity"].isin(SEVERE)]
    return tuple(
        _of_break(row, stored=answers.get(row["break_id"]), calendar=calendar, began_at=began_at)
        for row in sorted(severe.to_dict("records"), key=urgency)
    )


def _of_break(
    row: Mapping[Any, Any],
    *,
    stored: StoredAnswer | None,
    calendar: BusinessCalendar,
    began_at: datetime,
) -> Attention:
    since = datetime.fromisoformat(row["first_seen"]).replace(tzinfo=UTC)
    return Attention(
        what=f"{row['severity'].lower()} break",
        code=row["code"],
        order_no=row["order_no"],
        transaction_id=row["transaction_id"],
        subject=row["about"],
        currency=row["currency"],
        amount=risk_of_break(row),
        since=since,
        next_step=row["reason"],
        is_urgent=True,
        owner=stored.answer.owner if stored else "",
        due=calendar.local_date(calendar.due_at(since, grace=ANSWERED_WITHIN)),
        answered=stored.valid_since(began_at, zone=calendar.zone) if stored else "",
    )


BREAKS_DISPLAYED_MAX = 100
"""Rows shown on a terminal or a page; the workbook has all of them."""


def rows_of_breaks(
    breaks: pd.DataFrame, *, at_most: int | None = None, grouped: bool = True
) -> list[dict[str, str]]:
    """One row per break, the most severe first.

    Args:
        breaks: Frame with `recon.matching.breaks.result.BREAK_COLUMNS`, minor units.
        at_most: Greatest number of rows; None: all.
        grouped: Whether thousands are set apart, as people read amounts.
    """
    shown = sorted(breaks.to_dict("records"), key=urgency)[:at_most]
    return [_row_of(row, grouped=grouped) for row in shown]


def _row_of(row: Mapping[Any, Any], *, grouped: bool) -> dict[str, str]:
    currency = str(row["currency"])

    def amount(minor_units: Any) -> str:
        """In decimals, blank where the side is absent."""
        if pd.isna(minor_units) or not currency:
            return ""
        return format_minor_units(int(minor_units), currency=currency, grouped=grouped)

    return {
        "order": subject_of(row),
        "code": str(row["code"]),
        "severity": str(row["severity"]),
        "currency": currency,
        "money at risk": amount(risk_of_break(row)),
        "exposure": amount(row["exposure"]),
        "effect on orders": amount(row["effect_orders"]),
        "effect on ledger": amount(row["effect_ledger"]),
        "owed to": owed_text(row),
        "age in days": str(row["age_days"]),
        "reason": str(row["reason"]),
        "break": str(row["break_id"]),
    }
