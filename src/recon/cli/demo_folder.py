"""The demo's folder: where everything lies, what it remembers, and how it is emptied.

`--fresh` takes away only what the demo made: whatever else lies in the folder stays.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from recon.model.errors import ConfigurationError, OutputError, UsageError
from recon.privacy.own_files import make_folder, write_result

ORDERS_DEFAULT = 2_000
SEED_DEFAULT = 42
UNSAFE_CHARACTERS = " \t\n\"'`$\\?#%&;|<>*(){}[]~!"
"""A path with one of these would mean something else in a shell, a URL or TOML."""

_DATABASE_NEIGHBOURS = ("", "-wal", "-shm", "-journal", ".lock")
_MADE_PATTERNS = (
    "env",
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
    "reports/statement-*.xlsx",
    "reports/statement-*/*",
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


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """Paths under the demo's folder, all absolute."""

    root: Path

    @property
    def env(self) -> Path:
        """Plain KEY=VALUE lines for a shell."""
        return self.root / "env"

    @property
    def config(self) -> Path:
        """RECON_CONFIG_DIR."""
        return self.root / "config"

    @property
    def inbox(self) -> Path:
        """Where the order files arrive."""
        return self.root / "inbox"

    @property
    def settlement(self) -> Path:
        """Where the gateway's settlement files arrive."""
        return self.root / "settlement"

    def bank(self, name: str) -> Path:
        """Where the statements of a bank arrive."""
        return self.root / "bank" / name

    @property
    def reports(self) -> Path:
        """Where workbooks go."""
        return self.root / "reports"

    @property
    def prefect(self) -> Path:
        """Prefect's own state."""
        return self.root / "prefect"

    @property
    def sandbox_state(self) -> Path:
        """Population, clock and effects of the sandbox gateway."""
        return self.root / "sandbox.sqlite"

    @property
    def database(self) -> Path:
        """Our own database."""
        return self.root / "recon.sqlite"

    @property
    def ledger(self) -> Path:
        """The merchant's books."""
        return self.root / "ledger.sqlite"

    @property
    def ledger_csv(self) -> Path:
        """The same books as a file, for `recon reconcile`."""
        return self.root / "ledger.csv"

    @property
    def answer_key(self) -> Path:
        """What was planted."""
        return self.root / "answer-key.json"

    @property
    def memory(self) -> Path:
        """What the demo remembers of itself."""
        return self.root / "demo.json"

    @property
    def database_url(self) -> str:
        """RECON_DATABASE_URL."""
        return f"sqlite:///{self.database}"


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
    if folder.prefect.is_dir():
        shutil.rmtree(folder.prefect)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        OutputError: the folder cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        write_result(part, text)
        part.replace(path)
    except OSError as error:
        msg = f"{path} cannot be written ({error.strerror}); make {path.parent} writable"
        raise OutputError(msg) from error
