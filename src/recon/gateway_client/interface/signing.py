"""Signatures of requests and replies, by templates that are data.

The signature covers ids, not amounts, and has no delimiter or time: it shows that both sides hold
the key, no more. Integrity comes from TLS and from comparing every echoed field (batch_reply).
Who signs is a `Signer` (signer.py): a key in this process, or another process that holds it.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from pydantic import SecretStr

from recon.gateway_client.interface.described import GatewayInterface, ReplyPolicy, SignatureRules
from recon.gateway_client.interface.rows import Credentials
from recon.gateway_client.wire.signer import Wanted
from recon.gateway_client.wire.wire_errors import UnsignedError

Made = TypeVar("Made")

SPACE = " "
EACH_ROW = "[]"
"""Behind a field name in a template: the field of every row, in order."""


class SignatureState(StrEnum):
    """What the signature of a reply came to."""

    VALID = "valid"
    ABSENT = "absent"
    WRONG = "wrong"
    UNCHECKED = "unchecked"

    def is_enough(self, *, policy: ReplyPolicy, may_lack: bool) -> bool:
        """Whether a reply may be believed as far as its signature goes.

        Args:
            policy: Only `enforce` doubts a reply for its signature.
            may_lack: The rule of its operation: a reply without one is as good.
        """
        if policy != "enforce" or self is SignatureState.VALID:
            return True
        return may_lack and self is SignatureState.ABSENT


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


def reply_signature(
    given: str | None,
    *,
    expected: Sequence[str],
    policy: ReplyPolicy,
    otherwise: Callable[[str], bool] | None = None,
) -> SignatureState:
    """What a reply's signature came to, against each value that would be right.

    `otherwise` says of a value that is none of these whether it is right all the same; it is asked
    last, since it may take the key.
    """
    if policy == "off":
        return SignatureState.UNCHECKED
    if given == "":
        return SignatureState.ABSENT
    if given is None:
        return SignatureState.WRONG
    matches = [same_signature(given, expected=value) for value in expected]
    if any(matches):
        return SignatureState.VALID
    try:
        holds = otherwise is not None and otherwise(given)
    except UnsignedError:
        return SignatureState.UNCHECKED
    return SignatureState.VALID if holds else SignatureState.WRONG


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
