"""Whether a row on the wire is what its instruction says: same kind, payment and money."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from recon.gateway_client.batches import Operation, text_problem
from recon.gateway_client.interface import GatewayInterface
from recon.model.errors import AmountError
from recon.model.money import Money
from recon.model.words import InstructionKind

Terms = Mapping[str, str | int]
Wire = Mapping[str, str]

KINDS: Mapping[str, InstructionKind] = {
    Operation.CAPTURE: InstructionKind.CAPTURE,
    Operation.REFUND: InstructionKind.REFUND,
    Operation.CANCEL: InstructionKind.CANCEL,
    Operation.REVIEW: InstructionKind.REVIEW,
    Operation.CANCEL_SUBSCRIPTION: InstructionKind.CANCEL_SUBSCRIPTION,
    Operation.PAYOUT: InstructionKind.PAYOUT,
}
"""Template -> what it does; every other template moves nothing that was instructed."""

MOVED_IN: Mapping[InstructionKind, str] = {
    InstructionKind.CAPTURE: "amount",
    InstructionKind.REFUND: "refund_amount",
    InstructionKind.PAYOUT: "payment_amount",
}
"""The field of the wire that says how much moves."""
WHOLE_IN = frozenset({InstructionKind.REFUND, InstructionKind.CANCEL, InstructionKind.REVIEW})
"""Kinds whose `amount` on the wire is the whole payment's."""
AMOUNT_NEEDED = frozenset({InstructionKind.CANCEL, InstructionKind.REVIEW})
"""Kinds that count by that amount, so that it must be one."""
_K = InstructionKind
SAME: Mapping[InstructionKind, Mapping[str, str]] = {
    _K.CAPTURE: {"order_no": "order_no", "currency": "currency"},
    _K.REFUND: {"order_no": "order_no", "currency": "currency"},
    _K.CANCEL: {"order_no": "order_no", "currency": "currency"},
    _K.REVIEW: {"order_no": "order_no", "currency": "currency"},
    _K.CANCEL_SUBSCRIPTION: {"recurring_id": "recurring_id", "contract_name": "contract_name"},
    _K.PAYOUT: {"request_id": "gateway_request_id", "payment_currency": "currency"},
}
"""Field of the wire -> of the instruction; both say the same."""
IF_NAMED: Mapping[str, str] = {"transaction_id": "transaction_id", "review_flag": "review_flag"}
"""The same, where the instruction says anything: which payment of an order is found out later."""


AMOUNT = re.compile(r"[0-9]{1,15}(\.[0-9]{1,4})?", re.ASCII)
"""An amount as it stands on the wire: no sign, which would give back to a limit what it used."""


def row_differs(wire: Wire, *, kind: InstructionKind, account: str, terms: Terms) -> str:
    """What a row has otherwise than its instruction, in words; "" when they agree."""
    if terms.get("kind") != kind.value:
        return f"its instruction is a {terms.get('kind', 'nothing')}, not a {kind.value}"
    if f"{terms.get('merchant_id')}/{terms.get('account_id')}" != account:
        return "its instruction is another account's"
    wanted = dict(SAME[kind]) | {w: t for w, t in IF_NAMED.items() if w in wire and terms.get(t)}
    for field, term in wanted.items():
        if wire.get(field, "") != str(terms.get(term, "")):
            return f"its {field} is not the instruction's"
    return _amount_differs(wire, kind=kind, terms=terms)


def _amount_differs(wire: Wire, *, kind: InstructionKind, terms: Terms) -> str:
    moved, whole = terms.get("amount", 0), terms.get("payment_amount", 0)
    currency = str(terms.get("currency", ""))
    field = MOVED_IN.get(kind)
    if field and _minor(wire, field, currency=currency) != moved:
        return f"its {field} is not the instruction's"
    shown = _minor(wire, "amount", currency=currency)
    if kind in WHOLE_IN and whole and shown != whole:
        return "its amount is not that of the instruction's payment"
    if shown is None and (kind in AMOUNT_NEEDED or wire.get("amount")):
        return "its amount is none"
    return ""


def grammar_problem(wire: Wire, *, interface: GatewayInterface) -> str:
    """Why the ids of a row must not be signed: a space that is removed makes another id of one."""
    for field in ("transaction_id", "order_no", "currency"):
        if field in wire and (reason := text_problem(field, text=wire[field], interface=interface)):
            return f"its {field} {reason}"
    return ""


def moved_units(wire: Wire, *, kind: InstructionKind, terms: Terms) -> int:
    """How much a row moves, minor units; of a cancel what it gives up, of a review all of it."""
    field = MOVED_IN.get(kind, "amount")
    return _minor(wire, field, currency=str(terms.get("currency", ""))) or 0


def _minor(wire: Wire, field: str, *, currency: str) -> int | None:
    if not AMOUNT.fullmatch(wire.get(field, "")):
        return None
    try:
        return Money(Decimal(wire.get(field, "")), currency).minor_units
    except (InvalidOperation, AmountError, ValueError):
        return None
