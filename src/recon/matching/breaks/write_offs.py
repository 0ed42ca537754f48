"""Write-offs in the ledger."""

import pandas as pd

from recon.matching.frames.arrays import text_column
from recon.matching.frames.versions import NEW
from recon.matching.sides.ledger_side import entry_versions, ledger_items
from recon.model.terms import REVERSAL_SUFFIX, EntryType

TYPES = (EntryType.WRITE_OFF.value, EntryType.WRITE_OFF.value + REVERSAL_SUFFIX)


def booked_write_offs(ledger: pd.DataFrame) -> pd.DataFrame:
    """Return the write-offs of the ledger: merchant, account, currency, entry_id, amount.

    Minor units, a reversal negative; repeats of a row count once, and an entry with conflicting
    content not at all: it is refused.
    """
    ids = ledger.loc[ledger["entry_type"].isin(TYPES), "entry_id"]
    rows = ledger[ledger["entry_id"].isin(ids)].reset_index(drop=True)
    rows = rows[(entry_versions(rows) == NEW) & rows["entry_type"].isin(TYPES).to_numpy()]
    rows = rows.reset_index(drop=True)
    items = ledger_items(rows)
    return pd.DataFrame(
        {
            "merchant_id": rows["merchant_id"],
            "account_id": rows["account_id"],
            "currency": text_column(items["currency"]),
            "entry_id": text_column(items["entry_id"]),
            "amount": items["forward"],
        }
    )
