"""Everything on one machine to try: sandbox gateway, signer, Prefect server, worker, schedules.

`python -m flows.serve start` prepares the demo's files, starts each program in the background and
prints where the pages are; `python -m flows.serve stop` ends exactly those programs. For a look and
for development; docs/OPERATIONS.md says how production differs.
"""

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import httpx
import psutil

from recon.config.keys import SIGN_KEY, SIGNER_VARIABLE
from recon.config.settings import load_file_settings
from recon.desk.held_keys import SANDBOX_KEYS, public_text
from recon.model.errors import OutputError, ReconError, UsageError
from recon.privacy.own_files import (
    OWNER,
    STRANGERS,
    for_owner,
    make_folder,
    program_variables,
    replace_result,
)
from recon.privacy.own_servers import PATH_BYTES_MAX

STARTUP_TIMEOUT_SECONDS = 120
HEALTH_CHECK_TIMEOUT_SECONDS = 2
HEALTH_CHECK_PAUSE_SECONDS = 0.1
STOP_TIMEOUT_SECONDS = 10
LOOPBACK = "127.0.0.1"

PREFECT, FLOWS = (sys.executable, "-m", "prefect"), (sys.executable, "-m", "flows")
RECON = (str(Path(sys.executable).with_name("recon")),)
"""The programs of this environment, regardless of PATH."""

SERVER_LOG = "server.log"
PASSWORD_FILE = "password"  # noqa: S105 - the name of a file
PASSWORD_BYTES = 18
"""Random bytes in a password."""
USER = "recon"
"""Prefect has no users: name and password together are one string of credentials."""


def wait_until_up(
    name: str, is_up: Callable[[], bool], *, process: subprocess.Popen[bytes], log: Path
) -> None:
    """Wait until a program that was started is up.

    Raises:
        ReconError: it ended, or did not come up within STARTUP_TIMEOUT_SECONDS.
    """
    give_up_at = time.monotonic() + STARTUP_TIMEOUT_SECONDS
    while not is_up():
        ended = process.poll()
        if ended is not None or time.monotonic() > give_up_at:
            why = f"ended with code {ended}" if ended is not None else "did not answer in time"
            msg = f"the {name} {why}; nothing was started, its own words are in {log}"
            raise ReconError(msg)
        time.sleep(HEALTH_CHECK_PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class PrefectServer:
    """A server that was started; call `wait` before the first request to it."""

    url: str
    home: Path
    process: subprocess.Popen[bytes]

    @property
    def api_url(self) -> str:
        """The value for PREFECT_API_URL."""
        return f"{self.url}/api"

    @property
    def auth(self) -> str:
        """The credentials that it requires, as `name:password`."""
        return auth_of(self.home)

    def wait(self) -> None:
        """Wait until the server answers.

        Raises:
            ReconError: it ended, or did not answer within STARTUP_TIMEOUT_SECONDS.
        """
        is_up, log = partial(answers, f"{self.api_url}/health"), self.home / SERVER_LOG
        wait_until_up("Prefect server", is_up, process=self.process, log=log)


def start_server(
    home: Path, *, port: int = 0, with_ui: bool = False, variables: Mapping[str, str] | None = None
) -> PrefectServer:
    """Start a server in the background and return at once.

    Args:
        home: Folder of Prefect's database, settings and log; created if absent, kept afterwards.
        port: 0 takes a free one.
        with_ui: Whether the server shows its pages to a browser.
        variables: Additional environment variables of the server.

    Raises:
        OutputError: the folder cannot be written.
    """
    home = home.absolute()
    port = port or free_port()
    url = f"http://{LOOPBACK}:{port}"
    command = [*PREFECT, "server", "start", "--host", LOOPBACK, "--port", str(port)]
    try:
        make_folder(home)
        if not auth_of(home):  # once for each folder: people store it in their browsers
            password = f"{secrets.token_urlsafe(PASSWORD_BYTES)}\n"
            replace_result(home / PASSWORD_FILE, password, mode=OWNER)
        process = _begin(
            [*command, "--ui" if with_ui else "--no-ui"],
            variables={
                **prefect_variables(home, api_url=f"{url}/api"),
                # It asks for the password, refuses other origins and wants CSRF tokens.
                "PREFECT_SERVER_API_AUTH_STRING": auth_of(home),
                "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": url,
                "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
                **(variables or {}),
            },
            log=home / SERVER_LOG,
        )
    except OSError as error:
        msg = f"Prefect's folder {home} cannot be written ({error.strerror}); nothing was started"
        raise OutputError(msg) from error
    return PrefectServer(url, home, process)


def _begin(
    command: Sequence[str], *, variables: Mapping[str, str], log: Path, folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a program of ours in the background.

    From the shell that runs `make serve` it gets nothing that may be a secret of other work.
    """
    with open(log, "ab", opener=for_owner) as lines:
        # A session of its own: Ctrl-C ends the night first, and the night then ends the server.
        return subprocess.Popen(  # noqa: S603 - programs of this environment
            command,
            cwd=folder,
            env={**program_variables(os.environ), **variables},
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=lines,
            start_new_session=True,
            umask=STRANGERS,
        )


def prefect_variables(home: Path, *, api_url: str) -> dict[str, str]:
    """Return the environment variables of every Prefect process that uses this folder."""
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
    """Return the credentials that this folder's server requires; "" if none was started there."""
    with suppress(FileNotFoundError):
        return f"{USER}:{(home / PASSWORD_FILE).read_text().strip()}"
    return ""


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Return whether an address of this machine answers and is well."""
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=HEALTH_CHECK_TIMEOUT_SECONDS, trust_env=False).is_success
    return False


def identity_of(pid: int) -> str:
    """Return process id and start time: the id alone may belong to another program by now."""
    return f"{pid} {psutil.Process(pid).create_time()}"


def process_of(identity: str) -> psutil.Process | None:
    """Return the running process of an identity; None if it ended or its id was reused."""
    with suppress(psutil.NoSuchProcess, ValueError, OverflowError):
        pid = int(identity.partition(" ")[0])
        if identity_of(pid) == identity:
            return psutil.Process(pid)
    return None


def end_process(process: psutil.Process | subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and kill it if it does not end in time."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_SECONDS)
    except (psutil.TimeoutExpired, subprocess.TimeoutExpired):
        process.kill()
        process.wait(STOP_TIMEOUT_SECONDS)


COUNT_A_DAY = 100_000
"""Allowance of each kind: the gateway is the sandbox of this machine."""
BY_RULE = ("capture", "cancel", "refund")
"""What the demo's order files may have sent without people (reviews count as refunds); payouts and
the end of a subscription always need them."""


def key_set_apart(folder: Path, *, env: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Write the signer's files, and remove the key from the variables of all other programs.

    Args:
        folder: Of the signer's files; the key's is readable by its owner alone.
        env: The file of variables that people use; it names the signer from then on.
        variables: The previous variables, with the key.

    Returns:
        The variables without the key, with the signer's socket.
    """
    make_folder(folder, mode=0o700)
    key, socket = variables[SIGN_KEY], _socket(folder)
    write = partial(replace_result, mode=OWNER)
    write(folder / "key", f"{key}\n")
    if SANDBOX_KEYS.public is not None:
        write(folder / "desk.pem", public_text(SANDBOX_KEYS.public))
    write(folder / "signer.toml", _rules(folder, socket=socket, variables=variables))
    apart = {name: value for name, value in variables.items() if name != SIGN_KEY}
    apart[SIGNER_VARIABLE] = str(socket)
    write(env, "".join(f"{name}={value}\n" for name, value in apart.items()))
    return apart


def _socket(folder: Path) -> Path:
    """Return a path in the folder, or elsewhere if that is too long for a socket."""
    path = folder / "socket"
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        return path
    return Path(tempfile.mkdtemp(prefix="recon-signer-")) / "socket"


def _rules(folder: Path, *, socket: Path, variables: Mapping[str, str]) -> str:
    accounts = load_file_settings(variables).accounts
    head = {
        "socket": socket,
        "signature_log": folder / "signed.sqlite",
        "log": folder / "signer.log",
        "sign_key_file": folder / "key",
        "desk_key_file": folder / "desk.pem",
        "config_dir": variables["RECON_CONFIG_DIR"],
    }
    lines = [f"{name} = {json.dumps(str(value))}" for name, value in head.items()]
    lines.append("must_be_proven = false # at the sandbox words count without a one-time code")
    for account in sorted(accounts):
        lines += [
            f'[accounts."{account}".by_rule.{kind}.any]\ncount = {COUNT_A_DAY}' for kind in BY_RULE
        ]
    return "\n".join(lines) + "\n"


ROOT = Path(__file__).parents[1]
WORK_POOL = "recon"
UI_PORT = 4200
COMMAND_TIMEOUT_SECONDS = 300
PROCESSES = "processes.json"


def start(folder: Path, *, port: int) -> None:
    """Start all programs; ends those already started if one does not come up.

    Raises:
        ReconError: a program failed; the message names its log.
    """
    folder = folder.absolute()
    if _running(folder):
        msg = f"the programs of {folder} run already: `make stop` ends them"
        raise UsageError(msg)
    refuse_taken(port)
    make_folder(folder)
    try:
        _start_all(folder, port=port)
    except BaseException:
        stop(folder)
        raise


def refuse_taken(port: int) -> None:
    """Check that a port is free before anything is started.

    Raises:
        UsageError: another program listens there.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            msg = (
                f"port {port} is taken by another program ({error.strerror}); nothing was started: "
                f"end that one, or name another port (`make serve PORT={port + 1}`)"
            )
            raise UsageError(msg) from error


def stop(folder: Path) -> int:
    """End the programs that `start` recorded, newest first; return how many were still running."""
    running = _running(folder)
    for _, process in reversed(running):
        with suppress(psutil.NoSuchProcess):
            end_process(process)
    (folder / PROCESSES).unlink(missing_ok=True)
    return len(running)


def _start_all(folder: Path, *, port: int) -> None:
    home = folder / "prefect"
    _echo(f"starting Prefect's server on port {port} ...")
    server = start_server(home, port=port, with_ui=True)
    _write_down(folder, name="Prefect server", pid=server.process.pid)
    _echo("preparing the sample night ...")
    _run([*RECON, "demo", "--dir", str(folder / "demo"), "--prepare-only"], {}, folder)
    env = folder / "demo" / "env"
    recon = key_set_apart(folder / "signer", env=env, variables=read_env(env))
    # The gateway is not ours, and only the signer reads the sign key: none gets our variables.
    sandbox, demo = recon["RECON_GATEWAY_BASE_URL"], folder / "demo"
    state = ["--state", str(demo / "sandbox.sqlite"), "--port", str(urlsplit(sandbox).port)]
    is_up = partial(answers, f"{sandbox}/_sandbox/health")
    _start(folder, name="sandbox", command=[*RECON, "sandbox", *state], is_up=is_up)
    shop = [*RECON, "demo", "--dir", str(demo), "--deliver"]
    _start(folder, name="shop", command=shop)
    signer = [*RECON, "serve", "signer", "--rules", str(folder / "signer" / "signer.toml")]
    _start(folder, name="signer", command=signer, is_up=Path(recon[SIGNER_VARIABLE]).is_socket)
    of_prefect = prefect_variables(home, api_url=server.api_url)
    variables = {**recon, **of_prefect}
    _echo("waiting for Prefect's server, which takes its time the first time ...")
    server.wait()
    _echo("writing the pool, the forms and the schedules to it ...")
    _run([*FLOWS, "files", "--all", "--out", str(folder)], variables, folder)
    pool = ["work-pool", "create", WORK_POOL, "--type", "process", "--overwrite"]
    _run([*PREFECT, *pool, "--base-job-template", str(folder / "pool.json")], of_prefect, folder)
    deploy = ["--no-prompt", "deploy", "--all", "--prefect-file", str(folder / "prefect.yaml")]
    _run([*PREFECT, *deploy], of_prefect, folder)
    # Nobody has named a notification block yet; automations that need none are made at once.
    _run([*FLOWS, "apply"], variables, folder)
    worker = [*PREFECT, "worker", "start", "--pool", WORK_POOL, "--type", "process"]
    _start(folder, name="worker", command=worker, variables=variables)
    _echo(f"Prefect:  {server.url}  (asks for {server.auth})")
    _echo(f"sandbox:  {sandbox}/_sandbox/")
    _echo(f"reports:  {demo / 'reports'}")
    _echo("`make stop` ends them all; their logs are in " + str(folder))


def read_env(path: Path) -> dict[str, str]:
    """Return the variables of an `env` file: plain KEY=VALUE lines."""
    lines = (line.partition("=") for line in path.read_text("utf-8").splitlines() if "=" in line)
    return {name.strip(): text for name, _, text in lines if not name.startswith("#")}


def _start(
    folder: Path,
    *,
    name: str,
    command: Sequence[str],
    variables: Mapping[str, str] = MappingProxyType({}),
    is_up: Callable[[], bool] = lambda: True,
) -> None:
    """Start a program of ours in the background, record its process and wait until it is up."""
    log = folder / f"{name}.log"
    _echo(f"starting the {name} ...")
    process = _begin(command, variables=variables, log=log, folder=ROOT)
    _write_down(folder, name=name, pid=process.pid)
    wait_until_up(name, is_up, process=process, log=log)


def _run(command: Sequence[str], variables: Mapping[str, str], folder: Path) -> None:
    """Run a command of ours and wait for its end."""
    log = folder / "commands.log"
    process = _begin(command, variables=variables, log=log, folder=ROOT)
    try:
        code = process.wait(COMMAND_TIMEOUT_SECONDS)
    finally:
        process.kill()  # one that has ended stays as it is
    if code != 0:
        msg = f"`{' '.join(command)}` ended with code {code}; see {log}"
        raise ReconError(msg)


def _write_down(folder: Path, *, name: str, pid: int) -> None:
    entries = [*_written(folder), {"name": name, "process": identity_of(pid)}]
    replace_result(folder / PROCESSES, json.dumps(entries, indent=2))


def _written(folder: Path) -> list[dict[str, str]]:
    """Return the recorded programs; none if no readable record exists."""
    with suppress(FileNotFoundError, ValueError):
        return list(json.loads((folder / PROCESSES).read_text()))
    return []


def _running(folder: Path) -> list[tuple[str, psutil.Process]]:
    """Return the recorded programs that still run: same process id and same start time."""
    entries = [(entry.get("name", ""), entry.get("process", "")) for entry in _written(folder)]
    processes = [(name, process_of(identity)) for name, identity in entries]
    return [(name, process) for name, process in processes if process is not None]


def _echo(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `start` or `stop`; return the exit code, 0 on success."""
    parser = argparse.ArgumentParser(prog="python -m flows.serve", description=__doc__)
    parser.add_argument("what", choices=("start", "stop"))
    parser.add_argument("--dir", type=Path, default=Path("out/serve"))
    parser.add_argument("--port", type=int, default=UI_PORT, help="of the pages; 0: a free one")
    options = parser.parse_args(arguments)
    try:
        if options.what == "start":
            start(options.dir, port=options.port or free_port())
        else:
            _echo(f"{stop(options.dir)} programs ended")
    except ReconError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
