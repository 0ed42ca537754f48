"""What a night knows since the gateway's settlement tells it, for the answer key.

The sample night expects what its own files can show. A settled refund says how much was refunded
where no query does, and a payment that the settlement names is asked about although no file of the
merchant has it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from recon.model.words import BreakCode, EntryType, Flag, GatewayState, UnverifiedReason
from recon.sandbox.pages.planted_settlement import Settlement, SettlementLine
from recon.sandbox.sample_night import SampleNight
from recon.sandbox.sample_night.expecting import breaks, effects_of, flagged, pending
from recon.sandbox.sample_night.records import Expectation, Story
from recon.sandbox.sample_night.true_payments import TruePayment

ORDER_GRACE = timedelta(hours=24)
"""How long an order may be away, as in the bundled rules."""
_UNKNOWN = UnverifiedReason.REFUND_AMOUNT_UNKNOWN


def known_by_settlement(
    night: SampleNight,
    *,
    payments: Sequence[TruePayment],
    settlement: Settlement,
    before: Sequence[SettlementLine],
    now: datetime,
) -> SampleNight:
    """The night with what is expected of payments that the settlement of its day tells of.

    Args:
        night: as its own files have it.
        payments: all that there truly are.
        settlement: of the business date.
        before: the lines of the days before.
        now: when the business date closes.
    """
    by_id = {payment.transaction_id: payment for payment in payments}
    refunded = {line.transaction_id for line in settlement.true if _is(line, EntryType.REFUND)}
    lines = (*before, *settlement.lines)
    settled = {line.transaction_id for line in lines if _is(line, EntryType.CAPTURE)}
    first = min((line.settled_on for line in before), default=night.business_date.isoformat())
    stories = [
        replace(story, expected=_told(story.expected, by_id=by_id, settled=settled, first=first))
        if story.expected is not None
        and story.expected.unverified is _UNKNOWN
        and story.expected.transaction_id in refunded
        else story
        for story in night.stories
    ]
    known = {line.order_no for story in night.stories for line in story.orders}
    known |= {line.order_no for story in night.stories for line in story.ledger}
    known |= {story.expected.order_no for story in night.stories if story.expected is not None}
    lonely = [
        payment
        for payment in payments
        if payment.transaction_id in refunded
        and payment.order_no not in known
        and payment.state is GatewayState.PARTIALLY_REFUNDED
    ]
    expected = [*(_lonely(payment, now=now) for payment in lonely), *_left_out(settlement, by_id)]
    return replace(night, stories=(*stories, *(Story((), (), each) for each in expected)))


def _is(line: SettlementLine, kind: EntryType) -> bool:
    return line.entry_type == kind


def _told(
    expected: Expectation,
    *,
    by_id: dict[str, TruePayment],
    settled: Collection[str],
    first: str,
) -> Expectation:
    """Of an order in the merchant's files: it agrees, or its capture is still to be settled."""
    payment = by_id[expected.transaction_id]
    if payment.transaction_id in settled or payment.authorised_at.date().isoformat() < first:
        return flagged(payment, "the settlement says how much", flag=Flag.REFUND_FROM_SETTLEMENT)
    return pending(payment, "the settlement says how much, and has no capture yet")


def _lonely(payment: TruePayment, *, now: datetime) -> Expectation:
    """Of a payment that no file of the merchant has."""
    why = "refunded in part and settled; no order file holds it"
    if now < payment.authorised_at + ORDER_GRACE:
        return pending(payment, why)
    effects = effects_of(payment, gateway=payment.net, order=0, ledger=0)
    return breaks(payment, why, code=BreakCode.MISSING_IN_ORDERS, effects=effects)


def _left_out(settlement: Settlement, by_id: dict[str, TruePayment]) -> Iterator[Expectation]:
    for planted in settlement.planted:
        if planted.code is BreakCode.SETTLEMENT_MISSING and planted.true is not None:
            payment = by_id.get(planted.true.transaction_id)
            if payment is not None:
                yield pending(payment, "not settled, and not late by then")
