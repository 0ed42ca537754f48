"""Signatures of requests and replies, by templates that are data.

The signature covers ids, not amounts, and has no delimiter or time: it shows that both sides hold
the key, no more. Integrity comes from TLS and from comparing every echoed field. Who signs is a
key in this process, or a `Signer`: another process that holds it.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from pydantic import SecretStr

from recon.gateway_client.interface import GatewayInterface, SignatureRules
from recon.privacy.foreign_text import without_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A message that is to be signed, or whose signature is to be checked: named fields only."""

    template: str
    """Of signature.toml: the operation, or payment_reply."""
    merchant_id: str
    account_id: str
    fields: Mapping[str, str] = field(repr=False)
    rows: tuple[Mapping[str, str], ...] = field(default=(), repr=False)


class Signer(Protocol):
    """Somebody who holds the key and signs for us; `signer_socket` is one."""

    def sign(self, wanted: Wanted) -> str:
        """The signature of a message, in hexadecimal.

        Raises:
            UnsignedError: refused, or nobody is there; nothing was signed.
        """
        ...

    def matches(self, wanted: Wanted, *, given: str) -> bool:
        """Whether `given` is the signature of a message.

        Raises:
            UnsignedError: nobody is there to say.
        """
        ...


Made = TypeVar("Made")

SPACE = " "
EACH_ROW = "[]"
"""Behind a field name in a template: the field of every row, in order."""


KEY_CHARACTERS_MIN = 8
"""A signing key is no shorter; the sandbox's is."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who calls, and the key that signs or who holds it; the key never shows in a repr."""

    merchant_id: str
    account_id: str
    sign_key: SecretStr | Signer

    @property
    def private(self) -> frozenset[str]:
        """What no reply may bring into a message; a shorter key is a word that stands anywhere.

        Of a key that a signer holds nothing is known here.
        """
        if not isinstance(self.sign_key, SecretStr):
            return frozenset()
        key = self.sign_key.get_secret_value()
        return frozenset({key} if len(key) >= KEY_CHARACTERS_MIN else ())

    def message(self, fields: Mapping[str, Any], *, signature: str) -> dict[str, Any]:
        """A request: its own fields between those that every request has."""
        ours = {"merchant_id": self.merchant_id, "account_id": self.account_id}
        return {**ours, **fields, "encryption_data": signature}

    def without_key(self, text: bytes) -> bytes:
        """A reply in which the gateway quotes the key, without it."""
        return without_values(text, values=self.private)


class SignatureState(StrEnum):
    """What the signature of a reply came to."""

    VALID = "valid"
    ABSENT = "absent"
    WRONG = "wrong"
    UNCHECKED = "unchecked"

    def is_enough(self, *, may_lack: bool) -> bool:
        """Whether a reply may be believed as far as its signature goes.

        Args:
            may_lack: The rule of its operation: a reply without one is as good.
        """
        return self is SignatureState.VALID or (may_lack and self is SignatureState.ABSENT)


def sign(
    template: str,
    *,
    fields: Mapping[str, str],
    rows: Sequence[Mapping[str, str]] = (),
    credentials: Credentials,
    interface: GatewayInterface,
) -> str:
    """The hexadecimal signature of a message; merchant and account come from the credentials.

    Raises:
        UnsignedError: whoever holds the key refused, or is not there.
    """
    wanted = _wanted(template, fields=fields, rows=rows, credentials=credentials)
    if isinstance(credentials.sign_key, SecretStr):
        return signed_with(credentials.sign_key, wanted, interface=interface)
    return credentials.sign_key.sign(wanted)


def is_signed(
    given: str,
    template: str,
    *,
    fields: Mapping[str, str],
    rows: Sequence[Mapping[str, str]] = (),
    credentials: Credentials,
    interface: GatewayInterface,
) -> bool:
    """Whether a signature that came is the one of this message; over any text.

    Only the fields that it covers are looked at, or shown to who holds the key.

    Raises:
        UnsignedError: whoever holds the key is not there to say.
    """
    covered = interface.signature.templates[template]
    shown = {name: fields[name] for name in covered if name in fields}
    wanted = _wanted(template, fields=shown, rows=rows, credentials=credentials)
    if isinstance(credentials.sign_key, SecretStr):
        expected = signed_with(credentials.sign_key, wanted, interface=interface)
        return same_signature(given, expected=expected)
    return credentials.sign_key.matches(wanted, given=given)


def signed_with(key: SecretStr, wanted: Wanted, *, interface: GatewayInterface) -> str:
    """The signature of a message by a key that is at hand."""
    rules = interface.signature
    known = {
        **wanted.fields,
        "merchant_id": wanted.merchant_id,
        "account_id": wanted.account_id,
    }
    values = _values(rules.templates[wanted.template], fields=known, rows=wanted.rows)
    plain = "".join(_spaceless(value, rules=rules) for value in values)
    # A reply may hold what is no text; it must not match, nor stop the reader.
    message = plain.encode(errors="surrogatepass")
    secret = key.get_secret_value().encode()
    if rules.algorithm == "hmac-sha256":
        signature = hmac.new(secret, message, hashlib.sha256).hexdigest()
    else:
        signature = hashlib.sha256(message + secret).hexdigest()
    return signature.upper() if rules.hex_case == "upper" else signature


async def beside(credentials: Credentials, make: Callable[[], Made]) -> Made:
    """What `make` makes, in a thread where it waits for another process to sign."""
    if isinstance(credentials.sign_key, SecretStr):
        return make()
    return await asyncio.to_thread(make)


def same_signature(given: str, *, expected: str) -> bool:
    """Whether two hexadecimal signatures are equal, in constant time, ignoring case."""
    return hmac.compare_digest(
        given.lower().encode(errors="replace"), expected.lower().encode(errors="replace")
    )


def _wanted(
    template: str,
    *,
    fields: Mapping[str, str],
    rows: Sequence[Mapping[str, str]],
    credentials: Credentials,
) -> Wanted:
    return Wanted(
        template=template,
        merchant_id=credentials.merchant_id,
        account_id=credentials.account_id,
        fields=fields,
        rows=tuple(rows),
    )


def _values(
    names: Sequence[str], *, fields: Mapping[str, str], rows: Sequence[Mapping[str, str]]
) -> list[str]:
    values: list[str] = []
    for name in names:
        if name.endswith(EACH_ROW):
            values.extend(row.get(name.removesuffix(EACH_ROW), "") for row in rows)
        else:
            values.append(fields.get(name, ""))
    return values


def _spaceless(value: str, *, rules: SignatureRules) -> str:
    """Only U+0020 is a space here (A-17): all other white space is part of what is signed."""
    if rules.whitespace == "remove-spaces":
        return value.replace(SPACE, "")
    return value.strip(SPACE) if rules.whitespace == "strip" else value
