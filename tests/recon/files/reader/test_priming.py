"""What the warm process reads by itself before the first file comes."""

import io
import os
import subprocess
import sys
import time
from pathlib import Path

from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files.reader import files
from recon.files.reader.door import OWN_VARIABLES, FileReader
from tests.recon.files.reader import breaking

QUICK_SECONDS = 60
LOOK = """
import os, sys
from recon.files.reader import files
from recon.files.reader.files import prime
before = len(os.listdir("/proc/self/task"))
names = list(prime())
print(*names, len(os.listdir("/proc/self/task")) - before, "pyarrow.pandas_compat" in sys.modules)
"""


def test_samples_are_read_without_a_thread() -> None:
    """The process is forked afterwards; what its libraries load at first use is there then."""
    ended = subprocess.run(
        [sys.executable, "-c", LOOK],
        env=os.environ | OWN_VARIABLES,
        capture_output=True,
        check=True,
        text=True,
    )

    assert ended.stdout.split() == ["orders.csv", "ledger.csv", "0", "True"]


def test_each_sample_has_a_good_row_and_a_refused_one(tmp_path: Path) -> None:
    """What takes a row and what tells of one are both used once."""
    told = []
    for name, content, schema in files.SAMPLES:
        path = tmp_path / name
        path.write_text(content)
        how = {"rules": Rules(), "layout": STANDARD, "keep": True}
        told.append(files.table(io.BytesIO(), path=path, schema=schema, **how))

    sources = [facts.source_file for facts in told]
    assert [(file.rows_accepted, file.rows_rejected) for file in sources] == [(1, 1), (1, 1)]


def test_a_warm_process_reads_its_samples_while_nobody_asks(tmp_path: Path) -> None:
    """Nobody waits for them: a file that comes first is read first, and later ones cost less."""
    reader, path = FileReader(), tmp_path / "orders.csv"
    path.write_text("x")
    ends = time.monotonic() + QUICK_SECONDS
    is_primed = False
    while not is_primed and time.monotonic() < ends:
        with reader.read(path, breaking.tells_whether_primed) as read:
            is_primed = read.facts
    reader.close()

    assert is_primed
