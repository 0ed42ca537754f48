"""What the engine gives back: four frames, the effects, the control totals and a verdict.

Column names and order are those of the CSV files in the contract of reconciliation (§2, §7);
amounts are nullable Int64 minor units of the row's currency, blank when the side is absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from recon.model import ControlTotal, Verdict

BREAK_COLUMNS = (
    "break_id",
    "merchant_id",
    "account_id",
    "code",
    "flags",
    "order_no",
    "transaction_id",
    "state_orders",
    "state_gateway",
    "currency",
    "order_amount",
    "gateway_amount",
    "ledger_amount",
    "effect_orders",
    "effect_ledger",
    "exposure",
    "owed_to",
    "age_days",
    "first_seen",
    "severity",
    "cause",
    "reason",
)
EFFECT_COLUMNS = ("break_id", "merchant_id", "account_id", "leg", "currency", "amount")
MATCH_COLUMNS = (
    "match_id",
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "entry_id",
    "flags",
    "rule",
    "state_orders",
    "state_gateway",
    "currency",
    "order_amount",
    "gateway_amount",
    "ledger_amount",
    "effect_orders",
    "effect_ledger",
)
_OPEN_COLUMNS = tuple(name for name in MATCH_COLUMNS if name not in {"match_id", "rule"})
PENDING_COLUMNS = (*_OPEN_COLUMNS, "expected_side", "due_at")
UNVERIFIED_COLUMNS = (*_OPEN_COLUMNS, "reason")
AMOUNT_COLUMNS = (
    "order_amount",
    "gateway_amount",
    "ledger_amount",
    "effect_orders",
    "effect_ledger",
    "exposure",
    "amount",
)


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """One reconciliation, whole."""

    as_of: datetime
    verdict: Verdict
    breaks: pd.DataFrame
    effects: pd.DataFrame
    matches: pd.DataFrame
    pending: pd.DataFrame
    unverified: pd.DataFrame
    control_totals: tuple[ControlTotal, ...]
    sides: pd.DataFrame
    """source (orders, gateway, ledger), merchant_id, account_id, currency, state, count, amount."""
    unmapped_codes: tuple[Mapping[str, str | int], ...]
    """field (payment_status, query_result), code, count, sample order_no."""
    not_covered: tuple[str, ...]
    """Legs and controls that had no source, in words."""
    scope_of_assurance: tuple[Mapping[str, str | int], ...]
    """statement, currency, count, amount: what was proven, what not, what cannot be seen."""
    rules_digest: str
    digest: str
    """SHA-256 over the four frames and the effects: the same inputs, the same digest (T14)."""
