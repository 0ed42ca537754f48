from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from recon.model.words import SourceFile, SourceKind
from recon.store.database import history
from recon.store.database.engine import Store, Turn
from recon.store.nights import order_rows
from recon.store.nights.order_rows import ACTIONS, all_changed_actions, changed_actions
from recon.store.nights.runs import Run

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
SOURCE = SourceFile(SourceKind.INSTRUCTIONS, "pay.csv", "a" * 64, 1, 3, 3, 0, 0)
OTHER = "100042009"
NUMBERS = ("line", "amount", "action_amount", "expected_captured_amount", "refund_amount")


def arrive(store: Store, run: Run, *lines: int) -> None:
    place = {"merchant_id": run.merchant_id, "account_id": run.account_id}
    row = {"order_no": "A-1", "action": "refund", "currency": "EUR", "amount": 1_000}
    rows: list[dict[str, Any]] = [{**place, **row, "line": line} for line in lines]
    rows += [{**place, **row, "account_id": OTHER, "line": 9, "action_amount": 5}]
    with store.writing(turn=Turn.ORDERS) as connection:
        order_rows.save_instruction_file(
            connection, run, actions=rows[:-1], rejects=(), source=SOURCE, at=AT
        )
    with store.writing(turn=Turn.ORDERS) as connection:
        order_rows.save_instruction_file(
            connection, run, actions=rows[-1:], rejects=(), source=SOURCE, at=AT
        )


def problems(store: Store, run: Run) -> tuple[list[str], list[str]]:
    """What the account's night finds, and what `recon verify` finds of all accounts."""
    with store.reading() as connection:
        return [*changed_actions(connection, run)], [*all_changed_actions(connection)]


def change(store: Store, statement: str) -> None:
    with store.writing() as connection:
        connection.execute(text(statement))


def test_what_arrived_agrees_until_it_is_planned_and_after(store: Store, run: Run) -> None:
    """Two files of two accounts; then their rows have become instructions."""
    arrive(store, run, 2, 3)
    before = problems(store, run)
    change(store, "UPDATE order_action SET instruction_id = 'i', sealed = ''")

    assert before == ([], [])
    assert problems(store, run) == ([], [])


@pytest.mark.parametrize("column", [name for name in ACTIONS.columns if "_id" not in name])
def test_each_column_that_is_changed_is_found(store: Store, run: Run, column: str) -> None:
    """Whichever column of a waiting row says otherwise: its file is named."""
    arrive(store, run, 2, 3)
    other = "7" if column in NUMBERS else "'xyz'"
    change(store, f"UPDATE order_action SET {column} = {other}")  # noqa: S608 - of this test
    here, everywhere = problems(store, run)

    assert len(here) == 1
    assert len(everywhere) == 2
    assert "pay.csv (number" in here[0]
    assert "they do not say what arrived" in here[0]


def test_a_row_that_came_past_the_code_is_found(store: Store, run: Run) -> None:
    """A file that the history never heard of asks for nothing."""
    arrive(store, run, 2)
    change(store, "UPDATE order_action SET file_id = 3 - file_id")
    here, _ = problems(store, run)

    assert ["the history never heard of them" in one for one in here] == [True]


def test_another_accounts_night_is_not_held_by_it(store: Store, run: Run) -> None:
    """What is changed of one account closes that account's gate; `recon verify` tells all."""
    arrive(store, run, 2)
    change(store, f"UPDATE order_action SET action_amount = 6 WHERE account_id = '{OTHER}'")  # noqa: S608 - of this test
    here, everywhere = problems(store, run)

    assert here == []
    assert [f"account {run.merchant_id}/{OTHER}" in one for one in everywhere] == [True]


def test_actions_that_are_gone_are_missed(store: Store, run: Run) -> None:
    arrive(store, run, 2, 3)
    change(store, "DELETE FROM order_action WHERE line < 9")
    here, everywhere = problems(store, run)

    assert here == []
    assert ["its table has 0 of 2 rows" in one for one in everywhere] == [True]


def test_a_file_that_arrives_restricts_nothing(store: Store, run: Run) -> None:
    """A database that forgot a file reads it again: nothing is noted outside for it."""
    with store.writing(turn=Turn.ORDERS) as connection:
        row = {"merchant_id": run.merchant_id, "account_id": run.account_id, "line": 2}
        row |= {"order_no": "A-1", "action": "refund", "currency": "EUR", "amount": 1}
        order_rows.save_instruction_file(
            connection, run, actions=[row], rejects=(), source=SOURCE, at=AT
        )
        grown = history.grown(connection)

    assert grown is not None
    assert not grown.what
