"""Breaks of high severity and above as page one names them: each needs a person by a day."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from recon.matching.judging.severity import risk_of_break, urgency
from recon.model.business_date import BusinessCalendar, Grace
from recon.model.figures import Attention
from recon.model.resolutions import KeptAnswer
from recon.model.words import GRAVE

ANSWERED_WITHIN = Grace.parse("1bd")
"""A grave break has an owner and a comment by the next business day: nobody signs before."""


def grave_breaks(
    breaks: pd.DataFrame, *, answers: Mapping[str, KeptAnswer], calendar: BusinessCalendar
) -> tuple[Attention, ...]:
    """What each is, whose it is, and by when somebody answers it; the most urgent first.

    Args:
        breaks: Frame with `recon.matching.breaks.result.BREAK_COLUMNS`, minor units.
        answers: Break -> its answer, where somebody gave one.
        calendar: Of the rules that judged.
    """
    grave = breaks[breaks["severity"].isin(GRAVE)]
    return tuple(
        _of_break(row, answers=answers, calendar=calendar)
        for row in sorted(grave.to_dict("records"), key=urgency)
    )


def _of_break(
    row: Mapping[Any, Any], *, answers: Mapping[str, KeptAnswer], calendar: BusinessCalendar
) -> Attention:
    since = datetime.fromisoformat(row["first_seen"]).replace(tzinfo=UTC)
    kept = answers.get(row["break_id"])
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
        owner=kept.answer.owner if kept else "",
        due=calendar.local_date(calendar.due_at(since, grace=ANSWERED_WITHIN)),
    )
