"""The tables that recon reads: their columns in order, and what each cell may hold.

The frames made from them have exactly the columns and types of `recon.matching.frames.sources`; a
test of the order files checks that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from recon.config.fee_contract import FACTS
from recon.model.terms import (
    REVERSAL_SUFFIX,
    EntryType,
    InstructionKind,
    InstructionState,
    OrderStatus,
    SourceKind,
)

_LETTERS = "A-Za-z0-9_\u00c0-\u024f"
"""Letters and digits of portals' status terms, in the languages of Europe."""


class Grammar(Enum):
    """Allowed texts of a cell: a pattern (same meaning in RE2 and Python), and its description."""

    ACCOUNT = (r"[A-Za-z0-9._-]{1,50}", "an id of letters, digits and . _ -, at most 50")
    ORDER_KEY = (
        r"[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,49}",
        "an order key of letters, digits and . _ # / : -, at most 50",
    )
    TRANSACTION = (r"[A-Za-z0-9._-]{1,50}", "a transaction id of letters, digits and . _ -")
    REFERENCE = (r"[!-~](?:[ -~]{0,62}[!-~])?", "a reference of at most 64 ASCII characters")
    CODE = (r"-?[A-Za-z0-9_]{1,20}", "a code of letters and digits")
    STATE = (
        f"[{_LETTERS}-](?:[{_LETTERS} ()/.,:+&'-]{{0,62}}[{_LETTERS})])?",
        "a state of letters, digits, blanks and ( ) / . , : + & ' -, at most 64",
    )
    DATE = (r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])", "a date such as 2026-11-19")
    NAME = (r"[^\x00-\x1f\x7f]{1,255}", "a name of at most 255 characters")
    IBAN = (r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", "an IBAN without blanks")
    WORDS = (r"[^\x00-\x1f\x7f]+", "a text on one line")
    REASON = (r"[!-~](?:[ -~]{0,48}[!-~])?", "a reason of at most 50 plain ASCII characters")


class Cell(Enum):
    """Type of a cell that is not plain text."""

    CURRENCY = "currency"
    AMOUNT = "amount"
    INSTANT = "instant"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a table."""

    name: str
    cell: Grammar | Cell | frozenset[str]
    """A grammar for text, a typed cell, or the allowed terms."""
    required: bool = True
    """The column must exist."""
    blank: bool = False
    """Its cells may be blank; always true for columns that are not required."""
    currency: str = "currency"
    """For an amount: the column with its currency."""

    @property
    def may_be_blank(self) -> bool:
        """Whether a row may leave this cell blank."""
        return self.blank or not self.required


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One kind of table."""

    kind: SourceKind
    columns: tuple[TableColumn, ...]
    needs_line_end: bool = False
    """A last line without a line end may have been cut off: its row is rejected."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns in order."""
        return tuple(column.name for column in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that a file must have."""
        return tuple(column.name for column in self.columns if column.required)


def _optional(name: str, cell: Grammar | Cell | frozenset[str], currency: str = "") -> TableColumn:
    return TableColumn(name, cell, required=False, currency=currency or "currency")


ENTRY_TYPES = frozenset(
    word + suffix for word in map(str, EntryType) for suffix in ("", REVERSAL_SUFFIX)
)
SIGNED_ENTRY_TYPES = frozenset({EntryType.ADJUSTMENT, EntryType.ADJUSTMENT + REVERSAL_SUFFIX})
"""Only these may have a minus."""

_LOWERING = {
    EntryType.REFUND,
    EntryType.CHARGEBACK,
    EntryType.FEE,
    EntryType.RESERVE,
    EntryType.PAYOUT,
}
DIRECTIONS: Mapping[str, int] = {
    f"{kind}{suffix}": way * (-1 if kind in _LOWERING else 1)
    for kind in (EntryType.CAPTURE, *_LOWERING)
    for suffix, way in (("", 1), (REVERSAL_SUFFIX, -1))
}
"""Entry type -> 1 if it raises what the gateway owes, -1 if it lowers it; entries of other types
may be on either side of a ledger."""

ACTIONS = frozenset(
    {
        str(InstructionKind.CAPTURE),
        str(InstructionKind.REFUND),
        str(InstructionKind.CANCEL),
        str(InstructionKind.REVIEW),
    }
)
KINDS_WITHOUT_TRANSACTION = frozenset(
    {str(InstructionKind.PAYOUT), str(InstructionKind.CANCEL_SUBSCRIPTION)}
)

_KEY = (TableColumn("merchant_id", Grammar.ACCOUNT), TableColumn("account_id", Grammar.ACCOUNT))

ORDERS = TableSchema(
    SourceKind.ORDERS,
    (
        *_KEY,
        TableColumn("order_no", Grammar.ORDER_KEY),
        TableColumn("currency", Cell.CURRENCY),
        TableColumn("amount", Cell.AMOUNT),
        TableColumn("status", frozenset(map(str, OrderStatus))),
        TableColumn("ordered_at", Cell.INSTANT),
        _optional("transaction_id", Grammar.TRANSACTION),
        _optional("expected_captured_amount", Cell.AMOUNT),
        _optional("refund_amount", Cell.AMOUNT),
        _optional("updated_at", Cell.INSTANT),
    ),
)

ORDER_FILE = TableSchema(
    SourceKind.ORDERS,
    (
        *ORDERS.columns,
        _optional("action", ACTIONS),
        _optional("action_amount", Cell.AMOUNT),
        _optional("action_reason", Grammar.REASON),
        _optional("request_id", Grammar.TRANSACTION),
    ),
    needs_line_end=True,
)
"""The inbox file of a run: orders with their requested actions."""

GATEWAY = TableSchema(
    SourceKind.GATEWAY,
    (
        *_KEY,
        TableColumn("order_no", Grammar.ORDER_KEY, blank=True),
        TableColumn("transaction_id", Grammar.TRANSACTION),
        TableColumn("currency", Cell.CURRENCY),
        TableColumn("amount", Cell.AMOUNT),
        TableColumn("payment_status", Grammar.STATE),
        TableColumn("query_result", Grammar.CODE),
        # The gateway's own reference joins sets; a payment without one can still be classified.
        TableColumn("reference_no", Grammar.REFERENCE, blank=True),
        TableColumn("transaction_date", Cell.INSTANT),
        _optional("authorised_amount", Cell.AMOUNT),
        _optional("captured_amount", Cell.AMOUNT),
        _optional("refunded_amount", Cell.AMOUNT),
        _optional("queried_at", Cell.INSTANT),
    ),
)

LEDGER = TableSchema(
    SourceKind.LEDGER,
    (
        TableColumn("entry_id", Grammar.REFERENCE),
        *_KEY,
        TableColumn("order_no", Grammar.ORDER_KEY, blank=True),
        TableColumn("entry_type", ENTRY_TYPES),
        TableColumn("currency", Cell.CURRENCY),
        TableColumn("amount", Cell.AMOUNT),
        TableColumn("booked_at", Cell.INSTANT),
        _optional("transaction_id", Grammar.TRANSACTION),
        _optional("reference_no", Grammar.REFERENCE),
        _optional("reverses_entry_id", Grammar.REFERENCE),
        _optional("transaction_currency", Cell.CURRENCY),
        _optional("transaction_amount", Cell.AMOUNT, "transaction_currency"),
    ),
)

INSTRUCTIONS = TableSchema(
    SourceKind.INSTRUCTIONS,
    (
        TableColumn("instruction_id", Grammar.REFERENCE),
        *_KEY,
        TableColumn("order_no", Grammar.ORDER_KEY, blank=True),
        TableColumn("transaction_id", Grammar.TRANSACTION, blank=True),
        TableColumn("kind", frozenset(map(str, InstructionKind))),
        TableColumn("currency", Cell.CURRENCY),
        TableColumn("amount", Cell.AMOUNT),
        TableColumn("state", frozenset(map(str, InstructionState))),
        _optional("request_id", Grammar.TRANSACTION),
        _optional("approved_at", Cell.INSTANT),
        _optional("sent_at", Cell.INSTANT),
        _optional("outcome_at", Cell.INSTANT),
        _optional("refund_reference_id", Grammar.REFERENCE),
    ),
)

SETTLED_TYPES = frozenset({*map(str, EntryType)} - {str(EntryType.WRITE_OFF), str(EntryType.BANK)})
SETTLEMENT = TableSchema(
    SourceKind.SETTLEMENT,
    (
        TableColumn("batch_id", Grammar.REFERENCE),
        *_KEY,
        TableColumn("settled_on", Grammar.DATE),
        TableColumn("entry_type", SETTLED_TYPES),
        TableColumn("order_no", Grammar.ORDER_KEY, blank=True),
        TableColumn("transaction_id", Grammar.TRANSACTION, blank=True),
        TableColumn("reference_no", Grammar.REFERENCE, blank=True),
        TableColumn("currency", Cell.CURRENCY),
        TableColumn("gross", Cell.AMOUNT),
        TableColumn("fee", Cell.AMOUNT),
        TableColumn("net", Cell.AMOUNT),
        # Our name of a refund or payout; many gateways report only their own reference.
        _optional("own_reference", Grammar.REFERENCE),
        # Facts that a fee contract may depend on.
        *(_optional(fact, Grammar.REFERENCE) for fact in FACTS),
    ),
)
SETTLEMENT_FILE = replace(SETTLEMENT, needs_line_end=True)
"""The settlement file of a run: one that was cut off is detected."""

BANK_STATES = frozenset({"booked", "pending"})
BANK = TableSchema(
    SourceKind.BANK,
    (
        TableColumn("iban", Grammar.IBAN),
        TableColumn("statement_no", Grammar.REFERENCE),
        TableColumn("from_date", Grammar.DATE),
        TableColumn("to_date", Grammar.DATE),
        TableColumn("opening", Cell.AMOUNT, blank=True),
        TableColumn("closing", Cell.AMOUNT, blank=True),
        # A statement without entries is one row that lacks these three and the amount.
        TableColumn("entry_no", Grammar.REFERENCE, blank=True),
        TableColumn("booked_on", Grammar.DATE, blank=True),
        TableColumn("value_on", Grammar.DATE, blank=True),
        TableColumn("currency", Cell.CURRENCY),
        TableColumn("amount", Cell.AMOUNT, blank=True),
        _optional("end_to_end_id", Grammar.WORDS),
        _optional("reference", Grammar.WORDS),
        _optional("counterparty", Grammar.WORDS),
        _optional("text", Grammar.WORDS),
        _optional("status", BANK_STATES),
        _optional("reversal", frozenset({"yes", "no", "true", "false", "1", "0"})),
        _optional("charges", Cell.AMOUNT),
        _optional("instructed_currency", Cell.CURRENCY),
        _optional("instructed_amount", Cell.AMOUNT, "instructed_currency"),
    ),
    needs_line_end=True,
)
"""One row per entry, signed from the merchant's account, with its statement's columns repeated."""

_SCHEMAS: Mapping[SourceKind, TableSchema] = {
    schema.kind: schema for schema in (ORDERS, GATEWAY, LEDGER, INSTRUCTIONS, SETTLEMENT, BANK)
}


def schema_of(kind: SourceKind) -> TableSchema:
    """Return the table schema of a kind of file."""
    return _SCHEMAS[kind]
