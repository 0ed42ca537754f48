"""The demo's folder: where everything lies, its settings as text, and how it is emptied.

`--fresh` takes away only what the demo made: whatever else lies in the folder stays.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from recon.config.settings import load_tables
from recon.model.errors import ConfigurationError, OutputError, UsageError
from recon.privacy.own_files import make_folder, write_result
from recon.sandbox.world.banks import BANKS, DATED_RATES, PAYER
from recon.sandbox.world.batches import FEE_BASIS_POINTS, FEE_FIXED_MINOR_UNITS
from recon.sandbox.world.night import LEDGER_QUERY, ROUNDING_CURRENCY, Account
from recon.steps.ground.environment import CLOCK_VARIABLE

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


SIGN_KEY = "sandbox"
CALLS_PER_SECOND = 1_000
"""The machine's own pace: the sandbox stands beside us, unlike a real gateway."""
UNVERIFIED_ROWS_MAX = 150
"""The sample's unreadable rows are planted; a real account keeps the bundled 20."""
SEVERITIES = {
    "EUR": (5, 400),
    "GBP": (5, 400),
    "JPY": (500, 40_000),
    "KWD": (1, 120),
    "USD": (5, 400),
}
"""Currency -> money at risk in major units below which a break is never urgent, and medium from."""

ACCOUNTS = {
    "clearing": "1360-gateway-clearing",
    "sales": "8400-sales",
    "refunds": "8700-refunds",
    "chargebacks": "6300-chargebacks",
    "payouts": "1365-money-on-its-way",
    "bank": "1200-bank",
    "fees": "6855-fees",
    "reserves": "1361-reserve",
}
"""Of the demo's books, for the journals that a night proposes."""
BANK_FORMS = {"main": "xml", "pounds": "csv", "usd": "sta"}
"""Bank of the demo's merchant -> the format in which it sends its statements."""
OPENING_DATE = "2026-01-01"
"""Before every order of the sandbox."""
ZONE = "Europe/London"
_MINUTES = (30, 45)
_NAMES = ("Northwind Trading", "Northwind Trading, outlet")


def variables_of(
    folder: DemoFolder, *, account: Account, base_url: str, business_date: date, clock_shift: int
) -> dict[str, str]:
    """What `env` holds, absolute and without anything to expand."""
    return {
        "RECON_GATEWAY_BASE_URL": base_url,
        "RECON_SIGN_KEY": SIGN_KEY,
        "RECON_DATABASE_URL": folder.database_url,
        "RECON_CONFIG_DIR": str(folder.config),
        "RECON_MERCHANT": account.merchant_id,
        "RECON_ACCOUNT": account.account_id,
        "RECON_BUSINESS_DATE": business_date.isoformat(),
        CLOCK_VARIABLE: str(clock_shift),
    }


def env_text(variables: Mapping[str, str]) -> str:
    """The variables as plain lines for a shell."""
    return "".join(f"{name}={value}\n" for name, value in variables.items())


def gateway_toml() -> str:
    """How the sandbox is called."""
    return (
        "# The demo's gateway is the sandbox on this machine.\n"
        'profile = "base"\n'
        'reply_signatures = "enforce"\n'
        f"calls_per_second = {CALLS_PER_SECOND} # the machine's pace; leave 5 for a real gateway\n"
    )


def approvers_toml() -> str:
    """Two people, who need no one-time codes towards the sandbox."""
    limits = ", ".join(f"{name} = {medium * 100}" for name, (_, medium) in SEVERITIES.items())
    return (
        "# Who may speak: real people have codes (`recon approver enrol`), the sandbox asks none.\n"
        f'[approvers.anna]\nname = "Anna Berg"\nlimit = {{ {limits} }}\n\n'
        '[approvers.dan]\nname = "Dan Orr"\nrole = "reviewer"\n'
    )


def retention_toml() -> str:
    """What the demo would let go, shown once a week."""
    return (
        "# Housekeeping shows every Saturday what is older; with schedule_deletes it deletes it.\n"
        "[retention]\n"
        "metrics_days = 90\n"
        "replaced_workbooks_days = 90\n"
        f'schedule = {{ cron = "0 6 * * 6", zone = "{ZONE}" }}\n'
    )


def merchants_toml(folder: DemoFolder, *, account: Account) -> str:
    """Both accounts of the merchant, over one inbox and one set of books."""
    url = _quoted(f"sqlite:///{folder.ledger}")
    ledger = f'{{ url = {url}, query = "{LEDGER_QUERY}" }}'
    tables = [
        f"[accounts.{_quoted(f'{account.merchant_id}/{account_id}')}]\n"
        f"name = {_quoted(name)}\n"
        f"inbox = {_quoted(str(folder.inbox))}\n"
        f"reports = {_quoted(str(folder.reports))}\n"
        "settle_seconds = 0 # the demo's files are whole; leave the bundled 5 for real ones\n"
        f"ledger = {ledger}\n"
        f'schedule = {{ cron = "{minute} 2 * * *", zone = "{ZONE}" }}\n'
        for account_id, name, minute in zip(
            (account.account_id, account.other_account), _NAMES, _MINUTES, strict=True
        )
    ]
    settled = (
        f"[accounts.{_quoted(f'{account.merchant_id}/{account.account_id}')}.settlement]\n"
        f"inbox = {_quoted(str(folder.settlement))}\n"
    )
    banks = [
        f"[bank.{_quoted(bank.name)}]\ninbox = {_quoted(str(folder.bank(bank.name)))}\n"
        for bank in BANKS
    ]
    return "# The demo's merchant.\n" + "\n".join([*tables, settled, *banks])


def rules_toml(account: Account) -> str:
    """The bundled rules, taught to read the sandbox."""
    codes = load_tables("sandbox", config_dir=None)
    return (
        "# Laid over the bundled rules. These codes are the sandbox's own, not the gateway's.\n"
        f"{_table('payment_status', codes['payment_status'])}\n"
        f"{_table('query_result', codes['query_result'])}\n"
        "[gateway]\n"
        'amount_means = "authorised" # the sandbox shows the authorised amount in every state\n\n'
        f"[window]\nopening_date = {OPENING_DATE} # the first day that is reconciled\n\n"
        f"[tolerance.{ROUNDING_CURRENCY}]\n"
        "absolute_minor_units = 1\n"
        "night_budget_minor_units = 100\n\n"
        "# The accounts of the demo's books; name your own.\n"
        f"{_table('journal.accounts', ACCOUNTS)}\n"
        "[ledger]\n"
        'fees_per = "batch" # the books name the batch of every fee\n'
        "bank = true # and have what arrives at the bank\n\n"
        "# A small shop: its largest orders are some 500 euros. Major units: a yen is no euro.\n"
        f"{_severities()}\n"
        "# What the sandbox takes of a captured amount.\n"
        f"{_fees()}\n"
        "# Where the gateway pays out to; other currencies go to the first and are exchanged.\n"
        f"{_banks(account)}\n"
        "# What a yen is worth there, from these days on; no rate of dinars is known.\n"
        f"{_rates()}\n"
        "[verdict]\n"
        "# Bad rows are planted here; leave the bundled 20 for a real account.\n"
        f"max_unverified_rows = {UNVERIFIED_ROWS_MAX}\n"
    )


def _fees() -> str:
    return "".join(
        f"[fees.{currency}]\nbasis_points = {FEE_BASIS_POINTS}\n"
        f"fixed_minor_units = {FEE_FIXED_MINOR_UNITS}\n"
        for currency in SEVERITIES
    )


def _banks(account: Account) -> str:
    served = _quoted(f"{account.merchant_id}/{account.account_id}")
    return "".join(
        f"[bank.{_quoted(bank.name)}]\niban = {_quoted(bank.iban)}\n"
        f"currency = {_quoted(bank.currency)}\naccounts = [{served}]\n"
        f"counterparty = [{_quoted(PAYER)}]\n"
        for bank in BANKS
    )


def _rates() -> str:
    pairs = {f"{currency}.{BANKS[0].currency}": days for currency, days in DATED_RATES.items()}
    return "".join(_table(f"rate.{_quoted(pair)}.on", days) for pair, days in pairs.items())


def _severities() -> str:
    return "".join(
        f"[severity.{currency}]\nignore = {least}\nmedium = {medium}\nhigh = {10 * medium}\n"
        f"critical = {100 * medium}\n"
        for currency, (least, medium) in SEVERITIES.items()
    )


def _table(name: str, values: Mapping[str, str]) -> str:
    lines = (f"{_quoted(key)} = {_quoted(value)}\n" for key, value in values.items())
    return f"[{name}]\n{''.join(lines)}"


def _quoted(text: str) -> str:
    """A basic string of TOML; JSON's quoting is a part of it."""
    return json.dumps(text, ensure_ascii=False)
