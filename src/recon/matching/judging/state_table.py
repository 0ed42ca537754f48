"""What each pair of states means, as data (contract of reconciliation, §3).

A cell names the break code of a pair, which grace delays it (`Due.NOW`: none), and what makes the
pair agree instead. Chargebacks and unmapped states stand outside the table.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from recon.model.words import BreakCode, Flag


class Due(StrEnum):
    """Which grace delays a finding."""

    NOW = "now"
    ORDER = "order_to_gateway"
    HARD = "hard_limit"
    BOOKED = "ledger_entry"
    LEDGER = "gateway_to_ledger"
    LEDGER_REFUND = "refund_to_ledger"
    CAPTURE = "capture_confirmed"
    CANCEL = "cancel_confirmed"
    REFUND = "refund_confirmed"
    CAPTURE_WAITING = "capture_waiting"
    CANCEL_WAITING = "cancel_waiting"
    REFUND_WAITING = "refund_waiting"
    REVIEW = "review_confirmed"
    PAYOUT = "payout_booked"
    SETTLEMENT = "settlement"


class StateCell(NamedTuple):
    """One pair of states."""

    code: BreakCode | None = None
    """None: the pair agrees."""
    due: Due = Due.NOW
    flag: Flag | None = None
    """Shown when the pair agrees."""
    compare: bool = False
    """The amounts decide."""
    net_zero_side: str = ""
    """This side's net must be 0, else the pair is a STATUS_CONFLICT."""


MATCHED = StateCell()
COMPARE = StateCell(compare=True)
MISSING = StateCell(BreakCode.MISSING_AT_GATEWAY, Due.ORDER)
STALE = StateCell(BreakCode.STALE_PENDING, Due.HARD)
NEVER = StateCell(None, Due.HARD, Flag.NEVER_PAID)
CONFLICT = StateCell(BreakCode.STATUS_CONFLICT)
EXPIRED = StateCell(BreakCode.AUTHORISATION_EXPIRED)
CAPTURE = StateCell(BreakCode.CAPTURE_DUE)
CANCEL = StateCell(BreakCode.CANCEL_DUE)
REFUND = StateCell(BreakCode.REFUND_DUE)
UNEXPECTED = StateCell(BreakCode.REFUND_UNEXPECTED)
NO_ORDER = StateCell(BreakCode.MISSING_IN_ORDERS, Due.ORDER)
BY_VOID = StateCell(flag=Flag.REFUNDED_BY_VOID, net_zero_side="order")
GIVEN_BACK = StateCell(net_zero_side="gateway")

COLUMNS = (
    "none",
    "pending",
    "authorised",
    "paid",
    "partially_refunded",
    "refunded",
    "cancelled",
    "expired",
    "failed",
)
"""Gateway states; in_review reads as pending."""

_ROWS: Mapping[str, tuple[StateCell, ...]] = {
    "paid": (
        MISSING, STALE, CAPTURE, COMPARE, UNEXPECTED, UNEXPECTED, CONFLICT, EXPIRED, CONFLICT,
    ),
    "authorised": (
        MISSING, STALE, MATCHED, CONFLICT, CONFLICT, CONFLICT, CONFLICT, EXPIRED, CONFLICT,
    ),
    "partially_refunded": (
        MISSING, STALE, CAPTURE, REFUND, COMPARE, UNEXPECTED, CONFLICT, CONFLICT, CONFLICT,
    ),
    "refunded": (
        MISSING, STALE, CANCEL, REFUND, REFUND, COMPARE, BY_VOID, BY_VOID, CONFLICT,
    ),
    "cancelled": (
        MATCHED, STALE, CANCEL, CONFLICT, CONFLICT, GIVEN_BACK, MATCHED, MATCHED, MATCHED,
    ),
    "failed": (
        MATCHED, STALE, CANCEL, CONFLICT, CONFLICT, GIVEN_BACK, MATCHED, MATCHED, MATCHED,
    ),
    "pending": (
        NEVER, STALE, STALE, CONFLICT, CONFLICT, CONFLICT, MATCHED, MATCHED, MATCHED,
    ),
    "none": (
        MATCHED, STALE, NO_ORDER, NO_ORDER, NO_ORDER, NO_ORDER, MATCHED, MATCHED, MATCHED,
    ),
}  # fmt: skip
TABLE: Mapping[tuple[str, str], StateCell] = {
    (order, gateway): cell
    for order, cells in _ROWS.items()
    for gateway, cell in zip(COLUMNS, cells, strict=True)
}


def cell_of(order_state: str, gateway_state: str) -> StateCell:
    """The cell of a pair; a state outside the table says nothing by itself."""
    column = "pending" if gateway_state == "in_review" else gateway_state
    return TABLE.get((order_state, column), MATCHED)
