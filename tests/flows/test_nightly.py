"""The flow follows the order of recon's night, and nothing of its own."""

import inspect

import pytest

from flows.nightly import nightly
from recon.model.nights import Mode
from tasks.night_tasks import TASKS


def test_a_form_that_is_just_submitted_moves_no_money() -> None:
    """Whoever does not choose gets a dry run of no named date."""
    given = inspect.signature(nightly.fn).parameters

    assert given["mode"].default is Mode.DRY_RUN
    assert given["business_date"].default is None


@pytest.mark.parametrize("name", TASKS)
def test_a_task_takes_the_id_of_a_run_only(name: str) -> None:
    """Prefect stores parameters: no frame, no path, no secret ever travels."""
    assert [*inspect.signature(TASKS[name].fn).parameters] == ["run_id"]


def test_a_limit_that_refuses_runs_goes_without_retries() -> None:
    """Retries of a flow together with a concurrency limit end runs as Crashed."""
    assert nightly.retries == 0
    assert nightly.persist_result is False
