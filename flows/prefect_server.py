"""A Prefect server of our own on this machine, with its state in a folder of its own.

Prefect can start a temporary server by itself, but only once a flow runs: the process that runs
the flow then imports the whole server first and waits. Started here it comes up beside other work
(the demo prepares its sample night meanwhile). A new folder costs about six seconds more: Prefect
creates its tables through all of its migrations.

Whoever may talk to Prefect may have its worker run a program. So the server asks for a password,
which lies in a file of its folder that only its owner reads, answers pages of its own origin alone,
and takes no change without a token of its own (CSRF).
"""

import http.client
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from recon.model.errors import OutputError, ReconError, UsageError
from recon.privacy.own_files import STRANGERS, for_owner, make_folder, write_result
from recon.privacy.own_programs import program_variables

STARTUP_TIMEOUT_SECONDS = 120
HEALTH_CHECK_TIMEOUT_SECONDS = 2
HEALTH_CHECK_PAUSE_SECONDS = 0.1
STOP_TIMEOUT_SECONDS = 10
LOOPBACK = "127.0.0.1"

SERVER_LOG = "server.log"
PID_FILE = "server.pid"
PASSWORD_FILE = "password"  # noqa: S105 - the name of a file
PASSWORD_BYTES = 18
"""Of chance."""
USER = "recon"
"""Prefect knows no users: name and password are one word of two parts to it."""


@dataclass(frozen=True, slots=True)
class PrefectServer:
    """A server that was started; `wait` before the first call to it."""

    url: str
    home: Path
    process: subprocess.Popen[bytes]

    @property
    def api_url(self) -> str:
        """What PREFECT_API_URL takes."""
        return f"{self.url}/api"

    @property
    def auth(self) -> str:
        """What it asks everybody for: name and password, with a colon between."""
        return auth_of(self.home)

    def wait(self) -> None:
        """Return once the server answers.

        Raises:
            ReconError: it ended, or did not answer within STARTUP_TIMEOUT_SECONDS.
        """
        give_up_at = time.monotonic() + STARTUP_TIMEOUT_SECONDS
        while not answers(f"{self.api_url}/health"):
            ended = self.process.poll()
            if ended is not None or time.monotonic() > give_up_at:
                why = f"ended with code {ended}" if ended is not None else "did not answer in time"
                msg = (
                    f"the Prefect server for {self.home} {why}; nothing was started, its own words "
                    f"are in {self.home / SERVER_LOG}"
                )
                raise ReconError(msg)
            time.sleep(HEALTH_CHECK_PAUSE_SECONDS)


@contextmanager
def prefect_server(
    home: Path, *, port: int = 0, with_ui: bool = False, variables: Mapping[str, str] | None = None
) -> Iterator[PrefectServer]:
    """A server with its state in `home`, ended with the block; it comes up in the background.

    Args:
        home: Folder of Prefect's database, settings and log; made when absent, kept afterwards.
        port: 0 takes a free one.
        with_ui: Whether the server shows its pages to a browser.
        variables: Further environment variables of the server.

    Raises:
        OutputError: the folder cannot be written.
        UsageError: another living run has its server in this folder.
    """
    server = start_server(home, port=port, with_ui=with_ui, variables=variables)
    try:
        yield server
    finally:
        stop_server(server.process)
        (home / PID_FILE).unlink(missing_ok=True)


def start_server(
    home: Path, *, port: int = 0, with_ui: bool = False, variables: Mapping[str, str] | None = None
) -> PrefectServer:
    """Start a server and return at once; one that a killed run left behind is ended first."""
    home = home.absolute()
    port = port or free_port()
    url = f"http://{LOOPBACK}:{port}"
    command = [sys.executable, "-m", "prefect", "server", "start"]
    command += ["--host", LOOPBACK, "--port", str(port), "--ui" if with_ui else "--no-ui"]
    try:
        make_folder(home)
        _make_password(home)
        ours = {
            **prefect_variables(home, api_url=f"{url}/api"),
            **_doors(url, auth=auth_of(home)),
            **(variables or {}),
        }
        _end_left_behind(home / PID_FILE)
        with open(home / SERVER_LOG, "wb", opener=for_owner) as log:
            # A session of its own: Ctrl-C ends the night first, and the night then ends the server.
            process = subprocess.Popen(  # noqa: S603 - our own interpreter, no foreign argument
                command,
                env={**program_variables(os.environ), **ours},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=STRANGERS,
            )
        owner = identity_of(os.getpid())
        write_result(home / PID_FILE, f"{identity_of(process.pid)}\n{owner}\n")
    except OSError as error:
        msg = f"Prefect's folder {home} cannot be written ({error.strerror}); nothing was started"
        raise OutputError(msg) from error
    return PrefectServer(url, home, process)


def stop_server(process: subprocess.Popen[bytes]) -> None:
    """End a server that this process started; killed when it does not end in time."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_TIMEOUT_SECONDS)


def prefect_variables(home: Path, *, api_url: str) -> dict[str, str]:
    """The environment under which every Prefect process of this folder runs."""
    auth = auth_of(home)
    return {
        **({"PREFECT_API_AUTH_STRING": auth} if auth else {}),
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": api_url,
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": str(STARTUP_TIMEOUT_SECONDS),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }


def auth_of(home: Path) -> str:
    """What the server of this folder asks for; "" where none was started there."""
    with suppress(FileNotFoundError):
        return f"{USER}:{(home / PASSWORD_FILE).read_text().strip()}"
    return ""


def _make_password(home: Path) -> None:
    """Once for a folder: people keep it in their browsers."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with suppress(FileExistsError):
        descriptor = os.open(home / PASSWORD_FILE, flags, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{secrets.token_urlsafe(PASSWORD_BYTES)}\n")


def _doors(url: str, *, auth: str) -> dict[str, str]:
    """Who may talk to the server: whoever has the password, and no page of another origin."""
    return {
        "PREFECT_SERVER_API_AUTH_STRING": auth,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": url,
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    }


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Whether an address of this machine answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=HEALTH_CHECK_TIMEOUT_SECONDS) as reply:  # noqa: S310 - loopback http
            return bool(reply.status == 200)  # noqa: PLR2004 - HTTP's OK
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError):
        return False


def identity_of(pid: int) -> str:
    """Process id and start time: an id alone may belong to another program by now."""
    return f"{pid} {psutil.Process(pid).create_time()}"


def _end_left_behind(pid_file: Path) -> None:
    """End the server of this folder that outlived a killed run; nothing else, ever.

    Raises:
        UsageError: the run that started it still lives.
    """
    if not pid_file.exists():
        return
    written, _, owner = pid_file.read_text().strip().partition("\n")
    server = process_of(written)
    if server is None:
        return
    if process_of(owner) is not None:
        msg = (
            f"the Prefect folder {pid_file.parent} is in use by process {owner.partition(' ')[0]}; "
            "nothing was started: wait for it, or take another folder"
        )
        raise UsageError(msg)
    end_process(server)


def process_of(identity: str) -> psutil.Process | None:
    """The living process of an identity; None when it is gone or its number is another's now."""
    with suppress(psutil.NoSuchProcess, ValueError, OverflowError):
        pid = int(identity.partition(" ")[0])
        if identity_of(pid) == identity:
            return psutil.Process(pid)
    return None


def end_process(process: psutil.Process) -> None:
    """Ask a process to end, and kill it when it does not in time."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_SECONDS)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait(STOP_TIMEOUT_SECONDS)
