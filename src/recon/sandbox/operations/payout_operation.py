"""Payouts: money leaves the balance of an account, less or plus a flat fee.

The balance of each currency opens with the amount of sandbox.toml; what was paid out is counted. A
payout may be paid from another currency: as much of it as source_amount says, else at a fixed rate.
The fee is of the source currency on top, or of the payment currency where the payee bears it.
A payout that the balance does not cover is a record with status FAILED and has no effect. A
request_id that comes again is paid again: what the real gateway does is not known. Only under the
profile `extended` is it refused.

What a request must say before it is a payout has the forms of the API document (2.9): a UUID, days
as YYYY-MM-DD, two-letter countries, amounts with two decimals. Somebody has to be paid: a
beneficiary or its id. The first parameter that is wrong is told by its place.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from recon.model.money import Money, exponent, is_currency
from recon.sandbox.ground.book import Effect, RowReply
from recon.sandbox.ground.clock import iso_without_colon
from recon.sandbox.ground.operation_call import (
    Call,
    OperationReply,
    Sandbox,
    amount_of,
    json_refusal,
    merchant_refusal,
    signature_refusal,
    wrong,
)
from recon.sandbox.ground.population import transaction_id_of
from recon.sandbox.ground.wire import is_country, is_date, is_uuid, text_of
from recon.sandbox.notify.notify_events import tell_payout

COMPLETED = "COMPLETED"
FAILED = "FAILED"
CLEARING_SYSTEM = "SANDBOX"
ECHOED = (
    *("merchant_id", "account_id", "beneficiary", "beneficiary_id", "client_data", "fee_paid_by"),
    *("payer", "payment_amount", "payment_currency", "payment_date", "payment_method", "reason"),
    *("reference", "request_id", "source_amount", "source_currency", "swift_charge_option"),
    *("fund_source", "encryption_data"),
)
"""Fields of the request that the record repeats: all but notify_url."""

_OBJECTS = frozenset({"beneficiary", "payer"})
PAYER = "PAYER"
BENEFICIARY = "BENEFICIARY"
PEOPLE = ("beneficiary", "payer")
DATES = frozenset({"payment_date", "date_of_birth"})
COUNTRIES = frozenset({"country_code", "bank_country_code", "personal_fiscal_country"})
DEPTH_MAX = 4


def answer_payout(sandbox: Sandbox, call: Call) -> OperationReply:
    """The record of a payout; JSON with HTTP 400 when it is refused before it is one."""
    reason = merchant_refusal(sandbox, call) or signature_refusal(sandbox, call)
    reason = reason or _field_refusal(sandbox, call)
    if reason:
        return json_refusal(sandbox, call, reason=reason)
    currency, amount = call.text("payment_currency"), _amount(call)
    source, leaves = _source_currency(call), _leaves(sandbox, call)
    fee_currency = currency if _is_payees_fee(call) else source
    fee = Money(sandbox.terms.fees.payout_flat, fee_currency).minor_units
    paid, received = (leaves, amount - fee) if _is_payees_fee(call) else (leaves + fee, amount)
    failure = _failure(sandbox, call, paid=paid, received=received)
    number = sandbox.book.next_number("payments")
    transaction_id = transaction_id_of(call.now, number=number)
    if not failure:
        _pay(sandbox, call, paid=paid, transaction_id=transaction_id)
    failure_type, _, failure_reason = failure.partition(":")
    status = FAILED if failure else COMPLETED
    content = _echo(call) | {
        "amount_beneficiary_receives": _number(received, currency=currency),
        "amount_payer_pays": _number(paid, currency=source),
        "fee_amount": _number(fee, currency=fee_currency),
        "fee_currency": fee_currency,
        "created_at": iso_without_colon(call.now),
        "last_updated_at": iso_without_colon(call.now),
        "failure_reason": failure_reason,
        "failure_type": failure_type,
        "payer_id": f"P{call.text('account_id')}",
        "transaction_id": transaction_id,
        "short_reference_id": f"{transaction_id[:8]}-{number % 10**6:06d}",
        "status": status,
    }
    tell_payout(sandbox, content, notify_url=call.text("notify_url"), at=call.now)
    return OperationReply(
        content, row_replies=(RowReply(transaction_id, "", status, failure),), outcome=status
    )


def _field_refusal(sandbox: Sandbox, call: Call) -> str:
    refused = wrong(malformed_parameter(call))
    if refused or sandbox.options.profile != "extended":
        return refused
    statement = "SELECT 1 FROM effect WHERE request_id = ?"
    return "duplicate_payout" if sandbox.book.select(statement, (call.text("request_id"),)) else ""


def _amount(call: Call) -> int:
    return amount_of(call.fields.get("payment_amount"), currency=call.text("payment_currency"))


def _source_currency(call: Call) -> str:
    return call.text("source_currency") or call.text("payment_currency")


def _leaves(sandbox: Sandbox, call: Call) -> int:
    """What leaves the balance but for a fee, minor units of the source currency."""
    source, currency, amount = _source_currency(call), call.text("payment_currency"), _amount(call)
    if source == currency:
        return amount
    if given := amount_of(call.fields.get("source_amount"), currency=source):
        return given
    rates = sandbox.terms.payouts.per_euro
    rate = rates.get(source, Decimal(1)) / rates.get(currency, Decimal(1))
    exchanged = Money.of_minor_units(amount, currency=currency).amount * rate
    return Money(round(exchanged, exponent(source)), source).minor_units


def _is_payees_fee(call: Call) -> bool:
    return call.text("fee_paid_by") == BENEFICIARY


def _failure(sandbox: Sandbox, call: Call, *, paid: int, received: int) -> str:
    """`<failure_type>:<failure_reason>` of a payout that cannot be made, else ""."""
    if received <= 0:
        return sandbox.terms.refusals.payout["below_fee"]
    if paid > balance(sandbox, call.text("account_id"), currency=_source_currency(call)):
        return sandbox.terms.refusals.payout["shortage"]
    return ""


def balance(sandbox: Sandbox, account_id: str, *, currency: str) -> int:
    """What an account has left to pay out, minor units."""
    opening = Money(sandbox.terms.payouts.balance, currency).minor_units
    statement = "SELECT amount FROM paid_out WHERE account_id = ? AND currency = ?"
    rows = sandbox.book.select(statement, (account_id, currency))
    return opening - (rows[0][0] if rows else 0)


def _pay(sandbox: Sandbox, call: Call, *, paid: int, transaction_id: str) -> None:
    sandbox.book.execute(
        "INSERT INTO paid_out VALUES (?, ?, ?)"
        " ON CONFLICT (account_id, currency) DO UPDATE SET amount = amount + excluded.amount",
        (call.text("account_id"), _source_currency(call), paid),
    )
    effect = Effect(
        operation="payout",
        origin="api",
        merchant_id=call.text("merchant_id"),
        account_id=call.text("account_id"),
        order_no="",
        transaction_id=transaction_id,
        currency=call.text("payment_currency"),
        amount=_amount(call),
        committed_at=call.now,
        request_id=call.text("request_id"),
    )
    sandbox.book.append_effects([replace(effect, request_log_id=call.request_log_id)])


def _echo(call: Call) -> dict[str, Any]:
    echoed: dict[str, Any] = {
        name: call.table(name) if name in _OBJECTS else text_of(call.fields.get(name))
        for name in ECHOED
    }
    details = echoed["beneficiary"].get("bank_details")
    if isinstance(details, dict):
        shown = {name: value for name, value in details.items() if name != "bank_code"}
        shown["local_clearing_system"] = CLEARING_SYSTEM
        echoed["beneficiary"] = echoed["beneficiary"] | {"bank_details": shown}
    return echoed


def _number(minor_units: int, *, currency: str) -> Decimal:
    """An amount as a number, as the document shows those of the record."""
    return Money.of_minor_units(minor_units, currency=currency).amount


def malformed_parameter(call: Call) -> str:
    """The first parameter that is missing or malformed, "" when none is."""
    return next(_malformed(call), "")


def _malformed(call: Call) -> Iterator[str]:
    currency = call.text("payment_currency")
    if not is_uuid(call.text("request_id")):
        yield "request_id"
    if not is_currency(currency):
        yield "payment_currency"
    elif not amount_of(call.fields.get("payment_amount"), currency=currency):
        yield "payment_amount"
    yield from _source(call, currency=currency)
    if call.text("fee_paid_by") not in {"", PAYER, BENEFICIARY}:
        yield "fee_paid_by"
    if call.text("payment_date") and not is_date(call.text("payment_date")):
        yield "payment_date"
    if not call.table("beneficiary") and not call.text("beneficiary_id"):
        yield "beneficiary"
    for name in PEOPLE:
        yield from _in_person(call.table(name), path=name)


def _source(call: Call, *, currency: str) -> Iterator[str]:
    """In the payment's own currency a source amount may only say again what the payment says."""
    source, given = _source_currency(call), call.fields.get("source_amount")
    if not is_currency(source):
        yield "source_currency"
    if given in (None, ""):
        return
    leaves = amount_of(given, currency=source)
    if not leaves or (source == currency and leaves != _amount(call)):
        yield "source_amount"


def _in_person(person: Mapping[str, Any], *, path: str, depth: int = 1) -> Iterator[str]:
    """Days and countries anywhere in a beneficiary or payer; empty ones are not given."""
    for name, value in person.items():
        at = f"{path}.{name}"
        if isinstance(value, Mapping):
            if depth < DEPTH_MAX:
                yield from _in_person(value, path=at, depth=depth + 1)
        elif value in (None, ""):
            continue
        elif (name in DATES and not is_date(text_of(value))) or (
            name in COUNTRIES and not is_country(text_of(value))
        ):
            yield at
