"""What a night asks, and what it is told, takes the room of a column, not of texts and sets."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from recon.model.uptime import NEVER_READ
from recon.model.words import KeyAnswer
from recon.steps.ground import kept_answers, shown_answers
from recon.steps.ground.answer_rows import Moment, Replies, reply_rows
from recon.steps.ground.environment import Environment
from recon.steps.night.orders_in_question import orders_in_question
from recon.store.nights.answer_parts import AFTER, BASELINE, OWN_PHASES
from recon.store.nights.runs import Run
from tests.recon.steps.compare.test_parted_inputs import ingested
from tests.recon.steps.conftest import Merchant
from tests.recon.steps.large_nights import AT, in_groups_of, peak_bytes, peak_bytes_of_objects

FEW, MANY = 10_000, 40_000
ANSWERED_PER_FILE = 2_000
FAILED_ONE_IN = 100
OBJECTS_A_NUMBER, ARROW_A_NUMBER = 60, 130
"""Bytes. Texts in a set took 194 as objects; numbers told apart all at once take 177 of Arrow."""
ASKED_BYTES_A_KEY = 140
"""Of Arrow. Looked up all at once they took 190."""
ANSWER_BYTES_A_KEY = 60
"""Of objects and Arrow together. All answers in one table took 160."""


class Night(NamedTuple):
    """A night before it asks."""

    run: Run
    environment: Environment
    numbers: list[str]
    """Of its orders."""

    def ask(self) -> None:
        """Note what it asks about."""
        keys = orders_in_question(self.run, environment=self.environment)
        kept_answers.note_asked(self.run, phase=BASELINE, keys=keys, environment=self.environment)

    def ask_again(self, numbers: list[str]) -> None:
        """Note what it asks about once money moved."""
        kept_answers.note_asked(self.run, phase=AFTER, keys=numbers, environment=self.environment)

    def keys(self) -> Any:
        """Everything that it asked about."""
        with self.environment.store.reading() as connection:
            return kept_answers.asked_keys(
                connection, self.run, phases=OWN_PHASES, environment=self.environment
            )

    def answer(self, numbers: list[str], *, failed: int) -> None:
        """Keep answers, the first so many of which are no usable ones."""
        said = dict.fromkeys(numbers, (KeyAnswer.FOUND, ""))
        said |= dict.fromkeys(numbers[:failed], (KeyAnswer.FAILED, "why"))
        replies = Replies(BASELINE, self.run.account_id, said, (), Moment(AT, NEVER_READ, 0))
        rows = reply_rows(self.run, replies)
        kept_answers.keep(self.run, rows, environment=self.environment)

    def failures(self) -> Any:
        """What it says at the end of the query."""
        with self.environment.store.reading() as connection:
            return shown_answers.failures(
                connection, self.run, phase=BASELINE, environment=self.environment
            )


@contextmanager
def asking(merchant: Merchant, *, orders: int) -> Iterator[Night]:
    """A night of so many orders that were ingested."""
    with ingested(merchant, orders=orders) as (run, numbers, environment):
        yield Night(run, environment, numbers)


def test_four_times_the_orders_are_asked_about_in_the_room_of_their_numbers(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No text is made of an order before it is asked about, and no two columns are compared."""
    in_groups_of(5_000, patch=monkeypatch)
    peaks = []
    for orders in (FEW, MANY):
        with asking(merchant, orders=orders) as begun:
            objects = peak_bytes_of_objects(begun.ask)
            keys = {"run": begun.run, "environment": begun.environment}
            peaks.append((objects, peak_bytes(lambda keys=keys: orders_in_question(**keys))))  # type: ignore[misc]  # mypy infers no default of a lambda
    more = [many - few for few, many in zip(*peaks, strict=True)]

    assert more[0] < OBJECTS_A_NUMBER * (MANY - FEW)
    assert more[1] < ARROW_A_NUMBER * (MANY - FEW)


def test_keys_of_both_phases_are_told_apart_in_the_room_of_their_column(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked again after money moved is not looked up among all keys at once."""
    in_groups_of(5_000, patch=monkeypatch)
    peaks = []
    for orders in (FEW, MANY):
        with asking(merchant, orders=orders) as begun:
            begun.ask()
            begun.ask_again(begun.numbers[:100])
            peaks.append(peak_bytes(begun.keys))
            assert len(begun.keys()) == len({*begun.numbers, *begun.keys().to_pylist()})

    assert peaks[1] - peaks[0] < ASKED_BYTES_A_KEY * (MANY - FEW)


def test_answers_are_counted_file_by_file(merchant: Merchant) -> None:
    """Four times the files take four times the numbers of their keys, and no table of all."""
    peaks = []
    for orders in (FEW, MANY):
        with asking(merchant, orders=orders) as begun:
            begun.ask()
            for start in range(0, orders, ANSWERED_PER_FILE):
                some = begun.numbers[start : start + ANSWERED_PER_FILE]
                begun.answer(some, failed=ANSWERED_PER_FILE // FAILED_ONE_IN)
            counts, reasons = begun.failures()
            failed = orders // FAILED_ONE_IN
            assert counts == {"failed": failed, "found": orders - failed}
            assert reasons == ["why"]
            peaks.append(peak_bytes(begun.failures) + peak_bytes_of_objects(begun.failures))

    assert peaks[1] - peaks[0] < ANSWER_BYTES_A_KEY * (MANY - FEW)


def test_of_keys_that_were_answered_again_the_newest_answer_counts(merchant: Merchant) -> None:
    """A night that was killed asks some again: each is counted once, by what was told last."""
    with asking(merchant, orders=6) as begun:
        begun.ask()
        begun.answer(begun.numbers[:4], failed=2)
        begun.answer(begun.numbers[1:], failed=0)
        counts, _ = begun.failures()

    assert counts == {"failed": 1, "found": 5}
