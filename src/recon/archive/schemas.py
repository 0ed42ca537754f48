"""What stands in the files of a night's folder: every column typed and documented once.

Money is int64 minor units of the currency beside it, instants are UTC microseconds, text that
was not given is "". A column is never null unless its type says so. The rows of a file are sorted
by its key. A reader that meets a version from the future refuses the file by its name.
"""

from collections.abc import Mapping

import pyarrow as pa

from recon.archive.bank_schemas import OF_BANKS, OF_BOOKS_OF_BANK
from recon.archive.fields import (
    ACCOUNT,
    BREAK_ID,
    BY_KEY,
    CURRENCY,
    FROM,
    ISO_DATE,
    KEY,
    MERCHANT,
    ORDER,
    ORDER_NO,
    REFERENCE,
    TRANSACTION,
    FileSchema,
    count,
    field,
    file,
    instant,
    money,
    money_or_blank,
    text,
    word,
)
from recon.archive.held_schema import HELD
from recon.archive.items_schema import ITEMS
from recon.archive.proof_schemas import OF_PROOF
from recon.archive.settlement_schemas import OF_SETTLEMENT

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
        older=(1,),
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
            "settled_batch, settled_days, previous, orders_lack (since when an order file is "
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
        older=(1,),
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
