"""What the sandbox remembers of a payment beside its money: how it was asked for, what is left.

Nothing of a card but ten of its digits, and nothing of a shopper: a state file can be shown.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from recon.sandbox.ground.book import KEYS_PER_SELECT, Book

Stage = Literal["", "challenge", "issuer", "hosted"]
"""What a shopper still has to do, "" when nothing."""

PAGE_KEY_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Detail:
    """The circumstances of one payment."""

    transaction_id: str
    method: Literal["card", "apm", "hosted"]
    stage: Stage = ""
    info: str = ""
    """What was last said of it, `<code>:<text>`."""
    page_key: str = ""
    """The part of a page's address that cannot be guessed."""
    tries: int = 0
    """Wrong one-time codes so far."""
    base_url: str = ""
    """Where this gateway was reached, without the version."""
    return_url: str = ""
    cancel_url: str = ""
    notify_url: str = ""
    note: str = ""
    installments: str = ""
    installments_id: str = ""
    open3d: str = ""
    card: str = ""
    """First six and last four digits."""
    expires: str = ""
    """`2030-05`, of a card that may be saved."""
    wants_token: bool = False
    token_id: str = ""
    threeds_result: str = ""
    risk_score: int = 0
    risk_action: str = ""
    subscription: dict[str, Any] = field(default_factory=dict)
    """As asked for."""
    contract_name: str = ""
    recurring_id: str = ""
    recurring_deduction_period: str = ""
    recurring_deduction_time: str = ""

    @property
    def page_url(self) -> str:
        """Where the shopper goes on, "" when nothing is left to do."""
        return f"{self.base_url}/v1/pay/{self.page_key}" if self.stage else ""


def write_detail(book: Book, detail: Detail) -> None:
    """Remember the circumstances of a payment, or what has become of them."""
    kept = asdict(detail)
    text = json.dumps({name: value for name, value in kept.items() if value})
    book.execute(
        "INSERT OR REPLACE INTO payment_detail VALUES (?, ?, ?)",
        (detail.transaction_id, detail.page_key, text),
    )


def details_of(book: Book, transaction_ids: Sequence[str]) -> dict[str, Detail]:
    """The circumstances of payments by transaction; seeded ones have none."""
    details: dict[str, Detail] = {}
    for start in range(0, len(transaction_ids), KEYS_PER_SELECT):
        some = transaction_ids[start : start + KEYS_PER_SELECT]
        marks = ", ".join("?" * len(some))
        statement = f"SELECT detail FROM payment_detail WHERE transaction_id IN ({marks})"  # noqa: S608
        details.update(_read(book.select(statement, some)))
    return details


def detail_behind(book: Book, page_key: str) -> Detail | None:
    """The payment of a page."""
    statement = "SELECT detail FROM payment_detail WHERE page_key = ? AND page_key <> ''"
    return next((detail for _, detail in _read(book.select(statement, (page_key,)))), None)


def _read(rows: Iterable[Sequence[str]]) -> list[tuple[str, Detail]]:
    details = [Detail(**json.loads(row[0])) for row in rows]
    return [(detail.transaction_id, detail) for detail in details]


def opaque(seed: int, *, about: str, name: str) -> str:
    """A text that says nothing and is the same for the same seed: of a page, of a saved card."""
    digest = hashlib.sha256(f"{seed}\x1f{about}\x1f{name}".encode())
    return digest.hexdigest()[:PAGE_KEY_LENGTH]
