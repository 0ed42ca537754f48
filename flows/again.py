"""Flows `reconcile` and `report`: again from what is stored; nothing is asked and nothing sent."""

from datetime import date
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.artifacts import Artifacts
from flows.night_date import business_date_of_run, run_name
from flows.nightly import TASKS, GatewayId, ended, index, walk
from flows.outcome import (
    ANOTHER_RESULT,
    FAILED,
    THE_SAME_RESULT,
    WRITTEN_AGAIN,
    in_words,
    state_of_held,
)
from recon.model.errors import NightHeldError, UsageError
from recon.model.nights import Mode, NightRequest
from tasks.night_tasks import opened_environment, say, sentences_only


@flow(name="reconcile", flow_run_name=run_name, retries=0, persist_result=False)
@in_words(refused=FAILED)
def reconcile(
    merchant_id: GatewayId, account_id: GatewayId, business_date: date | None = None
) -> State[Any]:
    """Compare a night again from what is stored, without the gateway.

    A night that stopped after everything was asked and sent is brought to its end: compared and
    reported. A finished night is compared again as a proof: its result is the same, or the run
    fails; nothing of it is changed.

    Args:
        merchant_id: The merchant's number at the gateway, such as 100042.
        account_id: The account's number at the gateway, such as 100042001.
        business_date: The night. None means the last business date that had closed.
    """
    with sentences_only("reconcile"):
        from recon.steps.night.whole_night import is_stopped

        request = _request(merchant_id, account_id, business_date)
        with opened_environment() as environment:
            stopped = is_stopped(request, environment=environment)
        try:
            return _finished(request) if stopped else _compared(request)
        except NightHeldError as error:
            return state_of_held(error)


@flow(name="report", flow_run_name=run_name, retries=0, persist_result=False)
@in_words(refused=FAILED)
def report(
    merchant_id: GatewayId, account_id: GatewayId, business_date: date | None = None
) -> State[Any]:
    """Write the workbook of a finished night again, from the database alone.

    An equal file stays, another one is written beside it; a signed workbook stays the signed one.

    Args:
        merchant_id: The merchant's number at the gateway, such as 100042.
        account_id: The account's number at the gateway, such as 100042001.
        business_date: The night. None means the last business date that had closed.
    """
    with sentences_only("report"):
        request = _request(merchant_id, account_id, business_date)
        summary = TASKS["report"](_finished_run(request))
        artifacts = Artifacts(request)
        artifacts.workbook(Path(str(summary.figures["workbook"])))
        return Completed(name=WRITTEN_AGAIN, message=summary.sentence)


def _request(merchant_id: str, account_id: str, business_date: date | None) -> NightRequest:
    day = business_date or business_date_of_run()
    return NightRequest(merchant_id, account_id, day, Mode.LIVE)


def _finished(request: NightRequest) -> State[Any]:
    """The stopped night brought to its end, told and shown as a night is."""
    from recon.steps.night.notices import telling
    from recon.steps.night.whole_night import LAST_STEPS, hold_stopped

    artifacts = Artifacts(request)
    with (
        opened_environment() as environment,
        telling(environment, say=say) as night,
        hold_stopped(request, environment=environment) as night.run_id,
    ):
        summaries = walk(LAST_STEPS, night.run_id, artifacts=artifacts)
    index(request)
    return ended(night.run_id, summaries=summaries, artifacts=artifacts)


def _compared(request: NightRequest) -> State[Any]:
    """A finished night as a proof: the same result from what it had read."""
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


def _finished_run(request: NightRequest) -> str:
    """The newest finished live run of the night.

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
