"""What stands in the files of facts: the rows of a file that arrived, once for all nights.

Each is named by its own SHA-256. Rows stay in the order in which they were stored; by its place in
that order a later file says which row of an earlier one it takes the place of.
"""

import pyarrow as pa

from recon.archive.fields import (
    ACCOUNT,
    BY_KEY,
    ISO_DATE,
    LINE,
    MERCHANT,
    ORDER,
    ROWS,
    SETTLED,
    field,
    file,
    word,
)

FOLDER = "facts"
KEY = "a hash of merchant, account and order number; of lines also of transaction and own reference"
ORDER_FACTS = file(
    "order_facts",
    *ORDER,
    LINE,
    key=BY_KEY,
    folder=FOLDER,
)
"""The rows that a file brought, without those that stood already; each part of it by key."""
ORDER_KEYS = file(
    "order_keys",
    field("key", pa.int64(), KEY),
    key=("key",),
    folder=FOLDER,
)
"""By which a later file knows whether this one has rows of its orders, and a night whether a
settlement file tells of its payments."""
MERGED_KEYS = file(
    "merged_keys",
    field("key", pa.int64(), KEY),
    field("file_id", pa.int64(), "a file that has a row of it"),
    key=("key", "file_id"),
    folder=FOLDER,
)
"""The keys of many files of one inbox: who looks for an order opens few files."""
ORDER_GONE = file(
    "order_gone",
    field("file_id", pa.int64(), "the file of the row; 0: the very file that says so"),
    field("row", pa.int64(), "which of its rows, from 0", unit=ROWS),
    key=("file_id", "row"),
    folder=FOLDER,
)
"""The rows that rows of a file take the place of."""

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
    folder=FOLDER,
)
"""The lines that a settlement file brought, without those that another file told already."""
