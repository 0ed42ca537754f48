"""What the reply to a payment request says; total over any bytes, pure, never a guess.

A payment is done, pending or failed only when a trusted reply is signed, names our account, echoes
the order and carries a known status. Everything else is unknown: the order is queried, never sent
again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from urllib.parse import urljoin, urlsplit

from recon.gateway_client.interface.described import GatewayInterface, ReplyPolicy
from recon.gateway_client.interface.payout_record import amount_of
from recon.gateway_client.interface.reply_outcomes import FindingKind, ReplyFinding, ReplyOutcome
from recon.gateway_client.interface.rows import Credentials
from recon.gateway_client.interface.signing import SignatureState, is_signed, reply_signature
from recon.gateway_client.interface.transport import RawReply
from recon.gateway_client.payments.payment import PaymentOperation
from recon.gateway_client.payments.payment_outcome import ApmRefusal, PaymentRecord, PaymentReply
from recon.gateway_client.payments.payment_record import payment_record, shows_whole_card
from recon.gateway_client.payments.prepare_payment import PreparedPayment
from recon.gateway_client.wire.addresses import is_private_way
from recon.gateway_client.wire.html_form import HostedForm, html_form
from recon.gateway_client.wire.json_reply import UnreadableReplyError, json_object, text_of
from recon.gateway_client.wire.text import code_and_text
from recon.gateway_client.wire.wire_errors import NotSentError, UnknownOutcomeError
from recon.gateway_client.wire.xml_reply import element_texts, xml_root

OK_STATUSES = range(200, 300)
NO_ACCESS_STATUSES = frozenset({401, 403})
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
_NO_PATH = re.compile(r"[^!-~]|\\")
"""In an address a browser drops some of these, and reads a backslash as a slash."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Everything one reply is judged by."""

    prepared: PreparedPayment
    raw: RawReply
    interface: GatewayInterface
    policy: ReplyPolicy
    credentials: Credentials
    base_url: str

    @property
    def may_lack(self) -> bool:
        """Whether the reply is trusted without any signature."""
        return self.interface.signature.may_lack(self.prepared.operation)

    @property
    def asked(self) -> dict[str, str | Decimal]:
        """What the reply must echo."""
        payment = self.prepared.payment
        return {
            "merchant_id": self.credentials.merchant_id,
            "account_id": self.credentials.account_id,
            "order_no": payment.order_no,
            "currency": payment.currency,
            "amount": payment.amount,
        }


def read_payment_reply(
    prepared: PreparedPayment,
    raw: RawReply,
    *,
    interface: GatewayInterface,
    policy: ReplyPolicy,
    credentials: Credentials,
    base_url: str = "",
) -> PaymentReply:
    """What a payment request came to; never raises on foreign bytes.

    Args:
        prepared: What was sent.
        raw: What came back, whatever it is.
        interface: Codes and signature rules.
        policy: As for batches; the hosted page carries no signature and is judged by its echo.
        credentials: As used for `prepared`.
        base_url: Where it was sent; without it a hosted page may lead to a path only.
    """
    reading = _Reading(prepared, raw, interface, policy, credentials, base_url)
    if raw.status not in OK_STATUSES:
        return _by_status(reading)
    try:
        if prepared.operation is PaymentOperation.CHECKOUT:
            return _by_form(reading, form=html_form(raw.body))
        root = xml_root(raw.body, root=ROOT)
        texts = element_texts(root, repeated="risk_reasons")
    except UnreadableReplyError as error:
        message = f"the reply (HTTP {raw.status}) is {error}"
        return _unknown(reading, kind=FindingKind.UNREADABLE, message=message)
    signature = _signature(reading, texts=texts)
    record = payment_record(root, texts=texts, prepared=prepared)
    return (
        _refused_signature(reading, record=record, signature=signature)
        or _untrusted(reading, texts=texts, signature=signature)
        or _by_record(reading, record=record, texts=texts, signature=signature)
    )


def payment_without_reply(error: NotSentError | UnknownOutcomeError) -> PaymentReply:
    """What a payment came to when no reply came: not sent, or unknown."""
    outcome = ReplyOutcome.NOT_SENT if isinstance(error, NotSentError) else ReplyOutcome.UNKNOWN
    return PaymentReply(outcome=outcome, code=error.kind, message=str(error))


def _by_status(reading: _Reading) -> PaymentReply:
    """A status alone proves nothing, but for what document or configuration call a refusal."""
    status = reading.raw.status
    code, text = _error_body(reading)
    refusals = reading.interface.status_map.refusals
    message = f"the gateway answered HTTP {status}{f': {text}' if text else ''}"
    finding = ReplyFinding(FindingKind.HTTP_STATUS, message)
    refused_signature = code in refusals.signature_codes
    refusal = _apm_refusal(reading)
    final = refused_signature or bool(refusal) or status in refusals.before_processing_http
    stops = refused_signature or status in NO_ACCESS_STATUSES
    return PaymentReply(
        outcome=ReplyOutcome.REJECTED if final else ReplyOutcome.UNKNOWN,
        code=code,
        message=message,
        refusal=refusal,
        http_status=status,
        findings=(finding,),
        stop_reason=message if stops else "",
    )


def _apm_refusal(reading: _Reading) -> ApmRefusal:
    if reading.prepared.operation is not PaymentOperation.AUTHORISE_APM:
        return ""
    return reading.interface.status_map.apm_http.get(str(reading.raw.status), "")


def _error_body(reading: _Reading) -> tuple[str, str]:
    """Code and text of an error in JSON; the document shows no other form."""
    try:
        fields = json_object(reading.raw.body)
    except UnreadableReplyError:
        return "", ""
    masked = reading.prepared.masked_text
    code, text = code_and_text(masked(text_of(fields.get("message")) or ""))
    return masked(text_of(fields.get("code")) or "") or code, text


def _signature(reading: _Reading, *, texts: Mapping[str, str]) -> SignatureState:
    given = texts.get("encryption_data", "")
    if reading.interface.signature.is_echo(reading.prepared.operation):
        expected = (reading.prepared.signature,)
        return reply_signature(given, expected=expected, policy=reading.policy)
    holds = partial(
        is_signed,
        template=TEMPLATE,
        fields=texts,
        credentials=reading.credentials,
        interface=reading.interface,
    )
    return reply_signature(given, expected=(), policy=reading.policy, otherwise=holds)


def _refused_signature(
    reading: _Reading, *, record: PaymentRecord, signature: SignatureState
) -> PaymentReply | None:
    """A refusal of our signature is believed as it stands: nobody gains by forging it."""
    words = reading.interface.status_map.order_status
    codes = reading.interface.status_map.refusals.signature_codes
    if record.result_code not in codes or words.get(record.order_status) != "failed":
        return None
    reason = f"the gateway refused our signature ({record.result_code}): check the sign key"
    return PaymentReply(
        outcome=ReplyOutcome.REJECTED,
        code=record.result_code,
        message=record.result_text,
        http_status=reading.raw.status,
        signature=signature,
        findings=(ReplyFinding(FindingKind.REFUSED, reason),),
        stop_reason=reason,
    )


def _untrusted(
    reading: _Reading, *, texts: Mapping[str, str], signature: SignatureState
) -> PaymentReply | None:
    """Replies that cannot stand for this payment."""
    if not signature.is_enough(policy=reading.policy, may_lack=reading.may_lack):
        message = f"the reply's signature is {signature}"
        return _unknown(
            reading, kind=FindingKind.SIGNATURE, message=message, signature=signature, stops=True
        )
    given = dict(texts)
    if signature is SignatureState.VALID:
        # It covers our merchant and account: a reply need not say again whose it is.
        own = {"merchant_id", "account_id"}
        given |= {name: str(reading.asked[name]) for name in own if not texts.get(name)}
    differing = _differing(reading.asked, given=given)
    if differing:
        message = f"the reply differs in {', '.join(differing)}"
        return _unknown(
            reading, kind=FindingKind.ECHO_DIFFERS, message=message, signature=signature
        )
    return None


def _by_record(
    reading: _Reading,
    *,
    record: PaymentRecord,
    texts: Mapping[str, str],
    signature: SignatureState,
) -> PaymentReply:
    if reading.prepared.operation is PaymentOperation.AUTHORISE_APM and not record.order_status:
        outcome, message = _by_issuer(record)
    else:
        outcome, message = _by_order_status(reading, record=record)
    findings = (
        [ReplyFinding(FindingKind.UNMAPPED_CODE, message)]
        if outcome is ReplyOutcome.UNKNOWN
        else []
    )
    if shows_whole_card(texts):
        findings.append(ReplyFinding(FindingKind.MALFORMED, "the reply shows a whole card number"))
    strict = signature.is_enough(policy="enforce", may_lack=reading.may_lack)
    if reading.policy == "warn" and not strict:
        sentence = f"the reply's signature is {signature}; its echo decided"
        findings.append(ReplyFinding(FindingKind.SIGNATURE, sentence))
    return PaymentReply(
        outcome=outcome,
        code=record.result_code,
        message=message or record.result_text,
        record=record,
        http_status=reading.raw.status,
        signature=signature,
        findings=tuple(findings),
    )


def _by_issuer(record: PaymentRecord) -> tuple[ReplyOutcome, str]:
    """The shopper must be sent somewhere safe, else nobody can pay."""
    if not record.issuer_url:
        return ReplyOutcome.UNKNOWN, "the reply names no issuer_url"
    if not is_private_way(record.issuer_url):
        return ReplyOutcome.UNKNOWN, "the reply's issuer_url is not https"
    return ReplyOutcome.PENDING, ""


def _by_order_status(reading: _Reading, *, record: PaymentRecord) -> tuple[ReplyOutcome, str]:
    word = reading.interface.status_map.order_status.get(record.order_status)
    if word is None:
        shown = record.order_status or "missing"
        return ReplyOutcome.UNKNOWN, f"order_status {shown} is not in the status map"
    if word == "done" and not record.transaction_id:
        return ReplyOutcome.UNKNOWN, "a payment without transaction_id"
    if record.issuer_url and not is_private_way(record.issuer_url):
        return ReplyOutcome.UNKNOWN, "the reply's issuer_url is not https"
    return ReplyOutcome(word), ""


def _by_form(reading: _Reading, *, form: HostedForm) -> PaymentReply:
    """The page is ours when its inputs say what we asked for; nothing of it is followed."""
    asked, sent = reading.asked, reading.prepared.texts
    expected = asked | {alias: asked[name] for alias, name in ALIASES.items()}
    # What of the request it repeats beside these, it repeats as it was sent.
    expected |= {name: sent[name] for name in sent if name in form.inputs and name not in asked}
    differing = _differing(expected, given=form.inputs)
    repeated = {name: asked.get(name, sent[name]) for name in sent if name in form.parameters}
    differing += [f"allParams {name}" for name in _differing(repeated, given=form.parameters)]
    if form.method != "post" or not _leads_to_the_page(form.action, reading=reading):
        differing = ["form", *differing]
    if differing:
        message = f"the page differs in {', '.join(differing)}"
        return _unknown(reading, kind=FindingKind.ECHO_DIFFERS, message=message)
    return PaymentReply(outcome=ReplyOutcome.PENDING, form=form, http_status=reading.raw.status)


def _leads_to_the_page(action: str, *, reading: _Reading) -> bool:
    """Whether a browser that submits the form is at the hosted page (4.3), and of this gateway."""
    path, base = reading.prepared.path, reading.base_url
    try:
        there = urlsplit(urljoin(f"{base}{path}", action))
        own = urlsplit(base)
    except ValueError:
        return False
    if _NO_PATH.search(action) or there.path not in {path, f"{own.path}{path}"}:
        return False
    hosts = {own.netloc, *reading.interface.profile.payment.page_hosts}
    return there.netloc in hosts and (not there.netloc or is_private_way(there.geturl()))


def _differing(asked: Mapping[str, str | Decimal], *, given: Mapping[str, str]) -> list[str]:
    """Names whose given text is not what was asked; amounts are compared as numbers."""
    return [
        name
        for name, value in asked.items()
        if (amount_of(given.get(name)) if isinstance(value, Decimal) else given.get(name)) != value
    ]


def _unknown(
    reading: _Reading,
    *,
    kind: FindingKind,
    message: str,
    signature: SignatureState = SignatureState.UNCHECKED,
    stops: bool = False,
) -> PaymentReply:
    return PaymentReply(
        outcome=ReplyOutcome.UNKNOWN,
        message=message,
        http_status=reading.raw.status,
        signature=signature,
        findings=(ReplyFinding(kind, message),),
        stop_reason=message if stops else "",
    )
