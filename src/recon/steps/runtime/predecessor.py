"""The previous night: every night continues one, so a missing one needs a person's decision.

The first night of an account is its opening: the rules name the opening date, or a person gives
`--opening`. Later, a business day without a night since the last one needs a reason (`--skip`),
which is shown on page one and stored in the history. Saturdays, Sundays and holidays need none.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from recon.config.rules import Rules
from recon.desk.endorsement import Kind
from recon.instructions.approval import problem_of_people
from recon.model.business_date import BusinessCalendar, month_of
from recon.model.errors import UsageError
from recon.model.nights import Mode, NightRequest
from recon.steps.runtime.environment import Environment
from recon.store import Connection
from recon.store.nights import runs
from recon.store.nights.runs import Run
from recon.store.people import closed_months, decision_rows
from recon.store.schema.columns import REASON_CHARACTERS


def refuse_closed(connection: Connection, night: Run | NightRequest, *, saved: str) -> None:
    """Refuse a change to a closed month, or one before it; `saved` states what was not done.

    Raises:
        UsageError: the month of the date, or a later one, is closed; the message says by whom,
            when, and what to do.
    """
    day, account = night.business_date, night.account
    month = month_of(day)
    closed = closed_months.closed_since(connection, account, month=month)
    if closed is None:
        return
    lies = "in" if closed.month == month else "before"
    msg = (
        f"{day} lies {lies} {closed.month}, which is CLOSED ({closed.by}, "
        f"{closed.at:%Y-%m-%d %H:%M} UTC); {saved}: what came since stands in the open month; to "
        f"change {closed.month}, two people say `recon close {closed.month} --reopen WHY`"
    )
    raise UsageError(msg)


def held_nights(
    connection: Connection, account: tuple[str, str], *, environment: Environment
) -> dict[date, str]:
    """Business dates that hold refunds -> why their release is no longer valid, "" without one."""

    def problem_of(run_id: str) -> str:
        return release_ended(connection, run_id, environment=environment)

    return runs.not_proven(connection, account, problem_of=problem_of)


def release_ended(connection: Connection, run_id: str, *, environment: Environment) -> str:
    """Why two people's release of a run is not valid; "" while it is."""
    desk, declared = environment.desk, environment.settings.approvers
    both = decision_rows.who_released(connection, run_id, desk=desk)
    return decision_rows.not_agreed(connection, Kind.RELEASE, subject=run_id, desk=desk) or (
        problem_of_people(both, did="released", declared=declared) if both else ""
    )


OPENING = "opening"
SKIPPED = "skipped: "
"""Prefix of the stored decision where nights are missing; the reason follows."""
MISSING = "missing"
NO_BUSINESS_DAY = "no business day"
BEFORE_OPENING = "before the opening"
STILL_OPEN = "still open"


def stated_of_predecessor(connection: Connection, request: NightRequest, *, rules: Rules) -> str:
    """What replaces the previous night: OPENING, SKIPPED and a reason, or "" for nothing.

    A dry run changes nothing that a later night continues from, and needs no decision. What was
    decided for a night is still valid when it is started again.

    Raises:
        UsageError: the previous night is missing and nobody said why, or an option does not fit.
    """
    if request.mode is not Mode.LIVE:
        return ""
    nights = [*runs.live_nights(connection, request)]
    saved = runs.stated_of_predecessor(connection, request)
    earlier = [day for day in nights if day < request.business_date]
    if not earlier:
        return _first(request, saved=saved, nights=nights, rules=rules)
    if request.opening:
        msg = (
            f"the night of {request.business_date} is not the first of account "
            f"{_named(request)}: that of {earlier[-1]} is finished; nothing was done: leave "
            "--opening away"
        )
        raise UsageError(msg)
    return _later(request, last=earlier[-1], saved=saved, nights=nights, rules=rules)


def missing_days(last: date, *, day: date, calendar: BusinessCalendar) -> list[date]:
    """The business days between two nights, on which no night ran."""
    first = last + timedelta(days=1)
    between = (first + timedelta(days=number) for number in range((day - first).days))
    return [day for day in between if calendar.is_business_day(day)]


def named_days(days: Sequence[date]) -> str:
    """The first and the last of some days, for a message."""
    return f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"


def missed_without_a_run(
    day: date, *, nights: Mapping[date, Run], rules: Rules, now: datetime
) -> str:
    """Status of a day on which an account has no night: MISSING, or why none is due.

    Args:
        day: A day for which the account has no run.
        nights: The account's finished live nights, earliest business date first.
        rules: Business days, and the account's opening date.
        now: A day that is still open has no night yet.
    """
    opening = rules.window.opening_date or next(iter(nights), None)
    if opening is not None and day < opening:
        return BEFORE_OPENING
    if not rules.business_calendar.is_business_day(day):
        return NO_BUSINESS_DAY
    if rules.business_calendar.closes_at(day) > now:
        return STILL_OPEN
    later = next((night for night in nights if night > day), None)
    predecessor = "" if later is None else nights[later].predecessor
    return predecessor if predecessor.startswith(SKIPPED) else MISSING


def _first(request: NightRequest, *, saved: str, nights: list[date], rules: Rules) -> str:
    """Decide on a night with none before it: it opens the account, or lies before its opening."""
    opening = rules.window.opening_date
    if opening is not None and request.business_date < opening:
        msg = (
            f"account {_named(request)} is reconciled from {opening} on ([window] opening_date), "
            f"not for {request.business_date}; nothing was done: name a later day, or change the "
            "rules"
        )
        raise UsageError(msg)
    if request.skip:
        msg = (
            f"no night of account {_named(request)} stands before {request.business_date}, so "
            "none was skipped; nothing was done: a first night takes --opening"
        )
        raise UsageError(msg)
    if request.opening or opening is not None or saved or request.business_date in nights:
        return OPENING
    if nights:
        msg = (
            f"no night of account {_named(request)} stands before {request.business_date}, and "
            f"that of {nights[0]} opened it; nothing was done: say --opening if the account is to "
            "open with this night instead"
        )
        raise UsageError(msg)
    msg = (
        f"{request.business_date} would be the first night of account {_named(request)}; nothing "
        "was done: start it with --opening (what is older than [window] is opening balance), or "
        "name the [window] opening_date in rules.toml"
    )
    raise UsageError(msg)


def _later(
    request: NightRequest, *, last: date, saved: str, nights: list[date], rules: Rules
) -> str:
    missing = missing_days(last, day=request.business_date, calendar=rules.business_calendar)
    if not missing:
        if request.skip:
            msg = (
                f"no business day without a night lies between {last} and "
                f"{request.business_date}; nothing was done: leave --skip away"
            )
            raise UsageError(msg)
        return ""
    if request.skip:
        return f"{SKIPPED}{request.skip}"[:REASON_CHARACTERS]
    if saved or request.business_date in nights:
        return saved
    msg = (
        f"account {_named(request)} has no finished night of {named_days(missing)}; nothing was "
        "done: run what is missing first, oldest first, or say why not with --skip REASON (what "
        f"came in then is compared in the night of {request.business_date})"
    )
    raise UsageError(msg)


def _named(request: NightRequest) -> str:
    return f"{request.merchant_id}/{request.account_id}"


def previous_night(run: Run, *, environment: Environment) -> Run | None:
    """The newest finished run of the latest business date before this one.

    A live night continues live nights only: what a dry run left open was reported to nobody.
    """
    with environment.store.reading() as connection:
        nights = runs.last_finished(connection, run)
    earlier = [
        day
        for day, night in nights.items()
        if day < run.business_date and (run.mode is Mode.DRY_RUN or night.mode is Mode.LIVE)
    ]
    return nights[max(earlier)] if earlier else None
