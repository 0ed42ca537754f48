"""Builds the file `items`: the set, state and result of every classified row, with its identifiers.

Sets that their match describes completely are left out (see `reported_by_match`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.matching.breaks.result_rows import not_compared_rows
from recon.matching.cash.result import CashResult, cash_items
from recon.matching.classifying.outcomes import Outcomes
from recon.matching.engine import Classified
from recon.matching.frames.arrays import (
    Arrays,
    Column,
    filled,
    stacked,
    texts,
)
from recon.matching.frames.coding import equals
from recon.matching.frames.grouping import Bools, Rows, count, present
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT_KEY
from recon.matching.frames.versions import CONFLICT, NEW
from recon.matching.sets.joined_sets import NO_SET, Joined
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
from recon.proof.night_tables import table_of

SET_KINDS = ("order", "transaction", "entry", "payout")
"""Names of BY_ORDER, BY_TRANSACTION, BY_ENTRY and BY_PAYOUT, by their numbers."""
EXACT = "exact"
"""Rule of a match whose sides agree without any flag."""
GROUP = "group"
"""Kind of a group of fees, reserves or payouts."""
NOT_COMPARED = "not_compared"
"""Kind of the set of an entry that has nothing to be compared with."""
_IDENTITY = (
    *("merchant_id", "account_id", "order_no", "transaction_id", "reference_no", "entry_id"),
    "currency",
)


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
    pieces = [*_items_of_sets(joined, outcomes=outcomes, ledger=ledger), *cash_items(cash)]
    by = ("source", *ACCOUNT_KEY, "state")
    names = (*by, "items", "net")
    sums = stacked(pieces, names=names).frame(*names).groupby([*by])[["items", "net"]].sum()
    sides = sums.reset_index().rename(columns={"items": "count", "net": "amount"})
    return sides.astype(dict.fromkeys(by, "str"))


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
    joined, outcomes, size = classified.joined, classified.outcomes, classified.joined.keys.size
    flags, ids = (classified.rows[name][:size] for name in ("flags", "identity"))
    by_match = reported_by_match(joined, outcomes=outcomes, flags=flags, sources=sources)
    bears = np.where(outcomes.primary >= 0, outcomes.primary, np.arange(size))
    columns = {
        "set_kind": np.array(SET_KINDS, dtype=object)[joined.sets["kind"]],
        "set_id": ids,
        "set_currency": joined.sets["currency"],
        "state": outcomes.states(),
        "result_id": ids[bears],
        "set_key": joined.sets["key"],
    }
    # A set that continues the id of an earlier break cannot be found by its order.
    silent = np.append(by_match & (ids == classified.first_ids), np.False_)
    of = {name: np.where(silent[own], NO_SET, own) for name, own in joined.keys.of.items()}
    pieces = [*_pieces(sources, joined=joined, of=of, sets=Arrays(columns, size=size))]
    if classified.cash is not None:
        pieces += _of_groups(classified.cash, ledger=sources.ledger)
    names = [name for name in SCHEMAS["items"].columns.names if name != "items"]
    rows = pd.concat(pieces, ignore_index=True)
    return table_of(rows.groupby(names, sort=False)["items"].sum().reset_index(), name="items")


def _pieces(
    others: Sources,
    *,
    joined: Joined,
    of: Mapping[str, Rows],
    sets: Arrays,
) -> Iterator[pd.DataFrame]:
    orders, gateway = others.orders, others.gateway
    in_scope = np.isin(joined.orders.versions, (NEW, CONFLICT))
    yield _part("orders", orders, of=of["orders"], in_scope=in_scope, sets=sets)
    is_named = equals(gateway["answer"], KeyAnswer.FOUND)
    in_scope = is_named & np.isin(joined.gateway.versions, (NEW, CONFLICT))
    yield _part("gateway", gateway, of=of["gateway"], in_scope=in_scope, sets=sets)
    if others.ledger is not None:
        # An entry counts in the currency of its transaction.
        ledger = others.ledger.assign(currency=booked_currency(others.ledger))
        in_scope = np.isin(joined.ledger.versions, (NEW, CONFLICT))
        yield _part("ledger", ledger, of=of["ledger"], in_scope=in_scope, sets=sets)
        yield _alone(others.ledger, joined=joined)
    if others.instructions is not None:
        moves = others.instructions.assign(entry_id=others.instructions["instruction_id"])
        every = np.ones(len(moves), dtype=np.bool_)
        yield _part("instructions", moves, of=of["instructions"], in_scope=every, sets=sets)
    if others.settlement is not None:
        lines = others.settlement[of_payments(others.settlement)]
        every = np.ones(len(lines), dtype=np.bool_)
        yield _part("settlement", lines, of=of["settlement"], in_scope=every, sets=sets)
    payouts = _payouts(others)
    every = np.ones(len(payouts), dtype=np.bool_)
    yield _part("payouts", payouts, of=joined.payouts["set"], in_scope=every, sets=sets)


def _payouts(sources: Sources) -> pd.DataFrame:
    """Return our payouts in the order of Joined.payouts."""
    pieces = [pd.DataFrame({name: pd.Series(dtype="str") for name in _IDENTITY})]
    if sources.instructions is not None:
        rows = sources.instructions
        left = (*CONFIRMED_STATES, *DOUBTFUL_STATES, *REJECTED_STATES)
        ours = rows[equals(rows["state"], *left) & equals(rows["kind"], InstructionKind.PAYOUT)]
        pieces.append(ours.assign(entry_id=ours["instruction_id"], reference_no=""))
    return pd.concat([piece[[*_IDENTITY]] for piece in pieces], ignore_index=True)


def _part(
    source: str, frame: pd.DataFrame, *, of: Rows, in_scope: Bools, sets: Arrays
) -> pd.DataFrame:
    """Return the rows of one source that are in a set."""
    rows = np.flatnonzero(of >= 0)
    named = frame.reindex(columns=[*_IDENTITY], fill_value="").iloc[rows].reset_index(drop=True)
    own = sets.take(of[rows]).columns
    return named.assign(**own, source=source, items=in_scope[rows].astype(np.int64))


def _alone(ledger: pd.DataFrame, *, joined: Joined) -> pd.DataFrame:
    """Return entries outside the sets: each is a match of its own."""
    rows = not_compared_rows(ledger, versions=joined.ledger.versions)
    alone = not_compared(ledger) & (joined.ledger.versions == NEW)
    named = rows.frame(*(name for name in _IDENTITY if name != "reference_no"))
    return named.assign(
        reference_no=texts(ledger["reference_no"])[alone],
        source="ledger",
        state=SetState.MATCHED.value,
        set_kind=NOT_COMPARED,
        set_id=rows["match_id"],
        result_id=rows["match_id"],
        set_currency=rows["currency"],
        set_key=rows["entry_id"],
        items=1,
    )


def _of_groups(cash: CashResult, *, ledger: pd.DataFrame | None) -> Iterator[pd.DataFrame]:
    """Yield the items of groups: entries one by one, lines under the name of their group."""
    for items in cash_items(cash):
        found = cash.found.take(items["group"])
        names = ("order_no", "transaction_id", "reference_no")
        named: dict[str, Any] = {**dict.fromkeys(names, ""), "entry_id": found["entry_id"]}
        if ledger is not None and {*items["source"]} == {"ledger"}:
            named = {name: texts(ledger[name])[items["row"]] for name in named}
        yield items.frame(*ACCOUNT_KEY, "source", "items").assign(
            **named,
            set_id=found["id"],
            result_id=found["id"],
            set_kind=GROUP,
            set_key=found["entry_id"],
            set_currency=found["currency"],
            state=found["state"],
        )
