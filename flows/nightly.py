"""Flow `nightly`: one night of one account, step by step, as Prefect shows and schedules it.

The order of the steps is `recon.model.nights.STEPS`; the lock and the journal of money are in
recon's own database. Prefect only starts the run, shows it and reports its end; `recon nightly`
runs the same steps without Prefect.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from prefect.client.schemas.objects import State
from pydantic import Field

from flows.artifacts import (
    Artifacts,
    breaks_of,
    on_a_page,
    rows_of_totals,
    status_lines,
    totals_of,
)
from flows.night_date import business_date_of_run, refuse_schedule, run_name, schedule_of_account
from flows.outcome import MEANS, as_flow, end_of, state_of
from recon.model.nights import NIGHT, Mode, NightPlan, NightRequest, StepSummary
from tasks.night_tasks import TASKS, echo, keeping_workers, opened_environment

if TYPE_CHECKING:
    from recon.steps.runtime.environment import Environment


@contextmanager
def night_workers() -> Iterator[None]:
    """Let all environments of this process share the configured workers during the block."""
    from recon.config.cluster import ClusterSettings
    from recon.config.settings import config_dir_of, load_file

    cluster = load_file("cluster", ClusterSettings, config_dir=config_dir_of(os.environ))
    if not cluster.address:
        yield
        return
    from recon.workers.dask_workers import workers_of

    with workers_of(cluster, variables=os.environ) as workers, keeping_workers(workers):
        yield


GatewayId = Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,32}$")]
Reason = Annotated[str, Field(max_length=300)]


@as_flow("nightly", named=run_name, of_night=True)
def nightly(
    merchant_id: GatewayId,
    account_id: GatewayId,
    business_date: date | None = None,
    mode: Mode = Mode.DRY_RUN,
    *,
    opening: bool = False,
    skip_reason: Reason = "",
) -> State[Any]:
    """Settle and reconcile one night of one account, and write the workbook finance signs.

    Args:
        merchant_id: The merchant's number at the gateway, such as 100042.
        account_id: The account's number at the gateway, such as 100042001.
        business_date: The day to settle and reconcile. None means the last business date that
            had closed when the run was due, in the schedule's time zone.
        mode: dry-run moves no money and only shows what would be sent; live captures and refunds.
        opening: Tick it for the first live night of an account whose rules name no opening date.
        skip_reason: Where the night before is missing and is not to be run first, say why.
    """
    refuse_schedule("mode", declared=schedule_of_account)
    day = business_date or business_date_of_run()
    request = NightRequest(
        merchant_id, account_id, day, Mode(mode), opening=opening, skip=skip_reason.strip()
    )
    artifacts = Artifacts(request)
    return ended(*walk(request, plan=NIGHT, artifacts=artifacts), artifacts=artifacts)


def walk(
    request: NightRequest, *, plan: NightPlan, artifacts: Artifacts
) -> tuple[str, list[StepSummary]]:
    """Carry out a plan; return the run's id, and a summary of each step.

    The run is held in recon's database, not in Prefect; all steps use the same workers. After a
    night one workbook over all accounts is written; the night is complete even without it.
    """
    from recon.steps.night.monitor import index_after
    from recon.steps.night.whole_night import hold
    from reports.reading.index_workbook import write_index

    summaries = []
    with opened_environment() as environment:
        with (
            hold(request, environment=environment, plan=plan, echo_error=echo) as run_id,
            night_workers(),
            artifacts.progress(plan.steps) as step_done,
        ):
            for name in plan.steps:
                summaries.append(TASKS[name](run_id))
                step_done(summaries[-1].sentence)
        if plan.part is None:
            index_after(request, environment=environment, write=write_index, echo=echo)
    return run_id, summaries


def waiting_for_people(environment: "Environment") -> int:
    """Return how many instructions wait for approval, over all accounts."""
    from recon.steps.money.approve import waiting

    return len(waiting(environment).approvals.items)


def ended(run_id: str, summaries: Sequence[StepSummary], *, artifacts: Artifacts) -> State[Any]:
    """Publish what people need of a night on its page; return its final state."""
    last = summaries[-1]
    end = end_of(last)
    with opened_environment() as environment:
        breaks, total = breaks_of(run_id, environment=environment)
        totals = rows_of_totals(totals_of(run_id, environment=environment))
        waiting = waiting_for_people(environment)
        status = status_lines(run_id, environment=environment)
    to_do = f"To do: {MEANS[end]}. {on_a_page(str(last.figures.get('why', '')))}".strip()
    written = last.figures.get("workbook")
    workbook = Path(str(written)) if written else None
    artifacts.summary(
        verdict=end.value,
        summaries=summaries,
        status=[to_do, "", *status],
        workbook=workbook,
    )
    if waiting:
        artifacts.waiting(waiting)
    artifacts.table("breaks", breaks, of=f"{total} open breaks; the workbook has all")
    untied = sum(row["ties"] != "yes" for row in totals)
    artifacts.table("totals", totals, of=f"{len(totals)} control totals, {untied} do not tie")
    if workbook:
        artifacts.workbook(workbook)
    artifacts.ended_as(end.value + (f", {total} breaks" if total else ""))
    return state_of(end, report=last)
