"""Payments that came back in part, where neither an instruction nor a line tells how much."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recon.period.dated_facts import DatedFacts
from recon.period.month_evidence import MonthEvidence

ORDERS_SHOWN_MAX = 5
"""Orders that one sentence names."""


class UnknownRefund(NamedTuple):
    """One payment that was refunded in part by an amount that nothing tells."""

    payment: str
    order_no: str
    currency: str


class UntoldRefunds(NamedTuple):
    """Those of one currency, for a person."""

    currency: str
    payments: int
    sentence: str


def unknown_refunds(evidence: MonthEvidence, *, facts: DatedFacts) -> list[UnknownRefund]:
    """Payments whose refund nobody measured: no instruction of ours, no line."""
    refunds = facts.movements[facts.movements["kind"].eq("refund")]
    left = {*evidence.unknown} - {*refunds["payment"].unique()} if evidence.unknown else set()
    rows = evidence.changes[evidence.changes["payment"].isin(left)]
    rows = rows.drop_duplicates("payment", keep="last")
    columns = (rows[name].astype("str") for name in UnknownRefund._fields)
    return sorted(UnknownRefund(*cells) for cells in zip(*columns, strict=True))


def untold_refunds(refunds: Sequence[UnknownRefund]) -> Iterator[UntoldRefunds]:
    """By currency: how many, of which orders, and who knows."""
    for currency in sorted({refund.currency for refund in refunds}):
        own = [refund for refund in refunds if refund.currency == currency]
        named = [refund.order_no or refund.payment for refund in own][:ORDERS_SHOWN_MAX]
        more = [f"{len(own) - len(named)} more"] if len(own) > len(named) else []
        yield UntoldRefunds(
            currency,
            len(own),
            "Refunded in part by an amount that nothing tells: order "
            f"{', '.join([*named, *more])} ({currency}); the gateway's portal knows how much",
        )
