"""Payouts: money leaves the balance of an account, minus or plus a flat fee.

The balance of each currency starts at the amount in sandbox.toml; paid-out amounts are summed
against it. A payout may be funded from another currency: by source_amount where it is given, else
at a fixed rate. The fee is added in the source currency, or deducted in the payment currency where
the payee bears it. A payout that the balance does not cover is recorded with status FAILED and has
no effect. A repeated request_id is paid again, since it is not known what the real gateway does;
only the profile `extended` refuses it.

Requests are validated against the forms of the API document (2.9): a UUID, dates as YYYY-MM-DD,
two-letter countries, amounts with two decimals. There has to be a payee: a beneficiary or its id. A
refusal names the path of the first invalid parameter.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from recon.model.money import Money, exponent, is_currency
from recon.sandbox.call import Call, OperationReply, Sandbox, SandboxOperation, wrong
from recon.sandbox.database import Effect, RowReply
from recon.sandbox.notifications import NO_TYPE, notify
from recon.sandbox.population import transaction_id_of
from recon.sandbox.wire import is_date, is_uuid, text_of

COMPLETED = "COMPLETED"
FAILED = "FAILED"
CLEARING_SYSTEM = "SANDBOX"
ECHOED = (
    *("merchant_id", "account_id", "beneficiary", "beneficiary_id", "client_data", "fee_paid_by"),
    *("payer", "payment_amount", "payment_currency", "payment_date", "payment_method", "reason"),
    *("reference", "request_id", "source_amount", "source_currency", "swift_charge_option"),
    *("fund_source", "encryption_data"),
)
"""Request fields that the record repeats: all but notify_url."""
NOTIFIED = (
    *("merchant_id", "account_id", "request_id", "transaction_id", "short_reference_id"),
    *("payment_currency", "payment_amount", "status", "failure_type", "failure_reason"),
)

PEOPLE = ("beneficiary", "payer")
BENEFICIARY = "BENEFICIARY"
BEARERS = frozenset({"", "PAYER", BENEFICIARY})
DATES = frozenset({"payment_date", "date_of_birth"})
COUNTRIES = frozenset({"country_code", "bank_country_code", "personal_fiscal_country"})
_COUNTRY = re.compile(r"[A-Z]{2}", re.ASCII)
DEPTH_MAX = 4


def _answer(sandbox: Sandbox, call: Call) -> OperationReply:
    database, account_id = sandbox.database, call.text("account_id")
    currency, amount = call.text("payment_currency"), _amount(call)
    source, leaves = _source_currency(call), _leaves(sandbox, call)
    payees = call.text("fee_paid_by") == BENEFICIARY
    fee_currency = currency if payees else source
    fee = Money(sandbox.terms.fees.payout_flat, fee_currency).minor_units
    paid, received = (leaves, amount - fee) if payees else (leaves + fee, amount)
    spent = database.select(
        "SELECT amount FROM paid_out WHERE account_id = ? AND currency = ?", (account_id, source)
    )
    balance = Money(sandbox.terms.payouts.balance, source).minor_units
    balance -= spent[0][0] if spent else 0
    failure = ""
    if received <= 0:
        failure = sandbox.terms.refusals.payout["below_fee"]
    elif paid > balance:
        failure = sandbox.terms.refusals.payout["shortage"]
    number = database.next_number("payments")
    transaction_id = transaction_id_of(call.now, number=number)
    if not failure:
        database.execute(
            "INSERT INTO paid_out VALUES (?, ?, ?)"
            " ON CONFLICT (account_id, currency) DO UPDATE SET amount = amount + excluded.amount",
            (account_id, source, paid),
        )
        effect = Effect(
            "payout",
            "api",
            **call.texts("merchant_id", "account_id", "request_id"),
            order_no="",
            transaction_id=transaction_id,
            currency=currency,
            amount=amount,
            committed_at=call.now,
            request_log_id=call.request_log_id,
        )
        database.append_effects([effect])
    failure_type, _, failure_reason = failure.partition(":")
    status = FAILED if failure else COMPLETED
    moment = datetime.fromtimestamp(call.now, UTC).strftime("%Y-%m-%dT%H:%M:%S%z")
    # Numbers, because the document shows these amounts as numbers in the record.
    content = _echo(call) | {
        "amount_beneficiary_receives": Money.of_minor_units(received, currency=currency).amount,
        "amount_payer_pays": Money.of_minor_units(paid, currency=source).amount,
        "fee_amount": Money.of_minor_units(fee, currency=fee_currency).amount,
        "fee_currency": fee_currency,
        "created_at": moment,
        "last_updated_at": moment,
        "failure_reason": failure_reason,
        "failure_type": failure_type,
        "payer_id": f"P{account_id}",
        "transaction_id": transaction_id,
        "short_reference_id": f"{transaction_id[:8]}-{number % 10**6:06d}",
        "status": status,
    }
    fields = {name: str(content[name]) for name in NOTIFIED}
    notify(
        sandbox,
        fields,
        operation="payout",
        type_=NO_TYPE,
        notify_url=call.text("notify_url"),
        at=call.now,
        about=fields["request_id"],
    )
    row_reply = RowReply(transaction_id, "", status, failure)
    return OperationReply(content, row_replies=(row_reply,), outcome=status)


def _unfit(sandbox: Sandbox, call: Call) -> str:
    refused = wrong(next(_malformed(call), ""))
    if refused or sandbox.options.profile != "extended":
        return refused
    statement = "SELECT 1 FROM effect WHERE request_id = ?"
    return (
        "duplicate_payout" if sandbox.database.select(statement, (call.text("request_id"),)) else ""
    )


PAYOUT = SandboxOperation(_answer, unfit=_unfit)


def _amount(call: Call) -> int:
    return call.amount("payment_amount", currency=call.text("payment_currency"))


def _source_currency(call: Call) -> str:
    return call.text("source_currency") or call.text("payment_currency")


def _leaves(sandbox: Sandbox, call: Call) -> int:
    """Amount that leaves the balance before any fee, in minor units of the source currency."""
    source, currency, amount = _source_currency(call), call.text("payment_currency"), _amount(call)
    if source == currency:
        return amount
    if given := call.amount("source_amount", currency=source):
        return given
    rates = sandbox.terms.payouts.per_euro
    rate = rates.get(source, Decimal(1)) / rates.get(currency, Decimal(1))
    exchanged = Money.of_minor_units(amount, currency=currency).amount * rate
    return Money(round(exchanged, exponent(source)), source).minor_units


def _echo(call: Call) -> dict[str, Any]:
    echoed: dict[str, Any] = {
        name: call.table(name) if name in PEOPLE else call.text(name) for name in ECHOED
    }
    details = echoed["beneficiary"].get("bank_details")
    if isinstance(details, dict):
        shown = {name: value for name, value in details.items() if name != "bank_code"}
        shown["local_clearing_system"] = CLEARING_SYSTEM
        echoed["beneficiary"] = echoed["beneficiary"] | {"bank_details": shown}
    return echoed


def _malformed(call: Call) -> Iterator[str]:
    currency, source = call.text("payment_currency"), _source_currency(call)
    if not is_uuid(call.text("request_id")):
        yield "request_id"
    if not is_currency(currency):
        yield "payment_currency"
    elif not _amount(call):
        yield "payment_amount"
    if not is_currency(source):
        yield "source_currency"
    if call.fields.get("source_amount") not in (None, ""):
        # In the payment's own currency it can only repeat the payment amount.
        leaves = call.amount("source_amount", currency=source)
        if not leaves or (source == currency and leaves != _amount(call)):
            yield "source_amount"
    if call.text("fee_paid_by") not in BEARERS:
        yield "fee_paid_by"
    if call.text("payment_date") and not is_date(call.text("payment_date")):
        yield "payment_date"
    if not call.table("beneficiary") and not call.text("beneficiary_id"):
        yield "beneficiary"
    for name in PEOPLE:
        yield from _in_person(call.table(name), path=name)


def _in_person(person: Mapping[str, Any], *, path: str, depth: int = 1) -> Iterator[str]:
    """Yield the paths of malformed dates and countries in a beneficiary or payer."""
    for name, value in person.items():
        at = f"{path}.{name}"
        if isinstance(value, Mapping):
            if depth < DEPTH_MAX:
                yield from _in_person(value, path=at, depth=depth + 1)
        elif value in (None, ""):
            continue
        elif (name in DATES and not is_date(text_of(value))) or (
            name in COUNTRIES and not _COUNTRY.fullmatch(text_of(value))
        ):
            yield at
