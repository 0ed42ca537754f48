"""A Prefect server of our own: who ends it, and what people read when it does not start."""

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from flows import serve as module
from flows.prefect_health import open_doors
from flows.serve import PrefectServer, end_process, prefect_variables, start_server
from recon.model.errors import OutputError, ReconError


@pytest.fixture
def sleeper():
    """A process that would live on by itself."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    end_process(process)


def test_a_server_that_ends_at_start_says_where_its_words_are(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    dead.wait()
    server = PrefectServer(f"http://127.0.0.1:{module.free_port()}", tmp_path, dead)

    with pytest.raises(ReconError, match=r"ended with code 3; nothing was started.*server\.log"):
        server.wait()


def test_a_server_that_stays_silent_is_given_up(sleeper, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STARTUP_TIMEOUT_SECONDS", 0)
    server = PrefectServer(f"http://127.0.0.1:{module.free_port()}", tmp_path, sleeper)

    with pytest.raises(ReconError, match="did not answer in time"):
        server.wait()


@pytest.fixture
def echoing():
    """The address of who sends back what they are sent.

    So does a port that nobody listens on, when a connection to it happens to meet itself.
    """

    def send_back():
        connection, _ = listener.accept()
        with connection:
            connection.sendall(connection.recv(4096))

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        echo = pool.submit(send_back)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        echo.result()


def test_who_speaks_no_http_is_not_up_yet(echoing):
    assert not module.answers(f"{echoing}/health")


def test_the_doctor_says_of_who_speaks_no_http_that_they_do_not_answer(echoing):
    with pytest.raises(ReconError, match=rf"{echoing}/api does not answer"):
        open_doors(f"{echoing}/api", auth="")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "home").write_text("not a folder")

    with pytest.raises(OutputError, match=r"Prefect's folder .*home cannot be written"):
        start_server(tmp_path / "home")


def test_state_stays_in_its_folder_and_nothing_is_told_to_others(tmp_path):
    variables = prefect_variables(tmp_path, api_url="http://127.0.0.1:4200/api")

    assert variables["PREFECT_HOME"] == str(tmp_path)
    assert variables["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert variables["DO_NOT_TRACK"] == "1"
    assert variables["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] == "120"
