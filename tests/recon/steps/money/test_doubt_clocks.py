"""How old a doubt is: by clocks that nobody here can set, and by the order of history."""

from datetime import timedelta
from typing import Any

import pytest

from recon.model.errors import UsageError
from recon.model.nights import Mode
from recon.steps.people.people import status
from tests.recon.steps.people.test_verdicts import PEOPLE, say

HALF_A_DAY = timedelta(hours=12)
NO_ANSWER = {"operation": "retrievalTrans", "kind": "wrong_signature"}
LOST_REPLY = {"operation": "capture", "kind": "fin", "when": "after"}
LATE_EFFECT = {"operation": "capture", "kind": "late", "seconds": 600}


def _ask_for_captures(merchant: Any, count: int = 1) -> None:
    paid = merchant.payments("authorised")[:count]
    rows = [merchant.order(one, status="paid", action="capture") for one in paid]
    merchant.drop("orders.csv", *rows)


def _doubt(merchant: Any, effect: dict[str, Any]) -> None:
    """A night whose one capture gets no reply; the gateway answers no query after it."""
    _ask_for_captures(merchant)
    merchant.fault(effect, NO_ANSWER | {"nth": 2})
    merchant.move_money()
    merchant.fault()
    assert merchant.instruction_states() == {"in_doubt": 1}


def _nights(merchant: Any, *minutes: int) -> dict[str, int]:
    """A night after each wait; how the instructions stand then."""
    for much in minutes:
        merchant.wait(minutes=much)
        merchant.move_money()
    states: dict[str, int] = merchant.instruction_states()
    return states


def _people_are_declared(merchant: Any) -> None:
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)


def test_answers_from_before_a_doubt_are_no_evidence_whatever_their_date(merchant: Any) -> None:
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


def test_after_a_reboot_people_wait_again_too(merchant: Any) -> None:
    """Nobody is let through by the clock on the wall; whoever tries starts the new boot's wait."""
    _people_are_declared(merchant)
    _doubt(merchant, LATE_EFFECT)
    merchant.boot_id, merchant.wall_error = "second boot", timedelta(days=1)
    with merchant.environment() as environment:
        for minutes in (1, 14):
            merchant.wait(minutes=minutes)
            with pytest.raises(UsageError, match="may still be carried out until"):
                say("anna", "not_applied", environment)
        merchant.wait(minutes=2)
        assert not say("anna", "not_applied", environment)


def test_without_a_date_a_machine_that_is_new_every_night_asks_people(merchant: Any) -> None:
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
