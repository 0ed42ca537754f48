"""Finds independent sets, whose outcome does not depend on any other row of the run.

A bucket classifies these: one order, one payment, and entries and settled lines that nothing else
names. Whatever a row without an order key, our own instructions, rejected rows or the breaks of the
previous run may refer to is left for the final pass over all such rows.

Ids that several rows share are known here only by their hash (see frames.digest): a collision may
exclude a row that need not be, which is harmless.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.frames.arrays import among, texts
from recon.matching.frames.coding import NO_KEY, by_label, coded, equals
from recon.matching.frames.digest import (
    Labels,
    are_among,
    first_ids,
    numbers_of,
    shared_numbers,
)
from recon.matching.frames.grouping import Bools, Rows, amounts_of, amounts_or, given
from recon.matching.frames.sources import KEY_COLUMNS, Previous, Sources
from recon.matching.sets.joined_sets import Keys, numbered
from recon.matching.sides.gateway_side import authorised_amounts, refunds_of_others
from recon.matching.sides.ledger_side import (
    CLASSIFIED,
    CLOSERS,
    compared,
    is_base_type,
    marked_as,
    unrated_rows,
)
from recon.matching.sides.settlement_side import of_payments
from recon.model.terms import EntryType, GatewayState, InstructionKind, KeyAnswer

LEGS = ("orders", "gateway", "ledger", "settlement", "universe")
"""Sources of which a bucket has the rows of its order numbers."""
NAMED = ("transaction_id", "reference_no", "order_no")
"""Columns by which a row without an order key may refer to a set."""
_IDS = (
    *("order_no", "transaction_id", "reference_no", "entry_id"),
    *("request_id", "instruction_id", "batch_id"),
)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a bucket must know of the rows of all other buckets."""

    labels: frozenset[str]
    """See `unkeyed_words`, and payments that a set without one names."""
    entries: Labels
    """Hashes of ids that several ledger entries may have, sorted."""
    transactions: Labels
    """Hashes of transactions that several answers may name, sorted."""
    first_days: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Merchant and account -> the first day that the settlement covers."""
    refunds: pd.DataFrame | None = None
    """Settlement lines with a refund of a payment under another order number than its own."""


class SeenIds:
    """The hashes of the ids of one column, collected part by part."""

    def __init__(self) -> None:
        self._parts: list[Labels] = []

    def see(self, ids: "pd.Series[str]") -> None:
        """Add another part of the rows."""
        self._parts.append(numbers_of(ids))

    def shared(self) -> Labels:
        """Return those that several rows may have, sorted."""
        return shared_numbers(self._parts)

    def have(self, ids: "pd.Series[str]") -> Bools:
        """Mark the ids that a row of any part may have."""
        wanted = np.sort(numbers_of(ids))
        there = [part[are_among(part, wanted)] for part in self._parts]
        return np.isin(numbers_of(ids), np.concatenate([wanted[:0], *there]))


def rows_with(ids: "pd.Series[str]", several: Labels) -> Bools:
    """Mark the rows whose id may be one of `several`."""
    return are_among(numbers_of(ids), several)


def independent_sets(
    sources: Sources, *, elsewhere: Elsewhere, rules: Rules, previous: Previous | None
) -> dict[str, Bools]:
    """Return, for each given source of LEGS, a mask of the rows of independent sets.

    Args:
        sources: all rows of some order numbers.
        elsewhere: what is known of all rows.
        rules: the rules of the comparison.
        previous: what the previous run left open.
    """
    keys, belongs = numbered(sources, previous=previous), _belonging(sources, elsewhere=elsewhere)
    of = {**keys.of, **{n: np.where(own, keys.of[n], NO_KEY) for n, own in belongs.items()}}
    alone = np.ones(keys.size, dtype=np.bool_)
    for name in keys.of.keys() - {*LEGS}:
        alone[_named(of[name])] = False
    for name in ("orders", "gateway"):
        alone &= np.bincount(_named(of[name]), minlength=keys.size) == 1
    for name, rows in _named_by_another(sources, elsewhere=elsewhere, rules=rules).items():
        alone[_named(of[name][rows])] = False
    if previous is not None and (ended := {*previous.closed, *previous.away}):
        # An earlier break continues under its number or takes the next one.
        ids = first_ids(*(texts(sources.orders[name]) for name in KEY_COLUMNS))
        again = among(ids, ended)
        alone[_named(of["orders"][again])] = False
    if len({merchant for merchant, _ in keys.accounts}) < len(keys.accounts):
        # An order of one account may have its payment in another account of the merchant.
        alone[_in_several_accounts(sources, keys=keys, of=of)] = False
    # NO_KEY (-1) indexes the appended last element.
    is_alone = np.append(alone, np.False_)
    return {name: is_alone[of[name]] for name in LEGS if name in of}


def _belonging(sources: Sources, *, elsewhere: Elsewhere) -> dict[str, Bools]:
    """Mark the rows that belong to sets, for sources where not all do."""
    belongs = {}
    if sources.ledger is not None:
        in_sets = compared(sources.ledger)
        in_sets |= rows_with(sources.ledger["entry_id"], elsewhere.entries)
        belongs["ledger"] = in_sets & ~marked_as(sources.ledger, CLASSIFIED)
    if sources.settlement is not None:
        belongs["settlement"] = of_payments(sources.settlement)
    return belongs


def unkeyed_words(sources: Sources, *, elsewhere: Elsewhere) -> frozenset[str]:
    """Return every id of every row without an order.

    Args:
        sources: all such rows, among others.
        elsewhere: what is known of all rows; its labels are not used.
    """
    labels = (
        label for rows in _unkeyed_rows(sources, elsewhere=elsewhere) for label in _labels(rows)
    )
    return frozenset(labels) - {""}


def _unkeyed_rows(sources: Sources, *, elsewhere: Elsewhere) -> Iterator[pd.DataFrame]:
    belongs = _belonging(sources, elsewhere=elsewhere)
    for name in LEGS[:-1]:
        frame: pd.DataFrame | None = getattr(sources, name)
        if frame is None:
            continue
        unkeyed = frame["order_no"].eq("").to_numpy(dtype=np.bool_)
        if name == "settlement":
            unkeyed = unkeyed | ~belongs[name]
        if name == "ledger":
            unkeyed = (unkeyed & belongs[name]) | marked_as(frame, CLASSIFIED)
        if unkeyed.any():
            yield frame[unkeyed]
    if sources.instructions is not None:
        moves = sources.instructions
        yield moves[moves["order_no"].eq("") | moves["kind"].eq(InstructionKind.PAYOUT)]


def _labels(rows: pd.DataFrame) -> Iterator[str]:
    for name in _IDS:
        if name in rows.columns:
            yield from rows[name].unique()
    if "batch_id" in rows.columns:
        yield from (rows["batch_id"] + "/" + rows["currency"]).unique()


def _named(numbers: Rows) -> Rows:
    """Return the numbers without NO_KEY."""
    there: Rows = numbers[numbers != NO_KEY]
    return there


def _named_by_another(sources: Sources, *, elsewhere: Elsewhere, rules: Rules) -> dict[str, Bools]:
    """Mark by source the rows that another set may refer to, or that have no usable content."""
    frames: dict[str, pd.DataFrame] = {
        name: frame for name in LEGS[:-1] if (frame := getattr(sources, name)) is not None
    }
    named = {name: _by_unkeyed(frame, labels=elsewhere.labels) for name, frame in frames.items()}
    gateway, ledger = sources.gateway, sources.ledger
    unmapped = by_label(
        gateway["payment_status"], of=lambda code: rules.state_of(code) is GatewayState.UNMAPPED
    )
    named["gateway"] |= ~equals(gateway["answer"], KeyAnswer.FOUND) | unmapped.astype(np.bool_)
    shared = rows_with(gateway["transaction_id"], elsewhere.transactions)
    named["gateway"] |= shared & gateway["transaction_id"].ne("").to_numpy(dtype=np.bool_)
    # Answers with more captured than authorised, or more refunded than captured.
    known = authorised_amounts(gateway, rules=rules)
    captured = amounts_or(gateway["captured_amount"], otherwise=gateway["amount"])
    named["gateway"] |= given(known) & (captured > amounts_of(known))
    named["gateway"] |= amounts_of(gateway["refunded_amount"]) > captured
    if ledger is not None:
        named["ledger"] |= rows_with(ledger["entry_id"], elsewhere.entries)
        # The number of entries without a rate is reported once for all, as is the amount that may
        # be written off.
        named["ledger"][unrated_rows(ledger, rules=rules)] = True
        named["ledger"] |= is_base_type(ledger["entry_type"], EntryType.WRITE_OFF)
    if sources.settlement is not None:
        named["settlement"] |= refunds_of_others(sources.settlement, gateway=gateway)
        if ledger is not None:
            # Such an entry may close a group of all lines, or belong to its order.
            named["ledger"] |= is_base_type(ledger["entry_type"], *CLOSERS)
    return named


def _by_unkeyed(frame: pd.DataFrame, *, labels: frozenset[str]) -> Bools:
    """Mark the rows that a row without an order key may refer to."""
    meant = np.zeros(len(frame), dtype=np.bool_)
    if labels:
        wanted = pa.array(sorted(labels), pa.large_string())
        for column in NAMED:
            if column in frame.columns:
                meant |= np.asarray(pc.is_in(pa.array(frame[column]), value_set=wanted))
    return meant


def _in_several_accounts(sources: Sources, *, keys: Keys, of: Mapping[str, Rows]) -> Rows:
    """Return the keys whose order number occurs in another account as well."""
    legs = {name: getattr(sources, name)["order_no"] for name in LEGS[:-1] if name in of}
    codes, labels = coded([*legs.values()])
    label_of_code = np.zeros(keys.size, dtype=np.intp)
    there = np.zeros(keys.size, dtype=np.bool_)
    for name, code in zip(legs, codes, strict=True):
        inside = of[name] != NO_KEY
        label_of_code[of[name][inside]] = code[inside]
        there[of[name][inside]] = True
    several = np.bincount(label_of_code[there], minlength=len(labels)) > 1
    return np.flatnonzero(there & several[label_of_code])
