"""Task `report`: the workbook that finance signs."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from recon.model.nights import StepSummary
from tasks.running import RETRIES_OF_READS, RETRY_DELAYS_SECONDS, run_step, worth_another_try


@task(
    name="report",
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
