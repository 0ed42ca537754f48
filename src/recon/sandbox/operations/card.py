"""A card as a gateway looks at it: is it one, is it still good, what does its bank say.

A card number lives in memory while its request is answered; documented test numbers decide what
becomes of a payment.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from recon.sandbox.ground.book import Book
from recon.sandbox.ground.sandbox_terms import SandboxTerms

CARD_NUMBER = re.compile(r"[0-9]{12,19}", re.ASCII)
CARD_FIELDS = ("card", "expiration_year", "expiration_month", "security_code")
CENTURY = 2000
TEN = 10
MONTHS_OF_A_YEAR = 12

DO_3DS = "do3DS"
FRICTIONLESS = "frictionless"
CHALLENGE = "challenge"
FAILED = "failed"
EXTERNAL = "external"
AUTHENTICATED_ECI = frozenset({"05", "02", "06", "01", "5", "2", "6", "1"})
"""Electronic commerce indicators of a payment that was authenticated, or at least tried."""

_MPI_FIELDS = ("eci", "cavv", "xid", "dsTransID")


@dataclass(frozen=True, slots=True)
class Card:
    """What is kept in memory of a card, or what a saved one left in the book."""

    masked: str
    expires: str
    """`2030-05`."""
    declined: str = ""
    """`<code>:<text>` of its bank, "" when it pays."""
    threeds: str = FRICTIONLESS
    """How its bank authenticates its holder."""
    risk_score: int = 0


def read_card(fields: Mapping[str, str], *, terms: SandboxTerms, now: int) -> Card | str:
    """The card in some fields, or the short name of why it cannot pay."""
    number = fields.get("card", "").replace(" ", "")
    if CARD_NUMBER.fullmatch(number) is None or not luhn_holds(number):
        return "card_number"
    expires = expiry(fields.get("expiration_year", ""), month=fields.get("expiration_month", ""))
    if has_expired(expires, now=now):
        return "card_expired"
    return Card(
        masked(number),
        expires,
        terms.declined_cards.get(number, ""),
        terms.threeds.cards.get(number, FRICTIONLESS),
        terms.risk.cards.get(number, terms.risk.score),
    )


def luhn_holds(card: str) -> bool:
    """Whether the check digit of a card number is right."""
    digits = [int(digit) for digit in reversed(card)]
    doubled = (sum(divmod(2 * digit, TEN)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % TEN == 0


def masked(card: str) -> str:
    """A card number as a reply may show it: first six and last four digits."""
    digits = card.replace(" ", "")
    return f"{digits[:6]}***{digits[-4:]}" if CARD_NUMBER.fullmatch(digits) else ""


def expiry(year: str, *, month: str) -> str:
    """The last month of a card as `2030-05`, "" when it is none."""
    if re.fullmatch(r"(?:20)?[0-9]{2}", year) is None or re.fullmatch(r"[0-9]{1,2}", month) is None:
        return ""
    if not 1 <= int(month) <= MONTHS_OF_A_YEAR:
        return ""
    return f"{CENTURY + int(year) % 100}-{int(month):02d}"


def has_expired(expires: str, *, now: int) -> bool:
    """A card is good to the end of its month; what is no month is no good."""
    return expires < datetime.fromtimestamp(now, UTC).strftime("%Y-%m")


def saved_card(book: Book, token_id: str, *, account_id: str, now: int) -> Card | str:
    """The card behind a token of this account, or the short name of why it cannot pay."""
    rows = book.select(
        "SELECT card, expires, risk_score FROM token WHERE token_id = ? AND account_id = ?",
        (token_id, account_id),
    )
    if not rows:
        return "unknown_token"
    card, expires, risk_score = rows[0]
    if has_expired(expires, now=now):
        return "card_expired"
    return Card(card, expires, risk_score=risk_score)


def save_card(book: Book, card: Card, *, token_id: str, account_id: str) -> None:
    """Keep what pays again: never the number."""
    values = (token_id, account_id, card.masked, card.expires, card.risk_score)
    book.execute("INSERT OR REPLACE INTO token VALUES (?, ?, ?, ?, ?)", values)


def threeds_result(card: Card, *, open3d: str, mpi_info: Mapping[str, Any]) -> str:
    """How the payer was authenticated: one of the words above, "" without 3-D Secure.

    Data of an authentication made elsewhere (`mpi_info`) replaces our own.
    """
    given = {name: str(mpi_info.get(name) or "").strip() for name in _MPI_FIELDS}
    if any(given.values()):
        proven = given["eci"] in AUTHENTICATED_ECI and given["cavv"]
        return EXTERNAL if proven else FAILED
    return card.threeds if open3d == DO_3DS else ""
