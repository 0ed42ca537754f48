"""The flow follows the order of recon's night, and nothing of its own."""

import inspect

import pytest

from flows.nightly import TASKS, nightly
from recon.model.nights import Mode
from recon.steps.night.whole_night import STEP_NAMES
from tasks.night_tasks import query, report


def test_every_step_of_a_night_has_its_task() -> None:
    """The same names in the same order: the order is held once, in recon."""
    assert list(TASKS) == list(STEP_NAMES)


def test_a_form_that_is_just_submitted_moves_no_money() -> None:
    """Whoever does not choose gets a dry run of no named date."""
    given = inspect.signature(nightly.fn).parameters

    assert given["mode"].default is Mode.DRY_RUN
    assert given["business_date"].default is None


@pytest.mark.parametrize("task", [query, report])
def test_a_task_takes_ids_and_phases_only(task: object) -> None:
    """Prefect stores parameters: no frame, no path, no secret ever travels."""
    names = set(inspect.signature(task.fn).parameters)  # type: ignore[attr-defined] - a Prefect task

    assert names <= {"run_id", "phase"}


def test_a_limit_that_refuses_runs_goes_without_retries() -> None:
    """Retries of a flow together with a concurrency limit end runs as Crashed."""
    assert nightly.retries == 0
    assert nightly.persist_result is False
