"""The first phase of a money batch: the exact bytes, before anything is journalled or sent.

Pure and deterministic: the same rows and credentials give the same bytes, so that their hash in a
journal names what was sent.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from recon.gateway_client.interface.described import GatewayInterface
from recon.gateway_client.interface.operation_formats import BatchOperation, OperationFormat
from recon.gateway_client.interface.rows import (
    Credentials,
    Operation,
    Row,
    check_rows,
    fields_sent,
    private_of,
    text_problem,
    wire_row,
)
from recon.gateway_client.interface.signing import sign
from recon.gateway_client.wire.json_reply import texts_of
from recon.gateway_client.wire.request_body import request_body
from recon.gateway_client.wire.text import masked_values, scrubbed, without_values
from recon.gateway_client.wire.wire_errors import InvalidBatchError, RowProblem

PROBLEMS_SHOWN_MAX = 5
BODY_WORD_MIN = 6
MESSAGE_WORD_MIN = 3
"""A message may lose a word too many, a body that is evidence should not."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,50}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCall:
    """A money request, ready to be journalled and sent once."""

    path: str
    content_type: str
    body: bytes = field(repr=False)
    body_sha256: str
    """Hexadecimal, of `body`."""
    signature: str
    private: frozenset[str] = field(default=frozenset(), repr=False)
    """Values of the request that must not be stored or shown in clear."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What is not in the request and signed it: starred even within a longer word."""

    def masked(self, text: bytes) -> bytes:
        """Text such as the body or its reply, with every private value of the request masked.

        Values too short to be told from other text are masked only where they stand quoted.
        """
        kept = without_values(text, values=self.secrets)
        return masked_values(kept, values=self.private, word_min=BODY_WORD_MIN)

    def masked_text(self, text: str) -> str:
        """Foreign text that is safe to keep and show, with every private value masked too."""
        given = without_values(text.encode(errors="replace"), values=self.secrets)
        masked = masked_values(given, values=self.private, word_min=MESSAGE_WORD_MIN)
        return scrubbed(masked.decode(errors="replace"))

    def kept_id(self, text: str) -> str:
        """An id of the gateway as it stands, though its digits may look like a card's."""
        plain = _ID.fullmatch(text) is not None and text not in self.private
        return text if plain else self.masked_text(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest(PreparedCall):
    """One money batch, ready to be journalled and sent once."""

    operation: Operation
    rows: tuple[Row, ...]


def prepare(
    operation: Operation | str,
    rows: Sequence[Row],
    *,
    credentials: Credentials,
    interface: GatewayInterface,
) -> PreparedRequest:
    """The request of one batch, checked whole.

    Raises:
        InvalidBatchError: naming each row and field that must not be sent; nothing was sent.
        UnsignedError: whoever holds the key does not sign it; nothing was sent.
    """
    operation = Operation(operation)
    description = interface.batch(operation)
    _refuse_size(operation, rows=rows, rows_max=description.rows_max)
    refuse_credentials(credentials, interface=interface)
    _refuse_rows(operation, problems=check_rows(operation, rows=rows, interface=interface))
    fields = fields_sent(operation, interface=interface)
    wire_rows = [wire_row(row, fields=fields) for row in rows]
    signature = _signature(operation, rows=wire_rows, credentials=credentials, interface=interface)
    message = {
        "merchant_id": credentials.merchant_id,
        "account_id": credentials.account_id,
        **_content(wire_rows, description=description),
        "encryption_data": signature,
    }
    body = request_body(message, body=description.body)
    return PreparedRequest(
        operation=operation,
        path=description.path,
        content_type=description.content_type,
        body=body,
        body_sha256=hashlib.sha256(body).hexdigest(),
        rows=tuple(rows),
        signature=signature,
        private=frozenset().union(*(private_of(row) for row in rows)),
        secrets=credentials.private,
    )


def _signature(
    operation: Operation,
    *,
    rows: Sequence[dict[str, Any]],
    credentials: Credentials,
    interface: GatewayInterface,
) -> str:
    batched = isinstance(interface.batch(operation), BatchOperation)
    return sign(
        operation,
        fields={} if batched else texts_of(rows[0]),
        rows=rows if batched else (),
        credentials=credentials,
        interface=interface,
    )


def _content(rows: list[dict[str, Any]], *, description: OperationFormat) -> dict[str, Any]:
    """What stands between the account and the signature: a list of rows, or the one row's own."""
    return {description.rows_field: rows} if isinstance(description, BatchOperation) else rows[0]


def refuse_credentials(credentials: Credentials, *, interface: GatewayInterface) -> None:
    """Raise InvalidBatchError when merchant, account or key cannot sign anything."""
    for name in ("merchant_id", "account_id"):
        reason = text_problem(name, text=getattr(credentials, name), interface=interface)
        if reason:
            msg = f"{name} {reason}; nothing was sent"
            raise InvalidBatchError(msg)
    key = credentials.sign_key
    if isinstance(key, SecretStr) and not key.get_secret_value():
        msg = "the sign key is empty; nothing was sent"
        raise InvalidBatchError(msg)


def _refuse_size(operation: Operation, *, rows: Sequence[Row], rows_max: int) -> None:
    if not 1 <= len(rows) <= rows_max:
        msg = f"a {operation} batch of {len(rows)} rows; 1 to {rows_max} may be sent at once"
        raise InvalidBatchError(msg)


def _refuse_rows(operation: Operation, *, problems: tuple[RowProblem, ...]) -> None:
    if not problems:
        return
    shown = "; ".join(
        f"row {problem.position + 1}, {problem.field} {problem.reason}"
        for problem in problems[:PROBLEMS_SHOWN_MAX]
    )
    more = len(problems) - PROBLEMS_SHOWN_MAX
    tail = f" and {more} more" if more > 0 else ""
    msg = f"this {operation} batch must not be sent: {shown}{tail}; nothing was sent"
    raise InvalidBatchError(msg, problems=problems)
