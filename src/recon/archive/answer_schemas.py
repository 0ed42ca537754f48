"""What stands in the files of a night's answers, which are written as the answers come."""

from collections.abc import Mapping

import pyarrow as pa

from recon.archive.fields import (
    BY_KEY,
    KEY,
    REFERENCE,
    TRANSACTION,
    FileSchema,
    field,
    file,
    instant,
    money_or_blank,
    text,
    word,
)

ANSWERS = "answers"
"""The file of what is compared of them."""
FOLDER = "answers"
"""How the names of their steps begin; a number follows."""
_PHASE = word("phase", "baseline, after (money moved), or the baseline of another account")
ASKED = file("asked", _PHASE, *KEY, key=("phase", *BY_KEY), folder=FOLDER)
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
    folder=FOLDER,
)
"""A row for each payment that an answer showed, and one for each key that showed none."""
ANSWER_SCHEMAS: Mapping[str, FileSchema] = {each.name: each for each in (ASKED, REPLIES)}
