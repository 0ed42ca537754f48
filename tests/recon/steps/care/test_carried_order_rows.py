"""Order rows of an earlier version's table, as files of facts have them after the upgrade."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recon.model.errors import ArchiveBrokenError, ArchiveError, StoreError
from recon.model.nights import Mode
from recon.steps.care import carried_order_rows, carried_results
from recon.steps.care.carried_results import upgrade_and_carry
from recon.steps.ground.night_folder import storages_of
from recon.store.database import carried_orders, history
from recon.store.database.migrate import newest_revision, upgrade
from recon.store.nights import facts_rows, quarantine_rows, stored_orders
from recon.store.nights.runs import Run
from tests.recon.steps.care.test_carried_results import NOW, _opened, earlier

__all__ = ["earlier"]

BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)
ACCOUNTS = ("100042001", "100042002")
_CELLS = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("transaction_id", "expected_captured_amount", "refund_amount", "updated_at", "line"),
)
FILES = (101, 102, 103)
"""Versions of one file of each night, in a database that lived on for a while."""
ODD = [
    # file, account, order, amount, captured, updated, superseded in
    (101, ACCOUNTS[0], "V-1", 100, None, None, 102),
    (101, ACCOUNTS[1], "V-1", 100, 7, "2026-11-01 00:00:00.000001", None),
    (101, ACCOUNTS[0], "V-2", -(2**62), None, None, None),
    (102, ACCOUNTS[0], "V-1", 200, None, "2026-11-02 00:00:00.000000", 103),
    (102, ACCOUNTS[0], "V-3", 1, 0, None, 102),
    (102, ACCOUNTS[0], "V-3", 2, 0, None, None),
    (103, ACCOUNTS[0], "V-1", 300, None, "2026-11-03 00:00:00.000000", None),
    (103, ACCOUNTS[0], "V-2", 5, None, None, None),
]


@pytest.fixture
def lived_on(earlier: dict[str, str]) -> dict[str, str]:
    """The same, with versions of orders, and rejected rows of which one was delivered."""
    with closing(sqlite3.connect(_path(earlier))) as connection, connection:
        for number in FILES:
            connection.execute(
                """INSERT INTO order_file (file_id, merchant_id, account_id, business_date, run_id,
                name, version, sha256, size_bytes, read_at, kind) VALUES (?, '100042', ?,
                '2026-11-22', '20261122-ac71731c', 'versions.csv', ?, ?, 1, ?, 'orders')""",
                (number, ACCOUNTS[0], number, f"{number}", "2026-11-22 03:00:00.000000"),
            )
        for number, account, order, amount, captured, updated, gone in ODD:
            connection.execute(
                """INSERT INTO order_row (file_id, line, merchant_id, account_id, order_no,
                currency, amount, status, ordered_at, transaction_id, expected_captured_amount,
                updated_at, superseded_in) VALUES
                (?, 9, '100042', ?, ?, 'EUR', ?, 'paid', '2026-11-20 10:00:00.123456', ?, ?, ?,
                ?)""",
                (number, account, order, amount, 'T "1", é', captured, updated, gone),
            )
        for number, (account, order) in enumerate(
            [("", "V-2"), (ACCOUNTS[0], "V-9"), (ACCOUNTS[1], "V-2")], start=901
        ):
            connection.execute(
                """INSERT INTO reject (reject_id, file_id, run_id, kind, source, line, "column",
                reason, account_id, order_no) VALUES (?, 101, 'r', 'orders', 'versions.csv', 5,
                'amount', 'is none', ?, ?)""",
                (number, account, order),
            )
    return earlier


def _path(variables: dict[str, str]) -> Path:
    return Path(variables["RECON_DATABASE_URL"].removeprefix("sqlite:///"))


def _carry(variables: dict[str, str]) -> None:
    upgrade_and_carry(variables["RECON_DATABASE_URL"], variables=variables, clock=lambda: NOW)


def _asked(variables: dict[str, str], query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(_path(variables))) as connection:
        return connection.execute(query).fetchall()


def _in_rows(variables: dict[str, str]) -> dict[tuple[str, int], list[tuple[Any, ...]]]:
    """Account and file -> what stood when it had been read, as the table said it."""
    (last,) = _asked(variables, "SELECT max(file_id) FROM order_file")[0]
    return {
        (account, until): _asked(
            variables,
            f"""SELECT {", ".join(f"r.{name}" for name in _CELLS)}, f.name FROM order_row r
            JOIN order_file f USING (file_id) WHERE r.account_id = '{account}' AND r.file_id
            <= {until} AND (r.superseded_in IS NULL OR r.superseded_in > {until})
            ORDER BY r.row_id""",  # noqa: S608 - ours
        )
        for account in ACCOUNTS
        for until in range(last + 1)
    }


def _run(account: str) -> Run:
    names = dict.fromkeys(Run.__dataclass_fields__, "")
    terms: dict[str, Any] = {**names, "mode": Mode.LIVE, "started_at": NOW, "as_of": NOW}
    return Run(**{**terms, "merchant_id": "100042", "account_id": account})


def _in_files(
    variables: dict[str, str], *, of: dict[tuple[str, int], list[tuple[Any, ...]]]
) -> dict[tuple[str, int], list[tuple[Any, ...]]]:
    """The same by the files of facts."""
    found = {}
    with _opened(variables) as environment, environment.store.reading() as connection:
        for account, until in of:
            frame = stored_orders.current_orders(
                connection,
                _run(account),
                since=BEFORE_ALL,
                until=until,
                storages=storages_of(environment),
            )
            for name in ("ordered_at", "updated_at"):
                frame[name] = frame[name].dt.strftime("%Y-%m-%d %H:%M:%S.%f")
            plain = (
                frame[name].astype(object).where(frame[name].notna(), None)
                for name in (*_CELLS, "source")
            )
            found[account, until] = [*zip(*plain, strict=True)]
    return found


def test_rows_of_the_table_become_files_that_the_history_binds(lived_on: dict[str, str]) -> None:
    """After each file that was ever read the same rows stand; done again, nothing is added."""
    wanted = _in_rows(lived_on)
    for _ in range(2):
        _carry(lived_on)

    assert [len(wanted[ACCOUNTS[0], number]) for number in (100, *FILES)] == [4, 6, 7, 8]
    assert _in_files(lived_on, of=wanted) == wanted
    with _opened(lived_on) as environment, environment.store.reading() as connection:
        assert history.verify(connection)[1] == ""
        assert [*facts_rows.changed(connection)] == []
        assert [each.gone_to for each in facts_rows.of_files(connection, FILES)] == [0, 101, 102]
    assert _asked(lived_on, "SELECT name FROM sqlite_master WHERE name LIKE '%order_row%'") == []


def test_what_rows_delivered_stays_delivered(lived_on: dict[str, str]) -> None:
    """A rejected row whose order came later stands for it no more, now and as of that file."""
    _carry(lived_on)
    with _opened(lived_on) as environment, environment.store.reading() as connection:
        run = _run(ACCOUNTS[0])
        ends = {until: {"last_file": until, "last_end": 0} for until in (102, 103)}
        standing = [
            {row.reject_id for row in quarantine_rows.outstanding(connection, run, **terms)}
            for terms in ({}, *ends.values())
        ]

    assert [rows & {901, 902, 903} for rows in standing] == [{902}, {901, 902}, {902}]


def test_rows_without_files_are_never_given_up(
    lived_on: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables alone are not upgraded: the sentence names the command, the rows are there."""
    url = lived_on["RECON_DATABASE_URL"]
    _carry_others(lived_on, monkeypatch)
    rows = _asked(lived_on, "SELECT * FROM order_row")
    with pytest.raises(StoreError, match=r"rows of \d order files .* `recon db upgrade`"):
        upgrade(url)

    assert _asked(lived_on, "SELECT * FROM order_row") == rows
    _carry(lived_on)
    assert _asked(lived_on, "SELECT version_num FROM alembic_version") == [(newest_revision(),)]


def _carry_others(variables: dict[str, str], patch: pytest.MonkeyPatch) -> None:
    """Everything but the order rows."""

    def stopped(_: str, /, **__: Any) -> bool:
        raise ArchiveError

    rows = [
        each._replace(carry=stopped) if each.name == carried_orders.STORED else each
        for each in carried_results.ROWS
    ]
    patch.setattr(carried_results, "ROWS", rows)
    with pytest.raises(ArchiveError):
        _carry(variables)
    patch.undo()


def test_files_that_say_something_else_stop_the_upgrade(
    lived_on: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is read back and held against the rows before they go."""
    real = carried_order_rows.order_facts.rows_of
    monkeypatch.setattr(
        carried_order_rows.order_facts, "rows_of", lambda *a, **k: real(*a, **k).slice(1)
    )
    with pytest.raises(ArchiveBrokenError, match="others in its files than in the database"):
        _carry(lived_on)
    monkeypatch.undo()
    assert _asked(lived_on, "SELECT count(*) FROM order_facts") == [(0,)]


def _killed_upgrade(variables: dict[str, str], *, at: str) -> None:
    """`recon db upgrade`, killed there."""
    killed = subprocess.run(
        [
            *(sys.executable, "-c", "from recon.cli import main; raise SystemExit(main())"),
            *("db", "upgrade"),
        ],
        env=os.environ | variables | {"RECON_CRASH_AT": at},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr


@pytest.mark.process
@pytest.mark.parametrize("point", ["archived the orders:1", "archived the orders:4"])
def test_an_upgrade_that_was_killed_is_done_again(lived_on: dict[str, str], point: str) -> None:
    """Between bytes and commit of any file nothing of the rows is lost, nor kept twice."""
    wanted = _in_rows(lived_on)
    _killed_upgrade(lived_on, at=point)
    _carry(lived_on)

    assert _in_files(lived_on, of=wanted) == wanted
    with _opened(lived_on) as environment, environment.store.reading() as connection:
        assert [*facts_rows.changed(connection)] == []
