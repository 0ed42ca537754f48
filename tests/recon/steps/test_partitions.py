"""One night on two databases, read and reconciled in one piece, in parts, and on Dask."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from recon.config.cluster import ClusterSettings, InProcess, Workers
from recon.files.kinds.spooled_file import spooled_file
from recon.model.nights import Mode
from recon.steps.compare.reconcile import reconcile
from recon.steps.ground.environment import Environment
from recon.workers.dask_workers import workers_of

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("dask")]


def digest_of(environment: Environment, *, workers: Workers) -> str:
    """What the last run comes to, reconciled again by these workers."""
    with environment.store.reading() as connection:
        query = text("SELECT run_id, result_digest FROM run ORDER BY started_at DESC")
        run_id, before = connection.execute(query).tuples().first() or ("", "")
    reconcile(run_id, environment=replace(environment, workers=workers))
    with environment.store.reading() as connection:
        query = text("SELECT result_digest FROM run WHERE run_id = :run_id")
        after = str(connection.execute(query, {"run_id": run_id}).scalar_one())
    assert len(before) == len(after) == 64
    return after


def reader(handed: list[bool], **read_by: Workers) -> Any:
    """Reads order files as the step does, by other workers; notes whether these are elsewhere."""

    def read(*given: Any, workers: Workers, **how: Any) -> Any:
        chosen = read_by.get("workers", workers)
        handed.append(chosen.elsewhere)
        return spooled_file(*given, workers=chosen, **how)

    return read


def test_partitions_databases_and_dask_change_no_digest(
    merchant: Any,
    dask_cluster: ClusterSettings,
    migrated_postgresql_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1, 2 and 4 partitions, SQLite and PostgreSQL, with Dask and without: one digest.

    The file is read by the night itself for one database, and on Dask for the other.
    """
    monkeypatch.setattr("recon.files.formats.raw_reader.PART_BYTES", 500)
    assert merchant.sqlite_path.is_file()
    orders = [merchant.order(payment) for payment in merchant.payments("captured")[:20]]
    orders[3]["amount"] = "1"
    captures = [merchant.order(p, action="capture") for p in merchant.payments("authorised")[:2]]
    merchant.drop("orders.csv", *orders, *captures)
    begins, digests, handed = merchant.now, set(), []
    for url in (merchant.variables["RECON_DATABASE_URL"], migrated_postgresql_url):
        merchant.variables["RECON_DATABASE_URL"] = url
        merchant.now = begins
        with workers_of(dask_cluster, variables={}) as elsewhere:
            # The rest of the night would need workers that know its gateway.
            read_by = {"workers": elsewhere} if url == migrated_postgresql_url else {}
            monkeypatch.setattr("recon.steps.files.ingest.order_file", reader(handed, **read_by))
            merchant.night(mode=Mode.DRY_RUN)
            with merchant.environment() as environment:
                digests |= {
                    digest_of(environment, workers=workers)
                    for workers in (InProcess(1), InProcess(2), InProcess(4), elsewhere)
                }

    assert len(digests) == 1
    assert handed == [False, True]
