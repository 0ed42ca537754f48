"""The course of a payment: declined, waiting for its shopper, in review, or in effect.

Everything here happens inside the transaction of the call that caused it; the effects name that
call.
"""

from dataclasses import replace

from recon.model.words import GatewayState
from recon.sandbox.ground.book_records import Payment, effect_of
from recon.sandbox.ground.clock import iso
from recon.sandbox.ground.operation_call import Call, Sandbox
from recon.sandbox.ground.payment_result import (
    SUCCESS,
    Course,
    Detail,
    details_of,
    opaque,
    write_detail,
)
from recon.sandbox.notify.notify_events import tell_payment
from recon.sandbox.operations.card import CHALLENGE, FAILED, Card, save_card
from recon.sandbox.operations.subscription import asked_for, begin

APM = "authorise_apm"
CARD = "authorise"
ACCEPT = "ACCEPT"
REVIEW = "REVIEW"
REJECT = "REJECT"


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
