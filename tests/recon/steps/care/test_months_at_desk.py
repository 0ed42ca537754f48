from typing import Any

import pytest

from recon.model.errors import UsageError
from recon.steps.care.months_at_desk import SIGN_CLOSE, acts_of_months, close_body, close_word_of
from recon.steps.care.signed_closes import MonthToSign
from recon.steps.people import at_desk
from tests.recon.steps.care import test_signed_closes as closes
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, Merchant

pytestmark = closes.pytestmark
ended = closes.ended
"""A month that is over."""


def heard(merchant: Merchant, wanted: MonthToSign, *, name: str) -> dict[str, Any]:
    """What the desk replies."""
    acts = acts_of_months(closes.drawn)
    with merchant.environment() as environment:
        return at_desk.say(
            SIGN_CLOSE,
            close_body(wanted),
            who=(name, None),
            environment=environment,
            more=acts,
        )


def test_the_desk_hears_both_words_under_a_month(ended: Merchant) -> None:
    """What it replies is what became of each, also across its socket: texts and lists alone."""
    seen = closes.digest_of(ended)
    words = [
        close_word_of(heard(ended, MonthToSign(closes.NOVEMBER, closes.OWN, role, seen), name=name))
        for role, name in (("reviewer", "dan"), ("approver", "anna"))
    ]

    assert words[0].closed is None
    assert words[1].closed == closes.state(ended).closed


def test_an_account_that_is_not_declared_is_refused(ended: Merchant) -> None:
    """Before anything is prepared."""
    wanted = MonthToSign(closes.NOVEMBER, (MERCHANT, f"{ACCOUNT}9"), "reviewer", "0" * 64)

    with pytest.raises(UsageError, match="declares no account"):
        heard(ended, wanted, name="dan")
