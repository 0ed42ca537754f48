"""The programs of `make serve`: what is started is written down, and only that is ended."""

import json
import socket
import subprocess
import sys

import psutil
import pytest

from flows import serve
from flows.serve import end_process, identity_of


@pytest.fixture
def sleepers():
    """Two processes that would live on by themselves."""
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    processes = [subprocess.Popen(command) for _ in range(2)]
    yield processes
    for process in processes:
        end_process(process)


def test_stop_ends_exactly_what_was_written_down(sleepers, tmp_path):
    ours, other = sleepers
    entries = [
        {"name": "worker", "process": identity_of(ours.pid)},
        {"name": "server", "process": f"{other.pid} 1.0"},
        {"name": "gone", "process": "999999999 1.0"},
        *({"name": "odd", "process": odd} for odd in (f"{other.pid}", "words", "")),
    ]
    (tmp_path / serve.PROCESSES).write_text(json.dumps(entries))

    assert serve.stop(tmp_path) == 1
    assert not psutil.pid_exists(ours.pid)
    assert other.poll() is None
    assert serve.stop(tmp_path) == 0


def test_a_second_start_is_refused_while_the_first_runs(sleepers, tmp_path, capsys):
    entries = [{"name": "worker", "process": identity_of(sleepers[0].pid)}]
    (tmp_path / serve.PROCESSES).write_text(json.dumps(entries))

    assert serve.main(["start", "--dir", str(tmp_path)]) == 2
    assert "run already: `make stop` ends them" in capsys.readouterr().err
    assert sleepers[0].poll() is None


# The programs are meant to outlive their handles: ending goes by what was written down.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_start_that_fails_ends_what_it_started(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(serve, "RECON", (sys.executable, "-c", "raise SystemExit(7)"))

    assert serve.main(["start", "--dir", str(tmp_path), "--port", "0"]) == 1
    told = capsys.readouterr()
    server, *others = told.out.splitlines()
    assert server.startswith("starting Prefect's server on port ")
    assert others == ["preparing the sample night ..."]
    assert f"ended with code 7; see {tmp_path / 'commands.log'}" in told.err
    assert not (tmp_path / serve.PROCESSES).exists()
    assert serve.stop(tmp_path) == 0


def test_a_taken_port_is_named_before_anything_is_started(tmp_path, capsys):
    with socket.socket() as other:
        other.bind((serve.LOOPBACK, 0))
        other.listen()
        port = other.getsockname()[1]

        assert serve.main(["start", "--dir", str(tmp_path / "serve"), "--port", f"{port}"]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"port {port} is taken by another program")
    assert f"`make serve PORT={port + 1}`" in told.err
    assert told.out == ""
    assert not (tmp_path / "serve").exists()


def test_variables_are_read_as_plain_lines(tmp_path):
    (tmp_path / "env").write_text("# demo\nRECON_A=one=two\n\nRECON_B=$HOME\n")

    assert serve.read_env(tmp_path / "env") == {"RECON_A": "one=two", "RECON_B": "$HOME"}
