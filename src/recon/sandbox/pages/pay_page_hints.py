"""What a person who tries the sandbox can type on its pages, and what comes of it."""

from collections.abc import Iterator
from html import escape

from recon.sandbox.ground.payment_detail import Stage
from recon.sandbox.ground.sandbox_terms import SandboxTerms
from recon.sandbox.operations.card import CHALLENGE, DO_3DS, FAILED
from recon.sandbox.pages.markup import table

CARD_THAT_PAYS = "4242424242424242"
"""Any number that is not listed and whose check digit is right does the same."""

_GROUP = 4


def hint(stage: Stage, *, terms: SandboxTerms, open3d: str) -> str:
    """A box that says that this is no bank, and how to reach each end of the payment."""
    hints = {
        "issuer": "Here the shopper would log in at the bank. Pay takes the money and leads back"
        " to the shop; Cancel leads back without it.",
        "challenge": f"The bank would have sent a code to the shopper's phone. Here"
        f" {terms.threeds.otp} is right, and {terms.threeds.tries} wrong ones end the payment.",
        "hosted": f"{grouped(CARD_THAT_PAYS)} pays, with any month to come and any security code.",
        "": "",
    }[stage]
    box = f'<p class="sandbox">Sandbox: no money moves. {escape(hints)}</p>'
    return box + (_other_cards(terms, open3d=open3d) if stage == "hosted" else "")


def grouped(card: str) -> str:
    """A card number as it is printed on a card."""
    return " ".join(card[at : at + _GROUP] for at in range(0, len(card), _GROUP))


def _other_cards(terms: SandboxTerms, *, open3d: str) -> str:
    rows = [(grouped(card), outcome) for card, outcome in _outcomes(terms, open3d=open3d)]
    listed = table(("Card number", "What happens"), rows)
    return f"<details><summary>Cards that do something else</summary>{listed}</details>"


def _outcomes(terms: SandboxTerms, *, open3d: str) -> Iterator[tuple[str, str]]:
    for card, info in terms.declined_cards.items():
        yield card, info.partition(":")[2]
    if open3d == DO_3DS:
        words = {CHALLENGE: "The bank asks for a code", FAILED: "The shopper is not authenticated"}
        yield from ((card, words[way]) for card, way in terms.threeds.cards.items() if way in words)
    for card, score in terms.risk.cards.items():
        if score >= terms.risk.reject_from:
            yield card, "Refused by the risk rules"
        elif score >= terms.risk.review_from:
            yield card, "Waits for a review"
