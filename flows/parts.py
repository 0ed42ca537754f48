"""Flows `ingest`, `query`, `settle`, `payouts`: one part of a night by itself.

The steps, the lock and the gate are the night's. A part never reports and never counts as the
night: it says so, and files and money are refused where the night is finished already.
"""

from dataclasses import replace
from datetime import date
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.artifacts import Artifacts
from flows.night_date import business_date_of_run, run_name
from flows.nightly import GatewayId, walk
from flows.outcome import state_of_held, state_of_part
from recon.model.errors import NightHeldError
from recon.model.nights import Mode, NightRequest, Part, StepSummary
from tasks.running import opened_environment, sentences_only


@flow(name="ingest", flow_run_name=run_name, retries=0, persist_result=False)
def ingest(
    merchant_id: GatewayId, account_id: GatewayId, business_date: date | None = None
) -> State[Any]:
    """Take in what lies in the inbox now, so that what is wrong with it is known before the night.

    Nothing is asked or sent.

    Args:
        merchant_id: The merchant's number at the gateway, such as 100042.
        account_id: The account's number at the gateway, such as 100042001.
        business_date: The night that the files belong to; it may still be open. None means the
            next night to come.
    """
    request = NightRequest(merchant_id, account_id, _day(business_date), Mode.DRY_RUN)
    return _done(Part.INGEST, request=request)


@flow(name="query", flow_run_name=run_name, retries=0, persist_result=False)
def query(
    merchant_id: GatewayId, account_id: GatewayId, business_date: date | None = None
) -> State[Any]:
    """Ask the gateway again, and list what it shows otherwise than in the night.

    The night stays as it is; the answers are kept as evidence for doubts.

    Args:
        merchant_id: The merchant's number at the gateway, such as 100042.
        account_id: The account's number at the gateway, such as 100042001.
        business_date: The night whose orders are asked about. None means the last business date
            that had closed.
    """
    request = NightRequest(merchant_id, account_id, _day(business_date), Mode.DRY_RUN)
    return _done(Part.QUERY, request=request)


@flow(name="settle", flow_run_name=run_name, retries=0, persist_result=False)
def settle(
    merchant_id: GatewayId,
    account_id: GatewayId,
    business_date: date | None = None,
    mode: Mode = Mode.DRY_RUN,
) -> State[Any]:
    """Ask, pass the gate and send what is approved, for a night that is to come or has stopped.

    Args:
        merchant_id: The merchant's number at the gateway, such as 100042.
        account_id: The account's number at the gateway, such as 100042001.
        business_date: The night that the money belongs to. None means the last business date that
            had closed.
        mode: dry-run only shows what would be sent; live moves money.
    """
    request = NightRequest(merchant_id, account_id, _day(business_date), Mode(mode))
    return _done(Part.SETTLE, request=request)


@flow(name="payouts", flow_run_name=run_name, retries=0, persist_result=False)
def payouts(
    merchant_id: GatewayId,
    account_id: GatewayId,
    business_date: date | None = None,
    mode: Mode = Mode.DRY_RUN,
) -> State[Any]:
    """As settle, but send payouts that two people approved and nothing else.

    Args:
        merchant_id: The merchant's number at the gateway, such as 100042.
        account_id: The account's number at the gateway, such as 100042001.
        business_date: The night that the payouts belong to. None means the last business date that
            had closed.
        mode: dry-run only shows what would be sent; live moves money.
    """
    request = NightRequest(merchant_id, account_id, _day(business_date), Mode(mode))
    return _done(Part.PAYOUTS, request=request)


def _day(business_date: date | None) -> str:
    return business_date.isoformat() if business_date else ""


def _done(part: Part, *, request: NightRequest) -> State[Any]:
    """Hold the account, do the steps of the part, and leave their sentences on the page."""
    with sentences_only(part.value):
        request = _dated(request, part=part)
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


def _dated(request: NightRequest, *, part: Part) -> NightRequest:
    """The request with its business date, where the form named none."""
    from recon.steps.night.part import next_night

    if request.business_date:
        return request
    day = business_date_of_run()
    if part is Part.INGEST:
        account = (request.merchant_id, request.account_id)
        with opened_environment() as environment:
            day = next_night(account, last_closed=day, environment=environment)
    return replace(request, business_date=day.isoformat())


def _walk(part: Part, *, request: NightRequest, artifacts: Artifacts) -> list[StepSummary]:
    from recon.steps.night.part import STEPS
    from recon.steps.night.whole_night import hold

    with (
        opened_environment() as environment,
        hold(request, environment=environment, part=part) as run_id,
    ):
        summaries = walk(STEPS[part], run_id, artifacts=artifacts)
        if part is Part.QUERY:
            _show_changes(run_id, environment=environment, artifacts=artifacts)
    return summaries


def _show_changes(run_id: str, *, environment: Any, artifacts: Artifacts) -> None:
    from recon.steps.night.part import moved_since

    moved = moved_since(run_id, environment=environment)
    rows = [{"order": change.order_no, "then": change.then, "now": change.now} for change in moved]
    artifacts.changes(rows, total=len(rows))
