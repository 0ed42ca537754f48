"""A part of a night by itself: the same steps, lock and gate, and never a night that is finished.

ingest takes in files that came late; query asks the gateway again; settle moves what is approved;
payouts moves payouts alone. No part compares or reports: whatever it did, the night is still to
come, or stays as it was signed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta

from recon.model.nights import Mode, NightRequest, Part, StepSummary
from recon.steps.ground.environment import Environment
from recon.steps.ground.shown_answers import gateway_frame
from recon.steps.night.report import Workbooks
from recon.steps.night.whole_night import hold, walk
from recon.store import Connection
from recon.store.nights import runs
from recon.store.nights.runs import Run

_MONEY = ("query", "settle", "query again")
STEPS: Mapping[Part, tuple[str, ...]] = {
    Part.INGEST: ("ingest",),
    Part.QUERY: ("query",),
    Part.SETTLE: _MONEY,
    Part.PAYOUTS: _MONEY,
}
"""Which steps of `night.ORDER` a part does, in the night's order."""
SENDS = frozenset({Part.SETTLE, Part.PAYOUTS})


@dataclass(frozen=True, slots=True)
class Moved:
    """One order that the gateway answers otherwise than it did in the night."""

    order_no: str
    then: str
    now: str


def request_of_part(request: NightRequest, *, part: Part) -> NightRequest:
    """The request as the part runs it: what sends nothing is never live."""
    return request if part in SENDS else replace(request, mode=Mode.DRY_RUN)


def run_part(
    request: NightRequest,
    *,
    part: Part,
    environment: Environment,
    workbooks: Workbooks,
    progress: Callable[[StepSummary], None],
) -> str:
    """Do a part of a night; the run's id. Tells `progress` after each step.

    Raises:
        NightHeldError: another run holds the account.
        UsageError: the day has not closed, or its night is finished already.
    """
    wanted = request_of_part(request, part=part)
    with hold(wanted, environment=environment, part=part) as run_id:
        walk(STEPS[part], run_id, environment=environment, workbooks=workbooks, progress=progress)
    return run_id


def next_night(account: tuple[str, str], *, last_closed: date, environment: Environment) -> date:
    """The business date that the next night is for: files that come now belong to it."""
    with environment.store.reading() as connection:
        nights = runs.last_finished(connection, merchant_id=account[0], account_id=account[1])
    live = [day for day, night in nights.items() if night.mode is Mode.LIVE]
    return max(last_closed, *(day + timedelta(days=1) for day in live)) if live else last_closed


def moved_since(run_id: str, *, environment: Environment) -> tuple[Moved, ...]:
    """What a query part found changed since the newest night of its business date, by order.

    Without a night, or where an order was not asked about then, there is nothing to compare.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        request = NightRequest(run.merchant_id, run.account_id, run.business_date, Mode.LIVE)
        night = runs.of_night(connection, request)
        if night is None:
            return ()
        then, now = (_shown(connection, each, environment=environment) for each in (night, run))
    return tuple(
        Moved(key, then[key], state)
        for key, state in sorted(now.items())
        if key in then and then[key] != state
    )


def _shown(connection: Connection, run: Run, *, environment: Environment) -> dict[str, str]:
    """What the gateway last showed of each order: the states of its payments, or its answer."""
    states: dict[str, list[str]] = {}
    frame = gateway_frame(connection, run, environment=environment)
    rules = environment.settings.rules
    for row in frame.sort_values(["order_no", "transaction_id"]).to_dict("records"):
        status = row["payment_status"]
        state = (
            rules.state_of(status).value if isinstance(status, str) and status else row["answer"]
        )
        states.setdefault(row["order_no"], []).append(str(state))
    return {key: ", ".join(state) for key, state in states.items()}
