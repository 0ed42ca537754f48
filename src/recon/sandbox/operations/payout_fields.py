"""What a payout request must say before it is one: the first parameter that is wrong, by its place.

The forms are those of the API document (2.9): a UUID, days as YYYY-MM-DD, two-letter countries,
amounts with two decimals. Somebody has to be paid: a beneficiary or its id.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from recon.sandbox.ground.operation_call import Call, amount_of
from recon.sandbox.ground.signatures import text_of
from recon.sandbox.ground.wire_text import is_country, is_currency, is_date, is_uuid

PAYER = "PAYER"
BENEFICIARY = "BENEFICIARY"
PEOPLE = ("beneficiary", "payer")
DATES = frozenset({"payment_date", "date_of_birth"})
COUNTRIES = frozenset({"country_code", "bank_country_code", "personal_fiscal_country"})
DEPTH_MAX = 4


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
    """A source amount may only say again what the payment amount says: nothing is exchanged."""
    if call.text("source_currency") not in {"", currency}:
        yield "source_currency"
    given, payment = call.fields.get("source_amount"), call.fields.get("payment_amount")
    if given in (None, ""):
        return
    if amount_of(given, currency=currency) != amount_of(payment, currency=currency):
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
