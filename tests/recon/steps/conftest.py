"""A whole merchant on loopback: sandbox gateway over real HTTP, inbox, ledger file, database."""

import csv
import json
import os
import random
import shutil
import sqlite3
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyotp
import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Executable, create_engine, make_url, text

from recon.archive.storage import LocalStorage
from recon.config.settings import load_tables
from recon.matching.breaks.result import Reconciliation
from recon.model.figures import NightFigures
from recon.model.nights import STEPS, Mode, NightRequest, StepSummary
from recon.model.terms import Verdict
from recon.model.uptime import Uptime
from recon.sandbox import RunningSandbox, SandboxOptions, serving
from recon.sandbox.options import Profile
from recon.steps.admin.verify import Reading, Verification, verify, verify_night
from recon.steps.night import whole_night as night
from recon.steps.night.report import SheetTotals, Workbooks
from recon.steps.runtime.environment import Environment, environment_of
from recon.steps.runtime.night_folder import StoredResult
from recon.store.database.roles import Roles, statements
from recon.store.nights import runs
from recon.store.nights.runs import Run
from tests.chaos.plain_sheets import SECTIONS, listed
from tests.recon.proof.killed_sql import killed_at
from tests.recon.steps.in_parts import compared_twice

__all__ = ["killed_at"]

ON_POSTGRESQL = bool(os.environ.get("STEPS_ON_POSTGRESQL"))
"""Set: the same tests run on a PostgreSQL server, as a login that may only what a night needs."""

MERCHANT = "100042"
ACCOUNT = "100042001"
BUSINESS_DATE = "2026-11-20"
ORDER_HEADER = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("refund_amount", "action", "action_amount", "action_reason", "request_id", "updated_at"),
)
SECRETS = {name: pyotp.random_base32() for name in ("anna", "ben")}
"""Of the one-time codes of two approvers."""
UP_TO_COMPARE = STEPS[: STEPS.index("reconcile")]


IN_PARTS = bool(os.environ.get("NIGHTS_IN_PARTS"))
"""Set by campaign `nights-in-parts`: every night of any test is compared in parts, too."""


PLAYED_ONCE = frozenset({"test_in_parts", "test_more_totals"})
"""Modules whose tests bend one of the two comparisons, or look at how parts are made."""


@pytest.fixture(autouse=True)
def nights_in_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold each comparison against one in parts, where that is asked for."""
    if IN_PARTS and request.path.stem not in PLAYED_ONCE:
        compared_twice(monkeypatch)


@dataclass(frozen=True)
class Payment:
    """One payment of the sandbox's population, from its own ledger of truth."""

    order_no: str
    transaction_id: str
    currency: str
    amount: str
    ordered_at: str
    state: str


@dataclass
class Merchant:
    """What a test needs to run nights of one account."""

    folder: Path
    sandbox: RunningSandbox
    variables: dict[str, str]
    now: datetime = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
    """The true time."""
    wall_error: timedelta = timedelta()
    """How far the clock on the wall stands from it."""
    boot_id: str = "first boot"
    told: list[StepSummary] = field(default_factory=list)
    chance: str = ""
    """Seeds the ids beside the clock: two copies at one moment draw different ones."""

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox"

    @property
    def sqlite_path(self) -> Path:
        """The database's file; a test that opens or changes it past us is one of SQLite."""
        if not (url := self.variables["RECON_DATABASE_URL"]).startswith("sqlite:"):
            pytest.skip("looks into the file of a SQLite database")
        return Path(url.removeprefix("sqlite:///"))

    @property
    def request(self) -> NightRequest:
        return NightRequest(MERCHANT, ACCOUNT, date.fromisoformat(BUSINESS_DATE), Mode.LIVE)

    def clock(self) -> datetime:
        """Each look at the clock is a second later, so that events have an order."""
        self.now += timedelta(seconds=1)
        return self.now + self.wall_error

    def uptime(self) -> Uptime:
        """The clock that nobody can set."""
        return Uptime(self.boot_id, int(self.now.timestamp() * 1000))

    @contextmanager
    def environment(self, *, seed: int = 1, **variables: str) -> Iterator[Environment]:
        with environment_of(
            self.variables | variables,
            clock=self.clock,
            randomness=random.Random(f"{seed}{self.now}{self.chance}"),
        ) as opened:
            yield replace(opened, uptime=self.uptime)

    def result(self, run_id: str = "") -> Reconciliation:
        """The result of a run; without its name of the one that finished last."""
        with self.environment() as environment, environment.store.reading() as connection:
            name = run_id or runs.finished(connection)[-1].run_id
            kept = StoredResult(connection, name, environment).whole()
        assert kept is not None
        return kept

    def newest(self) -> Run:
        """The run that finished last."""
        with self.environment() as environment, environment.store.reading() as connection:
            return runs.finished(connection)[-1]

    @contextmanager
    def begun(self, run_id: str = "run-1", **variables: str) -> Iterator[tuple[Run, Environment]]:
        """A run of the business date that has only begun, and its open environment."""
        with self.environment(**variables) as environment:
            now = self.clock()
            with environment.store.writing() as connection:
                runs.start(connection, self.request, run_id=run_id, as_of=now, now=now)
                run = runs.get(connection, run_id)
            yield run, environment

    def said(self, step: str) -> str:
        """What a step of the last night said."""
        return next(told.sentence for told in self.told if told.step == step)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the database says."""
        with self.environment() as environment, environment.store.reading() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def as_owner(self, *statements: str | Executable) -> None:
        """Change the database as whoever owns it could: a night's own login may not."""
        url = make_url(self.variables["RECON_DATABASE_URL"])
        owner = url.set(drivername="postgresql+psycopg", username="postgres")
        engine = create_engine(owner if ON_POSTGRESQL else url)
        with engine.begin() as connection:
            for one in statements:
                connection.execute(text(one) if isinstance(one, str) else one)
        engine.dispose()

    def night(
        self,
        *,
        date: str = BUSINESS_DATE,
        mode: Mode = Mode.LIVE,
        skip: str = "",
        workbooks: Workbooks | None = None,
    ) -> Verdict:
        request = NightRequest(
            MERCHANT, ACCOUNT, datetime.fromisoformat(date).date(), mode, skip=skip
        )
        self.told = []
        with self.environment() as environment:
            ended = self.run(environment, request=request, workbooks=workbooks or plain_workbooks())
        assert_adds_up(self.told)
        return Verdict(ended.verdict)

    def run(self, environment: Environment, **how: Any) -> Run:
        """A night of an open environment, and with `progress`, `plan` or `workbooks` of its own."""
        own = {"workbooks": plain_workbooks(), "progress": self.told.append, **how}
        return night.run(own.pop("request", self.request), environment=environment, **own)

    def move_money(self, *, date: str = BUSINESS_DATE, mode: Mode = Mode.LIVE) -> None:
        """A night that ends before it compares, for tests that look at nothing which comes after.

        To compare and report is two thirds of a small night.
        """
        request = NightRequest(MERCHANT, ACCOUNT, datetime.fromisoformat(date).date(), mode)
        self.told = []
        with (
            self.environment() as environment,
            night.hold(request, environment=environment) as run_id,
        ):
            night.walk(
                UP_TO_COMPARE,
                run_id,
                environment=environment,
                workbooks=plain_workbooks(),
                progress=self.told.append,
            )
        assert_adds_up(self.told)

    def drop(self, name: str, *rows: Mapping[str, str]) -> Path:
        """Put an order file into the inbox."""
        path = self.inbox / name
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=ORDER_HEADER, restval="")
            writer.writeheader()
            writer.writerows(rows)
        return path

    def configure(self, file: str, text: str, *, instead_of: str = "") -> None:
        """Lines more in a file of the configuration, or in place of what stands there."""
        path = self.folder / "config" / file
        known = path.read_text() if path.exists() else ""
        path.write_text(known.replace(instead_of, text, 1) if instead_of else known + text)

    @staticmethod
    def order(payment: Payment, **changed: str) -> dict[str, str]:
        """The order of a payment as the merchant's file would have it."""
        return {
            "merchant_id": MERCHANT,
            "account_id": ACCOUNT,
            "order_no": payment.order_no,
            "currency": payment.currency,
            "amount": payment.amount,
            "status": "paid" if payment.state == "captured" else "authorised",
            "ordered_at": payment.ordered_at,
        } | changed

    def wait(self, *, hours: int = 0, minutes: int = 0) -> None:
        """Let time pass, ours and the gateway's."""
        much = timedelta(hours=hours, minutes=minutes)
        self.now += much
        self.post("/_sandbox/clock", {"seconds": much // timedelta(seconds=1)})

    def workbooks(self) -> Workbooks:
        return plain_workbooks()

    def instruction_states(self) -> dict[str, int]:
        """How many instructions are in which state."""
        return dict(self.rows("SELECT state, count(*) FROM instruction GROUP BY state"))

    @contextmanager
    def unregistered(self) -> Iterator[None]:
        """A gateway that does not know the address we call from."""
        options = SandboxOptions(orders=300, registered_ip="10.1.2.3")
        with serving(options) as other:
            ours = self.variables["RECON_GATEWAY_BASE_URL"]
            self.variables["RECON_GATEWAY_BASE_URL"] = other.base_url
            yield
            self.variables["RECON_GATEWAY_BASE_URL"] = ours

    def fault(self, *rules: Mapping[str, Any]) -> None:
        """Replace the sandbox's fault plan."""
        self.post("/_sandbox/faults", {"rules": list(rules)})

    def post(self, path: str, document: Mapping[str, Any]) -> None:
        request = urllib.request.Request(  # noqa: S310 - loopback
            self.sandbox.base_url + path, json.dumps(document).encode(), method="POST"
        )
        urllib.request.urlopen(request).close()  # noqa: S310 - loopback

    def effects(self, *, origin: str = "api") -> list[dict[str, str]]:
        """The sandbox's truth."""
        lines = self._get("/_sandbox/effects").splitlines()
        return [row for row in map(json.loads, lines) if row["origin"] == origin]

    def invariants(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self._get("/_sandbox/invariants"))
        return found

    def payments(self, state: str) -> list[Payment]:
        """Seeded card payments of the account that are `authorised` or plainly `captured`."""
        kinds: dict[str, set[str]] = {}
        rows = [r for r in self.effects(origin="seed") if r["account_id"] == ACCOUNT]
        for row in rows:
            kinds.setdefault(row["transaction_id"], set()).add(row["operation"])
        wanted = {"authorised": {"authorise"}, "captured": {"authorise", "capture"}}[state]
        recent = (datetime(2026, 11, 20, 22, tzinfo=UTC) - timedelta(days=6)).isoformat()
        return [
            Payment(
                row["order_no"],
                row["transaction_id"],
                row["currency"],
                _file_amount(row["amount"], row["currency"]),
                row["committed_at"],
                state,
            )
            for row in rows
            if row["operation"] == "authorise"
            and kinds[row["transaction_id"]] == wanted
            and row["committed_at"] >= recent
        ]

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.sandbox.base_url + path) as reply:  # noqa: S310 - loopback
            return str(reply.read().decode())

    def refund_for_two(self, people: str) -> None:
        """A night whose refund of 1.00 none of these people (approvers.toml) has approved."""
        (self.folder / "config" / "approvers.toml").write_text(people)
        path = self.folder / "config" / "merchants.toml"
        path.write_text(path.read_text() + "auto_approve = false\n")
        one = next(p for p in self.payments("captured") if p.currency == "EUR")
        asked = {"status": "partially_refunded", "refund_amount": "1.00", "action_amount": "1.00"}
        self.drop("orders.csv", self.order(one, action="refund", **asked))
        self.night()


def assert_adds_up(told: Sequence[StepSummary]) -> None:
    """What was to be sent was sent or waits; nobody takes anything back while a test's night runs.

    Counted on its two sides apart: by the journal before and after, and by the sender.
    """
    for figures in (summary.figures for summary in told if summary.step == "settle"):
        names = ("planned", "earlier", "sent", "unapproved", "waiting")
        new, earlier, sent, unapproved, waiting = (int(figures[name]) for name in names)
        assert new + earlier == sent + unapproved + waiting, figures


def plain_workbooks() -> Workbooks:
    """Writes what a workbook would show as JSON, and reads it back."""
    return Workbooks(write=_write_plain, totals=read_plain)


def _write_plain(figures: NightFigures, path: Path) -> Path:
    document: dict[str, Any] = {
        section: {"rows": rows, "sums": sums} for section, (rows, sums) in listed(figures).items()
    }
    document["attention"] = [item.what for item in figures.attention]
    document["verdict"] = figures.verdict.value
    path.write_text(json.dumps(document))
    return path


def read_plain(path: Path) -> SheetTotals:
    """The totals of what `plain_workbooks` wrote."""
    document = json.loads(path.read_text())
    sections = (name for name in document if name.startswith(tuple(SECTIONS)))
    return {name: (document[name]["rows"], document[name]["sums"]) for name in sections}


def _file_amount(text: str, currency: str) -> str:
    return text.removesuffix(".00") if currency == "JPY" else text


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database: SQLite, or PostgreSQL with no more rights than a night needs."""
    if not ON_POSTGRESQL:
        return str(request.getfixturevalue("sqlite_url"))
    url = str(request.getfixturevalue("migrated_postgresql_url"))
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements(Roles()):
            connection.execute(statement)
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'night'").fetchone():
            # These tests play the people, too: one login is a member of both.
            connection.execute("CREATE ROLE night LOGIN IN ROLE recon_app, recon_people")
    return make_url(url).set(username="night").render_as_string(hide_password=False)


@pytest.fixture
def profile() -> Profile:
    """Of the gateway's interface, ours and the sandbox's."""
    return "base"


@pytest.fixture
def merchant(tmp_path: Path, database_url: str, profile: Profile) -> Iterator[Merchant]:
    """A merchant with an empty inbox, an empty ledger and a sandbox gateway of 300 orders."""
    options = SandboxOptions(orders=300, profile=profile)
    with opened(tmp_path, options=options, database_url=database_url) as found:
        yield found


@contextmanager
def opened(folder: Path, *, options: SandboxOptions, database_url: str) -> Iterator[Merchant]:
    """Such a merchant in an empty folder."""
    for name in ("config", "inbox", "reports"):
        (folder / name).mkdir()
    ledger = folder / "ledger.csv"
    ledger.write_text(
        "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at\n"
    )
    write_config(folder, ledger=ledger)
    with (folder / "config" / "gateway.toml").open("a") as gateway:
        gateway.write(f'profile = "{options.profile}"\n')
    with serving(options) as sandbox:
        variables = {
            "RECON_GATEWAY_BASE_URL": sandbox.base_url,
            "RECON_SIGN_KEY": "sandbox",
            "RECON_DATABASE_URL": database_url,
            "RECON_CONFIG_DIR": str(folder / "config"),
        }
        yield Merchant(folder, sandbox, variables)


@dataclass(frozen=True)
class Begun:
    """A merchant after what several tests begin with, and all that it takes to be there again."""

    merchant: Merchant
    state: Path
    """The open database of its sandbox."""
    kept: Path
    """Copies of the folder and of that database."""

    @classmethod
    def of(cls, merchant: Merchant, *, state: Path, kept: Path) -> "Begun":
        """As it stands now."""
        shutil.copytree(merchant.folder, kept / "folder")
        _copy_database(state, kept / "sandbox.sqlite")
        return cls(replace(merchant, variables={**merchant.variables}), state, kept)

    def again(self) -> Merchant:
        """Folder, database, gateway and clocks as they stood."""
        one = replace(self.merchant, variables={**self.merchant.variables}, told=[])
        shutil.rmtree(one.folder)
        shutil.copytree(self.kept / "folder", one.folder)
        one.post("/_sandbox/reset", {})  # its clock, too
        _copy_database(self.kept / "sandbox.sqlite", self.state)
        return one


def _copy_database(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


Play = Callable[[Merchant], None]
"""What a merchant does before a test begins; it lets no time pass at the gateway."""


@pytest.fixture(scope="session")
def begun_once(
    tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> Iterator[Callable[[Play], Merchant]]:
    """Plays what several tests begin with once, and gives each of them what it came to."""
    known: dict[Play, Begun] = {}
    with ExitStack() as stack:

        def begin(play: Play) -> Merchant:
            if play not in known:
                place = tmp_path_factory.mktemp("begun")
                folder, state, kept = (place / name for name in ("own", "gateway.sqlite", "kept"))
                folder.mkdir()
                url = f"sqlite:///{shutil.copy(migrated, folder / 'recon.sqlite')}"
                options = SandboxOptions(orders=300, state=state)
                merchant = stack.enter_context(opened(folder, options=options, database_url=url))
                play(merchant)
                known[play] = Begun.of(merchant, state=state, kept=kept)
            return known[play].again()

        yield begin


@pytest.fixture
def begun(request: pytest.FixtureRequest) -> Callable[[Play], Merchant]:
    """A merchant after a play; on PostgreSQL each test plays for itself."""
    if not ON_POSTGRESQL:
        once: Callable[[Play], Merchant] = request.getfixturevalue("begun_once")
        return once
    merchant: Merchant = request.getfixturevalue("merchant")

    def begin(play: Play) -> Merchant:
        play(merchant)
        return merchant

    return begin


def write_config(folder: Path, *, ledger: Path) -> None:
    """Rules that read the sandbox, a quick pace, one account."""
    played = load_tables("sandbox", config_dir=None)
    tables = {name: played[name] for name in ("payment_status", "query_result")}
    rules = ["[window]", "opening_date = 2026-01-01", "[gateway]", 'amount_means = "authorised"']
    for name, codes in tables.items():
        rules += [f"[{name}]", *(f'{code} = "{word}"' for code, word in codes.items())]
    config = folder / "config"
    (config / "rules.toml").write_text("\n".join(rules))
    (config / "gateway.toml").write_text(
        "calls_per_second = 1000\ndeadline_seconds = 2\nconnect_timeout_seconds = 1\n"
        "read_retry_seconds = 0.4\n"
    )
    (config / "merchants.toml").write_text(
        f'[accounts."{MERCHANT}/{ACCOUNT}"]\nname = "Northwind"\n'
        f'inbox = "{folder / "inbox"}"\nreports = "{folder / "reports"}"\nsettle_seconds = 0\n'
        f'ledger = {{ path = "{ledger}" }}\n'
    )


@pytest.fixture
def sealing_merchant(merchant: Any) -> Iterator[Any]:
    """A merchant with a key for payees' details."""
    merchant.variables["RECON_SEAL_KEY"] = Fernet.generate_key().decode()
    return merchant


@pytest.fixture
def paying_merchant(sealing_merchant: Any) -> Any:
    """A merchant with two approvers who have codes."""
    people = "".join(
        f'[approvers.{name}]\nname = "{name}"\nlimit = {{ EUR = 1000 }}\n'
        f'code_secret_env = "CODE_{name}"\n'
        for name in SECRETS
    )
    (sealing_merchant.folder / "config" / "approvers.toml").write_text(people)
    sealing_merchant.variables |= {f"CODE_{name}": secret for name, secret in SECRETS.items()}
    return sealing_merchant


def archive_of(merchant: Merchant) -> LocalStorage:
    """The archive of a merchant's nights."""
    beside = Path(merchant.variables["RECON_DATABASE_URL"].removeprefix("sqlite:///")).parent
    is_file = merchant.variables["RECON_DATABASE_URL"].startswith("sqlite:")
    return LocalStorage((beside if is_file else merchant.folder / "reports") / "archive")


def capture(merchant: Merchant) -> None:
    """One order that asks for its capture."""
    payment = merchant.payments("authorised")[0]
    asked = {"action": "capture", "action_amount": payment.amount, "request_id": "R1"}
    merchant.drop("orders.csv", merchant.order(payment, **asked))


def checked(
    merchant: Merchant,
    name: str = "",
    *,
    workbook: Path | None = None,
    reading: Reading | None = None,
) -> Verification:
    """`recon verify`, of all, of one night, or of one workbook."""
    with merchant.environment() as environment:
        if name:
            return verify_night(environment, name=name)
        return verify(environment, reading=reading or UNREAD, workbook=workbook)


UNREAD = Reading(lambda _: (), lambda _: "", lambda *_: ())
"""The workbooks of these nights are no workbooks."""


def run_folder(merchant: Merchant) -> Path:
    """Of the newest run."""
    root = Path(archive_of(merchant).shown)
    return max(root.glob("nights/*/*/*/*"), key=lambda path: path.stat().st_mtime_ns)
