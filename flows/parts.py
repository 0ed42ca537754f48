"""Flows `ingest`, `query`, `settle`, `payouts`: one part of a night by itself.

The steps, the lock and the gate are the night's. A part never reports and never counts as the
night: it says so, and files and money are refused where the night is finished already.
"""

import inspect
from datetime import date
from typing import Any

from prefect import Flow, flow
from prefect.client.schemas.objects import State

from flows.artifacts import Artifacts
from flows.night_date import business_date_of_run, run_name
from flows.nightly import GatewayId, walk
from flows.outcome import FAILED, in_words, state_of_held, state_of_part
from recon.model.errors import NightHeldError
from recon.model.nights import Mode, NightRequest, Part, StepSummary
from tasks.night_tasks import opened_environment, sentences_only

ARGS = """

Args:
    merchant_id: The merchant's number at the gateway, such as 100042.
    account_id: The account's number at the gateway, such as 100042001.
    business_date: """
LAST = "None means the last business date that had closed."


def _part(part: Part, text: str, *, day: str, sends: bool = False) -> Flow[..., State[Any]]:
    """The flow of a part: `text` says what it does, `day` what its business date is."""

    def run(
        merchant_id: GatewayId,
        account_id: GatewayId,
        business_date: date | None = None,
        mode: Mode = Mode.DRY_RUN,
    ) -> State[Any]:
        account = (merchant_id, account_id)
        return _done(part, account=account, business_date=business_date, mode=Mode(mode))

    run.__name__ = part.value
    run.__doc__ = f"{text}{ARGS}{day}"
    if sends:
        run.__doc__ += "\n    mode: dry-run only shows what would be sent; live moves money."
    else:
        signature = inspect.signature(run)
        fields = [each for name, each in signature.parameters.items() if name != "mode"]
        run.__signature__ = signature.replace(parameters=fields)  # type: ignore[attr-defined]  # what Prefect looks at
    named = flow(name=part.value, flow_run_name=run_name, retries=0, persist_result=False)
    return named(in_words(refused=FAILED)(run))


ingest = _part(
    Part.INGEST,
    "Take in what lies in the inbox now, so that what is wrong with it is known before the night."
    "\n\nNothing is asked or sent.",
    day="The night that the files belong to; it may still be open. None means the next night to "
    "come.",
)
query = _part(
    Part.QUERY,
    "Ask the gateway again, and list what it shows otherwise than in the night.\n\n"
    "The night stays as it is; the answers are kept as evidence for doubts.",
    day=f"The night whose orders are asked about. {LAST}",
)
settle = _part(
    Part.SETTLE,
    "Ask, pass the gate and send what is approved, for a night that is to come or has stopped.",
    day=f"The night that the money belongs to. {LAST}",
    sends=True,
)
payouts = _part(
    Part.PAYOUTS,
    "As settle, but send payouts that two people approved and nothing else.",
    day=f"The night that the payouts belong to. {LAST}",
    sends=True,
)


def _done(
    part: Part, *, account: tuple[str, str], business_date: date | None, mode: Mode
) -> State[Any]:
    """Hold the account, do the steps of the part, and leave their sentences on the page."""
    with sentences_only(part.value):
        day = business_date or _next_of(part, account=account)
        request = NightRequest(*account, day, mode)
        artifacts = Artifacts(request, part=part.value)
        try:
            summaries = _walk(part, request=request, artifacts=artifacts)
        except NightHeldError as error:
            return state_of_held(error)
        live = request.mode is Mode.LIVE
        state = state_of_part(part, summaries=summaries, live=live)
        artifacts.summary(verdict=str(state.name), summaries=summaries)
        artifacts.ended_as(str(state.name))
        return state


def _next_of(part: Part, *, account: tuple[str, str]) -> date:
    """The business date of a part whose form named none."""
    from recon.steps.night.whole_night import next_night

    day = business_date_of_run()
    if part is not Part.INGEST:
        return day
    with opened_environment() as environment:
        return next_night(account, last_closed=day, environment=environment)


def _walk(part: Part, *, request: NightRequest, artifacts: Artifacts) -> list[StepSummary]:
    from recon.steps.night.whole_night import STEPS_OF_PARTS, hold

    with (
        opened_environment() as environment,
        hold(request, environment=environment, part=part) as run_id,
    ):
        summaries = walk(STEPS_OF_PARTS[part], run_id, artifacts=artifacts)
        if part is Part.QUERY:
            _show_changes(run_id, environment=environment, artifacts=artifacts)
    return summaries


def _show_changes(run_id: str, *, environment: Any, artifacts: Artifacts) -> None:
    from recon.steps.night.whole_night import moved_since

    moved = moved_since(run_id, environment=environment)
    rows = [{"order": change.order_no, "then": change.then, "now": change.now} for change in moved]
    artifacts.changes(rows, total=len(rows))
