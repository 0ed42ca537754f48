"""The rows behind a break, for the reasons that name single records and not only their sums."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, among, texts
from recon.matching.frames.grouping import Rows
from recon.matching.frames.sources import Sources
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import GATEWAY_STATES
from recon.matching.sides.orders_side import ORDER_STATES
from recon.model.words import BreakCode


class SideRow(NamedTuple):
    """One row of a side: what it says and over how much."""

    words: str
    """A status, a transaction, a standing: what the side calls it by."""
    currency: str
    amount: int


class GatewayPayment(NamedTuple):
    """One payment of the gateway."""

    transaction_id: str
    state: str
    code: str
    """The gateway's own code."""
    currency: str
    amount: int
    """What it is over: captured, else authorised."""
    captured: int
    refunded: int
    authorised: int
    over_authorised: bool


class Move(NamedTuple):
    """One instruction of ours."""

    kind: str
    state: str
    currency: str
    amount: int


class Rival(NamedTuple):
    """Another record that fits as well."""

    account_id: str
    name: str


class SetRows(NamedTuple):
    """The rows of one set."""

    orders: tuple[SideRow, ...] = ()
    payments: tuple[GatewayPayment, ...] = ()
    entries: tuple[SideRow, ...] = ()
    """Ledger entries by their type; amounts less what reverses them."""
    moves: tuple[Move, ...] = ()
    payouts: tuple[SideRow, ...] = ()
    other: Rival | None = None
    """The account that has the other side, and the set there."""
    sides: tuple[str, ...] = ()
    other_sides: tuple[str, ...] = ()
    rivals: tuple[Rival, ...] = ()
    rivals_by: str = ""
    """What the rivals share: `transaction` or `reference`, and its id."""


NO_ROWS = SetRows()
RowsOfSets = Mapping[int, SetRows]


def rows_of_sets(
    codes: Iterable[BreakCode], *, numbers: Rows, joined: Joined, sources: Sources, host: Rows
) -> RowsOfSets:
    """The rows of the sets whose primary code names some.

    Args:
        codes: the primary code of each break; rows of several currencies are always named.
        numbers: its set.
        joined: the sets.
        sources: what they were made of.
        host: for each set the one whose break explains it, else negative.
    """
    several = joined.sets["currencies"][numbers] > 1
    pairs = zip(codes, numbers.tolist(), several.tolist(), strict=True)
    named = {int(n): code for code, n, mixed in pairs if mixed or CODES[code].names_rows}
    if not named:
        return {}
    orders = _orders(joined, wanted=named)
    payments = _payments(joined, sources=sources, wanted=named)
    entries = _entries(joined, wanted=named)
    payouts = _payouts(joined, wanted=named)
    moves = _ours(joined, sources=sources, wanted=named)
    moved = _moved(joined, host=host, wanted=named)
    ambiguous = {number for number, code in named.items() if code is BreakCode.AMBIGUOUS_MATCH}
    rivals = _rivals(joined, sources=sources, wanted=ambiguous)
    return {
        number: SetRows(
            orders=tuple(orders.get(number, ())),
            payments=tuple(payments.get(number, ())),
            entries=tuple(entries.get(number, ())),
            moves=tuple(moves.get(number, ())),
            payouts=tuple(payouts.get(number, ())),
            **moved.get(number, {}),
            **rivals.get(number, {}),
        )
        for number in named
    }


def _of(items: Arrays, *, wanted: Iterable[int]) -> Arrays:
    """The rows of the wanted sets."""
    return items.take(np.isin(items["set"], [*wanted]))


def _grouped(rows: Iterable[tuple[int, Any]]) -> dict[int, list[Any]]:
    """By set; sorted, so that the order of the input's rows changes no sentence."""
    grouped: dict[int, list[Any]] = {}
    for number, row in rows:
        grouped.setdefault(int(number), []).append(row)
    return {number: sorted(rows) for number, rows in grouped.items()}


def _orders(joined: Joined, *, wanted: Mapping[int, Any]) -> dict[int, list[SideRow]]:
    items = _of(joined.orders.items, wanted=wanted)
    return _grouped(
        (number, SideRow(ORDER_STATES[state], currency, amount))
        for number, state, currency, amount in items.rows("set", "state", "currency", "amount")
    )


def _payments(
    joined: Joined, *, sources: Sources, wanted: Mapping[int, Any]
) -> dict[int, list[GatewayPayment]]:
    items = _of(joined.gateway.items, wanted=wanted)
    captured, authorised, known = (
        items[name] for name in ("captured", "authorised", "authorised_known")
    )
    bears = captured > 0
    held = np.where(known, authorised, items["amount"])
    states = np.array(GATEWAY_STATES, dtype=object)
    rows = items.assign(
        word=states[items["state"]],
        code=texts(sources.gateway["payment_status"])[items["row"]],
        over=np.where(bears, captured, held),
        beyond=known & items["captured_known"] & (captured > authorised) & bears,
    )
    named = ("set", "transaction_id", "word", "code", "currency", "over")
    sums = ("captured", "refunded", "authorised", "beyond")
    return _grouped((number, GatewayPayment(*row)) for number, *row in rows.rows(*named, *sums))


def _entries(joined: Joined, *, wanted: Mapping[int, Any]) -> dict[int, list[SideRow]]:
    items = _of(joined.ledger.items, wanted=wanted)
    sums: dict[tuple[int, str, str], int] = {}
    for *group, amount in items.rows("set", "kind", "currency", "forward"):
        number, kind, currency = group
        sums[number, kind, currency] = sums.get((number, kind, currency), 0) + amount
    return _grouped(
        (number, SideRow(kind, currency, amount))
        for (number, kind, currency), amount in sums.items()
    )


def _payouts(joined: Joined, *, wanted: Mapping[int, Any]) -> dict[int, list[SideRow]]:
    items = _of(joined.payouts, wanted=wanted)
    cells = items.rows("set", "standing", "currency", "amount")
    return _grouped((number, SideRow(*row)) for number, *row in cells)


def _ours(joined: Joined, *, sources: Sources, wanted: Mapping[int, Any]) -> dict[int, list[Move]]:
    if sources.instructions is None:
        return {}
    number = joined.keys.of["instructions"]
    mine = np.isin(number, [*wanted])
    cells = (sources.instructions[name][mine].tolist() for name in Move._fields)
    return _grouped(
        (set_number, Move(*row))
        for set_number, *row in zip(number[mine].tolist(), *cells, strict=True)
    )


def _moved(joined: Joined, *, host: Rows, wanted: Mapping[int, Any]) -> dict[int, dict[str, Any]]:
    """For a break that stands for two accounts, which of them has which side."""
    moves = {}
    for guest in np.flatnonzero(host >= 0).tolist():
        number = int(host[guest])
        if number in wanted:
            moves[number] = {
                "other": _rival(joined.sets, number=guest),
                "sides": _sides(joined.sets, number=number),
                "other_sides": _sides(joined.sets, number=guest),
            }
    return moves


def _sides(sets: Arrays, *, number: int) -> tuple[str, ...]:
    state = GATEWAY_STATES[sets["gateway_state"][number]]
    present = {
        "order": sets["order_state"][number] != 0,
        "payment": state not in {"none", "unverified"},
        "booking": sets["ledger_capture"][number] != 0,
    }
    return tuple(side for side, here in present.items() if here)


def _rival(sets: Arrays, *, number: int) -> Rival:
    return Rival(sets["account_id"][number], sets["key"][number])


def _rivals(joined: Joined, *, sources: Sources, wanted: set[int]) -> dict[int, dict[str, Any]]:
    """The records that fit an ambiguous set as well as each other."""
    if not wanted:
        return {}
    sets = joined.sets
    rivals: dict[int, dict[str, Any]] = {}
    for number, (others, by) in _fitting(joined, sources=sources, wanted=wanted):
        names = sorted(_rival(sets, number=other) for other in others)
        rivals[number] = {"rivals": tuple(names), "rivals_by": by}
    return rivals


def _fitting(
    joined: Joined, *, sources: Sources, wanted: set[int]
) -> Iterator[tuple[int, tuple[set[int], str]]]:
    """The other sets that a set fits, and the id that they share, "" for their order number."""
    sets = joined.sets
    away = {number for number in wanted if sets["account_ambiguous"][number]}
    by_order = np.flatnonzero(among(sets["order_no"], {sets["order_no"][row] for row in away}))
    alike: dict[tuple[str, str], set[int]] = {}
    cells = sets.take(by_order).rows("merchant_id", "order_no")
    for number, order in zip(by_order.tolist(), cells, strict=True):
        alike.setdefault(order, set()).add(number)
    for number in sorted(away):
        order = sets["merchant_id"][number], sets["order_no"][number]
        yield number, (alike[order] - {number}, "")
    named = _ids_of_sets(joined, sources=sources, wanted=wanted - away)
    holders: dict[tuple[str, ...], set[int]] = {}
    names: dict[int, list[tuple[str, ...]]] = {}
    for number, *key in named:
        holders.setdefault((*key,), set()).add(number)
        names.setdefault(number, []).append((*key,))
    for number in sorted(wanted - away):
        for name in sorted(names.get(number, []), reverse=True):
            if others := holders[name] - {number}:
                yield number, (others, " ".join(name[-2:]))
                break


def _ids_of_sets(
    joined: Joined, *, sources: Sources, wanted: set[int]
) -> Iterator[tuple[int, str, str, str, str]]:
    """Set, merchant, account, `transaction` or `reference` and id of the rows that name one."""
    for name, words in _NAMED_IDS.items():
        frame: pd.DataFrame | None = getattr(sources, name)
        if frame is None:
            continue
        number = joined.keys.of[name]
        for column, word in words.items():
            ids = frame[column]
            asked = ids[np.isin(number, [*wanted])]
            mine = (number >= 0) & ids.ne("").to_numpy() & ids.isin(asked).to_numpy()
            account_cells = (
                frame.loc[mine, name].tolist() for name in ("merchant_id", "account_id")
            )
            for set_number, merchant, account, text in zip(
                number[mine].tolist(), *account_cells, ids[mine].tolist(), strict=True
            ):
                yield set_number, merchant, account, word, text


_NAMED_IDS: Mapping[str, Mapping[str, str]] = {
    "orders": {"transaction_id": "transaction"},
    "gateway": {"transaction_id": "transaction", "reference_no": "reference"},
    "ledger": {"transaction_id": "transaction", "reference_no": "reference"},
    "instructions": {"transaction_id": "transaction"},
}
