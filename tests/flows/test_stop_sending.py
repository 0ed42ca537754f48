"""What the form that stops all sending does, and what it must not."""

from typing import Any

import pytest
from pydantic import SecretStr

from flows.prefect_server import PrefectServer
from flows.stop_sending import Switch, stop_sending
from tests.flows.flow_in_process import prefect_of


def turned(server: PrefectServer, turn: Switch, **values: Any) -> tuple[str, str]:
    """Name and sentence of the last state of a run of the form."""
    with prefect_of(server):
        last = stop_sending(turn, **values, return_state=True)
    return last.name, last.message


def test_the_form_starts_by_only_looking() -> None:
    """Whoever just submits the form has stopped nothing, and Prefect never repeats it."""
    assert stop_sending.retries == 0
    assert stop_sending.persist_result is False
    assert stop_sending.parameters.properties["turn"]["default"] == "show"


@pytest.mark.flow
@pytest.mark.usefixtures("people")
def test_one_person_stops_and_one_alone_does_not_allow(server: PrefectServer) -> None:
    """A name and a reason stop it; without the right code nobody lets money go again."""
    assert turned(server, Switch.SHOW) == ("Shown", "Money may be sent.")
    assert "say who does it" in turned(server, Switch.STOP, name="anna")[1]
    assert turned(server, Switch.STOP, name="anna", reason="the key leaked")[0] == "Stopped"
    shown = turned(server, Switch.SHOW)[1]
    assert shown.startswith("sending was stopped by anna")
    assert "the key leaked" in shown
    wrong = turned(server, Switch.ALLOW, name="anna", reason="new key", code=SecretStr("918273"))
    assert "not right" in wrong[1]
    assert turned(server, Switch.SHOW)[1] == shown
