import pytest

from recon.model.errors import UsageError
from recon.steps.acts import Done, ReopenMonth, say
from recon.store.people import closed_months
from tests.recon.steps.care import test_signed_closes as closes
from tests.recon.steps.conftest import Merchant

pytestmark = closes.pytestmark
ended = closes.ended
"""A month that is over."""
REASON = "the gateway sent a corrected file"


def reopened(merchant: Merchant, *, name: str, reason: str = REASON) -> Done:
    """One word, through the desk."""
    merchant_id, account_id = closes.OWN
    month = closes.NOVEMBER.name
    word = ReopenMonth(month=month, merchant_id=merchant_id, account_id=account_id, reason=reason)
    with merchant.environment() as environment:
        return say(word, who=(name, None), place=closes.place_of(environment))


def test_two_people_open_a_month_again_and_closing_it_makes_a_second_folder(
    ended: Merchant,
) -> None:
    """Between the words it is closed; then its nights may run; the first folder stays whole."""
    closes.close(ended)
    assert reopened(ended, name="dan").ending == "Noted"
    assert closes.state(ended).is_closed
    assert reopened(ended, name="anna").ending == "REOPENED"

    state = closes.state(ended)
    assert state.reopened is not None
    assert (state.is_closed, state.reopened.reason) == (False, REASON)
    assert closes.problems(ended) == ""
    word = closes.close(ended)
    assert word.closed is not None
    assert word.closed.folder.endswith("close-2")
    with closes.folder_of(ended) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["close-1", "close-2"]
        manifest = (folder / "close-2" / "manifest.json").read_text()
    assert state.closes[0].manifest in manifest
    assert closes.problems(ended) == ""


def test_an_approver_and_then_a_reviewer_reopen_it(ended: Merchant) -> None:
    """Two people who fit do in any order."""
    closes.close(ended)
    for name in ("anna", "dan"):
        reopened(ended, name=name)
    assert not closes.state(ended).is_closed


@pytest.mark.parametrize(
    ("names", "reason", "sentence"),
    [
        (["anna", "anna"], REASON, "a second person must say the same"),
        (["anna"], "why", "say why"),
    ],
)
def test_who_may_not_reopen_leaves_it_closed(
    ended: Merchant, names: list[str], reason: str, sentence: str
) -> None:
    """One person twice, no reason."""
    closes.close(ended)
    for name in names[:-1]:
        reopened(ended, name=name)

    with pytest.raises(UsageError, match=sentence):
        reopened(ended, name=names[-1], reason=reason)

    assert closes.state(ended).is_closed


def test_a_month_that_is_open_is_not_reopened(ended: Merchant) -> None:
    """Nothing is noted."""
    with pytest.raises(UsageError, match="is not closed"):
        reopened(ended, name="anna")


def test_of_two_closed_months_the_later_is_opened_first(ended: Merchant) -> None:
    """It begins with the figures of the one before it."""
    closes.close(ended)
    forge(ended, month="2026-12")
    ended.wait(hours=31 * 24)

    with pytest.raises(UsageError, match="reopen 2026-12 first"):
        reopened(ended, name="anna")


def test_a_reopening_that_the_desk_did_not_endorse_is_found(ended: Merchant) -> None:
    """Whoever writes the history past the desk opens nothing that verify believes."""
    closes.close(ended)
    closed = closes.state(ended).closes[-1]
    word = closed_months.ReopenedMonth("nobody", closed.at, REASON)
    with ended.environment() as environment, environment.store.writing() as connection:
        closed_months.note_reopened(connection, closed, word=word)

    assert "a month was reopened" in closes.problems(ended)


def forge(merchant: Merchant, *, month: str) -> None:
    """Another month that is closed."""
    from dataclasses import replace

    closed = closes.state(merchant).closes[-1]
    with merchant.environment() as environment, environment.store.writing() as connection:
        closed_months.note_closed(connection, replace(closed, month=month))
