"""Settlement lines of an earlier version's table, as files of facts have them after the upgrade."""

import sqlite3
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from recon.model.errors import ArchiveBrokenError, ArchiveError, StoreError
from recon.steps.care import carried_results, carried_settlement
from recon.steps.ground.night_folder import storages_of
from recon.store.database import carried_lines, history
from recon.store.database.migrate import newest_revision, upgrade
from recon.store.nights import facts_rows, settlement_rows
from recon.store.nights.night_lines import AskedFor, NightLines
from recon.store.nights.settled_lines import line_problems
from tests.recon.steps.care.test_carried_order_rows import (
    ACCOUNTS,
    _asked,
    _carry,
    _killed_upgrade,
    _path,
    _run,
)
from tests.recon.steps.care.test_carried_results import _opened, earlier

__all__ = ["earlier"]

_CELLS = (
    *("merchant_id", "account_id", "batch_id", "settled_on", "entry_type", "order_no"),
    *("transaction_id", "reference_no", "own_reference", "currency", "gross", "fee", "net", "line"),
)
LINES = [
    # file, account, batch, day, entry type, order, transaction, own reference, gross
    (201, ACCOUNTS[0], "B-1", "2026-11-19", "capture", "O-1", "T-1", "", 100),
    (201, ACCOUNTS[0], "B-1", "2026-11-19", "capture", "O-1", "T-1", "", 100),
    (201, ACCOUNTS[1], "B-1", "2026-11-19", "capture", "O-2", 'T "2", é', "", 7),
    (201, ACCOUNTS[0], "B-1", "2026-11-19", "refund", "O-1", "T-1", "ours", -40),
    (201, ACCOUNTS[0], "B-1", "2026-11-19", "payout", "", "", "", 0),
    (202, ACCOUNTS[0], "B-2", "2026-11-20", "chargeback", "O-1", "T-1", "", -(2**62)),
    (202, ACCOUNTS[0], "B-2", "2026-11-21", "chargeback_reversal", "O-1", "T-1", "", 2**61),
    (203, ACCOUNTS[0], "B-2", "2026-11-21", "capture", "O-3", "T-3", "", 9),
]
VERSIONS = {201: ("S1", 1), 202: ("S2", 1), 203: ("S1", 2), 204: ("S3", 1)}
"""The third takes the place of the first; the last has no line of its own."""


@pytest.fixture
def settling(earlier: dict[str, str]) -> dict[str, str]:
    """The same, with settlement files in its tables."""
    with closing(sqlite3.connect(_path(earlier))) as connection, connection:
        for number, (name, version) in VERSIONS.items():
            connection.execute(
                """INSERT INTO order_file (file_id, merchant_id, account_id, business_date, run_id,
                name, version, sha256, size_bytes, read_at, kind) VALUES (?, '100042', ?,
                '2026-11-22', '20261122-ac71731c', ?, ?, ?, 1, '2026-11-22 03:00:00.000000',
                'settlement')""",
                (number, ACCOUNTS[0], f"settlement/{name}", version, f"{number}"),
            )
        for line, cells in enumerate(LINES, start=2):
            connection.execute(
                """INSERT INTO settlement_line (file_id, account_id, batch_id, settled_on,
                entry_type, order_no, transaction_id, own_reference, gross, merchant_id,
                reference_no, currency, fee, net, line)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '100042', 'R', 'EUR', 1, 2, ?)""",
                (*cells, line),
            )
    return earlier


def _rows(variables: dict[str, str], *, until: int) -> list[dict[str, Any]]:
    """Lines that counted when a file had been read, as the table says it."""
    cells = _asked(
        variables,
        f"""SELECT {", ".join(f"l.{name}" for name in _CELLS)}, f.name FROM settlement_line l
        JOIN order_file f USING (file_id) WHERE l.account_id = '{ACCOUNTS[0]}' AND l.file_id IN (
        SELECT max(file_id) FROM order_file WHERE kind = 'settlement' AND file_id <= {until}
        GROUP BY name) ORDER BY l.line_id""",  # noqa: S608 - ours
    )
    return [dict(zip((*_CELLS, "source"), row, strict=True)) for row in cells]


def _in_files(variables: dict[str, str], *, until: int) -> list[dict[str, Any]]:
    """The same by the files of facts."""
    with _opened(variables) as environment, environment.store.reading() as connection:
        lines = NightLines.of(
            connection,
            _run(ACCOUNTS[0]),
            since="",
            asked=AskedFor.of(),
            storages=storages_of(environment),
            until=until,
        )
        return pa.concat_tables(lines.batches(columns=(*_CELLS, "source"))).to_pylist()


def test_lines_of_the_table_become_files_that_the_history_binds(settling: dict[str, str]) -> None:
    """As of each file the same lines count; done again, nothing is added."""
    wanted = {until: _rows(settling, until=until) for until in VERSIONS}
    for _ in range(2):
        _carry(settling)

    assert [len(wanted[until]) for until in VERSIONS] == [4, 6, 3, 3]
    assert {until: _in_files(settling, until=until) for until in VERSIONS} == wanted
    with _opened(settling) as environment, environment.store.reading() as connection:
        storages = storages_of(environment)
        assert history.verify(connection)[1] == ""
        assert [*facts_rows.changed(connection)] == []
        every = facts_rows.every(connection)
        assert {201, 202, 203} <= {each.file_id for each in every}
        assert [*line_problems(connection, every, storages=storages)] == []
        taken = settlement_rows.charged_back(connection, _run(ACCOUNTS[0]))
    assert taken == {("T-1", "EUR"): 2**62 - 2**61}
    kept = "SELECT entry_type FROM settlement_line ORDER BY line_id"
    assert _asked(settling, kept) == [("payout",), ("chargeback",), ("chargeback_reversal",)]


def test_lines_without_files_are_never_given_up(
    settling: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables alone are not upgraded: the sentence names the command, the lines are there."""

    def stopped(_: str, /, **__: Any) -> bool:
        raise ArchiveError

    rows = [
        each._replace(carry=stopped) if each.name == carried_lines.SETTLED else each
        for each in carried_results.ROWS
    ]
    monkeypatch.setattr(carried_results, "ROWS", rows)
    with pytest.raises(ArchiveError):
        _carry(settling)
    monkeypatch.undo()
    lines = _asked(settling, "SELECT * FROM settlement_line")
    with pytest.raises(StoreError, match=r"lines of 3 settlement files .* `recon db upgrade`"):
        upgrade(settling["RECON_DATABASE_URL"])

    assert _asked(settling, "SELECT * FROM settlement_line") == lines
    _carry(settling)
    assert _asked(settling, "SELECT version_num FROM alembic_version") == [(newest_revision(),)]


def test_files_that_say_something_else_stop_the_upgrade(
    settling: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is read back and held against the lines before they go."""
    real = carried_settlement.settled_lines.tables_of
    monkeypatch.setattr(
        carried_settlement.settled_lines,
        "tables_of",
        lambda *a, **k: (table.slice(1) for table in real(*a, **k)),
    )
    with pytest.raises(ArchiveBrokenError, match="others in its file than in the database"):
        _carry(settling)
    monkeypatch.undo()
    assert _asked(settling, "SELECT count(*) FROM settled_sum") == [(0,)]


@pytest.mark.process
@pytest.mark.parametrize("point", ["archived the lines:1", "archived the lines:3"])
def test_an_upgrade_that_was_killed_is_done_again(settling: dict[str, str], point: str) -> None:
    """Between bytes and commit of any file nothing of the lines is lost, nor kept twice."""
    wanted = {until: _rows(settling, until=until) for until in VERSIONS}
    _killed_upgrade(settling, at=point)
    _carry(settling)

    assert {until: _in_files(settling, until=until) for until in VERSIONS} == wanted
    with _opened(settling) as environment, environment.store.reading() as connection:
        assert [*facts_rows.changed(connection)] == []
