"""Which night an order file belongs to: its rows say it, not the night that meets it first.

Two files may lie in the inbox when missed nights are caught up, and a night may be started again
after the next one's file has come. A file whose rows reach into a later business day is left for
the night of that day.
"""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd

from recon.files.reader import OrderRead
from recon.model.business_date import BusinessCalendar
from recon.model.nights import Mode
from recon.model.words import SourceKind
from recon.steps.ground.environment import Environment
from recon.store.nights import order_rows, runs
from recon.store.nights.runs import Run

AFTER_CUT_OFF = timedelta(hours=6)
"""Rows of the first hours after the cut-off belong to the day that closed: files are made then."""
STRAY_ROWS_SHARE = 0.01
"""Of the rows with the newest times so many may be wrong; they say nothing of the file."""


def left_for_later(read: OrderRead, *, run: Run, environment: Environment) -> str:
    """Why a file is not taken by this night, in words; "" when it is this night's.

    A first run of a night takes what reaches into a day that is still open: there is no other night
    to come for it yet. A corrected version of a file of this night is always this night's.
    """
    calendar, now = environment.settings.rules.business_calendar, environment.clock()
    day = run.business_date
    following = _business_day(day + timedelta(days=1), calendar=calendar)
    had_file, same_name = _known_of_night(
        run, name=read.facts.source_file.name, environment=environment
    )
    if same_name or not (had_file or calendar.closes_at(following) <= now):
        return ""
    newest = _reach(read)
    if newest is None:
        return ""
    own = _business_day(calendar.business_date_of(newest - AFTER_CUT_OFF), calendar=calendar)
    if own <= day or not (had_file or calendar.closes_at(own) <= now):
        return ""
    return f"its newest rows are of {newest:%Y-%m-%d %H:%M} UTC: the night of {own} takes it"


def _known_of_night(run: Run, *, name: str, environment: Environment) -> tuple[bool, bool]:
    """Whether a finished live night of this date had an order file, and whether it had this one."""
    with environment.store.reading() as connection:
        nights = runs.last_finished(
            connection, merchant_id=run.merchant_id, account_id=run.account_id
        )
        files = [file for file, _ in order_rows.files_of_night(connection, run)]
    night = nights.get(run.business_date)
    live = night is not None and night.mode is Mode.LIVE
    orders = [file for file in files if file.kind is SourceKind.ORDERS and file.rows_accepted]
    return live and bool(orders), any(file.name == name for file in orders)


def _reach(read: OrderRead) -> datetime | None:
    """Up to when its rows go, without the few newest that may be mistakes; None without rows."""
    instants = [_newest_of_rows(part.orders) for part in read.parts()]
    every = np.sort(np.concatenate(instants)) if instants else np.array([], dtype=np.int64)
    if not every.size:
        return None
    rank = every.size - 1 - int(every.size * STRAY_ROWS_SHARE)
    return datetime.fromtimestamp(int(every[rank]) / 1_000_000, UTC)


def _newest_of_rows(orders: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Microseconds of each row's newest time; rows without one are left out."""
    times = orders[["ordered_at", "updated_at"]].max(axis=1).dropna()
    return times.astype("datetime64[us, UTC]").to_numpy("datetime64[us]").astype(np.int64)


def _business_day(day: date, *, calendar: BusinessCalendar) -> date:
    """The day itself, or the first business day after it: other days have no night of their own."""
    while not calendar.is_business_day(day):
        day += timedelta(days=1)
    return day
