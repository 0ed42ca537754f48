import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext

from recon.model.errors import StoreError
from recon.model.words import InstructionState
from recon.store.database import history
from recon.store.database.engine import Store, open_store, parse_url
from recon.store.database.migrate import MIGRATIONS, check_revision, newest_revision, upgrade
from recon.store.money.bound_rows import changed_instructions
from recon.store.nights.bound_actions import all_changed_actions
from recon.store.schema import run


def test_migrations_make_exactly_the_tables_of_the_schema(store: Store) -> None:
    """What the migrations build is what the code expects, on both databases."""
    with store.reading() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), run.metadata)

    assert difference == []


def test_upgrade_twice_changes_nothing(tmp_path: Path) -> None:
    """An upgraded database is upgraded again without an error."""
    url = f"sqlite:///{tmp_path / 'r.sqlite'}"

    assert [upgrade(url), upgrade(url)] == [newest_revision()] * 2


def test_a_database_without_tables_is_refused_with_the_command(tmp_path: Path) -> None:
    """A database that was never upgraded names the command that does it."""
    (tmp_path / "r.sqlite").touch()
    store = open_store(f"sqlite:///{tmp_path / 'r.sqlite'}")

    with pytest.raises(StoreError, match="recon db upgrade"):
        check_revision(store)
    store.close()


def test_files_and_their_rows_outlive_a_table_that_is_built_anew(tmp_path: Path) -> None:
    """A database of an earlier version keeps its rows, and its foreign keys hold afterwards."""
    path = tmp_path / "r.sqlite"
    _upgrade_to("0007", f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as earlier, earlier:
        earlier.execute(
            "INSERT INTO order_file (file_id, merchant_id, account_id, business_date, run_id, name,"
            " version, sha256, size_bytes, rows_read, rows_accepted, rows_rejected, rows_skipped,"
            " rows_unassigned, rows_new, rows_repeat, rows_superseding, read_at) VALUES"
            " (7, 'm', 'a', '2026-11-20', 'r', 'o.csv', 1, 'x', 1, 1, 0, 1, 0, 0, 0, 0, 0, '')"
        )
        earlier.execute(
            "INSERT INTO reject (file_id, run_id, kind, source, line, [column], reason, value,"
            " merchant_id, account_id, order_no)"
            " VALUES (7, 'r', 'orders', 'o.csv', 2, 'amount', '', '', '', '', '')"
        )
    upgrade(f"sqlite:///{path}")

    with closing(sqlite3.connect(path)) as now:
        now.execute("PRAGMA foreign_keys = ON")
        joined = "SELECT f.sha256, r.line FROM reject r JOIN order_file f USING (file_id)"
        assert now.execute(joined).fetchall() == [("x", 2)]
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            now.execute("UPDATE reject SET file_id = 8")


def test_rows_that_refer_to_nothing_stop_the_upgrade(tmp_path: Path) -> None:
    """A damaged database is not migrated silently: the sentence names both tables."""
    path = tmp_path / "r.sqlite"
    _upgrade_to("0007", f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as earlier, earlier:
        earlier.execute(
            "INSERT INTO reject (file_id, run_id, kind, source, line, [column], reason, value,"
            " merchant_id, account_id, order_no) VALUES (8, '', '', '', 2, '', '', '', '', '', '')"
        )

    with pytest.raises(StoreError, match="a row of reject refers to no row of order_file"):
        upgrade(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as now:
        assert now.execute("SELECT version_num FROM alembic_version").fetchall() == [("0007",)]


def test_instructions_of_an_earlier_version_are_bound_as_they_were_found(tmp_path: Path) -> None:
    """Nothing bound them before: the upgrade says so in the history, and from then on they are."""
    path = tmp_path / "r.sqlite"
    url = f"sqlite:///{path}"
    _upgrade_to("0021", url)
    with closing(sqlite3.connect(path)) as earlier, earlier:
        for state in ("approved", "confirmed"):
            earlier.execute(
                "INSERT INTO instruction (instruction_id, natural_key, merchant_id, account_id,"
                " kind, order_no, currency, amount, payment_amount, reason, state, run_id,"
                " planned_at) VALUES (?, ?, 'm', 'a', 'refund', 'O1', 'EUR', 500, 900, 'late',"
                " ?, 'r', '2026-11-20 02:00:00')",
                (state, state, state),
            )
    upgrade(url)
    with closing(sqlite3.connect(path)) as now, now:
        events = now.execute("SELECT event, data FROM history ORDER BY sequence").fetchall()
        now.execute("UPDATE instruction SET amount = 501 WHERE state = 'planned'")
    store = open_store(url)
    with store.reading() as connection:
        assert history.verify(connection)[1] == ""
        assert history.strayed_instruction(connection) == ""
        problems = [*changed_instructions(connection, states=InstructionState)]
    store.close()

    # Whoever approved it did so before the desk: it waits for people once more.
    assert [event for event, _ in events] == ["approved", "confirmed", "planned", "introduced"]
    assert all("bound as it was found at the upgrade" in data for _, data in events[:2])
    assert ["its amount is 5.01 EUR, bound was 5.00 EUR" in one for one in problems] == [True]


def test_what_waited_at_the_upgrade_is_bound_as_it_was_found(tmp_path: Path) -> None:
    """What a file asked an earlier version for, and no night planned, is planned by this one."""
    path = tmp_path / "r.sqlite"
    url = f"sqlite:///{path}"
    _upgrade_to("0024", url)
    with closing(sqlite3.connect(path)) as earlier, earlier:
        earlier.execute(
            "INSERT INTO order_file (file_id, merchant_id, account_id, business_date, run_id, name,"
            " version, sha256, size_bytes, read_at)"
            " VALUES (1, 'm', 'a', '2026-11-20', 'r', 'o.csv', 1, 'f', 9, '2026-11-20 02:00:00')"
        )
        for line, account, became in ((2, "a", ""), (3, "a", ""), (4, "b", ""), (5, "c", "i")):
            earlier.execute(
                "INSERT INTO order_action (file_id, line, merchant_id, account_id, order_no,"
                " action, currency, amount, instruction_id)"
                " VALUES (1, ?, 'm', ?, 'O1', 'refund', 'EUR', 900, ?)",
                (line, account, became),
            )
    upgrade(url)
    assert _asked_otherwise(url) == []
    with closing(sqlite3.connect(path)) as now, now:
        now.execute("UPDATE order_action SET amount = 901 WHERE line = 3")
    problems = _asked_otherwise(url)

    assert ["file o.csv (number 1) for account m/a" in one for one in problems] == [True]


def _asked_otherwise(url: str) -> list[str]:
    store = open_store(url)
    with store.reading() as connection:
        assert history.verify(connection)[1] == ""
        problems = [*all_changed_actions(connection)]
    store.close()
    return problems


def _upgrade_to(revision: str, url: str) -> None:
    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS))
    store = Store(parse_url(url))
    with store.writer.connect() as connection:
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, revision)
        connection.commit()
    store.close()


def test_a_new_database_is_its_owners_alone(tmp_path: Path) -> None:
    """Orders and amounts rest in it: nobody else on the machine reads them, whatever the umask."""
    path = tmp_path / "recon.sqlite"
    upgrade(f"sqlite:///{path}")

    assert path.stat().st_mode & 0o777 == 0o600
