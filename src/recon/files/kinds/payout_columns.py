"""The payout columns of an instruction file, named as the API document names the fields (2.9).

Dots lead into objects: `beneficiary.bank_details.iban`. A payee has one document at most, in
`beneficiary.person_documents.<field>`, its labels separated by semicolons.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from recon.config.mistakes import mistakes_of
from recon.gateway_client import PayoutRow
from recon.settlement.sealing import masked_account

_FROM_COMMON = frozenset({"request_id", "payment_amount", "payment_currency", "reason"})
"""Fields that the common columns of the file give."""

_LIST = "beneficiary.person_documents"
_PLACEHOLDER_ID = "00000000-0000-4000-8000-000000000000"
"""Stands for the request id, which planning makes."""


@dataclass(frozen=True, slots=True)
class ReadPayout:
    """One payout, read; nothing of it shows in a repr."""

    document: str = field(repr=False)
    """The fields as JSON, but for request id, amount and currency."""
    payee_identity: str = field(repr=False)
    """What makes a payee the same payee: the account, else the gateway's own id of it."""
    payee_shown: str


def _leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{name}"
        below = _model_in(info.annotation)
        if below is not None:
            yield from _leaves(below, f"{path}.")
        elif path not in _FROM_COMMON:
            yield path


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


PAYOUT_COLUMNS: tuple[str, ...] = tuple(_leaves(PayoutRow))
"""Every column that a payout row may fill beside the common ones."""


def read_payout(
    details: Mapping[str, str], *, amount: Decimal, currency: str, reason: str
) -> ReadPayout | tuple[str, str]:
    """A payout, or the (column, reason) for which it is refused; reasons show no value."""
    fields = _nested(details) | ({"reason": reason} if reason else {})
    try:
        row = PayoutRow.model_validate(
            fields
            | {
                "request_id": _PLACEHOLDER_ID,
                "payment_amount": amount,
                "payment_currency": currency,
            }
        )
    except ValidationError as error:
        path, what = mistakes_of(error)[0]
        return path or "(row)", f"cannot be read: {what[:100]}"
    bank = row.beneficiary.bank_details if row.beneficiary else None
    account = (bank.iban or bank.account_number) if bank else ""
    if not account and not row.beneficiary_id:
        column = "beneficiary.bank_details.iban"
        return column, "is blank, as are account_number and beneficiary_id: nobody would be paid"
    identity = [
        account.replace(" ", "").upper(),
        bank.swift_code if bank and account else "",
        bank.bank_code if bank and account else "",
        "" if account else row.beneficiary_id,
    ]
    shown = masked_account(account) if account else f"payee {row.beneficiary_id[:20]}"
    document = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return ReadPayout(document, "\x1f".join(identity), shown)


def _nested(details: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, text in details.items():
        *above, name = path.split(".")
        branch = tree
        for part in above:
            branch = branch.setdefault(part, {})
        branch[name] = text.split(";") if path == f"{_LIST}.labels" else text
    documents = tree.get("beneficiary", {}).get("person_documents")
    if documents:
        tree["beneficiary"]["person_documents"] = [documents]
    return tree
