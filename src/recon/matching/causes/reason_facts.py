"""What is known of one break when its reason is put into words; nothing here chooses words."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, get_type_hints

import numpy as np
import pandas as pd

from recon.matching.causes.reason_rows import NO_ROWS, RowsOfSets, SetRows
from recon.matching.frames.arrays import among
from recon.matching.frames.grouping import Ints, amounts_of, given, total
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import NUMBER
from recon.model.money import Money

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
