"""What a money batch is made of, and what may be sent at all.

Amounts are Decimals that already have the decimals of the wire; nothing is rounded here. Checks
give problems as data, so that a caller can keep the good rows and tell a person about the others.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from pydantic import SecretStr

from recon.gateway_client.errors import RowProblem
from recon.gateway_client.interface import GatewayInterface


class Operation(StrEnum):
    """The batch operations that move money or release it."""

    CAPTURE = "capture"
    REFUND = "refund"
    CANCEL = "cancel"
    REVIEW = "review"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who calls, and the key that signs; the key never shows in a repr."""

    merchant_id: str
    account_id: str
    sign_key: SecretStr


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """What every batch row names: one payment and its own amount, in major units."""

    transaction_id: str
    order_no: str
    currency: str
    amount: Decimal


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


ROW_TYPES: dict[Operation, type[BatchRow]] = {
    Operation.CAPTURE: CaptureRow,
    Operation.REFUND: RefundRow,
    Operation.CANCEL: CancelRow,
    Operation.REVIEW: ReviewRow,
}


def wire_row(row: BatchRow, *, fields: Iterable[str]) -> dict[str, str]:
    """The named fields of a row as the wire writes them: all text, amounts without exponent."""
    values = ((name, getattr(row, name)) for name in fields)
    return {
        name: f"{value:f}" if isinstance(value, Decimal) else str(value) for name, value in values
    }


def fields_sent(operation: Operation, *, interface: GatewayInterface) -> tuple[str, ...]:
    """Which fields of a row go on the wire under this profile, in order."""
    fields = interface.batch(operation).row_fields
    if operation is Operation.REFUND and interface.profile.send_refund_reference:
        return (*fields, "refund_reference")
    return fields


def check_rows(
    operation: Operation, *, rows: Sequence[BatchRow], interface: GatewayInterface
) -> tuple[RowProblem, ...]:
    """Why rows of this batch must not be sent; empty when all may. Batch size is not judged."""
    counts = Counter(row.transaction_id for row in rows)
    found: list[RowProblem] = []
    for position, row in enumerate(rows):
        if type(row) is not ROW_TYPES[operation]:
            reason = f"is a {type(row).__name__}, not a {ROW_TYPES[operation].__name__}"
            found.append(RowProblem(position, "row", reason))
            continue
        found.extend(
            RowProblem(position, field, reason)
            for field, reason in _row_problems(operation, row=row, interface=interface)
        )
        if counts[row.transaction_id] > 1:
            reason = "the same transaction stands in this batch more than once"
            found.append(RowProblem(position, "transaction_id", reason))
    return tuple(found)


def text_problem(field: str, *, text: str, interface: GatewayInterface) -> str:
    """Why this text must not be sent as this field; "" when it may."""
    pattern = getattr(interface.profile.grammar, field)
    if re.fullmatch(pattern, text, re.ASCII) is None:
        return f"does not have the form {pattern}"
    longest = interface.profile.lengths.get(field)
    if longest is not None and len(text) > longest:
        return f"is longer than {longest} characters"
    return ""


def _row_problems(
    operation: Operation, *, row: BatchRow, interface: GatewayInterface
) -> Iterator[tuple[str, str]]:
    for field in fields_sent(operation, interface=interface):
        value = getattr(row, field)
        reason = (_amount_problem(value) if field.endswith("amount") else "") or text_problem(
            field, text=_as_text(value), interface=interface
        )
        if reason:
            yield field, reason
    if isinstance(row, RefundRow) and _comparable(row) and row.refund_amount > row.amount:
        yield "refund_amount", "is more than the payment's amount"


def _comparable(row: RefundRow) -> bool:
    return not _amount_problem(row.amount) and not _amount_problem(row.refund_amount)


def _as_text(value: object) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _amount_problem(value: object) -> str:
    if not isinstance(value, Decimal):
        return "is not a Decimal"
    if not value.is_finite() or abs(value.adjusted()) > AMOUNT_MAGNITUDE_MAX:
        return "is not an amount"
    return "" if value > 0 else "is not more than zero"


AMOUNT_MAGNITUDE_MAX = 30
"""Decimal digits before or behind the point beyond which text is not even built."""
