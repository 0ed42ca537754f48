"""Parts on a real Dask cluster: two workers in their own processes, TLS, what may go wrong."""

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster, Security

from recon.model.errors import ClusterError, ConfigurationError, SourceUnreadableError
from recon.workers.dask_workers import DaskWorkers, connected, done_by, workers_of

MIB = 2**20
FREE = "127.0.0.1:0"
"""A port that nobody has."""

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("dask")]


@pytest.fixture(scope="module")
def workers(dask_cluster):
    with workers_of(dask_cluster, variables={}) as opened:
        assert isinstance(opened, DaskWorkers)
        yield opened


def test_parts_are_done_by_other_processes_in_their_order(workers):
    def work(item):
        return item, os.getpid()

    done = [*workers.each(work, range(12))]

    assert [item for item, _ in done] == [*range(12)]
    assert os.getpid() not in {pid for _, pid in done}


def killed_until_marked(mark):
    """Kills the first worker that it meets; who did it."""
    path = Path(mark)
    if not path.exists():
        path.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def test_workers_do_all_pieces_and_one_that_dies_changes_nothing(dask_cluster, tmp_path):
    mark = tmp_path / "killed"
    beside = dask_cluster.model_copy(update={"compared_at_once": 2})
    with workers_of(dask_cluster, variables={}) as others:
        assert not others.helps
    with workers_of(beside, variables={}) as opened:
        assert opened.helps
        done = [*opened.each(killed_until_marked, [str(mark)] * 6)]

    assert len(done) == 6
    assert {os.getpid(), int(mark.read_text())} & {*done} == set()


def test_a_scheduler_that_goes_away_ends_the_step(dask_cluster):
    started = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=FREE
    )

    def items():
        yield -1
        started.close()
        yield -2

    with (
        DaskWorkers(
            dask_cluster, connect=lambda _: Client(started, set_as_default=False)
        ) as opened,
        pytest.raises(ClusterError, match=r"does not answer; what was done before is kept"),
    ):
        list(opened.each(abs, items()))


def test_workers_that_do_not_come_are_not_waited_for_without_end(dask_cluster):
    soon = dask_cluster.model_copy(update={"connect_seconds": 0.2})
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=FREE) as started,
        DaskWorkers(soon, connect=lambda _: Client(started, set_as_default=False)) as opened,
        pytest.raises(ClusterError, match=r"no worker of tls://.* within 0\.2 s"),
    ):
        next(opened.each(abs, [1]))


def test_what_a_part_cannot_continue_from_reaches_the_night(workers):
    def work(item):
        if item == 2:
            msg = "orders.csv is not CSV"
            raise SourceUnreadableError(msg)
        return item

    done = workers.each(work, range(9))

    assert [next(done), next(done)] == [0, 1]
    with pytest.raises(SourceUnreadableError, match=r"orders\.csv is not CSV"):
        next(done)


def test_the_doctor_hears_who_is_there(workers):
    assert re.match(r"[12] workers, [12] threads, recon \d", workers.as_text())


def test_another_release_does_no_part():
    """A part of one release done by another could come to another result."""
    with pytest.raises(ConfigurationError, match=r"a worker has recon .*, the night is of recon 9"):
        done_by(abs, -1, release="9")


def test_a_scheduler_that_is_not_there_is_named(dask_cluster):
    wrong = {"address": "tls://127.0.0.1:1", "connect_seconds": 0.2}
    nobody = dask_cluster.model_copy(update=wrong)

    with (
        workers_of(nobody, variables={}) as opened,
        pytest.raises(ClusterError, match=r"tls://127\.0\.0\.1:1 .*leave `address` out"),
    ):
        next(opened.each(abs, [1]))


def test_a_stranger_is_refused(dask_cluster, tmp_path):
    security = Security.temporary()
    stranger = {"certificate_file": tmp_path / "cert", "key_file": tmp_path / "key"}
    stranger["certificate_file"].write_text(security.tls_client_cert)
    stranger["key_file"].touch(mode=0o600)
    stranger["key_file"].write_text(security.tls_client_key)
    settings = dask_cluster.model_copy(update={**stranger, "connect_seconds": 1})

    with (
        workers_of(settings, variables={}) as opened,
        pytest.raises(ClusterError, match="does not answer"),
    ):
        next(opened.each(abs, [1]))


def test_a_key_that_others_can_read_is_refused(dask_cluster, tmp_path):
    key = tmp_path / "key"
    key.write_text("key")
    key.chmod(0o644)

    with pytest.raises(ConfigurationError, match="others can read it"):
        connected(dask_cluster.model_copy(update={"key_file": key})).__enter__()


def test_without_an_address_dask_is_never_imported():
    script = (
        "import sys; from recon.config.cluster import ClusterSettings; "
        "import recon.steps.runtime.environment; "
        "from recon.workers.dask_workers import workers_of\n"
        "with workers_of(ClusterSettings(), variables={}) as workers:\n"
        "    assert [*workers.each(abs, [-1])] == [1]\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed')])"
    )

    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )

    assert told.stdout.strip() == "[]"


def pages_of_columns(columns):
    """Pages that come anew while columns of a MiB are made and let go, one after another."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(columns):
        np.ones(MIB, dtype=np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_worker_keeps_the_memory_of_one_column_for_the_next(workers):
    """Dask has each leave the process; pages are a third of a part's time then."""
    (pages,) = workers.each(pages_of_columns, [100])

    assert pages < 20 * MIB // resource.getpagesize()
