"""Payouts that we requested: compares what left towards a payee with the ledger's entries.

A payout has no order; its set is named by the id under which it was requested. A ledger entry joins
the payout that its reference, transaction or order names. A rejected payout that was sent again is
answered. Payouts that the gateway makes to the merchant by itself are in `matching/cash`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.frames.arrays import Arrays, Column, filled, records
from recon.matching.frames.coding import equals
from recon.matching.frames.grouping import Bools, Ints, Rows, latest, total
from recon.matching.frames.sources import Sources
from recon.matching.sides.instruction_side import STANDINGS, started_at
from recon.model.terms import (
    CONFIRMED_STATES,
    REJECTED_STATES,
    REVERSAL_SUFFIX,
    EntryType,
    InstructionKind,
)

_STATUSES = {name: states for name, states in STANDINGS.items() if name != "waiting"}
PAYOUT_TYPES = (EntryType.PAYOUT.value, EntryType.PAYOUT.value + REVERSAL_SUFFIX)
"""Types of entries that may belong to a payout of ours."""
_ENTRY = (
    *("merchant_id", "account_id", "entry_id", "reverses_entry_id"),
    *("reference_no", "transaction_id", "order_no"),
)
_INSTRUCTION = (
    *("merchant_id", "account_id", "currency", "amount", "state", "order_no", "transaction_id"),
    *("instruction_id", "request_id"),
)
_NAMED_BY = ("reference_no", "transaction_id", "order_no")
"""Columns of a ledger entry that may name its payout, in this order."""

Key = tuple[str, str, str]
"""Merchant, account, name."""
ANSWERED = "answered"
"""Status of a rejected payout that was sent again: nothing is wrong with it any more."""


class KnownPayout(IntFlag):
    """Bits of what is known of one payout."""

    PAYOUT = 1
    CONFIRMED = 2
    DOUBTFUL = 4
    REJECTED = 8
    BOOKED = 16
    DIFFERS = 32


@dataclass(frozen=True, slots=True)
class Payouts:
    """The payouts of all sets."""

    items: Arrays
    """One row per payout instruction: row, set, currency, amount, net (minus the amount where
    confirmed, else 0), at, standing."""
    frame: Arrays
    """The sets of payouts, to be appended to the others: merchant_id, account_id, order_no, key."""
    ledger: Rows
    """For each ledger row, its set among `frame`, else -1."""
    instructions: Rows
    """For each instruction, its set among `frame`, else -1."""


def classified_entries(sources: Sources) -> Bools:
    """Mark payout entries that name a payout of ours, and the entries that reverse them."""
    ledger = sources.ledger
    if ledger is None:
        return np.zeros(0, dtype=np.bool_)
    mask = equals(ledger["entry_type"], *PAYOUT_TYPES)
    if not mask.any():
        return mask
    named = {_key(row, name) for row in _instructed(sources.instructions) for name in row["names"]}
    rows = [*records(ledger, rows=np.flatnonzero(mask), names=_ENTRY)]
    ours = {
        _key(row, row["entry_id"])
        for row in rows
        if any(_key(row, row[name]) in named for name in _NAMED_BY if row[name])
    }
    mask[mask] = [
        _key(row, row["entry_id"]) in ours or _key(row, row["reverses_entry_id"]) in ours
        for row in rows
    ]
    return mask


def payouts_of(sources: Sources, *, classified: Bools) -> Payouts:
    """Collect the payouts that were requested, with the ledger entries that name them."""
    rows = list(_instructed(sources.instructions))
    numbers: dict[Key, int] = {}
    names: dict[Key, int] = {}
    for row in rows:
        row["set"] = numbers.setdefault(_key(row, row["name"]), len(numbers))
        for name in row["names"]:
            names.setdefault(_key(row, name), row["set"])
    moves = sources.instructions
    instructed = np.full(0 if moves is None else len(moves), -1, dtype=np.intp)
    for row in rows:
        instructed[row["row"]] = row["set"]
    booked = _booked(sources.ledger, classified=classified, numbers=numbers, names=names)
    named = np.array([*numbers], dtype=object).reshape(-1, 3)
    columns = dict(zip(("merchant_id", "account_id", "key"), named.T, strict=True))
    frame = Arrays({**columns, "order_no": filled("", size=len(named))}, size=len(named))
    return Payouts(_items(rows), frame, booked, instructed)


def payout_facts(payouts: Payouts, *, first: int, size: int) -> dict[str, Column]:
    """Return payout (KnownPayout bits but BOOKED, DIFFERS), payout_at, currency and amount."""
    items = payouts.items
    groups = items["set"] + first
    bits = np.zeros(size, dtype=np.int64)
    bits[first:] |= KnownPayout.PAYOUT
    for status in _STATUSES:
        np.bitwise_or.at(bits, groups[items["status"] == status], KnownPayout[status.upper()])
    currency = filled("", size=size)
    currency[groups] = items["currency"]
    return {
        "payout": bits,
        "payout_at": latest(items["at"], groups=groups, size=size),
        "payout_currency": currency,
        "payout_amount": total(items["amount"], groups=groups, size=size),
    }


def paid_out(sets: Arrays) -> Ints:
    """Return the KnownPayout bits of every set, with BOOKED and DIFFERS set from the ledger."""
    bits: Ints = sets["payout"].copy()
    if not bits.any():
        return bits
    differs = (sets["payout_net"] != sets["ledger_net"]) | (sets["currencies"] > 1)
    bits[(sets["ledger_any"] != 0) & (bits > 0)] |= KnownPayout.BOOKED
    bits[differs & (bits > 0)] |= KnownPayout.DIFFERS
    return bits


def _instructed(instructions: pd.DataFrame | None) -> Iterator[dict[str, Any]]:
    """Yield every payout instruction that may have moved money or was rejected."""
    if instructions is None:
        return
    rows = np.flatnonzero(equals(instructions["kind"], InstructionKind.PAYOUT.value))
    if not rows.size:
        return
    at = started_at(instructions)[rows]
    payouts = [*records(instructions, rows=rows, names=_INSTRUCTION)]
    answered = _sent_again(payouts, at=at)
    for row, since, cells in zip(rows, at, payouts, strict=True):
        status = next(
            (name for name, states in _STATUSES.items() if cells["state"] in states), None
        )
        if status is None:
            continue
        if _key(cells, cells["instruction_id"]) in answered:
            status = ANSWERED
        named = tuple(
            cells[name] for name in ("request_id", "transaction_id", "instruction_id", "order_no")
        )
        yield {
            **{name: cells[name] for name in ("merchant_id", "account_id", "currency")},
            "row": int(row),
            "amount": cells["amount"],
            "at": int(since),
            "status": status,
            "name": cells["request_id"] or cells["instruction_id"],
            "names": [name for name in named if name],
        }


def _sent_again(payouts: list[dict[str, Any]], *, at: Ints) -> set[Key]:
    """Return rejected payouts that a later confirmed one replaces, one for one.

    Both must name the same order number and amount: equal amounts alone may have two payees.
    """
    same = ["merchant_id", "account_id", "order_no", "currency", "amount"]
    named = [
        (int(since), cells["instruction_id"], number)
        for number, (since, cells) in enumerate(zip(at, payouts, strict=True))
        if cells["order_no"]
    ]
    waiting: dict[tuple[Any, ...], list[Key]] = {}
    answered: set[Key] = set()
    for _, _, number in sorted(named):
        cells = payouts[number]
        key = tuple(cells[name] for name in same)
        if cells["state"] in REJECTED_STATES:
            waiting.setdefault(key, []).append(_key(cells, cells["instruction_id"]))
        elif cells["state"] in CONFIRMED_STATES and waiting.get(key):
            answered.add(waiting[key].pop(0))
    return answered


def _booked(
    ledger: pd.DataFrame | None,
    *,
    classified: Bools,
    numbers: dict[Key, int],
    names: Mapping[Key, int],
) -> Rows:
    """Return the set of every compared entry; entries that name no payout get sets of their own."""
    if ledger is None:
        return np.zeros(0, dtype=np.intp)
    entry_of = np.full(len(ledger), -1, dtype=np.intp)
    rows = np.flatnonzero(classified)
    entries = [*records(ledger, rows=rows, names=(*_ENTRY, "currency"))]
    for row, cells in zip(rows, entries, strict=True):
        cells["_row"] = row
    of_entry: dict[Key, int] = {}
    reversals = [cells for cells in entries if cells["reverses_entry_id"]]
    plain = [cells for cells in entries if not cells["reverses_entry_id"]]
    for cells in (*plain, *reversals):
        number = of_entry.get(_key(cells, cells["reverses_entry_id"]))
        if number is None:
            number = _named(cells, names=names)
        if number is None:
            own = next(cells[name] for name in (*_NAMED_BY, "entry_id") if cells[name])
            number = numbers.setdefault(_key(cells, own), len(numbers))
        of_entry[_key(cells, cells["entry_id"])] = number
        entry_of[cells["_row"]] = number
    return entry_of


def _named(cells: Mapping[Any, Any], *, names: Mapping[Key, int]) -> int | None:
    """Return the set of the payout that an entry names, or None."""
    tried = (_key(cells, cells[name]) for name in _NAMED_BY if cells[name])
    return next((names[key] for key in tried if key in names), None)


def _items(rows: list[dict[str, Any]]) -> Arrays:
    kinds = {"set": np.intp, "currency": object, "amount": np.int64}
    kinds |= {"at": np.int64, "status": object}
    columns = {name: np.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    columns["net"] = np.where(columns["status"] == "confirmed", -columns["amount"], 0)
    return Arrays({**columns, "row": np.arange(len(rows))}, size=len(rows))


def _key(row: Mapping[Any, Any], name: str) -> Key:
    return row["merchant_id"], row["account_id"], name
