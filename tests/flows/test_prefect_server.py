"""A Prefect server of our own: who ends it, and what people read when it does not start."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from flows import serve as module
from flows.prefect_health import open_doors
from flows.serve import PrefectServer, prefect_variables, start_server, stop_server
from recon.model.errors import OutputError, ReconError, UsageError


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that would live on by itself."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    stop_server(process)


def test_a_server_that_a_killed_run_left_behind_is_ended(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """The PID file names it by process and start time, so it is surely ours."""
    pid_file = tmp_path / "server.pid"
    pid_file.write_text(f"{module.identity_of(sleeper.pid)}\n999999999 1.0\n")

    module._end_left_behind(pid_file)

    assert not psutil.pid_exists(sleeper.pid)


def test_the_server_of_a_run_that_still_lives_is_left_to_it(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """A second run in the same folder is refused and does not end the first one's server."""
    pid_file = tmp_path / "server.pid"
    pid_file.write_text(f"{module.identity_of(sleeper.pid)}\n{module.identity_of(os.getpid())}\n")

    with pytest.raises(UsageError, match=f"in use by process {os.getpid()}; nothing was started"):
        start_server(tmp_path)

    assert sleeper.poll() is None


@pytest.mark.parametrize("written", ["{pid} 1.0", "{pid}", "words", "", "999999999 1.0"])
def test_a_process_that_is_not_surely_ours_is_left_alone(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, written: str
) -> None:
    """The same number may belong to another program by now."""
    pid_file = tmp_path / "server.pid"
    pid_file.write_text(written.format(pid=sleeper.pid))

    module._end_left_behind(pid_file)

    assert psutil.pid_exists(sleeper.pid)
    assert sleeper.poll() is None


def test_a_server_that_ends_at_start_says_where_its_words_are(tmp_path: Path) -> None:
    """The sentence has the folder, the code, that nothing ran, and the log to read."""
    dead = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    dead.wait()
    server = PrefectServer(f"http://127.0.0.1:{module.free_port()}", tmp_path, dead)

    with pytest.raises(ReconError, match=r"ended with code 3; nothing was started.*server\.log"):
        server.wait()


def test_a_server_that_stays_silent_is_given_up(
    sleeper: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a limit to waiting."""
    monkeypatch.setattr(module, "STARTUP_TIMEOUT_SECONDS", 0)
    server = PrefectServer(f"http://127.0.0.1:{module.free_port()}", tmp_path, sleeper)

    with pytest.raises(ReconError, match="did not answer in time"):
        server.wait()


@pytest.fixture
def echoing() -> Iterator[str]:
    """The address of who sends back what they are sent.

    So does a port that nobody listens on, when a connection to it happens to meet itself.
    """

    def send_back() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(connection.recv(4096))

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        echo = pool.submit(send_back)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        echo.result()


def test_who_speaks_no_http_is_not_up_yet(echoing: str) -> None:
    """Whoever waits for a server of ours looks again."""
    assert not module.answers(f"{echoing}/health")


def test_the_doctor_says_of_who_speaks_no_http_that_they_do_not_answer(echoing: str) -> None:
    """A sentence with the address, not a stack."""
    with pytest.raises(ReconError, match=rf"{echoing}/api/admin/version does not answer"):
        open_doors(f"{echoing}/api", auth="")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where the folder should be: one sentence, nothing started."""
    (tmp_path / "home").write_text("not a folder")

    with pytest.raises(OutputError, match=r"Prefect's folder .*home cannot be written"):
        start_server(tmp_path / "home")


def test_state_stays_in_its_folder_and_nothing_is_told_to_others(tmp_path: Path) -> None:
    """Own database, own home, analytics off, two minutes to start."""
    variables = prefect_variables(tmp_path, api_url="http://127.0.0.1:4200/api")

    assert variables["PREFECT_HOME"] == str(tmp_path)
    assert variables["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert variables["DO_NOT_TRACK"] == "1"
    assert variables["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] == "120"
