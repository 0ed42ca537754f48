"""A readable reply to a money request: its head, its rows, whether it is signed and for us."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from recon.gateway_client.interface.described import GatewayInterface, ReplyPolicy
from recon.gateway_client.interface.operation_formats import (
    BatchOperation,
    OperationFormat,
    SingleOperation,
)
from recon.gateway_client.interface.prepare import PreparedRequest
from recon.gateway_client.interface.rows import Credentials
from recon.gateway_client.interface.signing import SignatureState, is_signed, reply_signature
from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.wire.json_reply import json_object, rows_of, text_of, texts_of
from recon.gateway_client.wire.text import code_and_text, scrubbed


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """Everything one reply is judged by."""

    prepared: PreparedRequest
    raw: RawReply
    interface: GatewayInterface
    policy: ReplyPolicy
    credentials: Credentials

    @property
    def description(self) -> OperationFormat:
        """How the operation looks on the wire."""
        return self.interface.batch(self.prepared.operation)


@dataclass(frozen=True, slots=True)
class ReplyMessage:
    """A readable reply with what its head says."""

    fields: dict[str, Any]
    rows: tuple[dict[str, Any], ...]
    malformed: int
    """Elements of the list that are no rows at all."""
    return_status: str
    code: str
    text: str
    signature: SignatureState
    is_accepted: bool
    """The request as a whole was taken; says nothing of its rows."""
    is_refused: bool
    has_success: bool
    """Anything in it says that something may have taken effect."""

    @property
    def verified(self) -> bool:
        """The reply carries a valid signature."""
        return self.signature is SignatureState.VALID

    @property
    def code_and_text(self) -> str:
        """`<code>:<text>`, as far as they were given."""
        return ":".join(part for part in (self.code, self.text) if part)


def message_of(reading: ReplyReading) -> ReplyMessage:
    """The message in a reply's bytes.

    Raises:
        UnreadableReplyError: the bytes are not one JSON object.
    """
    fields = json_object(reading.raw.body)
    description = reading.description
    if isinstance(description, BatchOperation):
        return _batch_message(reading, fields=fields, description=description)
    return _single_message(reading, fields=fields, description=description)


def _batch_message(
    reading: ReplyReading, *, fields: dict[str, Any], description: BatchOperation
) -> ReplyMessage:
    rows, malformed = rows_of(fields, field=description.rows_field)
    code, text = _said(reading, fields=fields, names=("return_message", "message"))
    status = scrubbed(text_of(fields.get("return_status")) or "")
    word = reading.interface.status_map.return_status.get(status)
    return ReplyMessage(
        fields=fields,
        rows=tuple(rows),
        malformed=malformed,
        return_status=status,
        code=code,
        text=text,
        signature=_signature(reading, fields=fields, rows=rows),
        is_accepted=word == "accepted",
        is_refused=word == "refused" or (not status and bool(code)),
        has_success=bool(rows or malformed) or word == "accepted",
    )


def _single_message(
    reading: ReplyReading, *, fields: dict[str, Any], description: SingleOperation
) -> ReplyMessage:
    """The reply of an operation of one row is the row itself, when it has a status at all."""
    status = text_of(fields.get(description.status_field))
    has_row = status != ""
    code, text = _said(reading, fields=fields, names=(description.message_field, "message"))
    words = reading.interface.status_map.row_status[reading.prepared.operation]
    return ReplyMessage(
        fields=fields,
        rows=(fields,) if has_row else (),
        malformed=0,
        return_status="",
        code=code,
        text=text,
        signature=_signature(reading, fields=fields, rows=()),
        is_accepted=has_row,
        is_refused=not has_row and bool(code),
        has_success=has_row and words.get(status or "") != "failed",
    )


def _said(
    reading: ReplyReading, *, fields: dict[str, Any], names: Sequence[str]
) -> tuple[str, str]:
    masked_text = reading.prepared.masked_text
    given = next((text for name in names if (text := text_of(fields.get(name)))), "")
    code, text = code_and_text(masked_text(given))
    return masked_text(text_of(fields.get("code")) or "") or code, text


def _signature(
    reading: ReplyReading, *, fields: dict[str, Any], rows: Sequence[dict[str, Any]]
) -> SignatureState:
    return reply_signature(
        text_of(fields.get("encryption_data")),
        expected=(reading.prepared.signature,),
        policy=reading.policy,
        otherwise=partial(
            is_signed,
            template=reading.prepared.operation,
            fields=texts_of(fields),
            rows=[texts_of(row) for row in rows],
            credentials=reading.credentials,
            interface=reading.interface,
        ),
    )


def names_other_account(reading: ReplyReading, message: ReplyMessage) -> bool:
    """The reply names a merchant or account that is not ours."""
    return any(given not in {"", own} for given, own in _accounts(reading, message=message))


def names_our_account(reading: ReplyReading, message: ReplyMessage) -> bool:
    """The reply names both our merchant and our account."""
    return all(given == own for given, own in _accounts(reading, message=message))


def _accounts(
    reading: ReplyReading, *, message: ReplyMessage
) -> tuple[tuple[str | None, str], ...]:
    own = reading.credentials
    return (
        (text_of(message.fields.get("merchant_id")), own.merchant_id),
        (text_of(message.fields.get("account_id")), own.account_id),
    )
