"""How a task runs its step."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from prefect.cache_policies import NO_CACHE
from prefect.states import Failed

from recon.model.errors import Defect, GateClosedError, StoreLockedError
from recon.model.nights import STEPS
from tasks.night_tasks import TASKS, echo, sentences_only, worth_another_try


@pytest.mark.parametrize("name", STEPS)
def test_a_task_is_never_cached_and_never_stores_what_it_returns(name):
    """A cached or replayed result would stand for work that was not done."""
    task = TASKS[name]

    assert task.name == name
    assert task.cache_policy == NO_CACHE
    assert task.persist_result is False


def test_money_is_never_sent_again_by_prefect():
    """Only the journal decides what is sent; Prefect retries reads alone."""
    retries = {name: task.retries for name, task in TASKS.items()}

    assert retries == dict.fromkeys(STEPS, 2) | {"settle": 0, "reconcile": 0}


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (StoreLockedError("another process holds the database"), True),
        (GateClosedError("T3 does not tie"), False),
        (Defect("a bug"), False),
    ],
)
def test_only_a_locked_database_is_worth_another_try(error: Exception, again: bool) -> None:  # noqa: FBT001 - a table of cases
    """A wrong file, a closed gate or a bug is the same the second time."""
    anything: Any = SimpleNamespace()

    assert worth_another_try(anything, anything, Failed(data=error)) is again


def test_the_text_of_a_foreign_exception_stops_here():
    """The place and the kind are told, the text is not: it may hold a customer's data."""
    with pytest.raises(Defect) as raised, sentences_only("query"):
        raise KeyError("4929 1234 5678 9012")

    assert "4929" not in str(raised.value)
    assert "query stopped at tests/tasks/test_running.py:" in str(raised.value)
    assert "with KeyError" in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_sentence_of_ours_passes_without_what_caused_it():
    """Our own errors are one sentence; the foreign cause behind them stays out of Prefect."""
    error = GateClosedError("the gate is closed")
    error.__cause__ = ValueError("parameters: 4929 1234 5678 9012")

    with pytest.raises(GateClosedError, match="the gate is closed") as raised:  # noqa: SIM117
        with sentences_only("settle"):
            raise error

    assert raised.value.__cause__ is None


def test_without_prefect_a_sentence_goes_to_the_ordinary_log(caplog):
    """Tasks called outside a run still say what they did."""
    with caplog.at_level(logging.INFO, logger="recon.night"):
        echo("3 orders were read.")

    assert [(one.name, one.getMessage()) for one in caplog.records] == [
        ("recon.night", "3 orders were read.")
    ]
