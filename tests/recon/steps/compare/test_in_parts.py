"""A night compared in parts is the night compared as a whole, byte for byte, whoever does parts."""

import os
import signal
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from recon.archive.step_folder import rows_of
from recon.matching.frames.sources import Sources, frame_of
from recon.model.errors import ArchiveError
from recon.model.nights import Mode
from recon.model.terms import Verdict
from recon.proof.night_tables import FRAMES
from recon.steps.compare import in_buckets
from recon.steps.compare.in_buckets import do_bucket, write_files
from recon.steps.compare.reconcile import reconcile
from recon.steps.files.incomplete import NO_ANSWER, missing_sources
from recon.steps.runtime.night_folder import (
    BUCKETS,
    folder_of,
    is_attempt,
    storage_of,
)
from recon.store.nights import results, runs
from recon.workers.dask_workers import workers_of
from tests.recon.files.s3_server import serving_s3
from tests.recon.steps.compare.test_selection import (
    NEW,
    opened_and_settled,
    priced,
    settled,
    with_ledger,
)
from tests.recon.steps.files.test_settlement_files import line, send
from tests.recon.steps.in_parts import ORDERS_PER_PART, compared_twice, with_orders
from tests.recon.steps.large_nights import many, sealed


@pytest.fixture
def both(monkeypatch):
    """The runs that were compared as a whole and in parts, each held against the other."""
    return compared_twice(monkeypatch)


@pytest.fixture
def in_three(monkeypatch):
    """The same of three parts, where other processes begin for them."""
    return compared_twice(monkeypatch, orders_per_part=12)


def filed(merchant):
    """Orders of one day, of which one says another amount than its payment."""
    first, *others = merchant.payments("captured")
    rows = [merchant.order(first, amount="12.00"), *(merchant.order(one) for one in others)]
    merchant.drop("orders.csv", *rows)


def with_setting(merchant, text, *, file="cluster.toml"):
    """Lines more in the merchant's configuration."""
    path = Path(merchant.variables["RECON_CONFIG_DIR"]) / file
    path.write_text((path.read_text() if path.exists() else "") + text)


def test_nights_in_parts_are_the_nights_as_a_whole(merchant, both):
    """Files, digest, totals, verdict and what is carried forward: nothing differs."""
    filed(merchant)
    assert merchant.night() is Verdict.BREAKS_OPEN
    merchant.wait(hours=24)
    merchant.drop("next.csv", merchant.order(merchant.payments("captured")[3], amount="twelve"))
    merchant.night(date="2026-11-21")

    assert len(both) == 2


@pytest.mark.parametrize("arrived", [settled, priced, opened_and_settled])
def test_nights_with_a_settlement_in_parts_are_the_nights_as_a_whole(merchant, both, arrived):
    """Lines of orders, of older batches, of no order; batches that are short; prices by the month.

    Groups of fees, reserves and payouts count what was judged in parts as so many lines.
    """
    arrived(merchant)
    reserve = {"entry_type": "reserve", "order_no": "", "transaction_id": ""}
    paid = [each for each in merchant.payments("captured") if each.currency == "EUR"][:6]
    merchant.drop("more.csv", *map(merchant.order, paid))
    with_ledger(
        merchant,
        *((f"C{at}", each.order_no, "capture", each.amount, NEW) for at, each in enumerate(paid)),
    )
    nets = (str(Decimal(each.amount) - Decimal("0.10")) for each in paid)
    lines = [
        line(each, fee="0.10", net=net, batch_id="S3", brand="visa")
        for each, net in zip(paid, nets, strict=True)
    ]
    send(merchant, "S3.csv", *lines, line(paid[0], gross="-5.00", batch_id="S3", **reserve))
    merchant.night()
    result = merchant.result()
    assert len(result.breaks)
    assert result.matched if arrived is settled else result.breaks["code"].eq("FEE_VARIANCE").any()
    merchant.wait(hours=24)
    send(merchant, "S4.csv", line(paid[1], gross="-1.00", entry_type="refund", batch_id="S4"))
    merchant.night(date="2026-11-21")

    assert len(both) == 2


def test_books_with_a_fee_of_each_payment_are_compared_whole(merchant, both):
    """Their groups are as many as payments: nothing of them can be handed on summed up."""
    settled(merchant)
    with_setting(merchant, '\n[ledger]\nfees_per = "payment"\n', file="rules.toml")
    merchant.night(mode=Mode.DRY_RUN)
    assert both == []


@pytest.mark.parametrize(
    ("answers", "is_missing"), [({"failed"}, True), ({"failed", "found"}, False)]
)
def test_whether_anybody_answered_is_asked_of_all_rows(answers, *, is_missing):
    """What is left of the parts may have no answer, or none that can be used."""
    blank = {name: frame_of((), columns=columns) for name, (_, columns) in FRAMES.items()}
    none = Sources(orders=blank["orders"], gateway=blank["answers"], ledger=None, instructions=None)
    last = replace(none, answers_before=frozenset(answers))

    assert NO_ANSWER not in missing_sources(none)
    assert (NO_ANSWER in missing_sources(last)) is is_missing


@pytest.mark.process
def test_other_processes_do_the_parts_to_the_byte(merchant, in_three):
    """Their environment has no key and no database, and nothing of the result hangs on them."""
    with_setting(merchant, "compared_at_once = 2\n")
    filed(merchant)
    merchant.night(mode=Mode.DRY_RUN)

    assert len(in_three) == 1


def killed_once(part, *, mark):
    """Ends its process over the second part, the first time; then it is done as ever."""
    path = Path(mark)
    if part.within.number == 2 and not path.exists():
        do_bucket(part)
        path.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return do_bucket(part)


@pytest.mark.process
def test_a_process_that_dies_over_a_part_changes_nothing(merchant, in_three, monkeypatch, tmp_path):
    """It had written its files already; another one does the part again, and one set counts."""
    mark = tmp_path / "killed"
    monkeypatch.setattr(in_buckets, "do_bucket", partial(killed_once, mark=str(mark)))
    with_setting(merchant, "compared_at_once = 2\n")
    filed(merchant)
    merchant.night(mode=Mode.DRY_RUN)

    assert len(in_three) == 1
    assert int(mark.read_text()) != os.getpid()


@pytest.mark.process
@pytest.mark.xdist_group("dask")
def test_workers_of_a_cluster_do_the_parts_and_one_that_dies_changes_nothing(
    merchant, dask_cluster, in_three, monkeypatch, tmp_path
):
    """They read and write the archive themselves; no row travels."""
    mark = tmp_path / "killed"
    monkeypatch.setattr(in_buckets, "do_bucket", partial(killed_once, mark=str(mark)))
    filed(merchant)
    merchant.move_money(mode=Mode.DRY_RUN)
    settings = dask_cluster.model_copy(update={"compared_at_once": 2})
    with merchant.environment() as environment, workers_of(settings, variables={}) as workers:
        with environment.store.reading() as connection:
            run_id = runs.newest(connection, count=1)[0].run_id
        reconcile(run_id, environment=replace(environment, workers=workers))

    assert in_three == [run_id]
    assert mark.exists()


@pytest.mark.process
def test_parts_of_a_night_in_an_s3_archive_are_read_and_written_there(merchant, in_three):
    """Each process asks the storage by keys of its environment, and nothing of the parts stays."""
    with serving_s3("parts-night") as server:
        with_setting(
            merchant,
            f'[archive]\npath = "s3://parts-night/archive"\nendpoint = "{server.address}"\n'
            'region = "us-east-1"\naccess_key_env = "S3_ID"\nsecret_key_env = "S3_SECRET"\n',
            file="archive.toml",
        )
        with_setting(merchant, "compared_at_once = 2\n")
        merchant.variables |= {"S3_ID": "testing", "S3_SECRET": "testing"}
        filed(merchant)
        merchant.night(mode=Mode.DRY_RUN)

    assert len(in_three) == 1


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("at", [("compared a bucket", 2), ("archived a part", 12)])
def test_a_night_that_was_killed_among_its_parts_comes_to_the_same(merchant, monkeypatch, at):
    """What parts wrote is nobody's: it goes, all parts are done again, and nothing stays."""
    filed(merchant)
    merchant.move_money(mode=Mode.DRY_RUN)
    with_orders(monkeypatch, ORDERS_PER_PART)
    passed = Counter[str]()

    def crash_point(name):
        passed[name] += 1
        if (name, passed[name]) == at:
            raise Killed

    with merchant.environment() as environment:
        with environment.store.reading() as connection:
            run = runs.newest(connection, count=1)[0]
        night, storage = folder_of(run), storage_of(run, environment=environment)
        with pytest.raises(Killed):
            reconcile(run.run_id, environment=replace(environment, crash_point=crash_point))
        assert storage.names(f"{night}/{BUCKETS}")
        reconcile(run.run_id, environment=environment)
        assert f"{night}/{BUCKETS}" not in storage.folders(night)
        with environment.store.reading() as connection:
            again = results.load_summary(connection, run.run_id)
        with_orders(monkeypatch, 250_000)
        reconcile(run.run_id, environment=environment)
        with environment.store.reading() as connection:
            assert results.load_summary(connection, run.run_id) == again


def test_two_processes_over_one_part_disturb_nobody(tmp_path, monkeypatch):
    """One was taken for dead and is not: each writes under a name of its own, the same content."""
    night = sealed(tmp_path, tables={})
    rows = [("orders", many("orders", rows=3))]
    first = write_files(night, name="00001", rows=rows_of(rows))
    assert write_files(night, name="00001", rows=rows_of(rows)) == first
    monkeypatch.setattr("platform.node", lambda: "another machine")
    second = write_files(night, name="00001", rows=rows_of(rows))

    assert first.folder != second.folder
    assert first.manifest.files == second.manifest.files
    assert is_attempt(f"{BUCKETS}/{first.folder.rpartition('/')[2]}/orders.parquet")
    (tmp_path / "night" / BUCKETS).rename(tmp_path / "elsewhere")
    (tmp_path / "night" / BUCKETS).write_text("a file where the folder should be")
    with pytest.raises(ArchiveError, match=r"a part of the comparison could not .* again: .* says"):
        write_files(night, name="00002", rows=rows_of(rows))
