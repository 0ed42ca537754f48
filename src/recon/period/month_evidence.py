"""What the sealed folders of a month's nights say, as frames: one account, each row with its night.

A night says everything of its window once more. Of payments only what changed since the night
before is kept, so that a month takes no more memory than its payments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.model.words import InstructionState
from recon.period.looked_up import amounts_at, words_at
from recon.proof.night_tables import frame_of_table

MONEY_STATES = ("paid", "partially_refunded", "refunded", "chargeback")
"""States of a payment whose capture took place."""
CONFIRMED = (InstructionState.CONFIRMED.value, InstructionState.RESOLVED_APPLIED.value)
OLDER = "older files"
"""Source of lines that a night has only as the sum of a batch."""
LEVELS = ("captured", "refunded", "charged")
"""What a payment came to so far, minor units, each 0 or more."""
READ = (
    *("orders", "answers", "instructions", "settlement", "ledger", "terms"),
    *("held", "paid", "received", "explained", "breaks", "effects", "pending", "matches"),
    *("unverified", "movements", "journals"),
)
"""Files of a night that a month reads; of NEWEST_ONLY those of the newest night alone."""
_ACCOUNT = ("merchant_id", "account_id")
_OF_ANSWER = (
    *("order_no", "transaction_id", "currency", "amount", "payment_status", "answer"),
    *("transaction_date", "captured_amount", "refunded_amount", "queried_at"),
)
BANKS = frozenset({"paid", "received", "explained"})
"""Files of a night that knows a bank."""
NEWEST_ONLY = BANKS | {"held", "journals"}
"""Files that say how things stand, and nothing of how they came to."""


@dataclass(frozen=True, slots=True)
class MonthNight:
    """A night as its sealed files."""

    number: int
    """Its place among the nights that are read, the oldest is 0."""
    run_id: str
    business_date: str
    rules_digest: str
    files: Mapping[str, Path]
    """Name of a schema -> the file with its rows; a night need not have all."""
    predecessor: str = ""
    """The run whose open breaks it carries forward; "" for none."""


@dataclass(frozen=True, slots=True)
class MonthEvidence:
    """What all nights of a month say of one account."""

    nights: Sequence[MonthNight]
    changes: pd.DataFrame
    """payment, order_no, currency, transaction_date, LEVELS, is_first, number, business_date
    (grain: payment and night in which it changed)."""
    orders_of: Mapping[str, str]
    """Order -> its payment, where it has exactly one."""
    unknown: frozenset[str]
    """Payments that were refunded in part, and nothing at the gateway says how much."""
    instructions: pd.DataFrame
    """payment, order_no, kind, currency, amount, moved_at, told: what of ours took place."""
    lines: pd.DataFrame
    """The settlement as the newest night counts it; payment, base, told, is_pay_out beside it."""
    told_lines: pd.DataFrame
    """_SAME_LINE, times (grain: line): of nights that had a whole batch line by line."""
    entries: pd.DataFrame
    """The books: the newest version of each entry."""
    ordered: pd.DataFrame
    """order_no, ordered_at."""
    terms: pd.DataFrame
    """Of the newest night."""

    @property
    def newest(self) -> MonthNight:
        """The night by which all of it is known."""
        return self.nights[-1]

    @property
    def dates(self) -> dict[int, str]:
        """Number of each night -> its business date."""
        return {night.number: night.business_date for night in self.nights}

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


def evidence_of(nights: Sequence[MonthNight], *, account: tuple[str, str]) -> MonthEvidence:
    """Read the nights, the oldest first; there is at least one."""
    changes, pairs, unknown = _changes(nights, account=account)
    single = pairs.groupby("order_no")["payment"].agg(["nunique", "first"])
    single = single[single["nunique"].eq(1) & single.index.to_series().ne("")]
    orders_of = dict(zip(single.index, single["first"], strict=True))
    settlement = _settlement(nights, account=account)
    return MonthEvidence(
        nights=nights,
        changes=changes,
        orders_of=orders_of,
        unknown=unknown,
        instructions=_instructions(nights, account=account, orders_of=orders_of),
        lines=_lines(settlement, newest=nights[-1].number, orders_of=orders_of),
        told_lines=_told_lines(settlement),
        entries=_newest_entries(nights, account=account),
        ordered=_ordered(nights, account=account),
        terms=frame_of(nights[-1], "terms"),
    )


def frame_of(
    night: MonthNight,
    name: str,
    *,
    account: tuple[str, str] | None = None,
    columns: Sequence[str] = (),
) -> pd.DataFrame:
    """The rows of a file of a night, of one account where it is named; some columns, or all."""
    wanted = [*columns, *(_ACCOUNT if account and columns else ())]
    table: pa.Table = pq.ParquetFile(night.files[name]).read(columns=wanted or None)
    if account is not None:
        own = [
            pc.equal(table[column], word) for column, word in zip(_ACCOUNT, account, strict=True)
        ]
        table = table.filter(pc.and_(*own))
    return frame_of_table(table)


def payment_of(rows: pd.DataFrame, *, orders_of: Mapping[str, str]) -> "pd.Series[str]":
    """What names the payment of a row: its transaction, else its order's only payment."""
    by_order = words_at(rows["order_no"], words=orders_of)
    known = rows["order_no"].isin(orders_of.keys())
    otherwise = by_order.where(known, "order " + rows["order_no"].astype("str"))
    otherwise = otherwise.where(rows["order_no"].ne(""), "")
    return rows["transaction_id"].astype("str").where(rows["transaction_id"].ne(""), otherwise)


def _changes(
    nights: Sequence[MonthNight], *, account: tuple[str, str]
) -> tuple[pd.DataFrame, pd.DataFrame, frozenset[str]]:
    seen, parts, unknown = _Seen(), [], set[str]()
    for night in nights:
        rows = _shown(night, account=account)
        unknown.difference_update(rows["payment"].tolist() if unknown else ())
        unknown.update(rows.loc[rows["is_unknown"], "payment"].tolist())
        changed = seen.changed(rows)
        parts.append(changed.assign(number=night.number, business_date=night.business_date))
    whole = pd.concat(parts, ignore_index=True)
    whole = whole.sort_values(["payment", "number"], ignore_index=True)
    pairs = pd.DataFrame(sorted(seen.pairs), columns=["order_no", "payment"], dtype="str")
    return whole, pairs, frozenset(unknown)


class _Seen:
    """What each payment came to when a night showed it last; every payment has a number.

    A night shows its whole window once more, so that words are looked up once and amounts are
    compared by number.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._levels = np.zeros((0, len(LEVELS)), dtype=np.int64)
        self.pairs: set[tuple[str, str]] = set()
        """Order and payment of every row."""

    def changed(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The payments that come to something else than before, each once, with `is_first`."""
        payments = rows["payment"].tolist()
        self.pairs.update(zip(rows["order_no"].tolist(), payments, strict=True))
        before = len(self._numbers)
        of_row = np.array([self._numbers.setdefault(p, len(self._numbers)) for p in payments], int)
        numbers, at = np.unique(of_row, return_inverse=True)
        now = np.zeros((len(numbers), len(LEVELS)), dtype=np.int64)
        np.add.at(now, at, rows[[*LEVELS]].to_numpy(dtype=np.int64))
        fresh = np.zeros((len(self._numbers) - before, len(LEVELS)), dtype=np.int64)
        self._levels = np.vstack([self._levels, fresh])
        is_first = numbers >= before
        differs = is_first | (self._levels[numbers] != now).any(axis=1)
        self._levels[numbers] = now
        changed: pd.DataFrame = (
            rows[differs[at]]
            .groupby("payment", as_index=False)
            .agg(
                order_no=("order_no", "min"),
                currency=("currency", "max"),
                transaction_date=("transaction_date", "min"),
                **{name: (name, "sum") for name in LEVELS},
            )
        )
        first = {p for p, number in zip(payments, of_row.tolist(), strict=True) if number >= before}
        changed["is_first"] = changed["payment"].isin(first)
        return changed


def _shown(night: MonthNight, *, account: tuple[str, str]) -> pd.DataFrame:
    """The newest answer of each payment of a night, and what it came to by then."""
    rows = frame_of(night, "answers", account=account, columns=_OF_ANSWER)
    rows = rows[rows["answer"].eq("found")]
    terms = frame_of(night, "terms")
    codes = terms[terms["name"].eq("payment_status")]
    states = dict(zip(codes["key"], codes["word"], strict=True))
    state = words_at(rows["payment_status"], words=states, otherwise="unmapped")
    gross = rows["captured_amount"].fillna(rows["amount"]).fillna(0).astype("int64")
    took_place = state.isin(MONEY_STATES)
    given = rows["refunded_amount"].where(
        ~(state.eq("refunded") & rows["refunded_amount"].isna()), gross
    )
    refunded = given.fillna(0).astype("int64").where(took_place, 0)
    rows = rows.assign(
        payment=payment_of(rows, orders_of={}),
        captured=gross.where(took_place, 0),
        refunded=refunded,
        charged=(gross - refunded).where(state.eq("chargeback"), 0),
        is_unknown=state.eq("partially_refunded") & rows["refunded_amount"].isna(),
    )
    by = ["order_no", "transaction_id", "queried_at", *LEVELS]
    rows = rows.sort_values(by, na_position="first", kind="stable")
    return rows.drop_duplicates(["order_no", "transaction_id"], keep="last")


def _instructions(
    nights: Sequence[MonthNight], *, account: tuple[str, str], orders_of: Mapping[str, str]
) -> pd.DataFrame:
    """Captures and refunds that are confirmed by the newest night that knows of them."""
    parts = []
    for night in nights:
        rows = frame_of(night, "instructions", account=account)
        rows = rows[rows["kind"].isin(("capture", "refund"))]
        rows = rows.drop_duplicates("instruction_id", keep="last")
        parts.append(rows.assign(number=night.number, is_confirmed=rows["state"].isin(CONFIRMED)))
    whole = pd.concat(parts, ignore_index=True)
    first = whole[whole["is_confirmed"]].groupby("instruction_id")["number"].min()
    newest = whole.sort_values("number", kind="stable").drop_duplicates(
        "instruction_id", keep="last"
    )
    newest = newest[newest["is_confirmed"]]
    moved_at = newest["outcome_at"].fillna(newest["sent_at"]).fillna(newest["approved_at"])
    return newest.assign(
        payment=payment_of(newest, orders_of=orders_of),
        moved_at=moved_at,
        told=amounts_at(newest["instruction_id"], sums=first),
    ).reset_index(drop=True)


_GROUP = ["batch_id", "settled_on", "currency"]
_SAME_LINE = [
    *("batch_id", "settled_on", "entry_type", "order_no", "transaction_id", "reference_no"),
    *("currency", "gross", "fee", "net", "own_reference"),
]
_SUMS = ["gross", "fee", "net"]


def _settlement(nights: Sequence[MonthNight], *, account: tuple[str, str]) -> pd.DataFrame:
    """The rows of all nights; `number` is the night's, `is_summed` a row that stands for many."""
    every = [
        frame_of(night, "settlement", account=account).assign(number=night.number)
        for night in nights
    ]
    whole = pd.concat(every, ignore_index=True)
    return whole.assign(is_summed=whole["source"].eq(OLDER))


def _told_lines(whole: pd.DataFrame) -> pd.DataFrame:
    """Every line that a night told which had its batch line by line, as often as one night did."""
    summed = whole.groupby([*_GROUP, "number"])["is_summed"].transform("any")
    by_night = whole[~summed].groupby([*_SAME_LINE, "number"]).size()
    return by_night.groupby(level=_SAME_LINE).max().rename("times").reset_index()


def _lines(whole: pd.DataFrame, *, newest: int, orders_of: Mapping[str, str]) -> pd.DataFrame:
    """The lines that the newest night counts, each as the last night that had it whole wrote it.

    A night has a batch from before its window as sums; an earlier night with the same sums has the
    lines. Where they differ the newest night is believed, sums and all.
    """
    groups = whole.groupby([*_GROUP, "number"], as_index=False).agg(
        is_summed=("is_summed", "any"), **{name: (name, "sum") for name in _SUMS}
    )
    now = groups[groups["number"].eq(newest)]
    alike = groups[~groups["is_summed"]].merge(now[[*_GROUP, *_SUMS]], on=[*_GROUP, *_SUMS])
    chosen = pd.concat(
        [now[[*_GROUP, "number"]].assign(rank=0), alike[[*_GROUP, "number"]].assign(rank=1)]
    )
    chosen = chosen.sort_values([*_GROUP, "rank", "number"]).drop_duplicates(_GROUP, keep="last")
    lines = whole.merge(chosen[[*_GROUP, "number"]], on=[*_GROUP, "number"])
    first = (
        whole.rename(columns={"number": "told"}).groupby(_SAME_LINE, as_index=False)["told"].min()
    )
    lines = lines.merge(first, on=_SAME_LINE, how="left")
    return lines.assign(
        payment=payment_of(lines, orders_of=orders_of),
        is_pay_out=lines["entry_type"].eq("payout") & lines["own_reference"].eq(""),
        base=lines["entry_type"].str.removesuffix("_reversal"),
    )


def _newest_entries(nights: Sequence[MonthNight], *, account: tuple[str, str]) -> pd.DataFrame:
    """One row an entry; of two contents under one number in one night neither counts."""
    parts = [
        frame_of(night, "ledger", account=account).assign(number=night.number) for night in nights
    ]
    whole = pd.concat(parts, ignore_index=True).drop(columns=["source", "line"]).drop_duplicates()
    newest = whole["number"].eq(whole.groupby("entry_id")["number"].transform("max"))
    return whole[newest].drop_duplicates("entry_id", keep=False, ignore_index=True)


def _ordered(nights: Sequence[MonthNight], *, account: tuple[str, str]) -> pd.DataFrame:
    parts = [
        frame_of(night, "orders", account=account, columns=("order_no", "ordered_at"))
        for night in nights
    ]
    return pd.concat(parts).drop_duplicates("order_no", keep="last", ignore_index=True)
