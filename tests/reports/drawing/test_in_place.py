"""A finished file takes its place whole, and never over something else."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from recon.model.errors import OutputError
from reports.drawing.blocks import VERSIONS_MAX, put_in_place, written_in_place


@pytest.mark.parametrize("lock", ["~$night.xlsx", ".~lock.night.xlsx#"])
def test_a_workbook_that_is_open_is_not_touched(tmp_path, lock):
    (tmp_path / lock).write_bytes(b"")

    assert put_in_place(b"new", path=tmp_path / "night.xlsx") == tmp_path / "night-v2.xlsx"


def test_too_many_versions_are_refused_with_what_to_do(tmp_path):
    for version in range(2, VERSIONS_MAX + 1):
        (tmp_path / f"night-v{version}.xlsx").write_bytes(b"other")
    (tmp_path / "night.xlsx").write_bytes(b"other")

    with pytest.raises(OutputError, match="move old workbooks away"):
        put_in_place(b"new", path=tmp_path / "night.xlsx")


def test_the_version_stands_before_both_endings_of_a_packed_file(tmp_path):
    (tmp_path / "a.b-matched.csv.gz").write_bytes(b"other")

    written = put_in_place(b"new", path=tmp_path / "a.b-matched.csv.gz")
    assert written.name == "a.b-matched-v2.csv.gz"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.b-matched-v2.csv.gz",
        "a.b-matched.csv.gz",
    ]


def test_a_disk_that_fills_while_a_file_is_written_leaves_nothing(tmp_path):
    (tmp_path / "night.xlsx").write_bytes(b"before")

    def write(file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        written_in_place(write, path=tmp_path / "night.xlsx")
    assert [path.name for path in tmp_path.iterdir()] == ["night.xlsx"]
    assert (tmp_path / "night.xlsx").read_bytes() == b"before"


def test_a_process_killed_while_it_writes_leaves_no_file_of_that_name(tmp_path):
    """What it had staged stands under a hidden name; the next writer takes the place."""
    program = (
        "import os, pathlib, signal, sys\n"
        "from reports.drawing.blocks import written_in_place\n"
        "def write(file):\n"
        "    file.write(b'half')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "written_in_place(write, path=pathlib.Path(sys.argv[1]))\n"
    )
    wanted = tmp_path / "night.xlsx"
    killed = subprocess.run([sys.executable, "-c", program, str(wanted)], check=False)
    left = [path.name for path in tmp_path.iterdir()]

    assert killed.returncode == -signal.SIGKILL
    assert [name.startswith(".night-") for name in left] == [True]
    assert put_in_place(b"whole", path=wanted) == wanted
    assert wanted.read_bytes() == b"whole"
