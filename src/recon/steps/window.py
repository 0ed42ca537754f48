"""How far back a night looks, and which older orders it asks about again.

What is older than the window and asked about by nobody is opening balance: it is told, never a
break. Orders that are asked about for another reason are compared however old they are.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pandas as pd

from recon.business_date import midnight
from recon.matching.sources import Sources
from recon.model import Answer
from recon.rules import Rules
from recon.store.runs import Run

LOOK_BACK_DAYS = (1, 7, 30, 90, 180)
"""Ages at which an order is asked about again, wherever it stood: what changed opens a break."""
ENTRIES, PAYMENTS = "ledger entries", "payments"


def window_start(run: Run, *, rules: Rules) -> datetime:
    """Orders before this instant are not looked at unless somebody asks about them."""
    return _start(run, days=rules.window.orders_days, rules=rules)


def ledger_start(run: Run, *, rules: Rules) -> datetime:
    """Ledger entries before this instant ask about nothing."""
    return _start(run, days=rules.window.ledger_days, rules=rules)


def _start(run: Run, *, days: int, rules: Rules) -> datetime:
    first = opening(rules)
    start = run.as_of - timedelta(days=days)
    return start if first is None else max(start, first)


def opening(rules: Rules) -> datetime | None:
    """The first instant that is reconciled; None when the rules name no opening date."""
    day = rules.window.opening_date
    return None if day is None else midnight(day, zone=rules.business_calendar.zone).astimezone(UTC)


def looked_back(run: Run, *, before: Run | None) -> Iterator[tuple[datetime, datetime]]:
    """Spans (after, up to) of order instants that come of age tonight, skipped nights included."""
    since = run.as_of - timedelta(days=1) if before is None else before.as_of
    for days in LOOK_BACK_DAYS:
        age = timedelta(days=days)
        yield since - age, run.as_of - age


def in_window(ledger: pd.DataFrame, *, since: datetime, asked: set[str]) -> pd.DataFrame:
    """The entries booked since an instant, and older ones of keys that are asked about."""
    kept = (ledger["booked_at"] >= since) | ledger["order_no"].isin(asked - {""})
    return ledger[kept].reset_index(drop=True)


def without_opening_balance(sources: Sources, *, rules: Rules) -> Sources:
    """The sources without payments from before the opening date whose orders nobody knows here."""
    start = opening(rules)
    if start is None:
        return sources
    gateway = sources.gateway
    old = gateway["answer"].eq(Answer.FOUND.value) & (gateway["transaction_date"] < start)
    known = [sources.orders["order_no"]]
    if sources.instructions is not None:
        known.append(sources.instructions["order_no"])
    younger = gateway.loc[gateway["transaction_date"] >= start, "order_no"]
    named = set(pd.concat([*known, younger]))
    gone = set(gateway.loc[old & ~gateway["order_no"].isin(named), "order_no"])
    if not gone:
        return sources
    ledger, universe = (
        None if frame is None else frame[~frame["order_no"].isin(gone)].reset_index(drop=True)
        for frame in (sources.ledger, sources.universe)
    )
    kept = gateway[~gateway["order_no"].isin(gone)].reset_index(drop=True)
    told = {**sources.opening_balance, PAYMENTS: len(gone)}
    return replace(sources, gateway=kept, ledger=ledger, universe=universe, opening_balance=told)
