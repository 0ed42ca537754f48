"""Notifications over real HTTP: what arrives, what is repeated, every fault of one."""

import json
from collections.abc import Callable

import pytest

from recon.sandbox.faults import NOTIFY_KINDS
from tests.recon.sandbox.merchant_site import MerchantSite, merchant_site

DAY = 86_400


@pytest.fixture
def site():
    """A merchant who listens."""
    with merchant_site() as listening:
        yield listening


def told(gateway):
    """What the sandbox says of its notifications."""
    lines = gateway.http.get("/_sandbox/notifications").text.splitlines()
    return [json.loads(line) for line in lines]


def later(gateway, seconds):
    """Move the clock; how many attempts were made meanwhile."""
    reply = gateway.http.post("/_sandbox/clock", json={"seconds": seconds})
    return reply.json()["notification_attempts"]


def test_a_payment_is_told_once_to_the_address_of_its_request(gateway, site):
    gateway.authorise(order_no="n-1", notify_url=site.url)
    (said,) = told(gateway)
    assert said["state"] == "acknowledged"
    assert site.received == [said["fields"]]
    assert (said["fields"]["webhooks_type"], said["fields"]["order_status"]) == ("PAYMENT", "1")
    assert later(gateway, 2 * DAY) == 0


@pytest.mark.parametrize("status", [301, 404, 500])
def test_every_other_answer_is_repeated_until_it_is_acknowledged(gateway, site, status):
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


def test_nobody_listening_is_given_up_after_thirty_six_hours(gateway):
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
def test_nothing_leaves_this_machine(gateway, url):
    gateway.authorise(order_no="n-1", notify_url=url)
    (said,) = told(gateway)
    assert (said["state"], said["url"], said["attempts"]) == ("not sent", url, [])
    assert later(gateway, 2 * DAY) == 0


Seen = Callable[[MerchantSite], bool]


CASES: dict[str, tuple[int, Seen]] = {
    "notify_dropped": (1, lambda site: site.told("order_no") == ["n-2"]),
    "notify_twice": (3, lambda site: site.received[0] == site.received[1]),
    "notify_late": (1, lambda site: site.told("order_no") == ["n-2"]),
    "notify_reordered": (2, lambda site: site.told("order_no") == ["n-2", "n-1"]),
    "notify_truncated": (2, lambda site: len(site.bodies[0]) < len(site.bodies[1]) // 2 + 20),
    "notify_forged": (
        3,
        lambda site: (
            site.told("encryption_data")[1] == "0" * 64
            and site.told("amount") == ["10.00", "110.00", "10.00"]
        ),
    ),
    "notify_contradicting": (
        3,
        lambda site: (
            site.told("amount") == ["10.00", "110.00", "10.00"]
            and len(set(site.told("encryption_data"))) == 3
        ),
    ),
}
"""How many messages of two payments arrive at once, and what else holds of them."""


def test_every_kind_of_notification_stands_in_the_table():
    assert set(CASES) == NOTIFY_KINDS


@pytest.mark.parametrize("kind", sorted(CASES))
def test_a_fault_hits_the_first_of_two_notifications(gateway, site, kind):
    gateway.faults({"kind": kind, "operation": "authorise", "nth": 1})
    for order_no in ("n-1", "n-2"):
        reply = gateway.authorise(order_no=order_no, notify_url=site.url)
        assert b"<order_status>1</order_status>" in reply.content
    count, holds = CASES[kind]
    said = told(gateway)
    assert len(site.received) == count
    assert holds(site)
    assert [one["order_no"] for one in said if one["fault"] == kind].count("n-1") >= 1
    assert not any(one["fault"] for one in said if one["order_no"] == "n-2")


def test_what_is_late_comes_when_the_clock_gets_there(gateway, site):
    gateway.faults({"kind": "notify_late", "seconds": 60})
    gateway.authorise(order_no="n-1", notify_url=site.url)
    assert (later(gateway, 59), site.received) == (0, [])
    assert (later(gateway, 1), site.told("order_no")) == (1, ["n-1"])
