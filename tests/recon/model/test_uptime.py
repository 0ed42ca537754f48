import gc
import os
import subprocess
import sys
import weakref
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from recon.model import uptime
from recon.model.uptime import (
    OBJECTS_BETWEEN,
    POOL,
    POOL_VARIABLE,
    Uptime,
    between,
    collect_seldom,
    give_back,
    look_past_loaded,
    uptime_of,
)

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def test_a_replayed_night_has_the_time_of_its_own_clock():
    early, late = uptime_of(lambda: NOW), uptime_of(lambda: NOW + timedelta(seconds=5))

    assert early.boot_id == late.boot_id
    assert late.milliseconds - early.milliseconds == 5_000


def test_only_readings_of_one_known_boot_or_with_the_gateways_date_are_tied():
    """Two machines count from different moments, and one that does not know its boot is any."""
    day = timedelta(days=1)
    first = Uptime("a", 1_000, NOW)

    assert between(first, Uptime("a", 61_000, NOW + day)) == timedelta(minutes=1)
    assert between(first, Uptime("b", 5_000, NOW + day)) == day
    assert between(first, Uptime("b", 61_000)) is None
    assert between(Uptime(), Uptime(milliseconds=61_000)) is None


class Knot:
    """Holds itself."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before():
    """The process of the tests collects as it did."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_a_knot_stays_until_so_many_objects_were_made():
    gc.collect()
    collect_seldom()
    knot = weakref.ref(Knot())
    made = [[number] for number in range(OBJECTS_BETWEEN // 2)]
    held_on = knot() is not None
    made += [[number] for number in range(OBJECTS_BETWEEN)]

    assert (held_on, knot()) == (True, None)
    assert len(made) > OBJECTS_BETWEEN


def test_what_is_there_when_work_begins_is_not_looked_at_again():
    """A knot from before stays however often Python looks; one that work made goes."""
    gc.collect()
    before = weakref.ref(Knot())
    look_past_loaded()
    after = weakref.ref(Knot())
    gc.collect()

    assert (before() is not None, after()) == (True, None)


PAGE_BYTES = 4096
TEXTS = 2_000_000


def held():
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def test_what_nothing_holds_any_more_goes_back_to_the_machine():
    before = held()
    texts = [f"order-{number:012}" for number in range(TEXTS)]
    table = pa.table({"texts": texts})
    grown = held() - before
    del texts, table
    give_back()
    assert held() - before < grown / 4


class Circle:
    """Something that holds itself, as frames do that were grouped; Arrow has nothing of it."""

    def __init__(self):
        self.own = self


@pytest.mark.parametrize("is_large", [True, False])
def test_frames_that_only_hold_themselves_go_where_the_process_is_large(monkeypatch, *, is_large):
    """A small month is not looked through for them: that took longer than much of its work."""
    bound = held() // 2 if is_large else held() * 2
    monkeypatch.setattr(uptime, "LOOKED_FROM_BYTES", bound)
    circle = weakref.ref(Circle())
    give_back(frames=True)
    assert (circle() is None) is is_large


@pytest.mark.skipif(sys.platform != "linux", reason="other machines have other pools")
@pytest.mark.parametrize(("named", "chosen"), [("", POOL), ("system", "system")])
@pytest.mark.parametrize(
    "start", ["from recon.cli import main; main(['--version'])", "import flows"]
)
def test_commands_and_flows_choose_the_pool_that_keeps_least(start, named, chosen):
    variables = {name: word for name, word in os.environ.items() if name != POOL_VARIABLE}
    code = f"{start}\nimport pyarrow\nprint(pyarrow.default_memory_pool().backend_name)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=variables | ({POOL_VARIABLE: named} if named else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split()[-1] == chosen
