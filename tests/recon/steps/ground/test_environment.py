from datetime import timedelta
from typing import Any

import pytest

from recon.model.errors import ConfigurationError
from recon.steps.ground.environment import CLOCK_VARIABLE, environment_of, system_clock

SHIFT = timedelta(days=9)


def moved(merchant: Any, *, shift: str, **more: str) -> dict[str, str]:
    """A merchant's variables with another time."""
    return {**merchant.variables, CLOCK_VARIABLE: shift, **more}


def test_the_time_of_the_sandboxs_nights_is_moved_by_a_variable(merchant: Any) -> None:
    """Clock and the clock that nobody can set go together; without the variable nothing moves."""
    seconds = str(int(SHIFT.total_seconds()))
    with environment_of(moved(merchant, shift=seconds), clock=system_clock) as environment:
        ahead = environment.clock() - system_clock()
        before = environment.uptime()
    with environment_of(merchant.variables, clock=system_clock) as environment:
        plain = environment.clock() - system_clock()

    assert abs(ahead - SHIFT) < timedelta(minutes=1)
    assert abs(plain) < timedelta(minutes=1)
    assert before.boot_id == "replayed"
    apart = timedelta(milliseconds=before.milliseconds - system_clock().timestamp() * 1_000)
    assert abs(apart - SHIFT) < timedelta(minutes=1)


def test_a_caller_who_brings_a_clock_keeps_it(merchant: Any) -> None:
    """The variable moves the machine's clock alone."""
    with environment_of(moved(merchant, shift="86400"), clock=merchant.clock) as environment:
        assert environment.clock() - merchant.clock() < timedelta(minutes=1)


def test_towards_a_gateway_elsewhere_no_time_is_moved(merchant: Any) -> None:
    """Who could move the time could let approvals and months run out: refused by name."""
    elsewhere = {"RECON_GATEWAY_BASE_URL": "https://gateway.example/"}
    variables = moved(merchant, shift="60", **elsewhere)
    with (
        pytest.raises(ConfigurationError, match=f"{CLOCK_VARIABLE} moves .* sandbox's nights only"),
        environment_of(variables, clock=system_clock),
    ):
        pass


@pytest.mark.parametrize("shift", ["soon", "1.5", "99999999999"])
def test_what_is_no_number_of_seconds_is_refused(merchant: Any, shift: str) -> None:
    """Never guessed, never left out in silence."""
    with (
        pytest.raises(ConfigurationError, match="no whole number of seconds"),
        environment_of(moved(merchant, shift=shift), clock=system_clock),
    ):
        pass
