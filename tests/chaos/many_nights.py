"""A shop that lives for many nights: payments each day, faults in every tenth call."""

import hashlib
import random
import re
from collections import deque
from collections.abc import Iterator
from datetime import date, timedelta

from killed_processes import AGAIN, FAULTS
from shop import ACCOUNT, BUSINESS_DATE, ENDINGS, MERCHANT, PART, Shop, Wanted

FAULTY_SHARE = 0.1
PAID_A_DAY = (4, 7)
REFUNDED_SHARE = 0.5
WHOLE_EVERY = 10
"""Each so many nights is reconciled and reported too; the others only move money."""
CARD = {
    "first_name": "Ann",
    "last_name": "Lee",
    "card": "4111111111111111",
    "expiration_year": "2039",
    "expiration_month": "05",
    "security_code": "123",
    "shopper_email": "ann@example.com",
}
TRANSACTION = re.compile("<transaction_id>([0-9]+)<")
QUERY_FAULTS = (
    {"kind": "reset", "when": "after"},
    {"kind": "status", "when": "after", "status": 500},
    {"kind": "garbage", "when": "after"},
    {"kind": "lag", "seconds": 1_200},
)


def live(shop: Shop, chance: random.Random, *, nights: int) -> int:
    """So many nights and days; returns how many doubts people had to end."""
    decided = 0
    for number in days(shop, chance, nights=nights):
        shop.fault(*weather(chance))
        ended = shop.night(money_only=number % WHOLE_EVERY > 0)
        assert ended in ENDINGS, f"night {number} ended {ended}: {shop.told.read_text()}"
        decided += shop.decide()
    return decided


def days(shop: Shop, chance: random.Random, *, nights: int) -> Iterator[int]:
    """Each day's payments and wishes, some told twice; the night is the caller's."""
    paid: deque[dict[str, str]] = deque()
    captured: deque[dict[str, str]] = deque()
    for number in range(nights):
        shop.date = str(date.fromisoformat(BUSINESS_DATE) + timedelta(days=number))
        shop.drop(_asked(chance, paid, captured))
        if chance.random() < AGAIN:
            shop.tell_again()
        shop.fault()
        paid.extend(
            _pay(shop, chance, f"{number:03}-{i}") for i in range(chance.randint(*PAID_A_DAY))
        )
        yield number
        shop.wait(timedelta(days=1))


def _asked(
    chance: random.Random, paid: deque[dict[str, str]], captured: deque[dict[str, str]]
) -> list[Wanted]:
    """Captures and cancels of yesterday's payments, refunds of older ones."""
    refunds = [
        Wanted(payment, "refund", PART if chance.random() < REFUNDED_SHARE else payment["amount"])
        for payment in captured
        if chance.random() < REFUNDED_SHARE
    ]
    captured.clear()
    rows = []
    while paid:
        payment = paid.popleft()
        action = chance.choice(("capture", "capture", "cancel"))
        rows.append(Wanted(payment, action, payment["amount"]))
        if action == "capture":
            captured.append(payment)
    return rows + refunds


def _pay(shop: Shop, chance: random.Random, number: str) -> dict[str, str]:
    """A shopper pays by card."""
    payment = {
        "order_no": f"soak-{number}",
        "currency": chance.choice(("EUR", "USD", "GBP")),
        "amount": f"{chance.randint(5, 90)}.{chance.randint(0, 99):02}",
    }
    fields = {"merchant_id": MERCHANT, "account_id": ACCOUNT, **payment, **CARD}
    names = (
        *("merchant_id", "account_id", "order_no", "currency", "amount", "first_name"),
        *("last_name", "card", "expiration_year", "expiration_month", "security_code"),
        "shopper_email",
    )
    signed = "".join(fields[name] for name in names).replace(" ", "") + "sandbox"
    reply = shop.post(
        "/v1/authorise", {"encryption_data": hashlib.sha256(signed.encode()).hexdigest(), **fields}
    )
    found = TRANSACTION.search(reply)
    assert found, reply
    committed_at = f"{shop.now - timedelta(hours=4):%Y-%m-%dT%H:%M:%SZ}"
    return payment | {"transaction_id": found[1], "committed_at": committed_at}


def weather(chance: random.Random) -> list[dict[str, object]]:
    """One way to go wrong for each operation, in every tenth call."""
    return [
        {"operation": operation, "probability": FAULTY_SHARE, **chance.choice(kinds)}
        for operation, kinds in (
            ("capture", FAULTS),
            ("cancel", FAULTS),
            ("refund", FAULTS),
            ("retrievalTrans", QUERY_FAULTS),
        )
    ]
