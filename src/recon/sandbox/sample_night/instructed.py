"""Order lines that ask for money to move: captures, cancels, refunds in part and in full."""

from dataclasses import replace
from random import Random

from recon.model.words import InstructionKind, OrderStatus
from recon.sandbox.sample_night.expecting import pending
from recon.sandbox.sample_night.plain_orders import entries_of, order_of, plain_story
from recon.sandbox.sample_night.records import Story
from recon.sandbox.sample_night.true_payments import TruePayment

REFUND_REASONS = ("returned goods", "price correction", "late delivery", "damaged on arrival")


def capture(payment: TruePayment, _rng: Random) -> Story:
    """Goods have left: capture the authorised payment in full."""
    line = replace(order_of(payment), action=InstructionKind.CAPTURE)
    return Story((line,), ())


def cancel(payment: TruePayment, _rng: Random) -> Story:
    """The shopper changed their mind: let the authorisation go."""
    line = replace(
        order_of(payment),
        status=OrderStatus.CANCELLED,
        action=InstructionKind.CANCEL,
        action_reason="cancelled by shopper",
    )
    return Story((line,), ())


def refund_in_full(payment: TruePayment, rng: Random) -> Story:
    """Everything goes back; a blank amount means the whole order."""
    story = _refund(payment, amount=None, rng=rng)
    return _told_before(story, status=OrderStatus.REFUNDED, amount=None, rng=rng)


def refund_in_part(payment: TruePayment, rng: Random) -> Story:
    """A part goes back."""
    amount = rng.randint(1, payment.captured - 1)
    story = _refund(payment, amount=amount, rng=rng)
    return _told_before(story, status=OrderStatus.PARTIALLY_REFUNDED, amount=amount, rng=rng)


def refund_repeated(payment: TruePayment, rng: Random) -> Story:
    """The same refund, with its request id, comes again in another file: it moves money once."""
    story = refund_in_part(payment, rng)
    return replace(story, later=story.orders)


def late_cancel(payment: TruePayment, _rng: Random) -> Story:
    """A cancel of a payment that is captured already: it is not sent, and waits for a person."""
    line = replace(order_of(payment), action=InstructionKind.CANCEL)
    expected = pending(payment, "cancel of a captured payment waits for a person")
    return Story((line,), entries_of(payment), expected)


def early_refund(payment: TruePayment, rng: Random) -> Story:
    """A refund of a payment that is not captured yet: it is not sent, and waits."""
    reason = rng.choice(REFUND_REASONS)
    line = replace(
        order_of(payment),
        action=InstructionKind.REFUND,
        action_reason=reason,
        request_id=f"RF-{payment.order_no}",
    )
    return Story((line,), (), pending(payment, "refund of a payment not captured yet waits"))


def _told_before(story: Story, *, status: OrderStatus, amount: int | None, rng: Random) -> Story:
    """Half of the shops write the refund into the order's state before it is made."""
    if rng.randrange(2):
        return story
    (line,) = story.orders
    return replace(story, orders=(replace(line, status=status, refund_amount=amount),))


def _refund(payment: TruePayment, *, amount: int | None, rng: Random) -> Story:
    line = replace(
        order_of(payment),
        action=InstructionKind.REFUND,
        action_amount=amount,
        action_reason=rng.choice(REFUND_REASONS),
        request_id=f"RF-{payment.order_no}",
    )
    return replace(plain_story(payment), orders=(line,))
