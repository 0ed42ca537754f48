"""Every fault of a notification, seen where it arrives: one row of a table each."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from recon.sandbox.faults import NOTIFY_KINDS
from tests.recon.sandbox.merchant_site import MerchantSite, merchant_site
from tests.recon.sandbox.notify.test_courier import later, told

Seen = Callable[[MerchantSite], bool]


@pytest.fixture
def site() -> Iterator[MerchantSite]:
    """A merchant who listens."""
    with merchant_site() as listening:
        yield listening


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


def test_every_kind_of_notification_stands_in_the_table() -> None:
    """A kind without a row is not proven."""
    assert set(CASES) == NOTIFY_KINDS


@pytest.mark.parametrize("kind", sorted(CASES))
def test_a_fault_hits_the_first_of_two_notifications(gateway: Any, site: Any, kind: str) -> None:
    """The merchant hears what the table says, the sandbox names the fault, money is untouched."""
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


def test_what_is_late_comes_when_the_clock_gets_there(gateway: Any, site: Any) -> None:
    """Not a second before."""
    gateway.faults({"kind": "notify_late", "seconds": 60})
    gateway.authorise(order_no="n-1", notify_url=site.url)
    assert (later(gateway, 59), site.received) == (0, [])
    assert (later(gateway, 1), site.told("order_no")) == (1, ["n-1"])


def test_what_is_held_for_the_next_one_comes_without_it_too(gateway: Any, site: Any) -> None:
    """Where nothing follows it is only late."""
    gateway.faults({"kind": "notify_reordered", "seconds": 60})
    gateway.authorise(order_no="n-1", notify_url=site.url)
    assert (later(gateway, 60), site.told("order_no")) == (1, ["n-1"])


def test_a_forgery_is_sent_once_whatever_the_answer(gateway: Any, site: Any) -> None:
    """Only the gateway's own message is repeated."""
    site.statuses = [200, 401]
    gateway.faults({"kind": "notify_forged"})
    gateway.authorise(order_no="n-1", notify_url=site.url)
    assert [one["state"] for one in told(gateway)] == ["acknowledged", "given up"]
    assert later(gateway, 86_400) == 0


def test_what_was_cut_is_repeated_whole(gateway: Any, site: Any) -> None:
    """A merchant who refuses the half gets the whole a second later."""
    site.statuses = [400]
    gateway.faults({"kind": "notify_truncated"})
    gateway.authorise(order_no="n-1", notify_url=site.url)
    assert later(gateway, 2) == 1
    assert len(site.bodies[1]) // 2 == len(site.bodies[0])
    assert told(gateway)[0]["fields"] == site.received[1]


def test_chance_hits_the_same_notifications_again(gateway: Any, site: Any) -> None:
    """A seed replays which of twenty are lost, and rules for calls are not asked."""
    lost: list[list[str]] = []
    for _ in range(2):
        gateway.http.post("/_sandbox/reset").raise_for_status()
        gateway.faults({"kind": "notify_dropped", "probability": 0.5})
        for number in range(20):
            gateway.authorise(order_no=f"n-{number}", notify_url=site.url)
        lost.append([one["order_no"] for one in told(gateway) if one["state"] == "dropped"])
    assert lost[0] == lost[1]
    assert 3 < len(lost[0]) < 17
