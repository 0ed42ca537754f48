"""Builds the file `items`: the set, state and result of every classified row, with its identifiers.

Sets that their match describes completely are left out (see `reported_by_match`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import SCHEMAS
from recon.matching.breaks.result_rows import first_identities, not_compared_rows
from recon.matching.cash.result import CashResult, cash_items
from recon.matching.classifying.outcomes import Outcomes
from recon.matching.engine import Classified
from recon.matching.frames.arrays import (
    Arrays,
    Column,
    arrow_texts,
    filled,
    stacked,
    text_column,
    texts,
)
from recon.matching.frames.coding import equals
from recon.matching.frames.grouping import Bools, Rows, count, present
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT_KEY
from recon.matching.frames.versions import CONFLICT, NEW
from recon.matching.sets.joined_sets import (
    BY_ENTRY,
    BY_ORDER,
    BY_PAYOUT,
    BY_TRANSACTION,
    NO_SET,
    Joined,
)
from recon.matching.sides.gateway_side import NUMBER
from recon.matching.sides.ledger_side import GROUPED, booked_currency, marked_as, not_compared
from recon.matching.sides.orders_side import ORDER_STATES
from recon.matching.sides.settlement_side import of_payments
from recon.model.terms import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    InstructionKind,
    KeyAnswer,
    OrderStatus,
    SetState,
)

SET_KINDS = {
    BY_ORDER: "order",
    BY_TRANSACTION: "transaction",
    BY_ENTRY: "entry",
    BY_PAYOUT: "payout",
}
EXACT = "exact"
"""Rule of a match whose sides agree without any flag."""
GROUP = "group"
"""Kind of a group of fees, reserves or payouts."""
NOT_COMPARED = "not_compared"
"""Kind of the set of an entry that has nothing to be compared with."""
_SCHEMA = SCHEMAS["items"].columns
_NAMES = _SCHEMA.names
_IDENTITY = (
    *("merchant_id", "account_id", "order_no", "transaction_id", "reference_no", "entry_id"),
    "currency",
)
_RESULT_COLUMNS = ("set_kind", "set_id", "set_currency", "state", "result_id", "set_key")
Labels: TypeAlias = Column | pa.Array | pa.ChunkedArray
"""A column of texts, as numpy or as Arrow array."""


def reported_by_match(
    joined: Joined, *, outcomes: Outcomes, flags: Column, sources: Sources
) -> Bools:
    """Mark sets that their match describes completely: one plain row per source, of its amount."""
    sets, of, size = joined.sets, joined.keys.of, joined.keys.size
    plain = (outcomes.states() == SetState.MATCHED.value) & (flags == "")
    plain &= (outcomes.classified.of_each("rule") == EXACT) & (outcomes.primary < 0)
    plain &= sets["order_state"] == ORDER_STATES.index(OrderStatus.PAID)
    plain &= (sets["gateway_state"] == NUMBER["paid"]) & (sets["gateway_refunded"] == 0)
    plain &= (sets["currencies"] == 1) & (sets["order_net"] > 0)
    plain &= sets["order_net"] == sets["gateway_net"]
    amounts = {"ledger": "ledger_capture", "settlement": "settled_gross"}
    for leg in ("orders", "gateway", *amounts):
        frame = getattr(sources, leg)
        if frame is None:
            continue
        rows = of_payments(frame) if leg == "settlement" else np.ones(len(frame), dtype=np.bool_)
        keyed = frame["order_no"].ne("").to_numpy(dtype=np.bool_)[rows]
        plain &= count(np.ones(len(keyed), np.bool_), groups=of[leg], size=size) == 1
        plain &= present(keyed, groups=of[leg], size=size)
        if leg in amounts:
            plain &= sets[amounts[leg]] == sets["order_net"]
    named = np.ones(len(of["instructions"]), dtype=np.bool_)
    return np.asarray(plain & ~present(named, groups=of["instructions"], size=size))


def sides_of(
    joined: Joined, *, outcomes: Outcomes, ledger: pd.DataFrame | None, cash: CashResult | None
) -> pd.DataFrame:
    """Return count and net of all items in scope by source, account, currency and state.

    Args:
        joined: the sets.
        outcomes: their outcomes.
        ledger: for the entries outside the sets.
        cash: the groups.
    """
    parts = [*_items_of_sets(joined, outcomes=outcomes, ledger=ledger), *cash_items(cash)]
    by = ("source", *ACCOUNT_KEY, "state")
    rows = stacked(parts, names=(*by, "items", "net")).columns
    frame = pd.DataFrame({**rows, **{name: text_column(rows[name]) for name in by}})
    sums = frame.groupby([*by])[["items", "net"]].sum().reset_index()
    return sums.rename(columns={"items": "count", "net": "amount"})


def _items_of_sets(
    joined: Joined, *, outcomes: Outcomes, ledger: pd.DataFrame | None
) -> Iterator[Arrays]:
    """Yield the items of sets: source, ACCOUNT_KEY, state, items (1), net as compared."""
    sides = {
        "orders": joined.orders.items,
        "gateway": joined.gateway.items,
        "ledger": joined.ledger.items,
        "payouts": joined.payouts,
        "settlement": joined.settled,
    }
    states = outcomes.states()
    for source, items in sides.items():
        size, sets = len(items), items["set"]
        columns = {
            **{name: joined.sets[name][sets] for name in ("merchant_id", "account_id")},
            **{name: items[name] for name in ("currency", "net")},
            "source": filled(source, size=size),
            "state": states[sets],
            "items": np.ones(size, dtype=np.int64),
        }
        yield Arrays(columns, size=size)
    if ledger is not None:
        yield _not_compared(joined, ledger=ledger)


def _not_compared(joined: Joined, *, ledger: pd.DataFrame) -> Arrays:
    """Return entries outside the sets: matched, with nothing to be compared with."""
    outside = np.isin(joined.ledger.versions, (NEW, CONFLICT))
    outside[joined.ledger.items["row"]] = False
    outside &= ~marked_as(ledger, GROUPED)
    rows = np.flatnonzero(outside)
    size = len(rows)
    columns = {
        **{name: texts(ledger[name])[rows] for name in ("merchant_id", "account_id")},
        "currency": texts(booked_currency(ledger))[rows],
        "source": filled("ledger", size=size),
        "state": filled(SetState.MATCHED.value, size=size),
        "items": np.ones(size, dtype=np.int64),
        "net": np.zeros(size, dtype=np.int64),
    }
    return Arrays(columns, size=size)


def items_table(classified: Classified, *, sources: Sources) -> pa.Table:
    """Return the table of Reconciliation.items.

    It has one row for all rows of a source with the same identifiers. Rows that a newer one
    replaced are included, and count as no item.
    """
    joined, outcomes, cash = classified.joined, classified.outcomes, classified.cash
    flags, states = classified.rows["flags"][: joined.keys.size], outcomes.states()
    by_match = reported_by_match(joined, outcomes=outcomes, flags=flags, sources=sources)
    ids = dict(classified.rows.take(classified.rows["own"]).rows("identity", "set"))
    sets, is_first = _results_of_sets(joined, states=states, primaries=outcomes.primary, ids=ids)
    # A set that continues the id of an earlier break cannot be found by its order.
    silent = np.append(by_match & is_first, np.False_)
    of = {name: np.where(silent[own], NO_SET, own) for name, own in joined.keys.of.items()}
    of_sets = _one_table(_parts(sources, joined=joined, of=of, sets=sets))
    groups = () if cash is None else _of_groups(cash, ledger=sources.ledger)
    return pa.concat_tables([of_sets, _summed(_one_table(groups))])


def _one_table(parts: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([_SCHEMA.empty_table(), *(part for part in parts if part.num_rows)])


def _summed(rows: pa.Table) -> pa.Table:
    """Merge equal rows, adding up their items."""
    if not rows.num_rows:
        return rows
    by = [name for name in _NAMES if name != "items"]
    plain = pa.table({name: _text(rows[name]) for name in by} | {"items": rows["items"]})
    summed = plain.group_by(by, use_threads=False).aggregate([("items", "sum")])
    return _table({**{name: summed[name] for name in by}, "items": summed["items_sum"]})


def _results_of_sets(
    joined: Joined, *, states: Column, primaries: Rows, ids: Mapping[str, int]
) -> tuple[dict[str, pa.Array], Bools]:
    """Return the names and states of each set, and whether its id is the first of its key."""
    size, sets = joined.keys.size, joined.sets
    names = filled("", size=size)
    names[[*ids.values()]] = [*ids]
    kinds = filled("", size=size)
    for kind, label in SET_KINDS.items():
        kinds[sets["kind"] == kind] = label
    first, own = _text(first_identities(sets)), _text(names)
    # A set without an id gets its first one.
    set_ids = pc.if_else(pc.equal(own, ""), first, own)
    columns: dict[str, Labels] = {
        "set_kind": kinds,
        "set_id": set_ids,
        "set_currency": sets["currency"],
        "state": np.asarray(states, dtype=object),
        "result_id": set_ids.take(pa.array(np.where(primaries >= 0, primaries, np.arange(size)))),
        "set_key": sets["key"],
    }
    is_first = np.asarray(pc.equal(set_ids, first), dtype=np.bool_)
    return {name: _typed(column, name=name) for name, column in columns.items()}, is_first


def _parts(
    rest: Sources,
    *,
    joined: Joined,
    of: Mapping[str, Rows],
    sets: Mapping[str, pa.Array],
) -> Iterator[pa.Table]:
    orders, gateway = rest.orders, rest.gateway
    in_scope = np.isin(joined.orders.versions, (NEW, CONFLICT))
    yield _part("orders", orders, of=of["orders"], in_scope=in_scope, sets=sets)
    is_named = equals(gateway["answer"], KeyAnswer.FOUND)
    in_scope = is_named & np.isin(joined.gateway.versions, (NEW, CONFLICT))
    yield _part("gateway", gateway, of=of["gateway"], in_scope=in_scope, sets=sets)
    if rest.ledger is not None:
        # An entry counts in the currency of its transaction.
        ledger = rest.ledger.assign(currency=booked_currency(rest.ledger))
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
    """Return our payouts in the order of Joined.payouts."""
    parts = [pd.DataFrame({name: pd.Series(dtype="str") for name in _IDENTITY})]
    if sources.instructions is not None:
        rows = sources.instructions
        left = (*CONFIRMED_STATES, *DOUBTFUL_STATES, *REJECTED_STATES)
        ours = rows[equals(rows["state"], *left) & equals(rows["kind"], InstructionKind.PAYOUT)]
        parts.append(ours.assign(entry_id=ours["instruction_id"], reference_no=""))
    return pd.concat([part[[*_IDENTITY]] for part in parts], ignore_index=True)


def _part(
    source: str,
    frame: pd.DataFrame,
    *,
    of: Rows,
    in_scope: Bools,
    sets: Mapping[str, pa.Array],
) -> pa.Table:
    """Return the rows of one source that are in a set."""
    rows = np.flatnonzero(of >= 0)
    size, numbers, taken = len(rows), of[rows], pa.array(rows)
    columns: dict[str, Labels] = {
        name: arrow_texts(frame[name]).take(taken)
        if name in frame.columns
        else filled("", size=size)
        for name in _IDENTITY
    }
    columns |= {name: sets[name].take(pa.array(numbers)) for name in _RESULT_COLUMNS}
    columns |= {"source": filled(source, size=size), "items": in_scope[rows].astype(np.int64)}
    table = _table(columns)
    # Rows can be equal only where a set has several of one source.
    crowded = np.bincount(numbers)[numbers] > 1 if size else np.zeros(0, dtype=np.bool_)
    several = _summed(table.filter(pa.array(crowded)))
    return pa.concat_tables([table.filter(pa.array(~crowded)), several])


def _alone(ledger: pd.DataFrame, *, joined: Joined) -> pa.Table:
    """Return entries outside the sets: each is a match of its own."""
    rows = not_compared_rows(ledger, versions=joined.ledger.versions)
    size = len(rows)
    labels = {"source": "ledger", "state": SetState.MATCHED.value, "set_kind": NOT_COMPARED}
    alone = not_compared(ledger) & (joined.ledger.versions == NEW)
    columns = {name: rows[name] for name in _IDENTITY if name != "reference_no"}
    columns["reference_no"] = texts(ledger["reference_no"])[alone]
    columns |= {name: filled(label, size=size) for name, label in labels.items()}
    columns |= {"set_id": rows["match_id"], "result_id": rows["match_id"]}
    columns |= {"set_currency": rows["currency"], "set_key": rows["entry_id"]}
    columns["items"] = np.ones(size, dtype=np.int64)
    return _summed(_table(columns))


def _of_groups(cash: CashResult, *, ledger: pd.DataFrame | None) -> Iterator[pa.Table]:
    """Yield the items of groups: entries one by one, lines under the name of their group."""
    findings = cash.found
    for items in cash_items(cash):
        at, size = items["group"], len(items)
        if not size:
            continue
        columns = {name: items[name] for name in (*ACCOUNT_KEY, "source", "items")}
        names = ("order_no", "transaction_id", "reference_no")
        columns |= {name: filled("", size=size) for name in names}
        columns["entry_id"] = findings["entry_id"][at]
        if ledger is not None and items["source"][0] == "ledger":
            columns |= {name: texts(ledger[name])[items["row"]] for name in (*names, "entry_id")}
        columns |= {"set_id": findings["id"][at], "result_id": findings["id"][at]}
        columns |= {"set_kind": filled(GROUP, size=size), "set_key": findings["entry_id"][at]}
        columns |= {"set_currency": findings["currency"][at], "state": findings["state"][at]}
        yield _table(columns)


def _text(labels: Labels) -> pa.Array:
    """Return texts as one Arrow array without a dictionary."""
    if isinstance(labels, np.ndarray):
        return pa.array(labels, pa.string())
    plain = labels.cast(pa.string())
    return plain.combine_chunks() if isinstance(plain, pa.ChunkedArray) else plain


def _typed(labels: Labels, *, name: str) -> pa.Array:
    """Return the texts in the column's type in the file: dictionary-encoded or plain."""
    kind = _SCHEMA.field(name).type
    if not pa.types.is_dictionary(kind):
        return _text(labels)
    if not isinstance(labels, np.ndarray) and labels.type == kind:
        return labels
    return _text(labels).dictionary_encode().cast(kind)


def _table(columns: Mapping[str, Labels]) -> pa.Table:
    typed = {
        name: _typed(columns[name], name=name) if name != "items" else columns[name]
        for name in _NAMES
    }
    return pa.table(typed, schema=_SCHEMA)
