"""Task `settle`: the instructed money moves. Never retried by Prefect."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from recon.model.nights import StepSummary
from tasks.running import run_step


@task(name="settle", task_run_name="settle", retries=0, cache_policy=NO_CACHE, persist_result=False)
def settle(run_id: str) -> StepSummary:
    """Send what is approved and not yet sent; the journal, not Prefect, decides what that is."""
    from recon.steps.night.sealed_settle import settle as step

    return run_step(step, run_id=run_id)
