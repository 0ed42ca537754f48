"""A real night as a Prefect flow, its money over real HTTP, while Prefect goes wrong around it."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from flows.serve import prefect_variables
from tests.conftest import migrated, sqlite_url  # noqa: F401 - fixtures
from tests.flows.prefect_api import prefect_api
from tests.recon.steps.conftest import database_url, merchant, profile  # noqa: F401 - fixtures

NIGHT = """
from datetime import date
from flows.nightly import nightly
from recon.model.nights import Mode
nightly("100042", "100042001", date(2026, 11, 20), Mode.LIVE, return_state=True)
"""
MONEY_SECONDS_MAX = 60
END_SECONDS_MAX = 120
DONE = {"confirmed", "resolved_applied"}
ALL = bool(os.environ.get("CHAOS"))
"""Each trouble costs a process with the whole of Prefect; the ordinary run plays one."""


@dataclass
class Relay:
    """The only way to the Prefect server, until it is cut."""

    to: tuple[str, int]
    door: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    ends: list[socket.socket] = field(default_factory=list)

    @property
    def api_url(self):
        return f"http://127.0.0.1:{self.door.getsockname()[1]}/api"

    def serve(self):
        with suppress(OSError):
            while True:
                near, _ = self.door.accept()
                far = socket.create_connection(self.to)
                self.ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=pair, daemon=True).start()

    def cut(self):
        """From now on nobody is there."""
        for end in (self.door, *self.ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _pass_on(near, far):
    with suppress(OSError):
        while data := near.recv(65_536):
            far.sendall(data)
        far.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(server):
    """A way to the server of all these tests."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    opened = Relay((host, int(port)))
    threading.Thread(target=opened.serve, daemon=True).start()
    yield opened
    opened.cut()


@contextmanager
def flow_of(night, relay, home):
    """A process that runs the flow; at the latest killed with the block."""
    variables: Mapping[str, str] = {
        **os.environ,
        **night.variables,
        **prefect_variables(home, api_url=relay.api_url),
        "PREFECT_CLIENT_MAX_RETRIES": "1",  # it would try for a minute each time
    }
    with subprocess.Popen(
        [sys.executable, "-c", NIGHT],
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_money(night, process):
    """Return while the first batch is on its way: the gateway takes its time to answer."""
    give_up_at = time.monotonic() + MONEY_SECONDS_MAX
    while "in_flight" not in night.instruction_states():
        assert process.poll() is None, "the night ended before it sent anything"
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def set_state(server, kind):
    """What the buttons of Prefect's pages do to the newest run, without asking its process."""
    with prefect_api(server.api_url, auth=server.auth) as api:
        newest = {"sort": "START_TIME_DESC", "limit": 1}
        (run,) = api.post("/flow_runs/filter", json=newest).raise_for_status().json()
        told = {"state": {"type": kind}, "force": True}
        api.post(f"/flow_runs/{run['id']}/set_state", json=told).raise_for_status()


def ended_later(night):
    """Two more nights without Prefect, each a day later: what evidence decides is decided."""
    for date in ("2026-11-20", "2026-11-21", "2026-11-22"):
        night.night(date=date)
        night.wait(hours=24)
    found: dict[str, int] = night.instruction_states()
    return found


def cut(relay, _server, _process):
    """Prefect's API goes away and stays away."""
    relay.cut()


def kill(_relay, _server, process):
    """The process crashes."""
    process.kill()


def told(kind):
    """A button of Prefect's pages is pressed."""

    def press(_relay, server, _process):
        set_state(server, kind)

    return press


TROUBLE = {
    "cancelled": told("CANCELLED"),
    "the API goes away": cut,
    "the process crashes": kill,
    "cancelling": told("CANCELLING"),
    "paused": told("PAUSED"),
    "crashed by Prefect's word": told("CRASHED"),
    "retried": told("SCHEDULED"),
}


@pytest.mark.process
@pytest.mark.parametrize("name", list(TROUBLE)[: None if ALL else 1])
def test_trouble_with_prefect_moves_no_money_twice(merchant, server, relay, name):  # noqa: F811 - the fixture
    wanted = [one for one in merchant.payments("authorised") if one.currency == "EUR"][:3]
    merchant.drop(
        "orders.csv",
        *(merchant.order(one, status="paid", action="capture") for one in wanted),
    )
    merchant.fault({"operation": "capture", "kind": "delay", "seconds": 1.5, "times": 1})
    with flow_of(merchant, relay, server.home) as process:
        wait_for_money(merchant, process)
        TROUBLE[name](relay, server, process)
        process.wait(END_SECONDS_MAX)
    states = ended_later(merchant)

    moved = sorted(row["order_no"] for row in merchant.effects())
    assert sum(states.values()) == len(wanted)
    assert sum(states[state] for state in DONE & set(states)) == len(moved)
    assert merchant.invariants()["double_effects"] == 0
    if TROUBLE[name] is kill:  # the gateway may have noticed that nobody waits any more
        assert set(states) <= DONE | {"resolved_not_applied"}
    else:
        assert moved == sorted(one.order_no for one in wanted)
