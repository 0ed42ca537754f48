"""Flows for one account: one part of a night, and a night repeated from what is stored.

The steps, the lock and the gate are the night's. A part (`ingest`, `query`, `settle`, `payouts`)
never reports and never counts as the night: its state says so, and files and money are refused once
the night is finished. The repeats (`reconcile`, `report`) query nothing and send nothing.
"""

import inspect
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.artifacts import Artifacts
from flows.night_date import business_date_of_run, run_name
from flows.nightly import GatewayId, ended, walk
from flows.outcome import (
    ANOTHER_RESULT,
    THE_SAME_RESULT,
    WRITTEN_AGAIN,
    as_flow,
    state_of_part,
)
from recon.model.errors import UsageError
from recon.model.nights import FINISH, PLANS, Mode, NightRequest, Part
from tasks.night_tasks import TASKS, opened_environment

ARGS = """

Args:
    merchant_id: The merchant's number at the gateway, such as 100042.
    account_id: The account's number at the gateway, such as 100042001.
    business_date: """
LAST = "None means the last business date that had closed."
Account = tuple[str, str]
Played = Callable[[Account, date | None, Mode], State[Any]]
"""What a flow does for an account, an optional business date, and a mode."""


def _form(
    name: str, text: str, *, day: str, played: Played, sends: bool = False
) -> Flow[..., State[Any]]:
    """Build a flow: `text` describes it, and `day` the meaning of its business date."""

    def run(
        merchant_id: GatewayId,
        account_id: GatewayId,
        business_date: date | None = None,
        mode: Mode = Mode.DRY_RUN,
    ) -> State[Any]:
        return played((merchant_id, account_id), business_date, Mode(mode))

    run.__name__ = name
    run.__doc__ = f"{text}{ARGS}{day}"
    if sends:
        run.__doc__ += "\n    mode: dry-run only shows what would be sent; live moves money."
    else:
        signature = inspect.signature(run)
        fields = [each for field, each in signature.parameters.items() if field != "mode"]
        run.__signature__ = signature.replace(parameters=fields)  # type: ignore[attr-defined]  # what Prefect looks at
    return as_flow(name, named=run_name, of_night=True)(run)


def _part(part: Part, account: Account, business_date: date | None, mode: Mode) -> State[Any]:
    """Hold the account, run the steps of the part, and publish their sentences."""
    from recon.steps.night.whole_night import moved_since, next_night

    day = business_date or business_date_of_run()
    if part is Part.INGEST and not business_date:
        with opened_environment() as environment:
            day = next_night(account, last_closed=day, environment=environment)
    request = NightRequest(*account, day, mode)
    artifacts = Artifacts(request, part=part.value)
    run_id, summaries = walk(request, plan=PLANS[part], artifacts=artifacts)
    if part is Part.QUERY:
        with opened_environment() as environment:
            moved = moved_since(run_id, environment=environment)
        rows = [{"order": one.order_no, "then": one.then, "now": one.now} for one in moved]
        what = f"{len(rows)} orders that are shown otherwise than in the night"
        artifacts.table("changes", rows, of=what)
    state = state_of_part(part, summaries=summaries, live=request.mode is Mode.LIVE)
    artifacts.summary(verdict=str(state.name), summaries=summaries)
    artifacts.ended_as(str(state.name))
    return state


def _reconciled(account: Account, business_date: date | None, _: Mode) -> State[Any]:
    """Resume a stopped night to its end, with all notices and pages; otherwise compare it again."""
    from recon.steps.night.whole_night import is_stopped

    request = NightRequest(*account, business_date or business_date_of_run(), Mode.LIVE)
    with opened_environment() as environment:
        stopped = is_stopped(request, environment=environment)
    if not stopped:
        return _compared(request)
    artifacts = Artifacts(request)
    return ended(*walk(request, plan=FINISH, artifacts=artifacts), artifacts=artifacts)


def _compared(request: NightRequest) -> State[Any]:
    """Compare a finished night again, as a proof that its stored inputs give the same result."""
    from recon.steps.compare.rebuild import rebuild_night

    run_id = _finished_run(request)
    with opened_environment() as environment:
        rebuilt = rebuild_night(run_id, out=None, environment=environment)
    sentence = f"run {run_id}, compared by recon {rebuilt.version_then} then: {rebuilt.digest_then}"
    if rebuilt.same:
        return Completed(name=THE_SAME_RESULT, message=f"The same result as {sentence}.")
    message = (
        f"NOT the result of {sentence}; it is {rebuilt.result.digest} now. Nothing was changed."
    )
    return Failed(name=ANOTHER_RESULT, message=message)


def _reported(account: Account, business_date: date | None, _: Mode) -> State[Any]:
    request = NightRequest(*account, business_date or business_date_of_run(), Mode.LIVE)
    summary = TASKS["report"](_finished_run(request))
    Artifacts(request).workbook(Path(str(summary.figures["workbook"])))
    return Completed(name=WRITTEN_AGAIN, message=summary.sentence)


def _finished_run(request: NightRequest) -> str:
    """Return the newest finished live run of the night.

    Raises:
        UsageError: there is none.
    """
    from recon.store.nights import runs

    with opened_environment() as environment, environment.store.reading() as connection:
        run = runs.of_night(connection, request)
    if run is None or run.status != "finished":
        msg = f"there is no finished live night of {request.business_date} (`recon nights`)"
        raise UsageError(msg)
    return run.run_id


ingest = _form(
    "ingest",
    "Take in what lies in the inbox now, so that what is wrong with it is known before the night."
    "\n\nNothing is queried or sent.",
    day="The night that the files belong to; it may still be open. None means the next night to "
    "come.",
    played=partial(_part, Part.INGEST),
)
query = _form(
    "query",
    "Ask the gateway again, and list what it shows otherwise than in the night.\n\n"
    "The night stays as it is; the answers are kept as evidence for doubts.",
    day=f"The night whose orders are queried. {LAST}",
    played=partial(_part, Part.QUERY),
)
settle = _form(
    "settle",
    "Ask, pass the gate and send what is approved, for a night that is to come or has stopped.",
    day=f"The night that the money belongs to. {LAST}",
    played=partial(_part, Part.SETTLE),
    sends=True,
)
payouts = _form(
    "payouts",
    "As settle, but send payouts that two people approved and nothing else.",
    day=f"The night that the payouts belong to. {LAST}",
    played=partial(_part, Part.PAYOUTS),
    sends=True,
)
reconcile = _form(
    "reconcile",
    "Compare a night again from what is stored, without the gateway.\n\n"
    "A night that stopped after everything was asked and sent is brought to its end: compared and "
    "reported. A finished night is compared again as a proof: its result is the same, or the run "
    "fails; nothing of it is changed.",
    day=f"The night. {LAST}",
    played=_reconciled,
)
report = _form(
    "report",
    "Write the workbook of a finished night again, from the database alone.\n\n"
    "An equal file stays, another one is written beside it; a signed workbook stays the signed "
    "one.",
    day=f"The night. {LAST}",
    played=_reported,
)
