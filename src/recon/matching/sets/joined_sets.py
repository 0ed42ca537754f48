"""Builds the sets and joins all sides of each set into one table, on which sets are classified.

It also has the net per side, set and currency, which effects and control totals sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.frames.arrays import (
    Arrays,
    Column,
    among,
    filled,
    stacked,
    text_column,
    texts,
    texts_at,
)
from recon.matching.frames.coding import NO_KEY, Codes, coded, equals, keyed_together
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints, Rows, present, total
from recon.matching.frames.sources import (
    FEE_GAP,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
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


@dataclass(frozen=True, slots=True)
class Keys:
    """Numbers for the order keys (merchant, account, order number) of rows."""

    of: Mapping[str, Rows]
    """By source; NO_KEY for a row without an order number."""
    account_of: Mapping[str, Rows]
    """By source, for every row the index of its merchant and account in `accounts`."""
    accounts: list[tuple[str, ...]]
    """Merchant and account."""


def keys_of(frames: Mapping[str, pd.DataFrame]) -> Keys:
    """Number the order keys of several frames: sources, and other rows that name keys."""
    accounts, account_keys = _accounts([*frames.values()])
    orders, labels = coded([frame["order_no"] for frame in frames.values()])
    numbers = _numbers(orders, labels=len(labels), accounts=accounts)
    blank = pc.index(labels, "").as_py()
    if blank != NO_KEY:
        numbers = [np.where(o == blank, NO_KEY, n) for o, n in zip(orders, numbers, strict=True)]
    of, account_of = (
        {name: column.astype(np.intp) for name, column in zip(frames, columns, strict=True)}
        for columns in (numbers, accounts)
    )
    return Keys(of, account_of, account_keys)


def _accounts(frames: list[pd.DataFrame]) -> tuple[list[Codes], list[tuple[str, ...]]]:
    """Return the index of each row's merchant and account; for one account without using memory."""
    rows, account_keys = keyed_together(frames, by=ACCOUNT)
    if len(account_keys) == 1:
        return [np.broadcast_to(np.int32(0), (len(each),)) for each in rows], account_keys
    return [each.astype(np.int32) for each in rows], account_keys


def _numbers(orders: Sequence[Codes], *, labels: int, accounts: Sequence[Codes]) -> Sequence[Codes]:
    """Return the number of each row's account and order."""
    if not any(each.any() for each in accounts):
        return orders
    wide = [
        account * np.int64(labels) + order for account, order in zip(accounts, orders, strict=True)
    ]
    every = pd.factorize(np.concatenate(wide))[0].astype(np.int32)
    return np.split(every, np.cumsum([*map(len, orders)])[:-1])


NO_SET = -1
BY_ORDER, BY_TRANSACTION, BY_ENTRY, BY_PAYOUT = range(4)
ID_COLUMNS = ("transaction_id", "reference_no", "entry_id")


@dataclass(frozen=True, slots=True)
class SetNames:
    """The names by which the rows of one source refer to their set (grain: source row)."""

    keys: Rows
    """The number of the order key; NO_KEY for none."""
    accounts: Rows
    """The number of merchant and account."""
    frame: pd.DataFrame
    """With order_no, and those of ID_COLUMNS that the source has."""

    def take(self, rows: Bools) -> "SetNames":
        """Return some of the rows."""
        names = self.frame.columns.intersection(["order_no", *ID_COLUMNS])
        return SetNames(self.keys[rows], self.accounts[rows], self.frame.loc[rows, names])


@dataclass(frozen=True, slots=True)
class SetKeys:
    """The sets, and for each source the set of each of its rows."""

    frame: Arrays
    """One row per set: merchant_id, account_id, order_no ("" if none), key, kind, account."""
    of: Mapping[str, Rows]
    ambiguous: Bools

    @property
    def size(self) -> int:
        """Number of sets."""
        return len(self.frame)


def build_sets(sources: Mapping[str, SetNames], *, accounts: list[tuple[str, ...]]) -> SetKeys:
    """Number the sets of all sources.

    Args:
        sources: the names in their rows.
        accounts: merchant and account by their number.
    """
    rows = _all_rows(sources)
    keyed, order_no = rows["key"] != NO_KEY, _of_all(sources, "order_no")
    rows.columns["set"] = np.full(len(rows), NO_SET, dtype=np.intp)
    rows["set"][keyed], unique_keys = pd.factorize(rows["key"][keyed])
    first = np.flatnonzero(keyed)[_first(rows["set"][keyed], size=len(unique_keys))]
    ambiguous_rows = np.zeros(len(rows), dtype=np.bool_)
    size, alone = len(unique_keys), []
    if not keyed.all():
        # Ids are read only here, as hardly any row needs them.
        rows.columns |= {name: texts(_of_all(sources, name)) for name in ID_COLUMNS}
        for column in ("transaction_id", "reference_no"):
            ambiguous_rows |= _join(rows, column=column)
        alone = _unkeyed(rows, size=size)
    chosen = np.concatenate([first, *(rows_of for rows_of, _, _ in alone)])
    keys = texts_at(first, of=order_no)
    named = [keys, *(names for _, names, _ in alone)]
    kinds = [np.full(size, BY_ORDER), *(np.full(len(rows_of), kind) for rows_of, _, kind in alone)]
    account = rows["account"][chosen]
    order_nos = [keys, filled("", size=len(chosen) - size)]
    frame = {
        **account_texts(account, accounts=accounts),
        "order_no": np.concatenate(order_nos),
        "key": np.concatenate(named),
        "kind": np.concatenate(kinds),
        "account": account,
    }
    ambiguous = np.zeros(len(chosen), dtype=np.bool_)
    ambiguous[rows["set"][ambiguous_rows]] = True
    ends = np.cumsum([len(source.keys) for source in sources.values()])[:-1]
    of = dict(zip(sources, np.split(rows["set"], ends), strict=True))
    return SetKeys(Arrays(frame, size=len(chosen)), of, ambiguous)


def account_texts(account: Rows, *, accounts: list[tuple[str, ...]]) -> dict[str, Column]:
    """Return merchant and account of rows by the number of their account."""
    names = np.empty((len(accounts) + 1, 2), dtype=object)
    names[:-1] = np.array(accounts, dtype=object).reshape(-1, 2)
    return {"merchant_id": names[account, 0], "account_id": names[account, 1]}


def _all_rows(sources: Mapping[str, SetNames]) -> Arrays:
    """Concatenate the rows of all sources: key and account."""
    keys = np.concatenate([source.keys for source in sources.values()])
    accounts = np.concatenate([source.accounts for source in sources.values()])
    return Arrays({"key": keys, "account": accounts}, size=len(keys))


def _of_all(sources: Mapping[str, SetNames], name: str, /) -> "pd.Series[str]":
    """Concatenate one column of all sources; blank where a source does not have it."""
    columns = [
        source.frame[name]
        if name in source.frame.columns
        else text_column(filled("", size=len(source.frame)))
        for source in sources.values()
    ]
    return pd.concat(columns, ignore_index=True)


def _first(numbers: Rows, *, size: int) -> Rows:
    """Return the first row of each number."""
    first = np.zeros(size, dtype=np.intp)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first


def _join(rows: Arrays, *, column: str) -> Bools:
    """Join rows without a set by one id, in place; mark the rows with several candidates."""
    several = np.zeros(len(rows), dtype=np.bool_)
    sets, ids, account = rows["set"], rows[column], rows["account"]
    unkeyed = np.flatnonzero((sets == NO_SET) & (ids != ""))
    if not unkeyed.size:
        return several
    wanted = among(ids, {*ids[unkeyed].tolist()})
    known = np.flatnonzero((sets != NO_SET) & wanted)
    candidates: dict[tuple[int, str], set[int]] = {}
    for account_code, name, number in zip(
        account[known].tolist(), ids[known].tolist(), sets[known].tolist(), strict=True
    ):
        candidates.setdefault((account_code, name), set()).add(number)
    for row, account_code, name in zip(
        unkeyed.tolist(), account[unkeyed].tolist(), ids[unkeyed].tolist(), strict=True
    ):
        fitting = candidates.get((account_code, name), set())
        if len(fitting) == 1:
            (sets[row],) = fitting
        several[row] = len(fitting) > 1
    return several


def _unkeyed(rows: Arrays, *, size: int) -> list[tuple[Rows, Column, int]]:
    """New sets for what joined nothing: a row of each, their keys and kind; `rows` learns them."""
    parts = []
    for column, kind in (("transaction_id", BY_TRANSACTION), ("entry_id", BY_ENTRY)):
        _join(rows, column="reference_no")
        ids = rows[column]
        alone = rows["set"] == NO_SET
        if column == "transaction_id":
            alone &= ids != ""
        unkeyed = np.flatnonzero(alone)
        if not unkeyed.size:
            continue
        keys = np.where(ids[unkeyed] != "", ids[unkeyed], rows["reference_no"][unkeyed])
        known: dict[tuple[int, str], int] = {}
        account_keys = zip(rows["account"][unkeyed].tolist(), keys.tolist(), strict=True)
        numbers = np.array(
            [known.setdefault(key_of_row, len(known)) for key_of_row in account_keys], np.intp
        )
        rows["set"][unkeyed] = numbers + size
        first = _first(numbers, size=len(known))
        parts.append((unkeyed[first], keys[first], kind))
        size += len(known)
    return parts


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
    numbers: Keys
    """The keys and accounts of all rows as numbers."""


def join_sides(sources: Sources, *, rules: Rules, previous: Previous | None) -> Joined:
    """Build the sets and join their sides.

    Args:
        sources: the rows.
        rules: the status map, rates and fees.
        previous: earlier chargebacks, and entries that are no longer there.
    """
    frames = _frames(sources, previous=previous)
    numbers = keys_of(frames)
    ledger = sources.ledger
    covered = ledger is not None
    if ledger is None:
        ledger = frame_of([], columns=LEDGER_COLUMNS)
    versions = entry_versions(ledger)
    keys, payouts = _keys(sources, ledger=ledger, versions=versions, numbers=numbers, frames=frames)
    size, first = keys.size, keys.size - len(payouts.frame)
    orders = orders_side(sources.orders, sets=keys.of["orders"], size=size)
    gateway = gateway_side(
        sources.gateway,
        sets=keys.of["gateway"],
        accounts=numbers.account_of["gateway"],
        size=size,
        rules=rules,
    )
    booked_side = ledger_side(
        ledger, versions=versions, sets=keys.of["ledger"], size=size, rules=rules
    )
    ours = instruction_side(sources.instructions, sets=keys.of["instructions"], size=size)
    lines, settled = _settlement(sources, keys=keys, numbers=numbers)
    paid = payout_facts(payouts, first=first, size=size)
    sides = (keys.frame, orders.sets, gateway.sets, booked_side.sets)
    columns = {name: column for side in sides for name, column in side.columns.items()}
    sets = Arrays({**columns, **ours, **settled, **paid}, size=size)
    paid_items = payouts.items.assign(set=payouts.items["set"] + first)
    items = {"order": orders.items, "gateway": gateway.items, "ledger": booked_side.items}
    nets = nets_of({**items, "payout": paid_items})
    _put_together(sets, nets=nets, sources=sources, keys=keys)
    sets.columns["entry_vanished"] = _of_vanished(sets, previous=previous)
    return Joined(
        sets, nets, orders, gateway, booked_side, keys, covered, paid_items, lines, numbers
    )


def _frames(sources: Sources, *, previous: Previous | None) -> dict[str, pd.DataFrame]:
    """Return the frames whose rows may name a set, by _SOURCES."""
    rejected, waiting = (
        pd.DataFrame(
            [(each.merchant_id, each.account_id, each.order_no) for each in rows],
            columns=[*KEY_COLUMNS],
            dtype="str",
        )
        for rows in (sources.rejects, [row for row in sources.quarantined if row.names_its_key])
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


def _settlement(
    sources: Sources, *, keys: SetKeys, numbers: Keys
) -> tuple[Arrays, dict[str, Column]]:
    """Return the lines of payments, and the settled amounts of every set."""
    settlement, gaps = sources.settlement, np.zeros(0, dtype=np.int64)
    accounts = of_lines = numbers.account_of.get("settlement", np.zeros(0, dtype=np.intp))
    if settlement is not None:
        rows = of_payments(settlement)
        of_lines, gaps = accounts[rows], settlement[FEE_GAP].to_numpy(dtype=np.int64)[rows]
    lines = settled_items(settlement, sets=keys.of["settlement"], accounts=of_lines)
    known = sources.first_days
    if known is not None:
        days = {at: known[each] for at, each in enumerate(numbers.accounts) if each in known}
    else:
        days = dict(first_days_reported(settlement, accounts=accounts))
    of_sets = keys.frame["account"]
    return lines, settlement_side(
        lines, gaps=gaps, accounts=of_sets, first_days=days, days=sources.settled
    )


def _keys(
    sources: Sources,
    *,
    ledger: pd.DataFrame,
    versions: Versions,
    numbers: Keys,
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
    complete = [bool(r.merchant_id and r.account_id and r.order_no) for r in sources.rejects]
    # Of other sources all rows belong to sets.
    counted: dict[str, Bools] = {
        "rejects": np.array(complete, dtype=np.bool_),
        "ledger": belongs,
        "instructions": ~alone,
        "settlement": alone if settlement is None else of_payments(settlement),
    }
    named = {
        name: SetNames(numbers.of[name], numbers.account_of[name], frame)
        for name, frame in frames.items()
    }
    named |= {name: named[name].take(rows) for name, rows in counted.items() if name in named}
    keys = build_sets(named, accounts=numbers.accounts)
    of = {**dict.fromkeys(_SOURCES, np.zeros(0, dtype=np.intp)), **keys.of}
    entry_sets = np.full(len(ledger), NO_SET, dtype=np.intp)
    entry_sets[belongs] = of["ledger"]
    entry_sets[classified] = payouts.ledger[classified] + keys.size
    move_sets = np.where(payouts.instructions < 0, NO_SET, payouts.instructions + keys.size)
    move_sets[~alone] = of["instructions"]
    behind = _behind(payouts.frame, numbers=numbers)
    every = stacked([keys.frame, behind], names=(*keys.frame.columns,))
    ambiguous = np.append(keys.ambiguous, np.zeros(len(behind), dtype=np.bool_))
    of |= {"ledger": entry_sets, "instructions": move_sets.astype(np.intp)}
    return SetKeys(every, of, ambiguous), payouts


def _behind(payouts: Arrays, *, numbers: Keys) -> Arrays:
    """Return the sets of payouts with the number of their account."""
    number = {account: at for at, account in enumerate(numbers.accounts)}
    accounts = [number[account] for account in payouts.rows("merchant_id", "account_id")]
    return payouts.assign(kind=BY_PAYOUT, account=np.array(accounts, dtype=np.intp))


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
        | _named_in_part(sets, rows=sources.quarantined),
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
    gone: set[tuple[str, ...]] = set()
    if previous is not None:
        gone = {*previous.vanished[[*KEY_COLUMNS]].itertuples(index=False, name=None)}
    marked = among(sets["order_no"], {order_no for *_, order_no in gone} - {""})
    rows = np.flatnonzero(marked)
    keys = sets.take(rows).rows(*KEY_COLUMNS) if len(rows) else ()
    marked[rows] = [key in gone for key in keys]
    return np.asarray(marked, dtype=np.bool_)


def _named_in_part(sets: Arrays, *, rows: Sequence[Quarantined]) -> Bools:
    """Mark sets without an order whose number a quarantined row with an incomplete key has."""
    wanted = {row.order_no for row in rows if row.order_no and not row.names_its_key}
    if not wanted:
        return np.zeros(len(sets), dtype=np.bool_)
    return np.asarray(among(sets["order_no"], wanted) & (sets["order_state"] == 0), np.bool_)


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
