from datetime import timedelta

import pytest

from recon.model.errors import UsageError
from recon.model.nights import Mode
from recon.steps.approvals.people import status
from recon.store.money.journal import StoredJournal
from recon.webhooks.receiver import Receiver
from tests.recon.steps.approvals.test_verdicts import PEOPLE, say
from tests.recon.webhooks.told import PAYMENT, REFUND, form


def test_a_dry_run_ends_no_doubt(merchant):
    """Evidence that would end a doubt changes nothing in a dry run; the next live night ends it."""
    paid = merchant.payments("authorised")[:2]
    rows = [merchant.order(one, status="paid", action="capture") for one in paid]
    merchant.drop("orders.csv", *rows)
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    merchant.move_money()
    merchant.fault()
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-21")
    merchant.wait(hours=24)
    merchant.move_money(date="2026-11-22", mode=Mode.DRY_RUN)
    dry = merchant.instruction_states()
    merchant.move_money(date="2026-11-22")

    assert dry == {"in_doubt": 2}
    assert merchant.instruction_states() == {"resolved_applied": 2}


def test_a_dry_run_judges_no_kept_reply(merchant, monkeypatch):
    """A reply kept before a crash stays unjudged in a dry run, whatever it would let pass."""
    paid = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(paid, status="paid", action="capture"))
    with monkeypatch.context() as patch:
        patch.setattr(StoredJournal, "record", _crash)
        with pytest.raises(KeyboardInterrupt):
            merchant.move_money()
    merchant.configure("gateway.toml", 'reply_signatures = "warn"\n')
    merchant.move_money(mode=Mode.DRY_RUN)
    dry = merchant.instruction_states()
    merchant.configure("gateway.toml", "allow_unverified_replies = true\n")
    merchant.move_money()

    assert dry == {"in_flight": 1}
    assert merchant.instruction_states() == {"confirmed": 1}


def test_a_capture_that_did_not_happen_comes_again_once_where_that_is_wanted(merchant):
    """In a later run, as a new instruction, and only while its file still asks for it."""
    merchant.configure("gateway.toml", "capture_replan = true\n")
    wanted, dropped = merchant.payments("authorised")[:2]
    for name, paid in (("a.csv", wanted), ("b.csv", dropped)):
        merchant.drop(name, merchant.order(paid, status="paid", action="capture"))
    merchant.fault({"operation": "capture", "kind": "fin", "when": "before", "nth": 1})
    merchant.move_money()
    merchant.fault()
    for day in ("2026-11-21", "2026-11-22"):
        merchant.wait(hours=24)
        merchant.move_money(date=day)
    ended = merchant.instruction_states()
    merchant.drop("b.csv", merchant.order(dropped))
    for _ in range(2):
        merchant.move_money(date="2026-11-22")

    assert ended == {"resolved_not_applied": 2}
    assert [row["transaction_id"] for row in merchant.effects()] == [wanted.transaction_id]
    assert merchant.instruction_states() == {"resolved_not_applied": 2, "confirmed": 1}


def _crash(*_, **__):
    raise KeyboardInterrupt


def test_a_message_that_covers_the_state_ends_a_doubt_with_one_answer(merchant):
    """Only of exactly this payment, and only where the signature covers what it says."""
    told, other_amount, not_signed = merchant.payments("authorised")[:3]
    rows = [
        merchant.order(one, status="paid", action="capture")
        for one in (told, other_amount, not_signed)
    ]
    merchant.drop("orders.csv", *rows)
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    merchant.move_money()
    merchant.fault()
    _notify(merchant, told, amount=told.amount, order_status="3000")
    _notify(merchant, other_amount, amount="0.01", order_status="3000")
    _notify(merchant, not_signed, amount=not_signed.amount, payment_status="3000")
    merchant.move_money()

    assert merchant.instruction_states() == {"resolved_applied": 1, "in_doubt": 2}


def test_a_later_refund_that_skips_a_number_brings_a_person(merchant):
    """The gateway reported -02, and nobody reported -01: one that we do not know took effect."""
    paid = next(p for p in merchant.payments("captured") if p.currency == "EUR")
    merchant.drop("orders.csv", merchant.order(paid, status="refunded", action="refund"))
    merchant.fault({"operation": "refund", "kind": "fin", "when": "before", "nth": 1})
    merchant.move_money()
    merchant.fault()
    second = {"refund_reference_id": f"{paid.transaction_id}-02", "refund_reference": "by-hand"}
    _notify(merchant, paid, form_of=REFUND, **second)
    merchant.wait(hours=1)
    merchant.move_money()

    with merchant.environment() as environment:
        ((_, (doubt,)),) = status(environment)
    assert "reported refund -02 of this payment, but not -01" in doubt.next_step
    assert merchant.instruction_states() == {"needs_human": 1}


def _notify(merchant, payment, *, form_of=PAYMENT, **fields):
    ids = {"order_no": payment.order_no, "transaction_id": payment.transaction_id}
    message = {**form_of, "currency": payment.currency, **ids, **fields}
    with merchant.environment() as environment:
        receiver = Receiver(environment.settings, store=environment.store, clock=merchant.clock)
        place = {"merchant_id": "100042", "account_id": "100042001"}
        assert receiver.receive(form(message), **place).text == "success"


HALF_A_DAY = timedelta(hours=12)
NO_ANSWER = {"operation": "retrievalTrans", "kind": "wrong_signature"}
LOST_REPLY = {"operation": "capture", "kind": "fin", "when": "after"}
LATE_EFFECT = {"operation": "capture", "kind": "late", "seconds": 600}


def _ask_for_captures(merchant, count=1):
    paid = merchant.payments("authorised")[:count]
    rows = [merchant.order(one, status="paid", action="capture") for one in paid]
    merchant.drop("orders.csv", *rows)


def _doubt(merchant, effect):
    _ask_for_captures(merchant)
    merchant.fault(effect, NO_ANSWER | {"nth": 2})
    merchant.move_money()
    merchant.fault()
    assert merchant.instruction_states() == {"in_doubt": 1}


def _nights(merchant, *minutes):
    for much in minutes:
        merchant.wait(minutes=much)
        merchant.move_money()
    states: dict[str, int] = merchant.instruction_states()
    return states


def test_answers_from_before_a_doubt_are_no_evidence_whatever_their_date(merchant):
    """Dry nights under a clock 12 hours ahead; three captures then move, and nobody answers.

    The last of them come more than a quarantine after the first: only the history says before.
    """
    _ask_for_captures(merchant, 3)
    merchant.wall_error = HALF_A_DAY
    for _ in range(4):
        merchant.move_money(mode=Mode.DRY_RUN)
        merchant.wait(minutes=10)
    merchant.wall_error = timedelta()
    merchant.fault(LOST_REPLY, NO_ANSWER | {"nth": 2})
    merchant.move_money()
    merchant.fault(NO_ANSWER)
    silent = _nights(merchant, 13 * 60)
    merchant.fault()

    assert len(merchant.effects()) == 3
    assert silent == {"in_doubt": 3}
    assert _nights(merchant, 6, 6) == {"resolved_applied": 3}


def test_after_a_reboot_people_wait_again_too(merchant):
    """Nobody is let through by the clock on the wall; whoever tries starts the new boot's wait."""
    merchant.configure("approvers.toml", PEOPLE)
    _doubt(merchant, LATE_EFFECT)
    merchant.boot_id, merchant.wall_error = "second boot", timedelta(days=1)
    with merchant.environment() as environment:
        for minutes in (1, 14):
            merchant.wait(minutes=minutes)
            with pytest.raises(UsageError, match="may still be carried out until"):
                say("anna", "not_applied", environment)
        merchant.wait(minutes=2)
        assert not say("anna", "not_applied", environment)


def test_without_a_date_a_machine_that_is_new_every_night_asks_people(merchant):
    """No clock says how old the doubt was at any answer: after three days people are asked."""
    _doubt(merchant, LATE_EFFECT)
    states = []
    for night in range(4):
        merchant.boot_id = f"machine {night}"
        states.append(_nights(merchant, 24 * 60))

    assert states[1] == {"in_doubt": 1}
    assert states[-1] == {"needs_human": 1}
    with merchant.environment() as environment:
        ((_, (doubt,)),) = status(environment)
    assert "No clock says how old the doubt was" in doubt.next_step
