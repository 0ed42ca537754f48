"""What the gateway says of a payment's risk, in typed parts (2.6, 2.8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recon.gateway_client.documents import rows_of, text_of
from recon.privacy.foreign_text import scrubbed

CHECKS_MAX = 50


@dataclass(frozen=True, slots=True)
class RiskReason:
    """One reason of the gateway's anti-fraud decision."""

    name: str
    status: str


@dataclass(frozen=True, slots=True)
class FraudCheck:
    """One check of the anti-fraud provider."""

    check_items: str
    status: str


@dataclass(frozen=True, slots=True)
class RiskFacts:
    """Everything is text as given, scrubbed of card numbers; "" where nothing was said."""

    antifraud_provider: str = ""
    fraud_checks: tuple[FraudCheck, ...] = ()
    is3ds: str = ""
    risk_action: str = ""
    risk_score: str = ""
    risk_reasons: tuple[RiskReason, ...] = ()


RISK_FIELDS = frozenset(
    {
        *("antifraud_provider", "fraud_check_result", "is3ds"),
        *("risk_action", "risk_score", "risk_reasons"),
    }
)
"""A row without any of them says what the whole reply says."""


def risk_facts(row: Mapping[str, Any], *, reply: Mapping[str, Any]) -> RiskFacts:
    """The facts of a row; what it is silent about is taken from the whole reply.

    The document lists them beside the rows although each can only be about one payment, so both
    places are read.
    """

    def text_under(name: str) -> str:
        return scrubbed(text_of(row.get(name)) or text_of(reply.get(name)) or "")

    def pairs(name: str, *, key: str) -> list[tuple[str, str]]:
        rows = rows_of(row, field=name)[0] or rows_of(reply, field=name)[0]
        texts = ((text_of(row.get(key)), text_of(row.get("status"))) for row in rows[:CHECKS_MAX])
        return [(scrubbed(name or ""), scrubbed(status or "")) for name, status in texts]

    return RiskFacts(
        antifraud_provider=text_under("antifraud_provider"),
        fraud_checks=tuple(
            FraudCheck(*pair) for pair in pairs("fraud_check_result", key="check_items")
        ),
        is3ds=text_under("is3ds"),
        risk_action=text_under("risk_action"),
        risk_score=text_under("risk_score"),
        risk_reasons=tuple(RiskReason(*pair) for pair in pairs("risk_reasons", key="name")),
    )
