"""What stands in the files of a night's folder: every column typed and documented once.

Money is int64 minor units of the currency beside it, instants are UTC microseconds, text that was
not given is "". A column is never null unless its type says so. The rows of a file are sorted by
its key. A reader that meets a version from the future refuses the file by its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

METADATA = b"recon.schema"
"""Key of a Parquet file's metadata; its value is FileSchema.label."""
MINOR_UNITS = "minor units of the currency"
ROWS = "rows"
UTC_MICROSECONDS = "microseconds, UTC"
ISO_DATE = "ISO date"


@dataclass(frozen=True, slots=True)
class FileSchema:
    """One file of a night's folder."""

    name: str
    folder: str
    """Folder beside which it stands: inputs, compared, results or proof."""
    columns: pa.Schema
    """Fields with `doc` and, where there is one, `unit` in their metadata."""
    key: tuple[str, ...]
    """Columns by which its rows are sorted."""
    version: int = 1

    @property
    def path(self) -> str:
        """Where it stands, from the night's folder."""
        return f"{self.folder}/{self.name}.parquet"

    @property
    def label(self) -> bytes:
        """Name and version, as they stand in the file's metadata."""
        return f"{self.name}/{self.version}".encode()


def _field(
    name: str, kind: pa.DataType, doc: str, *, unit: str = "", nullable: bool = False
) -> pa.Field:
    told = {"doc": doc, "unit": unit} if unit else {"doc": doc}
    return pa.field(name, kind, nullable=nullable, metadata=told)


def _word(name: str, doc: str) -> pa.Field:
    """Text of few different values."""
    return _field(name, pa.dictionary(pa.int32(), pa.string()), doc)


def _text(name: str, doc: str, *, unit: str = "") -> pa.Field:
    return _field(name, pa.string(), doc, unit=unit)


def _money(name: str, doc: str) -> pa.Field:
    return _field(name, pa.int64(), doc, unit=MINOR_UNITS)


def _money_or_blank(name: str, doc: str) -> pa.Field:
    return _field(name, pa.int64(), f"{doc}; null: not given", unit=MINOR_UNITS, nullable=True)


def _count(name: str, doc: str) -> pa.Field:
    return _field(name, pa.int64(), doc, unit=ROWS)


def _instant(name: str, doc: str) -> pa.Field:
    kind = pa.timestamp("us", tz="UTC")
    return _field(name, kind, f"{doc}; null: not given", unit=UTC_MICROSECONDS, nullable=True)


MERCHANT = _word("merchant_id", "the merchant, as the gateway names it")
ACCOUNT = _word("account_id", "the merchant's account at the gateway")
ORDER_NO = _text("order_no", "the merchant's order number; blank: the row names no order")
TRANSACTION = _text("transaction_id", "the payment's number at the gateway")
REFERENCE = _text("reference_no", "another number by which the row names a payment")
CURRENCY = _word("currency", "ISO 4217 code of the amounts of this row")
SOURCE = _word("source", "the file or service that the row came from")
LINE = _field("line", pa.int64(), "the line where the row starts in its source", unit="line")
KEY = (MERCHANT, ACCOUNT, ORDER_NO)
FROM = (SOURCE, LINE)
BY_KEY = ("merchant_id", "account_id", "order_no")
BREAK_ID = _text("break_id", "the break's id: the same as long as it is open")


def _file(name: str, *columns: pa.Field, key: tuple[str, ...], folder: str) -> FileSchema:
    return FileSchema(name, folder, pa.schema([*columns]), key)


_INPUTS = (
    _file(
        "orders",
        *KEY,
        CURRENCY,
        _money("amount", "what was ordered"),
        _word("status", "what the merchant says became of the order"),
        _instant("ordered_at", "when it was ordered"),
        TRANSACTION,
        _money_or_blank("expected_captured_amount", "what is to be captured of it"),
        _money_or_blank("refund_amount", "what was given back"),
        _instant("updated_at", "since when this row holds; the newest row of an order counts"),
        *FROM,
        key=(*BY_KEY, "updated_at", "source", "line"),
        folder="inputs",
    ),
    _file(
        "answers",
        *KEY,
        TRANSACTION,
        CURRENCY,
        _money_or_blank("amount", "the payment's amount"),
        _word("payment_status", "the gateway's own code for the state of the payment"),
        _word("query_result", "the gateway's own code for how it answered"),
        _word("answer", "how it answered: found, not_found, failed, unmapped"),
        REFERENCE,
        _instant("transaction_date", "when the payment was made"),
        _money_or_blank("authorised_amount", "what was authorised"),
        _money_or_blank("captured_amount", "what was captured"),
        _money_or_blank("refunded_amount", "what was given back"),
        _instant("queried_at", "when the gateway was asked; the newest answer counts"),
        *FROM,
        key=(*BY_KEY, "transaction_id", "queried_at"),
        folder="inputs",
    ),
    _file(
        "ledger",
        _text("entry_id", "the entry's number in the books"),
        *KEY,
        _word("entry_type", "capture, refund, fee ...; a reversal ends in _reversal"),
        CURRENCY,
        _money("amount", "as booked, positive; an adjustment may be signed"),
        _instant("booked_at", "when it was booked"),
        TRANSACTION,
        REFERENCE,
        _text("reverses_entry_id", "the entry that this one takes back"),
        _word("transaction_currency", "the payment's currency, where booked in another"),
        _money_or_blank("transaction_amount", "the amount in the payment's currency"),
        *FROM,
        key=(*BY_KEY, "entry_id"),
        folder="inputs",
    ),
    _file(
        "instructions",
        _text("instruction_id", "the instruction's number here"),
        *KEY,
        TRANSACTION,
        _word("kind", "capture, refund, cancel, review, payout"),
        CURRENCY,
        _money("amount", "what is to be moved"),
        _word("state", "how far it came"),
        _text("request_id", "under which it was asked for"),
        _instant("approved_at", "when people agreed to it"),
        _instant("sent_at", "when it left"),
        _instant("outcome_at", "when its outcome was known"),
        _text("refund_reference_id", "the gateway's number of the refund"),
        *FROM,
        key=("merchant_id", "account_id", "instruction_id"),
        folder="inputs",
    ),
    _file(
        "settlement",
        _text("batch_id", "the pay-out that the line belongs to"),
        MERCHANT,
        ACCOUNT,
        _text("settled_on", "the day of the batch", unit=ISO_DATE),
        _word("entry_type", "capture, refund, chargeback, fee, reserve, adjustment, payout"),
        ORDER_NO,
        TRANSACTION,
        REFERENCE,
        CURRENCY,
        _money("gross", "what the line moves, signed from the merchant's side"),
        _money("fee", "what the gateway keeps of it"),
        _money("net", "gross less fee; of a payout row what was paid out"),
        _text("own_reference", "our number, where the line is of a payout that we asked for"),
        *FROM,
        key=("merchant_id", "account_id", "batch_id", "source", "line"),
        folder="inputs",
    ),
    _file("universe", *KEY, key=BY_KEY, folder="inputs"),
    _file(
        "rejects",
        _word("kind", "the source: orders, gateway, ledger, instructions, settlement"),
        *FROM,
        _text("column", "the first column that could not be read"),
        _text("reason", "what is wrong with it"),
        _text("value", "what stands there, without card numbers"),
        *KEY,
        key=("kind", "source", "line"),
        folder="inputs",
    ),
    _file(
        "files",
        _word("kind", "the source: orders, gateway, ledger, instructions, settlement"),
        _text("name", "the file's name"),
        _text("sha256", "digest of its bytes"),
        _field("size_bytes", pa.int64(), "its length", unit="bytes"),
        _count("rows_read", "rows that it holds"),
        _count("rows_accepted", "of them read"),
        _count("rows_rejected", "of them not readable"),
        _count("rows_skipped", "of them left out by a rule that has a name"),
        _count("rows_unassigned", "of the rejected those without a readable account"),
        key=("kind", "name", "sha256"),
        folder="inputs",
    ),
)

_COMPARED = (
    _file(
        "terms",
        _word(
            "name",
            "what is said: given (a source that was covered), payment_status (a code's state), "
            "amount_means, tolerance, clearing, settled_batch, settled_days, previous",
        ),
        _text("key", "of what it is said: a source, a code, a currency, a batch"),
        _text("word", "the answer as a word"),
        _field("number", pa.int64(), "the answer as a number; null: none", nullable=True),
        key=("name", "key", "word"),
        folder="compared",
    ),
    _file(
        "steps",
        _word("way", "stored (rows into the store), arrived (rows), books (money of the ledger)"),
        _word("source", "orders, gateway, ledger, instructions, settlement"),
        _text("step", "what happened to the rows or the money"),
        CURRENCY,
        _field("number", pa.int64(), "rows, of `books` minor units; less than 0: taken away"),
        key=("way", "source", "currency", "step"),
        folder="compared",
    ),
    _file(
        "agreed",
        _word("kind", "break (two people agreed), entry (booked before anybody could agree)"),
        _text("id", "the break's or the entry's number"),
        CURRENCY,
        _money("amount", "what may be written off"),
        key=("kind", "id"),
        folder="compared",
    ),
    _file(
        "known",
        _word(
            "kind",
            "closed (a break that ended), away (a break out of sight), chargeback (a key that was "
            "once charged back), exported (a journal handed out), opening (left out as older)",
        ),
        _text("id", "the break's id; of `opening` what was left out"),
        *KEY,
        CURRENCY,
        _text("first_seen", "of `away`: since when it is known", unit=ISO_DATE),
        _field("number", pa.int64(), "of `exported` its version, of `opening` how many rows"),
        _money("amount", "of `opening` their net; of `exported` 1 once the books show it"),
        key=("kind", "id", *BY_KEY, "currency"),
        folder="compared",
    ),
    _file(
        "quarantined",
        _field("reject_id", pa.int64(), "the number of the rejected row"),
        *KEY,
        *FROM,
        _text("column", "the first column that could not be read"),
        _text("reason", "what is wrong with it"),
        key=("reject_id",),
        folder="compared",
    ),
)

_SIDES = (
    _money_or_blank("order_amount", "the net of the order"),
    _money_or_blank("gateway_amount", "the net of its payments"),
    _money_or_blank("ledger_amount", "the net of its entries"),
    _money_or_blank("effect_orders", "payments less order"),
    _money_or_blank("effect_ledger", "payments less books"),
)
_STATES = (
    _word("state_orders", "what the order says"),
    _word("state_gateway", "what the payment is"),
)
_FLAGS = _word("flags", "words beside the verdict, `;` between them")
_SHOWN = (*KEY, TRANSACTION)
_OPEN = (*_SHOWN, _text("entry_id", "its entries, `;` between them"), _FLAGS)
_BY_SET = ("merchant_id", "account_id", "order_no", "transaction_id")
_BREAK = (
    BREAK_ID,
    MERCHANT,
    ACCOUNT,
    _word("code", "why the sides differ"),
    _FLAGS,
    ORDER_NO,
    TRANSACTION,
    *_STATES,
    CURRENCY,
    *_SIDES,
    _money_or_blank("exposure", "money at risk"),
    _word("owed_to", "shopper, merchant or none"),
    _field("age_days", pa.int64(), "how long it is open", unit="business days", nullable=True),
    _text("first_seen", "since when it is open", unit=ISO_DATE),
    _word("severity", "LOW, MEDIUM, HIGH or CRITICAL"),
    _text("cause", "what many breaks have in common"),
    _text("reason", "the sentence for people"),
)
_OPENING = _file("opening", *_BREAK, key=("break_id",), folder="compared")

_RESULTS = (
    _file(
        "matches",
        _text("match_id", "the set's id"),
        *_OPEN,
        _word("rule", "by which it matched; exact: it agrees in every leg"),
        *_STATES,
        CURRENCY,
        *_SIDES,
        key=(*_BY_SET, "entry_id", "currency"),
        folder="results",
    ),
    _file(
        "pending",
        *_OPEN,
        *_STATES,
        CURRENCY,
        *_SIDES,
        _word("expected_side", "what it waits for"),
        _instant("due_at", "until when"),
        key=(*_BY_SET, "entry_id", "currency"),
        folder="results",
    ),
    _file("breaks", *_BREAK, key=(*_BY_SET, "code"), folder="results"),
    _file(
        "unverified",
        *_OPEN,
        *_STATES,
        CURRENCY,
        *_SIDES,
        _word("reason", "why it could not be judged"),
        key=(*_BY_SET, "entry_id", "currency"),
        folder="results",
    ),
    _file(
        "effects",
        BREAK_ID,
        MERCHANT,
        ACCOUNT,
        _word("leg", "orders or ledger"),
        CURRENCY,
        _money_or_blank("amount", "what the break means on this leg"),
        key=("merchant_id", "account_id", "break_id", "leg", "currency"),
        folder="results",
    ),
    _file(
        "movements",
        BREAK_ID,
        *_SHOWN,
        _word("movement", "new, stays, resolved ...: what became of it since the night before"),
        _word("code_before", "its code the night before"),
        _word("code", "its code tonight"),
        _word("currency_before", "the currency of exposure_before"),
        CURRENCY,
        _money("exposure_before", "its exposure the night before, 0 where there was none"),
        _money("exposure", "its exposure tonight, 0 where there is none"),
        _text("reopens", "the closed break that it opens again"),
        key=("merchant_id", "account_id", "movement", "order_no", "break_id"),
        folder="results",
    ),
    _file(
        "journals",
        _text("journal_id", "the journal's number: a ledger can refuse it the second time"),
        _text("date", "the day it is dated", unit=ISO_DATE),
        _word("account", "the account in the books"),
        _money_or_blank("debit", "what this line debits"),
        _money_or_blank("credit", "what this line credits"),
        CURRENCY,
        *_SHOWN,
        BREAK_ID,
        _text("text", "what the books will say of it"),
        key=("journal_id", "account", "debit"),
        folder="results",
    ),
    _file(
        "items",
        _word("source", "orders, gateway, ledger, payouts, settlement, instructions"),
        *_SHOWN,
        REFERENCE,
        _text("entry_id", "the entry, the instruction or, of a payout of the gateway, its batch"),
        _word("set_kind", "what makes the set: order, transaction, entry or payout"),
        CURRENCY,
        _text("set_id", "the set's id"),
        _word("set_currency", "the currency in which the set is judged"),
        _word("state", "MATCHED, PENDING, BREAK or UNVERIFIED"),
        _text("result_id", "the id under which it is shown; of another set where that explains it"),
        _text("set_key", "what names the set: its order number, else what it stands alone under"),
        _count("items", "how many rows that name the same things are in scope"),
        key=("source", *_BY_SET, "reference_no", "entry_id", "currency"),
        folder="results",
    ),
    _file(
        "sides",
        _word("source", "orders, gateway, ledger, payouts, settlement"),
        MERCHANT,
        ACCOUNT,
        CURRENCY,
        _word("state", "MATCHED, PENDING, BREAK or UNVERIFIED"),
        _count("count", "items in this state"),
        _money("amount", "their net"),
        key=("source", "merchant_id", "account_id", "currency", "state"),
        folder="results",
    ),
)

_PROOF = (
    _file(
        "totals",
        _word("id", "the total's number: T0 to T14"),
        _text("name", "what is held against what"),
        MERCHANT,
        ACCOUNT,
        CURRENCY,
        _word("measure", "count or amount"),
        _field("left", pa.int64(), "rows or minor units, as computed without SQL"),
        _field("right", pa.int64(), "rows or minor units, as computed without SQL"),
        key=("id", "name", "merchant_id", "account_id", "currency", "measure"),
        folder="proof",
    ),
    _file(
        "sheets",
        _word("section", "break, match, pending, unverified: the sheet of the workbook"),
        CURRENCY,
        _word("measure", "count or amount"),
        _field("number", pa.int64(), "rows, or the sum of effect_orders, as read back"),
        key=("section", "currency", "measure"),
        folder="proof",
    ),
)

SCHEMAS: Mapping[str, FileSchema] = {
    each.name: each for each in (*_INPUTS, *_COMPARED, _OPENING, *_RESULTS, *_PROOF)
}
"""By name, in the order in which a night makes them."""


def empty(name: str) -> pa.Table:
    """A file without a row: how a source stands there that was not given."""
    return SCHEMAS[name].columns.empty_table()
