from typing import Any

import pytest

from flows.people import month_shown
from recon.model.errors import UsageError
from recon.steps.acts import Done, SignClose, say
from tests.recon.steps.care import test_signed_closes as closes
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, Merchant

pytestmark = closes.pytestmark
ended = closes.ended
"""A month that is over."""


def heard(merchant: Merchant, *, name: str, **said: Any) -> Done:
    """What the desk replies to a name under November."""
    fields = {"month": closes.NOVEMBER.name, "merchant_id": MERCHANT, "account_id": ACCOUNT, **said}
    with merchant.environment() as environment:
        return say(SignClose(**fields), who=(name, None), place=closes.place_of(environment))


def test_the_desk_hears_both_words_under_a_month(ended: Merchant) -> None:
    """What it replies is what became of each."""
    seen = closes.digest_of(ended)
    first = heard(ended, name="dan", role="reviewer", digest=seen)
    second = heard(ended, name="anna", role="approver", digest=seen)

    assert first.ending == "Signed"
    assert first.sentence.startswith("Signed as reviewer: the approver must sign the same until ")
    closed = closes.state(ended).closed
    assert closed is not None
    assert second.ending == "CLOSED"
    assert second.sentence == f"2026-11 is CLOSED by {closed.by}; folder {closed.folder}."


def test_an_account_that_is_not_declared_is_refused(ended: Merchant) -> None:
    """Before anything is prepared."""
    with pytest.raises(UsageError, match="declares no account"):
        heard(ended, name="dan", role="reviewer", digest="0" * 64, account_id=f"{ACCOUNT}9")


def test_the_form_shows_a_month_as_the_command_does(ended: Merchant) -> None:
    """The digest that is signed, or who closed it; the workbook lies in the reports."""
    asked = {"month": closes.NOVEMBER.name, "merchant_id": "", "account_id": ""}
    with ended.environment() as environment:
        sentence, lines = month_shown(environment, asked)
    assert sentence.startswith("2026-11: READY")
    assert f"- Digest: {closes.digest_of(ended)}" in lines

    closes.close(ended)
    with ended.environment() as environment:
        sentence, lines = month_shown(environment, asked)
    assert sentence == "2026-11: CLOSED."
    assert any("closed.xlsx" in line for line in lines)
