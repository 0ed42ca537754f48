"""What the sealed folders of a month's nights say, as frames: one account, each row with its night.

Rows are compared where they lie, in Arrow: only what a night says first, last or otherwise than the
night before is made into a frame, so that a month takes no more memory than its payments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import SCHEMAS
from recon.model.words import InstructionState
from recon.period.looked_up import amounts_at, is_among, run_starts, words_at
from recon.period.month_nights import MonthNight, frame_of, newest_rows, table_of
from recon.period.shown_payments import (
    NOTHING_ASKED,
    AskedEarlier,
    ShownPayments,
    shown_payments,
)
from recon.period.told_settlement import told_settlement

CONFIRMED = (InstructionState.CONFIRMED.value, InstructionState.RESOLVED_APPLIED.value)
_OF_INSTRUCTION = (
    *("instruction_id", "order_no", "transaction_id", "kind", "currency", "amount", "state"),
    *("approved_at", "sent_at", "outcome_at"),
)
OF_GATEWAY = ("fee", "reserve", "payout")
"""Base types of entries that a night compares since the first settled day, whatever its window."""
_REVERSAL = "_reversal"
_OF_ENTRY = tuple(
    name for name in SCHEMAS["ledger"].columns.names if name not in {"source", "line"}
)


@dataclass(frozen=True, slots=True)
class MonthEvidence:
    """What all nights of a month say of one account."""

    nights: Sequence[MonthNight]
    changes: pd.DataFrame
    """payment, order_no, currency, transaction_date, LEVELS, is_first, number, business_date
    (grain: payment and night in which it changed), those of a payment behind one another."""
    orders_of: "pd.Series[str]"
    """Order -> its payment, where it has exactly one."""
    unknown: frozenset[str]
    """Payments that were refunded in part, and nothing at the gateway says how much."""
    instructions: pd.DataFrame
    """payment, order_no, kind, currency, amount, moved_at, told: what of ours took place."""
    lines: pd.DataFrame
    """The settlement as the newest night counts it; payment, told, is_pay_out beside it,
    and is_back: a chargeback the other way, which was won back."""
    told_lines: pd.DataFrame
    """_SAME_LINE, times (grain: line): of nights that had a whole batch line by line."""
    told_alone: pd.DataFrame
    """_SAME_LINE (grain: line): of nights that had the rest of its batch as sums."""
    entries: pd.DataFrame
    """The books: the newest version of each entry; a deleted one once more, the other way round,
    `gone_on` the night that had it no more ("" for all others)."""
    ordered: pd.DataFrame
    """order_no, ordered_at."""
    terms: pd.DataFrame
    """Of the newest night."""
    earlier: Sequence[MonthNight] = ()
    """Nights before them; their numbers are below 0."""

    @property
    def newest(self) -> MonthNight:
        """The night by which all of it is known."""
        return self.nights[-1]

    @property
    def levels(self) -> pd.DataFrame:
        """The last of the changes of each payment: what it came to by now."""
        ends = np.roll(run_starts(self.changes["payment"]), -1)
        return self.changes[ends].reset_index(drop=True)

    @property
    def dates(self) -> dict[int, str]:
        """Number of each night -> its business date."""
        return {night.number: night.business_date for night in (*self.earlier, *self.nights)}

    def is_covered(self, source: str) -> bool:
        """Whether the newest night was given a source."""
        return bool((self.terms["name"].eq("given") & self.terms["key"].eq(source)).any())

    @property
    def settled_since(self) -> str:
        """The first day that the settlement tells of; "" without one."""
        rows = self.terms[self.terms["name"].eq("settled_days") & self.terms["key"].eq("first")]
        return str(rows["word"].iloc[0]) if len(rows) else ""

    def opening_of(self, name: str) -> dict[str, int]:
        """Currency -> what the rules say the gateway held before the first line."""
        rows = self.terms[self.terms["name"].eq(name)]
        return {
            str(key): int(number) for key, number in zip(rows["key"], rows["number"], strict=True)
        }


def evidence_of(
    nights: Sequence[MonthNight],
    *,
    account: tuple[str, str],
    earlier: Sequence[MonthNight] = (),
    asked: AskedEarlier = NOTHING_ASKED,
) -> MonthEvidence:
    """Read the nights, the oldest first; there is at least one.

    Args:
        nights: those that are read whole.
        account: merchant and account.
        earlier: nights before them, which have EARLIER_READ.
        asked: what those are asked about.
    """
    shown = shown_payments(nights, account=account, earlier=earlier, asked=asked)
    settlement = told_settlement(nights, account=account)
    lines, orders_of = settlement.lines, shown.orders_of
    ordered = ("order_no", "ordered_at")
    orders = newest_rows(nights, "orders", account=account, key="order_no", columns=ordered)
    return MonthEvidence(
        nights=nights,
        earlier=earlier,
        changes=shown.changes,
        orders_of=orders_of,
        unknown=shown.unknown,
        instructions=_instructions(nights, account=account, earlier=earlier, orders_of=orders_of),
        lines=lines.assign(
            payment=payment_of(lines, orders_of=orders_of),
            is_pay_out=lines["entry_type"].eq("payout") & lines["own_reference"].eq(""),
            is_back=lines["entry_type"].eq("chargeback") & (lines["gross"] > 0),
        ),
        told_lines=settlement.told_lines,
        told_alone=settlement.told_alone,
        entries=_newest_entries(nights, account=account, earlier=earlier, shown=shown),
        ordered=orders.drop_duplicates("order_no", keep="last", ignore_index=True),
        terms=frame_of(nights[-1], "terms"),
    )


def payment_of(rows: pd.DataFrame, *, orders_of: "pd.Series[str]") -> "pd.Series[str]":
    """What names the payment of a row: its transaction, else its order's only payment."""
    by_order = words_at(rows["order_no"], words=orders_of)
    known = is_among(rows["order_no"], orders_of.index)
    otherwise = by_order.where(known, "order " + rows["order_no"].astype("str"))
    otherwise = otherwise.where(rows["order_no"].ne(""), "")
    return rows["transaction_id"].astype("str").where(rows["transaction_id"].ne(""), otherwise)


def _instructions(
    nights: Sequence[MonthNight],
    *,
    account: tuple[str, str],
    earlier: Sequence[MonthNight],
    orders_of: "pd.Series[str]",
) -> pd.DataFrame:
    """Captures and refunds that are confirmed by the newest night that knows of them."""
    key = "instruction_id"
    newest = newest_rows(
        nights, "instructions", account=account, key=key, columns=_OF_INSTRUCTION
    ).drop_duplicates(key, keep="last")
    moves = newest["kind"].isin(("capture", "refund"))
    newest = newest[moves & newest["state"].isin(CONFIRMED)]
    moved_at = newest["outcome_at"].fillna(newest["sent_at"]).fillna(newest["approved_at"])
    return newest.assign(
        payment=payment_of(newest, orders_of=orders_of),
        moved_at=moved_at,
        told=amounts_at(newest[key], sums=_first_confirmed((*earlier, *nights), account=account)),
    ).reset_index(drop=True)


def _first_confirmed(nights: Sequence[MonthNight], *, account: tuple[str, str]) -> "pd.Series[int]":
    """Instruction -> the first night that knew it as confirmed."""
    states, known, numbers = pa.array(CONFIRMED), pa.array([], pa.string()), list[int]()
    for night in nights:
        columns = ("instruction_id", "state")
        rows = table_of(night, "instructions", account=account, columns=columns)
        rows = rows.filter(pc.is_in(rows["state"].cast(pa.string()), value_set=states))
        ids = rows["instruction_id"]
        fresh = pc.unique(ids.filter(pc.invert(pc.is_in(ids, value_set=known))))
        known = pa.concat_arrays([known, fresh])
        numbers += [night.number] * len(fresh)
    return pd.Series(numbers, index=known.to_pylist(), dtype="int64")


def _newest_entries(
    nights: Sequence[MonthNight],
    *,
    account: tuple[str, str],
    earlier: Sequence[MonthNight],
    shown: ShownPayments,
) -> pd.DataFrame:
    """One row an entry; of two contents under one number in one night neither counts.

    The books of payments that earlier nights alone show are theirs, as what took place is.
    """
    key = "entry_id"
    rows = newest_rows(nights, "ledger", account=account, key=key, columns=_OF_ENTRY)
    if shown.by_earlier:
        own = is_among(shown.orders_of, shown.by_earlier)
        words = {"order_no": {*shown.orders_of.index[own]}, "transaction_id": shown.by_earlier}
        before = newest_rows(
            earlier, "ledger", account=account, key=key, columns=_OF_ENTRY, among=words
        )
        rows = pd.concat([before[~is_among(before[key], rows[key])], rows], ignore_index=True)
    rows = rows.drop_duplicates().drop_duplicates(key, keep=False, ignore_index=True)
    gone_on = _gone_on(rows, nights=(*earlier, *nights), account=account)
    gone = rows.assign(gone_on=gone_on)[gone_on.ne("")]
    base = gone["entry_type"].str.removesuffix(_REVERSAL)
    back = base.where(gone["entry_type"].ne(base), base + _REVERSAL)
    whole = [rows.assign(gone_on=""), gone.assign(entry_type=back)]
    return pd.concat(whole, ignore_index=True) if len(gone) else whole[0]


def _gone_on(
    entries: pd.DataFrame, *, nights: Sequence[MonthNight], account: tuple[str, str]
) -> "pd.Series[str]":
    """The business date of the night that had an entry no more, "" where none should have had it.

    A night has the entries since its books begin, and older ones of the orders it asks about.
    """
    gone_on = pd.Series("", entries.index, dtype="str")
    read = [night for night in nights if night.books_since is not None]
    after = np.searchsorted([night.number for night in read], entries["number"], side="right")
    for place, night in enumerate(read):
        rows = entries[after == place]
        if night.books_since is None or rows.empty:
            continue
        since, cash_since = night.books_since
        of_gateway = rows["entry_type"].str.removesuffix(_REVERSAL).isin(OF_GATEWAY)
        is_young = rows["booked_at"] >= since
        lacked = (is_young & ~of_gateway) | (rows["booked_at"].ge(cash_since) & of_gateway)
        old = rows[~is_young & ~of_gateway & rows["order_no"].ne("")]
        if len(old):
            asked = table_of(night, "answers", account=account, columns=("order_no",))["order_no"]
            named = pc.is_in(pa.array(old["order_no"], pa.string()), value_set=asked)
            lacked[old.index] = named.to_numpy(zero_copy_only=False)
        gone_on[rows.index[lacked]] = night.business_date
    return gone_on
