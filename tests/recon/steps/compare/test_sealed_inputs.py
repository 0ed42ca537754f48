import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import sealed_step
from recon.model.errors import ArchiveBrokenError, UsageError
from recon.model.nights import FINISH, Mode
from recon.model.terms import Verdict
from recon.sandbox import SandboxOptions
from recon.steps.compare.rebuild import run_named
from recon.steps.compare.stored_sources import stored_sources
from recon.steps.night import whole_night
from recon.steps.runtime.night_folder import record_sealed, write_ledger
from tests.recon.steps.conftest import (
    ON_POSTGRESQL,
    archive_of,
    capture,
    checked,
    opened,
    plain_workbooks,
    run_folder,
)
from tests.recon.steps.night.test_sealed_settle import entries


def manifest_of_step(merchant, step):
    """Of the newest night."""
    folder = run_folder(merchant)
    storage = archive_of(merchant)
    sealed = sealed_step(storage, folder=f"{folder.relative_to(storage.shown)}/{step}")
    return sealed.manifest


def files_of(merchant, step):
    """Of a step of the newest night."""
    return {entry.name for entry in manifest_of_step(merchant, step).files}


def test_what_money_changed_stands_beside_what_was_known_before_it(merchant):
    """The instruction before the capture stays sealed; the one after it is what was compared."""
    capture(merchant)
    merchant.night()

    folder = run_folder(merchant)
    states = [
        pq.read_table(folder / name)["state"].to_pylist()
        for name in ("inputs/instructions.parquet", "compared/instructions.parquet")
    ]
    assert states == [["approved"], ["confirmed"]]
    assert entries(folder)["inputs/orders.parquet"].rows == 1


class _StoppedError(Exception):
    """The process ends after money."""


@pytest.mark.parametrize(
    ("changed", "kind", "why"),
    [
        ("rules", UsageError, "the rules changed since run .* start the whole night again"),
        ("seal", ArchiveBrokenError, "put the night's folder back"),
    ],
)
def test_a_stopped_night_is_compared_as_it_was_chosen_or_not_at_all(merchant, changed, kind, why):
    """Money was sent on what was sealed: other rules or a lost seal end it."""
    capture(merchant)
    how = {"workbooks": plain_workbooks()}

    def stop(summary):
        if summary.step == "query again":
            raise _StoppedError

    with merchant.environment() as environment, pytest.raises(_StoppedError):
        whole_night.run(merchant.request, environment=environment, progress=stop, **how)
    if changed == "rules":
        rules = merchant.folder / "config" / "rules.toml"
        rules.write_text(rules.read_text() + '\n[severity.GBP]\nlow = "5"\n')
    else:
        (run_folder(merchant) / "inputs" / "manifest.json").unlink()
    with merchant.environment() as environment, pytest.raises(kind, match=why):
        whole_night.run(
            merchant.request,
            environment=environment,
            progress=lambda _: None,
            plan=FINISH,
            **how,
        )
    assert len(merchant.effects()) == 1


def test_rows_of_orders_are_written_once(merchant):
    """They are compared as they were sealed; answers lie as they came until they are compared."""
    capture(merchant)
    merchant.night(mode=Mode.DRY_RUN)

    again = {f"{name}.parquet" for name in ("instructions", "known", "terms")}
    assert files_of(merchant, "compared") == again | {"answers.parquet", "opening.parquet"}
    assert files_of(merchant, "inputs") & files_of(merchant, "compared") == again


BOOKED = "L-{number},100042,100042001,{order_no},capture,{currency},{amount},{at}\n"
OLD = BOOKED.format(
    number=9, order_no="LONG-AGO", currency="EUR", amount="1.00", at="2019-01-05T10:00:00Z"
)


def book(merchant, *, more=""):
    """Two captures of the window in the ledger, and orders for them."""
    captured = merchant.payments("captured")[:2]
    merchant.drop("orders.csv", *(merchant.order(each) for each in captured))
    rows = (
        BOOKED.format(
            number=number,
            order_no=each.order_no,
            currency=each.currency,
            amount=each.amount,
            at=each.ordered_at,
        )
        for number, each in enumerate(captured)
    )
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        ledger.write("".join(rows) + more)


def compared_entries(merchant):
    """How many entries the newest night compared, as its folder has them."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = run_named(connection, "2026-11-20")
        kept = stored_sources(connection, run, environment=environment)
    assert kept[0].ledger is not None
    return len(kept[0].ledger)


@pytest.mark.parametrize("more", ["", OLD])
def test_books_that_are_compared_whole_lie_once_on_the_disk(more, merchant):
    """The inputs name the ledger in place of a ledger of their own, unless a part is left out.

    The proof in SQL, `recon verify` and whoever compares the night again find them there.
    """
    book(merchant, more=more)
    verdict = merchant.night()

    folder = run_folder(merchant)
    assert ("ledger" in manifest_of_step(merchant, "inputs").about.after) is not bool(more)
    assert (folder / "inputs" / "ledger.parquet").exists() is bool(more)
    assert [each.rows for each in manifest_of_step(merchant, "ledger").files] == [2 + bool(more)]
    assert compared_entries(merchant) == 2
    assert verdict is not Verdict.NOT_PROVEN
    assert checked(merchant, "2026-11-20").problems == ()


def test_books_that_were_read_anew_say_nothing_of_inputs_sealed_before(merchant):
    """A run that is started again may find other books: what was compared stays what it was."""
    book(merchant)
    merchant.night()
    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            run = run_named(connection, "2026-11-20")
        none = SCHEMAS["ledger"].columns.empty_table()
        sealed = write_ledger(run, entries=none, environment=environment)
        with environment.store.writing() as connection:
            record_sealed(connection, run, sealed=[sealed], environment=environment)

    assert compared_entries(merchant) == 2
    assert checked(merchant, "2026-11-20").problems == ()


@pytest.fixture
def on_postgresql(tmp_path, migrated_postgresql_url):
    """The same merchant on PostgreSQL."""
    folder = tmp_path / "postgresql"
    folder.mkdir()
    options = SandboxOptions(orders=300)
    with opened(folder, options=options, database_url=migrated_postgresql_url) as merchant:
        yield merchant


@pytest.mark.postgresql
@pytest.mark.skipif(ON_POSTGRESQL, reason="compares PostgreSQL with SQLite")
def test_sqlite_and_postgresql_give_folders_of_the_same_content(merchant, on_postgresql):
    """The same night on either database says the same in each file, by the digest of its rows."""
    told = []
    for each in (merchant, on_postgresql):
        capture(each)
        each.night(mode=Mode.DRY_RUN)
        beside = each.folder / "reports" / "archive"
        root = beside if beside.is_dir() else Path(each.sqlite_path).parent / "archive"
        folder = next(root.glob("nights/*/*/*/*"))
        told.append({name: entry.sha256 for name, entry in entries(folder).items()})
        shutil.rmtree(root)
    sqlite, postgresql = told

    assert len(sqlite) > 25
    assert {name for name in sqlite if sqlite[name] != postgresql[name]} == set()
