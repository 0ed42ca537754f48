"""The few facts that decide a set, and the distinct combinations of them that occur.

A night of a million sets has some hundred distinct patterns; each is judged once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from recon.matching.frames.grouping import Rows
from recon.matching.judging.state_table import Due
from recon.matching.sides.gateway_side import GATEWAY_STATES
from recon.matching.sides.orders_side import ORDER_STATES
from recon.model.words import UnverifiedReason

PACKED_MAX = 2**62
UNVERIFIED_REASONS = (
    UnverifiedReason.ROW_QUARANTINED,
    UnverifiedReason.ENTRY_ID_CONFLICT,
    UnverifiedReason.QUERY_FAILED,
    UnverifiedReason.QUERY_RESULT_UNMAPPED,
    UnverifiedReason.REFUND_AMOUNT_UNKNOWN,
)
"""In this order the first that applies is shown; number n+1 stands for the n-th, 0 for none."""

SHOWN_EXACTLY = 1
"""Refunds of ours, the doubtful with them, come to what the gateway shows refunded."""

CLOCKS = tuple(clock for clock in Due if clock is not Due.NOW)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is known of a set, without its amounts. Signs are -1, 0, 1 after tolerance."""

    order_state: int
    gateway_state: int
    unverified: int
    orders_lack: int
    """No order, and an order file is lacking that may tell of it."""
    anything: int
    """Any order, payment or compared entry."""
    wrong_account: int
    ambiguous: int
    order_duplicate: int
    currency_mismatch: int
    foreign_payment: int
    """The gateway holds nothing in the set's currency."""
    unmapped: int
    several_payments: int
    net_sign: int
    """These three: with what our replies say of refunds, where the order tells of refunds."""
    captured_sign: int
    refunded_sign: int
    rounded: int
    residual_orders: int
    """Sign of what nothing explains on the leg of orders."""
    both_known: int
    over_authorised: int
    over_refund: int
    order_net: int
    gateway_net: int
    explained: int
    """A confirmed instruction of ours explains exactly what the gateway shows."""
    captured: int
    refunded: int
    """With what our replies say of refunds."""
    refund_unknown: int
    covered: int
    """A ledger was given."""
    ledger_net: int
    ledger_captured: int
    ledger_refunded: int
    ledger_chargeback: int
    """These two: signs; below 0 a reversal stands without its original."""
    ledger_capture_differs: int
    ledger_refund_differs: int
    ledger_rounded: int
    residual_ledger: int
    """Sign of what nothing explains on the leg of the ledger."""
    booked_twice: int
    refund_evidence: int
    chargeback_before: int
    closed_orders: int
    closed_ledger: int
    capture_confirmed: int
    capture_rejected: int
    capture_doubtful: int
    capture_waiting: int
    cancel_confirmed: int
    cancel_rejected: int
    cancel_doubtful: int
    cancel_waiting: int
    refund_confirmed: int
    """These five: without a visible effect."""
    refund_rejected: int
    refund_doubtful: int
    refund_waiting: int
    refund_failed_later: int
    refund_doubt_shown: int
    """SHOWN_EXACTLY, or above it where the gateway shows more refunded than is ours; else 0."""
    reply_only: int
    """A confirmed refund that the query cannot show."""
    refund_running: int
    """A confirmed refund that the query does not show yet, within its grace."""
    tells_refund: int
    """The order says what it expects refunded."""
    review_confirmed: int
    """These three: and the gateway still has it in review."""
    review_rejected: int
    review_doubtful: int
    subscription_stands: int
    """We asked to end one, and nothing says that it ended."""
    exchange_differs: int
    settled: int
    """Any line of a settlement file."""
    settled_capture: int
    settled_differs: int
    charged_by_lines: int
    """The settlement took a chargeback of it, and the gateway shows the payment with its money; 2:
    and the books have exactly that."""
    settlement_owed: int
    """A settlement file of its days exists."""
    fee_differs: int
    payout: int
    """Bits of payouts.Paid; 0 for what is no payout."""
    late: int
    """Bit n: the n-th of CLOCKS has run out."""

    @property
    def order(self) -> str:
        """The order's state as a word; `none` without one."""
        return ORDER_STATES[self.order_state]

    @property
    def gateway(self) -> str:
        """The gateway's state as a word."""
        return GATEWAY_STATES[self.gateway_state]

    def is_late(self, clock: Due) -> bool:
        """Whether the grace has ended; `NOW` always has."""
        return clock is Due.NOW or bool(self.late >> CLOCKS.index(clock) & 1)


PATTERN_FIELDS = tuple(field.name for field in fields(Pattern))


def distinct_patterns(columns: Mapping[str, Rows]) -> tuple[Rows, list[Pattern]]:
    """The pattern number of each set, and the distinct patterns."""
    size = len(columns[PATTERN_FIELDS[0]])
    packed, span = np.zeros(size, dtype=np.int64), 1
    for name in PATTERN_FIELDS:
        values = columns[name]
        low = int(values.min(initial=0))
        width = int(values.max(initial=0)) - low + 1
        if span * width > PACKED_MAX:
            packed, known = pd.factorize(packed)
            span = len(known)
        packed = packed * width + (values - low)
        span *= width
    numbers = pd.factorize(packed)[0].astype(np.intp)
    _, first = np.unique(numbers, return_index=True)
    picked = [columns[name][first].tolist() for name in PATTERN_FIELDS]
    return numbers, [Pattern(*values) for values in zip(*picked, strict=True)]
