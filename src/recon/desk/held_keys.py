"""Which keys of the desk this process has: nights and readers the public one, the desk both.

The sandbox has a pair of its own that everybody knows, so that a demo walks the very path of a live
night without a set-up. Towards any other gateway that pair counts for nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from recon.config.keys import given
from recon.desk.endorsement import key_id
from recon.desk.key_files import private_key, public_key
from recon.desk.memory import ENDING
from recon.model.errors import ConfigurationError

CODES_ENDING = ".codes"
PRIVATE = "RECON_DESK_KEY_FILE"
PUBLIC = "RECON_DESK_PUBLIC_KEY_FILE"
SOCKET = "RECON_DESK_SOCKET"
SET_UP = f"set {PUBLIC} to the desk's public key (`recon desk init` makes the pair)"
_KNOWN_TO_ALL = Ed25519PrivateKey.from_private_bytes(b"the sandbox's desk, not a secret")


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """The desk's keys as this process has them."""

    public: Ed25519PublicKey | None
    """None: nobody's word can be checked, so none counts."""
    private: Ed25519PrivateKey | None
    """None: this process is not the desk."""
    must_be_proven: bool
    """Whether only words count that a one-time code proved."""
    memory: Path | None = None
    """Where the desk remembers what it said; None: this process is not the desk, or everybody's."""
    published: Path | None = None
    """Where everybody reads what the newest word is; None: the sandbox's desk tells nobody."""

    def __repr__(self) -> str:
        held = "both keys" if self.private else "public key" if self.public else "no key"
        return f"HeldKeys({held})"

    @property
    def codes(self) -> Path | None:
        """Where the desk keeps used and wrong codes; None: in the database, as at the sandbox."""
        if self.memory is None:
            return None
        return self.memory.with_name(self.memory.name.removesuffix(ENDING) + CODES_ENDING)

    @property
    def name(self) -> str:
        """The id of the key that counts; "" without one."""
        return key_id(self.public) if self.public else ""


NO_KEYS = HeldKeys(None, None, must_be_proven=True)
SANDBOX_KEYS = HeldKeys(_KNOWN_TO_ALL.public_key(), _KNOWN_TO_ALL, must_be_proven=False)


def held_keys(variables: Mapping[str, str], *, is_sandbox: bool) -> HeldKeys:
    """The keys that the variables name.

    Without any the sandbox has its own, and towards another gateway there are none.

    Raises:
        ConfigurationError: a file is missing, no key, readable by others, the two are no pair, or
            the sandbox's own pair is named for another gateway.
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
    """Beside the public key, which `recon desk init` makes beside the private one."""
    beside = public or (None if private is None else private.with_suffix(".pub"))
    return None if beside is None else beside.with_name(beside.name + ENDING)


def _named(variables: Mapping[str, str], name: str) -> Path | None:
    return Path(variables[name]) if given(variables, name) else None
