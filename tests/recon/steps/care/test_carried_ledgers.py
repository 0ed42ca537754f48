"""Books of an earlier version's rows, as the nights' folders have them after the upgrade."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recon.matching.frames.sources import LEDGER_COLUMNS
from recon.model.errors import StoreError
from recon.steps.care.carried_results import upgrade_and_carry
from recon.steps.ground.kept_books import books_of_run
from recon.store.database.carried_answers import LAST_WITH_ANSWERS
from recon.store.database.migrate import newest_revision, upgrade
from recon.store.nights import runs
from tests.recon.steps.care.test_carried_replies import SHOWN
from tests.recon.steps.care.test_carried_results import DIGESTS, NOW, _opened, earlier

__all__ = ["earlier"]


def _in_rows(variables: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """Run -> its entries without their instant, as the tables of an earlier version have them."""
    path = Path(variables["RECON_DATABASE_URL"].removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as connection:
        rows: dict[str, list[tuple[Any, ...]]] = {run_id: [] for run_id in DIGESTS}
        for run_id, *cells in connection.execute(
            f"SELECT run_id, {', '.join(NAMES)}, booked_at FROM ledger_entry"  # noqa: S608 - ours
        ):
            rows[run_id].append(tuple(cells))
    return {run_id: sorted(each, key=str) for run_id, each in rows.items()}


def _in_files(variables: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """The same of the nights' folders."""
    found = {}
    with _opened(variables) as environment, environment.store.reading() as connection:
        for run_id in DIGESTS:
            books = books_of_run(connection, runs.get(connection, run_id), environment=environment)
            assert books is not None
            entries, _ = books.extract()
            at = entries["booked_at"].dt.strftime("%Y-%m-%d %H:%M:%S.%f").tolist()
            plain = (
                entries[name].astype(object).where(entries[name].notna(), None) for name in NAMES
            )
            found[run_id] = sorted(zip(*plain, at, strict=True), key=str)
    return found


NAMES = tuple(name for name in LEDGER_COLUMNS if name != "booked_at")
INSERT = """
    INSERT INTO ledger_entry (run_id, position, entry_id, merchant_id, account_id, order_no,
        entry_type, currency, amount, booked_at, transaction_currency, transaction_amount, line)
    VALUES (?, ?, ?, '100042', ?, 'A-1', 'adjustment', 'EUR', ?, ?, ?, ?, 7)"""
_AT = "2026-11-19 10:00:00.123456"
ODD = [
    (run_id, 8 + number, name, account_id, -(2**62), _AT, *paid)
    for number, (run_id, account_id) in enumerate((run, it) for run in DIGESTS for it in ("1", "2"))
    for name, paid in [('E "1"', ("USD", 0)) if number % 2 else ("", ("", None))]
]
"""Of each run, entries of other accounts, with signs, quotes and blanks."""


def test_books_in_rows_become_files_that_the_history_binds(earlier: dict[str, str]) -> None:
    """Every cell of every entry of every night; an upgrade that is done again adds nothing."""
    path = Path(earlier["RECON_DATABASE_URL"].removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(INSERT, ODD)
    wanted = _in_rows(earlier)
    for _ in range(2):
        upgrade_and_carry(earlier["RECON_DATABASE_URL"], variables=earlier, clock=lambda: NOW)

    assert sum(map(len, wanted.values())) == 1 + len(ODD)
    assert _in_files(earlier) == wanted


def test_books_without_a_file_are_never_given_up(earlier: dict[str, str]) -> None:
    """The tables alone are not upgraded: the sentence names the command, the rows are there."""
    url, wanted = earlier["RECON_DATABASE_URL"], _in_rows(earlier)
    upgrade(url, to=LAST_WITH_ANSWERS, kept={"carried": DIGESTS})
    with pytest.raises(StoreError, match=r"the books that 3 runs read .*`recon db upgrade`"):
        upgrade(url, kept={"carried": DIGESTS, "answered": SHOWN})

    assert _in_rows(earlier) == wanted
    done = upgrade_and_carry(url, variables=earlier, clock=lambda: NOW)
    assert done[0] == newest_revision()
    assert _in_files(earlier) == wanted
