"""Domain terms as values: states, kinds, codes and small records.

Shared by every package of recon; independent of files, databases, HTTP and pandas. The docstring of
each record says what one of it represents. The terms are defined in docs/GLOSSARY.md and the
contract of reconciliation that it refers to.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

Clock = Callable[[], datetime]
"""Returns the current instant, with a time zone. Always an argument; never read from the system."""

DIGITS_READ = 16
"""Digits of a SHA-256 where people read or copy it; fewer might not distinguish files."""

PERMANENT, ACCRUAL, REVERSAL = "permanent", "accrual", "reversal"
"""Kinds of journals: for a break, for fees not booked by the close, and the latter's reversal."""


class OrderStatus(StrEnum):
    """Status of an order in the merchant's order file."""

    PENDING = "pending"
    AUTHORISED = "authorised"
    PAID = "paid"
    PARTIALLY_REFUNDED = "partially_refunded"
    REFUNDED = "refunded"
    CANCELLED = "cancelled"
    FAILED = "failed"


class GatewayState(StrEnum):
    """State of a payment at the gateway, after its status map."""

    NONE = "none"
    PENDING = "pending"
    IN_REVIEW = "in_review"
    AUTHORISED = "authorised"
    PAID = "paid"
    PARTIALLY_REFUNDED = "partially_refunded"
    REFUNDED = "refunded"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    FAILED = "failed"
    CHARGEBACK = "chargeback"
    UNMAPPED = "unmapped"
    UNVERIFIED = "unverified"


class KeyAnswer(StrEnum):
    """Kind of the gateway's answer for one key."""

    FOUND = "found"
    NOT_FOUND = "not_found"
    FAILED = "failed"
    UNMAPPED = "unmapped"


class EntryType(StrEnum):
    """Types of ledger entries; each also exists with the suffix `_reversal`."""

    CAPTURE = "capture"
    REFUND = "refund"
    FEE = "fee"
    CHARGEBACK = "chargeback"
    PAYOUT = "payout"
    RESERVE = "reserve"
    BANK = "bank"
    WRITE_OFF = "write_off"
    ADJUSTMENT = "adjustment"


REVERSAL_SUFFIX = "_reversal"


class InstructionKind(StrEnum):
    """Money movements and gateway actions that a merchant can instruct."""

    CAPTURE = "capture"
    REFUND = "refund"
    CANCEL = "cancel"
    REVIEW = "review"
    CANCEL_SUBSCRIPTION = "cancel_subscription"
    PAYOUT = "payout"


class InstructionState(StrEnum):
    """State of one instruction; its history is append-only."""

    PLANNED = "planned"
    APPROVED = "approved"
    IN_FLIGHT = "in_flight"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    IN_DOUBT = "in_doubt"
    RESOLVED_APPLIED = "resolved_applied"
    RESOLVED_NOT_APPLIED = "resolved_not_applied"
    NEEDS_HUMAN = "needs_human"
    WITHDRAWN = "withdrawn"


CONFIRMED_STATES = frozenset({InstructionState.CONFIRMED, InstructionState.RESOLVED_APPLIED})
REJECTED_STATES = frozenset({InstructionState.REJECTED, InstructionState.RESOLVED_NOT_APPLIED})
DOUBTFUL_STATES = frozenset(
    {InstructionState.IN_FLIGHT, InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN}
)
WAITING_STATES = frozenset({InstructionState.PLANNED, InstructionState.APPROVED})


class SetState(StrEnum):
    """Result of reconciling a set of items."""

    MATCHED = "MATCHED"
    PENDING = "PENDING"
    BREAK = "BREAK"
    UNVERIFIED = "UNVERIFIED"


class Verdict(StrEnum):
    """Verdict on a run, worst first."""

    NOT_PROVEN = "NOT PROVEN"
    INCOMPLETE = "INCOMPLETE"
    BREAKS_OPEN = "BREAKS OPEN"
    RECONCILED = "RECONCILED"

    @property
    def exit_code(self) -> int:
        """0 reconciled, 3 breaks open, 4 not proven or incomplete."""
        return End(self.value).exit_code


class End(StrEnum):
    """How a run ended: its verdict, preceded by money that needs a person.

    The verdict is about the workbook; a run with money in doubt may still have a good one.
    """

    MONEY_IN_DOUBT = "MONEY IN DOUBT"
    SENDING_STOPPED = "SENDING STOPPED"
    NOT_PROVEN = "NOT PROVEN"
    INCOMPLETE = "INCOMPLETE"
    BREAKS_OPEN = "BREAKS OPEN"
    RECONCILED = "RECONCILED"

    @property
    def exit_code(self) -> int:
        """0 reconciled, 3 breaks open, 4 not proven or incomplete, 5 money needs a person now."""
        if self in ALARMS:
            return 5
        if self in {End.NOT_PROVEN, End.INCOMPLETE}:
            return 4
        return 3 if self is End.BREAKS_OPEN else 0


ALARMS = frozenset({End.MONEY_IN_DOUBT, End.SENDING_STOPPED})
"""Ends that need a person now, whatever the verdict."""


class Severity(StrEnum):
    """How urgent a break is, least first."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


SEVERE = frozenset({Severity.HIGH.value, Severity.CRITICAL.value})
"""Severities that a person must answer before a run is signed, and that trigger an alarm."""


class BreakCode(StrEnum):
    """Why two sides differ, in order of precedence: the first found is the primary code."""

    WRONG_ACCOUNT = "WRONG_ACCOUNT"
    DUPLICATE_ORDER_ROW = "DUPLICATE_ORDER_ROW"
    DUPLICATE_PAYMENT = "DUPLICATE_PAYMENT"
    DUPLICATE_LEDGER_POSTING = "DUPLICATE_LEDGER_POSTING"
    AMBIGUOUS_MATCH = "AMBIGUOUS_MATCH"
    CURRENCY_MISMATCH = "CURRENCY_MISMATCH"
    STATUS_UNMAPPED = "STATUS_UNMAPPED"
    OVER_REFUND = "OVER_REFUND"
    CHARGEBACK_AFTER_REFUND = "CHARGEBACK_AFTER_REFUND"
    CHARGEBACK_NOT_BOOKED = "CHARGEBACK_NOT_BOOKED"
    CHARGEBACK_UNPROVEN = "CHARGEBACK_UNPROVEN"
    CHARGEBACK_REVERSED_NOT_BOOKED = "CHARGEBACK_REVERSED_NOT_BOOKED"
    STATUS_CONFLICT = "STATUS_CONFLICT"
    CANCEL_UNCONFIRMED = "CANCEL_UNCONFIRMED"
    CANCEL_REJECTED = "CANCEL_REJECTED"
    CANCEL_DUE = "CANCEL_DUE"
    CAPTURE_UNCONFIRMED = "CAPTURE_UNCONFIRMED"
    CAPTURE_REJECTED = "CAPTURE_REJECTED"
    AUTHORISATION_EXPIRED = "AUTHORISATION_EXPIRED"
    CAPTURE_DUE = "CAPTURE_DUE"
    REFUND_UNCONFIRMED = "REFUND_UNCONFIRMED"
    REFUND_REJECTED = "REFUND_REJECTED"
    REFUND_FAILED_AFTER_ACCEPT = "REFUND_FAILED_AFTER_ACCEPT"
    REFUND_DUE = "REFUND_DUE"
    REFUND_UNEXPECTED = "REFUND_UNEXPECTED"
    OVER_CAPTURE = "OVER_CAPTURE"
    PARTIAL_CAPTURE_UNEXPECTED = "PARTIAL_CAPTURE_UNEXPECTED"
    AMOUNT_OVER = "AMOUNT_OVER"
    AMOUNT_UNDER = "AMOUNT_UNDER"
    BOOKED_NOT_AT_GATEWAY = "BOOKED_NOT_AT_GATEWAY"
    MISSING_AT_GATEWAY = "MISSING_AT_GATEWAY"
    MISSING_IN_ORDERS = "MISSING_IN_ORDERS"
    REFUND_NOT_BOOKED = "REFUND_NOT_BOOKED"
    LEDGER_REFUND_ONLY = "LEDGER_REFUND_ONLY"
    LEDGER_AMOUNT_MISMATCH = "LEDGER_AMOUNT_MISMATCH"
    FX_DIFFERENCE = "FX_DIFFERENCE"
    MISSING_IN_LEDGER = "MISSING_IN_LEDGER"
    LEDGER_ONLY = "LEDGER_ONLY"
    PAYOUT_UNCONFIRMED = "PAYOUT_UNCONFIRMED"
    PAYOUT_FAILED = "PAYOUT_FAILED"
    PAYOUT_NOT_BOOKED = "PAYOUT_NOT_BOOKED"
    PAYOUT_AMOUNT_MISMATCH = "PAYOUT_AMOUNT_MISMATCH"
    LEDGER_PAYOUT_ONLY = "LEDGER_PAYOUT_ONLY"
    SETTLEMENT_MISSING = "SETTLEMENT_MISSING"
    SETTLEMENT_AMOUNT_MISMATCH = "SETTLEMENT_AMOUNT_MISMATCH"
    FEE_VARIANCE = "FEE_VARIANCE"
    UNEXPECTED_RECEIPT = "UNEXPECTED_RECEIPT"
    HELD_BACK = "HELD_BACK"
    FEE_NOT_BOOKED = "FEE_NOT_BOOKED"
    FEE_BOOKED_DIFFERS = "FEE_BOOKED_DIFFERS"
    RESERVE_NOT_BOOKED = "RESERVE_NOT_BOOKED"
    RESERVE_BOOKED_DIFFERS = "RESERVE_BOOKED_DIFFERS"
    PAYOUT_TWICE_AT_BANK = "PAYOUT_TWICE_AT_BANK"
    PAYOUT_RETURNED = "PAYOUT_RETURNED"
    BANK_AMOUNT_DIFFERS = "BANK_AMOUNT_DIFFERS"
    BANK_FX_DIFFERENCE = "BANK_FX_DIFFERENCE"
    PAYOUT_NOT_AT_BANK = "PAYOUT_NOT_AT_BANK"
    BANK_RECEIPT_UNKNOWN = "BANK_RECEIPT_UNKNOWN"
    BANK_NOT_BOOKED = "BANK_NOT_BOOKED"
    SPLIT_INCOMPLETE = "SPLIT_INCOMPLETE"
    REVIEW_STUCK = "REVIEW_STUCK"
    SUBSCRIPTION_NOT_ENDED = "SUBSCRIPTION_NOT_ENDED"
    STALE_PENDING = "STALE_PENDING"


class Flag(StrEnum):
    """Flags on a result that are never breaks of their own."""

    ROUNDING = "rounding"
    CUT_OFF_DIFFERENCE = "cut_off_difference"
    PORTAL_ACTION = "portal_action"
    REPLY_ONLY = "reply_only"
    ZERO_AMOUNT = "zero_amount"
    EXPIRING = "expiring"
    DATE_AHEAD = "date_ahead"
    ENTRY_VANISHED = "entry_vanished"
    INSTRUCTED = "instructed"
    CHARGEBACK_BOOKED = "chargeback_booked"
    WRITTEN_OFF = "written_off"
    NEVER_PAID = "never_paid"
    REFUNDED_BY_VOID = "refunded_by_void"
    REFERENCE_CONFLICT = "reference_conflict"
    NOT_COMPARED = "not_compared"
    LATE = "late"
    BY_AMOUNT = "by_amount"
    REPAID = "repaid"
    BANK_CHARGES = "bank_charges"
    EXCHANGED = "exchanged"
    JOINED = "joined"
    NO_PAYOUT = "no_payout"
    OVER_RELEASED = "over_released"
    BEFORE_LEDGER = "before_ledger"
    BOOKED_DIFFERS = "booked_differs"
    WITH_BANK = "with_bank"
    REFUND_FROM_SETTLEMENT = "refund_from_settlement"


class UnverifiedReason(StrEnum):
    """Why a set could not be verified."""

    QUERY_FAILED = "QUERY_FAILED"
    QUERY_RESULT_UNMAPPED = "QUERY_RESULT_UNMAPPED"
    ROW_QUARANTINED = "ROW_QUARANTINED"
    ENTRY_ID_CONFLICT = "ENTRY_ID_CONFLICT"
    REFUND_AMOUNT_UNKNOWN = "REFUND_AMOUNT_UNKNOWN"
    SIGNATURE_INVALID = "SIGNATURE_INVALID"
    ECHO_MISMATCH = "ECHO_MISMATCH"
    BATCH_QUARANTINED = "BATCH_QUARANTINED"
    ORDERS_MISSING = "ORDERS_MISSING"


class SourceKind(StrEnum):
    """The tables that a reconciliation reads."""

    ORDERS = "orders"
    GATEWAY = "gateway"
    LEDGER = "ledger"
    INSTRUCTIONS = "instructions"
    SETTLEMENT = "settlement"
    BANK = "bank"


@dataclass(frozen=True, slots=True)
class Reject:
    """One row of a source that could not be read, with its first invalid column."""

    kind: SourceKind
    source: str
    line: int
    """The physical line where the record starts; 1 is the header."""
    column: str
    reason: str
    value: str
    """The invalid text, with card numbers redacted."""
    merchant_id: str = ""
    account_id: str = ""
    order_no: str = ""
    entry_type: str = field(default="", repr=False)
    """Type of a ledger entry whose type, currency and amount are readable; else "", "" and 0.

    Excluded from repr, so that the digests of earlier runs stay valid.
    """
    currency: str = field(default="", repr=False)
    """Also set for a settlement line where it is readable."""
    amount: int = field(default=0, repr=False)
    """Minor units, as in the row."""
    batch_id: str = field(default="", repr=False)
    """Batch of a settlement line where it is readable; "" also where it was not stored."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An unreadable row of an order or its settlement that has not been replaced."""

    reject_id: int
    merchant_id: str
    """Merchant, account and order number are "" where they could not be read."""
    account_id: str
    order_no: str
    source: str
    line: int
    column: str
    reason: str

    @property
    def names_its_key(self) -> bool:
        """Whether merchant, account and order number could all be read."""
        return bool(self.merchant_id and self.account_id and self.order_no)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One input as it was read, with the counts that T0 and T1 compare."""

    kind: SourceKind
    name: str
    sha256: str
    size_bytes: int
    rows_read: int
    rows_accepted: int
    rows_rejected: int
    rows_skipped: int
    """Left out by a named rule (identical repeat), never silently."""
    rows_unassigned: int = 0
    """Rejected rows whose merchant or account could not be read."""
    skipped_by: str = ""
    """Layout rules that left rows out, with counts, such as `Type = Subtotal: 2`."""


@dataclass(frozen=True, slots=True)
class ControlTotal:
    """One equation of a proof: both sides from separate computations."""

    id: str
    """T0 .. T14, T5A, T5B, T5C."""
    name: str
    merchant_id: str
    account_id: str
    currency: str
    measure: str  # "count" | "amount"
    left: int
    right: int

    @property
    def difference(self) -> int:
        """Left minus right; minor units when the measure is an amount."""
        return self.left - self.right

    @property
    def passed(self) -> bool:
        """Whether both sides are equal."""
        return self.difference == 0
