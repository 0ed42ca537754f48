from typing import Any

import pytest

from recon.config.cluster import IN_PROCESS, ClusterSettings, InProcess, cluster_of
from recon.config.settings import load_tables
from recon.model.errors import ConfigurationError

FILES = {"ca_file": "/ca", "certificate_file": "/cert", "key_file": "/key"}


def test_as_shipped_one_process_does_everything() -> None:
    """Who configures nothing has no cluster."""
    assert cluster_of(load_tables("cluster", config_dir=None)) == ClusterSettings()
    assert not IN_PROCESS.helps


def test_one_process_does_parts_in_their_order_and_only_when_asked() -> None:
    """Each part is done when its result is wanted, so that no more than one is in memory."""
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        return item * 2

    done = InProcess(4).each(work, iter((1, 2, 3)))

    assert next(done) == 2
    assert begun == [1]
    assert [*done] == [4, 6]


@pytest.mark.parametrize("address", ["tls://dask.internal:8786", "tls://[::1]:8786"])
def test_an_address_holds_with_its_certificates(address: str) -> None:
    """A scheduler is named by TLS, host and port."""
    assert cluster_of({"address": address, **FILES}).address == address


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"worker": 4}, "worker: unknown"),
        ({"address": "tcp://dask.internal:8786", **FILES}, "address"),
        ({"address": "dask.internal", **FILES}, "address"),
        ({"address": "tls://dask.internal:8786"}, "ca_file, certificate_file and key_file"),
        ({"address": "tls://dask.internal:8786", **FILES, "key_file": None}, "needs ca_file"),
        ({"address": "local"}, "address"),
        (FILES, "are for an address"),
        ({"result_seconds": 0}, "result_seconds"),
        ({"compared_at_once": 0}, "compared_at_once"),
    ],
)
def test_a_cluster_that_would_not_hold_is_refused_by_name(
    tables: dict[str, Any], words: str
) -> None:
    """No clear text, no missing certificate, no misspelt key, no part without end."""
    with pytest.raises(ConfigurationError, match=rf"cluster\.toml.*{words}"):
        cluster_of(tables)
