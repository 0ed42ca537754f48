from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from recon.model.words import BreakCode, GatewayState, OrderStatus
from recon.sandbox.sample_night import calm_finds, instructed, ledger_breaks, order_breaks
from recon.sandbox.sample_night.bad_rows import bad_rows, rows_needed
from recon.sandbox.sample_night.expecting import effects_of
from recon.sandbox.sample_night.fitting import (
    all_of,
    in_currency,
    in_state,
    past_grace,
    within_grace,
)
from recon.sandbox.sample_night.invented_orders import invented_stories
from recon.sandbox.sample_night.plain_orders import order_of, plain_story
from recon.sandbox.sample_night.plants import Tell, account_plants, shares
from recon.sandbox.sample_night.records import ORDER_HEADER, Story, cells_of
from recon.sandbox.sample_night.true_payments import TruePayment

CLOSES_AT = datetime(2026, 11, 21, tzinfo=UTC)
PAID = TruePayment(
    merchant_id="100042",
    account_id="100042001",
    order_no="SO1",
    transaction_id="T1",
    currency="EUR",
    state=GatewayState.PAID,
    authorised=10_000,
    authorised_at=datetime(2026, 11, 2, 9, tzinfo=UTC),
    last_at=datetime(2026, 11, 2, 10, tzinfo=UTC),
    captured=10_000,
    captured_at=datetime(2026, 11, 2, 10, tzinfo=UTC),
)
AUTHORISED = replace(PAID, state=GatewayState.AUTHORISED, captured=0, captured_at=None)
CANCELLED = replace(AUTHORISED, state=GatewayState.CANCELLED)
REFUNDED = replace(PAID, state=GatewayState.REFUNDED, refunded=10_000, refund_reference_id="T1-01")
CHARGED_BACK = replace(PAID, state=GatewayState.CHARGEBACK)


def rng() -> Random:
    """The same randomness in each test."""
    return Random(1)


def effects_in(story: Story) -> dict[str, int]:
    """Leg -> effect, of a story in one currency."""
    assert story.expected is not None
    return {effect.leg: effect.amount for effect in story.expected.effects}


@pytest.mark.parametrize(
    ("tell", "payment", "orders", "ledger"),
    [
        (order_breaks.capture_due, AUTHORISED, -10_000, None),
        (order_breaks.cancel_due, AUTHORISED, None, None),
        (order_breaks.paid_but_cancelled, CANCELLED, -10_000, None),
        (order_breaks.captured_by_somebody, PAID, 10_000, None),
        (order_breaks.refund_due, PAID, 10_000, None),
        (order_breaks.refund_unexpected, REFUNDED, -10_000, None),
        (order_breaks.missing_in_orders, PAID, 10_000, None),
        (ledger_breaks.missing_in_ledger, PAID, None, 10_000),
        (ledger_breaks.duplicate_posting, PAID, None, -10_000),
        (ledger_breaks.refund_not_booked, REFUNDED, None, -10_000),
        (ledger_breaks.chargeback_not_booked, CHARGED_BACK, -10_000, -10_000),
        (ledger_breaks.chargeback_unproven, PAID, None, 10_000),
    ],
)
def test_effects_are_gateway_less_the_other_side(
    tell: Tell, payment: TruePayment, orders: int | None, ledger: int | None
) -> None:
    """Each story of a payment of 100.00 has exactly the effects that its sides give."""
    expected = {"orders": orders, "ledger": ledger}

    assert effects_in(tell(payment, rng())) == {k: v for k, v in expected.items() if v is not None}


@pytest.mark.parametrize(
    ("tell", "leg", "sign"),
    [
        (order_breaks.amount_over, "orders", 1),
        (order_breaks.amount_under, "orders", -1),
        (order_breaks.part_refund_due, "orders", 1),
        (order_breaks.duplicate_order, "orders", -1),
        (ledger_breaks.ledger_amount_mismatch, "ledger", -1),
        (ledger_breaks.refund_booked_only, "ledger", 1),
    ],
)
def test_partial_differences_have_their_sign(tell: Tell, leg: str, sign: int) -> None:
    """A difference of some cents stands on one leg only, with the sign of gateway minus it."""
    effects = effects_in(tell(PAID, rng()))

    assert list(effects) == [leg]
    assert effects[leg] * sign > 0


def test_another_currency_shows_both_amounts() -> None:
    """The gateway's money and the order's claim stand in their own currencies."""
    story = order_breaks.currency_mismatch(PAID, rng())

    assert story.expected is not None
    assert [(e.currency, e.amount) for e in story.expected.effects] == [
        ("EUR", 10_000),
        ("USD", -10_000),
    ]


def test_a_plain_story_agrees_on_both_legs() -> None:
    """A tidy merchant's files give no effect in any state that has money."""
    for payment in (PAID, REFUNDED, AUTHORISED, CANCELLED):
        story = plain_story(payment)
        order = order_breaks.order_net(story.orders[0])
        ledger = ledger_breaks.ledger_net(story.ledger)

        assert effects_of(payment, gateway=payment.net, order=order, ledger=ledger) == ()


def test_instructions_ask_for_what_their_name_says() -> None:
    """Actions stand beside the order; a full refund leaves its amount blank."""
    capture = instructed.capture(AUTHORISED, rng()).orders[0]
    cancel = instructed.cancel(AUTHORISED, rng()).orders[0]
    whole = instructed.refund_in_full(PAID, rng()).orders[0]
    part = instructed.refund_in_part(PAID, rng()).orders[0]

    assert [line.action for line in (capture, cancel, whole, part)] == [
        "capture",
        "cancel",
        "refund",
        "refund",
    ]
    assert whole.action_amount is None
    assert 0 < (part.action_amount or 0) < PAID.captured
    assert whole.request_id
    assert capture.status == OrderStatus.AUTHORISED


def test_a_repeated_refund_is_the_same_row_twice() -> None:
    """The later file repeats the row to the byte, so that nothing may be doubled."""
    story = instructed.refund_repeated(PAID, rng())

    assert story.later == story.orders


def test_grace_is_counted_in_business_days() -> None:
    """Thursday's capture may still be unbooked on Friday night, Wednesday's may not."""
    thursday = replace(PAID, authorised_at=datetime(2026, 11, 19, 1, tzinfo=UTC))
    wednesday = replace(PAID, last_at=datetime(2026, 11, 18, 23, tzinfo=UTC))

    assert within_grace(CLOSES_AT)(thursday)
    assert past_grace(CLOSES_AT)(wednesday)
    assert not within_grace(CLOSES_AT)(PAID)


def test_conditions_combine() -> None:
    """A story's payment meets every condition."""
    wants = all_of(in_state(GatewayState.PAID), in_currency("EUR", "USD"))

    assert wants(PAID)
    assert not wants(replace(PAID, currency="JPY"))
    assert not wants(AUTHORISED)


def test_invented_orders_are_of_every_kind() -> None:
    """Three breaks, two that are pending, one that never was paid."""
    stories = invented_stories(rng(), merchant_id="1", account_id="2", closes_at=CLOSES_AT, times=1)
    expected = [story.expected for story in stories if story.expected]

    assert [one.code for one in expected if one.code] == [
        BreakCode.MISSING_AT_GATEWAY,
        BreakCode.BOOKED_NOT_AT_GATEWAY,
        BreakCode.LEDGER_ONLY,
    ]
    assert sum(one.pending for one in expected) == 2
    assert all(line.ordered_at < CLOSES_AT for story in stories for line in story.orders)


def test_late_placed_orders_are_within_a_day() -> None:
    """What is pending for its age is younger than the grace of a day."""
    stories = invented_stories(rng(), merchant_id="1", account_id="2", closes_at=CLOSES_AT, times=1)
    (placed,) = [s for s in stories if s.expected and "four hours" in s.expected.why]

    assert CLOSES_AT - placed.orders[0].ordered_at < timedelta(hours=24)


def test_each_bad_row_has_one_mistake() -> None:
    """A bad row differs from its order in the named column only, or in its shape."""
    lines = [replace(order_of(PAID), order_no=f"SO{n}") for n in range(rows_needed())]

    for row in bad_rows(lines):
        good = cells_of(row.line)
        changed = [
            name
            for name, cell, meant in zip(ORDER_HEADER, row.cells, good, strict=False)
            if cell != meant
        ]
        assert row.cells != good
        if row.kind in {"decimal comma", "unknown currency", "no such date", "unknown action"}:
            assert changed == [row.column]


def test_plants_and_shares_name_their_account() -> None:
    """No plant of the account takes a payment of the other one."""
    elsewhere = replace(PAID, account_id="100042002")
    plants = list(account_plants("100042001", other_account="100042002", closes_at=CLOSES_AT))

    assert len(plants) > 25
    assert not any(wants(elsewhere) for _, wants in plants)
    assert not any(wants(elsewhere) for _, wants, _ in shares("100042001"))


def test_calm_finds_are_no_breaks() -> None:
    """Flags, pending bookings and sets that cannot be judged have no break code."""
    told = [
        calm_finds.rounding(PAID, rng()),
        calm_finds.reference_conflict(PAID, rng()),
        calm_finds.refunded_by_void(CANCELLED, rng()),
        calm_finds.written_off(PAID, rng()),
        calm_finds.chargeback_booked(CHARGED_BACK, rng()),
        calm_finds.not_yet_booked(PAID, rng()),
        calm_finds.entry_id_conflict(PAID, rng()),
    ]

    assert all(story.expected and story.expected.code is None for story in told)
    assert told[0].orders[0].amount == PAID.captured - 1
