"""What was planned and approved is bound: a change of the journal's table past it is found."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from recon.model.errors import GateClosedError
from recon.steps.care.verify import Reading, verify
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import identify
from recon.steps.money.approve import approve, waiting
from recon.steps.night import whole_night as night

UNREAD = Reading(lambda _: (), lambda _: "", lambda *_: ())
PEOPLE = """
[approvers.jo]
name = "Jo Ahn"
limit = { EUR = 1000000 }
[approvers.kim]
name = "Kim Bell"
limit = { EUR = 1000000 }
"""
SQL = "UPDATE instruction SET {} WHERE kind = 'refund'"
CHANGES = [
    ("amount = amount + 100", "its amount is"),
    ("kind = 'cancel'", "its kind is cancel, bound was refund"),
]
"""Each field is changed in `tests/recon/store/database/test_record.py`."""


def wait_for_two(merchant: Any) -> None:
    """A refund of 1.00 that nobody has approved."""
    merchant.refund_for_two(PEOPLE)


def yes(environment: Environment, *names: str) -> None:
    """The yes of some people to all that waits."""
    for name in names:
        person = identify(name, code=None, environment=environment)
        approve(waiting(environment).wanted.digest, person=person, environment=environment)


def approve_it(merchant: Any) -> None:
    """The same refund, approved by two people."""
    wait_for_two(merchant)
    with merchant.environment() as environment:
        yes(environment, "jo", "kim")


def change(merchant: Any, what: str) -> None:
    """Past the journal, as whoever has the database could."""
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        connection.execute(SQL.format(what))
        connection.commit()


def settled(merchant: Any) -> str:
    """Why the last night sent nothing."""
    return str(next(one for one in merchant.told[::-1] if one.step == "settle").figures["stopped"])


@pytest.mark.parametrize(("what", "said"), CHANGES, ids=[what for what, _ in CHANGES])
def test_what_was_changed_after_two_people_approved_it_is_not_sent(
    begun: Callable[[Any], Any], what: str, said: str
) -> None:
    """The gate is closed with the field's name, and `recon verify` says the same."""
    merchant = begun(approve_it)
    change(merchant, what)
    merchant.move_money()
    with merchant.environment() as environment:
        problems = verify(environment, reading=UNREAD).problems

    assert merchant.effects() == []
    assert said in settled(merchant)
    assert "changed past the journal" in settled(merchant)
    assert any(said in one for one in problems)


def test_a_change_between_the_gate_and_the_claim_ends_the_night(
    begun: Callable[[Any], Any],
) -> None:
    """The last look is in the transaction that claims: nothing left, nothing was claimed."""
    merchant = begun(approve_it)

    def mark(at: str) -> None:
        if at == "before claim":
            change(merchant, "amount = amount + 100")

    with (
        merchant.environment() as environment,
        pytest.raises(GateClosedError, match=r"its amount is 2\.00 EUR, bound was 1\.00 EUR"),
    ):
        night.run(
            merchant.request,
            environment=replace(environment, crash_point=mark),
            workbooks=merchant.workbooks(),
            progress=merchant.told.append,
        )

    assert merchant.effects() == []
    assert merchant.instruction_states() == {"approved": 1}


@pytest.mark.parametrize("said_before", [(), ("jo",)], ids=["first", "second"])
def test_nobody_approves_what_the_history_did_not_bind(
    begun: Callable[[Any], Any], said_before: tuple[str, ...]
) -> None:
    """Whoever looks at a changed amount would say yes to it: the word is refused."""
    merchant = begun(wait_for_two)
    with merchant.environment() as environment:
        yes(environment, *said_before)
        change(merchant, "amount = amount + 100")
        with pytest.raises(GateClosedError, match=r"its amount is 2\.00 EUR"):
            yes(environment, "kim")
    merchant.move_money()

    assert merchant.effects() == []
    assert merchant.instruction_states() == {"planned": 1}


ACTION_CHANGES = [
    ("UPDATE order_action SET action_amount = 900", "do not say what arrived"),
    ("DELETE FROM order_action", "its table has 0 of 2 rows"),
    (
        "INSERT INTO order_action SELECT action_id + 100, {rest} FROM order_action WHERE line = 2",
        "2 arrived, 3 wait",
    ),
]
"""Each column is changed in `tests/recon/store/nights/test_file_words.py`."""


def ask_for_two(merchant: Any) -> None:
    """Two refunds of 1.00 that a file asks for and a rule approves."""
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    asked = {"status": "partially_refunded", "refund_amount": "1.00", "action_amount": "1.00"}
    rows = [merchant.order(one, action="refund", **asked) for one in paid]
    merchant.drop("orders.csv", *rows)


def night_with(merchant: Any, statement: str) -> list[str]:
    """A night in which the database's owner does this after the files were read; its problems."""
    with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(order_action)")]

    def progress(told: Any) -> None:
        merchant.told.append(told)
        if told.step == "ingest" and statement:
            with closing(sqlite3.connect(merchant.sqlite_path)) as connection:
                connection.execute(statement.format(rest=", ".join(names[1:])))
                connection.commit()

    with merchant.environment() as environment:
        night.run(
            merchant.request,
            environment=environment,
            workbooks=merchant.workbooks(),
            progress=progress,
        )
        return [*verify(environment, reading=UNREAD).problems]


@pytest.mark.parametrize(
    ("statement", "said"), ACTION_CHANGES, ids=[what[:50] for what, _ in ACTION_CHANGES]
)
def test_what_was_changed_between_its_arrival_and_its_planning_is_not_sent(
    merchant: Any, statement: str, said: str
) -> None:
    """Rows of a file are changed, hidden, added or taken away: none moves money, it is said."""
    ask_for_two(merchant)
    problems = night_with(merchant, statement)

    assert merchant.effects() == []
    assert merchant.instruction_states() == {}
    assert any(said in one and "orders.csv (number" in one for one in problems), problems
    if "its table has" not in said:  # nothing is left that could be planned, and nothing is sent
        assert said in settled(merchant)
