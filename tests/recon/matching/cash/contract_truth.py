"""Payments under twelve tariffs, made from the truth: what each should cost is known beforehand.

The truth is worked out in fractions, one payment at a time, from words of its own; nothing of the
contract's engine is used.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

ACCOUNT = {"merchant_id": "M1", "account_id": "1"}
PAID_AT = "2026-10-01T12:00:00Z"
TURN = date(2026, 11, 1)
"""The day on which the dated tariff changes."""
FIRST = date(2026, 10, 20)


@dataclass(frozen=True, slots=True)
class Tariff:
    """One tariff: its lines in fees.toml, and what a payment of it costs by hand."""

    lines: tuple[Mapping[str, Any], ...]
    price: Callable[[int, date], Fraction]
    """Amount in minor units and day -> minor units before rounding, bounds and fixed part."""
    fixed: Callable[[int, date], int] = lambda _amount, _day: 0
    low: int = 0
    high: int = 10**15
    told: tuple[Mapping[str, str], ...] = ({},)
    """What the settlement tells of payments that the tariff holds for."""
    entry_type: str = "capture"
    sign: int = 1


def _bp(basis_points: str) -> Callable[[int, date], Fraction]:
    return lambda amount, _day: Fraction(amount) * Fraction(basis_points) / 10_000


def _parts(amount: int, _day: date) -> Fraction:
    first, second = min(amount, 10_000), max(min(amount, 50_000) - 10_000, 0)
    rest = max(amount - 50_000, 0)
    return Fraction(first * 200 + second * 150 + rest * 90, 10_000)


def _whole(amount: int, _day: date) -> Fraction:
    rate = 200 if amount <= 10_000 else 150 if amount <= 50_000 else 90
    return Fraction(amount * rate, 10_000)


_TIERS = [
    {"up_to_minor_units": 10_000, "basis_points": 200, "fixed_minor_units": 7},
    {"up_to_minor_units": 50_000, "basis_points": 150},
    {"basis_points": 90, "fixed_minor_units": 3},
]


def _tier_fixed(amount: int, _day: date) -> int:
    return 7 if amount <= 10_000 else 0 if amount <= 50_000 else 3


CARD = {"method": "card"}
TARIFFS: Mapping[str, Tariff] = {
    "percentage": Tariff(({"basis_points": 140},), _bp("140")),
    "hundredths": Tariff(({"basis_points": "29.75"},), _bp("29.75")),
    "fixed": Tariff(({"fixed_minor_units": 25},), _bp("0"), lambda _a, _d: 25),
    "both": Tariff(
        ({"basis_points": 140, "fixed_minor_units": 25},), _bp("140"), lambda _a, _d: 25
    ),
    "at-least": Tariff(({"basis_points": 120, "min_minor_units": 60},), _bp("120"), low=60),
    "at-most": Tariff(({"basis_points": 180, "max_minor_units": 500},), _bp("180"), high=500),
    "tiers-whole": Tariff(({"tiers": _TIERS},), _whole, _tier_fixed),
    "tiers-parts": Tariff(({"tiers": _TIERS, "tiers_of": "parts"},), _parts, _tier_fixed),
    "dated": Tariff(
        (
            {"basis_points": 140, "until": TURN - timedelta(days=1)},
            {"basis_points": 160, "from": TURN},
        ),
        lambda amount, day: Fraction(amount * (140 if day < TURN else 160), 10_000),
    ),
    "by-brand": Tariff(
        (
            {"basis_points": 110, **CARD, "brand": ["visa", "mastercard"], "region": "EEA"},
            {"basis_points": 110, **CARD, "brand": "amex"},
        ),
        _bp("110"),
        told=(
            {**CARD, "brand": "Visa", "region": "EEA"},
            {**CARD, "brand": "mastercard", "region": "eea"},
            {**CARD, "brand": "amex"},
        ),
    ),
    "refund": Tariff(
        ({"fixed_minor_units": 15, "type": "refund"},),
        _bp("0"),
        lambda _a, _d: 15,
        entry_type="refund",
    ),
    "refund-back": Tariff(
        ({"basis_points": 100, "type": "refund", "returned": True},),
        _bp("100"),
        entry_type="refund",
        sign=-1,
    ),
}
ROUNDINGS = ("half_up", "half_even", "down", "up")


def rounded(value: Fraction, *, rounding: str) -> int:
    """A value of 0 or more as whole minor units."""
    down = value.numerator // value.denominator
    rest = value - down
    if rounding == "down" or rest == 0:
        return down
    if rounding == "up" or rest > Fraction(1, 2):
        return down + 1
    if rest < Fraction(1, 2):
        return down
    return down + (1 if rounding == "half_up" else down % 2)


@dataclass(slots=True)
class Truth:
    """The files of some weeks under one tariff, and what must be found in them."""

    contract: Mapping[str, Any]
    rows: dict[str, list[Mapping[str, Any]]] = field(
        default_factory=lambda: {"orders": [], "gateway": [], "settlement": []}
    )
    differs: dict[str, int] = field(default_factory=dict)
    """Order -> what its fees are beyond the contract; below 0: too little."""
    claimed: Counter[str] = field(default_factory=Counter)
    unknown: set[str] = field(default_factory=set)
    """Orders of which a fact is missing that the contract needs."""


def truth_of(name: str, *, seed: int, size: int = 60) -> Truth:
    """So many payments under a tariff; of one in three something is wrong, or not told."""
    draw, tariff = random.Random(f"{name} {seed}"), TARIFFS[name]
    rounding = draw.choice(ROUNDINGS)
    base = {"from": date(2026, 1, 1), "type": "capture", "currency": "EUR"}
    lines = [{**base, **line, "name": f"{name} {at}"} for at, line in enumerate(tariff.lines)]
    if tariff.entry_type != "capture":
        lines.append({**base, "name": "captures", "fixed_minor_units": 30})
    truth = Truth({"rounding": rounding, "lines": lines})
    for number in range(size):
        _add(truth, number, tariff=tariff, rounding=rounding, draw=draw)
    truth.rows["settlement"] += pay_outs_of(truth.rows["settlement"])
    draw.shuffle(truth.rows["settlement"])
    return truth


def _add(truth: Truth, number: int, *, tariff: Tariff, rounding: str, draw: random.Random) -> None:
    order_no, day = f"SO-{number}", FIRST + timedelta(days=draw.randrange(25))
    amount = draw.choice((10_000, 50_000, draw.randrange(1, 200_000)))
    told = draw.choice(tariff.told)
    fault = draw.choice(("over", "under", "credit", "part", "unknown", *["none"] * 8))
    fee = tariff.sign * _price(amount, day, tariff=tariff, rounding=rounding)
    wrong = draw.randrange(1, 40)
    charged = fee + (wrong if fault in {"over", "credit", "part"} else 0)
    charged -= wrong if fault == "under" else 0
    if fault == "unknown" and told:
        told = {"method": told["method"]}
        truth.unknown.add(order_no)
        charged += wrong
    if tariff.entry_type == "refund":
        add_order(truth, order_no, amount, refunded=True)
        add_line(truth, order_no, "capture", amount, day, fee=30)
        add_line(truth, order_no, "refund", -amount, day, fee=charged, **told)
    else:
        add_order(truth, order_no, amount)
        add_line(truth, order_no, "capture", amount, day, fee=charged, **told)
    left = 0 if order_no in truth.unknown else charged - fee
    if fault in {"credit", "part"}:
        back = wrong if fault == "credit" or wrong == 1 else draw.randrange(1, wrong)
        add_line(truth, order_no, "fee", 0, day + timedelta(days=3), fee=-back)
        left -= back
    if left:
        truth.differs[order_no] = left
    if left > 0:
        truth.claimed[order_no] = left


def _price(amount: int, day: date, *, tariff: Tariff, rounding: str) -> int:
    share = rounded(tariff.price(amount, day), rounding=rounding)
    return min(max(share + tariff.fixed(amount, day), tariff.low), tariff.high)


def add_order(truth: Truth, order_no: str, amount: int, *, refunded: bool = False) -> None:
    """An order and its payment."""
    key = {**ACCOUNT, "order_no": order_no, "currency": "EUR", "amount": amount}
    key |= {"source": "made.csv", "line": len(truth.rows["orders"]) + 2}
    status = "refunded" if refunded else "paid"
    truth.rows["orders"].append({**key, "status": status, "ordered_at": PAID_AT})
    answer = {"query_result": "1", "answer": "found", "transaction_date": PAID_AT}
    code = "4100" if refunded else "3000"
    payment = {"transaction_id": f"T-{order_no}", "payment_status": code}
    truth.rows["gateway"].append({**key, **payment, **answer})


def add_line(
    truth: Truth,
    order_no: str,
    entry_type: str,
    gross: int,
    day: date,
    *,
    fee: int,
    **told: str,
) -> None:
    """A settlement line of a payment."""
    row = {"batch_id": f"B-{day}", "settled_on": day.isoformat(), "entry_type": entry_type}
    row |= {"order_no": order_no, "transaction_id": f"T-{order_no}", "currency": "EUR"}
    amounts = {"gross": gross, "fee": fee, "net": gross - fee}
    place = {"source": "settlement.csv", "line": len(truth.rows["settlement"]) + 2}
    truth.rows["settlement"].append({**ACCOUNT, **row, **amounts, **told, **place})


def pay_outs_of(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of each batch the row that pays it out, with its gross, fee and net as the gateway tells."""
    batches: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in lines:
        batches.setdefault((row["account_id"], row["batch_id"]), []).append(row)
    paid = []
    for number, rows in enumerate(batches.values(), start=len(lines) + 2):
        sums = {name: sum(row[name] for row in rows) for name in ("gross", "fee", "net")}
        kept = {name: rows[0][name] for name in (*ACCOUNT, "batch_id", "settled_on", "currency")}
        blank = {"order_no": "", "transaction_id": "", "entry_type": "payout"}
        paid.append({**kept, **blank, **sums, "source": rows[0]["source"], "line": number})
    return paid
