"""Signatures as the sandbox computes them, on its own: it never shares code with the client.

A signature is SHA-256, lower-case hex, over the values of a template's fields in order, without a
delimiter and without their spaces, a missing field empty, and then the sign key. The templates are
those of the bundled signature.toml.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from recon.config.settings import load_tables
from recon.model.errors import ConfigurationError

ALL_ROWS = "[]"
"""A field of this suffix is taken from every row of the request, in order."""


@cache
def signed_fields(template: str) -> tuple[str, ...]:
    """The names a signature covers, in order, from the bundled signature.toml.

    Raises:
        ConfigurationError: signature.toml has no such template.
    """
    templates = load_tables("signature", config_dir=None).get("base", {}).get("templates", {})
    if template not in templates:
        msg = f"signature.toml has no template {template}; the sandbox cannot sign it"
        raise ConfigurationError(msg)
    return tuple(templates[template])


def sign(
    template: str,
    fields: Mapping[str, Any],
    *,
    sign_key: str,
    rows: Iterable[Mapping[str, Any]] = (),
) -> str:
    """The signature of a message: 64 lower-case hexadecimal characters."""
    parts: list[str] = []
    for name in signed_fields(template):
        if name.endswith(ALL_ROWS):
            parts += [text_of(row.get(name.removesuffix(ALL_ROWS))) for row in rows]
        else:
            parts.append(text_of(fields.get(name)))
    plain = "".join(parts).replace(" ", "")
    return hashlib.sha256(f"{plain}{sign_key}".encode()).hexdigest()


def agrees(given: str, *, expected: str) -> bool:
    """Whether two signatures are the same, whatever the case, in constant time."""
    return hmac.compare_digest(given.lower().encode(), expected.lower().encode())


def text_of(value: Any) -> str:
    """A field as text: ids may come as numbers, everything that is not text or number is empty."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)
