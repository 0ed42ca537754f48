"""The ledger entries that a night compares, and where the others went."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.coding import is_among
from recon.matching.frames.sources import LEDGER_COLUMNS, LeftOut, Sources, frame_of
from recon.matching.sides.ledger_side import left_behind
from recon.model.business_date import Grace, midnight
from recon.model.terms import REVERSAL_SUFFIX, EntryType, InstructionKind, Reject
from recon.proof.ledger_bridge import (
    BEFORE_WINDOW,
    OTHER_ACCOUNTS,
    LedgerSteps,
    rejected_sums,
    steps_of_arrived,
    sums_by_type,
)
from recon.proof.night_tables import frame_of_table
from recon.steps.runtime.night_folder import StoredLedger, sums_of_entries
from recon.steps.runtime.window import (
    ENTRIES,
    BeforeOpening,
    in_window,
    ledger_start,
    left_out,
)
from recon.store.nights import journal_rows


@dataclass(frozen=True, slots=True)
class ChosenEntries:
    """The ledger entries that are compared, and where the others went."""

    compared: pd.DataFrame
    """LEDGER_COLUMNS, in the order of the ledger."""
    are_all: bool
    """Whether the whole stored ledger is compared unchanged."""
    arrived: Mapping[str, int]
    """Step -> rows that it removes of those read, negative."""
    sums: LedgerSteps
    """The same steps in money."""
    older: tuple[LeftOut, ...]
    """The sums of entries that are older than the window and whose orders were not queried."""


def chosen_entries(
    ledger: StoredLedger,
    *,
    sources: Sources,
    moves: pd.DataFrame,
    queried: "pd.Series[str]",
    before: BeforeOpening,
    rejected: Sequence[Reject],
    rules: Rules,
) -> ChosenEntries:
    """Choose the entries of the window, and those that book payouts of this night.

    Args:
        ledger: What the run read.
        sources: The settlement, and the days it covers.
        moves: Instructions of the account.
        queried: Order numbers that were queried.
        before: Orders of the opening balance, whose entries are not compared.
        rejected: Rejected rows of any account.
        rules: Window, calendar, and the grace period for booking.

    Raises:
        ArchiveError: the ledger cannot be read.
    """
    days, since = sources.settled, ledger_start(ledger.run, rules=rules)
    begins = None
    if days is not None:
        begins = midnight(date.fromisoformat(days.first), zone=rules.business_calendar.zone)
    no_rows = frame_of((), columns=LEDGER_COLUMNS).assign(row=0)
    own = pd.concat([no_rows, *ledger.frames([*LEDGER_COLUMNS])], ignore_index=True)
    recent = with_payouts(
        pd.concat(
            in_window([own], since=since, queried=queried, settled_from=begins), ignore_index=True
        ),
        entries=own,
        settlement=sources.settlement,
        instructions=moves,
        since=begins or since,
        rules=rules,
    ).sort_values("row", ignore_index=True)
    compared = before.entries(recent, is_settled=sources.settlement is not None)
    # An entry with the id of one that is compared is not left out.
    old = own[~own["row"].isin(recent["row"]) & ~is_among(own["entry_id"], recent["entry_id"])]
    currency, _, net = left_behind(old)
    # Rejected entries count on both sides: here as summed up by the database.
    file = Counter(journal_rows.rejected_sums(ledger.connection, ledger.run.run_id))
    extract = Counter[tuple[str, str]]()
    for table in ledger.batches(("entry_type", "currency", "amount")):
        file.update(sums_of_entries(table))
        extract.update(sums_by_type(frame_of_table(table)))
    return ChosenEntries(
        compared[[*LEDGER_COLUMNS]],
        are_all=len(recent) == ledger.rows and not before.order_nos,
        arrived={
            OTHER_ACCOUNTS: len(own) - ledger.rows,
            BEFORE_WINDOW: len(compared) - len(own),
        },
        sums=steps_of_arrived(
            file,
            rejected=rejected_sums(rejected),
            extract=extract,
            entries=sums_by_type(own),
            recent=sums_by_type(recent),
            whole=sums_by_type(compared),
        ),
        older=left_out(ENTRIES, currency=currency, net=net),
    )


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
    """The entries of the window, with those that book a payout of this night.

    Older entries that name a payout or batch of ours join. Entries without such a name that equal
    no payout, and are booked while they may belong to a batch from before the window, count for
    such a batch. An entry that equals a payout joins even if booked before the window, as long as
    that is no longer before than a booking may wait for its line.

    Args:
        recent: The entries of the window (see `in_window`).
        entries: Entries of the account, of which only payouts are used.
        settlement: What was settled; None where no file reports payouts.
        instructions: Those of the account.
        since: Beginning of the window.
        rules: Calendar, and the grace period for booking.
    """
    names = _payout_names(settlement, instructions=instructions)
    payouts = entries[entries["entry_type"].isin(PAYOUTS)]
    named = payouts[["reference_no", "transaction_id", "order_no"]].isin(names).any(axis=1)
    named |= payouts["reverses_entry_id"].isin(payouts.loc[named, "entry_id"])
    known = payouts[named]
    if settlement is not None:
        unkeyed = payouts[~named]
        paid = _unnamed(settlement, known=known)
        of_before = _of_no_batch(unkeyed, paid=paid, since=since, rules=rules)
        recent = recent[~is_among(recent["entry_id"], of_before)]
        known = pd.concat([known, unkeyed[~is_among(unkeyed["entry_id"], of_before)]])
    joined = known[~is_among(known["entry_id"], recent["entry_id"])]
    whole = pd.concat([recent, joined]) if len(joined) else recent
    return whole.reset_index(drop=True)


def _payout_names(settlement: pd.DataFrame | None, *, instructions: pd.DataFrame) -> set[str]:
    sent = instructions[instructions["kind"].eq(InstructionKind.PAYOUT.value)]
    ids = ("request_id", "transaction_id", "instruction_id", "order_no")
    names = {name for word in ids for name in sent[word]}
    if settlement is not None:
        paid = settlement[settlement["entry_type"].eq(EntryType.PAYOUT.value)]
        names |= {*paid["batch_id"], *(paid["batch_id"] + "/" + paid["currency"])}
    return names - {""}


def _unnamed(settlement: pd.DataFrame, *, known: pd.DataFrame) -> dict[tuple[str, int], list[date]]:
    """Currency and payout -> days of the batches that no entry names, the oldest first."""
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
    unkeyed: pd.DataFrame, *, paid: dict[tuple[str, int], list[date]], since: datetime, rules: Rules
) -> set[str]:
    """Ids of those early entries that book no payout of a day before or soon after them.

    Entries booked after their payout are assigned first: an entry of a batch from before the window
    must not take the payout of another entry with the same amount.
    """
    calendar, grace = rules.business_calendar, Grace.parse(rules.grace.gateway_to_ledger)
    until = calendar.due_at(since, grace=grace)
    early: list[tuple[datetime, str, list[date]]] = []
    columns = ("booked_at", "entry_id", "entry_type", "currency", "amount")
    for at, entry, kind, currency, amount in sorted(
        zip(*(unkeyed[name].tolist() for name in columns), strict=True)
    ):
        days = paid.get((currency, -amount if kind == _BACK else amount), [])
        if at >= since and days and midnight(days[0], zone=calendar.zone) <= at:
            days.pop(0)
        elif at < until:
            early.append((at, entry, days))
    unbatched = set[str]()
    for at, entry, days in early:
        due = calendar.due_at(at, grace=grace) if days else at
        if days and midnight(days[0], zone=calendar.zone) < due:
            days.pop(0)
        else:
            unbatched.add(entry)
    return unbatched
