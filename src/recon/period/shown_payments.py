"""What the nights of a month show of payments: what each came to, night by night.

Rows stay in Arrow; a payment has a number, and what it came to is compared by numbers, so that only
what changed since the night before is made into a frame. Earlier nights are asked (`asked_earlier`)
about what was won back: whoever was charged back and won before the first night that is read is
shown as charged back by none of those that are, and the line of the reversal may be settled weeks
later. Where no night that is read shows such a payment, its books are those of earlier nights, too.
After a close they are asked about payments that come back: what they told was told before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.frames.arrays import text_column
from recon.period.looked_up import words_at
from recon.period.month_nights import MonthNight, frame_of, rows_among, table_of
from recon.proof.night_tables import frame_of_table

MONEY_STATES = ("paid", "partially_refunded", "refunded", "chargeback")
"""States of a payment whose capture took place."""
LEVELS = ("captured", "refunded", "charged")
"""What a payment came to so far, minor units, each 0 or more."""
_OF_ANSWER = (
    *("order_no", "transaction_id", "currency", "amount", "payment_status"),
    *("transaction_date", "captured_amount", "refunded_amount", "queried_at"),
)
_NAMES = ("transaction_id", "order_no")
_OF_CHANGE = ("order_no", "currency", "transaction_date")
_BETWEEN = "\x1f"
_Numbers = np.ndarray[Any, np.dtype[np.int64]]
_Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class AskedEarlier:
    """The payments that earlier nights are asked about."""

    payments: frozenset[str] = frozenset()
    orders: frozenset[str] = frozenset()
    """Orders of rows that name no payment."""
    since: datetime | None = None
    """When the oldest of those that come back was paid."""

    @property
    def is_any(self) -> bool:
        """Whether earlier nights are asked."""
        return bool(self.payments or self.orders)


NOTHING_ASKED = AskedEarlier()


@dataclass(frozen=True, slots=True)
class ShownPayments:
    """What all nights show."""

    changes: pd.DataFrame
    """payment, order_no, currency, transaction_date, LEVELS, is_first, number, business_date
    (grain: payment and night in which it changed)."""
    orders_of: "pd.Series[str]"
    """Order -> its payment, where it has exactly one."""
    unknown: frozenset[str]
    """Payments that were refunded in part, and nothing at the gateway says how much."""
    by_earlier: frozenset[str]
    """Payments that earlier nights alone show."""


def asked_earlier(
    nights: Sequence[MonthNight], *, account: tuple[str, str], first_close: datetime | None
) -> AskedEarlier:
    """What was won back by the nights' lines, and after a close the payments that come back.

    Those were paid before the first night's business date closed, and a later night shows them and
    the first one does not.

    Args:
        nights: those that are read, the oldest first.
        account: merchant and account.
        first_close: when the business date of the first night closed; None: no month is closed.
    """
    won = [_names(_won_back(night, account=account)) for night in nights]
    back = [] if first_close is None else [*_came_back(nights, of=account, close=first_close)]
    named = [*won, *(_names(rows) for rows in back)]
    paid_at = (pc.min(rows["transaction_date"]).as_py() for rows in back)
    return AskedEarlier(
        frozenset().union(*(payments for payments, _ in named)),
        frozenset().union(*(orders for _, orders in named)),
        min((moment for moment in paid_at if moment is not None), default=None),
    )


def _won_back(night: MonthNight, *, account: tuple[str, str]) -> pa.Table:
    columns = ("entry_type", "gross", *_NAMES)
    rows = table_of(night, "settlement", account=account, columns=columns)
    charged = pc.equal(rows["entry_type"], "chargeback")
    return rows.filter(pc.and_(charged, pc.greater(rows["gross"], 0)))


def _came_back(
    nights: Sequence[MonthNight], *, of: tuple[str, str], close: datetime
) -> Iterator[pa.Table]:
    """Of each night after the first the answers about what the first one does not show."""
    first, *later = nights
    shown = _found(first, account=of, columns=_NAMES)
    payments = pc.unique(shown["transaction_id"])
    orders = pc.unique(shown["order_no"].filter(pc.equal(shown["transaction_id"], "")))
    for night in later:
        rows = _found(night, account=of, columns=(*_NAMES, "transaction_date"))
        paid_at = rows["transaction_date"]
        rows = rows.filter(pc.fill_null(pc.less(paid_at, pa.scalar(close, paid_at.type)), True))
        known = pc.if_else(
            pc.not_equal(rows["transaction_id"], ""),
            pc.is_in(rows["transaction_id"], value_set=payments),
            pc.is_in(rows["order_no"], value_set=orders),
        )
        yield rows.filter(pc.invert(known))


def _names(rows: pa.Table) -> tuple[set[str], set[str]]:
    """Payments, and the orders of rows that name none."""
    named = pc.not_equal(rows["transaction_id"], "")
    payments = {*pc.unique(rows["transaction_id"].filter(named)).to_pylist()}
    orders = {*pc.unique(rows["order_no"].filter(pc.invert(named))).to_pylist()}
    return payments, orders - {""}


def shown_payments(
    nights: Sequence[MonthNight],
    *,
    account: tuple[str, str],
    earlier: Sequence[MonthNight],
    asked: AskedEarlier,
) -> ShownPayments:
    """Read the nights, the oldest first, and of earlier ones what they are asked about."""
    seen, parts = _Seen(), []
    by_earlier: pa.Array = pa.array([], pa.string())
    for night in (*earlier, *nights):
        rows = _shown(night, account=account, only=asked if night in earlier else None)
        changed = seen.changed(rows)
        if night in earlier:
            by_earlier = seen.payments
        elif len(by_earlier):
            again = pc.is_in(by_earlier, value_set=rows["payment"].combine_chunks())
            by_earlier = by_earlier.filter(pc.invert(again))
        parts.append(changed.assign(number=night.number, business_date=night.business_date))
    whole = pd.concat(parts, ignore_index=True)
    whole = whole.sort_values(["payment", "number"], ignore_index=True)
    named = frozenset(by_earlier.to_pylist()) - {""}
    return ShownPayments(whole, seen.orders_of(), seen.unknown(), named)


@dataclass(slots=True)
class _Seen:
    """What each payment came to when a night showed it last; every payment has a number."""

    payments: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    """Those that were shown; its place is a payment's number."""
    orders: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    """The order of each in the row that showed it first."""
    pairs: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    """Order and payment of every row, each pair once."""
    shown_last: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    """The payments of the rows of the night before."""
    last_numbers: _Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Their numbers."""
    levels: _Numbers = field(default_factory=lambda: np.zeros((0, len(LEVELS)), dtype=np.int64))
    is_unknown: _Flags = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def changed(self, rows: pa.Table) -> pd.DataFrame:
        """The payments that come to something else than before, each once, with `is_first`."""
        before = len(self.payments)
        places = self._known_places(rows)
        if _are_several(rows, places=places):
            rows = _newest(rows)
            places = self._known_places(rows)
        of_row = self._numbers(rows, places=places)
        self.shown_last, self.last_numbers = rows["payment"].combine_chunks(), of_row
        numbers, at = np.unique(of_row, return_inverse=True)
        now = np.zeros((len(numbers), len(LEVELS)), dtype=np.int64)
        np.add.at(now, at, np.column_stack([rows[name].to_numpy() for name in LEVELS]))
        is_first = numbers >= before
        differs = is_first | (self.levels[numbers] != now).any(axis=1)
        self.levels[numbers] = now
        self.is_unknown[numbers] = False
        self.is_unknown[of_row[rows["is_unknown"].to_numpy()]] = True
        chosen = rows.filter(pa.array(differs[at])).select(["payment", *_OF_CHANGE, *LEVELS])
        frame = frame_of_table(chosen).assign(is_first=is_first[at][differs[at]])
        if len(numbers) == len(of_row):
            return frame
        changed: pd.DataFrame = frame.groupby("payment", as_index=False).agg(
            order_no=("order_no", "min"),
            currency=("currency", "max"),
            transaction_date=("transaction_date", "min"),
            **{name: (name, "sum") for name in LEVELS},
            is_first=("is_first", "any"),
        )
        return changed

    def orders_of(self) -> "pd.Series[str]":
        """Order -> its payment, where it has exactly one."""
        split: pa.Array = pc.split_pattern(self.pairs, _BETWEEN)
        orders, payments = (text_column(pc.list_element(split, side)) for side in (0, 1))
        alone = ~orders.duplicated(keep=False) & orders.ne("")
        return payments[alone].set_axis(orders[alone])

    def unknown(self) -> frozenset[str]:
        """Payments whose refund nothing measured when they were shown last."""
        return frozenset(self.payments.filter(pa.array(self.is_unknown)).to_pylist())

    def _known_places(self, rows: pa.Table) -> _Numbers:
        """The number of each row's payment, -1 where none showed it before.

        Nearly all were shown by the night before: few are looked for among all others.
        """
        payment = rows["payment"].combine_chunks()
        at = _places(payment, of=self.shown_last)
        numbers = np.append(self.last_numbers, -1)[at]
        left = np.flatnonzero(numbers < 0)
        if len(left):
            wanted = payment.take(pa.array(left))
            known = np.flatnonzero(pc.is_in(self.payments, value_set=wanted).to_numpy(False))
            at = _places(wanted, of=self.payments.take(pa.array(known)))
            numbers[left] = np.append(known, -1)[at]
        return numbers

    def _numbers(self, rows: pa.Table, *, places: _Numbers) -> _Numbers:
        """The number of each row's payment, which is known from now on."""
        numbers, before = places, len(self.payments)
        unknown = np.flatnonzero(numbers < 0)
        first = rows.take(pa.array(unknown)).select(["payment", "order_no"]).combine_chunks()
        fresh = pc.unique(first["payment"])
        at = _places(first["payment"], of=fresh)
        numbers[unknown] = before + at
        self.payments = pa.concat_arrays([self.payments, fresh])
        _, shown_at = np.unique(at, return_index=True)
        orders = first["order_no"].take(pa.array(shown_at)).combine_chunks()
        self.orders = pa.concat_arrays([self.orders, orders])
        self._note_pairs(rows, numbers=numbers, unknown=unknown)
        blank = np.zeros((len(fresh), len(LEVELS)), dtype=np.int64)
        self.levels = np.vstack([self.levels, blank])
        self.is_unknown = np.concatenate([self.is_unknown, np.zeros(len(fresh), dtype=np.bool_)])
        return numbers

    def _note_pairs(self, rows: pa.Table, *, numbers: _Numbers, unknown: _Numbers) -> None:
        """Nearly every row has the order that its payment had before: its pair is known."""
        others = pc.not_equal(rows["order_no"], self.orders.take(pa.array(numbers)))
        is_asked = others.to_numpy().copy()
        is_asked[unknown] = True
        asked = rows.filter(pa.array(is_asked))
        pair = pc.binary_join_element_wise(asked["order_no"], asked["payment"], _BETWEEN)
        pair = pair.combine_chunks()
        # Few are asked about, and all pairs are many: what is looked for is found among those.
        known = self.pairs.filter(pc.is_in(self.pairs, value_set=pair))
        new = pc.unique(pair.filter(pc.invert(pc.is_in(pair, value_set=known))))
        self.pairs = pa.concat_arrays([self.pairs, new])


def _are_several(rows: pa.Table, *, places: _Numbers) -> bool:
    """Whether any payment has more than one row."""
    known = places[places >= 0]
    fresh = rows["payment"].take(pa.array(np.flatnonzero(places < 0)))
    most = int(np.bincount(known).max()) if len(known) else 0
    return most > 1 or int(pc.count_distinct(fresh).as_py()) < len(fresh)


def _places(words: pa.Array, *, of: pa.Array) -> _Numbers:
    """Where each word stands among others, -1 where it does not."""
    at: _Numbers = pc.index_in(words, value_set=of).fill_null(-1).to_numpy().astype(np.int64)
    return at


def _found(night: MonthNight, *, account: tuple[str, str], columns: Sequence[str]) -> pa.Table:
    rows = table_of(night, "answers", account=account, columns=(*columns, "answer"))
    return rows.filter(pc.equal(rows["answer"], "found"))


def _shown(night: MonthNight, *, account: tuple[str, str], only: AskedEarlier | None) -> pa.Table:
    """The answers of a night about payments, and what each came to by then."""
    rows = _found(night, account=account, columns=_OF_ANSWER)
    if only is not None:
        words = {"transaction_id": only.payments, "order_no": only.orders}
        rows = rows_among(rows, words=words)
    states, state = _states(rows, night=night)
    gross = pc.coalesce(rows["captured_amount"], rows["amount"], 0).to_numpy()
    given = rows["refunded_amount"]
    is_blank = pc.is_null(given).to_numpy()
    took_place = np.isin(states, MONEY_STATES)[state]
    whole = (states == "refunded")[state] & is_blank
    refunded = np.where(whole, gross, pc.coalesce(given, 0).to_numpy()) * took_place
    levels = {
        "captured": gross * took_place,
        "refunded": refunded,
        "charged": (gross - refunded) * (states == "chargeback")[state],
    }
    unknown = (states == "partially_refunded")[state] & is_blank
    named = pc.not_equal(rows["transaction_id"], "")
    by_order = pc.binary_join_element_wise("order ", rows["order_no"], "")
    by_order = pc.if_else(pc.equal(rows["order_no"], ""), "", by_order)
    rows = rows.append_column("payment", pc.if_else(named, rows["transaction_id"], by_order))
    for name, cells in levels.items():
        rows = rows.append_column(pa.field(name, pa.int64(), nullable=False), pa.array(cells))
    return rows.append_column("is_unknown", pa.array(unknown))


def _states(rows: pa.Table, *, night: MonthNight) -> tuple[Any, Any]:
    """The states of a night's codes as its rules name them, and for each row the place of its."""
    terms = frame_of(night, "terms")
    codes = terms[terms["name"].eq("payment_status")]
    words = dict(zip(codes["key"], codes["word"], strict=True))
    code = pc.dictionary_encode(rows["payment_status"].cast(pa.string()).combine_chunks())
    named = pd.Series(code.dictionary.to_pylist(), dtype="str")
    states = words_at(named, words=words, otherwise="unmapped").to_numpy(dtype=object)
    return states, code.indices.to_numpy()


def _newest(rows: pa.Table) -> pa.Table:
    """Of several answers about one payment of an order the newest."""
    pair = pc.binary_join_element_wise(rows["order_no"], rows["transaction_id"], _BETWEEN)
    if pc.count_distinct(pair).as_py() == len(rows):
        return rows
    cells = {name: rows[name].to_pandas() for name in ("queried_at", *LEVELS)}
    order = pd.DataFrame({"pair": pair.to_pandas(), **cells})
    order = order.sort_values(["pair", *cells], na_position="first", kind="stable")
    return rows.take(pa.array(order.drop_duplicates("pair", keep="last").index.to_numpy()))
