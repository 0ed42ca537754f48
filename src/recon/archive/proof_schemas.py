"""What stands in the files of a night's proof: its control totals, and its sheets as read back."""

import pyarrow as pa

from recon.archive.fields import ACCOUNT, CURRENCY, MERCHANT, field, file, text, word

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
