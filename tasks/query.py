"""Task `query`: what the gateway knows, before money moves and again after it."""

from typing import Literal

from prefect import task
from prefect.cache_policies import NO_CACHE

from recon.model.nights import StepSummary
from tasks.running import RETRIES_OF_READS, RETRY_DELAYS_SECONDS, run_step, worth_another_try


@task(
    name="query",
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
