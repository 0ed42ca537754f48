import os
import pty
import re
import subprocess
import sys

import pytest

from recon.cli.output import echo, echo_error


def test_results_and_complaints_go_their_own_ways(capsys):
    echo("RECONCILED")
    echo_error("The inbox is not there")

    assert capsys.readouterr() == ("RECONCILED\n", "The inbox is not there\n")


def test_a_result_sends_no_control_character_to_a_terminal(capsys):
    echo("by \x1b[31mevil (\x1b]0;pwn\x07 \u202e)\n4111111111111111")

    assert capsys.readouterr().out == (
        "by \\u001b[31mevil (\\u001b]0;pwn\\u0007 \\u202e)\n4111111111111111\n"
    )


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-"])
def test_a_log_that_cannot_be_written_ends_no_work(stderr):
    program = (
        "from recon.cli.output import echo, progress_of\n"
        "with progress_of(['ingest', 'settle']) as report:\n"
        "    report('one')\n"
        "    report('two')\n"
        "    echo('settled')\n"
    )
    ended = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {stderr}', sys.executable, program],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )

    assert ended.returncode == 0
    assert ended.stdout.splitlines()[0] == "settled"
    assert ended.stdout.splitlines()[1].startswith("2 lines of progress are lost")


PROGRAM = """
import sys
from datetime import timedelta
from recon.cli.output import progress_of
from recon.model.step_progress import WorkProgress

now = timedelta()
with progress_of(["ingest", "query"], elapsed=lambda: now) as report:
    report("3 order files [new]")
    progress = WorkProgress("orders asked of caf\\u00e9 [x]", of=4_000)
    for _ in range(4):
        now += timedelta(seconds=20)
        progress.advance(1_000)
        sys.stderr.flush()
        if len(sys.argv) > 1:
            import time
            time.sleep(0.15)
    report("Asked for 4,000 orders.")
print("Workbook: x")
"""


def at_a_terminal(command, *, term="xterm", cwd=None):
    """All that a terminal is given by a command."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": term, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, cwd=cwd
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # how Linux says that nobody holds the other side
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
    assert process.returncode in {0, 4}
    return shown.decode()


def test_a_terminal_shows_rows_done_of_all():
    shown = at_a_terminal([sys.executable, "-c", PROGRAM, "slowly"])
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)

    assert "query (2/2)" in text
    assert re.search(r"2,000 of 4,000 orders asked of café \[x\]", text)
    assert "3 order files [new]" in text
    assert "Asked for 4,000 orders." in text
    # The line is gone at the end, and what is left is sentences and the result.
    last = shown.rsplit("\x1b[2K", 1)[-1]
    assert "query" not in last
    assert "Workbook: x" in last


def test_a_pipe_gets_plain_lines_at_intervals():
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        check=True,
        env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"},
    )

    assert ended.stdout == b"Workbook: x\n"
    assert ended.stderr.decode().splitlines() == [
        "3 order files [new]",
        "query: 2,000 of 4,000 orders asked of café [x].",
        "query: 4,000 of 4,000 orders asked of café [x].",
        "Asked for 4,000 orders.",
    ]


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_draws_nothing_gets_plain_lines(term):
    shown = at_a_terminal([sys.executable, "-c", PROGRAM], term=term)

    assert "\x1b" not in shown
    assert "query: 2,000 of 4,000 orders asked" in shown
