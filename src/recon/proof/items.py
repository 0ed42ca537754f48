"""Where every judged row went, under the names by which other rows and other engines find it.

Sets that were set aside as exact are not among them: each is one row of the matches.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import SCHEMAS
from recon.matching.breaks.result_rows import identity_of, not_compared_rows
from recon.matching.cash.result import CashResult, cash_items
from recon.matching.exact.aside import Exact
from recon.matching.frames.arrays import Arrays, Column, filled, text_column, texts
from recon.matching.frames.coding import is_word, pieces
from recon.matching.frames.grouping import Bools, Rows
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT_CURRENCY
from recon.matching.frames.versions import CONFLICT, NEW
from recon.matching.sets.joined_sets import Joined
from recon.matching.sets.sets import BY_ENTRY, BY_ORDER, BY_PAYOUT, BY_TRANSACTION
from recon.matching.sides.ledger_side import booked, not_compared
from recon.matching.sides.settlement_side import of_payments
from recon.model.words import KeyAnswer, SetState
from recon.proof.totals_of_settlement import sent_payouts

SET_KINDS = {
    BY_ORDER: "order",
    BY_TRANSACTION: "transaction",
    BY_ENTRY: "entry",
    BY_PAYOUT: "payout",
}
GROUP = "group"
"""Kind of a group of fees, reserves or pay-outs."""
NOT_COMPARED = "not_compared"
"""Kind of the set of an entry that has nothing to be compared with."""
_NAMES = SCHEMAS["items"].columns.names
_IDENTITY = (
    *("merchant_id", "account_id", "order_no", "transaction_id", "reference_no", "entry_id"),
    "currency",
)
_SET_NAMES = ("merchant_id", "account_id", "set_key")
_PLACED = ("set_kind", "set_id", "set_currency", "state", "result_id", "set_key")


def items_of(
    exact: Exact, *, joined: Joined, states: Column, hosts: Rows, ids: Mapping[str, int]
) -> pd.DataFrame:
    """One row for all rows of a source that name the same things (columns: schema `items`).

    Rows that a newer one replaced are there, too, and count as no item.

    Args:
        exact: what was left for judgement.
        joined: the same in sets.
        states: what each set came to.
        hosts: the set whose break explains a set, else -1.
        ids: the set of each id.
    """
    sets = _placed(joined, states=states, hosts=hosts, ids=ids)
    parts = (part for part in _parts(exact, joined=joined, sets=sets) if part.num_rows)
    # No two parts have a row in common: each is summed before the next one is made.
    return _frame_of([_summed(part) for part in parts])


def group_items(cash: CashResult | None, *, ledger: pd.DataFrame | None) -> pd.DataFrame:
    """The same for fees, reserves and pay-outs of the settlement, in groups."""
    parts = [] if cash is None else [*_of_groups(cash, ledger=ledger)]
    return _frame_of([_summed(pa.concat_tables(parts))] if parts else [])


def written_items(items: pd.DataFrame) -> pd.DataFrame:
    """The items as their file has them: blank where a column says what others say already.

    `proof/sql/rows.sql` has the way back: the set's key is its order number, its id the first of
    account and key, and it is shown under its own id.
    """
    if items.empty:
        return items
    first = identity_of(*(items[name] for name in _SET_NAMES))
    derived = {"result_id": items["set_id"], "set_id": first, "set_key": items["order_no"]}
    return items.assign(
        **{name: _blank_where(items[name], same=cells) for name, cells in derived.items()}
    )


def _blank_where(column: "pd.Series[str]", *, same: "pd.Series[str]") -> "pd.Series[str]":
    """The column, blank in the rows where the other one says the same."""
    words, others = (_words(each) for each in (column, same))
    return text_column(pc.if_else(pc.equal(words, others), "", words))


def _summed(rows: pa.Table) -> pa.Table:
    """One row for all rows that say the same."""
    by = [name for name in _NAMES if name != "items"]
    summed = rows.group_by(by, use_threads=False).aggregate([("items", "sum")])
    return summed.rename_columns({"items_sum": "items"}).select([*_NAMES])


def _frame_of(parts: list[pa.Table]) -> pd.DataFrame:
    if not parts:
        return pd.DataFrame({name: pd.Series(dtype="str") for name in _NAMES})
    items: pd.DataFrame = pa.concat_tables(parts).to_pandas()
    return items


def _placed(joined: Joined, *, states: Column, hosts: Rows, ids: Mapping[str, int]) -> Arrays:
    """What each set is called and what it came to (grain: set)."""
    size = joined.keys.size
    names = filled("", size=size)
    names[[*ids.values()]] = [*ids]
    kinds = filled("", size=size)
    for kind, word in SET_KINDS.items():
        kinds[joined.sets["kind"] == kind] = word
    owners = np.where(hosts >= 0, hosts, np.arange(size))
    columns = {
        "set_kind": kinds,
        "set_id": names,
        "set_currency": joined.sets["currency"],
        "state": np.asarray(states, dtype=object),
        "result_id": names[owners],
        "set_key": joined.sets["key"],
    }
    return Arrays(columns, size=size)


def _parts(exact: Exact, *, joined: Joined, sets: Arrays) -> Iterator[pa.Table]:
    rest = exact.sources
    orders, gateway = rest.orders, rest.gateway
    in_scope = np.isin(joined.orders.versions, (NEW, CONFLICT))
    of = joined.keys.of
    yield _part("orders", orders, of=of["orders"], in_scope=in_scope, sets=sets)
    is_named = is_word(gateway["answer"], KeyAnswer.FOUND)
    in_scope = is_named & np.isin(joined.gateway.versions, (NEW, CONFLICT))
    yield _part("gateway", gateway, of=of["gateway"], in_scope=in_scope, sets=sets)
    if rest.ledger is not None:
        ledger = rest.ledger.assign(currency=booked(rest.ledger).currency)
        in_scope = np.isin(joined.ledger.versions, (NEW, CONFLICT))
        yield _part("ledger", ledger, of=of["ledger"], in_scope=in_scope, sets=sets)
        yield _alone(rest.ledger, joined=joined)
    if rest.instructions is not None:
        moves = rest.instructions.assign(entry_id=rest.instructions["instruction_id"])
        every = np.ones(len(moves), dtype=np.bool_)
        yield _part("instructions", moves, of=of["instructions"], in_scope=every, sets=sets)
    if rest.settlement is not None:
        lines = rest.settlement[of_payments(rest.settlement)]
        every = np.ones(len(lines), dtype=np.bool_)
        yield _part("settlement", lines, of=of["settlement"], in_scope=every, sets=sets)
    payouts = _payouts(rest)
    every = np.ones(len(payouts), dtype=np.bool_)
    yield _part("payouts", payouts, of=joined.payouts["set"], in_scope=every, sets=sets)


def _payouts(sources: Sources) -> pd.DataFrame:
    """Our payouts in the order of Joined.payouts."""
    parts = [pd.DataFrame({name: pd.Series(dtype="str") for name in _IDENTITY})]
    if sources.instructions is not None:
        ours = sources.instructions[sent_payouts(sources.instructions)]
        parts.append(ours.assign(entry_id=ours["instruction_id"], reference_no=""))
    return pd.concat([part[[*_IDENTITY]] for part in parts], ignore_index=True)


def _part(source: str, frame: pd.DataFrame, *, of: Rows, in_scope: Bools, sets: Arrays) -> pa.Table:
    """The rows of one source that are in a set."""
    rows = np.flatnonzero(of >= 0)
    size, numbers, taken = len(rows), of[rows], pa.array(rows)
    columns: dict[str, Column | pa.Array] = {
        name: _words(frame[name]).take(taken) if name in frame.columns else filled("", size=size)
        for name in _IDENTITY
    }
    columns |= {name: sets[name][numbers] for name in _PLACED}
    columns |= {"source": filled(source, size=size), "items": in_scope[rows].astype(np.int64)}
    return _table(columns)


def _alone(ledger: pd.DataFrame, *, joined: Joined) -> pa.Table:
    """Entries that stand outside the sets: each is a match of its own."""
    rows = not_compared_rows(ledger, versions=joined.ledger.versions)
    size = len(rows)
    words = {"source": "ledger", "state": SetState.MATCHED.value, "set_kind": NOT_COMPARED}
    alone = not_compared(ledger) & (joined.ledger.versions == NEW)
    columns = {name: rows[name] for name in _IDENTITY if name != "reference_no"}
    columns["reference_no"] = texts(ledger["reference_no"])[alone]
    columns |= {name: filled(word, size=size) for name, word in words.items()}
    columns |= {"set_id": rows["match_id"], "result_id": rows["match_id"]}
    columns |= {"set_currency": rows["currency"], "set_key": rows["entry_id"]}
    columns["items"] = np.ones(size, dtype=np.int64)
    return _table(columns)


def _of_groups(cash: CashResult, *, ledger: pd.DataFrame | None) -> Iterator[pa.Table]:
    """The items of groups: entries by themselves, lines under the name of their group."""
    findings = cash.findings
    for items in cash_items(cash, ledger=ledger):
        at, size = items["group"], len(items)
        if not size:
            continue
        columns = {name: items[name] for name in (*ACCOUNT_CURRENCY, "source", "items")}
        names = ("order_no", "transaction_id", "reference_no")
        columns |= {name: filled("", size=size) for name in names}
        columns["entry_id"] = findings["key"][at]
        if ledger is not None and items["source"][0] == "ledger":
            columns |= {name: texts(ledger[name])[items["row"]] for name in (*names, "entry_id")}
        columns |= {"set_id": findings["id"][at], "result_id": findings["id"][at]}
        columns |= {"set_kind": filled(GROUP, size=size), "set_key": findings["key"][at]}
        columns |= {"set_currency": findings["currency"][at], "state": findings["state"][at]}
        yield _table(columns)


def _words(column: "pd.Series[str]") -> pa.Array:
    """The texts of a column as Arrow holds them."""
    return pa.chunked_array(pieces(column), pa.large_string()).combine_chunks()


def _table(columns: Mapping[str, Column | pa.Array]) -> pa.Table:
    kinds = {name: pa.int64() if name == "items" else pa.string() for name in _NAMES}
    return pa.table({name: _typed(columns[name], kinds[name]) for name in _NAMES})


def _typed(column: Column | pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.array(column, kind) if isinstance(column, np.ndarray) else column.cast(kind)
