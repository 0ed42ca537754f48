"""What stands in the files of nights, of facts and of answers: every column typed and documented.

Money is int64 minor units of the currency beside it, instants are UTC microseconds, text that
was not given is "". A column is never null unless its type says so. The rows of a file are sorted
by its key. A reader that meets a version from the future refuses the file by its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

MINOR_UNITS = "minor units of the currency"
ROWS = "rows"
UTC_MICROSECONDS = "microseconds, UTC"
INSTANT = pa.timestamp("us", tz="UTC")
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


def field(
    name: str, kind: pa.DataType, doc: str, *, unit: str = "", nullable: bool = False
) -> pa.Field:
    """A column of any type."""
    metadata = {"doc": doc, "unit": unit} if unit else {"doc": doc}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def word(name: str, doc: str) -> pa.Field:
    """Text of few different values."""
    return field(name, pa.dictionary(pa.int32(), pa.string()), doc)


def text(name: str, doc: str, *, unit: str = "") -> pa.Field:
    """Text."""
    return field(name, pa.string(), doc, unit=unit)


def money(name: str, doc: str) -> pa.Field:
    """An amount that each row has."""
    return field(name, pa.int64(), doc, unit=MINOR_UNITS)


def money_or_blank(name: str, doc: str) -> pa.Field:
    """An amount that a row may lack."""
    return field(name, pa.int64(), f"{doc}; null: not given", unit=MINOR_UNITS, nullable=True)


def count(name: str, doc: str) -> pa.Field:
    """How many rows."""
    return field(name, pa.int64(), doc, unit=ROWS)


def instant(name: str, doc: str) -> pa.Field:
    """A moment that a row may lack."""
    return field(name, INSTANT, f"{doc}; null: not given", unit=UTC_MICROSECONDS, nullable=True)


def file(
    name: str,
    *columns: pa.Field,
    key: tuple[str, ...],
    folder: str,
    version: int = 1,
) -> FileSchema:
    """A file of these columns."""
    return FileSchema(name, folder, pa.schema([*columns]), key, version)


MERCHANT = word("merchant_id", "the merchant, as the gateway names it")
ACCOUNT = word("account_id", "the merchant's account at the gateway")
ORDER_NO = text("order_no", "the merchant's order number; blank: the row names no order")
TRANSACTION = text("transaction_id", "the payment's number at the gateway")
REFERENCE = text("reference_no", "another number by which the row names a payment")
CURRENCY = word("currency", "ISO 4217 code of the amounts of this row")
SOURCE = word("source", "the file or service that the row came from")
LINE = field("line", pa.int64(), "the line where the row starts in its source", unit="line")
KEY = (MERCHANT, ACCOUNT, ORDER_NO)
FROM = (SOURCE, LINE)
BY_KEY = ("merchant_id", "account_id", "order_no")
BREAK_ID = text("break_id", "the break's id: the same as long as it is open")
ORDER = (
    *KEY,
    CURRENCY,
    money("amount", "what was ordered"),
    word("status", "what the merchant says became of the order"),
    instant("ordered_at", "when it was ordered"),
    TRANSACTION,
    money_or_blank("expected_captured_amount", "what is to be captured of it"),
    money_or_blank("refund_amount", "what was given back"),
    instant("updated_at", "since when this row holds; the newest row of an order counts"),
)
"""What a row of an order file says, in files of facts and in the inputs of a night."""
SETTLED = (
    ORDER_NO,
    TRANSACTION,
    REFERENCE,
    CURRENCY,
    money("gross", "what the line moves, signed from the merchant's side"),
    money("fee", "what the gateway keeps of it"),
    money("net", "gross less fee; of a payout row what was paid out"),
    text("own_reference", "our number, where the line is of a payout that we asked for"),
)
"""What a settlement line says of its payment, there and there."""


_BANK = word("bank", "the bank account, as the rules name it")
_BANK_INPUTS = (
    file(
        "statements",
        field("number", pa.int64(), "by which entries name their statement"),
        *(word(name, "the file or its digest") for name in ("source", "sha256")),
        text("iban", "the account"),
        text("statement_no", "the bank's number of the statement"),
        CURRENCY,
        text("from_date", "the first day that it tells of", unit=ISO_DATE),
        text("to_date", "the last day that it tells of", unit=ISO_DATE),
        word("form", "statement, report (of a day that is not over), details"),
        money_or_blank("opening", "the balance before"),
        money_or_blank("closing", "the balance after"),
        money("booked", "the sum of its booked entries"),
        count("entries", "its booked entries"),
        money("others", "of `booked` what is not listed: entries of other people"),
        text("content", "digest of its entries"),
        text("created", "when the bank made it"),
        count("days_given", "1: the days are the bank's word, 0: those of balances and entries"),
        key=("number",),
        folder="inputs",
    ),
    file(
        "bank",
        field("statement", pa.int64(), "the number of its statement"),
        text("entry_no", "the bank's number of the entry"),
        field("part", pa.int64(), "0: the entry; else a payment that it stands for"),
        text("booked_on", "when it was booked", unit=ISO_DATE),
        text("value_on", "from when it bears interest", unit=ISO_DATE),
        CURRENCY,
        money("amount", "what came in; what went out is negative"),
        text("end_to_end_id", "the payer's number"),
        text("reference", "other numbers"),
        text("counterparty", "the other side"),
        text("text", "what it says"),
        word("status", "booked or pending"),
        money("charges", "what a bank took before, as it says"),
        word("instructed_currency", "the currency that was ordered"),
        money_or_blank("instructed_amount", "the amount that was ordered, in that currency"),
        key=("statement", "entry_no", "part"),
        folder="inputs",
    ),
    file(
        "payouts",
        text("batch_id", "the batch"),
        MERCHANT,
        ACCOUNT,
        text("settled_on", "its day", unit=ISO_DATE),
        CURRENCY,
        money("net", "what was paid out; what was collected is negative"),
        *FROM,
        key=("merchant_id", "account_id", "batch_id", "source", "line"),
        folder="inputs",
    ),
)

_BANK_RESULTS = (
    file(
        "counted",
        field("number", pa.int64(), "the number of the statement"),
        _BANK,
        field("place", pa.int64(), "its place among those that prove each other; -1: it has none"),
        word("source", "the file"),
        text("statement_no", "the bank's number of the statement"),
        CURRENCY,
        text("from_date", "the first day that it tells of", unit=ISO_DATE),
        text("to_date", "the last day that it tells of", unit=ISO_DATE),
        money_or_blank("opening", "the balance before"),
        money("booked", "the sum of its booked entries"),
        money_or_blank("closing", "the balance after"),
        key=("number",),
        folder="results",
    ),
    file(
        "paid",
        _BANK,
        MERCHANT,
        ACCOUNT,
        CURRENCY,
        text("batch_id", "the batch"),
        text("settled_on", "its day", unit=ISO_DATE),
        money_or_blank("gross", "its lines, gross"),
        money_or_blank("fees", "their fees"),
        money("amount", "what was paid out"),
        text("due_on", "when it is at the bank at the latest", unit=ISO_DATE),
        word("state", "MATCHED, PENDING (in transit), BREAK, OPENING (from before)"),
        word("code", "why it is open"),
        word("flags", "words beside the verdict, `;` between them"),
        text("result_id", "the id under which it is shown"),
        money_or_blank("bank_amount", "what the bank has of it"),
        money("effect", "the bank less what was paid out"),
        money("charges", "what the bank took of it"),
        text("value_on", "when it came", unit=ISO_DATE),
        key=("bank", "settled_on", "batch_id", "merchant_id", "account_id", "currency"),
        folder="results",
    ),
    file(
        "received",
        _BANK,
        text("iban", "the account"),
        text("statement_no", "the bank's number of the statement"),
        text("year", "of the statement"),
        text("entry_no", "the bank's number of the entry"),
        text("booked_on", "when it was booked", unit=ISO_DATE),
        text("value_on", "from when it bears interest", unit=ISO_DATE),
        CURRENCY,
        money("amount", "what came in; what went out is negative"),
        word("state", "MATCHED, BREAK, WAITING (not judged yet)"),
        text("result_id", "the id under which it is shown"),
        key=("bank", "value_on", "statement_no", "entry_no"),
        folder="results",
    ),
    file(
        "explained",
        _BANK,
        CURRENCY,
        word(
            "what",
            "in transit, opening, charges, exchanged (the bank says the order), exchanged at a "
            "rate, allowed by the rate (its tolerance), effect shown elsewhere",
        ),
        text("result_id", "the id under which it is shown"),
        money("amount", "of what was paid out and did not come"),
        key=("bank", "currency", "what", "result_id", "amount"),
        folder="results",
    ),
)

_BOOKED = (
    file(
        "banked",
        MERCHANT,
        ACCOUNT,
        CURRENCY,
        text("key", "of the group: its first pay-out, an entry of a statement, or the balance"),
        text("name", "its batches, a blank between them"),
        money("arrived", "what the bank has"),
        money("booked", "what the books have of it at the bank"),
        money("effect", "arrived less booked"),
        word("state", "MATCHED, PENDING, BREAK"),
        word("flags", "words beside the verdict, `;` between them"),
        text("result_id", "the id under which it is shown"),
        key=("merchant_id", "account_id", "currency", "key"),
        folder="results",
    ),
)
OF_BOOKS_OF_BANK = _BOOKED
"""Only where the rules say that the books have what arrives."""
OF_BANKS = (*_BANK_INPUTS, *_BANK_RESULTS)

OF_SETTLEMENT = (
    file(
        "settlement",
        text("batch_id", "the pay-out that the line belongs to"),
        MERCHANT,
        ACCOUNT,
        text("settled_on", "the day of the batch", unit=ISO_DATE),
        word("entry_type", "capture, refund, chargeback, fee, reserve, adjustment, payout"),
        *SETTLED,
        *FROM,
        key=(*BY_KEY, "source", "line"),
        folder="inputs",
        version=2,
    ),
    file(
        "tariffs",
        ORDER_NO,
        *FROM,
        text("method", "how the payment of the settlement line was made"),
        text("brand", "the brand of its card or wallet"),
        text("region", "where the card or the shopper is from"),
        key=("order_no", "source", "line"),
        folder="inputs",
        version=2,
    ),
    file(
        "volumes",
        MERCHANT,
        ACCOUNT,
        text("entry_type", "capture, refund, chargeback"),
        CURRENCY,
        text("settled_on", "the day whose lines are summed up", unit=ISO_DATE),
        text("method", "of their payments"),
        text("brand", "of their cards or wallets"),
        text("region", "of their cards or shoppers"),
        count("late", "1: told after a later day was"),
        count("lines", "how many lines"),
        money("base", "their gross amounts without the sign"),
        key=(
            *("merchant_id", "account_id", "entry_type", "currency", "settled_on"),
            *("method", "brand", "region", "late"),
        ),
        folder="inputs",
    ),
)
"""Lines, what some tell beside their amounts, and what months came to."""


OF_PROOF = (
    file(
        "totals",
        word("id", "the total's number: T0 to T19"),
        text("name", "what is held against what"),
        MERCHANT,
        ACCOUNT,
        CURRENCY,
        word("measure", "count or amount"),
        field("left", pa.int64(), "rows or minor units, as computed without SQL"),
        field("right", pa.int64(), "rows or minor units, as computed without SQL"),
        key=("id", "name", "merchant_id", "account_id", "currency", "measure"),
        folder="proof",
    ),
    file(
        "sheets",
        MERCHANT,
        ACCOUNT,
        word("section", "what is listed: break, match, match by a rule, pending, unverified"),
        CURRENCY,
        word("measure", "count or amount"),
        field("number", pa.int64(), "rows, or the sum of effect_orders, as read back"),
        key=("section", "currency", "measure"),
        folder="proof",
    ),
)


ITEMS = FileSchema(
    "items",
    "results",
    pa.schema(
        [
            word(
                "source",
                "orders, gateway, ledger, payouts, fees, reserves, settlement, instructions",
            ),
            *KEY,
            TRANSACTION,
            REFERENCE,
            text(
                "entry_id", "the entry, the instruction, or the group of a line of the settlement"
            ),
            word("set_kind", "what makes the set: order, transaction, entry, payout or group"),
            CURRENCY,
            text("set_id", "the set's id; blank: the first id of its account and set_key"),
            word("set_currency", "the currency in which the set is judged; blank: that of the row"),
            word("state", "MATCHED, PENDING, BREAK or UNVERIFIED"),
            text("result_id", "the id under which it is shown; blank: the set's own"),
            text("set_key", "what names the set; blank: its order number"),
            count("items", "how many rows that name the same things are in scope"),
        ]
    ),
    # Rows of one set are neighbours: what they have in common is written once.
    key=(*BY_KEY, "transaction_id", "reference_no", "entry_id", "source", "currency"),
    version=3,
)


HELD = file(
    "held",
    MERCHANT,
    ACCOUNT,
    CURRENCY,
    word(
        "what",
        "opening (from before the first line), item (held back), debt (owed to the gateway), "
        "beyond (paid beyond what there was), no_payout (not paid out), other_currency "
        "(the pay-out has another), unsure (a line could not be read), reserve",
    ),
    text("batch_id", "the batch that it is of"),
    text("settled_on", "since when the gateway holds it", unit=ISO_DATE),
    money("amount", "what it holds; debts and what was paid beyond are below 0"),
    key=("merchant_id", "account_id", "currency", "what", "settled_on", "batch_id"),
    folder="results",
)

METADATA = b"recon.schema"
"""Key of a Parquet file's metadata; its value is FileSchema.label."""

_INPUTS = (
    file(
        "orders",
        *ORDER,
        *FROM,
        key=(*BY_KEY, "updated_at", "source", "line"),
        folder="inputs",
    ),
    file(
        "answers",
        *KEY,
        TRANSACTION,
        CURRENCY,
        money_or_blank("amount", "the payment's amount"),
        word("payment_status", "the gateway's own code for the state of the payment"),
        word("query_result", "the gateway's own code for how it answered"),
        word("answer", "how it answered: found, not_found, failed, unmapped"),
        REFERENCE,
        instant("transaction_date", "when the payment was made"),
        money_or_blank("authorised_amount", "what was authorised"),
        money_or_blank("captured_amount", "what was captured"),
        money_or_blank("refunded_amount", "what was given back"),
        instant("queried_at", "when the gateway was asked; the newest answer counts"),
        *FROM,
        key=(*BY_KEY, "transaction_id", "queried_at"),
        folder="inputs",
        version=2,
    ),
    file(
        "ledger",
        text("entry_id", "the entry's number in the books"),
        *KEY,
        word("entry_type", "capture, refund, fee ...; a reversal ends in _reversal"),
        CURRENCY,
        money("amount", "as booked, positive; an adjustment may be signed"),
        instant("booked_at", "when it was booked"),
        TRANSACTION,
        REFERENCE,
        text("reverses_entry_id", "the entry that this one takes back"),
        word("transaction_currency", "the payment's currency, where booked in another"),
        money_or_blank("transaction_amount", "the amount in the payment's currency"),
        *FROM,
        key=(*BY_KEY, "entry_id"),
        folder="inputs",
    ),
    file(
        "instructions",
        text("instruction_id", "the instruction's number here"),
        *KEY,
        TRANSACTION,
        word("kind", "capture, refund, cancel, review, payout"),
        CURRENCY,
        money("amount", "what is to be moved"),
        word("state", "how far it came"),
        text("request_id", "under which it was asked for"),
        instant("approved_at", "when people agreed to it"),
        instant("sent_at", "when it left"),
        instant("outcome_at", "when its outcome was known"),
        text("refund_reference_id", "the gateway's number of the refund"),
        *FROM,
        key=("merchant_id", "account_id", "instruction_id"),
        folder="inputs",
    ),
    *OF_SETTLEMENT,
    file("universe", *KEY, key=BY_KEY, folder="inputs"),
    file(
        "rejects",
        word("kind", "the source: orders, gateway, ledger, instructions, settlement"),
        *FROM,
        text("column", "the first column that could not be read"),
        text("reason", "what is wrong with it"),
        text("value", "what stands there, without card numbers"),
        *KEY,
        word("entry_type", "of an entry of the books whose money can be read, else blank"),
        CURRENCY,
        money("amount", "of such an entry, as the row says"),
        text("batch_id", "of a settlement line, where it can be read"),
        key=("kind", "source", "line"),
        folder="inputs",
    ),
    file(
        "files",
        word("kind", "the source: orders, gateway, ledger, instructions, settlement"),
        text("name", "the file's name"),
        text("sha256", "digest of its bytes"),
        field("size_bytes", pa.int64(), "its length", unit="bytes"),
        count("rows_read", "rows that it holds"),
        count("rows_accepted", "of them read"),
        count("rows_rejected", "of them not readable"),
        count("rows_skipped", "of them left out by a rule that has a name"),
        count("rows_unassigned", "of the rejected those without a readable account"),
        text("skipped_by", "rules of its layout that left rows out, and how many each"),
        key=("kind", "name", "sha256"),
        folder="inputs",
    ),
)

_COMPARED = (
    file(
        "terms",
        word(
            "name",
            "what is said: given (a source that was covered), payment_status (a code's state), "
            "amount_means, tolerance, clearing, fees_per, fee_contract (one is declared), "
            "opening_payable, opening_reserve, "
            "settled_days, previous, orders_lack (since when an order file is "
            "lacking), arrived (a source whose rows came in steps), "
            "books_of and carried_of (merchant as key, account as word: whose books and open "
            "breaks are proven), bank_... (bank_of: where pay-outs arrive; what is known), rate "
            "(foreign and booked currency and day as key, the rate as word, the decimals between "
            "both currencies as number), rate_days and rate_basis_points of a pair",
        ),
        text("key", "of what it is said: a source, a code, a currency, a batch"),
        text("word", "the answer as a word"),
        field("number", pa.int64(), "the answer as a number; null: none", nullable=True),
        key=("name", "key", "word"),
        folder="compared",
    ),
    file(
        "steps",
        word("way", "stored (rows into the store), arrived (rows), books (money of the ledger)"),
        word("source", "orders, gateway, ledger, instructions, settlement"),
        text("step", "what happened to the rows or the money"),
        CURRENCY,
        field("number", pa.int64(), "rows, of `books` minor units; less than 0: taken away"),
        key=("way", "source", "currency", "step"),
        folder="compared",
    ),
    file(
        "agreed",
        word("kind", "break (two people agreed), entry (booked before anybody could agree)"),
        text("id", "the break's or the entry's number"),
        CURRENCY,
        money("amount", "what may be written off"),
        key=("kind", "id"),
        folder="compared",
    ),
    file(
        "known",
        word(
            "kind",
            "closed (a break that ended), away (a break out of sight), chargeback (a key that was "
            "once charged back), exported (a journal handed out), opening (left out as older), "
            "unread (a batch of which a line could not be read), vanished (a ledger entry that is "
            "no longer there)",
        ),
        text(
            "id",
            "the break's id; of `opening` what was left out; of `unread` the batch or blank; of "
            "`vanished` the entry",
        ),
        *KEY,
        CURRENCY,
        text("first_seen", "of `away`: since when it is known", unit=ISO_DATE),
        field("number", pa.int64(), "of `exported` its version, of `opening` how many rows"),
        money(
            "amount",
            "of `opening` their net, of `vanished` its own; of `exported` 1 once the books show it",
        ),
        key=("kind", "id", *BY_KEY, "currency"),
        folder="compared",
    ),
    file(
        "quarantined",
        field("reject_id", pa.int64(), "the number of the rejected row"),
        *KEY,
        *FROM,
        text("column", "the first column that could not be read"),
        text("reason", "what is wrong with it"),
        key=("reject_id",),
        folder="compared",
    ),
)

_SIDES = (
    money_or_blank("order_amount", "the net of the order"),
    money_or_blank("gateway_amount", "the net of its payments"),
    money_or_blank("ledger_amount", "the net of its entries"),
    money_or_blank("effect_orders", "payments less order"),
    money_or_blank("effect_ledger", "payments less books"),
)
_STATES = (
    word("state_orders", "what the order says"),
    word("state_gateway", "what the payment is"),
)
_FLAGS = word("flags", "words beside the verdict, `;` between them")
_SHOWN = (*KEY, TRANSACTION)
_OPEN = (*_SHOWN, text("entry_id", "its entries, `;` between them"), _FLAGS)
_BY_SET = ("merchant_id", "account_id", "order_no", "transaction_id")
_BREAK = (
    BREAK_ID,
    MERCHANT,
    ACCOUNT,
    word("code", "why the sides differ"),
    _FLAGS,
    ORDER_NO,
    TRANSACTION,
    *_STATES,
    CURRENCY,
    *_SIDES,
    money_or_blank("exposure", "money at risk"),
    word("owed_to", "shopper, merchant or none"),
    field("age_days", pa.int64(), "how long it is open", unit="business days", nullable=True),
    text("first_seen", "since when it is open", unit=ISO_DATE),
    word("severity", "LOW, MEDIUM, HIGH or CRITICAL"),
    text("cause", "what many breaks have in common"),
    text("reason", "the sentence for people"),
    money_or_blank("bank_amount", "of a pay-out: what the bank has of it"),
    money_or_blank("effect_bank", "of a pay-out: the bank less what was paid out"),
    text("about", "of what a break without an order is: batches, group of the books, entry"),
)
_OPENING = file("opening", *_BREAK, key=("break_id",), folder="compared")

_RESULTS = (
    file(
        "matches",
        text("match_id", "the set's id; blank: the first id of its account and order_no"),
        *_OPEN,
        word("rule", "by which it matched; exact: it agrees in every leg"),
        *_STATES,
        CURRENCY,
        *_SIDES,
        key=(*_BY_SET, "entry_id", "currency"),
        folder="results",
        version=2,
    ),
    file(
        "pending",
        *_OPEN,
        *_STATES,
        CURRENCY,
        *_SIDES,
        word("expected_side", "what it waits for"),
        instant("due_at", "until when"),
        key=(*_BY_SET, "entry_id", "currency"),
        folder="results",
    ),
    file("breaks", *_BREAK, key=(*_BY_SET, "code"), folder="results"),
    file(
        "unverified",
        *_OPEN,
        *_STATES,
        CURRENCY,
        *_SIDES,
        word("reason", "why it could not be judged"),
        key=(*_BY_SET, "entry_id", "currency"),
        folder="results",
    ),
    file(
        "effects",
        BREAK_ID,
        MERCHANT,
        ACCOUNT,
        word("leg", "orders, ledger, bank, or bank_books: what the books have of the bank"),
        CURRENCY,
        money_or_blank("amount", "what the break means on this leg"),
        key=("merchant_id", "account_id", "break_id", "leg", "currency"),
        folder="results",
    ),
    file(
        "movements",
        BREAK_ID,
        *_SHOWN,
        word("movement", "new, stays, resolved ...: what became of it since the night before"),
        word("code_before", "its code the night before"),
        word("code", "its code tonight"),
        word("currency_before", "the currency of exposure_before"),
        CURRENCY,
        money("exposure_before", "its exposure the night before, 0 where there was none"),
        money("exposure", "its exposure tonight, 0 where there is none"),
        text("reopens", "the closed break that it opens again"),
        key=("merchant_id", "account_id", "movement", "order_no", "break_id"),
        folder="results",
    ),
    file(
        "journals",
        text("journal_id", "the journal's number: a ledger can refuse it the second time"),
        text("date", "the day it is dated", unit=ISO_DATE),
        word("account", "the account in the books"),
        money_or_blank("debit", "what this line debits"),
        money_or_blank("credit", "what this line credits"),
        CURRENCY,
        *_SHOWN,
        BREAK_ID,
        text("text", "what the books will say of it"),
        key=("journal_id", "account", "debit"),
        folder="results",
    ),
    ITEMS,
    HELD,
    file(
        "sides",
        word("source", "orders, gateway, ledger, payouts, fees, reserves, settlement"),
        MERCHANT,
        ACCOUNT,
        CURRENCY,
        word("state", "MATCHED, PENDING, BREAK or UNVERIFIED"),
        count("count", "items in this state"),
        money("amount", "their net"),
        key=("source", "merchant_id", "account_id", "currency", "state"),
        folder="results",
    ),
)

SCHEMAS: Mapping[str, FileSchema] = {
    each.name: each
    for each in (*_INPUTS, *_COMPARED, _OPENING, *_RESULTS, *OF_PROOF, *OF_BANKS, *OF_BOOKS_OF_BANK)
}
"""By name, in the order in which a night makes them; last those of a night with a bank."""


def empty(name: str) -> pa.Table:
    """A file without a row: how a source stands there that was not given."""
    return SCHEMAS[name].columns.empty_table()


FACTS = "facts"
ORDER_FACTS = file(
    "order_facts",
    *ORDER,
    LINE,
    key=BY_KEY,
    folder=FACTS,
)
"""The rows that a file brought, each part of it by key."""
SETTLED_FACTS = file(
    "settled_facts",
    word("batch_id", "the pay-out that the line belongs to"),
    MERCHANT,
    ACCOUNT,
    field("settled_on", pa.dictionary(pa.int32(), pa.string()), "its day", unit=ISO_DATE),
    word("entry_type", "capture, refund, chargeback, fee, reserve, adjustment, payout"),
    *SETTLED,
    word("method", "how its payment was made"),
    word("brand", "the brand of its card or wallet"),
    word("region", "where the card or the shopper is from"),
    LINE,
    key=("line",),
    folder=FACTS,
)
"""The lines that a settlement file brought."""


ANSWERS = "answers"
"""The file of what is compared of them."""
OF_ANSWERS = "answers"
"""How the names of their steps begin; a number follows."""
_PHASE = word("phase", "baseline, after (money moved), or the baseline of another account")
ASKED = file("asked", _PHASE, *KEY, key=("phase", *BY_KEY), folder=OF_ANSWERS)
"""Keys that the gateway is to be asked for, noted before the first question."""
REPLIES = file(
    "replies",
    _PHASE,
    *KEY,
    word("answer", "how the gateway answered: found, not_found, failed, unmapped"),
    word("reason", "why an answer is none"),
    instant("answered_at", "when the answer was kept"),
    field("asked_after", pa.int64(), "the newest link of the history when it was asked"),
    word("boot_id", "the boot of the machine that asked"),
    field("uptime_ms", pa.int64(), "how long that machine had run then", unit="milliseconds"),
    instant("gateway_at", "the Date of the gateway's replies, the earliest of those kept with it"),
    TRANSACTION,
    word("currency", "ISO 4217 code of the amount; blank: no payment was shown"),
    money_or_blank("amount", "the payment's amount"),
    word("payment_status", "the gateway's own code for the state of the payment"),
    word("query_result", "the gateway's own code for how it answered"),
    REFERENCE,
    instant("transaction_date", "when the payment was made"),
    instant("queried_at", "when the gateway showed the payment; null: it showed none"),
    text("detail", "risk, and fields that nobody documented, as JSON"),
    key=("phase", *BY_KEY, "transaction_id", "queried_at"),
    folder=OF_ANSWERS,
)
"""A row for each payment that an answer showed, and one for each key that showed none."""
ANSWER_SCHEMAS: Mapping[str, FileSchema] = {each.name: each for each in (ASKED, REPLIES)}
