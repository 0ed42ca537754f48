"""Doubts that a settlement file ends, over whole nights."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from sqlalchemy import text

from recon.model.errors import HistoryBrokenError
from recon.steps.night import whole_night
from tests.recon.steps.conftest import plain_workbooks
from tests.recon.steps.files.test_settlement_files import declare, line, place, send


def test_a_settlement_file_ends_the_doubts_that_it_decides(merchant: Any) -> None:
    """A full capture by its line, a part by our reference; a part without one goes to a person.

    What a person was asked about ends as well when the file comes late.
    """
    place(merchant).mkdir()
    declare(merchant)
    whole, named, alone = [one for one in merchant.payments("authorised") if one.currency == "EUR"][
        :3
    ]
    part = {"status": "paid", "action": "capture", "action_amount": "1.00"}
    rows = [merchant.order(one, **part) for one in (named, alone)]
    merchant.drop("orders.csv", merchant.order(whole, status="paid", action="capture"), *rows)
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    merchant.night()
    merchant.fault()
    ids = instructions(merchant)
    assert {state for _, state, _ in ids.values()} == {"in_doubt"}

    merchant.wait(hours=24)
    day = {"settled_on": "2026-11-21"}
    ours = {"gross": "1.00", "own_reference": ids[named.order_no][0]}
    send(merchant, "S1.csv", line(whole, **day), line(alone, gross="1.00", **day))
    merchant.night(date="2026-11-21")
    states = {
        order: (state, message) for order, (_, state, message) in instructions(merchant).items()
    }
    assert states[whole.order_no] == (
        "resolved_applied",
        "settlement/S1.csv: the capture settled on 2026-11-21 shows this payment's whole amount",
    )
    assert states[alone.order_no][0] == "in_doubt"

    merchant.wait(hours=24)
    merchant.night(date="2026-11-22")
    assert {instructions(merchant)[one.order_no][1] for one in (named, alone)} == {"needs_human"}
    send(merchant, "S2.csv", line(named, **ours, **day))
    merchant.night(date="2026-11-22")
    ended = instructions(merchant)
    assert ended[named.order_no][1] == "resolved_applied"
    assert ended[alone.order_no][1] == "needs_human"
    assert len(merchant.effects()) == len(ids)


def test_lines_that_the_history_did_not_bind_end_no_doubt(merchant: Any) -> None:
    """The gate closes, and what is in doubt stays so until the rows are those that were kept."""
    place(merchant).mkdir()
    declare(merchant)
    whole = next(one for one in merchant.payments("authorised") if one.currency == "EUR")
    merchant.drop("orders.csv", merchant.order(whole, status="paid", action="capture"))
    merchant.fault({"operation": "capture", "kind": "fin", "when": "after", "nth": 1})
    merchant.night()
    merchant.fault()
    merchant.wait(hours=24)
    send(merchant, "S1.csv", line(whole, settled_on="2026-11-21"))

    def forge(told: Any) -> None:
        if told.step == "query":
            merchant.as_owner("UPDATE order_facts_account SET row_count = row_count + 1")

    request = replace(merchant.request, business_date=date(2026, 11, 21))
    with merchant.environment() as environment, pytest.raises(HistoryBrokenError):
        whole_night.run(
            request, environment=environment, workbooks=plain_workbooks(), progress=forge
        )
    assert instructions(merchant)[whole.order_no][1] == "in_doubt"

    merchant.as_owner("UPDATE order_facts_account SET row_count = row_count - 1")
    merchant.night(date="2026-11-21")
    assert instructions(merchant)[whole.order_no][1] == "resolved_applied"


def instructions(merchant: Any) -> dict[str, tuple[str, str, str]]:
    """Order number -> id, state and last message of each instruction."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        query = text("SELECT order_no, instruction_id, state, message FROM instruction")
        return {row[0]: (row[1], row[2], row[3]) for row in connection.execute(query)}
