"""How far back a night looks, and which older orders it asks about again.

What is older than the window and asked about by nobody is opening balance: it is told, never a
break. Orders that are asked about for another reason are compared however old they are.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.grouping import Ints
from recon.matching.frames.sources import LeftOut, Sources
from recon.matching.sides.gateway_side import shown
from recon.matching.sides.ledger_side import is_base_type
from recon.model.business_date import midnight
from recon.model.words import REVERSAL_SUFFIX, EntryType, InstructionKind, KeyAnswer
from recon.store.nights.runs import Run

LOOK_BACK_DAYS = (1, 7, 30, 90, 180)
"""Ages at which an order is asked about again, wherever it stood: what changed opens a break."""
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
"""Where a look goes back as far as there is anything."""
ENTRIES, PAYMENTS = "ledger entries", "payments"
PAY_OUT_BOOKED_WITHIN = timedelta(days=10)
"""Pay-outs booked in the first days of the window may be of batches that lie before it."""
_OF_GATEWAY = (EntryType.FEE, EntryType.RESERVE, EntryType.PAYOUT)
_PAYOUTS = (EntryType.PAYOUT.value, EntryType.PAYOUT.value + REVERSAL_SUFFIX)


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


def in_window(
    ledger: pd.DataFrame, *, since: datetime, asked: set[str], first_settled: str = ""
) -> pd.DataFrame:
    """The entries booked since an instant, and older ones of keys that are asked about.

    Fees, reserves and pay-outs are compared with all that was ever settled: from its first day on
    (`first_settled`, "" without a settlement) all of them are there, and none from before it.
    """
    kept = (ledger["booked_at"] >= since) | ledger["order_no"].isin(asked - {""})
    if first_settled:
        start = pd.Timestamp(first_settled, tz="UTC")
        of_gateway = is_base_type(ledger["entry_type"], *_OF_GATEWAY)
        kept = (kept & ~of_gateway) | (of_gateway & (ledger["booked_at"] >= start))
    return ledger[kept].reset_index(drop=True)


def with_payouts(
    recent: pd.DataFrame,
    *,
    entries: pd.DataFrame,
    settlement: pd.DataFrame | None,
    instructions: pd.DataFrame,
    since: datetime,
) -> pd.DataFrame:
    """The entries of the window, with those that booked a payout which is told here.

    Older entries that name a payout of ours or a batch join; entries of the window's first days
    that name none are of batches from before it.

    Args:
        recent: the entries of the window (see `in_window`).
        entries: all entries of the account.
        settlement: what was settled; None where no file tells of pay-outs.
        instructions: those of the account.
        since: where the window begins.
    """
    names = _payout_names(settlement, instructions=instructions)
    payout = entries["entry_type"].isin(_PAYOUTS)
    named = entries[["reference_no", "transaction_id", "order_no"]].isin(names).any(axis=1)
    named |= entries["reverses_entry_id"].isin(entries.loc[payout & named, "entry_id"])
    joined = entries[payout & named & ~entries["entry_id"].isin(recent["entry_id"])]
    if settlement is not None:
        early = recent["booked_at"] < since + PAY_OUT_BOOKED_WITHIN
        unknown = ~recent["entry_id"].isin(entries.loc[payout & named, "entry_id"])
        recent = recent[~(recent["entry_type"].isin(_PAYOUTS) & early & unknown)]
    whole = pd.concat([recent, joined]) if len(joined) else recent
    return whole.reset_index(drop=True)


def _payout_names(settlement: pd.DataFrame | None, *, instructions: pd.DataFrame) -> set[str]:
    sent = instructions[instructions["kind"].eq(InstructionKind.PAYOUT.value)]
    words = ("request_id", "transaction_id", "instruction_id", "order_no")
    names = {name for word in words for name in sent[word]}
    if settlement is not None:
        paid = settlement[settlement["entry_type"].eq(EntryType.PAYOUT.value)]
        names |= {*paid["batch_id"], *(paid["batch_id"] + "/" + paid["currency"])}
    return names - {""}


def without_opening_balance(sources: Sources, *, rules: Rules) -> Sources:
    """The sources without payments from before the opening date whose orders nobody knows here."""
    start = opening(rules)
    if start is None:
        return sources
    gateway = sources.gateway
    old = gateway["answer"].eq(KeyAnswer.FOUND.value) & (gateway["transaction_date"] < start)
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
    sources = _without_settled(sources, order_nos=gone)
    kept = gateway[~gateway["order_no"].isin(gone)].reset_index(drop=True)
    left = gateway[gateway["order_no"].isin(gone)]
    balance = left_out(PAYMENTS, currency=left["currency"], net=shown(left, rules=rules).net)
    balance = (*sources.opening_balance, *balance)
    return replace(sources, gateway=kept, ledger=ledger, universe=universe, opening_balance=balance)


def left_out(what: str, *, currency: "pd.Series[str]", net: Ints) -> tuple[LeftOut, ...]:
    """Records that are left out, by currency (grain of both columns: record)."""
    frame = pd.DataFrame({"currency": currency.to_numpy(), "net": net})
    sums = frame.groupby("currency")["net"].agg(["size", "sum"])
    return tuple(
        LeftOut(what, str(currency), int(n), int(worth)) for currency, n, worth in sums.itertuples()
    )


def _without_settled(sources: Sources, *, order_nos: set[str]) -> Sources:
    """The sources with what was settled of these orders as adjustments of no payment.

    What the gateway owes and takes as fees counts them all the same.
    """
    lines = sources.settlement
    if lines is None:
        return sources
    payments = sources.gateway.loc[sources.gateway["order_no"].isin(order_nos), "transaction_id"]
    old = lines["order_no"].isin(order_nos) | lines["transaction_id"].isin({*payments} - {""})
    loose = lines.assign(
        order_no=lines["order_no"].where(~old, ""),
        transaction_id=lines["transaction_id"].where(~old, ""),
    )
    plain = old & ~is_base_type(lines["entry_type"], *_OF_GATEWAY)
    kinds = lines["entry_type"].where(~plain, EntryType.ADJUSTMENT.value)
    return replace(sources, settlement=loose.assign(entry_type=kinds))
