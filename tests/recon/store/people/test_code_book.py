"""The desk's own book of codes: one transaction at a time, in a file for its owner."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recon.model.errors import ConfigurationError
from recon.store.database.engine import Store
from recon.store.people import decision_rows
from recon.store.people.decision_rows import code_turn

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def test_a_code_is_taken_once_by_whoever_comes_first(store: Store, tmp_path: Path) -> None:
    """Twenty at once, as of two desks with one key: one of them has it."""

    def use(_: int) -> bool:
        with code_turn(tmp_path / "codes", store=store) as book:
            return decision_rows.use_code(book, "anna", time_step=7, at=NOW)

    with ThreadPoolExecutor(20) as pool:
        assert sorted(pool.map(use, range(20))) == [False] * 19 + [True]
    assert ((tmp_path / "codes").stat().st_mode & 0o777) == 0o600


def test_without_a_file_the_database_has_them(store: Store) -> None:
    for taken in (True, False):
        with code_turn(None, store=store) as connection:
            assert decision_rows.use_code(connection, "anna", time_step=7, at=NOW) is taken


def test_a_folder_that_takes_nothing_is_told(store: Store, tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigurationError, match="book of codes"),
        code_turn(tmp_path / "none" / "codes", store=store),
    ):
        pass
