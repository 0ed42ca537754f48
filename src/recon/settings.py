"""Configuration: TOML files in layers, and the environment for what is secret or local.

Files are looked up in one place: the bundled ones (`recon/_config` in a wheel, `config/` of the
checkout in an editable install), overlaid key by key by the same-named files in
`RECON_CONFIG_DIR`. The environment is an argument, never read here from the process.
"""

import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from recon.errors import ConfigurationError
from recon.rules import Rules

CONFIG_FILE_BYTES_MAX = 1_048_576
KEY_FILE_BYTES_MAX = 4_096
SAFE_KEY_MODES = frozenset({0o600, 0o400})

GATEWAY_FILES = ("profiles", "signature", "status_map")
"""Files that describe the gateway's interface; each is a layer `base` and others above it."""

Tables = dict[str, Any]


class LedgerSource(BaseModel):
    """Where the ledger of an account is read: a file or a SQL query."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    path: Path | None = None
    url: SecretStr | None = None
    url_env: str = ""
    query: str = ""
    columns: dict[str, str] = Field(default_factory=dict)
    """Our column name -> theirs; absent means the same name."""


class AccountSettings(BaseModel):
    """One account of one merchant (`[accounts."<merchant>/<account>"]` of merchants.toml)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = ""
    """The merchant's name for people."""
    inbox: Path
    reports: Path
    ledger: LedgerSource | None = None
    auto_approve: bool = True
    """Instructions of the order file count as approved by rule; else they wait for a person."""


class GatewaySettings(BaseModel):
    """How to reach the gateway (`gateway.toml`); address and key come from the environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    profile: Literal["base", "extended"] = "base"
    reply_signatures: Literal["off", "warn", "enforce"] = "enforce"
    allow_unverified_replies: bool = False
    connect_timeout_seconds: float = Field(default=5, gt=0, le=120)
    deadline_seconds: float = Field(default=60, gt=0, le=600)
    """Whole time of one call, from the first byte to the last."""
    calls_per_second: float = Field(default=5, gt=0, le=10_000)
    queries_in_flight: int = Field(default=4, ge=1, le=256)
    read_attempts: int = Field(default=4, ge=1, le=10)
    ca_file: Path | None = None


class Settings(BaseModel):
    """Everything a run needs to know."""

    model_config = ConfigDict(frozen=True)
    database_url: SecretStr
    gateway_base_url: str
    sign_key: SecretStr
    gateway: GatewaySettings
    interface: dict[str, Tables]
    """The files of GATEWAY_FILES, parsed and overlaid, for the gateway client."""
    accounts: dict[str, AccountSettings]
    """By "<merchant_id>/<account_id>"."""
    rules: Rules
    config_dir: Path | None

    def account(self, merchant_id: str, *, account_id: str) -> AccountSettings:
        """The settings of one account.

        Raises:
            ConfigurationError: the account is not declared.
        """
        found = self.accounts.get(f"{merchant_id}/{account_id}")
        if found is None:
            known = ", ".join(sorted(self.accounts)) or "none"
            msg = (
                f"merchants.toml declares no account {merchant_id}/{account_id} (declared: {known})"
            )
            raise ConfigurationError(msg)
        return found


def bundled_config_dir() -> Path:
    """Where the configuration that ships with the product lies."""
    inside_wheel = Path(__file__).parent / "_config"
    if inside_wheel.is_dir():
        return inside_wheel
    return Path(__file__).parents[2] / "config"


def load_tables(name: str, *, config_dir: Path | None) -> Tables:
    """One configuration file by its stem, the user's keys laid over the bundled ones."""
    tables = _read_toml(bundled_config_dir() / f"{name}.toml")
    if config_dir is None:
        return tables
    if not config_dir.is_dir():
        msg = f"RECON_CONFIG_DIR names {config_dir}, which is not a folder"
        raise ConfigurationError(msg)
    return overlay(tables, over=_read_toml(config_dir / f"{name}.toml"))


def overlay(tables: Tables, *, over: Mapping[str, Any]) -> Tables:
    """`tables` with the keys of `over` laid on top, table by table."""
    merged = dict(tables)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            merged[key] = overlay(below, over=value)
        else:
            merged[key] = value
    return merged


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Settings from `RECON_*` variables and the files they point to.

    Raises:
        ConfigurationError: naming the variable, file and key that is missing or wrong.
    """
    config_dir = (
        Path(environment["RECON_CONFIG_DIR"]) if _given(environment, "RECON_CONFIG_DIR") else None
    )
    merchants = load_tables("merchants", config_dir=config_dir)
    try:
        return Settings(
            database_url=SecretStr(_required(environment, "RECON_DATABASE_URL")),
            gateway_base_url=_required(environment, "RECON_GATEWAY_BASE_URL"),
            sign_key=_sign_key(environment),
            gateway=GatewaySettings.model_validate(load_tables("gateway", config_dir=config_dir)),
            interface={name: load_tables(name, config_dir=config_dir) for name in GATEWAY_FILES},
            accounts={
                key: AccountSettings.model_validate(value)
                for key, value in merchants.get("accounts", {}).items()
            },
            rules=load_rules(config_dir=config_dir),
            config_dir=config_dir,
        )
    except ValidationError as error:
        problems = "; ".join(
            f"{error.title}.{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False)
        )
        msg = f"configuration: {problems}"
        raise ConfigurationError(msg) from None


def load_rules(*, config_dir: Path | None, rules_file: Path | None = None) -> Rules:
    """The rules of reconciliation: rules.toml in its layers, or one file named on its own."""
    if rules_file is not None:
        if not rules_file.is_file():
            msg = f"the rules file {rules_file} does not exist"
            raise ConfigurationError(msg)
        return Rules.of(_read_toml(rules_file), source=str(rules_file))
    return Rules.of(load_tables("rules", config_dir=config_dir), source="rules.toml")


def _sign_key(environment: Mapping[str, str]) -> SecretStr:
    if _given(environment, "RECON_SIGN_KEY"):
        return SecretStr(environment["RECON_SIGN_KEY"])
    if not _given(environment, "RECON_SIGN_KEY_FILE"):
        msg = "set RECON_SIGN_KEY, or RECON_SIGN_KEY_FILE to a file of mode 0600 that holds the key"
        raise ConfigurationError(msg)
    path = Path(environment["RECON_SIGN_KEY_FILE"])
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode not in SAFE_KEY_MODES:
            msg = f"the key file {path} has mode {mode:04o}; others can read it: chmod 600 {path}"
            raise ConfigurationError(msg)
        text = path.read_bytes()[:KEY_FILE_BYTES_MAX].decode()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"the key file {path} cannot be read: {error}"
        raise ConfigurationError(msg) from error
    return SecretStr(text.strip())


def _given(environment: Mapping[str, str], name: str) -> bool:
    return bool(environment.get(name, "").strip())


def _required(environment: Mapping[str, str], name: str) -> str:
    if not _given(environment, name):
        msg = f"the environment variable {name} is not set (`recon doctor` lists what is needed)"
        raise ConfigurationError(msg)
    return environment[name]


def _read_toml(path: Path) -> Tables:
    """The tables of a file; none when the file does not exist."""
    if not path.exists():
        return {}
    try:
        content = path.read_bytes()
        if len(content) > CONFIG_FILE_BYTES_MAX:
            msg = f"{path} is larger than {CONFIG_FILE_BYTES_MAX} bytes"
            raise ConfigurationError(msg)
        return tomllib.loads(content.decode())
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise ConfigurationError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8 (byte {error.start})"
        raise ConfigurationError(msg) from error
    except tomllib.TOMLDecodeError as error:
        msg = f"{path} is not valid TOML: {error}"
        raise ConfigurationError(msg) from error
