"""Signatures of requests and replies, by templates that are data.

The signature covers ids, not amounts, and has no delimiter or time: it shows that both sides hold
the key, no more. Integrity comes from TLS and from comparing every echoed field (batch_reply).
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from enum import StrEnum

from recon.gateway_client.interface import GatewayInterface, ReplyPolicy, SignatureRules
from recon.gateway_client.rows import Credentials

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
    """The hexadecimal signature of a message; merchant and account come from the credentials."""
    rules = interface.signature
    known = {
        **fields,
        "merchant_id": credentials.merchant_id,
        "account_id": credentials.account_id,
    }
    values = _values(rules.templates[template], fields=known, rows=rows)
    plain = "".join(_spaceless(value, rules=rules) for value in values)
    # A reply may hold what is no text; it must not match, nor stop the reader.
    message = plain.encode(errors="surrogatepass")
    key = credentials.sign_key.get_secret_value().encode()
    if rules.algorithm == "hmac-sha256":
        signature = hmac.new(key, message, hashlib.sha256).hexdigest()
    else:
        signature = hashlib.sha256(message + key).hexdigest()
    return signature.upper() if rules.hex_case == "upper" else signature


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
) -> SignatureState:
    """What a reply's signature came to, against each value that would be right."""
    if policy == "off":
        return SignatureState.UNCHECKED
    if given == "":
        return SignatureState.ABSENT
    if given is None:
        return SignatureState.WRONG
    matches = [same_signature(given, expected=value) for value in expected]
    return SignatureState.VALID if any(matches) else SignatureState.WRONG


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
