"""The business date and the name of a run, and whether a schedule may start it."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from prefect.context import FlowRunContext

from recon.config.retention import NightSchedule
from recon.config.settings import config_dir_of, load_file_settings, load_rules
from recon.model.business_date import BusinessCalendar
from recon.model.errors import ConfigurationError
from recon.model.nights import Part
from recon.steps.runtime.environment import clock_shift


def refuse_schedule(*names: str, declared: Callable[[], object]) -> None:
    """Refuse a scheduled run whose schedule is no longer declared or lacks one of the parameters.

    A deploy does not remove the schedule of an account that lost its own, or no longer exists.

    Raises:
        ConfigurationError: `declared` returns nothing, or the schedule lost these parameters.
    """
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None or not run.auto_scheduled:
        return
    if not declared():
        msg = (
            "the configuration declares no such schedule; nothing was done: delete it on Prefect's "
            "pages"
        )
        raise ConfigurationError(msg)
    if all(name in run.parameters for name in names):
        return
    msg = (
        f"the schedule that started this run no longer says {' and '.join(names)}: Prefect forgets "
        "that when a schedule is paused or resumed by command line or API; nothing was done: run "
        "`prefect --no-prompt deploy --all` again, and then start what was due by hand"
    )
    raise ConfigurationError(msg)


def _given() -> dict[str, Any]:
    """Return the parameters of this run."""
    context = FlowRunContext.get()
    return (context.parameters if context else None) or {}


def _account() -> str:
    return f"{_given().get('merchant_id')}/{_given().get('account_id')}"


def run_name() -> str:
    """Return the name of a run for people: `nightly 100042/100042001 2026-11-20 live`."""
    context = FlowRunContext.get()
    flow = context.flow.name if context and context.flow else "nightly"
    day = _given().get("business_date")
    # Without a readable calendar the flow itself fails with the message; its name must not fail.
    try:
        # New files go to the next night.
        day = day or ("next night" if flow == Part.INGEST else business_date_of_run())
    except ConfigurationError:
        day = "(no business date)"
    return f"{flow} {_account()} {day} {_given().get('mode') or ''}".strip()


def business_date_of_run() -> date:
    """Return the business date of a run that was given none.

    Raises:
        ConfigurationError: not inside a flow run, the rules cannot be read, or the clock is shifted
            where that is not allowed.
    """
    context = FlowRunContext.get()
    due_at = context.flow_run.expected_start_time if context and context.flow_run else None
    if due_at is None:
        msg = "no business date was given and this is no scheduled run: name the business date"
        raise ConfigurationError(msg)
    # The sandbox's nights have a clock of their own; the due time is shifted as much as that.
    due_at += clock_shift(os.environ)
    schedule, calendar = schedule_of_account(), load_rules(config_dir=config_dir_of(os.environ))
    return last_closed_business_date(
        due_at,
        calendar=calendar.business_calendar,
        schedule_zone=schedule.zone if schedule else None,
    )


def schedule_of_account() -> NightSchedule | None:
    """Return the schedule of this run's account, as declared in merchants.toml."""
    declared = load_file_settings(os.environ).accounts.get(_account())
    return declared.schedule if declared else None


def last_closed_business_date(
    due_at: datetime, *, calendar: BusinessCalendar, schedule_zone: str | None
) -> date:
    """Return the newest business date whose cut-off had passed at `due_at`, in the schedule's zone.

    Without a schedule the calendar's own time zone is used.
    """
    if schedule_zone:
        calendar = replace(calendar, zone=ZoneInfo(schedule_zone))
    return calendar.last_closed(due_at)
