"""The rows behind a break, for the reasons that name single records and not only their sums."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pandas as pd

from recon.matching.codes import CODES
from recon.matching.frames.arrays import Arrays, among, texts
from recon.matching.frames.grouping import Ints, Rows, amounts_of, given, total
from recon.matching.frames.sources import Sources
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import GATEWAY_STATES, NUMBER
from recon.matching.sides.orders_side import ORDER_STATES
from recon.model.money import Money
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


NOTHING = "nothing"


class Facts(NamedTuple):
    """One break: amounts in minor units of its currency, what its rows say where a code asks."""

    currency: str
    account_id: str
    order_no: str
    state_orders: str
    state_gateway: str
    gateway_amount: int | None
    """Net of the side, None where it is absent; so are the next two."""
    order_amount: int | None
    ledger_amount: int | None
    covered: bool
    """Whether a ledger was given."""
    stated: int
    """What the payments that speak for the set are over."""
    rows: SetRows
    ordered: int
    """The next ones are columns of the sets."""
    currencies: int
    order_captured: int
    order_refunded: int
    gateway_captured: int
    gateway_refunded: int
    payments_with_money: int
    uncaptured: int
    """Of what the gateway shows as captured, what our capture left, also one in doubt."""
    refund_hidden: bool
    """The gateway's answers cannot show every refund."""
    refund_unknown: bool
    refund_excess: bool
    over_authorised: bool
    ledger_capture: int
    ledger_refund: int
    ledger_chargeback: int
    ledger_adjustment: int
    ledger_write_off: int
    booked_twice_capture: bool
    booked_twice_refund: bool
    booked_twice_chargeback: bool
    capture_confirmed: int
    capture_rejected: int
    capture_doubtful: int
    capture_doubtful_any: bool
    capture_waiting: int
    capture_waiting_any: bool
    cancel_rejected_any: bool
    cancel_doubtful_any: bool
    cancel_waiting_any: bool
    refund_confirmed: int
    refund_rejected: int
    refund_doubtful: int
    refund_doubtful_any: bool
    refund_waiting: int
    refund_waiting_any: bool
    refund_failed_later_sum: int
    review_doubtful_any: bool
    review_rejected_any: bool
    cancel_subscription_doubtful_any: bool
    settled_captured: int
    settled_refunded: int
    settled_charged: int
    settled_gross: int
    settled_currency: str
    fee_gap: int
    exchange_gap: int
    paid_under: str
    """Where the gateway has nothing: the order under which it has the payment that is named."""

    @property
    def gateway_net(self) -> int:
        """Net of the gateway's side, 0 where it is absent."""
        return self.gateway_amount or 0

    @property
    def order_net(self) -> int:
        """Net of the order's side, 0 where it is absent."""
        return self.order_amount or 0

    @property
    def told_twice(self) -> bool:
        """The gateway tells one payment in several ways."""
        payments = self.rows.payments
        return len({payment.transaction_id for payment in payments}) < len(payments)

    @property
    def has_rivals(self) -> bool:
        """Other records share an id with it."""
        return bool(self.rows.rivals_by)

    def money(self, amount: int | None) -> str:
        """An amount of the break's currency; `nothing` where there is none."""
        return money(amount, currency=self.currency)


NETS = ("gateway_amount", "order_amount", "ledger_amount")
"""Amounts that may be absent."""
_DERIVED = ("gateway_net", "order_net", "told_twice", "has_rivals")
FACTS: Mapping[str, type] = {
    **{name: kind for name, kind in get_type_hints(Facts).items() if kind in {int, str, bool}},
    **{name: get_type_hints(getattr(Facts, name).fget)["return"] for name in _DERIVED},
}
"""What a condition may name, and of which type it is."""
_OF_SETS = Facts._fields[Facts._fields.index("ordered") + 1 : -1]


def money(amount: int | None, *, currency: str) -> str:
    """An amount as people read it; `nothing` for none and for one without a currency."""
    if amount is None or not currency:
        return NOTHING
    return str(Money.of_minor_units(amount, currency=currency))


def facts_of(frame: pd.DataFrame, *, joined: Joined, rows: RowsOfSets) -> Iterator[Facts]:
    """The facts of every break, in the order of `frame` (columns set and those of breaks)."""
    sets, numbers = joined.sets, frame["set"].to_numpy()
    stated = _stated(joined)
    columns = [
        *(frame[name].tolist() for name in ("currency", "account_id", "order_no")),
        *(frame[name].tolist() for name in ("state_orders", "state_gateway")),
        *(_blank_as_none(frame[f"{side}_amount"]) for side in ("gateway", "order", "ledger")),
        [joined.covered] * len(frame),
        stated[numbers].tolist(),
        [rows.get(number, NO_ROWS) for number in numbers.tolist()],
        sets["order_amount"][numbers].tolist(),
        *(sets[name][numbers].tolist() for name in _OF_SETS),
        _paid_under(joined, numbers=numbers.tolist()),
    ]
    for values in zip(*columns, strict=True):
        yield Facts(*values)


def _paid_under(joined: Joined, *, numbers: list[int]) -> list[str]:
    """The order under which the gateway has the payment that the rows of each set name."""
    sets = joined.sets
    unpaid = {number for number in numbers if sets["gateway_state"][number] == NUMBER["none"]}
    if not unpaid:
        return [""] * len(numbers)
    named: dict[tuple[int, str], set[int]] = {}
    for side in (joined.orders.items, joined.ledger.items):
        rows = side.take(np.isin(side["set"], [*unpaid]) & (side["transaction_id"] != ""))
        for number, payment in rows.rows("set", "transaction_id"):
            named.setdefault((int(sets["account"][number]), payment), set()).add(int(number))
    paid = joined.gateway.items
    paid = paid.take(among(paid["transaction_id"], {payment for _, payment in named}))
    orders: dict[int, set[str]] = {}
    for holder, payment in paid.rows("set", "transaction_id"):
        for number in named.get((int(sets["account"][holder]), payment), ()):
            orders.setdefault(number, set()).add(sets["key"][holder])
    return [min(orders.get(number, {""})) for number in numbers]


def _stated(joined: Joined) -> Ints:
    """What the payments of the state that speaks for each set are over (grain: set).

    A cancelled attempt beside the authorisation that stands is no part of it.
    """
    items, sets = joined.gateway.items, joined.sets
    number = items["set"]
    speaks = items["state"] == sets["gateway_state"][number]
    speaks &= items["currency"] == sets["currency"][number]
    authorised = np.where(items["authorised_known"], items["authorised"], items["amount"])
    amount = np.where(np.isin(items["state"], _TAKEN), items["captured"], authorised)
    return total(np.where(speaks, amount, 0), groups=number, size=joined.keys.size)


_TAKEN = [NUMBER[word] for word in ("paid", "partially_refunded", "refunded", "chargeback")]


def _blank_as_none(column: "pd.Series[int]") -> list[int | None]:
    values, known = amounts_of(column).tolist(), given(column).tolist()
    return [value if there else None for value, there in zip(values, known, strict=True)]
