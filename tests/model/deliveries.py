"""What a merchant wants, and the files that tell it: once, once more, and under other names.

Nothing here knows how instructions are planned. An intention is what the merchant really wanted of
a payment; a telling is one row of one file about it. Another telling is never another wish.
"""

import csv
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scripted_gateway import PAYMENT

MERCHANT, ACCOUNT = "100042", "100042001"
CURRENCY = "EUR"
STATUSES = {"cancel": "cancelled", "review": "authorised"}
"""Of rows by what they ask for; all others say paid."""
ORDERS = (
    *("merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"),
    *("transaction_id", "action", "action_amount", "request_id"),
)
INSTRUCTIONS = (
    *("merchant_id", "account_id", "kind", "request_id", "order_no", "transaction_id"),
    *("currency", "amount", "review_flag"),
)


@dataclass(frozen=True, order=True)
class Intention:
    """One movement of money that a merchant wants; every payment has one account and currency."""

    kind: str
    transaction_id: str
    amount: int
    order_no: str = field(default="", compare=False)
    """Where it is not the payment's own number."""


@dataclass(frozen=True)
class Guise:
    """How a wish is told."""

    file: str = "orders"
    """Or `instructions`."""
    request_id: str = ""
    """`own` of the wish, `other`, `OWN` (as another person types it), or none."""
    same_name: bool = False
    """In a newer version of the file that told it first."""
    transaction: bool = False
    """The row of an order file names the payment."""
    spelt_out: bool = False
    """A whole amount is written, where a blank one means the same."""


FIRST = (
    Guise(request_id="own"),
    Guise(),
    Guise(request_id="own", transaction=True),
    Guise("instructions", "own"),
)
"""How a wish is told for the first time."""
AGAIN = (
    Guise(),
    Guise(request_id="own"),
    Guise(request_id="other"),
    Guise(request_id="OWN", spelt_out=True),
    Guise(request_id="own", same_name=True),
    Guise(request_id="other", same_name=True),
    Guise(transaction=True, spelt_out=True),
    Guise(request_id="other", transaction=True),
    Guise("instructions", "own"),
    Guise("instructions", "OWN"),
    Guise("instructions", "other"),
)
"""How the same wish is told once more: sent again, corrected, exported by another program."""


@dataclass
class Merchant:
    """An inbox, and the truth about what its files were to say."""

    inbox: Path
    wanted: Counter[Intention] = field(default_factory=Counter)
    purged: Counter[Intention] = field(default_factory=Counter)
    """How often two people approved an instruction of it, knowing what happened before."""
    tellings: list[tuple[Intention, str, str]] = field(default_factory=list)
    """(what is wanted, file name, request id) of the first telling of each wish."""
    files: int = 0

    def want(self, intention: Intention, *, guise: Guise = FIRST[0]) -> None:
        """A new wish, told for the first time; it may equal an earlier one."""
        self.wanted[intention] += 1
        number = len(self.tellings)
        self.tellings.append((intention, "", f"wish-{number}"))
        name = self._write(number, guise)
        self.tellings[number] = (intention, name, f"wish-{number}")

    def notify_again(self, number: int, *, guise: Guise) -> None:
        if self.tellings:
            self._write(number % len(self.tellings), guise)

    def may_happen(self) -> Mapping[Intention, int]:
        """How often each intention may take effect: once, unless people let another go."""
        return {
            wish: max(1, min(count, 1 + self.purged[wish])) for wish, count in self.wanted.items()
        }

    def _write(self, number: int, guise: Guise) -> str:
        intention, first_name, own = self.tellings[number]
        self.files += 1
        name = f"{guise.file}-{self.files:04}.csv"
        if guise.same_name and first_name.startswith(guise.file):
            name = first_name
        ids = {"own": own, "OWN": own.upper(), "other": f"again-{self.files}", "": ""}
        row = _row(intention, guise=guise, request_id=ids[guise.request_id])
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)
        (self.inbox / name).write_text(text.getvalue())
        return name


def _row(wish: Intention, *, guise: Guise, request_id: str) -> dict[str, str]:
    place = (MERCHANT, ACCOUNT)
    amount = f"{wish.amount / 100:.2f}"
    if guise.file == "instructions":
        flag = "1" if wish.kind == "review" else ""
        paid = (wish.transaction_id, wish.transaction_id, CURRENCY, amount)
        return dict(zip(INSTRUCTIONS, (*place, wish.kind, request_id, *paid, flag), strict=True))
    is_blank = wish.amount == PAYMENT and not guise.spelt_out
    cells = (
        *place,
        wish.transaction_id,
        CURRENCY,
        f"{PAYMENT / 100:.2f}",
        STATUSES.get(wish.kind, "paid"),
        "2026-11-19T10:00:00Z",
        wish.transaction_id if guise.transaction else "",
        wish.kind,
        "" if is_blank else amount,
        request_id,
    )
    return dict(zip(ORDERS, cells, strict=True))
