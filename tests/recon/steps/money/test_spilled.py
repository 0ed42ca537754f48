import hashlib
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace

import pytest
from sqlalchemy import event

from recon.model.errors import SpillError, StoreError, UsageError
from recon.steps.approvals.verdicts import exclude_file
from recon.steps.runtime.identity import identify
from recon.store.database import engine, history
from recon.store.database.migrate import upgrade


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_MS", 100)
    monkeypatch.setitem(engine.SQLITE_PRAGMAS, "busy_timeout", 100)


def _faulty_night(merchant, *, at, fault):
    happened: list[str] = []

    def mark(point):
        if point == at and not happened:
            happened.append(point)
            fault(environment)

    with merchant.environment() as opened:
        environment = replace(opened, crash_point=mark, pause=lambda _: None)
        with pytest.raises(StoreError):
            merchant.run(environment)
    assert happened == [at]


def _refunds(merchant):
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"]
    merchant.drop(
        "refunds.csv", *(merchant.order(one, status="refunded", action="refund") for one in paid)
    )
    return len(paid)


def _captures(merchant):
    waiting = merchant.payments("authorised")
    merchant.drop("captures.csv", *(merchant.order(one, action="capture") for one in waiting))
    return len(waiting)


def _files(merchant):
    return sorted((merchant.folder / "reports" / "spill").glob("*"))


def _full(environment):
    event.listen(
        environment.store.engine,
        "checkout",
        lambda connection, *_: connection.execute("PRAGMA max_page_count = 1"),
    )


def _full_to_the_brim(environment):
    """As `_full`, and what lay free within the database is taken, too."""
    with environment.store.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE brim (taken BLOB)")
    _full(environment)
    for size in (3_000, 300):
        with suppress(StoreError):
            while True:
                with environment.store.writing() as connection:
                    connection.exec_driver_sql("INSERT INTO brim VALUES (zeroblob(?))", (size,))


class Locker:
    def __init__(self, path):
        self.other = sqlite3.connect(path, isolation_level=None)

    def __call__(self, _):
        self.other.execute("BEGIN IMMEDIATE")

    def end(self):
        self.other.execute("ROLLBACK")


@pytest.fixture
def locked(merchant):
    """Somebody's writer holds the database until the test ends it."""
    locker = Locker(str(merchant.sqlite_path))
    with closing(locker.other):
        yield locker


@pytest.mark.parametrize("asked", [_refunds, _captures])
def test_a_disk_that_is_full_when_the_reply_comes_loses_nothing(merchant, asked):
    """The room for it was taken before; the next night, with space again, goes on."""
    assert merchant.sqlite_path.is_file()
    count = asked(merchant)
    _faulty_night(merchant, at="after send", fault=_full_to_the_brim)
    kept = _files(merchant)
    merchant.night()

    assert len(kept) == 1
    assert merchant.instruction_states() == {"confirmed": count}
    assert len(merchant.effects()) == count


@pytest.mark.parametrize("fault", ["locked", "full"])
def test_a_database_that_takes_no_claim_sends_nothing(merchant, locked, fault):
    """Before the first byte: nothing left, and the next night sends all of it once."""
    count = _refunds(merchant)
    _faulty_night(
        merchant, at="before claim", fault=locked if fault == "locked" else _full_to_the_brim
    )
    sent = len(merchant.effects())
    if fault == "locked":
        locked.end()
    merchant.move_money()

    assert sent == 0
    assert merchant.instruction_states() == {"confirmed": count}
    assert (len(merchant.effects()), _files(merchant)) == (count, [])


def test_a_file_of_another_database_stops_the_night(merchant, locked):
    _refunds(merchant)
    _faulty_night(merchant, at="after send", fault=locked)
    locked.end()
    other = f"sqlite:///{merchant.folder / 'other.sqlite'}"
    upgrade(other)
    merchant.variables["RECON_DATABASE_URL"] = other
    before = len(merchant.effects())

    with pytest.raises(SpillError, match="does not know the batch"):
        merchant.night()
    assert (len(merchant.effects()), len(_files(merchant))) == (before, 1)
    _set_aside_by_two(merchant)
    merchant.move_money()
    assert [path.suffix for path in _files(merchant)] == [".excluded"]


def _set_aside_by_two(merchant):
    """One word is not enough; the second keeps the file and tells the history."""
    people = "".join(f'[approvers.{one}]\nname = "{one} B"\n' for one in ("anna", "ben"))
    (merchant.folder / "config" / "approvers.toml").write_text(people)
    (path,) = _files(merchant)
    with merchant.environment() as environment:
        kept = []
        for name in ("anna", "ben"):
            person = identify(name, code=None, environment=environment)
            why = "that database is lost"
            kept.append(exclude_file(path, person=person, reason=why))
        with environment.store.reading() as connection:
            ids = [hashlib.sha256(kept[1].read_bytes()).hexdigest()]
            told = [
                link
                for entity in ("endorsement", "spill file")
                for link in history.links_of(connection, ids, entity=entity)
            ]

    assert kept == [None, path.with_name(f"{path.name}.excluded")]
    assert [one.event for one in told] == ["set file aside"] * 2 + ["set aside"]


def test_a_file_that_fits_is_not_set_aside(merchant, locked):
    count = _refunds(merchant)
    _faulty_night(merchant, at="after send", fault=locked)
    locked.end()
    (path,) = _files(merchant)
    (merchant.folder / "config" / "approvers.toml").write_text('[approvers.anna]\nname = "A"\n')
    elsewhere = merchant.folder / path.name
    elsewhere.write_bytes(path.read_bytes())
    with merchant.environment() as environment:
        person = identify("anna", code=None, environment=environment)
        for wrong, why in ((path, "fits this database"), (elsewhere, "no spill file")):
            with pytest.raises(UsageError, match=why):
                exclude_file(wrong, person=person, reason="in the way here")
    merchant.move_money()

    assert merchant.instruction_states() == {"confirmed": count}
