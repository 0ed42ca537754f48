"""Which set each judged row went to: the file of a night that its SQL starts from.

Half of it would be ids that say again what another column says: they are blank, and the proof
derives them.
"""

import pyarrow as pa

from recon.archive.fields import (
    BY_KEY,
    CURRENCY,
    KEY,
    REFERENCE,
    TRANSACTION,
    FileSchema,
    count,
    text,
    word,
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
    older=(1, 2),
)
