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
from functools import lru_cache
from typing import Any

from pydantic import SecretStr

from recon.gateway_client.interface.described import GatewayInterface
from recon.gateway_client.interface.payout import PayoutRow
from recon.gateway_client.interface.payout_checks import payout_problems
from recon.gateway_client.interface.wire_amounts import number_problem
from recon.gateway_client.wire.private_fields import is_blank, private_texts, wire_value
from recon.gateway_client.wire.signer import Signer
from recon.gateway_client.wire.text import without_values
from recon.gateway_client.wire.wire_errors import RowProblem

PATTERNS_KEPT_MAX = 64


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


KEY_CHARACTERS_MIN = 8
"""A signing key is no shorter; the sandbox's is."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who calls, and the key that signs or who holds it; the key never shows in a repr."""

    merchant_id: str
    account_id: str
    sign_key: SecretStr | Signer

    @property
    def private(self) -> frozenset[str]:
        """What no reply may bring into a message; a shorter key is a word that stands anywhere.

        Of a key that a signer holds nothing is known here.
        """
        if not isinstance(self.sign_key, SecretStr):
            return frozenset()
        key = self.sign_key.get_secret_value()
        return frozenset({key} if len(key) >= KEY_CHARACTERS_MIN else ())

    def without_key(self, text: bytes) -> bytes:
        """A reply in which the gateway quotes the key, without it."""
        return without_values(text, values=self.private)


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


def wire_row(row: Row, *, fields: Iterable[str]) -> dict[str, Any]:
    """The named fields of a row as the wire writes them: text, amounts without exponent, objects.

    A field of a payout that was not given is left out.
    """
    values = ((name, getattr(row, name)) for name in fields)
    spares_blanks = isinstance(row, PayoutRow)
    return {
        name: wire_value(value) for name, value in values if not (spares_blanks and is_blank(value))
    }


def ids_of(row: Row) -> tuple[str, str]:
    """The transaction_id and order_no of a row; a subscription has neither, a payout not yet."""
    return (row.transaction_id, row.order_no) if isinstance(row, BatchRow) else ("", "")


def private_of(row: Row) -> frozenset[str]:
    """Values of a row that must not be stored or shown in clear."""
    return private_texts(row) if isinstance(row, PayoutRow) else frozenset()


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
            RowProblem(position, field, reason)
            for field, reason in _row_problems(operation, row=row, interface=interface)
        )
        if counts[row.key] > 1:
            reason = "the same transaction stands in this batch more than once"
            problems.append(RowProblem(position, interface.batch(operation).key_field, reason))
    return tuple(problems)


def text_pattern(field: str, *, interface: GatewayInterface) -> re.Pattern[str]:
    """The whole-text pattern of a field, compiled once."""
    return _compiled(getattr(interface.profile.grammar, field))


@lru_cache(maxsize=PATTERNS_KEPT_MAX)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def text_problem(field: str, *, text: str, interface: GatewayInterface) -> str:
    """Why this text must not be sent as this field; "" when it may."""
    pattern = text_pattern(field, interface=interface)
    if pattern.fullmatch(text) is None:
        return f"does not have the form {pattern.pattern}"
    longest = interface.profile.lengths.get(field)
    if longest is not None and len(text) > longest:
        return f"is longer than {longest} characters"
    return interface.profile.amounts.currency_problem(text) if field == "currency" else ""


def _row_problems(
    operation: Operation, *, row: Row, interface: GatewayInterface
) -> Iterator[tuple[str, str]]:
    if isinstance(row, PayoutRow):
        yield from _payout_problems(row, interface=interface)
    elif isinstance(row, BatchRow):
        yield from _payment_problems(operation, row=row, interface=interface)
    else:
        for field in fields_sent(operation, interface=interface):
            reason = text_problem(field, text=getattr(row, field), interface=interface)
            if reason:
                yield field, reason


def _payment_problems(
    operation: Operation, *, row: BatchRow, interface: GatewayInterface
) -> Iterator[tuple[str, str]]:
    amounts = interface.profile.amounts
    for field in fields_sent(operation, interface=interface):
        value = getattr(row, field)
        is_amount = field.endswith("amount")
        reason = amounts.problem(value, currency=row.currency) if is_amount else ""
        reason = reason or text_problem(field, text=_as_text(value), interface=interface)
        if reason:
            yield field, reason
    if isinstance(row, RefundRow) and _comparable(row) and row.refund_amount > row.amount:
        yield "refund_amount", "is more than the payment's amount"


def _payout_problems(row: PayoutRow, *, interface: GatewayInterface) -> Iterator[tuple[str, str]]:
    described = interface.profile.single[Operation.PAYOUT]
    yield from payout_problems(
        row, grammar=described.grammar, characters_max=interface.profile.text_characters_max
    )
    amounts = interface.profile.amounts
    for side in ("payment", "source"):
        value, currency = getattr(row, f"{side}_amount"), getattr(row, f"{side}_currency")
        problem = amounts.currency_problem(currency) if currency else ""
        if problem:
            yield f"{side}_currency", problem
        if value is None:
            continue
        reason = amounts.problem(value, currency=currency)
        reason = reason or text_problem("amount", text=_as_text(value), interface=interface)
        if reason:
            yield f"{side}_amount", reason


def _comparable(row: RefundRow) -> bool:
    return not number_problem(row.amount) and not number_problem(row.refund_amount)


def _as_text(value: object) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
