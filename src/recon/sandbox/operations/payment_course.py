"""A payment, whatever the method: what it must say, how it begins, and its course.

It is declined, waits for its shopper, is in review, or in effect.

Everything here happens inside the transaction of the call that caused it; the effects name that
call.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from recon.model.money import is_currency
from recon.model.words import GatewayState
from recon.sandbox.ground.book import Payment, effect_of
from recon.sandbox.ground.clock import iso
from recon.sandbox.ground.operation_call import Call, Sandbox, amount_of, wrong
from recon.sandbox.ground.payment_result import (
    SUCCESS,
    Course,
    Detail,
    details_of,
    opaque,
    write_detail,
)
from recon.sandbox.ground.population import transaction_id_of
from recon.sandbox.ground.wire import wire_minor_units
from recon.sandbox.notify.notify_events import tell_payment
from recon.sandbox.operations.card import CHALLENGE, FAILED, Card, save_card
from recon.sandbox.operations.subscription import asked_for, begin

APM = "authorise_apm"
CARD = "authorise"
ACCEPT = "ACCEPT"
REVIEW = "REVIEW"
REJECT = "REJECT"
_ORDER_NO = re.compile(r"[A-Za-z0-9#][A-Za-z0-9._#/:-]{0,49}", re.ASCII)
YES = "YES"
PARTS = (
    *("item_total", "shipping", "handling", "tax_total", "insurance"),
    *("shipping_discount", "discount"),
)
"""Amounts beside the total."""


def order_refusal(call: Call, *, required: Iterable[str]) -> str:
    """`parameters` and the first field that is missing or malformed, else ""."""
    missing = next((name for name in required if not call.text(name)), "")
    if missing:
        return wrong(missing)
    if _ORDER_NO.fullmatch(call.text("order_no")) is None:
        return wrong("order_no")
    refused = _amount_refusal(call)
    if refused:
        return refused
    asked = call.table("subscription")
    if not asked.get("contract_name"):
        return ""
    begun = asked_for(asked, payment=_payment(call, number=0), now=call.now)
    return "" if begun else wrong("subscription")


def _amount_refusal(call: Call) -> str:
    """The total is more than 0, its parts are amounts where they are given."""
    currency = call.text("currency")
    if not is_currency(currency):
        return wrong("currency")
    if not _amount(call):
        return wrong("amount")
    given = (name for name in PARTS if call.text(name))
    parts = {name: wire_minor_units(call.fields[name], currency=currency) for name in given}
    return wrong(next((name for name, amount in parts.items() if amount is None), ""))


def reuse_refusal(sandbox: Sandbox, call: Call) -> str:
    """An order may be tried again only while every attempt was declined."""
    earlier = [
        payment
        for payment in sandbox.book.payments("order_no", keys=(call.text("order_no"),))
        if payment.account_id == call.text("account_id")
    ]
    declined = all(payment.state is GatewayState.FAILED for payment in earlier)
    return "" if declined else "duplicate_order"


def attempted(
    sandbox: Sandbox, call: Call, *, method: Literal["card", "apm", "hosted"]
) -> tuple[Payment, Detail]:
    """A new payment, pending and not yet written, and what was asked for with it."""
    payment = _payment(call, number=sandbox.book.next_number("payments"))
    detail = Detail(
        transaction_id=payment.transaction_id,
        method=method,
        base_url=call.base_url,
        return_url=call.text("return_url"),
        cancel_url=call.text("cancel_url"),
        notify_url=call.text("notify_url"),
        note=call.text("note"),
        installments=call.text("installments"),
        installments_id=call.text("installments_id"),
        open3d=call.text("open3d"),
        wants_token=call.text("token_flag").upper() == YES,
        subscription=call.table("subscription"),
    )
    return payment, detail


def _payment(call: Call, *, number: int) -> Payment:
    return Payment(
        transaction_id=transaction_id_of(call.now, number=number),
        order_no=call.text("order_no"),
        merchant_id=call.text("merchant_id"),
        account_id=call.text("account_id"),
        currency=call.text("currency"),
        authorised=_amount(call),
        state=GatewayState.PENDING,
        created_at=call.now,
        reference_no=f"R{number:09d}",
    )


def _amount(call: Call) -> int:
    return amount_of(call.fields.get("amount"), currency=call.text("currency"))


def by_card(
    sandbox: Sandbox, call: Call, payment: Payment, *, detail: Detail, card: Card
) -> Course:
    """Let a card pay: its bank, then 3-D Secure, then the risk decide.

    `detail.threeds_result` says how the payer was authenticated, or that this is to come.
    """
    score = card.risk_score
    detail = replace(detail, card=card.masked, expires=card.expires, risk_score=score)
    if card.declined:
        return failed(sandbox, payment, detail=detail, info=card.declined)
    if detail.threeds_result == FAILED:
        return failed(sandbox, payment, detail=detail, info=sandbox.terms.results["threeds"])
    if detail.threeds_result == CHALLENGE:
        return waiting(sandbox, payment, detail=replace(detail, stage="challenge"))
    return by_risk(sandbox, call, payment, detail=detail)


def waiting(sandbox: Sandbox, payment: Payment, *, detail: Detail) -> Course:
    """Pending until the shopper has done what the stage says, on a page of its own."""
    key = opaque(sandbox.options.seed, about=payment.transaction_id, name="page")
    detail = replace(detail, page_key=key, info=sandbox.terms.results["waiting"])
    return _moved(sandbox, payment, detail=detail, state=GatewayState.PENDING)


def by_risk(sandbox: Sandbox, call: Call, payment: Payment, *, detail: Detail) -> Course:
    """Refuse, keep for review, or let it take effect, by the risk score."""
    risk, score = sandbox.terms.risk, detail.risk_score
    action = REJECT if score >= risk.reject_from else REVIEW
    detail = replace(detail, stage="", risk_action=action if score >= risk.review_from else ACCEPT)
    if detail.risk_action == REJECT:
        return failed(sandbox, payment, detail=detail, info=sandbox.terms.results["risk"])
    if detail.risk_action == REVIEW:
        detail = replace(detail, info=sandbox.terms.results["in_review"])
        return _moved(sandbox, payment, detail=detail, state=GatewayState.IN_REVIEW)
    return in_effect(sandbox, call, payment, detail=detail)


def failed(sandbox: Sandbox, payment: Payment, *, detail: Detail, info: str) -> Course:
    """The attempt is over and has no effect; its order may be tried again."""
    detail = replace(detail, stage="", info=info)
    return _moved(sandbox, payment, detail=detail, state=GatewayState.FAILED)


def in_effect(sandbox: Sandbox, call: Call, payment: Payment, *, detail: Detail) -> Course:
    """The money is reserved, or taken at once where nobody captures it later."""
    is_apm = detail.method == "apm"
    operations = [APM if is_apm else CARD]
    state, amount = GatewayState.AUTHORISED, payment.authorised
    if is_apm or sandbox.options.capture_mode == "auto":
        operations.append("capture")
        state = GatewayState.PAID
        payment = replace(payment, captured=amount, captured_at=call.now)
    for operation in operations:
        effect = effect_of(
            payment, operation=operation, origin="api", amount=amount, committed_at=call.now
        )
        sandbox.book.append_effects([replace(effect, request_log_id=call.request_log_id)])
    detail = _with_subscription(
        sandbox, call, payment, detail=_with_token(sandbox, payment, detail)
    )
    detail = replace(detail, stage="", info=SUCCESS)
    return _moved(sandbox, payment, detail=detail, state=state)


def after_review(sandbox: Sandbox, call: Call, payment: Payment) -> None:
    """What the review_flag of a payment in review leads to."""
    known = details_of(sandbox.book, [payment.transaction_id])
    detail = known.get(payment.transaction_id, Detail(payment.transaction_id, "card"))
    flags = sandbox.terms.review
    if payment.review_flag == flags.accept:
        decided = in_effect(sandbox, call, payment, detail=detail)
    elif payment.review_flag == flags.reject:
        decided = failed(sandbox, payment, detail=detail, info=sandbox.terms.results["review"])
    else:
        return
    tell_payment(sandbox, decided[0], detail=decided[1], at=call.now, reviewed=True)


def _with_token(sandbox: Sandbox, payment: Payment, detail: Detail) -> Detail:
    if not detail.wants_token or detail.token_id:
        return detail
    token_id = opaque(sandbox.options.seed, about=payment.transaction_id, name="token")
    card = Card(detail.card, detail.expires, risk_score=detail.risk_score)
    save_card(sandbox.book, card, token_id=token_id, account_id=payment.account_id)
    return replace(detail, token_id=token_id)


def _with_subscription(sandbox: Sandbox, call: Call, payment: Payment, *, detail: Detail) -> Detail:
    asked = asked_for(detail.subscription, payment=payment, now=call.now)
    if asked is None:
        return detail
    begun = begin(sandbox.book, asked)
    return replace(
        detail,
        contract_name=begun.contract_name,
        recurring_id=begun.recurring_id,
        recurring_deduction_period=f"{begun.interval_count} {begun.interval}",
        recurring_deduction_time=iso(begun.due_at(1)).replace("T", " ").rstrip("Z"),
    )


def _moved(sandbox: Sandbox, payment: Payment, *, detail: Detail, state: GatewayState) -> Course:
    payment = replace(payment, state=state, previous_state=payment.state.value)
    sandbox.book.write_payments([payment])
    write_detail(sandbox.book, detail)
    if state is not GatewayState.PENDING:
        tell_payment(sandbox, payment, detail=detail, at=sandbox.clock.now())
    return payment, detail
