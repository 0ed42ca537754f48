"""The desk's two keys on the disk: the private one for its own login alone, the public for all."""

import os
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from recon.config.keys import KEY_FILE_BYTES_MAX, key_of_file
from recon.model.durable import flush_folder
from recon.model.errors import ConfigurationError

PRIVATE_MODE = 0o600
PUBLIC_MODE = 0o644


def make_keys(private: Path, *, public: Path) -> Ed25519PublicKey:
    """A new pair of keys in two PEM files; the public one.

    Raises:
        ConfigurationError: one of the files is there already, or its folder cannot be written.
    """
    for path in (private, public):
        if path.exists():
            msg = f"{path} is there already: the desk's key is made once; nothing was changed"
            raise ConfigurationError(msg)
    key = Ed25519PrivateKey.generate()
    _write(private, text=private_text(key), mode=PRIVATE_MODE)
    _write(public, text=public_text(key.public_key()), mode=PUBLIC_MODE)
    return key.public_key()


def private_key(path: Path) -> Ed25519PrivateKey:
    """The desk's own key.

    Raises:
        ConfigurationError: there is none, others can read it, or it is no Ed25519 key.
    """
    try:
        key = serialization.load_pem_private_key(key_of_file(path).encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        msg = f"{path} is not the desk's private key (`recon desk init` makes one)"
        raise ConfigurationError(msg)
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The key with which everybody checks what the desk signed.

    Raises:
        ConfigurationError: there is none, or it is no Ed25519 key.
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
        msg = f"{path} is not the desk's public key (`recon desk init` makes one)"
        raise ConfigurationError(msg)
    return key


def private_text(key: Ed25519PrivateKey) -> str:
    """The private key as its file has it: PEM, PKCS #8."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def public_text(key: Ed25519PublicKey) -> str:
    """The public key as its file has it: PEM."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def _write(path: Path, *, text: str, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w") as file:
            # The umask may have taken a right; it must not have left one more.
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        flush_folder(path.parent)
    except OSError as error:
        msg = f"the key {path} cannot be written: {error.strerror}"
        raise ConfigurationError(msg) from error
