"""What stands in the files of facts: the rows of an order file, once for all nights that read them.

Each is named by its own SHA-256. Rows stay in the order in which they were stored; by its place in
that order a later file says which row of an earlier one it takes the place of.
"""

import pyarrow as pa

from recon.archive.fields import (
    BY_KEY,
    LINE,
    ORDER,
    ROWS,
    field,
    file,
)

FOLDER = "facts"
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
    field("key", pa.int64(), "a hash of merchant, account and order number"),
    key=("key",),
    folder=FOLDER,
)
"""By which a later file knows whether this one has rows of its orders."""
MERGED_KEYS = file(
    "merged_keys",
    field("key", pa.int64(), "a hash of merchant, account and order number"),
    field("file_id", pa.int64(), "an order file that has a row of it"),
    key=("key", "file_id"),
    folder=FOLDER,
)
"""The keys of many order files of one inbox: who looks for an order opens few files."""
ORDER_GONE = file(
    "order_gone",
    field("file_id", pa.int64(), "the file of the row; 0: the very file that says so"),
    field("row", pa.int64(), "which of its rows, from 0", unit=ROWS),
    key=("file_id", "row"),
    folder=FOLDER,
)
"""The rows that rows of a file take the place of."""
