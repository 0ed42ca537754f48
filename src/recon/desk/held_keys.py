"""Keys of the approvals service: it has the pair, all other processes only the public key.

The sandbox has a pair of its own that is published, so that a demo runs exactly as a live night
without any set-up. For any other gateway that pair is refused.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from recon.config.keys import KEY_FILE_BYTES_MAX, given, key_of_file
from recon.desk.endorsement import key_id
from recon.model.durable import flush_folder
from recon.model.errors import ConfigurationError
from recon.privacy.own_files import EVERYBODY, OWNER, for_owner, replace_result


def make_keys(private: Path, *, public: Path) -> Ed25519PublicKey:
    """Write a new pair of keys to two PEM files and return the public key.

    Raises:
        ConfigurationError: One of the files exists already, or its folder cannot be written.
    """
    for path in (private, public):
        if path.exists():
            msg = f"{path} is there already: the desk's key is made once; nothing was changed"
            raise ConfigurationError(msg)
    key = Ed25519PrivateKey.generate()
    _write(private, text=private_text(key), mode=OWNER)
    _write(public, text=public_text(key.public_key()), mode=EVERYBODY)
    return key.public_key()


def private_key(path: Path) -> Ed25519PrivateKey:
    """Read the private key of the approvals service.

    Raises:
        ConfigurationError: It is missing, others can read it, or it is not an Ed25519 key.
    """
    try:
        key = serialization.load_pem_private_key(key_of_file(path).encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        msg = f"{path} is not the desk's private key (`recon enrol --desk` makes one)"
        raise ConfigurationError(msg)
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """Read the public key that verifies endorsements.

    Raises:
        ConfigurationError: It is missing, or not an Ed25519 key.
    """
    try:
        text = path.read_bytes()[:KEY_FILE_BYTES_MAX]
    except OSError as error:
        msg = f"the desk's public key {path} cannot be read: {error.strerror}"
        raise ConfigurationError(msg) from error
    try:
        key = serialization.load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        msg = f"{path} is not the desk's public key (`recon enrol --desk` makes one)"
        raise ConfigurationError(msg)
    return key


def private_text(key: Ed25519PrivateKey) -> str:
    """Return the private key as text for its file: PEM, PKCS #8."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def public_text(key: Ed25519PublicKey) -> str:
    """Return the public key as text for its file: PEM."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def _write(path: Path, *, text: str, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w") as file:
            # The umask may have removed a right, and must not have left an additional one.
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        flush_folder(path.parent)
    except OSError as error:
        msg = f"the key {path} cannot be written: {error.strerror}"
        raise ConfigurationError(msg) from error


FILE_BYTES_MAX = 1024 * 1024
ENDING = ".spoken"
"""Suffix to the name of the key's file for the file of last signatures."""


@dataclass(frozen=True, slots=True)
class LastSignature:
    """The newest endorsement of one database."""

    sequence: int
    signature: str


class Memory:
    """A file with the newest endorsement that the approvals service signed for each database."""

    def __init__(self, path: Path, *, published: Path | None = None) -> None:
        """Use this file, which is created with the first endorsement.

        Args:
            path: The file of the approvals service; in a night, the published copy.
            published: Where the approvals service writes a copy that everybody can read.
        """
        self._path = path
        self._published = published

    def newest(self, database: str) -> LastSignature | None:
        """Return the newest endorsement; None if nothing was signed for the database.

        Raises:
            ConfigurationError: The file cannot be read, or is not of this format.
        """
        return self._all().get(database)

    def save(self, database: str, last_signature: LastSignature) -> None:
        """Store an endorsement durably if it is newer than the stored one.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        with self._turn():
            known = self._all()
            before = known.get(database)
            newer = before is None or before.sequence < last_signature.sequence
            self._write({**known, database: last_signature} if newer else known)

    def forget(self, database: str) -> None:
        """Forget a database, so that its own newest endorsement is accepted.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        with self._turn():
            self._write(
                {name: known_desk for name, known_desk in self._all().items() if name != database}
            )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the file's lock, so that of two services with one key no older state wins."""
        lock = self._path.with_name(f"{self._path.name}.lock")
        try:
            descriptor = for_owner(str(lock), os.O_RDWR | os.O_CREAT)
        except OSError as error:
            msg = f"the desk's memory {self._path} cannot be written: {error.strerror}"
            raise ConfigurationError(msg) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _all(self) -> dict[str, LastSignature]:
        try:
            with self._path.open("rb") as file:
                document = json.loads(file.read(FILE_BYTES_MAX))
            return {
                str(name): LastSignature(int(desk["sequence"]), str(desk["signature"]))
                for name, desk in document.items()
            }
        except FileNotFoundError:
            return {}
        except OSError as error:
            msg = f"the desk's memory {self._path} cannot be read: {error.strerror}"
            raise ConfigurationError(msg) from error
        except (ValueError, TypeError, KeyError, AttributeError):
            msg = f"{self._path} is not the desk's memory any more; nothing was changed"
            raise ConfigurationError(msg) from None

    def _write(self, known: dict[str, LastSignature]) -> None:
        text = json.dumps({name: asdict(desk) for name, desk in known.items()})
        for path, mode in ((self._path, OWNER), (self._published, EVERYBODY)):
            try:
                if path is not None:
                    replace_result(path, text, mode=mode, is_flushed=True)
                    flush_folder(path.parent)
            except OSError as error:
                msg = f"the desk's memory {path} cannot be written: {error.strerror}"
                raise ConfigurationError(msg) from error


CODES_ENDING = ".codes"
PRIVATE = "RECON_DESK_KEY_FILE"
PUBLIC = "RECON_DESK_PUBLIC_KEY_FILE"
SOCKET = "RECON_DESK_SOCKET"
SET_UP = f"set {PUBLIC} to the desk's public key (`recon enrol --desk` makes the pair)"
_KNOWN_TO_ALL = Ed25519PrivateKey.from_private_bytes(b"the sandbox's desk, not a secret")


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """The keys of the approvals service that this process has."""

    public: Ed25519PublicKey | None
    """None: no endorsement can be verified, so none counts."""
    private: Ed25519PrivateKey | None
    """None: this process is not the approvals service."""
    must_be_proven: bool
    """Whether only endorsements proven by a one-time code count."""
    memory: Path | None = None
    """File of the last signatures; None outside the approvals service and for SANDBOX_KEYS."""
    published: Path | None = None
    """Its published copy, which everybody can read; None for SANDBOX_KEYS and without keys."""

    def __repr__(self) -> str:
        held = "both keys" if self.private else "public key" if self.public else "no key"
        return f"HeldKeys({held})"

    @property
    def codes(self) -> Path | None:
        """File of used and wrong one-time codes; None: in the database, as in the sandbox."""
        if self.memory is None:
            return None
        return self.memory.with_name(self.memory.name.removesuffix(ENDING) + CODES_ENDING)

    @property
    def name(self) -> str:
        """Id of the public key; "" without one."""
        return key_id(self.public) if self.public else ""


NO_KEYS = HeldKeys(None, None, must_be_proven=True)
SANDBOX_KEYS = HeldKeys(_KNOWN_TO_ALL.public_key(), _KNOWN_TO_ALL, must_be_proven=False)


def held_keys(variables: Mapping[str, str], *, is_sandbox: bool) -> HeldKeys:
    """Return the keys that the environment variables name.

    Without any, the sandbox has its own pair, and other gateways have none.

    Raises:
        ConfigurationError: A file is missing, not a key or readable by others, the two are not a
            pair, or the sandbox's own pair is named for another gateway.
    """
    private = _named(variables, PRIVATE)
    public = _named(variables, PUBLIC)
    if private is None and public is None:
        return SANDBOX_KEYS if is_sandbox else NO_KEYS
    own = None if private is None else private_key(private)
    known = public_key(public) if public is not None else None
    if own is not None:
        if known is not None and key_id(known) != key_id(own.public_key()):
            msg = f"{PUBLIC} and {PRIVATE} name two keys that are no pair"
            raise ConfigurationError(msg)
        known = own.public_key()
    held = HeldKeys(
        known,
        own,
        must_be_proven=not is_sandbox,
        memory=None if private is None else private.with_name(private.name + ENDING),
        published=_published(private, public=public),
    )
    if not is_sandbox and held.name == SANDBOX_KEYS.name:
        msg = f"{PUBLIC} names the key of the sandbox, which everybody knows; {SET_UP}"
        raise ConfigurationError(msg)
    return held


def _published(private: Path | None, *, public: Path | None) -> Path | None:
    """Return the path next to the public key, whose default is next to the private one."""
    public_path = public or (None if private is None else private.with_suffix(".pub"))
    return None if public_path is None else public_path.with_name(public_path.name + ENDING)


def _named(variables: Mapping[str, str], name: str) -> Path | None:
    return Path(variables[name]) if given(variables, name) else None
