"""A shopper in a real browser: our client starts a payment, the browser pays, the query shows it.

Each journey runs on the page itself and in a frame of the shop, whose origin is another.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from recon.gateway_client import (
    OurAccount,
    Payment,
    ReplyOutcome,
    prepare_payment,
    read_payment_reply,
)
from tests.browser.shop import Shop, open_shop
from tests.conformance.conftest import QUICK, TODAY, Target, way_back
from tests.conformance.test_apm_contract import apm_payment
from tests.conformance.test_card_contract import card_payment
from tests.conformance.test_checkout_contract import hosted_payment
from tests.conformance.test_threeds_contract import ASKS

CARD = {
    "Card number": "4242 4242 4242 4242",
    "Month (MM)": "05",
    "Year (YYYY)": "2030",
    "Security code": "123",
}


@dataclass(frozen=True)
class Merchant:
    """A shop, the gateway it uses, and the client between them."""

    shop: Shop
    gateway: Any
    target: Target

    def outside(self, work: Callable[[], Any]) -> Any:
        """What the client says; it has a loop of its own, and the browser's holds this thread."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()

    def page_of(self, payment: Payment) -> str:
        """Where the shopper is sent for a payment that waits for them."""
        reply = self.outside(lambda: self.target.pay(payment))
        assert reply.outcome is ReplyOutcome.PENDING
        assert reply.record is not None
        return str(reply.record.issuer_url)

    def checkout(self, payment: Payment) -> str:
        """The shop's address under which it hands the gateway's own page on, byte by byte."""
        target = self.target
        asked: Any = {"account": target.account}
        prepared = prepare_payment(payment, today=TODAY, **asked)
        raw = self.outside(lambda: asyncio.run(target.transport().send(prepared)))
        reply = read_payment_reply(prepared, raw, base_url=target.base_url)
        assert (reply.outcome, reply.findings) == (ReplyOutcome.PENDING, ())
        self.shop.handed_on = raw.body
        return f"{self.shop.base_url}/checkout"

    def status(self, order_no: str) -> str:
        """What the query shows of an order."""
        (record,) = self.outside(lambda: self.target.ask(order_nos=[order_no])).found
        return str(record.payment_status)

    def truth(self) -> list[str]:
        """The operations that truly took effect."""
        assert set(self.gateway.invariants().values()) == {0}
        return [effect["operation"] for effect in self.gateway.effects()]

    def came_back(self, path: str) -> dict[str, str]:
        """The signed values with which the shopper came back to a page of the shop, once."""
        (address,) = self.shop.returned
        assert address.startswith(f"{self.shop.base_url}{path}?")
        return way_back(address, target=self.target)

    def back(self) -> dict[str, str]:
        """Where the shop wants its shopper back."""
        return {"return_url": f"{self.shop.base_url}/done?basket=7"}


@pytest.fixture
def merchant(gateway: Any, target: Target) -> Iterator[Merchant]:
    """A shop that nobody else uses."""
    with open_shop() as shop:
        yield Merchant(shop, gateway, target)


@pytest.fixture
def target(gateway: Any) -> Target:
    """The real client of the sandbox, with its key."""
    ours = OurAccount("100042", "100042001", SecretStr("sandbox"))
    return Target(gateway.base_url, ours, (), QUICK)


@pytest.fixture(params=["page", "frame"])
def opened(request: pytest.FixtureRequest, window: Any, merchant: Merchant) -> Any:
    """Opens an address in a window, by itself or in a frame of the shop."""

    def shown(address: str) -> Any:
        page = window().page
        if request.param == "page":
            page.goto(address)
            return page
        page.goto(merchant.shop.framing(address))
        return page.frame_locator('iframe[name="pay"]')

    return shown


def settled(place: Any, path: str) -> None:
    """Wait until the shopper stands on a page of the shop."""
    place.get_by_role("heading", name=f"Back: {path}").wait_for()


@pytest.mark.parametrize(
    ("button", "order_status", "truth", "after"),
    [("Pay", "1", ["authorise_apm", "capture"], "3000"), ("Cancel", "0", [], "6000")],
)
def test_a_shopper_pays_at_the_bank_or_goes_away(
    merchant: Merchant, opened: Any, button: str, order_status: str, truth: list[str], after: str
) -> None:
    """The issuer's page leads back signed, and the query shows what was done there."""
    place = opened(merchant.page_of(apm_payment(**merchant.back())))
    assert "10.00 EUR" in place.locator("body").inner_text()
    place.get_by_role("button", name=button).click()
    settled(place, "/done")
    told = merchant.came_back("/done")
    assert (told["order_status"], told["basket"]) == (order_status, "7")
    assert merchant.truth() == truth
    assert merchant.status("conformance-apm") == after


def test_a_shopper_pays_by_card_on_the_gateways_page(merchant: Merchant, opened: Any) -> None:
    """The page that the shop hands on submits itself; the card goes to the gateway alone."""
    place = opened(merchant.checkout(hosted_payment(**merchant.back())))
    for label, text in CARD.items():
        place.get_by_label(label).fill(text)
    place.get_by_role("button", name="Pay").click()
    settled(place, "/done")
    assert merchant.came_back("/done")["order_status"] == "1"
    assert merchant.truth() == ["authorise"]
    assert merchant.status("conformance-hosted") == "2000"


def test_a_mistyped_card_is_asked_for_again(merchant: Merchant, window: Any) -> None:
    """The page says what is wrong and shows no digit; with another card the payment is made."""
    place = window().page
    place.goto(merchant.checkout(hosted_payment(**merchant.back())))
    for card in ("4242 4242 4242 4243", CARD["Card number"]):
        for label, text in (CARD | {"Card number": card}).items():
            assert place.get_by_label(label).input_value() == ""
            place.get_by_label(label).fill(text)
        place.get_by_role("button", name="Pay").click()
        if card != CARD["Card number"]:
            assert "The card number is not valid" in place.get_by_role("alert").inner_text()
            assert merchant.truth() == []
    settled(place, "/done")
    assert merchant.status("conformance-hosted") == "2000"


@pytest.mark.parametrize(
    ("codes", "order_status", "truth", "after"),
    [
        (["000000", "123456"], "1", ["authorise"], "2000"),
        (["000000"] * 3, "0", [], "6000"),
    ],
    ids=["passed", "failed"],
)
def test_a_shopper_confirms_with_a_code(
    merchant: Merchant,
    opened: Any,
    codes: list[str],
    order_status: str,
    truth: list[str],
    after: str,
) -> None:
    """A wrong code may be tried again, three of them end the payment, the right one authorises."""
    payment = card_payment(card=ASKS, open3d="do3DS", **merchant.back())
    place = opened(merchant.page_of(payment))
    for tried, code in enumerate(codes, start=1):
        place.get_by_label("One-time code").fill(code)
        place.get_by_role("button", name="Confirm").click()
        if tried < len(codes):
            # Each page says another number: the one before must be gone before the form is used.
            place.get_by_role("alert").filter(has_text=f"Tries left: {3 - tried}.").wait_for()
    settled(place, "/done")
    assert merchant.came_back("/done")["order_status"] == order_status
    assert merchant.truth() == truth
    assert merchant.status("conformance-1") == after


def test_the_pages_work_without_scripts(merchant: Merchant, window: Any) -> None:
    """The one page that submits itself has a button; a narrow screen has nothing to its side."""
    page = window(scripts=False).page
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(merchant.checkout(hosted_payment(**merchant.back())))
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("Cards that do something else").click()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for label, text in CARD.items():
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Pay").click()
    settled(page, "/done")
    assert merchant.status("conformance-hosted") == "2000"
