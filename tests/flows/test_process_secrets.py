"""Who holds which secret while everything runs: campaign `process-walk`.

All programs of one machine are started with a secret of its own for every purpose, also in the
shell that starts them. While a night runs, the variables and the command line of every process of
the machine are read, afterwards every file that Prefect keeps or shows. Each secret is where it
must be and nowhere else.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg
import pyotp
import pytest
from cryptography.fernet import Fernet
from psycopg import sql
from sqlalchemy import make_url

from flows import serve
from flows.serve import auth_of, end_process
from recon.desk.server import ask_desk
from recon.model.errors import UsageError
from recon.privacy.own_files import program_variables
from recon.sandbox import SandboxOptions, serving
from recon.store.database.roles import Roles, statements
from tests.flows.prefect_api import prefect_api
from tests.recon.conftest import (  # noqa: F401 - fixtures
    migrated_postgresql_url,
    postgresql_template,
    postgresql_url,
)

pytestmark = [
    pytest.mark.flow,
    pytest.mark.timeout(1_200),
    # The programs are meant to outlive their handles: ending goes by what was written down.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

NIGHT = "100042-100042001"
RUN_SECONDS_MAX = 400
LOOK_SECONDS = 0.05
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}
CODES = pyotp.random_base32()
DESK_KEY = "desk key"
SECRETS = {
    "sign key": "canary-sign-key-9b1f",
    "seal key": Fernet.generate_key().decode(),
    "night's database": "canary-night-password-44ce",
    "desk's database": "canary-desk-password-71d0",
    "codes": CODES,
}
SHELL = {
    "RECON_SIGN_KEY": "canary-shell-sign-key-0d2a",
    "RECON_DATABASE_URL": "postgresql://owner:canary-shell-password-5c3e@db/recon",
    "RECON_SEAL_KEY": "canary-shell-seal-key-8e1b",
    "KEY_OF_THE_SHOP": "canary-shell-own-key-2f7a",
    "CODE_OF_ANN": "canary-shell-code-secret-6a9d",
    "AWS_SECRET_ACCESS_KEY": "canary-shell-s3-key-3b8c",
}
"""What the shell of whoever says `make serve` may hold from other work."""
PROGRAMS = {
    "desk": "recon serve desk",
    "signer": "recon serve signer",
    "sandbox": "recon sandbox",
    "shop": "--deliver",
    "worker": "worker start",
    "starter": "_workspace_supervisor",
    "night": "prefect.engine",
    "server": "server start",
    "reader": "recon.files.reader",
}
"""Program -> what its command line says; the worker starts a starter, and that the night."""
PASSWORD_HOLDERS = ("server", "worker", "starter", "night")
EXPECTED = {
    *((name, "night's database") for name in ("worker", "starter", "night")),
    *((name, "seal key") for name in ("worker", "starter", "night")),
    ("desk", "desk's database"),
    *((name, "Prefect's password") for name in PASSWORD_HOLDERS),
}
"""Which secret stands in the variables of which program."""
AT_REST = {
    ("signer/key", "sign key"),
    ("prefect/password", "Prefect's password"),
    *(("demo/env", what) for what in ("night's database", "seal key")),
}
"""Which secret lies in which file of the folder, each for its owner alone; links are no files."""


@dataclass
class Walk:
    """What was seen of the processes of the machine."""

    secrets: Mapping[str, str]
    before: frozenset[int] = field(default_factory=lambda: frozenset(psutil.pids()))
    programs: set[str] = field(default_factory=set)
    held: set[tuple[str, str]] = field(default_factory=set)
    spoken: set[tuple[str, str]] = field(default_factory=set)

    def look(self):
        """Read variables and command line of every process that has begun since."""
        for process in Path("/proc").glob("[0-9]*"):
            if int(process.name) in self.before:
                continue
            with suppress(OSError):
                line = (process / "cmdline").read_bytes()
                if not line:  # it is being started, or has ended
                    continue
                name = program_of(line)
                self.programs.add(name)
                self.spoken |= {(name, what) for what in self._found(line)}
                self.held |= {
                    (name, what) for what in self._found((process / "environ").read_bytes())
                }

    def _found(self, content):
        return (what for what, secret in self.secrets.items() if secret.encode() in content)


def program_of(line):
    """What a process is, by its command line."""
    words = line.replace(b"\0", b" ").decode(errors="replace")
    return next((name for name, label_of in PROGRAMS.items() if label_of in words), words[:80])


@dataclass
class Machine:
    """All programs of one machine, and what they were given."""

    folder: Path
    desk: Path
    socket: Path
    secrets: Mapping[str, str]
    walk: Walk

    def night(self):
        """Have the worker play a night, looking at every process meanwhile; how it ended."""
        (server,) = self.folder.glob("prefect")
        url = self.variables["PREFECT_API_URL"]
        with prefect_api(url, auth=auth_of(server)) as api:
            found = api.post("/deployments/filter", json={}).raise_for_status().json()
            (wanted,) = (one["id"] for one in found if one["name"] == NIGHT)
            given = {"merchant_id": "100042", "account_id": "100042001", "mode": "live"}
            given |= {"business_date": "2026-11-20"}
            started = api.post(
                f"/deployments/{wanted}/create_flow_run", json={"parameters": given}
            ).raise_for_status()
            give_up_at = time.monotonic() + RUN_SECONDS_MAX
            while time.monotonic() < give_up_at:
                self.walk.look()
                state = api.get(f"/flow_runs/{started.json()['id']}").json()["state"]
                if state["type"] in ENDED:
                    return f"{state['type']} {state['name']}: {state['message']}"
                time.sleep(LOOK_SECONDS)
        pytest.fail(f"the night did not end in {RUN_SECONDS_MAX} s")

    @property
    def variables(self):
        """Of the worker, as the system shows them."""
        (worker,) = (pid for name, pid in serve._running(self.folder) if name == "worker")
        return psutil.Process(worker.pid).environ()

    def said(self):
        """What the desk replies to a word under a right code about a list that nobody has."""
        body = {"person": "ann", "code": pyotp.TOTP(CODES).now(), "list_digest": "0" * 64}
        with pytest.raises(UsageError) as refused:
            ask_desk(self.socket, "approve", body=body)
        return str(refused.value)


def given_to_nights(folder, *, url, real):
    """What `make serve` reads of the demo, with secrets of our own instead of the sandbox's."""

    def read(path):
        return real(path) | {
            "RECON_SIGN_KEY": SECRETS["sign key"],
            "RECON_SEAL_KEY": SECRETS["seal key"],
            "RECON_DATABASE_URL": url,
            "RECON_DESK_PUBLIC_KEY_FILE": str(folder / "desk.pub"),
            "RECON_DESK_SOCKET": str(folder / "s"),
        }

    return read


def logins(url):
    """Addresses of the database for the night and for the desk, each with its own password."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements(Roles()):
            connection.execute(statement.encode())
        for login, role in (("walk_night", "recon_app"), ("walk_desk", "recon_people")):
            text = "DO $$ BEGIN CREATE ROLE {} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"
            connection.execute(sql.SQL(text).format(sql.Identifier(login)))
            grant = sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(login))
            connection.execute(grant)
    return {
        whose: make_url(url)
        .set(username=login, password=SECRETS[f"{whose}'s database"])
        .render_as_string(hide_password=False)
        for whose, login in (("night", "walk_night"), ("desk", "walk_desk"))
    }


@pytest.fixture
def machine(migrated_postgresql_url, monkeypatch):  # noqa: F811 - the fixture
    """As `make serve` starts it, with a database of logins, and a desk beside."""
    urls = logins(migrated_postgresql_url)
    walk = Walk({**SECRETS, **{f"{name} of the shell": value for name, value in SHELL.items()}})
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="walk-")))
        desk = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="desk-")))
        for name, value in SHELL.items():
            monkeypatch.setenv(name, value)
        real = given_to_nights(desk, url=urls["night"], real=serve.read_env)
        monkeypatch.setattr(serve, "read_env", real)
        run = [*serve.RECON, "enrol", "--desk", str(desk)]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
        opened.callback(serve.stop, folder)
        serve.start(folder, port=0)
        walk.secrets = {
            **walk.secrets,
            DESK_KEY: (desk / "desk.key").read_text().splitlines()[1],
            "Prefect's password": auth_of(folder / "prefect").partition(":")[2],
        }
        walk.look()
        opened.enter_context(served_with_the_key(folder))
        opened.callback(end_process, desk_started(folder, desk=desk, url=urls["desk"]))
        yield Machine(folder, desk, desk / "s", walk.secrets, walk)


def served_with_the_key(folder):
    """The gateway again where it was, now with the key that the signer holds."""
    (sandbox,) = (process for name, process in serve._running(folder) if name == "sandbox")
    end_process(sandbox)
    state = folder / "demo" / "sandbox.sqlite"
    address = make_url(serve.read_env(folder / "demo" / ".env")["RECON_GATEWAY_BASE_URL"])
    options = SandboxOptions(port=address.port or 0, state=state, sign_key=SECRETS["sign key"])
    return serving(options)


def desk_started(folder, *, desk, url):
    """A desk of its own beside the programs, its people declared with a file for their codes."""
    config = folder / "demo" / "config"
    (desk / "ann").touch(mode=0o600)
    (desk / "ann").write_text(CODES)
    declared = f'[approvers.ann]\nname = "Ann Berg"\ncode_secret_file = "{desk / "ann"}"\n'
    (config / "approvers.toml").write_text(declared)
    variables = {
        **program_variables(os.environ),
        "RECON_DATABASE_URL": url,
        "RECON_CONFIG_DIR": str(config),
        "RECON_GATEWAY_BASE_URL": serve.read_env(folder / "demo" / ".env")[
            "RECON_GATEWAY_BASE_URL"
        ],
        "RECON_DESK_KEY_FILE": str(desk / "desk.key"),
    }
    command = [*serve.RECON, "serve", "desk", "--socket", str(desk / "s")]
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
    said = iter(process.stdout.readline, "")
    assert any("takes decisions at" in line for line in said)
    return psutil.Process(process.pid)


def files_with(folder, *, secrets):
    """Each secret in each file below a folder."""
    found = set()
    for path in folder.rglob("*"):
        if not path.is_file() or path.is_symlink():
            continue
        content = path.read_bytes()
        place = str(path.relative_to(folder))
        found |= {(place, what) for what, secret in secrets.items() if secret.encode() in content}
    return found


def test_each_secret_is_where_it_must_be_and_nowhere_else(machine):
    ended = machine.night()
    assert "look again with `recon approve`" in machine.said()
    machine.walk.look()
    seen = (machine.walk.spoken, machine.walk.held)
    at_rest = files_with(machine.folder, secrets=machine.secrets)
    assert (*seen, at_rest, ended.partition(" ")[0]) == (set(), EXPECTED, AT_REST, "COMPLETED")
    assert set(PROGRAMS) <= machine.walk.programs, machine.walk.programs
    for place, _ in AT_REST:
        assert (machine.folder / place).stat().st_mode & 0o777 == 0o600
