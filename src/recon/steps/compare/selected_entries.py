"""The ledger entries that a night compares, and where the others went, in batches of rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.config.rules import Rules
from recon.matching.frames.coding import is_among
from recon.matching.frames.digest import Labels, numbers_of
from recon.matching.frames.grouping import Bools
from recon.matching.frames.sources import LEDGER_COLUMNS, LeftOut, Sources
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
from recon.proof.night_tables import frame_of_table, table_of
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import LEDGER, StoredLedger, sums_of_entries
from recon.steps.runtime.window import (
    ENTRIES,
    OF_WINDOW,
    BeforeOpening,
    in_window,
    ledger_start,
    left_out,
)
from recon.store.nights import journal_rows
from recon.store.nights.runs import Run

_OF_PAYOUTS = (
    *("entry_id", "order_no", "transaction_id", "entry_type", "booked_at"),
    *("reference_no", "reverses_entry_id", "currency", "amount"),
)
"""Columns that decide whether a booked payout belongs to this night."""
_IN_MONEY = (
    "merchant_id",
    "account_id",
    "order_no",
    "transaction_id",
    "entry_type",
    "currency",
    "amount",
)


def chosen_entries(
    ledger: StoredLedger,
    *,
    sources: Sources,
    moves: pd.DataFrame,
    asked: "pd.Series[str]",
    rules: Rules,
) -> Bools:
    """Marks the rows of the ledger that are in the window, or book payouts of this night."""
    days, since = sources.settled, ledger_start(ledger.run, rules=rules)
    begins = None
    if days is not None:
        begins = midnight(date.fromisoformat(days.first), zone=rules.business_calendar.zone)
    selected = np.zeros(ledger.rows, np.bool_)
    for part in in_window(ledger.frames(OF_WINDOW), since=since, asked=asked, settled_from=begins):
        selected[part["row"]] = True
    payouts = [frame[frame["entry_type"].isin(PAYOUTS)] for frame in ledger.frames(_OF_PAYOUTS)]
    if not any(map(len, payouts)):
        return selected
    booked = pd.concat(payouts, ignore_index=True)
    named = [
        frame[selected[frame["row"]] & is_among(frame["entry_id"], booked["entry_id"])]
        for frame in ledger.frames(["entry_id"])
    ]
    named_rows = pd.concat(named, ignore_index=True)
    chosen = with_payouts(
        named_rows,
        entries=booked,
        settlement=sources.settlement,
        instructions=moves,
        since=begins or since,
        rules=rules,
    )
    selected[named_rows["row"]] = False
    selected[chosen["row"]] = True
    return selected


@dataclass(frozen=True, slots=True)
class ChosenEntries:
    """The ledger entries that are compared, marked by row; the methods read them on request.

    They raise ArchiveError where the ledger cannot be read.
    """

    selected: Bools
    """One per row of the ledger, of any account."""
    before: BeforeOpening
    """Orders of the opening balance, whose entries are not compared."""
    is_settled: bool
    """See `BeforeOpening.entries`."""

    @property
    def are_all(self) -> bool:
        """Whether the whole stored ledger is compared unchanged."""
        return bool(self.selected.all()) and not self.before.order_nos

    def table(self, run: Run, *, environment: Environment) -> pa.Table:
        """The marked entries with the file's columns, in the order of the ledger."""
        schema = SCHEMAS[LEDGER].columns
        with environment.store.reading() as connection:
            batches = StoredLedger(connection, run, environment).batches(schema.names)
            tables = [rows.filter(pa.array(own)).cast(schema) for rows, own in self._with(batches)]
        if self.before.order_nos:
            tables = [table_of(self._whole(frame_of_table(rows)), name=LEDGER) for rows in tables]
        return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()

    def arrived(
        self, ledger: StoredLedger, *, refused: Sequence[Reject]
    ) -> tuple[dict[str, int], LedgerSteps]:
        """Of all entries read: rows that each step removes (negative), and the steps in money.

        `refused` are rejected rows of any account.
        """
        steps = {OTHER_ACCOUNTS: 0, BEFORE_WINDOW: 0}
        names = ("extract", "entries", "recent", "whole")
        sums = {name: Counter[tuple[str, str]]() for name in names}
        # Rejected entries count on both sides: here as summed up by the database.
        file = Counter(journal_rows.rejected_sums(ledger.connection, ledger.run.run_id))
        for table, own in self._with(ledger.batches(_IN_MONEY)):
            every = frame_of_table(table)
            file.update(sums_of_entries(table))
            ours = every[ledger.are_own(every)]
            recent = every[own]
            whole = self._whole(recent)
            for counter, frame in zip(sums.values(), (every, ours, recent, whole), strict=True):
                counter.update(sums_by_type(frame))
            steps[OTHER_ACCOUNTS] += len(ours) - len(every)
            steps[BEFORE_WINDOW] += len(whole) - len(ours)
        return steps, steps_of_arrived(file, rejected=rejected_sums(refused), **sums)

    def older(self, ledger: StoredLedger) -> tuple[LeftOut, ...]:
        """The sums of entries that are older than the window and whose orders were not queried.

        An entry with the id of one that is compared is not among them. Those ids are found by
        hashes: all texts at once would take three times the memory.
        """
        prints: tuple[list[Labels], list[Labels]] = ([], [])
        for frame in ledger.frames(["entry_id"]):
            each, own = numbers_of(frame["entry_id"]), self.selected[frame["row"]]
            prints[0].append(each[own])
            prints[1].append(each[~own])
        if not any(map(len, prints[1])):
            return ()
        shared = np.intersect1d(np.concatenate(prints[0]), np.concatenate(prints[1]))
        known = set[str]()
        for frame in ledger.frames(["entry_id"]) if len(shared) else ():
            is_shared = np.isin(numbers_of(frame["entry_id"]), shared)
            known |= {*frame["entry_id"][is_shared & self.selected[frame["row"]]]}
        counts, sums = Counter[str](), Counter[str]()
        for frame in ledger.frames([*LEDGER_COLUMNS]):
            is_old = ~self.selected[frame["row"]] & ~is_among(frame["entry_id"], known)
            currency, _, net = left_behind(frame[is_old])
            for left in left_out(ENTRIES, currency=currency, net=net):
                counts[left.currency] += left.count
                sums[left.currency] += left.amount
        return tuple(LeftOut(ENTRIES, name, counts[name], sums[name]) for name in sorted(counts))

    def _whole(self, entries: pd.DataFrame) -> pd.DataFrame:
        return self.before.entries(entries, is_settled=self.is_settled)

    def _with(self, tables: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, Bools]]:
        """Each table with the marks of its rows."""
        at = 0
        for table in tables:
            yield table, self.selected[at : at + len(table)]
            at += len(table)


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
    words = ("request_id", "transaction_id", "instruction_id", "order_no")
    names = {name for word in words for name in sent[word]}
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
    gone = set[str]()
    for at, entry, days in early:
        due = calendar.due_at(at, grace=grace) if days else at
        if days and midnight(days[0], zone=calendar.zone) < due:
            days.pop(0)
        else:
            gone.add(entry)
    return gone
