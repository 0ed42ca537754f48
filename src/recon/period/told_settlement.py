"""The settlement as the nights of a month told it: every line once, and those that count.

A night has a batch from before its window as sums; an earlier night with the same sums has the
lines. Where none has, each line counts that stood alone in any of them, as those of payments do
that a night is asked about, and the rest of the batch as sums. Of each night only rows are kept
that the night before had otherwise, or not at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.period.month_nights import MonthNight, frame_without_blanks, numbered, table_of

OLDER = "older files"
"""Source of lines that a night has only as the sum of a batch."""
_GROUP = ["batch_id", "settled_on", "currency"]
_SAME_LINE = [
    *("batch_id", "settled_on", "entry_type", "order_no", "transaction_id", "reference_no"),
    *("currency", "gross", "fee", "net", "own_reference"),
]
_SUMS = ["gross", "fee", "net"]
_OF_BATCH = [*_GROUP, *(f"{name}_sum" for name in _SUMS)]
_OF_LINE = [*_SAME_LINE, "is_summed"]
_OF_SUM = [name for name in _SAME_LINE if name not in _SUMS]
_SUMMED_AS_THEY_ARE = ("payout", "reserve")
_EARLIER = "earlier"
"""Type of the sum of all else."""
_BETWEEN = "\x1f"


@dataclass(frozen=True, slots=True)
class ToldSettlement:
    """What the nights told of an account's settlement."""

    lines: pd.DataFrame
    """The lines that the newest night counts, each as the last night that had it whole wrote it,
    or as it stood alone, and what is left as sums; told: the first night that had it, or its batch
    with the same sums. Where sums differ the newest night is believed."""
    told_lines: pd.DataFrame
    """_SAME_LINE, times (grain: line): of nights that had a whole batch line by line, as often as
    one night did."""
    told_alone: pd.DataFrame
    """_SAME_LINE (grain: line): of nights that had the rest of its batch as sums."""


def told_settlement(nights: Sequence[MonthNight], *, account: tuple[str, str]) -> ToldSettlement:
    """Read the nights, the oldest first."""
    heard, batches = [], []
    before = pa.array([], pa.string())
    for night in nights:
        rows = _rows(night, account=account)
        by_batch = rows.group_by(_GROUP).aggregate(
            [("is_summed", "any"), *((name, "sum") for name in _SUMS)]
        )
        batches.append(numbered(by_batch, night=night))
        now, lines = _distinct(rows, by_batch=by_batch)
        # From one night to the next nearly all lines stay as they were.
        news = pc.invert(pc.is_in(lines, value_set=before))
        heard.append(numbered(now.filter(news), night=night))
        before = lines
    newest, news = nights[-1].number, pa.concat_tables(heard)
    every = frame_without_blanks(news.drop_columns(_OF_BATCH[len(_GROUP) :]))
    beside_a_sum = pc.and_not(news["is_summed_any"], news["is_summed"])
    alone = frame_without_blanks(news.filter(beside_a_sum))
    groups = frame_without_blanks(pa.concat_tables(batches))
    alike = _alike(groups, newest=newest)
    chosen = _chosen(groups, alike=alike, newest=newest)
    rows = frame_without_blanks(pa.concat_tables(_lines(nights, account=account, chosen=chosen)))
    now = groups.loc[groups["number"].eq(newest), _OF_BATCH]
    lines = _with_alone(rows, alone=_times(alone.merge(now, on=_OF_BATCH)))
    lines = _with_told(lines, every=every, alike=alike)
    whole = every[~every["is_summed_any"]]
    return ToldSettlement(lines, _times(whole), alone[_SAME_LINE].drop_duplicates())


def _with_told(lines: pd.DataFrame, *, every: pd.DataFrame, alike: pd.DataFrame) -> pd.DataFrame:
    """`told`; what is left of a batch is no line that a night had, and was told with the batch."""
    first = every.groupby(_SAME_LINE, as_index=False).agg(told=("number", "min"))
    by_then = alike.groupby(_GROUP, as_index=False).agg(batch_told=("number", "min"))
    lines = lines.merge(first, on=_SAME_LINE, how="left").merge(by_then, on=_GROUP, how="left")
    return lines.assign(told=lines[["told", "batch_told"]].min(axis=1).astype("int64"))


def _times(rows: pd.DataFrame) -> pd.DataFrame:
    """Each line as often as one night had it."""
    return rows.groupby(_SAME_LINE, as_index=False).agg(times=("times", "max"))


def _with_alone(rows: pd.DataFrame, *, alone: pd.DataFrame) -> pd.DataFrame:
    """The lines that stood alone in any night beside those that count, and sums less by them."""
    if not len(alone):
        return rows[_SAME_LINE]
    own = rows.merge(alone[_GROUP].drop_duplicates(), on=_GROUP)
    counted = own.groupby(_SAME_LINE, as_index=False).agg(there=("net", "size"))
    lacking = alone.merge(counted, on=_SAME_LINE, how="left")
    lacking = lacking.assign(times=lacking["times"] - lacking["there"].fillna(0).astype("int64"))
    lacking = lacking.loc[lacking.index.repeat(lacking["times"].clip(lower=0)), _SAME_LINE]
    if not len(lacking):
        return rows[_SAME_LINE]
    sums, lines = rows[rows["is_summed"]], rows[~rows["is_summed"]]
    parts = (lines[_SAME_LINE], lacking, _left_of(sums, lacking=lacking))
    return pd.concat(parts, ignore_index=True)


def _left_of(sums: pd.DataFrame, *, lacking: pd.DataFrame) -> pd.DataFrame:
    """What is left of sums once lines stand beside them; nothing stands for a sum used up."""
    as_they_are = lacking["entry_type"].isin(_SUMMED_AS_THEY_ARE)
    kind = lacking["entry_type"].where(as_they_are, _EARLIER)
    taken = lacking.assign(entry_type=kind, reference_no="", own_reference="")
    # Fees by payment have a sum for each payment; a line without one is in the sum of no payment.
    named = taken.merge(sums[_OF_SUM].drop_duplicates(), on=_OF_SUM, how="left", indicator=True)
    is_named = named["_merge"].eq("both") & named["fee"].ne(0)
    names = {name: named[name].where(is_named, "") for name in ("order_no", "transaction_id")}
    taken = named.assign(**names, **{name: -named[name] for name in _SUMS}, is_taken=True)
    both = pd.concat([sums.assign(is_taken=False), taken], ignore_index=True)
    amounts = {name: (name, "sum") for name in _SUMS}
    left = both.groupby(_OF_SUM, as_index=False).agg(is_taken=("is_taken", "any"), **amounts)
    return left.loc[~(left["is_taken"] & left[_SUMS].eq(0).all(axis=1)), _SAME_LINE]


def _rows(night: MonthNight, *, account: tuple[str, str]) -> pa.Table:
    """The lines of a night; `is_summed`: a row that stands for many."""
    rows = table_of(night, "settlement", account=account, columns=(*_SAME_LINE, "source"))
    is_summed = pc.equal(rows["source"].cast(pa.string()), OLDER)
    for name in ("entry_type", "currency"):
        # Two nights' words have dictionaries of their own; texts are compared.
        column = rows.schema.get_field_index(name)
        words = rows[name].cast(pa.string())
        rows = rows.set_column(column, pa.field(name, pa.string(), nullable=False), words)
    return rows.drop_columns(["source"]).append_column("is_summed", is_summed)


def _distinct(rows: pa.Table, *, by_batch: pa.Table) -> tuple[pa.Table, pa.Array]:
    """Each line of a night once, how often it is there, and the sums of its batch.

    And all of that as one text, by which lines of two nights are held against each other.
    """
    lines = _as_text(rows, _OF_LINE).dictionary_encode()
    codes = lines.indices.to_numpy()
    times = np.bincount(codes, minlength=len(lines.dictionary))
    first = np.empty(len(times), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    once = rows.take(pa.array(first)).append_column("times", pa.array(times, pa.int64()))
    batches = _as_text(by_batch, _GROUP)
    of_batch = pc.index_in(_as_text(once, _GROUP), value_set=batches)
    for name in (*_OF_BATCH[len(_GROUP) :], "is_summed_any"):
        once = once.append_column(name, by_batch[name].take(of_batch))
    whole = _as_text(by_batch, [*_OF_BATCH[len(_GROUP) :], "is_summed_any"]).take(of_batch)
    parts = (lines.dictionary, pc.cast(pa.array(times), pa.string()), whole)
    return once, pc.binary_join_element_wise(*parts, _BETWEEN)


def _as_text(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """Some columns of each row as one text."""
    words = (rows[name].cast(pa.string()) for name in names)
    return pc.binary_join_element_wise(*words, _BETWEEN).combine_chunks()


def _alike(groups: pd.DataFrame, *, newest: int) -> pd.DataFrame:
    """The nights of each batch that had it with the sums of the newest night.

    From the first of them on nothing of the batch is news, whichever of its lines stand alone.
    """
    return groups.merge(groups.loc[groups["number"].eq(newest), _OF_BATCH], on=_OF_BATCH)


def _chosen(groups: pd.DataFrame, *, alike: pd.DataFrame, newest: int) -> dict[int, list[str]]:
    """Night -> the batches that count as it told them: the last one that had them line by line."""
    now, whole = groups[groups["number"].eq(newest)], alike[~alike["is_summed_any"]]
    chosen = pd.concat(
        [now[[*_GROUP, "number"]].assign(rank=0), whole[[*_GROUP, "number"]].assign(rank=1)]
    )
    chosen = chosen.sort_values([*_GROUP, "rank", "number"]).drop_duplicates(_GROUP, keep="last")
    batch = chosen["batch_id"] + _BETWEEN + chosen["settled_on"] + _BETWEEN + chosen["currency"]
    return {int(night): [*rows] for night, rows in batch.groupby(chosen["number"])}


def _lines(
    nights: Sequence[MonthNight], *, account: tuple[str, str], chosen: dict[int, list[str]]
) -> Iterator[pa.Table]:
    """The rows of the chosen batches, night by night; the newest one is read in any case."""
    for night in nights:
        if night.number not in chosen and night is not nights[-1]:
            continue
        rows = _rows(night, account=account)
        names = pa.array(chosen.get(night.number, []), pa.string())
        yield rows.filter(pc.is_in(_as_text(rows, _GROUP), value_set=names)).select(_OF_LINE)
