"""Builds the sets and joins all sides of each set into one table, on which sets are classified.

It also has the net per side, set and currency, which effects and control totals sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.arrays import Arrays, Column, among, stacked, texts
from recon.matching.frames.coding import equals, is_among, keyed, label_of, numbered
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints, Rows, present, total
from recon.matching.frames.sources import (
    FEE_GAP,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Previous,
    Sources,
    frame_of,
)
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.frames.versions import CONFLICT, Versions
from recon.matching.sides.gateway_side import NUMBER, gateway_side
from recon.matching.sides.instruction_side import instruction_side, of_other_currency
from recon.matching.sides.ledger_side import (
    CLASSIFIED,
    are_compared,
    entry_versions,
    ledger_side,
    marked_as,
)
from recon.matching.sides.orders_side import Side, orders_side
from recon.matching.sides.payouts import Payouts, payout_facts, payouts_of
from recon.matching.sides.settlement_side import (
    first_days_reported,
    of_payments,
    settled_items,
    settlement_side,
)
from recon.model.terms import InstructionKind, Quarantined

NO_SET = -1
BY_ORDER, BY_TRANSACTION, BY_ENTRY, BY_PAYOUT = range(4)
ID_COLUMNS = ("transaction_id", "reference_no", "entry_id")


@dataclass(frozen=True, slots=True)
class SetKeys:
    """The sets, and for each source the set of each of its rows."""

    frame: Arrays
    """One row per set: merchant_id, account_id, order_no ("" if none), key, kind, account."""
    of: Mapping[str, Rows]
    ambiguous: Bools
    accounts: Mapping[str, Rows]
    """Source -> for each of its rows the number of merchant and account."""

    @property
    def size(self) -> int:
        """Number of sets."""
        return len(self.frame)


def build_sets(sources: Mapping[str, pd.DataFrame], *, payouts: Arrays) -> SetKeys:
    """Number the sets of all sources.

    Args:
        sources: rows that belong to sets: merchant_id, account_id, order_no and, where the source
            has them, ID_COLUMNS.
        payouts: the sets of payouts, numbered last.
    """
    names = (*KEY_COLUMNS, *ID_COLUMNS)
    tables = [frame.reindex(columns=[*names], fill_value="") for frame in sources.values()]
    rows = pd.concat(tables, ignore_index=True)
    accounts, account_keys = keyed(rows, by=ACCOUNT)
    rows = rows.assign(account=accounts, set=NO_SET)
    chosen = rows.loc[rows["order_no"].ne(""), [*KEY_COLUMNS, "account"]]
    chosen = chosen.assign(set=numbered(chosen, by=["account", "order_no"]))
    chosen = chosen.assign(key=chosen["order_no"], kind=BY_ORDER)
    rows.loc[chosen.index, "set"] = chosen["set"]
    first = [chosen.drop_duplicates("set")]
    size, ambiguous = len(first[0]), list[int]()
    for column in ("transaction_id", "reference_no"):
        ambiguous += _join(rows, by=column)
    for column, kind in (("transaction_id", BY_TRANSACTION), ("entry_id", BY_ENTRY)):
        _join(rows, by="reference_no")
        alone = rows[rows["set"].eq(NO_SET)]
        if kind == BY_TRANSACTION:
            alone = alone[alone[column].ne("")]
        key = alone[column].where(alone[column].ne(""), alone["reference_no"])
        alone = alone.assign(key=key, kind=kind)
        alone = alone.assign(set=size + numbered(alone, by=["account", "key"]))
        rows.loc[alone.index, "set"] = alone["set"]
        first.append(alone.drop_duplicates("set"))
        size += len(first[-1])
    sets = pd.concat(first)
    number = {account: at for at, account in enumerate(account_keys)}
    of_payouts = payouts.rows("merchant_id", "account_id")
    account = [number.setdefault(own, len(number)) for own in of_payouts]
    behind = payouts.assign(kind=BY_PAYOUT, account=np.array(account, dtype=np.intp))
    named = {name: label_of(sets[name]) for name in ACCOUNT}
    named |= {name: texts(sets[name]) for name in ("order_no", "key")}
    named |= {name: sets[name].to_numpy() for name in ("kind", "account")}
    every = stacked([Arrays(named, size=size), behind], names=(*named,))
    is_ambiguous = np.zeros(len(every), dtype=np.bool_)
    is_ambiguous[rows.loc[ambiguous, "set"]] = True
    ends = np.cumsum([*map(len, tables)])[:-1]
    of, account_of = (
        dict(zip(sources, np.split(column, ends), strict=True))
        for column in (rows["set"].to_numpy(dtype=np.intp), accounts)
    )
    return SetKeys(every, of, is_ambiguous, account_of)


def _join(rows: pd.DataFrame, *, by: str) -> list[int]:
    """Join rows without a set to the one of their account that has their id, in place.

    Returns:
        The rows that several sets fit.
    """
    free = rows[rows["set"].eq(NO_SET) & rows[by].ne("")]
    if free.empty:
        return []
    known = rows[rows["set"].ne(NO_SET) & is_among(rows[by], free[by])]
    known = known.drop_duplicates(["account", by, "set"])
    fitting = known.groupby(["account", by])["set"].agg(["size", "first"])
    fits = free.join(fitting, on=["account", by])
    single = fits[fits["size"].eq(1)]
    rows.loc[single.index, "set"] = single["first"].astype("int64")
    return fits.index[fits["size"].gt(1)].tolist()


_SOURCES = (
    *("orders", "gateway", "ledger", "instructions", "settlement"),
    *("rejects", "quarantined", "universe", "chargebacks"),
)
"""Sources that may name a set, in the order in which sets are numbered."""
SIDES = ("order", "gateway", "ledger", "payout")


@dataclass(frozen=True, slots=True)
class Joined:
    """The sets with the data of all sides."""

    sets: Arrays
    """One row per set, amounts in the set's currency."""
    nets: Arrays
    """One row per set and currency (see nets_of)."""
    orders: Side
    gateway: Side
    ledger: Side
    keys: SetKeys
    covered: bool
    """Whether a ledger was given."""
    payouts: Arrays
    """See payouts.Payouts.items; `set` counts as in `sets`."""
    settled: Arrays
    """One row per settlement line about a payment: row, set, currency, amount, net."""


def join_sides(sources: Sources, *, rules: Rules, previous: Previous | None) -> Joined:
    """Build the sets and join their sides.

    Args:
        sources: the rows.
        rules: the status map, rates and fees.
        previous: earlier chargebacks, and entries that are no longer there.
    """
    ledger = sources.ledger
    covered = ledger is not None
    if ledger is None:
        ledger = frame_of([], columns=LEDGER_COLUMNS)
    versions = entry_versions(ledger)
    frames = _frames(sources, previous=previous)
    keys, payouts = _keys(sources, ledger=ledger, versions=versions, frames=frames)
    size, first = keys.size, keys.size - len(payouts.frame)
    orders = orders_side(sources.orders, sets=keys.of["orders"], size=size)
    gateway = gateway_side(
        sources.gateway,
        sets=keys.of["gateway"],
        accounts=keys.accounts["gateway"],
        size=size,
        rules=rules,
    )
    booked_side = ledger_side(
        ledger, versions=versions, sets=keys.of["ledger"], size=size, rules=rules
    )
    ours = instruction_side(sources.instructions, sets=keys.of["instructions"], size=size)
    lines, settled = _settlement(sources, keys=keys)
    paid = payout_facts(payouts, first=first, size=size)
    sides = (keys.frame, orders.sets, gateway.sets, booked_side.sets)
    columns = {name: column for side in sides for name, column in side.columns.items()}
    sets = Arrays({**columns, **ours, **settled, **paid}, size=size)
    paid_items = payouts.items.assign(set=payouts.items["set"] + first)
    items = {"order": orders.items, "gateway": gateway.items, "ledger": booked_side.items}
    nets = nets_of({**items, "payout": paid_items})
    _put_together(sets, nets=nets, sources=sources, keys=keys)
    sets.columns["entry_vanished"] = _of_vanished(sets, previous=previous)
    return Joined(sets, nets, orders, gateway, booked_side, keys, covered, paid_items, lines)


def _frames(sources: Sources, *, previous: Previous | None) -> dict[str, pd.DataFrame]:
    """Return the frames whose rows may name a set, by _SOURCES."""
    rejects = [row for row in sources.rejects if all(attrgetter(*KEY_COLUMNS)(row))]
    named = [row for row in sources.quarantined if row.names_its_key]
    rejected, waiting = (
        pd.DataFrame(
            [attrgetter(*KEY_COLUMNS)(row) for row in rows], columns=[*KEY_COLUMNS], dtype="str"
        )
        for rows in (rejects, named)
    )
    frames: dict[str, pd.DataFrame | None] = {
        **{name: getattr(sources, name) for name in _SOURCES[:5]},
        "rejects": rejected,
        "quarantined": waiting if sources.quarantined else None,
        "universe": sources.universe,
        "chargebacks": None if previous is None else previous.chargebacks,
    }
    if sources.instructions is not None:
        # One that names neither order nor payment gets a set of its own, not one with similar rows.
        ids = sources.instructions["instruction_id"]
        frames["instructions"] = sources.instructions.assign(entry_id=ids)
    return {name: frame for name, frame in frames.items() if frame is not None}


def _put_together(sets: Arrays, *, nets: Arrays, sources: Sources, keys: SetKeys) -> None:
    """Add what needs all sides: the currency of a set, its nets and its evidence."""
    currency = _currency(sets)
    sets.columns |= {"currency": currency, **primary(nets, currency=currency)}
    sets.columns["key_ambiguous"] = keys.ambiguous
    sets.columns["moves_foreign"] = of_other_currency(
        sources.instructions, sets=keys.of["instructions"], currency=currency
    )
    _mark_evidence(sets, sources=sources, keys=keys)


def _settlement(sources: Sources, *, keys: SetKeys) -> tuple[Arrays, dict[str, Column]]:
    """Return the lines of payments, and the settled amounts of every set."""
    settlement, first_days = sources.settlement, sources.first_days
    if settlement is None:
        settlement = frame_of([], columns={**SETTLEMENT_COLUMNS, FEE_GAP: "int64"})
    if first_days is None:
        first_days = first_days_reported(settlement)
    lines = settled_items(settlement, sets=keys.of["settlement"])
    gaps = settlement[FEE_GAP].to_numpy(dtype=np.int64)[lines["row"]]
    return lines, settlement_side(
        lines, gaps=gaps, sets=keys.frame, first_days=first_days, days=sources.settled
    )


def _keys(
    sources: Sources,
    *,
    ledger: pd.DataFrame,
    versions: Versions,
    frames: Mapping[str, pd.DataFrame],
) -> tuple[SetKeys, Payouts]:
    """Return the numbered sets, those of the payouts last."""
    classified = marked_as(ledger, CLASSIFIED)
    belongs = (are_compared(ledger) | (versions == CONFLICT)) & ~classified
    payouts = payouts_of(sources, classified=classified)
    moves, settlement = sources.instructions, sources.settlement
    alone = np.zeros(0, dtype=np.bool_)
    if moves is not None:
        alone = equals(moves["kind"], InstructionKind.PAYOUT)
    # Of other sources all rows belong to sets.
    counted: dict[str, Bools] = {
        "ledger": belongs,
        "instructions": ~alone,
        "settlement": alone if settlement is None else of_payments(settlement),
    }
    mine = {
        name: frame[counted[name]] if name in counted else frame for name, frame in frames.items()
    }
    keys = build_sets(mine, payouts=payouts.frame)
    size = keys.size - len(payouts.frame)
    of = {**dict.fromkeys(_SOURCES, np.zeros(0, dtype=np.intp)), **keys.of}
    entry_sets = np.full(len(ledger), NO_SET, dtype=np.intp)
    entry_sets[belongs] = of["ledger"]
    entry_sets[classified] = payouts.ledger[classified] + size
    move_sets = np.where(payouts.instructions < 0, NO_SET, payouts.instructions + size)
    move_sets[~alone] = of["instructions"]
    of |= {"ledger": entry_sets, "instructions": move_sets.astype(np.intp)}
    return replace(keys, of=of), payouts


def _currency(sets: Arrays) -> Column:
    """Return each set's currency: of order, gateway, payout, ledger, settlement, instruction."""
    currency = sets["order_currency"]
    for side in ("gateway", "payout", "ledger", "settled", "instruction"):
        currency = np.where(currency != "", currency, sets[f"{side}_currency"])
    return currency


def _mark_evidence(sets: Arrays, *, sources: Sources, keys: SetKeys) -> None:
    """Add what makes a set unverified: quarantined rows and answers without usable content."""
    size = keys.size
    is_known = sets["gateway_state"] != NUMBER["none"]
    failed = sets["answer_failed"] & ~is_known
    if sources.universe is not None:
        # Without a query for a key the gateway's silence is no denial, whoever names the key.
        answered = _with_rows(keys.of["gateway"], size=size)
        failed |= ~answered & (sets["kind"] == BY_ORDER)
    unmapped = sets["answer_unmapped"] & ~is_known & ~failed
    sets.columns |= {
        "quarantined": _with_rows(keys.of["rejects"], size=size)
        | _with_rows(keys.of["quarantined"], size=size)
        | _partly_named(sets, rows=sources.quarantined),
        "chargeback_before": sets["chargeback_before"]
        | _with_rows(keys.of["chargebacks"], size=size),
        "orders_lack": _may_be_reported(sets["transaction_date"], since=sources.orders_lack_since),
        "no_answer": failed,
        "answer_unmapped_only": unmapped,
        "gateway_state": np.where(failed | unmapped, NUMBER["unverified"], sets["gateway_state"]),
    }


def _may_be_reported(paid: Ints, *, since: datetime | None) -> Bools:
    """Mark payments that a missing order file may contain; without a date all of them."""
    if since is None:
        return np.zeros(len(paid), dtype=np.bool_)
    covered = pd.Timestamp(since).value // 1_000
    return np.asarray((paid == NO_INSTANT) | (paid > covered), dtype=np.bool_)


def _of_vanished(sets: Arrays, *, previous: Previous | None) -> Bools:
    """Mark sets whose order had a ledger entry that is no longer there."""
    vanished: set[tuple[str, ...]] = set()
    if previous is not None:
        vanished = {*previous.vanished[[*KEY_COLUMNS]].itertuples(index=False, name=None)}
    marked = among(sets["order_no"], {order_no for *_, order_no in vanished} - {""})
    rows = np.flatnonzero(marked)
    keys = sets.take(rows).rows(*KEY_COLUMNS) if len(rows) else ()
    marked[rows] = [key in vanished for key in keys]
    return np.asarray(marked, dtype=np.bool_)


def _partly_named(sets: Arrays, *, rows: Sequence[Quarantined]) -> Bools:
    """Mark sets without an order whose number a quarantined row with an incomplete key has."""
    numbers = {row.order_no for row in rows if row.order_no and not row.names_its_key}
    if not numbers:
        return np.zeros(len(sets), dtype=np.bool_)
    return np.asarray(among(sets["order_no"], numbers) & (sets["order_state"] == 0), np.bool_)


def _with_rows(rows: Rows, *, size: int) -> Bools:
    return present(np.ones(len(rows), dtype=np.bool_), groups=rows, size=size)


def event_instants(sets: Arrays) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return when each set began: ordered, else paid, booked, instructed or paid out."""
    instants = sets["ordered_at"]
    for column in ("transaction_date", "booked_at", "instructed_at", "payout_at"):
        instants = np.where(instants == NO_INSTANT, sets[column], instants)
    return instants


def nets_of(items: Mapping[str, Arrays]) -> Arrays:
    """Return one row per set and currency that any side has.

    Columns: set, currency, and for each side `<side>_net` (minor units, 0 when absent).
    """
    sets = np.concatenate([items[side]["set"] for side in SIDES])
    named = np.concatenate([items[side]["currency"] for side in SIDES])
    net = np.concatenate([items[side]["net"] for side in SIDES])
    ends = np.cumsum([len(items[side]) for side in SIDES]).tolist()
    codes, currencies = pd.factorize(named, sort=True)
    width = max(len(currencies), 1)
    groups, known = pd.factorize(sets * width + codes)
    columns: dict[str, Column] = {"set": known // width}
    columns["currency"] = currencies[known % width] if len(known) else named[:0]
    for side, start, end in zip(SIDES, [0, *ends[:-1]], ends, strict=True):
        mine = slice(start, end)
        columns[f"{side}_net"] = total(net[mine], groups=groups[mine], size=len(known))
    return Arrays(columns, size=len(known))


def primary(nets: Arrays, *, currency: Column) -> dict[str, Ints]:
    """Return the nets of each set in its own currency, and its number of currencies."""
    size, sets = len(currency), nets["set"]
    own = nets["currency"] == currency[sets]
    columns = {}
    for side in SIDES:
        column = np.zeros(size, dtype=np.int64)
        column[sets[own]] = nets[f"{side}_net"][own]
        columns[f"{side}_net"] = column
    columns["currencies"] = np.bincount(sets, minlength=size).astype(np.int64)
    booked = sets[nets["ledger_net"] != 0]
    columns["ledger_any"] = (np.bincount(booked, minlength=size) > 0).astype(np.int64)
    return columns
