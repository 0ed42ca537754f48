"""Secrets from the environment, or from files that only their owner can read, per account.

An account that names a key of its own never falls back to the shared one. An error in its key is
reported when that account needs it, so that other accounts are not affected.
"""

import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr, model_validator

from recon.config.declared import DeclaredTable, S3Access
from recon.model.errors import ConfigurationError

KEY_FILE_BYTES_MAX = 4_096
SIGN_KEY = "RECON_SIGN_KEY"
KEY_VARIABLES = (SIGN_KEY, f"{SIGN_KEY}_FILE")
SIGNER_VARIABLE = "RECON_SIGNER"
"""Names the socket of the process that holds the keys (`recon serve signer`)."""
SANDBOX_SIGN_KEY = "sandbox"
"""The sandbox's well-known sign key; no gateway with real money accepts it."""
SAFE_KEY_MODES = frozenset({0o600, 0o400})


class OwnSignKey(DeclaredTable):
    """Where the signing key of one account is, when it has its own."""

    sign_key_env: str = ""
    """The variable that holds it."""
    sign_key_file: Path | None = None
    """Or the file, of mode 0600 or 0400."""

    @model_validator(mode="after")
    def _in_one_place(self) -> "OwnSignKey":
        if self.sign_key_env and self.sign_key_file:
            msg = "name one of sign_key_env and sign_key_file"
            raise ValueError(msg)
        return self

    @property
    def is_own(self) -> bool:
        """Whether the account names a key of its own."""
        return bool(self.sign_key_env or self.sign_key_file)


@dataclass(frozen=True, slots=True)
class SignKeys:
    """The signing keys of an installation, as read at its start."""

    shared: SecretStr | str
    """Key of accounts without their own; a text is the reason why there is none."""
    own: Mapping[str, SecretStr | str]
    """By "<merchant_id>/<account_id>"; likewise."""
    signer: Path | None = None
    """The socket of the process that holds all keys; None: this process does."""

    @classmethod
    def read(
        cls, environment: Mapping[str, str], *, accounts: Mapping[str, OwnSignKey]
    ) -> "SignKeys":
        """Read all available keys; an error in one is reported when its account needs it.

        Raises:
            ConfigurationError: a signer holds the keys, and one is accessible here as well.
        """
        signer = signer_of(environment, accounts=accounts)
        if signer is not None:
            sentence = f"the signer at {signer} holds the sign keys, not this process"
            return cls(sentence, {}, signer=signer)
        own = {
            key: _reported(partial(_own_key, environment, account=key, named=named))
            for key, named in accounts.items()
            if named.is_own
        }
        return cls(_reported(partial(_shared_key, environment)), own)

    @property
    def are_of_sandbox(self) -> bool:
        """Whether the sandbox's key is the only one with which this process can sign."""
        keys = [key for key in (self.shared, *self.own.values()) if isinstance(key, SecretStr)]
        return {key.get_secret_value() for key in keys} == {SANDBOX_SIGN_KEY}

    def of(self, account: str) -> SecretStr:
        """The key of one account.

        Raises:
            ConfigurationError: naming the variable or file that is missing or wrong.
        """
        key = self.own.get(account, self.shared)
        if isinstance(key, str):
            raise ConfigurationError(key)
        return key

    def refuse_nothing_given(self, accounts: Collection[str]) -> None:
        """Refuse to start without any key; a single missing key is reported by its account later.

        Raises:
            ConfigurationError: there is no key at all, and an account needs the shared one.
        """
        if self.signer is not None or any(isinstance(key, SecretStr) for key in self.own.values()):
            return
        if isinstance(self.shared, str) and (not accounts or set(accounts) - set(self.own)):
            raise ConfigurationError(self.shared)


def signer_of(environment: Mapping[str, str], *, accounts: Mapping[str, OwnSignKey]) -> Path | None:
    """The socket of the signer that holds the keys; None where runs hold them themselves.

    Raises:
        ConfigurationError: a key is accessible here, although the signer is to protect it.
    """
    if not given(environment, SIGNER_VARIABLE):
        return None
    also_set = [name for name in KEY_VARIABLES if given(environment, name)]
    for account, named in sorted(accounts.items()):
        if named.sign_key_env and given(environment, named.sign_key_env):
            also_set.append(named.sign_key_env)
        if named.sign_key_file:
            also_set.append(f'sign_key_file of accounts."{account}" in merchants.toml')
    if also_set:
        msg = (
            f"{SIGNER_VARIABLE} names a signer that holds the keys, and {', '.join(also_set)} "
            "gives one here as well, where whatever runs as this user has it: take it out"
        )
        raise ConfigurationError(msg)
    return Path(environment[SIGNER_VARIABLE].strip())


def keys_in_environment(
    environment: Mapping[str, str], *, accounts: Mapping[str, OwnSignKey]
) -> tuple[str, ...]:
    """The variables of this process with a sign key, visible to all who can see its environment."""
    own = {named.sign_key_env for named in accounts.values() if named.sign_key_env}
    return tuple(name for name in (SIGN_KEY, *sorted(own)) if given(environment, name))


def _reported(read: Callable[[], SecretStr]) -> SecretStr | str:
    try:
        return read()
    except ConfigurationError as error:
        return str(error)


def _own_key(environment: Mapping[str, str], *, account: str, named: OwnSignKey) -> SecretStr:
    if named.sign_key_file:
        return SecretStr(key_of_file(named.sign_key_file))
    if not given(environment, named.sign_key_env):
        msg = (
            f'merchants.toml: accounts."{account}": sign_key_env names {named.sign_key_env}, '
            "which is not set; the key of other accounts is not used for it"
        )
        raise ConfigurationError(msg)
    return SecretStr(environment[named.sign_key_env])


def _shared_key(environment: Mapping[str, str]) -> SecretStr:
    key = secret_of(environment, SIGN_KEY)
    if key is None:
        msg = (
            "set RECON_SIGN_KEY, or RECON_SIGN_KEY_FILE to a file of mode 0600 that holds the "
            "key, or give every account its own (sign_key_env in merchants.toml), or name a "
            f"signer ({SIGNER_VARIABLE})"
        )
        raise ConfigurationError(msg)
    return key


def secret_of(environment: Mapping[str, str], name: str) -> SecretStr | None:
    """The secret in variable `name`, or in the file that `name`_FILE names; None without both.

    Raises:
        ConfigurationError: the file can be read by others than its owner.
    """
    if given(environment, name):
        return SecretStr(environment[name])
    if given(environment, f"{name}_FILE"):
        return SecretStr(key_of_file(Path(environment[f"{name}_FILE"])))
    return None


def given(environment: Mapping[str, str], name: str) -> bool:
    """Whether a variable is set to more than white space."""
    return bool(environment.get(name, "").strip())


def key_of_file(path: Path) -> str:
    """Read a secret from a file that only its owner can read.

    Raises:
        ConfigurationError: no such file, others can read it, or it holds no key.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            msg = f"the key file {path} is not a regular file"
            raise ConfigurationError(msg)
        mode = stat.S_IMODE(status.st_mode)
        if mode not in SAFE_KEY_MODES:
            msg = f"the key file {path} has mode {mode:04o}; others can read it: chmod 600 {path}"
            raise ConfigurationError(msg)
        if status.st_size > KEY_FILE_BYTES_MAX:
            msg = f"the key file {path} is larger than {KEY_FILE_BYTES_MAX} bytes: not a key"
            raise ConfigurationError(msg)
        key = path.read_bytes().decode().strip()
    except UnicodeDecodeError as error:
        msg = f"the key file {path} is not UTF-8 (byte {error.start})"
        raise ConfigurationError(msg) from None
    except OSError as error:
        msg = f"the key file {path} cannot be read: {error.strerror}"
        raise ConfigurationError(msg) from error
    if not key:
        msg = f"the key file {path} holds no key"
        raise ConfigurationError(msg)
    return key


def address_of(address: str, *, variable: str) -> str:
    """The address unchanged, after checking its port.

    Raises:
        ConfigurationError: the port is invalid.
    """
    try:
        _ = urlsplit(address).port
    except ValueError:
        msg = f"the environment variable {variable} is no address such as https://host:443/path"
        raise ConfigurationError(msg) from None
    return address


def storage_keys(access: S3Access, variables: Mapping[str, str]) -> tuple[str, str]:
    """The id of a storage's access key, and the secret key.

    Raises:
        ConfigurationError: a variable is not set, or the file can be read by others.
    """
    access_key = _storage_key(access.access_key_env, variables)
    if access.secret_key_file is not None:
        return access_key, key_of_file(access.secret_key_file)
    return access_key, _storage_key(access.secret_key_env, variables)


def _storage_key(name: str, variables: Mapping[str, str]) -> str:
    text = variables.get(name, "").strip()
    if not text:
        msg = f"the environment variable {name}, a key of the storage, is not set"
        raise ConfigurationError(msg)
    return text
