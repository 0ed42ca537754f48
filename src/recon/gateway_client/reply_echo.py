"""Whether a reply's row echoes what was sent; a missing echo proves nothing and differs too."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from recon.gateway_client.interface import OperationFormat, SingleOperation
from recon.gateway_client.rows import RefundRow, Row
from recon.gateway_client.wire.json_reply import text_of

MASK = "***"
"""Stands in a reply that was stored masked; it neither proves nor disproves."""

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
    return given == str(value)


def _contradicts(value: object, *, given: str | None) -> bool:
    """What was not sent, or is not echoed, or is masked, contradicts nothing."""
    if value in {None, ""} or given in {"", MASK}:
        return False
    if isinstance(value, Decimal):
        return not _echoes(value, given=given)
    return given is None or "".join(given.split()) != "".join(str(value).split())


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
