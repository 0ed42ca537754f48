"""What stands in the files of facts: the rows of a file that arrived, once for all nights.

Each is named by its own SHA-256. Which of its rows stand is looked up in all files together.
"""

import pyarrow as pa

from recon.archive.fields import (
    ACCOUNT,
    BY_KEY,
    ISO_DATE,
    LINE,
    MERCHANT,
    ORDER,
    SETTLED,
    field,
    file,
    word,
)

FOLDER = "facts"
ORDER_FACTS = file(
    "order_facts",
    *ORDER,
    LINE,
    key=BY_KEY,
    folder=FOLDER,
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
    folder=FOLDER,
)
"""The lines that a settlement file brought."""
