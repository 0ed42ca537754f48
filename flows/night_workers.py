"""One cluster for all steps of a flow's night, held by prefect-dask's task runner.

The steps run in the flow's own process and the sender never leaves it; only parts go to workers,
as plain functions, so that a worker needs neither Prefect nor its address.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from recon.config.cluster import LOCAL, ClusterSettings
from tasks.running import keeping_workers


@contextmanager
def night_workers() -> Iterator[None]:
    """Until the end of the block all environments of this process share the configured workers."""
    from recon.config.settings import load_cluster

    cluster = load_cluster(os.environ)
    if not cluster.address:
        yield
        return
    from recon.workers.dask_workers import DaskWorkers

    with (
        DaskWorkers(cluster, connect=partial(_connected, cluster)) as workers,
        keeping_workers(workers),
    ):
        yield


@contextmanager
def _connected(cluster: ClusterSettings) -> Iterator[Any]:
    from recon.workers.dask_workers import NO_PAGES, client_options, imported, local_options

    distributed = imported()
    import dask
    from prefect_dask.task_runners import DaskTaskRunner

    where: dict[str, Any] = {"address": cluster.address}
    if cluster.address == LOCAL:
        options = local_options(cluster, variables=os.environ)
        where = {"cluster_class": distributed.LocalCluster, "cluster_kwargs": options}
    with DaskTaskRunner(**where, client_kwargs=client_options(cluster)) as runner:
        with dask.config.set(NO_PAGES):
            client = runner.client
        yield client
