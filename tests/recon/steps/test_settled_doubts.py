"""Doubts that a settlement file ends, over whole nights."""

from dataclasses import replace
from datetime import date

import pytest
from sqlalchemy import text

from recon.model.errors import HistoryBrokenError
from recon.steps.night import whole_night
from tests.recon.steps.conftest import plain_workbooks
from tests.recon.steps.files.test_settlement_files import declare, line, place, send


def test_lines_that_the_history_did_not_bind_end_no_doubt(merchant):
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

    def forge(told):
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


def instructions(merchant):
    """Order number -> id, state and last message of each instruction."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        query = text("SELECT order_no, instruction_id, state, message FROM instruction")
        return {row[0]: (row[1], row[2], row[3]) for row in connection.execute(query)}
