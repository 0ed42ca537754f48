"""Refunds of which nobody tells the amount are named by their orders, where a person looks."""

from types import SimpleNamespace
from typing import Any

import pandas as pd

from recon.period.unknown_refunds import UnknownRefund, unknown_refunds, untold_refunds


def refunds(*rows: tuple[str, str, str], unknown: str, measured: str = "") -> list[UnknownRefund]:
    """Of payments that nights showed those whose refund nothing measures."""
    columns = ["payment", "order_no", "currency"]
    evidence: Any = SimpleNamespace(
        unknown=frozenset(unknown.split()), changes=pd.DataFrame(rows, columns=columns)
    )
    movements = {"kind": ["refund", "capture"], "payment": [measured, "T1"]}
    return unknown_refunds(evidence, facts=SimpleNamespace(movements=pd.DataFrame(movements)))


def test_each_is_named_once_with_its_order_and_currency() -> None:
    """What an instruction or a line measured is none; a payment that changed twice is one."""
    shown = ("T1", "A-1", "EUR"), ("T1", "A-1", "EUR"), ("T2", "", "USD"), ("T3", "A-3", "EUR")

    left = refunds(*shown, ("T4", "A-4", "EUR"), unknown="T1 T2 T3", measured="T3")

    assert left == [UnknownRefund("T1", "A-1", "EUR"), UnknownRefund("T2", "", "USD")]
    assert refunds(*shown, unknown="") == []


def test_a_person_reads_which_orders_and_where_to_look() -> None:
    """By currency, by payment where no order is named; the first five and how many more."""
    every = [UnknownRefund(f"T{n}", f"A-{n}", "EUR") for n in range(7)]

    told = [*untold_refunds([*every, UnknownRefund("T9", "", "USD")])]

    first = "Refunded in part by an amount that nothing tells: order"
    last = "the gateway's portal knows how much"
    assert told == [
        ("EUR", 7, f"{first} A-0, A-1, A-2, A-3, A-4, 2 more (EUR); {last}"),
        ("USD", 1, f"{first} T9 (USD); {last}"),
    ]
