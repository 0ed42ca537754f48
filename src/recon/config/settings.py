"""Configuration from layered TOML files, and from the environment for secrets and local values.

The bundled files (`recon/_config` in a wheel, `config/` of the checkout in an editable install) are
overridden key by key by files of the same name in `RECON_CONFIG_DIR`. The environment is an
argument, never read from the process here. This module has the accounts of merchants.toml and the
gateway's settings; the models of most other files have modules of their own.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from recon.config.approvers import Approver, Approvers
from recon.config.cluster import ClusterSettings
from recon.config.declared import DeclaredTable, Table, declared, deepest_key, unprintable_keys
from recon.config.fee_contract import FeeContract, contract_of
from recon.config.file_layouts import GivenLayout, GivenLayouts
from recon.config.file_sources import (
    BankFolder,
    FileFolder,
    GatewayLists,
    LedgerSource,
    SettlementFolder,
    bank_tables,
    banks_of,
)
from recon.config.keys import OwnSignKey, SignKeys, address_of, given, secret_of
from recon.config.limits import Limits
from recon.config.night_archive import ArchiveFile, ArchiveSettings
from recon.config.notice_settings import Notice, Notices
from recon.config.retention import NightSchedule, Retention, RetentionFile
from recon.config.rules import Rules
from recon.model.errors import ConfigurationError
from recon.model.figures import (
    MATCHED_ROWS_DISPLAYED,
    MATCHED_ROWS_MAX,
    OPEN_ROWS_DISPLAYED,
    OPEN_ROWS_MAX,
)
from recon.model.terms import SourceKind
from recon.privacy.displayed_text import printable
from recon.privacy.this_machine import is_loopback

OPEN_SHEET_ROWS_MAX = 200_000
"""Nobody scrolls through more rows, and the file would be slow to open."""
MATCHED_SHEET_ROWS_MAX = 50_000
"""The same for matches, of which the sheet has the sums and a file every row."""


class WorkbookLists(DeclaredTable):
    """Matches, and sets that wait or are not verified: how many stand on the sheet."""

    matched_rows_max: int = Field(default=MATCHED_ROWS_MAX, ge=1, le=MATCHED_SHEET_ROWS_MAX)
    """Of more, the sheet has sums and the first `matched_rows_shown`; all are a file."""
    matched_rows_shown: int = Field(default=MATCHED_ROWS_DISPLAYED, ge=1, le=MATCHED_SHEET_ROWS_MAX)
    open_rows_max: int = Field(default=OPEN_ROWS_MAX, ge=1, le=OPEN_SHEET_ROWS_MAX)
    """The same of what waits and is not verified; breaks are never cut."""
    open_rows_shown: int = Field(default=OPEN_ROWS_DISPLAYED, ge=1, le=OPEN_SHEET_ROWS_MAX)

    @model_validator(mode="after")
    def _shown_are_fewer(self) -> Self:
        for name in ("matched_rows", "open_rows"):
            if getattr(self, f"{name}_shown") > getattr(self, f"{name}_max"):
                msg = f"{name}_shown: more rows than {name}_max lets stand on the sheet"
                raise ValueError(msg)
        return self


class RequestIds(DeclaredTable):
    """Whether another id means another movement."""

    ids: Literal["repeated", "unique"] = "repeated"
    """"unique": no movement is ever told under two ids, so two ids are two movements."""

    @property
    def are_unique(self) -> bool:
        """Whether two equal instructions on one payment are both sent if their ids differ."""
        return self.ids == "unique"


CONFIG_FILE_BYTES_MAX = 1_048_576
ADDRESS = "RECON_GATEWAY_BASE_URL"
_ACCOUNT_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}/[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
"""Both ids become part of file names, so neither may refer to another folder."""

GATEWAY_FILES = ("profiles", "signature", "status_map")
"""Files that describe the gateway's interface, with a layer `base` and others above it."""
Tables = dict[str, Any]


class AccountSettings(FileFolder, OwnSignKey):
    """One account of one merchant (`[accounts."<merchant>/<account>"]` of merchants.toml)."""

    name: str = ""
    """The merchant's name for people."""
    reports: Path
    returned: Path | None = None
    """A shared folder where people put workbooks that they answered; forms read there, too."""
    ledger: LedgerSource | None = None
    settlement: SettlementFolder | None = None
    """Where the gateway's settlement files lie; None: what it settled is not covered."""
    gateway: GatewayLists = GatewayLists()
    archive: Path | None = None
    """Where what was read is kept, by hash."""
    settle_seconds: int = Field(default=5, ge=0, le=3_600)
    """A file without a `done_file` is read when nobody has touched it for so long; 0: at once."""
    schedule: NightSchedule | None = None
    """When Prefect starts its nights; None: nobody but people does."""
    instructions: RequestIds = RequestIds()
    workbook: WorkbookLists = WorkbookLists()
    auto_approve: bool = True
    """Instructions of the order file count as approved by rule; else they wait for a person."""

    @property
    def inboxes(self) -> tuple[Path, ...]:
        """All folders in which files of the account arrive."""
        return (self.inbox, *(() if self.settlement is None else (self.settlement.inbox,)))

    @model_validator(mode="after")
    def _apart(self) -> "AccountSettings":
        if self.settlement is not None and self.settlement.inbox == self.inbox:
            msg = "settlement.inbox is that of the order files: give settlement files their own"
            raise ValueError(msg)
        return self


class GatewaySettings(DeclaredTable):
    """How to reach the gateway (`gateway.toml`); address and key come from the environment."""

    profile: Literal["base", "extended"] = "base"
    reply_signatures: Literal["off", "warn", "enforce"] = "enforce"
    allow_unverified_replies: bool = False
    connect_timeout_seconds: float = Field(default=5, gt=0, le=120)
    deadline_seconds: float = Field(default=60, gt=0, le=600)
    """Whole time of one call, from the first byte to the last."""
    calls_per_second: float = Field(default=5, gt=0, le=10_000)
    queries_in_flight: int = Field(default=4, ge=1, le=256)
    read_retry_seconds: float = Field(default=600, ge=0, le=86_400)
    night_deadline_seconds: float = Field(default=28_800, gt=0, le=86_400)
    """So long after its start a run asks and sends nothing more."""
    capture_multiple: bool = False
    """Whether an authorisation may be captured in parts, together never more than it."""
    capture_replan: bool = False
    """Whether a capture that surely did not happen is planned once more by a later run."""
    review_flags: frozenset[str] = frozenset({"1"})
    """The flags that a review may set; the document shows no other than "1"."""
    ca_file: Path | None = None
    proxy: str = ""
    """http or https address; TLS to the gateway goes through it unopened."""
    client_certificate_file: Path | None = None
    client_key_file: Path | None = None
    plain_key_under_prefect: bool = False
    """Whether runs of Prefect may have the sign key in their environment, for real money."""


class FileSettings(BaseModel):
    """What reading a file needs: no database, no gateway."""

    model_config = ConfigDict(frozen=True)
    accounts: dict[str, AccountSettings]
    """By "<merchant_id>/<account_id>"."""
    rules: Rules
    gateway: GatewaySettings
    interface: dict[str, Any]
    """The files of GATEWAY_FILES, parsed and overlaid, and the profile, for the gateway client."""
    seal_key: SecretStr | None = None
    """Under which payees' bank details rest; only payouts need it."""


class Settings(FileSettings):
    """Everything a run needs to know."""

    database_url: SecretStr
    gateway_base_url: str
    sign_keys: SignKeys
    banks: dict[str, BankFolder] = Field(default_factory=dict)
    """By the name that the rules give the bank; without one its statements are not covered."""
    approvers: dict[str, Approver] = Field(default_factory=dict)
    """By short name."""
    limits: Limits = Field(default_factory=Limits)
    notices: dict[str, Notice] = Field(default_factory=dict)
    """By name: who is told when a night has ended."""
    retention: Retention = Field(default_factory=Retention)
    """How long what can be spared is kept."""
    archive: ArchiveSettings = Field(default_factory=ArchiveSettings)
    """Where nights lie as folders."""
    cluster: ClusterSettings = Field(default_factory=ClusterSettings)
    """Who does what can be done in parts."""
    config_dir: Path | None

    @property
    def is_sandbox(self) -> bool:
        """Whether the gateway can only be the sandbox: on this machine, and used with its key.

        An address alone could be a tunnel to a gateway with real money, where that key is useless.
        """
        host = urlsplit(self.gateway_base_url).hostname or ""
        return is_loopback(host) and self.sign_keys.are_of_sandbox

    def account(self, merchant_id: str, *, account_id: str) -> AccountSettings:
        """The settings of one account.

        Raises:
            ConfigurationError: the account is not declared.
        """
        account = self.accounts.get(f"{merchant_id}/{account_id}")
        if account is None:
            where = "" if self.config_dir else "; RECON_CONFIG_DIR is not set"
            known = ", ".join(sorted(self.accounts)) or f"none{where}"
            msg = (
                f"merchants.toml declares no account {merchant_id}/{account_id} (declared: {known})"
            )
            raise ConfigurationError(msg)
        return account


def bundled_config_dir() -> Path:
    """The folder of the bundled configuration."""
    inside_wheel = Path(__file__).parents[1] / "_config"
    if inside_wheel.is_dir():
        return inside_wheel
    return Path(__file__).parents[3] / "config"


def load_tables(name: str, *, config_dir: Path | None) -> Tables:
    """One configuration file by its stem, the user's keys merged over the bundled ones."""
    tables = _bundled_tables(name)
    if config_dir is None:
        return overlay(tables, over={})
    if not config_dir.is_dir():
        msg = f"RECON_CONFIG_DIR names {config_dir}, which is not a folder"
        raise ConfigurationError(msg)
    _refuse_unknown_files(config_dir)
    return overlay(tables, over=read_toml(config_dir / f"{name}.toml"))


def load_file(name: str, model: type[Table], *, config_dir: Path | None) -> Table:
    """One configuration file by its stem, validated as its model.

    Raises:
        ConfigurationError: names the file and every table and key that is wrong.
    """
    return declared(model, load_tables(name, config_dir=config_dir), source=f"{name}.toml")


@cache
def _bundled_tables(name: str) -> Tables:
    """A bundled file, cached because it does not change while a process runs."""
    return read_toml(bundled_config_dir() / f"{name}.toml")


@cache
def _bundled_names() -> frozenset[str]:
    return frozenset(path.name for path in bundled_config_dir().glob("*.toml"))


def _refuse_unknown_files(config_dir: Path) -> None:
    """Refuse a misspelt file name, whose settings would silently not apply."""
    known = _bundled_names()
    unknown = sorted({path.name for path in config_dir.glob("*.toml")} - known)
    if unknown:
        msg = f"{config_dir} holds {', '.join(unknown)}; known names: {', '.join(sorted(known))}"
        raise ConfigurationError(msg)


def overlay(tables: Tables, *, over: Mapping[str, Any]) -> Tables:
    """Merge `over` into `tables` recursively; its values take precedence."""
    merged = dict(tables)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            merged[key] = overlay(below, over=value)
        else:
            merged[key] = value
    return merged


def load_settings(environment: Mapping[str, str], *, signs: bool = True) -> Settings:
    """Load settings from `RECON_*` variables and their files; `signs`: a sign key is needed.

    Raises:
        ConfigurationError: names the variable, file and key that is missing or wrong.
    """
    config_dir = config_dir_of(environment)
    of_files = load_file_settings(environment)
    accounts, rules = of_files.accounts, of_files.rules
    limits = load_file("limits", Limits, config_dir=config_dir)
    notices = load_file("notices", Notices, config_dir=config_dir)
    limits.refuse_strangers(accounts)
    notices.refuse_strangers(accounts)
    merchants = load_tables("merchants", config_dir=config_dir)
    settings = Settings(
        **dict(of_files),
        database_url=SecretStr(_required(environment, "RECON_DATABASE_URL")),
        gateway_base_url=address_of(_required(environment, ADDRESS), variable=ADDRESS),
        sign_keys=SignKeys.read(environment, accounts=accounts),
        banks=banks_of(merchants, accounts=accounts, rules=rules),
        approvers=load_file("approvers", Approvers, config_dir=config_dir).approvers,
        limits=limits,
        retention=load_file("retention", RetentionFile, config_dir=config_dir).retention,
        notices=notices.notices,
        archive=load_file("archive", ArchiveFile, config_dir=config_dir).archive,
        cluster=load_file("cluster", ClusterSettings, config_dir=config_dir),
        config_dir=config_dir,
    )
    if signs:
        settings.sign_keys.refuse_nothing_given(accounts)
    return settings


def load_file_settings(environment: Mapping[str, str]) -> FileSettings:
    """Load the settings that determine how an order file is read.

    Raises:
        ConfigurationError: names the file and key that is wrong.
    """
    config_dir = config_dir_of(environment)
    gateway = load_file("gateway", GatewaySettings, config_dir=config_dir)
    return FileSettings(
        accounts=_accounts(load_tables("merchants", config_dir=config_dir)),
        rules=load_rules(config_dir=config_dir),
        gateway=gateway,
        interface=_interface(config_dir, profile=gateway.profile),
        seal_key=secret_of(environment, "RECON_SEAL_KEY"),
    )


def _interface(config_dir: Path | None, *, profile: str) -> dict[str, Any]:
    files = {name: load_tables(name, config_dir=config_dir) for name in GATEWAY_FILES}
    return files | {"profile": profile}


def load_rules(
    *, config_dir: Path | None, rules_file: Path | None = None, fees_file: Path | None = None
) -> Rules:
    """Load the rules of reconciliation and the fee contract, each from its layers.

    Args:
        config_dir: the merchant's own rules.toml and fees.toml.
        rules_file: the topmost layer of the rules.
        fees_file: a contract that replaces fees.toml entirely.

    Raises:
        ConfigurationError: names the file and the key that is wrong.
    """
    tables, source = load_tables("rules", config_dir=config_dir), "rules.toml"
    if rules_file is not None:
        own = _named_file(rules_file, what="rules file")
        tables, source = overlay(tables, over=own), str(rules_file)
    for key, where in NOT_RULES.items():
        if key in tables:
            msg = f"{source}: {key}: {where}"
            raise ConfigurationError(msg)
    rules = Rules.of(tables, source=source)
    contract = _contract(config_dir=config_dir, fees_file=fees_file)
    if contract is None:
        return rules
    if rules.fees:
        msg = f"{source}: fees: fees.toml declares the whole contract; take [fees] out of the rules"
        raise ConfigurationError(msg)
    return rules.model_copy(update={CONTRACT: contract})


CONTRACT = "fee_contract"
"""Field of the rules with the contents of fees.toml."""
NOT_RULES = {
    CONTRACT: "the fee contract stands in fees.toml",
    "codes": "the table of codes is part of the program",
}
"""Fields of the rules that no rules.toml declares, and where each comes from."""


def _contract(*, config_dir: Path | None, fees_file: Path | None) -> FeeContract | None:
    if fees_file is None:
        return contract_of(load_tables("fees", config_dir=config_dir), source="fees.toml")
    return contract_of(_named_file(fees_file, what="fee contract"), source=str(fees_file))


def _named_file(path: Path, *, what: str) -> Tables:
    if not path.is_file():
        msg = f"the {what} {path} does not exist"
        raise ConfigurationError(msg)
    return read_toml(path)


def _accounts(
    tables: Tables,
    *,
    source: str = "merchants.toml",
    filled: Callable[[Any], Any] = lambda account: account,
) -> dict[str, AccountSettings]:
    """The accounts of merchants.toml, or of a file like it, by "<merchant_id>/<account_id>"."""
    unknown = sorted(set(tables) - {"accounts", "bank"})
    accounts = tables.get("accounts", {})
    if unknown or not isinstance(accounts, dict):
        named = ", ".join(unknown) or "accounts"
        msg = f"{source}: {named}: only tables [accounts...] and [bank...] stand here"
        raise ConfigurationError(msg)
    for key in accounts:
        if _ACCOUNT_KEY.fullmatch(key) is None:
            msg = (
                f'{source}: accounts."{printable(key)}": must be "<merchant>/<account>", '
                "each 1 to 50 letters, digits and . _ - that begin with a letter or digit"
            )
            raise ConfigurationError(msg)
    return {
        key: declared(AccountSettings, filled(value), source=f'{source}: accounts."{key}"')
        for key, value in accounts.items()
    }


def given_layouts(paths: Sequence[Path]) -> GivenLayouts:
    """Load the layouts of these files, in order; a merchants.toml may have its other keys, too.

    Raises:
        ConfigurationError: a file is missing, is not TOML, or has an unknown key.
    """
    return GivenLayouts(tuple(each for path in paths for each in _of_file(path)))


def _of_file(path: Path) -> Iterator[GivenLayout]:
    """Layouts in the form of merchants.toml; keys that only a run needs may be absent."""
    read, source = _named_file(path, what="layout"), str(path)
    accounts = _accounts(read, source=source, filled=_for_layouts)
    for owner, account in accounts.items():
        of_ledger = account.ledger.layout if account.ledger else None
        for kind, layouts in (
            (SourceKind.ORDERS, account.layouts),
            (SourceKind.GATEWAY, account.gateway.layouts),
            (SourceKind.SETTLEMENT, account.settlement.layouts if account.settlement else ()),
            (SourceKind.LEDGER, (of_ledger,) if of_ledger else ()),
        ):
            yield from (GivenLayout(kind, owner, layout, source) for layout in layouts)
    for owner, table in bank_tables(read, source=source).items():
        bank = declared(BankFolder, _filled(table, inbox="-"), source=f'{source}: bank."{owner}"')
        for layout in bank.layouts:
            yield GivenLayout(SourceKind.BANK, owner, layout, source)


def _filled(table: Any, **absent: str) -> Any:
    return {**absent, **table} if isinstance(table, dict) else table


def _for_layouts(account: Any) -> Any:
    filled = _filled(account, inbox="-", reports="-")
    if isinstance(filled, dict) and "settlement" in filled:
        filled["settlement"] = _filled(filled["settlement"], inbox="settlement")
    if isinstance(filled, dict) and {"layout"} == {*filled.get("ledger", ())}:
        filled["ledger"] = _filled(filled["ledger"], path="-")
    return filled


def config_dir_of(environment: Mapping[str, str]) -> Path | None:
    """The folder with the merchant's own files, None if not set."""
    folder = environment.get("RECON_CONFIG_DIR", "").strip()
    return Path(folder) if folder else None


def _required(environment: Mapping[str, str], name: str) -> str:
    if not given(environment, name):
        msg = f"the environment variable {name} is not set (`recon doctor` lists what is needed)"
        raise ConfigurationError(msg)
    return environment[name]


def read_toml(path: Path) -> Tables:
    """Read the tables of a file; none when the file does not exist.

    Raises:
        ConfigurationError: it cannot be read, is too large or nested too deep, or is not TOML.
    """
    try:
        if path.stat().st_size > CONFIG_FILE_BYTES_MAX:
            msg = f"{path} is larger than {CONFIG_FILE_BYTES_MAX} bytes"
            raise ConfigurationError(msg)
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return {}
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise ConfigurationError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8 (byte {error.start})"
        raise ConfigurationError(msg) from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{path} is not valid TOML: {error}"
        raise ConfigurationError(msg) from error
    except RecursionError:
        msg = f"{path}: {deepest_key(text)} is nested deeper than any setting"
        raise ConfigurationError(msg) from None
    for key in unprintable_keys(tables):
        msg = f"{path}: {printable(key)} holds a character that cannot be printed; take it out"
        raise ConfigurationError(msg)
    return tables
