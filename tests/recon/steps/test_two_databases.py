"""Two databases with one reports folder: whichever noted its claim first goes on alone."""

import shutil
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from recon.model.errors import HistoryBrokenError
from recon.steps.ground.environment import Environment
from recon.steps.night import whole_night as night
from recon.store.database.history import Head
from recon.store.database.outside_heads import HeadFile
from tests.recon.store.database.test_history import newest_note


def copied(merchant: Any) -> Any:
    """The same merchant on a copy of its database; inbox, reports and gateway are shared."""
    path = merchant.sqlite_path
    other = path.with_name("copy.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, other)
    url = f"sqlite:///{other}"
    variables = {**merchant.variables, "RECON_DATABASE_URL": url}
    return replace(merchant, variables=variables, told=[], chance="copy")


def night_with(merchant: Any, environment: Environment) -> None:
    """A live night in an environment of the test's own."""
    night.run(
        merchant.request,
        environment=environment,
        workbooks=merchant.workbooks(),
        progress=merchant.told.append,
    )


def refunded(merchant: Any) -> tuple[Any, list[Any]]:
    """A copy of the merchant's database, and six refunds that wait in the shared inbox."""
    paid = [each for each in merchant.payments("captured") if each.currency == "EUR"][:6]
    merchant.drop("orders.csv", *[merchant.order(each) for each in paid])
    merchant.night()
    other = copied(merchant)
    refunds = [merchant.order(each, status="refunded", action="refund") for each in paid]
    merchant.drop("refunds.csv", *refunds)
    return other, paid


def test_a_copy_sends_nothing_once_a_night_has_sealed_what_it_read(merchant: Any) -> None:
    """The seal is noted beside the databases before the first claim: the copy sees it and stops."""
    other, paid = refunded(merchant)
    played: list[str] = []

    def crash_point(at: str) -> None:
        if at == "before claim" and not played:
            played.append(at)
            meanwhile = threading.Thread(target=other.night)
            meanwhile.start()
            meanwhile.join()

    with merchant.environment() as environment:
        night_with(merchant, replace(environment, crash_point=crash_point))

    assert len(merchant.effects()) == len(paid)
    assert merchant.instruction_states() == {"confirmed": len(paid)}
    sentences = " ".join(summary.sentence for summary in other.told)
    assert "a copy beside the one that works" in sentences
    assert "0 sent in 0 batches" in sentences


def test_a_night_that_sees_a_foreign_link_after_its_claim_releases_the_batch(merchant: Any) -> None:
    """Nothing of the batch leaves, nothing more is sent, and a sentence says why."""
    _, paid = refunded(merchant)
    played: list[str] = []

    def crash_point(at: str) -> None:
        if at == "before claim" and not played:
            played.append(at)
            side = HeadFile(merchant.folder / "reports")
            known = newest_note(side)
            assert known is not None
            foreign = Head(known.head.sequence + 9, "f" * 64)
            side.note(lambda: foreign, of="run of a copy", at=datetime.now(UTC))

    with merchant.environment() as environment, pytest.raises(HistoryBrokenError) as ended:
        night_with(merchant, replace(environment, crash_point=crash_point))

    assert played
    assert merchant.effects() == []
    assert merchant.instruction_states() == {"approved": len(paid)}
    assert "a copy beside the one that works" in str(ended.value)
    assert "sends nothing more" in str(ended.value)
