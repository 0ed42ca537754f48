"""Everything on one machine to try: sandbox gateway, signer, Prefect server, worker, schedules.

`python -m flows.serve start` prepares the demo's files, starts each program in the background and
prints where the pages are; `python -m flows.serve stop` ends exactly those programs. For a look and
for development; docs/OPERATIONS.md says how production differs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from flows.prefect_server import (
    STARTUP_TIMEOUT_SECONDS,
    answers,
    end_process,
    free_port,
    identity_of,
    prefect_variables,
    process_of,
    start_server,
)
from flows.signer_beside import key_set_apart
from recon.config.keys import SIGNER_VARIABLE
from recon.model.errors import ReconError, UsageError
from recon.privacy.own_files import STRANGERS, for_owner, make_folder, write_result
from recon.privacy.own_programs import program_variables

ROOT = Path(__file__).parents[1]
WORK_POOL = "recon"
UI_PORT = 4200
COMMAND_TIMEOUT_SECONDS = 300
PAUSE_SECONDS = 0.2
PROCESSES = "processes.json"

PREFECT, FLOWS = (sys.executable, "-m", "prefect"), (sys.executable, "-m", "flows")
RECON = (str(Path(sys.executable).with_name("recon")),)
"""The programs of this environment, whatever PATH says."""


def start(folder: Path, *, port: int) -> None:
    """Start all programs; ends those already started when one does not come up.

    Raises:
        ReconError: a program failed; the sentence names its log.
    """
    folder = folder.absolute()
    if _running(folder):
        msg = f"the programs of {folder} run already: `make stop` ends them"
        raise UsageError(msg)
    make_folder(folder)
    try:
        _start_all(folder, port=port)
    except BaseException:
        stop(folder)
        raise


def stop(folder: Path) -> int:
    """End the programs that `start` wrote down, newest first; how many still ran."""
    running = _running(folder)
    for _, process in reversed(running):
        with suppress(psutil.NoSuchProcess):
            end_process(process)
    (folder / PROCESSES).unlink(missing_ok=True)
    return len(running)


def _start_all(folder: Path, *, port: int) -> None:
    home = folder / "prefect"
    server = start_server(home, port=port, with_ui=True)
    _write_down(folder, name="Prefect server", pid=server.process.pid)
    _say("preparing the sample night ...")
    _run([*RECON, "demo", "--dir", str(folder / "demo"), "--prepare-only"], {}, folder)
    env = folder / "demo" / "env"
    recon = key_set_apart(folder / "signer", env=env, variables=read_env(env))
    _start_sandbox(folder, recon=recon)
    shop = [*RECON, "demo", "--dir", str(folder / "demo"), "--deliver"]
    _start(folder, name="shop", command=shop, variables={})
    _start_signer(folder, recon=recon)
    of_prefect = prefect_variables(home, api_url=server.api_url)
    variables = {**recon, **of_prefect}
    server.wait()
    _run([*FLOWS, "files", "--all", "--out", str(folder)], variables, folder)
    pool = ["work-pool", "create", WORK_POOL, "--type", "process", "--overwrite"]
    _run([*PREFECT, *pool, "--base-job-template", str(folder / "pool.json")], of_prefect, folder)
    deploy = ["--no-prompt", "deploy", "--all", "--prefect-file", str(folder / "prefect.yaml")]
    _run([*PREFECT, *deploy], of_prefect, folder)
    # Whom to ring for nobody has said yet; what needs no bell is there from the start.
    _run([*FLOWS, "apply"], variables, folder)
    worker = [*PREFECT, "worker", "start", "--pool", WORK_POOL, "--type", "process"]
    _start(folder, name="worker", command=worker, variables=variables)
    _say(f"Prefect:  {server.url}  (asks for {server.auth})")
    _say(f"sandbox:  {recon['RECON_GATEWAY_BASE_URL']}/_sandbox/")
    _say(f"reports:  {folder / 'demo' / 'reports'}")
    _say("`make stop` ends them all; their logs are in " + str(folder))


def _start_sandbox(folder: Path, *, recon: Mapping[str, str]) -> None:
    """The gateway, which is not ours: it gets none of our variables."""
    url = recon["RECON_GATEWAY_BASE_URL"]
    state = folder / "demo" / "sandbox.sqlite"
    command = [*RECON, "sandbox", "--state", str(state), "--port", str(urlsplit(url).port)]
    _start(folder, name="sandbox", command=command, variables={})
    _wait(folder, name="sandbox", until=lambda: answers(f"{url}/_sandbox/health"))


def _start_signer(folder: Path, *, recon: Mapping[str, str]) -> None:
    """The process that alone reads the sign key; it gets none of our variables."""
    rules = folder / "signer" / "signer.toml"
    _start(folder, name="signer", command=[*RECON, "signer", "--rules", str(rules)], variables={})
    _wait(folder, name="signer", until=Path(recon[SIGNER_VARIABLE]).is_socket)


def _wait(folder: Path, *, name: str, until: Callable[[], bool]) -> None:
    """Return when the program that was just started is up.

    Raises:
        ReconError: it ended, or did not come up in time.
    """
    give_up_at = time.monotonic() + STARTUP_TIMEOUT_SECONDS
    while not until():
        if time.monotonic() > give_up_at or len(_running(folder)) < len(_written(folder)):
            msg = f"{name} did not come up; its words are in {folder / f'{name}.log'}"
            raise ReconError(msg)
        time.sleep(PAUSE_SECONDS)


def read_env(path: Path) -> dict[str, str]:
    """The variables of an `env` file: plain KEY=VALUE lines."""
    lines = (line.partition("=") for line in path.read_text("utf-8").splitlines() if "=" in line)
    return {name.strip(): value for name, _, value in lines if not name.startswith("#")}


def _start(
    folder: Path, *, name: str, command: Sequence[str], variables: Mapping[str, str]
) -> None:
    """Start a program of ours in the background and write down which it is.

    Of the shell that says `make serve` it gets nothing that may be a secret of other work.
    """
    with open(folder / f"{name}.log", "wb", opener=for_owner) as log:
        process = subprocess.Popen(  # noqa: S603 - programs of this environment
            command,
            cwd=ROOT,
            env={**program_variables(os.environ), **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            umask=STRANGERS,
        )
    _write_down(folder, name=name, pid=process.pid)


def _run(command: Sequence[str], variables: Mapping[str, str], folder: Path) -> None:
    """Run a command of ours to its end."""
    log = folder / "commands.log"
    with open(log, "ab", opener=for_owner) as output:
        ended = subprocess.run(  # noqa: S603 - programs of this environment
            command,
            cwd=ROOT,
            env={**program_variables(os.environ), **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=COMMAND_TIMEOUT_SECONDS,
            umask=STRANGERS,
            check=False,
        )
    if ended.returncode != 0:
        msg = f"`{' '.join(command)}` ended with code {ended.returncode}; see {log}"
        raise ReconError(msg)


def _write_down(folder: Path, *, name: str, pid: int) -> None:
    entries = [*_written(folder), {"name": name, "process": identity_of(pid)}]
    write_result(folder / PROCESSES, json.dumps(entries, indent=2))


def _written(folder: Path) -> list[dict[str, str]]:
    """The programs that were written down; none where nothing readable was."""
    with suppress(FileNotFoundError, ValueError):
        return list(json.loads((folder / PROCESSES).read_text()))
    return []


def _running(folder: Path) -> list[tuple[str, psutil.Process]]:
    """Those written down that still run: same process id and same start time."""
    entries = [(entry.get("name", ""), entry.get("process", "")) for entry in _written(folder)]
    processes = [(name, process_of(identity)) for name, identity in entries]
    return [(name, process) for name, process in processes if process is not None]


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """`start` or `stop`; 0 when it went well."""
    parser = argparse.ArgumentParser(prog="python -m flows.serve", description=__doc__)
    parser.add_argument("what", choices=("start", "stop"))
    parser.add_argument("--dir", type=Path, default=Path("out/serve"))
    parser.add_argument("--port", type=int, default=UI_PORT, help="of the pages; 0: a free one")
    options = parser.parse_args(arguments)
    try:
        if options.what == "start":
            start(options.dir, port=options.port or free_port())
        else:
            _say(f"{stop(options.dir)} programs ended")
    except ReconError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
