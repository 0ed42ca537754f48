import subprocess
import sys

import pytest

from recon.cli.output import echo, echo_error


def test_results_and_complaints_go_their_own_ways(capsys: pytest.CaptureFixture[str]) -> None:
    """A script reads stdout; what went wrong is on stderr."""
    echo("RECONCILED")
    echo_error("The inbox is not there")

    assert capsys.readouterr() == ("RECONCILED\n", "The inbox is not there\n")


def test_a_result_sends_no_control_character_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What somebody typed as a reason stays text when it is shown; lines and digits stay whole."""
    echo("by \x1b[31mevil (\x1b]0;pwn\x07 \u202e)\n4111111111111111")

    assert capsys.readouterr().out == (
        "by \\u001b[31mevil (\\u001b]0;pwn\\u0007 \\u202e)\n4111111111111111\n"
    )


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-"])
def test_a_log_that_cannot_be_written_ends_no_work(stderr: str) -> None:
    """A full disk or a closed stderr costs lines, not the night, and how many is told."""
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
