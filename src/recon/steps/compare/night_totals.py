"""The night's control totals in SQL, over the files in its folder."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from recon.archive.step_folder import Sealed
from recon.matching.breaks.result import Reconciliation
from recon.model.terms import ControlTotal
from recon.proof.night_tables import totals_of
from recon.proof.totals_in_sql import control_totals, proven_in_sql
from recon.proof.verdict import with_totals
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    COMPARED,
    RESULTS,
    STEPS,
    folder_of,
    refuse_purged,
    sealed_night,
)
from recon.store.nights.runs import Run


def with_sql(
    result: Reconciliation,
    *,
    run: Run,
    sealed: Iterable[Sealed],
    environment: Environment,
) -> Reconciliation:
    """The result with its control totals: NOT PROVEN where one fails.

    Args:
        result: The result of the comparison.
        run: The run that it belongs to.
        sealed: The steps `compared` and `results`, as written to the archive.
        environment: Gives the archive.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    with environment.store.reading() as connection:
        night = sealed_night(connection, run, environment=environment)
    steps = {**night.steps, **{each.manifest.about.step: each for each in sealed}}
    night = replace(night, steps=steps)
    # All steps of a run are in one folder.
    of_run = night.steps[COMPARED].folder.rpartition("/")[0]
    with night.storage.local(of_run) as folder:
        totals = control_totals(folder, account=run.account, moved=night.moved)
        return with_totals(result, totals=totals)


@contextmanager
def results_at(run: Run, *, environment: Environment) -> Iterator[Path]:
    """Local folder of a run's results, for as long as the block lasts.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    with environment.store.reading() as connection:
        night = sealed_night(connection, run, environment=environment)
    with night.storage.local(night.steps[RESULTS].folder) as folder:
        yield folder


def proven_again(run: Run, *, environment: Environment) -> tuple[ControlTotal, ...]:
    """T14 of a sealed night computed again, with the SQL statements and totals of its own folder.

    Empty for a night whose proof is not sealed.

    Raises:
        ArchiveError: the archive cannot be reached, or the folder was purged.
    """
    with environment.store.reading() as connection:
        refuse_purged(connection, run.run_id)
        night = sealed_night(connection, run, environment=environment)
    if not night.steps.keys() >= {*STEPS}:
        return ()
    totals = totals_of(night.table("totals"))
    with night.storage.local(folder_of(run)) as folder:
        return proven_in_sql(
            folder,
            totals=totals,
            account=run.account,
            moved=night.superseded,
            own=night.statements(),
        )
