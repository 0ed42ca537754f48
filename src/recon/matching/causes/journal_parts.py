"""What each break lacks in the books, by the kind of entry that would put it right."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from recon.matching.frames.arrays import Arrays
from recon.matching.sets.joined_sets import Joined
from recon.model.words import EntryType

PARTS = ("sales", "refunds", "chargebacks", "payouts", "fees", "reserves", "bank")
"""Accounts of the rules, each for one kind of entry."""
_OF_LEDGER: Mapping[str, str] = {
    EntryType.CAPTURE.value: "sales",
    EntryType.ADJUSTMENT.value: "sales",
    EntryType.REFUND.value: "refunds",
    EntryType.CHARGEBACK.value: "chargebacks",
    EntryType.PAYOUT.value: "payouts",
}


class BookingPart(NamedTuple):
    """What is to be booked of one break, currency and kind of entry, minor units."""

    break_id: str
    currency: str
    part: str
    """One of PARTS."""
    amount: int


def parts_of(joined: Joined, *, break_sets: Mapping[int, str]) -> list[BookingPart]:
    """What is to be booked, by set, currency and part; never 0.

    The sum of the parts of a break and currency is gateway less ledger. Each part is what the
    gateway shows of one kind of movement less what is booked of that kind, so a refund that is
    booked twice is put right as a refund, whatever the break is called.

    Args:
        joined: the sets with their items.
        break_sets: the id of the break of each set that is one.
    """
    sums: dict[tuple[int, str, str], int] = {}
    for number, currency, part, amount in _every_part(joined, wanted=break_sets):
        key = int(number), currency, part
        sums[key] = sums.get(key, 0) + amount
    return [
        BookingPart(break_sets[number], currency, part, amount)
        for (number, currency, part), amount in sorted(sums.items())
        if amount
    ]


def _every_part(
    joined: Joined, *, wanted: Mapping[int, str]
) -> Iterator[tuple[int, str, str, int]]:
    sides = (joined.gateway.items, joined.payouts, joined.ledger.items)
    shown, paid, booked = (_of(items, wanted=wanted) for items in sides)
    names = ("set", "currency", "captured", "refunded", "net")
    for number, currency, captured, refunded, net in shown.rows(*names):
        # What is left of a payment that was charged back is neither its capture nor a refund.
        yield number, currency, "sales", captured
        yield number, currency, "refunds", -refunded
        yield number, currency, "chargebacks", net - captured + refunded
    for number, currency, net in paid.rows("set", "currency", "net"):
        yield number, currency, "payouts", net
    for number, currency, kind, net in booked.rows("set", "currency", "kind", "net"):
        yield number, currency, _OF_LEDGER.get(kind, ""), -net


def _of(items: Arrays, *, wanted: Mapping[int, str]) -> Arrays:
    return items.take(np.isin(items["set"], [*wanted]))
