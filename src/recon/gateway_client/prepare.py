"""The first phase of a money batch: the exact bytes, before anything is journalled or sent.

Pure and deterministic: the same rows and credentials give the same bytes, so that their hash in a
journal names what was sent.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from recon.gateway_client.errors import InvalidBatchError, RowProblem
from recon.gateway_client.interface import GatewayInterface
from recon.gateway_client.rows import (
    BatchRow,
    Credentials,
    Operation,
    check_rows,
    fields_sent,
    text_problem,
    wire_row,
)
from recon.gateway_client.signing import sign

PROBLEMS_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """One money batch, ready to be journalled and sent once."""

    operation: Operation
    path: str
    content_type: str
    body: bytes
    body_sha256: str
    """Hexadecimal, of `body`."""
    rows: tuple[BatchRow, ...]
    signature: str


def prepare(
    operation: Operation | str,
    rows: Sequence[BatchRow],
    *,
    credentials: Credentials,
    interface: GatewayInterface,
) -> PreparedRequest:
    """The request of one batch, checked whole.

    Raises:
        InvalidBatchError: naming each row and field that must not be sent; nothing was sent.
    """
    operation = Operation(operation)
    description = interface.batch(operation)
    _refuse_size(operation, rows=rows, rows_max=description.rows_max)
    refuse_credentials(credentials, interface=interface)
    _refuse_rows(operation, problems=check_rows(operation, rows=rows, interface=interface))
    fields = fields_sent(operation, interface=interface)
    wire_rows = [wire_row(row, fields=fields) for row in rows]
    signature = sign(
        operation, fields={}, rows=wire_rows, credentials=credentials, interface=interface
    )
    message = {
        "merchant_id": credentials.merchant_id,
        "account_id": credentials.account_id,
        description.rows_field: wire_rows,
        "encryption_data": signature,
    }
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    return PreparedRequest(
        operation=operation,
        path=description.path,
        content_type=description.content_type,
        body=body,
        body_sha256=hashlib.sha256(body).hexdigest(),
        rows=tuple(rows),
        signature=signature,
    )


def refuse_credentials(credentials: Credentials, *, interface: GatewayInterface) -> None:
    """Raise InvalidBatchError when merchant, account or key cannot sign anything."""
    for field in ("merchant_id", "account_id"):
        reason = text_problem(field, text=getattr(credentials, field), interface=interface)
        if reason:
            msg = f"{field} {reason}; nothing was sent"
            raise InvalidBatchError(msg)
    if not credentials.sign_key.get_secret_value():
        msg = "the sign key is empty; nothing was sent"
        raise InvalidBatchError(msg)


def _refuse_size(operation: Operation, *, rows: Sequence[BatchRow], rows_max: int) -> None:
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
