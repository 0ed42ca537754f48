"""The XML result of a payment in typed parts; pure and total over any element."""

from collections.abc import Mapping
from itertools import zip_longest

from lxml import etree

from recon.gateway_client.interface.prepare import PreparedCall
from recon.gateway_client.payments.payment_outcome import PaymentRecord, RiskReason
from recon.gateway_client.wire.private_names import NOT_KEPT, is_private
from recon.gateway_client.wire.text import LONG_DIGIT_RUN, masked_card

RISK_REASONS_MAX = 50
EXTRA_ELEMENTS_MAX = 50
EXACT_CHARACTERS_MAX = 4_000
RESULT_SEPARATOR = ":"
_TEXTS = (
    *("order_status", "contract_name", "note", "recurring_deduction_period"),
    *("recurring_deduction_time", "connector", "threeds_result", "risk_action", "risk_score"),
)
_IDS = ("transaction_id", "recurring_id")
_EXACT = ("issuer_url", "token_id")
"""Of no use but as they stand; neither shows in a repr."""
_KNOWN = frozenset(
    {
        *_TEXTS,
        *_IDS,
        *_EXACT,
        *("merchant_id", "account_id", "order_no", "amount", "currency", "card", "result_info"),
        *("risk_reasons", "encryption_data", "security_code"),
    }
)


def payment_record(
    root: etree._Element, *, texts: Mapping[str, str], prepared: PreparedCall
) -> PaymentRecord:
    """The parts of a payment's result.

    Args:
        root: The element `respon`.
        texts: The texts of its plain elements.
        prepared: Whose private values are masked in whatever is kept.
    """

    def kept(name: str) -> str:
        return prepared.masked_text(texts.get(name, ""))

    code, separator, text = kept("result_info").partition(RESULT_SEPARATOR)
    extra = [name for name in texts if name not in _KNOWN][:EXTRA_ELEMENTS_MAX]
    return PaymentRecord(
        **{name: kept(name) for name in _TEXTS},
        **{name: prepared.kept_id(texts.get(name, "")) for name in _IDS},
        **{name: _exact(texts.get(name, "")) for name in _EXACT},
        card=masked_card(kept("card")),
        result_code=code.strip() if separator else "",
        result_text=(text if separator else code).strip(),
        risk_reasons=_risk_reasons(root, prepared=prepared),
        extra={
            prepared.masked_text(name): NOT_KEPT if is_private(name) else kept(name)
            for name in extra
        },
    )


def _exact(text: str) -> str:
    return text if len(text) <= EXACT_CHARACTERS_MAX else ""


def shows_whole_card(texts: Mapping[str, str]) -> bool:
    """Whether a reply shows a card number that the gateway should have masked."""
    return LONG_DIGIT_RUN.search(texts.get("card", "")) is not None


def _risk_reasons(root: etree._Element, *, prepared: PreparedCall) -> tuple[RiskReason, ...]:
    """All of them, whether the group repeats or the pairs in it do."""
    reasons: list[RiskReason] = []
    for group in root.iterchildren("risk_reasons"):
        names = [prepared.masked_text(element.text or "") for element in group.iterchildren("name")]
        states = [
            prepared.masked_text(element.text or "") for element in group.iterchildren("status")
        ]
        pairs = zip_longest(names, states, fillvalue="")
        reasons.extend(RiskReason(*pair) for pair in pairs if any(pair))
    return tuple(reasons[:RISK_REASONS_MAX])
