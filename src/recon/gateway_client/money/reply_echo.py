"""Whether a reply's row echoes what was sent; a missing echo proves nothing and differs too."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from recon.gateway_client.interface.operation_formats import OperationFormat, SingleOperation
from recon.gateway_client.interface.rows import RefundRow, Row
from recon.gateway_client.wire.json_reply import PADDING, text_of

MASK = "*"
"""Stands for characters that the gateway, or our own journal, does not show."""

_AMOUNT = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?", re.ASCII)


def differing_fields(
    sent: Row, *, answer: Mapping[str, Any], description: OperationFormat
) -> list[str]:
    """Fields of a reply's row that are not what was sent."""
    differing = [
        name
        for name in description.echo_fields
        if not _echoes(getattr(sent, name), given=text_of(answer.get(name)))
    ]
    if isinstance(description, SingleOperation):
        differing.extend(
            name
            for name in description.echo_fields_if_given
            if _contradicts(_sent_at(sent, path=name), given=_given_at(answer, path=name))
        )
    if isinstance(sent, RefundRow) and sent.refund_reference:
        given = text_of(answer.get("refund_reference"))
        if given not in {"", sent.refund_reference}:
            differing.append("refund_reference")
    return differing


def _echoes(value: object, *, given: str | None) -> bool:
    if isinstance(value, Decimal):
        return given is not None and bool(_AMOUNT.fullmatch(given)) and Decimal(given) == value
    return given == str(value).strip(PADDING)


def _contradicts(value: object, *, given: str | None) -> bool:
    """What was not sent or is not echoed contradicts nothing; of a masked echo, what it shows."""
    if value in {None, ""} or given == "":
        return False
    if given is None or (isinstance(value, Decimal) and MASK not in given):
        return not _echoes(value, given=given)
    return not _shows_same("".join(given.split()), sent="".join(str(value).split()))


def _shows_same(given: str, *, sent: str) -> bool:
    """Whether an echo is what was sent, as far as its masked parts let it be seen."""
    first, *others = re.split(r"\*+", given)
    if not others:
        return given == sent
    at = len(first)
    for part in others[:-1]:
        position = sent.find(part, at)
        if position < 0:
            return False
        at = position + len(part)
    last = others[-1]
    return sent.startswith(first) and sent.endswith(last) and at + len(last) <= len(sent)


def _sent_at(sent: Row, *, path: str) -> object:
    value: object = sent
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _given_at(answer: Mapping[str, Any], *, path: str) -> str | None:
    value: object = answer
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return text_of(value)
