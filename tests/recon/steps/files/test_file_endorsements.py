"""A night goes by no word about a file that the desk did not sign, and by each one once."""

from dataclasses import replace
from typing import Any

import pytest

from recon.model.words import Verdict
from recon.steps.care.verify import verify
from recon.store.nights import file_words
from tests.recon.steps.files.test_words_on_files import PLACE, strayed
from tests.recon.steps.files.test_words_on_files import _files as files_of
from tests.recon.steps.files.test_words_on_files import _ingested as ingested
from tests.recon.steps.files.test_words_on_files import _say as say_of
from tests.recon.steps.ground.test_endorsed import UNREAD

pytestmark = pytest.mark.xdist_group("a stray file")


@pytest.mark.parametrize("event", [file_words.AGAIN, file_words.DISMISSED])
def test_a_word_that_the_desk_did_not_sign_is_none(begun: Any, event: str) -> None:
    """With the night's login alone no file is read again and none is let go; verify names it."""
    merchant = begun(strayed)
    known = files_of(merchant)
    name = "orders.csv" if event == file_words.AGAIN else "notes.csv"
    file = known[name]
    with merchant.environment() as environment, environment.store.writing() as connection:
        if event == file_words.AGAIN:
            told = {"by": "Ann", "reason": "for me", "account": "/".join(PLACE)}
            file_words.say_again(connection, file, at=environment.clock(), **told)
        else:
            nothing = replace(file.source, sha256="0" * 64, rows_read=0, rows_rejected=0)
            file_words.dismiss(
                connection, file, nothing=nothing, by="Ann", reason="x", at=environment.clock()
            )
    verdict = merchant.night()
    assert verdict is Verdict.INCOMPLETE
    assert "1 files were known already" in ingested(merchant)
    with merchant.environment() as environment:
        problems = verify(environment, reading=UNREAD).problems
    assert [one for one in problems if f"file {name} counts as {event} by Ann" in one]


def test_a_true_word_is_good_for_its_version_alone(merchant: Any) -> None:
    """Said again in the history for a newer version, the same words count for nothing."""
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.night()
    say_of(merchant, "read_again", "orders.csv")
    merchant.night()
    newer = files_of(merchant)["orders.csv"]
    with merchant.environment() as environment, environment.store.writing() as connection:
        told = {"by": "Ann", "reason": "the layout was wrong", "account": "/".join(PLACE)}
        file_words.say_again(connection, newer, at=environment.clock(), **told)
    merchant.night()
    assert "1 files were known already" in ingested(merchant)
