"""What the query shows of a payment's risk: the provider, its checks, and 3-D Secure."""

from collections.abc import Mapping, Sequence
from typing import Any

from recon.sandbox.ground.operation_call import Sandbox
from recon.sandbox.ground.payment_detail import Detail, details_of

NO_RISK: Mapping[str, Any] = {"antifraud_provider": "", "fraud_check_result": [], "is3ds": ""}
"""Of a payment that nobody checked."""

YES, NO = "1", "0"


def risk_facts(sandbox: Sandbox, transaction_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The facts of those payments that were checked, by transaction."""
    details = details_of(sandbox.book, transaction_ids)
    provider = sandbox.terms.risk.provider
    return {
        transaction_id: {
            "antifraud_provider": provider if detail.risk_action else "",
            "fraud_check_result": _checks(detail),
            "is3ds": YES if detail.threeds_result else NO,
        }
        for transaction_id, detail in details.items()
        if detail.card
    }


def _checks(detail: Detail) -> list[dict[str, str]]:
    checks = {"risk_score": detail.risk_action.lower(), "three_d_secure": detail.threeds_result}
    return [{"check_items": name, "status": status} for name, status in checks.items() if status]
