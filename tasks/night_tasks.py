"""The steps of a night as tasks of Prefect, one thin wrapper each; what they do is in recon.steps.

The weight of a step is loaded when it runs, not when its flow is looked at.
"""

from typing import Literal

from prefect import task
from prefect.cache_policies import NO_CACHE

from recon.model.nights import StepSummary
from tasks.running import RETRIES_OF_READS, RETRY_DELAYS_SECONDS, run_step, worth_another_try


@task(
    task_run_name="ingest",
    retries=RETRIES_OF_READS,
    retry_delay_seconds=RETRY_DELAYS_SECONDS,
    retry_condition_fn=worth_another_try,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def ingest(run_id: str) -> StepSummary:
    """Read the inbox of the run's account; safe to repeat, files are known by their content."""
    from recon.steps.files.ingest import ingest as step

    return run_step(step, run_id=run_id)


@task(
    task_run_name="query {phase}",
    retries=RETRIES_OF_READS,
    retry_delay_seconds=RETRY_DELAYS_SECONDS,
    retry_condition_fn=worth_another_try,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def query(run_id: str, phase: Literal["baseline", "after"]) -> StepSummary:
    """Ask the gateway about the run's orders; safe to repeat, only reads travel."""
    from recon.steps.night.query import query as step

    stage = "query" if phase == "baseline" else "query again"
    return run_step(step, run_id=run_id, stage=stage, phase=phase)


@task(task_run_name="settle", retries=0, cache_policy=NO_CACHE, persist_result=False)
def settle(run_id: str) -> StepSummary:
    """Send what is approved and not yet sent; the journal, not Prefect, decides what that is."""
    from recon.steps.night.whole_night import settle as step

    return run_step(step, run_id=run_id)


@task(task_run_name="reconcile", retries=0, cache_policy=NO_CACHE, persist_result=False)
def reconcile(run_id: str) -> StepSummary:
    """Compare the three sources of the run and store breaks, totals and verdict."""
    from recon.steps.compare.reconcile import reconcile as step

    return run_step(step, run_id=run_id)


@task(
    task_run_name="report",
    retries=RETRIES_OF_READS,
    retry_delay_seconds=RETRY_DELAYS_SECONDS,
    retry_condition_fn=worth_another_try,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def report(run_id: str) -> StepSummary:
    """Write the workbook of the run; figures `workbook` (path) and `verdict`."""
    from recon.steps.night.report import Workbooks
    from recon.steps.night.report import report as step
    from reports.reading.workbook_check import sheet_totals
    from reports.workbook import write_workbook

    workbooks = Workbooks(write=write_workbook, totals=sheet_totals)
    return run_step(step, run_id=run_id, workbooks=workbooks)
