"""What a money batch is made of, and its exact bytes, before anything is journalled or sent.

Amounts are Decimals with the decimals of their currency or those of the wire, in which they are
written; nothing is rounded. Checks
give problems as data, so that a caller can keep the good rows and tell a person about the others.
Pure and deterministic: the same rows and credentials give the same bytes, so that their hash in a
journal names what was sent.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self

from pydantic import SecretStr

from recon.gateway_client.documents import texts_of
from recon.gateway_client.errors import InvalidRequestError, RowProblem
from recon.gateway_client.interface import (
    CallFormat,
    GatewayInterface,
    OurAccount,
    number_problem,
)
from recon.gateway_client.messages import (
    amount_problem,
    is_blank,
    private_texts,
    request_body,
    text_problem,
    wire_value,
)
from recon.gateway_client.payouts import PayoutRow, payout_problems
from recon.privacy.foreign_text import masked_values, redacted, without_values

_SEQUENCE = re.compile(r"[0-9]{2}", re.ASCII)


class Operation(StrEnum):
    """The batch operations that move money or release it."""

    CAPTURE = "capture"
    REFUND = "refund"
    CANCEL = "cancel"
    REVIEW = "review"
    PAYOUT = "payout"
    """A batch of one."""
    CANCEL_SUBSCRIPTION = "cancelsubscription"
    """A batch of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """What every batch row names: one payment and its own amount, in major units."""

    transaction_id: str
    order_no: str
    currency: str
    amount: Decimal

    @property
    def key(self) -> str:
        """By what the row is recognised in a reply."""
        return self.transaction_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRow(BatchRow):
    """Take `amount` of an authorised payment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRow(BatchRow):
    """Release an authorised payment; `amount` is the payment's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundRow(BatchRow):
    """Return `refund_amount` of a captured payment; `amount` is the payment's own."""

    refund_amount: Decimal
    refund_reason: str
    refund_reference: str = ""
    """The merchant's own reference; sent only under a profile that sends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow(BatchRow):
    """Set a payment's review flag; `amount` is the payment's own."""

    review_flag: str = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSubscriptionRow:
    """End a recurring contract; what is already contracted is still charged."""

    recurring_id: str
    contract_name: str

    @property
    def key(self) -> str:
        """By what the reply is recognised."""
        return self.recurring_id


Row = BatchRow | PayoutRow | CancelSubscriptionRow

ROW_TYPES: dict[Operation, type[Row]] = {
    Operation.CAPTURE: CaptureRow,
    Operation.REFUND: RefundRow,
    Operation.CANCEL: CancelRow,
    Operation.REVIEW: ReviewRow,
    Operation.PAYOUT: PayoutRow,
    Operation.CANCEL_SUBSCRIPTION: CancelSubscriptionRow,
}


def is_refund_number(text: str, *, transaction_id: str) -> bool:
    """Whether a refund_reference_id is the transaction's, a hyphen and two digits (4.7)."""
    prefix, hyphen, number = text.rpartition("-")
    return bool(hyphen and prefix == transaction_id and _SEQUENCE.fullmatch(number))


def ids_of(row: Row) -> tuple[str, str]:
    """The transaction_id and order_no of a row; a subscription has neither, a payout not yet."""
    return (row.transaction_id, row.order_no) if isinstance(row, BatchRow) else ("", "")


def fields_sent(operation: Operation, *, interface: GatewayInterface) -> tuple[str, ...]:
    """Which fields of a row go on the wire under this profile, in order."""
    fields = interface.batch(operation).row_fields
    if operation is Operation.REFUND and interface.profile.send_refund_reference:
        return (*fields, "refund_reference")
    return fields


def check_rows(
    operation: Operation, *, rows: Sequence[Row], interface: GatewayInterface
) -> tuple[RowProblem, ...]:
    """Why rows of this batch must not be sent; empty when all may. Batch size is not judged."""
    counts = Counter(row.key for row in rows)
    problems: list[RowProblem] = []
    for position, row in enumerate(rows):
        if type(row) is not ROW_TYPES[operation]:
            reason = f"is a {type(row).__name__}, not a {ROW_TYPES[operation].__name__}"
            problems.append(RowProblem(position, "row", reason))
            continue
        problems.extend(
            RowProblem(position, name, reason)
            for name, reason in _row_problems(operation, row=row, interface=interface)
        )
        if counts[row.key] > 1:
            reason = "the same transaction stands in this batch more than once"
            problems.append(RowProblem(position, interface.batch(operation).key_field, reason))
    return tuple(problems)


def _row_problems(
    operation: Operation, *, row: Row, interface: GatewayInterface
) -> Iterator[tuple[str, str]]:
    if isinstance(row, PayoutRow):
        yield from payout_problems(row, interface=interface)
    for name in fields_sent(operation, interface=interface):
        value, reason = getattr(row, name), ""
        if name.endswith("amount"):
            if value is None:
                continue
            field = name if isinstance(row, BatchRow) else "amount"
            currency = currency_of(row, name)
            reason = amount_problem(value, currency=currency, interface=interface, field=field)
        elif not isinstance(row, PayoutRow):
            reason = text_problem(name, text=value, interface=interface)
        if reason:
            yield name, reason
    if isinstance(row, RefundRow):
        are_numbers = not any(map(number_problem, (row.amount, row.refund_amount)))
        if are_numbers and row.refund_amount > row.amount:
            yield "refund_amount", "is more than the payment's amount"


def currency_of(row: object, name: str) -> str:
    """In which currency an amount of a row is: that of its side, else the row's."""
    currency = getattr(row, f"{name.removesuffix('_amount')}_currency", None)
    return str(getattr(row, "currency", "") if currency is None else currency)


def _wire_row(row: Row, *, fields: Sequence[str], interface: GatewayInterface) -> dict[str, Any]:
    """The fields of a row as they go out; what was not given of a payout is left out."""
    wire: dict[str, Any] = {}
    for name in fields:
        value = getattr(row, name)
        if isinstance(row, PayoutRow) and is_blank(value):
            continue
        wire[name] = (
            interface.profile.amounts.written(value, currency=currency_of(row, name))
            if isinstance(value, Decimal)
            else wire_value(value)
        )
    return wire


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
    account: OurAccount = field(repr=False, compare=False)
    """By whom it was made; its reply is read by the same."""
    private: frozenset[str] = field(default=frozenset(), repr=False)
    """Values of the request that must not be stored or shown in clear."""

    @classmethod
    def of(
        cls,
        fields: Mapping[str, Any],
        *,
        described: CallFormat,
        account: OurAccount,
        signature: str,
        private: frozenset[str],
        **more: Any,
    ) -> Self:
        """The call with these fields between account and signature, and what else its class has."""
        message = account.message(fields, signature=signature)
        body = request_body(message, body=described.body)
        return cls(
            path=described.path,
            content_type=described.content_type,
            body=body,
            body_sha256=hashlib.sha256(body).hexdigest(),
            signature=signature,
            account=account,
            private=private,
            **more,
        )

    def masked(self, text: bytes) -> bytes:
        """Text such as the body or its reply, with every private value of the request masked.

        Values too short to be told from other text are masked only where they stand quoted.
        """
        # What is not in the request and signed it is starred even within a longer word.
        kept = without_values(text, values=self.account.private)
        return masked_values(kept, values=self.private, word_min=BODY_WORD_MIN)

    def masked_text(self, text: str) -> str:
        """Foreign text that is safe to keep and show, with every private value masked too."""
        given = without_values(text.encode(errors="replace"), values=self.account.private)
        masked = masked_values(given, values=self.private, word_min=MESSAGE_WORD_MIN)
        return redacted(masked.decode(errors="replace"))

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
    account: OurAccount,
) -> PreparedRequest:
    """The request of one batch, checked whole.

    Raises:
        InvalidRequestError: naming each row and field that must not be sent.
        UnsignedError: whoever holds the key does not sign it; nothing was sent.
    """
    operation, interface = Operation(operation), account.interface
    described = interface.batch(operation)
    if not 1 <= len(rows) <= described.rows_max:
        bound = f"1 to {described.rows_max} may be sent at once"
        msg = f"a {operation} batch of {len(rows)} rows; {bound}"
        raise InvalidRequestError(msg)
    refuse_account(account)
    problems = check_rows(operation, rows=rows, interface=interface)
    refuse(f"{operation} batch", problems=problems)
    fields = fields_sent(operation, interface=interface)
    wire_rows = [_wire_row(row, fields=fields, interface=interface) for row in rows]
    if described.rows_field:
        content: dict[str, Any] = {described.rows_field: wire_rows}
        signature = account.sign(operation, fields={}, rows=wire_rows)
    else:
        (content,) = wire_rows
        signature = account.sign(operation, fields=texts_of(content))
    return PreparedRequest.of(
        content,
        described=described,
        account=account,
        signature=signature,
        private=frozenset().union(
            *(private_texts(row) for row in rows if isinstance(row, PayoutRow))
        ),
        operation=operation,
        rows=tuple(rows),
    )


def refuse(what: str, *, problems: Sequence[RowProblem]) -> None:
    """Raise InvalidRequestError where there are problems, with the first ones in words."""
    if problems:
        more = len(problems) - PROBLEMS_SHOWN_MAX
        reasons = "; ".join(map(str, problems[:PROBLEMS_SHOWN_MAX]))
        reasons += f" and {more} more" if more > 0 else ""
        msg = f"this {what} must not be sent: {reasons}; nothing was sent"
        raise InvalidRequestError(msg, problems=tuple(problems))


def refuse_account(account: OurAccount) -> None:
    """Raise InvalidRequestError when merchant, account or key cannot sign anything."""
    for name in ("merchant_id", "account_id"):
        reason = text_problem(name, text=getattr(account, name), interface=account.interface)
        if reason:
            msg = f"{name} {reason}; nothing was sent"
            raise InvalidRequestError(msg)
    key = account.sign_key
    if isinstance(key, SecretStr) and not key.get_secret_value():
        msg = "the sign key is empty; nothing was sent"
        raise InvalidRequestError(msg)
