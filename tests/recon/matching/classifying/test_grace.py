from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recon.matching.classifying.grace import business_days, due
from recon.matching.frames.grouping import NO_INSTANT, microseconds
from recon.model.business_date import BusinessCalendar, Grace

CALENDAR = BusinessCalendar.of(
    timezone="Europe/London", cut_off="18:00", holidays=[date(2026, 12, 25)]
)
instants = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31))  # noqa: DTZ001 - UTC below


@pytest.mark.parametrize("grace", ["24h", "0h", "5bd", "0bd"])
@given(st.lists(instants, min_size=1, max_size=8))
def test_due_columns_agree_with_the_calendar(grace, drawn):
    """A whole column is due when the calendar says so of each instant."""
    moments = [moment.replace(tzinfo=UTC) for moment in drawn]
    length = Grace.parse(grace)

    found = due(
        np.array([microseconds(m) for m in moments]), grace=length, calendar=CALENDAR
    ).tolist()

    assert found == [microseconds(CALENDAR.due_at(m, grace=length)) for m in moments]


@given(st.lists(instants, min_size=1, max_size=8))
def test_business_days_agree_with_the_calendar(drawn):
    """A whole column belongs to the business dates the calendar gives."""
    moments = [moment.replace(tzinfo=UTC) for moment in drawn]

    found = business_days(np.array([microseconds(m) for m in moments]), calendar=CALENDAR)

    epoch = date(1970, 1, 1).toordinal()
    dates = [CALENDAR.business_date_of(m).toordinal() - epoch for m in moments]
    assert found.tolist() == dates


def test_what_never_started_is_late():
    """Without an instant no grace runs."""
    nothing = np.array([NO_INSTANT])

    assert due(nothing, grace=Grace.parse("5bd"), calendar=CALENDAR).tolist() == [NO_INSTANT]
    assert pd.Series(business_days(nothing, calendar=CALENDAR)).tolist() == [NO_INSTANT]
