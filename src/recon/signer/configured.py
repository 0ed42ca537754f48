"""Settings of the signer, in a file of its own: keys, key of the approvals service, and limits.

The file belongs to the signer's user. No configuration of a worker counts here, since whoever took
over a worker could have changed it.
"""

from collections.abc import Mapping
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from recon.config.declared import CurrencyCode, DeclaredTable, declared
from recon.config.keys import key_of_file
from recon.config.settings import GATEWAY_FILES, load_tables, read_toml
from recon.desk.held_keys import public_key
from recon.gateway_client.errors import InterfaceError
from recon.gateway_client.interface import GatewayInterface
from recon.model.errors import ConfigurationError
from recon.model.terms import InstructionKind
from recon.privacy.own_files import others_may_change

ANY = "any"
"""Key in `by_rule` for all currencies that have no table of their own."""
_K = InstructionKind
COUNTS_AS: Mapping[InstructionKind, InstructionKind | None] = {
    _K.CAPTURE: _K.CAPTURE,
    _K.REFUND: _K.REFUND,
    _K.CANCEL: _K.CANCEL,
    _K.PAYOUT: _K.PAYOUT,
    _K.REVIEW: _K.REFUND,
    _K.CANCEL_SUBSCRIPTION: None,
}
"""Kind -> kind whose `by_rule` limits it uses; None: people always decide. A review can turn a hold
into money and is limited like a refund; a subscription's texts could be read as a payment's id."""


class RuleBounds(DeclaredTable):
    """Limits on one kind and currency for signing without people; in major units."""

    count: int = Field(ge=1)
    """Maximum number of instructions in 24 hours."""
    item: Decimal | None = Field(default=None, ge=0)
    """Maximum amount of one instruction; None: no limit."""
    day: Decimal | None = Field(default=None, ge=0)
    """Maximum sum in 24 hours; None: no limit."""


class SignerAccount(DeclaredTable):
    """One account whose requests are signed."""

    sign_key_file: Path | None = None
    """Its own key; None: that of the installation."""
    by_rule: dict[InstructionKind, dict[CurrencyCode | Literal["any"], RuleBounds]] = Field(
        default_factory=dict
    )
    """A kind without limits is never signed without people."""

    @model_validator(mode="after")
    def _limits_where_they_count(self) -> "SignerAccount":
        for kind in self.by_rule:
            whose = COUNTS_AS[kind]
            if whose is None:
                msg = f"by_rule.{kind.value}: a {kind.value} always needs two people"
                raise ValueError(msg)
            if whose is not kind:
                msg = f"by_rule.{kind.value}: a {kind.value} counts against by_rule.{whose.value}"
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _no_sums_over_currencies(self) -> "SignerAccount":
        for kind, tables in self.by_rule.items():
            general = tables.get(ANY)
            if general is not None and (general.item, general.day) != (None, None):
                msg = f"by_rule.{kind.value}.any has no item or day: currencies are not added up"
                raise ValueError(msg)
        return self

    def bounds(self, kind: InstructionKind, *, currency: str) -> tuple[str, RuleBounds] | None:
        """Return the table name and limits that apply to a currency; None: only with people."""
        whose = COUNTS_AS[kind]
        tables = {} if whose is None else self.by_rule.get(whose, {})
        name = currency if currency in tables else ANY
        return (name, tables[name]) if name in tables else None


class SignerFile(DeclaredTable):
    """The signer's own file."""

    socket: Path
    group: str = ""
    """Group whose members may send requests, besides the signer's own user."""
    signature_log: Path
    """File in which it stores what it signed, so that limits count across restarts."""
    log: Path | None = None
    """File with one JSON object per line; None: standard error."""
    sign_key_file: Path | None = None
    desk_key_file: Path | None = None
    """Public key of the approvals service; None: nothing counts as approved by people."""
    must_be_proven: bool = True
    """Whether only endorsements proven by a one-time code count."""
    signs_free_fields: bool = False
    """Whether to sign also starts of payments, and queries whose signature covers free texts."""
    calls_per_second: float = Field(default=50, gt=0, le=10_000)
    profile: Literal["base", "extended"] = "base"
    config_dir: Path | None = None
    """Folder of the signer's own signature.toml and profiles.toml."""
    accounts: dict[str, SignerAccount] = Field(min_length=1)
    """By "<merchant_id>/<account_id>"."""


class SignerSettings(BaseModel):
    """All settings of the signer, read once when it starts."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
    file: SignerFile
    interface: GatewayInterface
    keys: Mapping[str, SecretStr]
    """By account."""
    desk_key: Ed25519PublicKey | None


def signer_settings(path: Path) -> SignerSettings:
    """Read the signer's settings from its file.

    Raises:
        ConfigurationError: The file, a key in it, or a file that it names is invalid, or accessible
            to others.
    """
    given = _read(path)
    tables: dict[str, Any] = {
        name: load_tables(name, config_dir=given.config_dir) for name in GATEWAY_FILES
    }
    try:
        interface = GatewayInterface.of(**tables, profile=given.profile)
    except InterfaceError as error:
        raise ConfigurationError(str(error)) from error
    keys = {name: _key_of(given, name, source=path) for name in given.accounts}
    _refuse_ambiguous(keys, source=path)
    desk = None if given.desk_key_file is None else public_key(given.desk_key_file)
    return SignerSettings(file=given, interface=interface, keys=keys, desk_key=desk)


def _read(path: Path) -> SignerFile:
    try:
        if others_may_change(path):
            msg = f"{path} decides what is signed, and others can change it: chmod go-w {path}"
            raise ConfigurationError(msg)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise ConfigurationError(msg) from error
    return declared(SignerFile, read_toml(path), source=str(path))


def _key_of(given: SignerFile, account: str, *, source: Path) -> SecretStr:
    path = given.accounts[account].sign_key_file or given.sign_key_file
    if path is None or account.count("/") != 1:
        msg = (
            f'{source}: accounts."{account}": name it "<merchant>/<account>", and its key '
            "(sign_key_file, here or for all)"
        )
        raise ConfigurationError(msg)
    return SecretStr(key_of_file(path))


def _refuse_ambiguous(keys: Mapping[str, SecretStr], *, source: Path) -> None:
    """Refuse two accounts with one key if a signature, which has no delimiters, may fit both."""
    named = sorted((account.replace("/", ""), account) for account in keys)
    for (text, account), (longer, other) in combinations(named, 2):
        if longer.startswith(text) and keys[account] == keys[other]:
            msg = (
                f"{source}: a signature for {account} could be taken for one of {other}, since "
                "both names begin alike and the key is the same: give one of them its own"
            )
            raise ConfigurationError(msg)
