"""Every match of a night in order: those that were judged and those that were set aside.

The order is found by the keys alone. Then each column is taken once, from where its words stand:
nearly all of a million matches are exact sets, and a frame of them that is sorted afterwards would
take each of its words twice.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.matching.breaks.result import MATCH_COLUMNS
from recon.matching.breaks.result_frames import OPEN_SORTED_BY
from recon.matching.breaks.result_rows import identity_of, nullable
from recon.matching.exact.aside import Exact
from recon.matching.frames.arrays import text_column
from recon.matching.frames.coding import Codes, coded, pieces
from recon.matching.frames.grouping import Bools, Ints, Rows, amounts_of, given
from recon.matching.frames.same_words import said_once
from recon.matching.frames.sorting import LEADING, order_of
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.model.words import OrderStatus

RULE = "exact"
_LEGS = ("gateway", "orders", "ledger", "settlement")
"""Whose transaction a match shows: the first that names one."""


class _Words(NamedTuple):
    """A column of texts of the exact sets, where it stands."""

    words: "pd.Series[str]"
    rows: Rows | Codes
    """For each set, the row of its word."""

    def all(self) -> "pd.Series[str]":
        """The word of each set."""
        once = said_once(pieces(self.words), size=len(self.rows))
        return self.words.iloc[self.rows] if once is None else once

    def behind(self, judged: "pd.Series[str]", *, order: Rows) -> "pd.Series[str]":
        """The words of the judged matches and of the sets, together in this order."""
        once = said_once([*pieces(judged), *pieces(self.words)], size=len(order))
        if once is not None:
            return once
        rows = np.concatenate([np.arange(len(judged)), len(judged) + self.rows])[order]
        both = pa.chunked_array([*pieces(judged), *pieces(self.words)], pa.large_string())
        return text_column(both.take(pa.array(rows)))


class _Amounts(NamedTuple):
    """A column of amounts of the exact sets."""

    minor: Ints
    given: Bools

    def behind(self, judged: "pd.Series[int]", *, order: Rows) -> "pd.Series[int]":
        """The amounts of the judged matches and of the sets, together in this order."""
        minor = np.concatenate([amounts_of(judged), self.minor])[order]
        return nullable(minor, given=np.concatenate([given(judged), self.given])[order])


class EveryMatch:
    """All matches (MATCH_COLUMNS), sorted; a column is made when it is asked for, and not kept."""

    columns = MATCH_COLUMNS

    def __init__(self, judged: pd.DataFrame, *, exact: Exact, sources: Sources) -> None:
        """Find their order.

        Args:
            judged: the matches that were classified (MATCH_COLUMNS), sorted.
            exact: the sets that were set aside; at least one.
            sources: the whole sources.
        """
        self._judged = judged
        self._exact: dict[str, _Words | _Amounts] = {
            **_texts(exact, sources=sources),
            **_amounts(exact),
        }
        self._order = order_of(
            self._taken(LEADING, order=np.arange(len(judged) + exact.size)),
            rows_of=lambda rows: self._taken(OPEN_SORTED_BY, order=rows),
            by=OPEN_SORTED_BY,
        )

    def __len__(self) -> int:
        """How many there are."""
        return len(self._order)

    def __getitem__(self, name: str) -> "pd.Series[Any]":
        """One column."""
        return self._exact[name].behind(self._judged[name], order=self._order)

    def frame(self) -> pd.DataFrame:
        """All columns at once."""
        return self._taken(MATCH_COLUMNS, order=self._order)

    def _taken(self, names: Iterable[str], *, order: Rows) -> pd.DataFrame:
        taken = {name: self._exact[name].behind(self._judged[name], order=order) for name in names}
        return pd.DataFrame(taken, copy=False)


def every_match(
    judged: pd.DataFrame, *, exact: Exact, sources: Sources
) -> pd.DataFrame | EveryMatch:
    """All matches, for who looks at one column after the other; see EveryMatch."""
    return EveryMatch(judged, exact=exact, sources=sources) if exact.size else judged


def as_frame(matches: pd.DataFrame | EveryMatch) -> pd.DataFrame:
    """The same with all columns at once."""
    return matches.frame() if isinstance(matches, EveryMatch) else matches


def _texts(exact: Exact, *, sources: Sources) -> dict[str, _Words]:
    """The columns of texts, and the ids that are made of them."""
    orders, keys = exact.rows["orders"], exact.keys
    currencies = coded([sources.orders["currency"]])
    columns = {
        "order_no": _Words(sources.orders["order_no"], orders),
        "transaction_id": _transactions(exact, sources=sources),
        "entry_id": _of_leg(exact, sources, name="entry_id", leg="ledger"),
        "currency": _Words(text_column(currencies.words), currencies.codes[0][orders]),
    }
    for name, words in zip(ACCOUNT, zip(*keys.accounts, strict=True), strict=True):
        columns[name] = _Words(text_column(words), keys.account_of["orders"][orders])
    paid = OrderStatus.PAID.value
    everywhere = {"flags": "", "rule": RULE, "state_orders": paid, "state_gateway": paid}
    columns |= {name: _same(word, size=exact.size) for name, word in everywhere.items()}
    ids = identity_of(*(columns[name].all() for name in LEADING))
    columns["match_id"] = _Words(ids, np.arange(exact.size))
    return columns


def _same(word: str, *, size: int) -> _Words:
    return _Words(text_column([word]), np.broadcast_to(np.int32(0), (size,)))


def _of_leg(exact: Exact, sources: Sources, *, name: str, leg: str) -> _Words:
    """What the row of one leg says; blank without the leg."""
    frame = getattr(sources, leg)
    if frame is None or leg not in exact.rows:
        return _same("", size=exact.size)
    return _Words(frame[name], exact.rows[leg])


def _transactions(exact: Exact, *, sources: Sources) -> _Words:
    """The gateway's transaction, else the order's, the ledger's, the settled one."""
    first, *others = (_of_leg(exact, sources, name="transaction_id", leg=leg) for leg in _LEGS)
    if first.words.ne("").to_numpy()[first.rows].all():
        return first
    chosen = first.words.iloc[first.rows].reset_index(drop=True)
    for other in others:
        words = other.words.iloc[other.rows].reset_index(drop=True)
        chosen = chosen.where(chosen.ne(""), words)
    return _Words(chosen, np.arange(exact.size))


def _amounts(exact: Exact) -> dict[str, _Amounts]:
    """What every leg moves, and no effect; blank where a leg is not covered."""
    # One number stands for all rows.
    nothing: Ints = np.broadcast_to(np.int64(0), (exact.size,))
    always: Bools = np.broadcast_to(np.True_, (exact.size,))
    covered: Bools = np.broadcast_to(np.bool_("ledger" in exact.rows), (exact.size,))
    return {
        "order_amount": _Amounts(exact.amount, always),
        "gateway_amount": _Amounts(exact.amount, always),
        "ledger_amount": _Amounts(exact.amount, covered),
        "effect_orders": _Amounts(nothing, always),
        "effect_ledger": _Amounts(nothing, covered),
    }
