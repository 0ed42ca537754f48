import os
import subprocess
import sys
import weakref
from pathlib import Path

import pyarrow as pa
import pytest

from recon.model import uptime
from recon.model.uptime import LARGE_BYTES, POOL, POOL_VARIABLE, give_back

PAGE_BYTES = 4096
TEXTS = 2_000_000


def held() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def test_what_nothing_holds_any_more_goes_back_to_the_machine() -> None:
    """A list of two million texts and their table leave less than a quarter of themselves."""
    before = held()
    texts = [f"order-{number:012}" for number in range(TEXTS)]
    table = pa.table({"texts": texts})
    grown = held() - before
    del texts, table
    give_back()
    assert held() - before < grown / 4


def test_large_tables_that_only_hold_themselves_go() -> None:
    """A table in a circle of objects is looked for, as frames of a night stand in one."""
    before = pa.total_allocated_bytes()
    circle: list[object] = [pa.nulls(LARGE_BYTES // 4, pa.int64())]
    circle.append(circle)
    assert pa.total_allocated_bytes() - before > LARGE_BYTES
    del circle
    give_back()
    assert pa.total_allocated_bytes() - before < LARGE_BYTES


class Circle:
    """Something that holds itself, as frames do that were grouped; Arrow has nothing of it."""

    def __init__(self) -> None:
        self.own = self


@pytest.mark.parametrize("is_large", [True, False])
def test_frames_that_only_hold_themselves_go_where_the_process_is_large(
    monkeypatch: pytest.MonkeyPatch, *, is_large: bool
) -> None:
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
def test_commands_and_flows_choose_the_pool_that_keeps_least(
    start: str, named: str, chosen: str
) -> None:
    """Arrow is loaded after the choice, and what an operator names stays."""
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
