"""Two databases with one reports folder: whichever noted its claim first goes on alone."""

import shutil
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from recon.model.errors import HistoryBrokenError
from recon.steps.ground.environment import Environment
from recon.steps.night import whole_night as night


def copied(merchant: Any) -> Any:
    """The same merchant on a copy of its database; inbox, reports and gateway are shared."""
    path = merchant.sqlite_path
    other = path.with_name("copy.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, other)
    url = f"sqlite:///{other}"
    return replace(merchant, variables={**merchant.variables, "RECON_DATABASE_URL": url}, told=[])


def night_with(merchant: Any, environment: Environment) -> None:
    """A live night in an environment of the test's own."""
    night.run(
        merchant.request,
        environment=environment,
        workbooks=merchant.workbooks(),
        progress=merchant.told.append,
    )


def test_a_night_whose_copy_sends_meanwhile_releases_its_batch_and_ends(merchant: Any) -> None:
    """A foreign link seen after the claim: nothing of the batch leaves, and a sentence says why."""
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"][:6]
    merchant.drop("orders.csv", *[merchant.order(one) for one in paid])
    merchant.night()
    other = copied(merchant)
    refunds = [merchant.order(one, status="refunded", action="refund") for one in paid]
    merchant.drop("refunds.csv", *refunds)
    played: list[str] = []

    def mark(at: str) -> None:
        if at == "before claim" and not played:
            played.append(at)
            meanwhile = threading.Thread(target=other.night)
            meanwhile.start()
            meanwhile.join()

    with merchant.environment() as environment, pytest.raises(HistoryBrokenError) as ended:
        night_with(merchant, replace(environment, crash_point=mark))

    assert len(merchant.effects()) == len(paid)
    assert merchant.instruction_states() == {"approved": len(paid)}
    assert "a copy beside the one that works" in str(ended.value)
    assert "sends nothing more" in str(ended.value)
