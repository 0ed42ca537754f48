"""What the signer is told, in a file of its own: keys, whose word counts, and its own limits.

The file belongs to the signer's user. Nothing of a worker's configuration counts here: whoever took
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
"""Stands in `by_rule` for every currency that has no table of its own."""
_K = InstructionKind
COUNTS_AS: Mapping[InstructionKind, InstructionKind | None] = {
    _K.CAPTURE: _K.CAPTURE,
    _K.REFUND: _K.REFUND,
    _K.CANCEL: _K.CANCEL,
    _K.PAYOUT: _K.PAYOUT,
    _K.REVIEW: _K.REFUND,
    _K.CANCEL_SUBSCRIPTION: None,
}
"""Kind -> whose limits of `by_rule` it uses up; None: people decide, always. A review can make
money of a hold and is signed like a refund; a subscription's texts read like a payment's id."""


class RuleBounds(DeclaredTable):
    """What is signed of one kind and currency without people; major units."""

    count: int = Field(ge=1)
    """Instructions in 24 hours."""
    item: Decimal | None = Field(default=None, ge=0)
    """The largest; absent: nothing bounds one."""
    day: Decimal | None = Field(default=None, ge=0)
    """Sum of 24 hours; absent: nothing bounds it."""


class SignerAccount(DeclaredTable):
    """One account whose requests are signed."""

    sign_key_file: Path | None = None
    """Its own key; absent: that of the installation."""
    by_rule: dict[InstructionKind, dict[CurrencyCode | Literal["any"], RuleBounds]] = Field(
        default_factory=dict
    )
    """A kind that is absent is never signed without people."""

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
        """What holds for a currency, and under which name it counts; None: only with people."""
        whose = COUNTS_AS[kind]
        tables = {} if whose is None else self.by_rule.get(whose, {})
        name = currency if currency in tables else ANY
        return (name, tables[name]) if name in tables else None


class SignerFile(DeclaredTable):
    """The signer's own file, as it stands."""

    socket: Path
    group: str = ""
    """Whose members may ask, beside the signer's own user."""
    book: Path
    """Where it keeps what it signed, so that its limits count over a restart."""
    log: Path | None = None
    """One JSON object a line; absent: the standard error."""
    sign_key_file: Path | None = None
    desk_key_file: Path | None = None
    """The desk's public key; absent: nothing counts as approved by people."""
    must_be_proven: bool = True
    """Only words of people count that a one-time code proved."""
    signs_free_fields: bool = False
    """Also what starts payments, and queries whose signature covers texts of the caller."""
    calls_per_second: float = Field(default=50, gt=0, le=10_000)
    profile: Literal["base", "extended"] = "base"
    config_dir: Path | None = None
    """The folder of the signer's own signature.toml and profiles.toml."""
    accounts: dict[str, SignerAccount] = Field(min_length=1)
    """By "<merchant_id>/<account_id>"."""


class SignerSettings(BaseModel):
    """Everything the signer stands on, read once when it starts."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
    file: SignerFile
    interface: GatewayInterface
    keys: Mapping[str, SecretStr]
    """By account."""
    desk_key: Ed25519PublicKey | None


def signer_settings(path: Path) -> SignerSettings:
    """The signer's settings from its file.

    Raises:
        ConfigurationError: the file, a key in it, or a file that it names is wrong or open to
            others.
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
    """A signature has no delimiter: what stands in it must be that of one account only."""
    named = sorted((account.replace("/", ""), account) for account in keys)
    for (text, account), (longer, other) in combinations(named, 2):
        if longer.startswith(text) and keys[account] == keys[other]:
            msg = (
                f"{source}: a signature for {account} could be taken for one of {other}, since "
                "both names begin alike and the key is the same: give one of them its own"
            )
            raise ConfigurationError(msg)
