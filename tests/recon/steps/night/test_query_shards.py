"""The query in shards: what a worker is handed, and that it answers what one process would."""

from typing import Any

from recon.model.words import KeyAnswer
from recon.steps.night.query import (
    asked_in_shards,
)

ACCOUNT = ("100042", "100042001")


def test_nothing_is_asked_after_the_deadline_of_the_run(merchant: Any) -> None:
    """Every key has an answer all the same: none that can be used, and why."""
    with merchant.environment() as environment:
        (found,) = asked_in_shards(
            ["A", "B"], account=ACCOUNT, environment=environment, ends_in_seconds=0.0
        )

    why = "not asked any more: the time for asking the gateway was over"
    assert found.answers.answers == dict.fromkeys("AB", (KeyAnswer.FAILED, why))
