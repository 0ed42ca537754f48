"""Notifications over real HTTP: what arrives, what is repeated, and when the gateway gives up."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.recon.sandbox.merchant_site import MerchantSite, merchant_site

DAY = 86_400


@pytest.fixture
def site() -> Iterator[MerchantSite]:
    """A merchant who listens."""
    with merchant_site() as listening:
        yield listening


def told(gateway: Any) -> list[dict[str, Any]]:
    """What the sandbox says of its notifications."""
    lines = gateway.http.get("/_sandbox/notifications").text.splitlines()
    return [json.loads(line) for line in lines]


def later(gateway: Any, seconds: int) -> int:
    """Move the clock; how many attempts were made meanwhile."""
    reply = gateway.http.post("/_sandbox/clock", json={"seconds": seconds})
    return reply.json()["notification_attempts"]


def test_a_payment_is_told_once_to_the_address_of_its_request(gateway: Any, site: Any) -> None:
    """One signed form arrives, and a 2xx ends it."""
    gateway.authorise(order_no="n-1", notify_url=site.url)
    (said,) = told(gateway)
    assert said["state"] == "acknowledged"
    assert site.received == [said["fields"]]
    assert (said["fields"]["webhooks_type"], said["fields"]["order_status"]) == ("PAYMENT", "1")
    assert later(gateway, 2 * DAY) == 0


@pytest.mark.parametrize("status", [301, 404, 500])
def test_every_other_answer_is_repeated_until_it_is_acknowledged(
    gateway: Any, site: Any, status: int
) -> None:
    """No redirect is followed; the third attempt stands where the clock has it."""
    site.statuses = [status, status]
    gateway.authorise(order_no="n-1", notify_url=site.url)
    (said,) = told(gateway)
    assert (said["state"], len(said["attempts"])) == ("waiting", 1)
    assert later(gateway, 10) == 2
    (said,) = told(gateway)
    assert said["state"] == "acknowledged"
    outcomes = [tried["outcome"] for tried in said["attempts"]]
    assert outcomes == [f"HTTP {status}", f"HTTP {status}", "HTTP 200"]
    assert [tried["at"][11:19] for tried in said["attempts"]][:2] == ["22:00:00", "22:00:01"]
    assert len({bytes(body) for body in site.bodies}) == 1


def test_nobody_listening_is_given_up_after_thirty_six_hours(gateway: Any) -> None:
    """Three series of 16 repetitions after the first attempt, the last one at the very end."""
    with merchant_site() as gone:
        url = gone.url
    gateway.authorise(order_no="n-1", notify_url=url)
    (said,) = told(gateway)
    assert said["attempts"][0]["outcome"] == "no answer (ConnectError)"
    assert later(gateway, 36 * 3_600 - 1) == 47
    assert told(gateway)[0]["state"] == "waiting"
    assert later(gateway, 1) == 1
    (said,) = told(gateway)
    assert (said["state"], len(said["attempts"])) == ("given up", 49)
    assert said["attempts"][-1]["at"] == "2026-11-22T10:00:00Z"


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/told",
        "http://shop.example/told",
        "http://10.0.0.1/told",
        "http://127.0.0.1.example/told",
        "http://user@127.0.0.1/told",
        "http://127.0.0.1:99999/told",
        "ftp://127.0.0.1/told",
        "file:///etc/passwd",
    ],
)
def test_nothing_leaves_this_machine(gateway: Any, url: str) -> None:
    """Any other address is kept, shown, and never tried."""
    gateway.authorise(order_no="n-1", notify_url=url)
    (said,) = told(gateway)
    assert (said["state"], said["url"], said["attempts"]) == ("not sent", url, [])
    assert later(gateway, 2 * DAY) == 0
