"""Why a payout must not be sent. Reasons name fields, never their values."""

import re
from collections.abc import Iterator, Mapping

from recon.gateway_client.interface.payout import PayoutRow
from recon.gateway_client.wire.addresses import is_private_way
from recon.gateway_client.wire.private_fields import given_leaves, is_blank

IBAN_MODULUS = 97
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def payout_problems(
    row: PayoutRow, *, grammar: Mapping[str, str], characters_max: int
) -> Iterator[tuple[str, str]]:
    """Pairs of a field (dots lead into objects) and why it must not be sent.

    Args:
        row: The payout.
        grammar: Patterns of single fields, by their last name.
        characters_max: Of a field without a pattern.
    """
    for path, value in given_leaves(row):
        name = path.rpartition(".")[2]
        if not isinstance(value, str):
            continue
        problem = _text_problem(value, pattern=grammar.get(name, ""), characters_max=characters_max)
        if problem:
            yield path, problem
    yield from _source_problems(row)
    if is_blank(row.beneficiary) and not row.beneficiary_id:
        yield "beneficiary", "and beneficiary_id are both empty: nobody would be paid"
    if row.beneficiary and row.beneficiary.bank_details:
        iban = row.beneficiary.bank_details.iban
        if iban and not has_iban_check(iban):
            yield "beneficiary.bank_details.iban", "fails its check digits"
    if row.notify_url and not is_private_way(row.notify_url):
        yield "notify_url", "is not https (http is allowed to 127.0.0.1 or [::1] only)"


def has_iban_check(iban: str) -> bool:
    """Whether the check digits of an IBAN fit the rest of it (ISO 7064)."""
    turned = iban[4:] + iban[:4]
    if not (turned.isascii() and turned.isalnum()):
        return False
    return int("".join(str(int(character, 36)) for character in turned)) % IBAN_MODULUS == 1


def _text_problem(text: str, *, pattern: str, characters_max: int) -> str:
    if pattern and re.fullmatch(pattern, text, re.ASCII) is None:
        return f"does not have the form {pattern}"
    if _CONTROL.search(text):
        return "has characters that cannot be sent"
    if len(text) > characters_max:
        return f"is longer than {characters_max} characters"
    return ""


def _source_problems(row: PayoutRow) -> Iterator[tuple[str, str]]:
    """Two amounts of one currency that differ would leave it to the gateway which one is paid."""
    if row.source_amount is None:
        return
    if not row.source_currency:
        yield "source_currency", "is empty, and source_amount needs one"
    elif row.source_currency == row.payment_currency and row.source_amount != row.payment_amount:
        yield "source_amount", "differs from the payment amount in the same currency; give one"
