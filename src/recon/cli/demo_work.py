"""What the demo does: its folder, prepared date by date, and its nights in this process.

`--fresh` takes away only what the demo made: whatever else lies in the folder stays.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NoReturn

import httpx

from recon.cli.night_commands import played
from recon.cli.output import Echo
from recon.config.settings import load_tables
from recon.model.business_date import BusinessCalendar
from recon.model.errors import ConfigurationError, OutputError, UsageError
from recon.model.nights import Mode, NightRequest
from recon.model.terms import Clock
from recon.privacy.own_files import GROUP, OWNER, make_folder, replace_result
from recon.sandbox import DEMO_BUSINESS_DATE
from recon.sandbox.world.cash import (
    BANKS,
    DATED_RATES,
    FEE_BASIS_POINTS,
    FEE_FIXED_MINOR_UNITS,
    PAYER,
)
from recon.sandbox.world.night import (
    LEDGER_QUERY,
    ROUNDING_CURRENCY,
    Account,
    add_to_ledger_table,
)
from recon.steps.runtime.environment import CLOCK_VARIABLE, system_clock

ORDERS_DEFAULT = 2_000
SEED_DEFAULT = 42
UNSAFE_CHARACTERS = " \t\n\"'`$\\?#%&;|<>*(){}[]~!"
"""A path with one of these would mean something else in a shell, a URL or TOML."""

_DATABASE_NEIGHBOURS = ("", "-wal", "-shm", "-journal", ".lock")
_MADE_PATTERNS = (
    "env",
    ".env",
    "answer-key.json",
    "ledger.csv",
    "config/approvers.toml",
    "config/gateway.toml",
    "config/merchants.toml",
    "config/retention.toml",
    "config/rules.toml",
    "inbox/orders-????-??-??-*.csv",
    "settlement/settlement-*????-??-??.csv",
    "bank/*/statements-*-????-??-??.*",
    "reports/reconciliation-*",
    "reports/nights-*.xlsx",
    "reports/answers-*.xlsx",
    "reports/import-*.xlsx",
    "reports/close-*.xlsx",
    "reports/close-*/*",
    # Of a database that is gone, they would read as one restored from a backup: no money moves.
    "reports/history-head.jsonl",
    "reports/history-verified.json",
    "reports/metrics/*.json",
    "reports/spill/*",
    "archive/nights/*/*/*/*/*/*",
    "archive/periods/*/*/*/*/*",
    "recon.sqlite*.lock",
    *(
        f"{name}.sqlite{end}"
        for name in ("recon", "sandbox", "ledger")
        for end in _DATABASE_NEIGHBOURS
    ),
    "demo.json",  # last: as long as it is there, --fresh can be repeated
)


class DemoFolder:
    """Paths under the demo's folder, all absolute."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = root / "env"
        """Plain KEY=VALUE lines."""
        self.dotenv = root / ".env"
        """The same file, under the name by which every command below the folder finds it."""
        self.config = root / "config"
        """RECON_CONFIG_DIR."""
        self.inbox = root / "inbox"
        self.settlement = root / "settlement"
        """Where the order files and the gateway's settlement files arrive."""
        self.reports = root / "reports"
        self.sandbox_state = root / "sandbox.sqlite"
        """Population, clock and effects of the sandbox gateway."""
        self.database = root / "recon.sqlite"
        self.database_url = f"sqlite:///{self.database}"
        self.ledger = root / "ledger.sqlite"
        """The merchant's ledger."""
        self.ledger_csv = root / "ledger.csv"
        """The same ledger as a file, for `recon reconcile`."""
        self.answer_key = root / "answer-key.json"
        """What was planted."""
        self.memory = root / "demo.json"
        """What the demo remembers of itself."""

    def bank(self, name: str) -> Path:
        """Where the statements of a bank arrive."""
        return self.root / "bank" / name


@dataclass(frozen=True, slots=True)
class DemoMemory:
    """What a later run on the same folder must know."""

    orders: int
    seed: int
    port: int = 0
    prepared: bool = False
    """The sample night is written, whole."""
    day: str = ""
    """Business date of the newest night that is prepared."""
    played: str = ""
    """Business date of the newest night that came to its end."""
    clock_shift: int = 0
    """Seconds by which its time is another than the machine's."""


def folder_at(path: Path) -> DemoFolder:
    """The demo's folder, made when absent.

    Raises:
        UsageError: the path cannot stand in a shell, a URL and TOML without quoting.
        OutputError: it cannot be made.
    """
    root = path.expanduser().absolute()
    unsafe = sorted(set(str(root)) & set(UNSAFE_CHARACTERS))
    if unsafe:
        msg = f"the folder {root} has {' '.join(map(repr, unsafe))} in its path; choose another"
        raise UsageError(msg)
    folder = DemoFolder(root)
    try:
        for made in (folder.root, folder.config, folder.inbox, folder.settlement, folder.reports):
            make_folder(made)
    except OSError as error:
        msg = f"the demo's folder {root} cannot be made ({error.strerror}); choose another by --dir"
        raise OutputError(msg) from error
    return folder


def recall(folder: DemoFolder) -> DemoMemory | None:
    """What an earlier run left, None in a new folder.

    Raises:
        ConfigurationError: the folder was used by something else, or its memory is not readable.
    """
    if not folder.memory.exists():
        if folder.env.exists() or folder.database.exists():
            msg = f"{folder.root} has files that no demo made; choose another folder by --dir"
            raise ConfigurationError(msg)
        return None
    try:
        return DemoMemory(**json.loads(folder.memory.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        msg = f"{folder.memory} cannot be read; start over with --fresh"
        raise ConfigurationError(msg) from error


def remember(folder: DemoFolder, memory: DemoMemory) -> None:
    """Keep what a later run must know."""
    write_whole(folder.memory, json.dumps(asdict(memory)) + "\n")


def agree(memory: DemoMemory | None, *, orders: int | None, seed: int | None) -> DemoMemory:
    """The size and seed of this run: what was asked for, or what the folder already holds.

    Raises:
        UsageError: both are given and differ.
    """
    if memory is None:
        return DemoMemory(
            ORDERS_DEFAULT if orders is None else orders, SEED_DEFAULT if seed is None else seed
        )
    if orders not in {None, memory.orders} or seed not in {None, memory.seed}:
        msg = (
            f"the folder holds a demo of {memory.orders} orders with seed {memory.seed}; leave "
            "--orders and --seed out to continue it, or start over with --fresh"
        )
        raise UsageError(msg)
    return memory


def empty(folder: DemoFolder) -> None:
    """Take away what the demo made; files of others and the folders they lie in stay."""
    if not folder.memory.exists():
        return
    for pattern in _MADE_PATTERNS:
        for path in folder.root.glob(pattern):
            path.unlink(missing_ok=True)


def write_whole(path: Path, text: str, *, mode: int = GROUP) -> None:
    """Write a file whole or not at all.

    Raises:
        OutputError: the folder cannot be written.
    """
    try:
        replace_result(path, text, mode=mode)
    except OSError as error:
        msg = f"{path} cannot be written ({error.strerror}); make {path.parent} writable"
        raise OutputError(msg) from error


SIGN_KEY = "sandbox"
BANK_FORMS = {"main": "xml", "pounds": "csv", "usd": "sta"}
"""Bank of the demo's merchant -> the format in which it sends its statements."""
ACCOUNT = Account(merchant_id="100042", account_id="100042001", other_account="100042002")
ACCOUNTS = (
    (ACCOUNT.account_id, "Northwind Trading", 30),
    (ACCOUNT.other_account, "Northwind Trading, outlet", 45),
)
"""Both accounts of the merchant, over one inbox and one ledger: name, minute of its night."""


def write_configuration(folder: DemoFolder) -> None:
    """The settings of `demo_config`, once: a person may have edited what lies there since."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(  # noqa: S701 - settings, not HTML: a path that needed quotes is refused
        loader=PackageLoader("recon.cli", "demo_config"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    facts = {
        "folder": folder,
        "account": ACCOUNT,
        "accounts": ACCOUNTS,
        "ledger_query": LEDGER_QUERY,
        "codes": load_tables("sandbox", config_dir=None),
        "rounding_currency": ROUNDING_CURRENCY,
        "fee_basis_points": FEE_BASIS_POINTS,
        "fee_fixed_minor_units": FEE_FIXED_MINOR_UNITS,
        "banks": BANKS,
        "payer": PAYER,
        "dated_rates": DATED_RATES,
    }
    for name in pages.list_templates():
        if not (folder.config / name).exists():
            write_whole(folder.config / name, pages.get_template(name).render(facts))


LOOPBACK = "127.0.0.1"
ANSWER_SECONDS_MAX = 60


@contextmanager
def demo_gateway(folder: DemoFolder, memory: DemoMemory) -> Iterator[int]:
    """The port of a sandbox over the folder's state: the remembered one where it can be had."""
    running = health(memory.port)
    if running and (running.get("orders"), running.get("seed")) == (memory.orders, memory.seed):
        yield memory.port  # somebody started `recon sandbox` beside us, as `.env` invites to
        return
    from recon.sandbox import SandboxOptions, serving

    options = SandboxOptions(
        port=memory.port if _is_free(memory.port) else 0,
        seed=memory.seed,
        orders=memory.orders,
        state=folder.sandbox_state,
    )
    with serving(options) as sandbox:
        yield sandbox.port


def refuse_if_running(folder: DemoFolder) -> None:
    """Refuse to take the ground from under a sandbox that still runs.

    Raises:
        UsageError: one answers at the remembered port.
    """
    try:
        memory = recall(folder)
    except ConfigurationError:
        return  # nothing that could be asked; what is not ours is left alone anyway
    if memory is not None and health(memory.port):
        msg = f"a sandbox still runs at port {memory.port}; end it first, then start over"
        raise UsageError(msg)


def health(port: int) -> dict[str, Any]:
    """What a sandbox at this port says of itself; nothing when none answers."""
    if not port:
        return {}
    try:
        answer = _reply(port, "/_sandbox/health")
    except ConfigurationError:
        return {}
    return answer if isinstance(answer, dict) and answer.get("status") == "ok" else {}


def handed_out(port: int, *, account_id: str, day: date) -> dict[str, str]:
    """Name -> text of what the sandbox hands out of a business date, after those before it.

    Raises:
        ConfigurationError: the sandbox does not answer, or handed out a later date before.
    """
    texts: dict[str, str] = _reply(port, f"/_sandbox/files/{account_id}/{day}/", body=b"")
    return texts


def move_clock(port: int, *, to: datetime) -> None:
    """Let the time of the sandbox come to an instant; it never goes back.

    Raises:
        ConfigurationError: the sandbox does not answer.
    """
    now = datetime.fromisoformat(_reply(port, "/_sandbox/clock")["now"])
    seconds = max(int((to - now).total_seconds()), 0)
    _reply(port, "/_sandbox/clock", body=json.dumps({"seconds": seconds}).encode())


def _reply(port: int, path: str, *, body: bytes | None = None) -> Any:
    """What it says in JSON, of a question or (with a body) of something to do."""
    try:
        return httpx.request(
            "GET" if body is None else "POST",
            f"http://{LOOPBACK}:{port}{path}",
            content=body,
            timeout=ANSWER_SECONDS_MAX,
            trust_env=False,  # no proxy of the environment stands between us and loopback
        ).json()
    except (httpx.HTTPError, ValueError) as error:
        msg = (
            f"the sandbox at port {port} does not answer {path} ({error}): start the demo again, "
            "or over with --fresh"
        )
        raise ConfigurationError(msg) from error


def _is_free(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


NIGHT_AFTER = timedelta(hours=2, minutes=30)
"""After its business date closed a night of the demo runs, by the demo's time."""
GATEWAY_AT = time(22, tzinfo=UTC)
"""The sandbox's time on each business date, as on the first."""
DAYS_MAX = 92
"""Of nights that follow the first one."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A prepared folder whose gateway answers."""

    port: int
    business_date: date
    variables: Mapping[str, str]


@contextmanager
def prepared(demo: DemoFolder, memory: DemoMemory, *, day: date | None = None) -> Iterator[Ready]:
    """The folder with everything a night needs, and its gateway for as long as the block runs.

    Args:
        demo: the folder.
        memory: what it remembers.
        day: a business date after the last one that was prepared; without it that one again.
    """
    from recon.store.database.migrate import upgrade

    with demo_gateway(demo, memory) as port:
        memory = replace(memory, port=port)
        if day is None:
            day = date.fromisoformat(memory.day) if memory.day else DEMO_BUSINESS_DATE
        memory = _dated(memory, day=day)
        remember(demo, memory)
        # Plain lines for a shell: absolute, and without anything to expand.
        variables = {
            "RECON_GATEWAY_BASE_URL": f"http://{LOOPBACK}:{port}",
            "RECON_SIGN_KEY": SIGN_KEY,
            "RECON_DATABASE_URL": demo.database_url,
            "RECON_CONFIG_DIR": str(demo.config),
            "RECON_MERCHANT": ACCOUNT.merchant_id,
            "RECON_ACCOUNT": ACCOUNT.account_id,
            "RECON_BUSINESS_DATE": day.isoformat(),
            CLOCK_VARIABLE: str(memory.clock_shift),
        }
        lines = "".join(f"{name}={value}\n" for name, value in variables.items())
        write_whole(demo.env, lines, mode=OWNER)
        if not demo.dotenv.is_symlink():
            demo.dotenv.symlink_to(demo.env.name)
        upgrade(demo.database_url)
        if not memory.prepared:
            write_configuration(demo)
            write_files(demo, memory)
            memory = replace(memory, prepared=True)
            remember(demo, memory)
        yield Ready(port, day, variables)


def whole_night(
    demo: DemoFolder, memory: DemoMemory, *, report: Echo, day: date | None = None
) -> Mapping[str, int | str]:
    """Prepare, then one live night, as `recon nightly` runs it; its figures."""
    with prepared(demo, memory, day=day) as ready:
        report(f"The sandbox gateway answers at port {ready.port}, the sample night lies ready.")
        request = NightRequest(
            ACCOUNT.merchant_id, ACCOUNT.account_id, ready.business_date, Mode.LIVE
        )
        _, figures = played(request, variables={**_of_others(), **ready.variables}, report=report)
    remember(demo, replace(recall(demo) or memory, played=ready.business_date.isoformat()))
    return figures


def days_after(memory: DemoMemory, *, to: date) -> list[date]:
    """The business dates whose night did not come to its end yet, up to one.

    Raises:
        UsageError: it is not after the last one, or too far from it.
    """
    last = date.fromisoformat(memory.day) if memory.day else DEMO_BUSINESS_DATE
    span = (to - last).days
    if not 0 < span <= DAYS_MAX:
        msg = f"--to is a date after {last} and at most {DAYS_MAX} days from it"
        raise UsageError(msg)
    calendar = BusinessCalendar.of()
    every = [last + timedelta(days=number) for number in range(span + 1)]
    ended = memory.played == last.isoformat()
    return [each for each in every[ended:] if calendar.is_business_day(each)]


def _dated(memory: DemoMemory, *, day: date) -> DemoMemory:
    """The memory at a business date; its time is that of the night after it, and never goes back.

    The machine's date says nothing: the sandbox's payments have theirs.
    """
    if memory.day == day.isoformat():
        return memory
    night = BusinessCalendar.of().closes_at(day) + NIGHT_AFTER
    shift = math.ceil((night - system_clock()).total_seconds())
    if memory.day:
        shift = max(shift, memory.clock_shift)
    return replace(memory, day=day.isoformat(), clock_shift=shift, prepared=False)


def _of_others() -> dict[str, str]:
    """The shell's variables without those of another installation, a live signer among them."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RECON_")}


def write_files(demo: DemoFolder, memory: DemoMemory) -> None:
    """What the merchant's systems, the gateway and the banks have of a business date."""
    day = date.fromisoformat(memory.day)
    move_clock(memory.port, to=datetime.combine(day, GATEWAY_AT))
    texts = handed_out(memory.port, account_id=ACCOUNT.account_id, day=day)
    # The sandbox's ledger has what was paid out before, as its settlement files and banks do.
    ledger = texts[f"ledger-{day}.csv"]
    write_whole(demo.ledger_csv, add_to_ledger_table(ledger, path=demo.ledger))
    settled = (f"settlement-before-{day}.csv", f"settlement-{day}.csv")
    banks = {f"statements-{bank}-{day}.{form}": bank for bank, form in BANK_FORMS.items()}
    folders = {
        **{name: demo.bank(bank) for name, bank in banks.items()},
        **dict.fromkeys(settled, demo.settlement),
        **{name: demo.inbox for name in texts if name.startswith("orders-")},
    }
    for name, folder in folders.items():
        make_folder(folder)
        if name in texts:  # no bank has a statement of a Saturday
            write_whole(folder / name, texts[name])
    # The sandbox's key is that of this night, with what is planted into the settlement file.
    if key := texts.get(f"answer-key-{day}.json"):
        write_whole(demo.answer_key, key)


DELIVERED_AFTER = timedelta(minutes=15)
"""A date has closed when its files come."""
LOOK_SECONDS = 60
UNANSWERED_MAX = 60
"""So many looks in a row a sandbox may leave unanswered, as after a laptop's night."""


def deliver_until_stopped(
    demo: DemoFolder, *, clock: Clock, sleep: Callable[[float], None], report: Callable[[str], None]
) -> NoReturn:
    """Look every LOOK_SECONDS; the first look must be answered.

    Raises:
        ConfigurationError: nothing is prepared, or no sandbox answers for so long.
    """
    unanswered = UNANSWERED_MAX
    while True:
        try:
            for day in deliver_due(demo, now=clock()):
                report(f"Delivered: the files of {day}")
            unanswered = 0
        except ConfigurationError as error:
            unanswered += 1
            if unanswered > UNANSWERED_MAX:
                raise
            report(f"{error}; nothing was delivered, the next look is in {LOOK_SECONDS} s")
        sleep(LOOK_SECONDS)


def deliver_due(demo: DemoFolder, *, now: datetime) -> Iterator[date]:
    """Write the files of each date that has closed since the newest one that lies ready.

    Args:
        demo: A folder that was prepared, whose sandbox answers.
        now: The machine's time.

    Raises:
        ConfigurationError: nothing is prepared, or no sandbox answers.
    """
    memory = recall(demo)
    if memory is None or not memory.prepared or not health(memory.port):
        msg = f"{demo.root} is no prepared demo whose sandbox answers: `make serve` starts both"
        raise ConfigurationError(msg)
    calendar = BusinessCalendar.of()
    its_time = now + timedelta(seconds=memory.clock_shift)
    newest = date.fromisoformat(memory.day)
    for number in range(1, DAYS_MAX + 1):
        day = newest + timedelta(days=number)
        if calendar.closes_at(day) + DELIVERED_AFTER > its_time:
            return
        memory = replace(memory, day=day.isoformat())
        write_files(demo, memory)
        remember(demo, memory)
        yield day
