"""The claim file for the gateway: what it charged beyond the fee contract and did not give back."""

import hashlib
from pathlib import Path

import pandas as pd

from recon.model.charged_fees import DIFFERING_COLUMNS, ChargedFees
from recon.steps.compare.result_files import Content, publish, stage
from recon.steps.ground.csv_columns import csv_parts

FEE_CLAIMS = "fee-claims.csv"
CLAIM_COLUMNS = ("claim_id", *(name for name in DIFFERING_COLUMNS if name != "difference"))
_AMOUNTS = ("base", "expected", "charged", "given_back", "claimed")
_NAMES = (
    *("merchant_id", "account_id", "currency", "batch_id", "transaction_id", "order_no"),
    *("reference_no", "entry_type", "settled_on"),
)
_DIGITS = 16


def claims_csv(fees: ChargedFees) -> Content:
    """One row per claimed settlement line, amounts in major units; the header alone for none."""
    claims = fees.claims
    cells = claims[[*_NAMES]].itertuples(index=False, name=None)
    own = pd.Series(_ids([*cells]), index=claims.index, dtype="str")
    return csv_parts(claims.assign(claim_id=own), columns=CLAIM_COLUMNS, amounts=_AMOUNTS)


def _ids(lines: list[tuple[str, ...]]) -> list[str]:
    """The same for the same line on every night; equal lines are counted."""
    seen: dict[tuple[str, ...], int] = {}
    ids = []
    for names in lines:
        seen[names] = seen.get(names, 0) + 1
        text = "\x1f".join((*names, str(seen[names])))
        ids.append(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS])
    return ids


def write_claims(fees: ChargedFees | None, *, folder: Path, name: str) -> Path | None:
    """Write the claims of a night beside its workbook, in the place of an earlier run's.

    Raises:
        OutputError: the folder cannot be written.
    """
    if fees is None:
        return None
    publish(stage(folder, files={name: claims_csv(fees)}))
    return folder / name
