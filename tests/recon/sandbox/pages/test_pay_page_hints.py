from typing import Any

from recon.sandbox.ground.sandbox_terms import load_terms
from recon.sandbox.pages.pay_page_hints import CARD_THAT_PAYS, grouped, hint
from tests.recon.sandbox.operations.test_checkout import CARD, hosted_page

STATES = {
    "Waits for a review": "1500",
    "The bank asks for a code": "1000",
}
"""Where a payment stands after what the page announced; after all else it has failed."""


def announced(page: str) -> dict[str, str]:
    """What the page says of each card number."""
    rows = [row.split("</td><td>") for row in page.split("<tr><td>")[1:]]
    return {card.replace(" ", ""): said.partition("</td>")[0] for card, said in rows}


def test_every_card_does_what_the_page_says_of_it(gateway: Any) -> None:
    """Each number on the page was tried; the one that pays pays."""
    page = gateway.http.get(hosted_page(gateway, order_no="h-0", open3d="do3DS")).text
    cards = announced(page) | {CARD_THAT_PAYS: "pays"}
    assert len(cards) >= 10
    assert grouped(CARD_THAT_PAYS) in page
    for number, (card, said) in enumerate(cards.items(), start=1):
        order = f"h-{number}"
        form = hosted_page(gateway, order_no=order, open3d="do3DS")
        gateway.http.post(form, data=CARD | {"card": card})
        expected = "2000" if said == "pays" else STATES.get(said, "6000")
        assert gateway.status(order) == expected, (card, said)


def test_without_3d_secure_no_card_is_said_to_ask_for_a_code() -> None:
    """A card that would be challenged is listed only where the payment asks for 3-D Secure."""
    terms = load_terms()
    assert "asks for a code" not in hint("hosted", terms=terms, open3d="no3DS")
    assert "asks for a code" in hint("hosted", terms=terms, open3d="do3DS")


def test_the_challenge_names_the_code_that_is_right() -> None:
    """The code and the number of tries are those of the configuration."""
    terms = load_terms()
    said = hint("challenge", terms=terms, open3d="do3DS")
    assert f"{terms.threeds.otp} is right, and {terms.threeds.tries} wrong ones" in said
