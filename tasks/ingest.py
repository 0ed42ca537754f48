"""Task `ingest`: the order files of the inbox become orders and instructions."""

from prefect import task
from prefect.cache_policies import NO_CACHE

from recon.model.nights import StepSummary
from tasks.running import RETRIES_OF_READS, RETRY_DELAYS_SECONDS, run_step, worth_another_try


@task(
    name="ingest",
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
