"""Task `reconcile`: orders, gateway and ledger are compared."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from recon.model.nights import StepSummary
from tasks.running import run_step


@task(
    name="reconcile",
    task_run_name="reconcile",
    retries=0,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def reconcile(run_id: str) -> StepSummary:
    """Compare the three sources of the run and store breaks, totals and verdict."""
    from recon.steps.compare.reconcile import reconcile as step

    return run_step(step, run_id=run_id)
