"""What the reply to a payment request says; total over any bytes, pure, never a guess.

A payment is done, pending or failed only when a reply that is believed echoes the order and carries
a known status. Everything else is unknown: the order is queried, never sent again. Nothing of a
hosted page runs or is followed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import zip_longest
from typing import Literal
from urllib.parse import urljoin, urlsplit

from lxml import etree

from recon.gateway_client.addresses import is_private_way
from recon.gateway_client.batches import PreparedCall
from recon.gateway_client.documents import (
    HostedForm,
    UnreadableReplyError,
    element_texts,
    html_form,
    json_object,
    unlisted,
    xml_root,
)
from recon.gateway_client.errors import (
    NotSentError,
    UnknownOutcomeError,
)
from recon.gateway_client.interface import GatewayInterface, SignatureState
from recon.gateway_client.payments import PaymentOperation, PreparedPayment
from recon.gateway_client.replies import (
    FindingKind,
    ReplyContext,
    ReplyFinding,
    ReplyOutcome,
    RiskReason,
    envelope_of,
    words_of,
)
from recon.gateway_client.transport import RawReply
from recon.privacy.foreign_text import (
    LONG_DIGIT_RUN,
    masked_card,
)

ApmRefusal = Literal["", "invalid_input", "not_found"]
TEMPLATE = "payment_reply"
ROOT = "respon"
ALIASES = {
    "merNo": "merchant_id",
    "gatewayNo": "account_id",
    "orderNo": "order_no",
    "orderAmount": "amount",
    "orderCurrency": "currency",
}
"""Inputs of the hosted page that must say what we asked for, as those of our own names must."""
RISK_REASONS_MAX = 50
EXACT_CHARACTERS_MAX = 4_000
_NO_PATH = re.compile(r"[^!-~]|\\")
"""In an address a browser drops some of these, and reads a backslash as a slash."""
_TEXTS = (
    *("order_status", "contract_name", "note", "recurring_deduction_period"),
    *("recurring_deduction_time", "connector", "threeds_result", "risk_action", "risk_score"),
)
_IDS = ("transaction_id", "recurring_id")
_EXACT = ("issuer_url", "token_id")
"""Of no use but as they stand; neither shows in a repr."""
_KNOWN = frozenset(
    {
        *(*_TEXTS, *_IDS, *_EXACT),
        *("merchant_id", "account_id", "order_no", "amount", "currency", "card", "result_info"),
        *("risk_reasons", "encryption_data", "security_code"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRecord:
    """What a trusted reply says of a payment (2.6, 2.7), redacted of card numbers."""

    transaction_id: str = ""
    card: str = ""
    """Masked by the gateway; by us where it was not."""
    order_status: str = ""
    result_code: str = ""
    result_text: str = ""
    contract_name: str = ""
    recurring_id: str = ""
    recurring_deduction_period: str = ""
    recurring_deduction_time: str = ""
    note: str = ""
    token_id: str = field(default="", repr=False)
    """Pays again without the card's number."""
    connector: str = ""
    threeds_result: str = ""
    risk_action: str = ""
    risk_score: str = ""
    risk_reasons: tuple[RiskReason, ...] = ()
    issuer_url: str = field(default="", repr=False)
    """Where the shopper pays; https, or http to this machine. Never followed by us."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Elements that the API document does not list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentReply:
    """What a payment request came to.

    DONE: paid or authorised. PENDING: the shopper, or the gateway, has something left to do.
    FAILED: declined. REJECTED: surely refused before anything happened. Anything doubtful is
    UNKNOWN, and a payment is never sent again: the order is queried.
    """

    outcome: ReplyOutcome
    code: str = ""
    message: str = ""
    record: PaymentRecord | None = None
    """None when the reply could not be trusted, and for the hosted page."""
    form: HostedForm | None = None
    """The hosted page's form, when it is the one of this payment."""
    page: bytes = field(default=b"", repr=False)
    """The hosted page as it came, when its form is this payment's; it may name the shopper."""
    refusal: ApmRefusal = ""
    """What the document says of the HTTP status of a payment by another method: no payment."""
    http_status: int | None = None
    signature: SignatureState = SignatureState.UNCHECKED
    findings: tuple[ReplyFinding, ...] = ()
    stop_reason: str = ""
    """Not empty: nothing more may be sent until a person has looked."""


def read_payment_reply(
    prepared: PreparedPayment, raw: RawReply, *, base_url: str = ""
) -> PaymentReply:
    """What a payment request came to; never raises on foreign bytes.

    The policy is as for batches; the hosted page carries no signature and is judged by its echo.

    Args:
        prepared: What was sent.
        raw: What came back, whatever it is.
        base_url: Where it was sent; without it a hosted page may lead to a path only.
    """
    if raw.meaning != "read":
        reply = _by_status(raw, prepared=prepared)
        return replace(reply, http_status=raw.status)
    payment, account = prepared.payment, prepared.account
    asked: dict[str, str | Decimal] = {
        "merchant_id": account.merchant_id,
        "account_id": account.account_id,
        "order_no": payment.order_no,
        "currency": payment.currency,
        "amount": payment.amount,
    }
    echo = _Echo(asked, prepared=prepared, base_url=base_url)
    try:
        if prepared.operation is PaymentOperation.CHECKOUT:
            reply = _by_form(raw.body, echo=echo)
        else:
            root = xml_root(raw.body, root=ROOT)
            reply = _by_result(root, echo=echo)
    except UnreadableReplyError as error:
        message = f"the reply (HTTP {raw.status}) is {error}"
        reply = _unknown(FindingKind.UNREADABLE, message)
    return replace(reply, http_status=raw.status)


def payment_without_reply(error: NotSentError | UnknownOutcomeError) -> PaymentReply:
    """What a payment came to when no reply came: not sent, or unknown."""
    outcome = ReplyOutcome.NOT_SENT if isinstance(error, NotSentError) else ReplyOutcome.UNKNOWN
    return PaymentReply(outcome=outcome, code=error.kind, message=str(error))


def _by_status(raw: RawReply, *, prepared: PreparedPayment) -> PaymentReply:
    """A status alone proves nothing, but for what document or configuration call a refusal.

    The document shows no error body; a code and a message in JSON are read where they are there.
    """
    code = text = ""
    try:
        fields = json_object(raw.body)
    except UnreadableReplyError:
        pass
    else:
        code, text = words_of(fields, names=["message"], masked=prepared.masked_text)
    codes = prepared.account.interface.status_map
    refuses_signature = code in codes.refusals.signature_codes
    is_apm = prepared.operation is PaymentOperation.AUTHORISE_APM
    refusal: ApmRefusal = codes.apm_http.get(str(raw.status), "") if is_apm else ""
    is_final = raw.status in codes.refusals.before_processing_http
    message = f"the gateway answered HTTP {raw.status}{f': {text}' if text else ''}"
    is_rejected = refuses_signature or bool(refusal) or is_final
    stops = refuses_signature or raw.meaning == "no_access"
    return PaymentReply(
        outcome=ReplyOutcome.REJECTED if is_rejected else ReplyOutcome.UNKNOWN,
        code=code,
        message=message,
        refusal=refusal,
        findings=(ReplyFinding(FindingKind.HTTP_STATUS, message),),
        stop_reason=message if stops else "",
    )


class _Echo:
    """What a reply must say again of a payment."""

    def __init__(
        self,
        asked: Mapping[str, str | Decimal],
        *,
        prepared: PreparedPayment,
        base_url: str,
    ) -> None:
        self.asked, self.prepared, self.base_url = asked, prepared, base_url

    def differing(
        self, expected: Mapping[str, str | Decimal], *, given: Mapping[str, str]
    ) -> list[str]:
        """Names whose given text is not what is expected; amounts are compared as numbers."""
        amounts = self.prepared.account.interface.profile.amounts
        currency, operation = self.prepared.payment.currency, self.prepared.operation

        def read(name: str, value: str | Decimal) -> str | Decimal | None:
            text = given.get(name)
            if isinstance(value, str):
                return text
            return amounts.amount_of(text, currency=currency, operation=operation)

        return [name for name, value in expected.items() if read(name, value) != value]

    def leads_to_the_page(self, action: str) -> bool:
        """Whether a browser that submits the form is at this gateway's hosted page (4.3)."""
        path, base = self.prepared.path, self.base_url
        try:
            there, own = urlsplit(urljoin(f"{base}{path}", action)), urlsplit(base)
        except ValueError:
            return False
        if _NO_PATH.search(action) or there.path not in {path, f"{own.path}{path}"}:
            return False
        hosts = {own.netloc, *self.prepared.account.interface.profile.payment.page_hosts}
        return there.netloc in hosts and (not there.netloc or is_private_way(there.geturl()))


def _by_form(page: bytes, *, echo: _Echo) -> PaymentReply:
    """The page is ours when its inputs say what we asked for."""
    form = html_form(page)
    asked, sent = echo.asked, echo.prepared.texts
    expected = {**asked, **{alias: asked[name] for alias, name in ALIASES.items()}}
    # What of the request it repeats beside these, it repeats as it was sent.
    expected |= {name: sent[name] for name in sent if name in form.inputs and name not in asked}
    repeated = {name: asked.get(name, sent[name]) for name in sent if name in form.parameters}
    differing = echo.differing(expected, given=form.inputs)
    differing += [f"allParams {name}" for name in echo.differing(repeated, given=form.parameters)]
    if form.method != "post" or not echo.leads_to_the_page(form.action):
        differing = ["form", *differing]
    if differing:
        message = f"the page differs in {', '.join(differing)}"
        return _unknown(FindingKind.ECHO_DIFFERS, message)
    return PaymentReply(outcome=ReplyOutcome.PENDING, form=form, page=page)


def _by_result(root: etree._Element, *, echo: _Echo) -> PaymentReply:
    """The XML result: believed as a batch's reply is, then its echo, then its status."""
    texts = element_texts(root, repeated="risk_reasons")
    prepared, interface = echo.prepared, echo.prepared.account.interface
    is_echo = interface.signature.is_echo(prepared.operation)
    context = ReplyContext(
        operation=prepared.operation,
        signature=prepared.signature,
        account=prepared.account,
        masked=prepared.masked_text,
        message_fields=("result_info",),
        may_repeat_ours=is_echo,
        template="" if is_echo else TEMPLATE,
    )
    record = payment_record(root, texts=texts, prepared=prepared)
    envelope = envelope_of(texts, context=context)
    codes = interface.status_map
    refuses_signature = record.result_code in codes.refusals.signature_codes
    if refuses_signature and codes.order_status.get(record.order_status) == "failed":
        # Believed as it stands: nobody gains by forging it.
        reason = f"the gateway refused our signature ({record.result_code}): check the sign key"
        return PaymentReply(
            outcome=ReplyOutcome.REJECTED,
            code=record.result_code,
            message=record.result_text,
            signature=envelope.signature,
            findings=(ReplyFinding(FindingKind.REFUSED, reason),),
            stop_reason=reason,
        )
    if envelope.doubt is not None:
        kind, message = envelope.doubt.kind, envelope.doubt.message
        stops = kind is not FindingKind.ACCOUNT_NOT_ECHOED
        return _unknown(kind, message, signature=envelope.signature, stops=stops)
    order = {name: echo.asked[name] for name in ("order_no", "currency", "amount")}
    if differing := echo.differing(order, given=texts):
        message = f"the reply differs in {', '.join(differing)}"
        return _unknown(FindingKind.ECHO_DIFFERS, message, signature=envelope.signature)
    outcome, message = _outcome(record, operation=prepared.operation, interface=interface)
    findings: list[ReplyFinding] = []
    if outcome is ReplyOutcome.UNKNOWN:
        findings.append(ReplyFinding(FindingKind.UNMAPPED_CODE, message))
    if LONG_DIGIT_RUN.search(texts.get("card", "")):
        findings.append(ReplyFinding(FindingKind.MALFORMED, "the reply shows a whole card number"))
    if envelope.note is not None:
        sentence = f"{envelope.note.message}; its echo decided"
        findings.append(ReplyFinding(envelope.note.kind, sentence))
    return PaymentReply(
        outcome=outcome,
        code=record.result_code,
        message=message or record.result_text,
        record=record,
        signature=envelope.signature,
        findings=tuple(findings),
    )


def _outcome(
    record: PaymentRecord, *, operation: PaymentOperation, interface: GatewayInterface
) -> tuple[ReplyOutcome, str]:
    """What a payment came to, and why it is unknown; a shopper is sent nowhere unsafe."""
    word = interface.status_map.order_status.get(record.order_status)
    is_asked_to_go = operation is PaymentOperation.AUTHORISE_APM and not record.order_status
    why = ""
    if is_asked_to_go and not record.issuer_url:
        why = "the reply names no issuer_url"
    elif not is_asked_to_go and word is None:
        why = f"order_status {record.order_status or 'missing'} is not in the status map"
    elif word == "done" and not record.transaction_id:
        why = "a payment without transaction_id"
    elif record.issuer_url and not is_private_way(record.issuer_url):
        why = "the reply's issuer_url is not https"
    if why:
        return ReplyOutcome.UNKNOWN, why
    return ReplyOutcome.PENDING if is_asked_to_go else ReplyOutcome(word or ""), ""


def payment_record(
    root: etree._Element, *, texts: Mapping[str, str], prepared: PreparedCall
) -> PaymentRecord:
    """The parts of a payment's result; total over any element.

    Args:
        root: The element `respon`.
        texts: The texts of its plain elements.
        prepared: Whose private values are masked in whatever is kept.
    """
    masked = prepared.masked_text

    def kept(name: str) -> str:
        return masked(texts.get(name, ""))

    def exact(name: str) -> str:
        return texts.get(name, "") if len(texts.get(name, "")) <= EXACT_CHARACTERS_MAX else ""

    reasons: list[RiskReason] = []
    for group in root.iterchildren("risk_reasons"):  # the group may repeat, or the pairs in it
        names, states = (
            [masked(element.text or "") for element in group.iterchildren(tag)]
            for tag in ("name", "status")
        )
        pairs = zip_longest(names, states, fillvalue="")
        reasons.extend(RiskReason(*pair) for pair in pairs if any(pair))
    code, separator, text = kept("result_info").partition(":")
    return PaymentRecord(
        **{name: kept(name) for name in _TEXTS},
        **{name: prepared.kept_id(texts.get(name, "")) for name in _IDS},
        **{name: exact(name) for name in _EXACT},
        card=masked_card(kept("card")),
        result_code=code.strip() if separator else "",
        result_text=(text if separator else code).strip(),
        risk_reasons=tuple(reasons[:RISK_REASONS_MAX]),
        extra=unlisted(texts, listed=_KNOWN, masked=masked),
    )


def _unknown(
    kind: FindingKind,
    message: str,
    *,
    signature: SignatureState = SignatureState.UNCHECKED,
    stops: bool = False,
) -> PaymentReply:
    return PaymentReply(
        outcome=ReplyOutcome.UNKNOWN,
        message=message,
        signature=signature,
        findings=(ReplyFinding(kind, message),),
        stop_reason=message if stops else "",
    )
