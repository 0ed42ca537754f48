"""Which pay-outs of the books a night holds against what the gateway and we paid out.

An entry that names a batch or a payout is of that one. One that names none is held by its amount,
also when it was booked some days before that was settled; in the first days of a settlement it may
be of a batch from before, which no line tells of.
"""

from datetime import date, datetime

import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.names import is_among
from recon.model.business_date import Grace, midnight
from recon.model.words import REVERSAL_SUFFIX, EntryType, InstructionKind

_BACK = EntryType.PAYOUT.value + REVERSAL_SUFFIX
PAYOUTS = (EntryType.PAYOUT.value, _BACK)


def with_payouts(
    recent: pd.DataFrame,
    *,
    entries: pd.DataFrame,
    settlement: pd.DataFrame | None,
    instructions: pd.DataFrame,
    since: datetime,
    rules: Rules,
) -> pd.DataFrame:
    """The entries of the window, with those that booked a payout which is told here.

    Older entries that name a payout of ours or a batch join. Those that name none, come to no
    pay-out and are booked while a batch from before may be, are of such a batch. What comes to one
    joins, though it was booked before the window, if that was not longer before than a booking may
    wait for its line.

    Args:
        recent: the entries of the window (see `in_window`).
        entries: all entries of the account.
        settlement: what was settled; None where no file tells of pay-outs.
        instructions: those of the account.
        since: where the window begins.
        rules: calendar, and how long the books may be without an entry.
    """
    names = _payout_names(settlement, instructions=instructions)
    payouts = entries[entries["entry_type"].isin(PAYOUTS)]
    named = payouts[["reference_no", "transaction_id", "order_no"]].isin(names).any(axis=1)
    named |= payouts["reverses_entry_id"].isin(payouts.loc[named, "entry_id"])
    known = payouts[named]
    if settlement is not None:
        loose = payouts[~named]
        paid = _unnamed(settlement, known=known)
        of_before = _of_no_batch(loose, paid=paid, since=since, rules=rules)
        recent = recent[~is_among(recent["entry_id"], of_before)]
        known = pd.concat([known, loose[~is_among(loose["entry_id"], of_before)]])
    joined = known[~is_among(known["entry_id"], recent["entry_id"])]
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


def _unnamed(settlement: pd.DataFrame, *, known: pd.DataFrame) -> dict[tuple[str, int], list[date]]:
    """Currency and pay-out -> the days of the batches that no entry names, the oldest first."""
    named = {*known["reference_no"], *known["order_no"]}
    rows = settlement[settlement["entry_type"].eq(EntryType.PAYOUT.value)]
    sums: dict[tuple[str, str], tuple[str, int]] = {}
    columns = (rows[name].tolist() for name in ("batch_id", "currency", "settled_on", "net"))
    for batch, currency, day, net in zip(*columns, strict=True):
        before = sums.get((batch, currency), ("", 0))
        sums[batch, currency] = max(day, before[0]), before[1] + net
    waiting: dict[tuple[str, int], list[date]] = {}
    for (batch, currency), (day, net) in sorted(sums.items(), key=lambda each: each[1]):
        if not {batch, f"{batch}/{currency}"} & named:
            waiting.setdefault((currency, net), []).append(date.fromisoformat(day))
    return waiting


def _of_no_batch(
    loose: pd.DataFrame, *, paid: dict[tuple[str, int], list[date]], since: datetime, rules: Rules
) -> set[str]:
    """Those of these entries that are early, and book no pay-out of a day before or soon after.

    What was booked behind its pay-out comes first: an entry of a batch from before must not take
    the pay-out of another one of its amount.
    """
    calendar, grace = rules.business_calendar, Grace.parse(rules.grace.gateway_to_ledger)
    until = calendar.due_at(since, grace=grace)
    early: list[tuple[datetime, str, list[date]]] = []
    columns = ("booked_at", "entry_id", "entry_type", "currency", "amount")
    for at, entry, kind, currency, amount in sorted(
        zip(*(loose[name].tolist() for name in columns), strict=True)
    ):
        days = paid.get((currency, -amount if kind == _BACK else amount), [])
        if at >= since and days and midnight(days[0], zone=calendar.zone) <= at:
            days.pop(0)
        elif at < until:
            early.append((at, entry, days))
    gone = set[str]()
    for at, entry, days in early:
        due = calendar.due_at(at, grace=grace) if days else at
        if days and midnight(days[0], zone=calendar.zone) < due:
            days.pop(0)
        else:
            gone.add(entry)
    return gone
