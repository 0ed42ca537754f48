"""A merchant's books over many days: what took effect, by a clerk who errs and puts it right.

Entries come late, are reversed and booked again, carry another amount until somebody sees it, or
stand twice for a while: breaks open, end, and come back under the same or another name.
"""

import csv
import random
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

HEADER = (
    *("entry_id", "merchant_id", "account_id", "order_no", "entry_type", "currency", "amount"),
    *("booked_at", "transaction_id", "reverses_entry_id"),
)
LATE_DAYS_MAX = 4
RIGHT, LATE, REVERSED, WRONG, TWICE = "right", "late", "reversed", "wrong", "twice"
HABITS = (*(RIGHT,) * 6, LATE, REVERSED, WRONG, TWICE)
"""How the clerk treats what took effect; six in ten rightly."""


@dataclass(frozen=True, eq=False)
class Booking:
    """One entry, or the reversal of one."""

    effect: Mapping[str, str]
    amount: str
    takes_back: "Booking | None" = None


@dataclass
class Clerk:
    """Writes the ledger file once a day."""

    path: Path
    chance: random.Random
    rows: list[dict[str, str]] = field(default_factory=list)
    booked: dict[Booking, str] = field(default_factory=dict)
    """What was written, and under which number."""
    waiting: deque[tuple[int, Booking]] = field(default_factory=deque)
    """What is to be booked, and in how many days."""
    known: set[str] = field(default_factory=set)

    def book(self, effects: Iterable[Mapping[str, str]], *, now: datetime) -> None:
        """A day's work: new effects as the clerk takes them, then all that is due."""
        for effect in effects:
            key = (
                f"{effect['transaction_id']} {effect['operation']} {effect['refund_reference_id']}"
            )
            if effect["operation"] in {"capture", "refund"} and key not in self.known:
                self.known.add(key)
                self._take(effect)
        for _ in range(len(self.waiting)):
            days, one = self.waiting.popleft()
            if days:
                self.waiting.append((days - 1, one))
            else:
                self._write(one, now=now)
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=HEADER, restval="")
            writer.writeheader()
            writer.writerows(self.rows)

    def _take(self, effect: Mapping[str, str]) -> None:
        habit, amount = self.chance.choice(HABITS), effect["amount"]
        days = self.chance.randint(1, LATE_DAYS_MAX)
        right = Booking(effect, amount)
        if habit in {RIGHT, LATE}:
            self.waiting.append((days if habit == LATE else 0, right))
            return
        first = Booking(effect, f"{float(amount) + 1:.2f}" if habit == WRONG else amount)
        self.waiting.append((0, first))
        self.waiting.append((days, Booking(effect, first.amount, first)))
        again = 0 if habit == TWICE else days + self.chance.randint(0, 2)
        self.waiting.append((again, right))

    def _write(self, one: Booking, *, now: datetime) -> None:
        effect = one.effect
        self.booked[one] = f"E-{len(self.rows) + 1:05}"
        self.rows.append(
            {
                "entry_id": self.booked[one],
                "merchant_id": effect["merchant_id"],
                "account_id": effect["account_id"],
                "order_no": effect["order_no"],
                "entry_type": effect["operation"] + ("_reversal" if one.takes_back else ""),
                "currency": effect["currency"],
                "amount": one.amount,
                "booked_at": f"{now:%Y-%m-%dT%H:%M:%SZ}",
                "transaction_id": effect["transaction_id"],
                "reverses_entry_id": self.booked[one.takes_back] if one.takes_back else "",
            }
        )
