"""A gateway of each profile for each worker, started when a night first wants it."""

from collections.abc import Iterator, Mapping

import pytest

from tests.scenarios.runner.gateway import PROFILES, PlayedGateway


@pytest.fixture(scope="session")
def gateways() -> Iterator[Mapping[str, PlayedGateway]]:
    """Profile -> its gateway."""
    gateways = {profile: PlayedGateway(profile) for profile in PROFILES}
    yield gateways
    for gateway in gateways.values():
        gateway.stop()
