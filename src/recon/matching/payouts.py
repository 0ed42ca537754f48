"""Payouts: what left towards a bank, against what the ledger says left.

A payout has no order. Its set is named by the id under which it was asked for, or by the batch of
the settlement file that pays the merchant out. A ledger entry joins the payout that its reference,
transaction or order names; one that names none stands alone where a settlement file covers its
account, elsewhere it stays `not_compared`. A payout that was refused and sent again is answered.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

import numpy as np
import pandas as pd

from recon.matching.grouping import Bools, Ints, Rows, latest, total
from recon.matching.instruction_side import started_at
from recon.matching.settlement_side import pay_outs
from recon.matching.sources import Sources
from recon.model import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REJECTED_STATES,
    REVERSAL_SUFFIX,
    EntryType,
    InstructionKind,
)

_STANDINGS = (
    ("confirmed", CONFIRMED_STATES),
    ("doubtful", DOUBTFUL_STATES),
    ("rejected", REJECTED_STATES),
)
_PAYOUT_TYPES = (EntryType.PAYOUT.value, EntryType.PAYOUT.value + REVERSAL_SUFFIX)
_ENTRY = (
    *("merchant_id", "account_id", "entry_id", "reverses_entry_id"),
    *("reference_no", "transaction_id", "order_no"),
)
_NAMED_BY = ("reference_no", "transaction_id", "order_no")
"""Columns of a ledger entry that may name its payout, in this order."""

Key = tuple[str, str, str]
"""Merchant, account, name."""
ANSWERED = "answered"
"""Standing of a refused payout that was sent again: nothing is wrong with it any more."""


class Paid(IntFlag):
    """What is known of one payout."""

    PAYOUT = 1
    CONFIRMED = 2
    DOUBTFUL = 4
    REJECTED = 8
    BOOKED = 16
    DIFFERS = 32


@dataclass(frozen=True, slots=True)
class Payouts:
    """The payouts of all sets."""

    items: pd.DataFrame
    """One row per payout told: row, set, currency, amount, net (less the amount where it was surely
    paid), at, standing."""
    frame: pd.DataFrame
    """The sets of payouts, to stand behind the others: merchant_id, account_id, order_no, key."""
    ledger: Rows
    """For each ledger row, its set among `frame`, else -1."""
    instructions: Rows
    """For each instruction, its set among `frame`, else -1."""


def judged_entries(sources: Sources) -> Bools:
    """Payout entries that somebody could have told of.

    Where a settlement file covers the account, all of its payout entries. Where only instructions
    tell of payouts, those that name one of them and what reverses them: what the gateway pays out
    to the merchant itself has no source there, so nothing of it is a break.
    """
    ledger = sources.ledger
    if ledger is None:
        return np.zeros(0, dtype=np.bool_)
    settled = {(row["merchant_id"], row["account_id"]) for row in _settled(sources.settlement)}
    named = {_key(row, name) for row in _told(sources) for name in row["names"]}
    marks = ledger["entry_type"].isin(_PAYOUT_TYPES).to_numpy().copy()
    rows = ledger.loc[marks, [*_ENTRY]].to_dict("records")
    ours = {_key(row, row["entry_id"]) for row in rows if _is_named(row, named=named)}
    marks[marks] = [
        (row["merchant_id"], row["account_id"]) in settled
        or _key(row, row["entry_id"]) in ours
        or _key(row, row["reverses_entry_id"]) in ours
        for row in rows
    ]
    return marks


def _is_named(row: Mapping[Any, Any], *, named: set[Key]) -> bool:
    return any(_key(row, row[name]) in named for name in _NAMED_BY if row[name])


def payouts_of(sources: Sources, *, judged: Bools) -> Payouts:
    """The payouts that were told, with the ledger entries that name them."""
    told = list(_told(sources))
    numbers: dict[Key, int] = {}
    names: dict[Key, int] = {}
    for row in told:
        row["set"] = numbers.setdefault(_key(row, row["name"]), len(numbers))
        for name in row["names"]:
            names.setdefault(_key(row, name), row["set"])
    instructed = np.full(_length(sources.instructions), -1, dtype=np.intp)
    for row in told:
        if row["source"] == "instructions":
            instructed[row["row"]] = row["set"]
    booked = _booked(sources.ledger, judged=judged, numbers=numbers, names=names)
    frame = pd.DataFrame(
        [(merchant, account, "", name) for merchant, account, name in numbers],
        columns=["merchant_id", "account_id", "order_no", "key"],
        dtype="str",
    )
    return Payouts(_items(told), frame, booked, instructed)


def payout_facts(payouts: Payouts, *, first: int, size: int) -> pd.DataFrame:
    """Columns payout (bits of Paid, but for BOOKED and DIFFERS), payout_at, currency, amount."""
    items = payouts.items
    groups = items["set"].to_numpy(dtype=np.intp) + first
    bits = np.zeros(size, dtype=np.int64)
    bits[first:] |= Paid.PAYOUT
    for standing, _ in _STANDINGS:
        np.bitwise_or.at(
            bits, groups[items["standing"].eq(standing).to_numpy()], Paid[standing.upper()]
        )
    currency = np.full(size, "", dtype=object)
    currency[groups] = items["currency"].to_numpy(dtype=object)
    paid = items["amount"].to_numpy(dtype=np.int64)
    return pd.DataFrame(
        {
            "payout": bits,
            "payout_at": latest(items["at"].to_numpy(dtype=np.int64), groups=groups, size=size),
            "payout_currency": pd.Series(currency, dtype="str"),
            "payout_amount": total(paid, groups=groups, size=size),
        }
    )


def paid_out(sets: pd.DataFrame) -> Ints:
    """The bits of Paid of every set, once the ledger stands beside the payouts."""
    bits = sets["payout"].to_numpy(dtype=np.int64).copy()
    if not bits.any():
        return bits
    booked = sets["ledger_any"].ne(0).to_numpy()
    differs = sets["payout_net"].ne(sets["ledger_net"]) | sets["currencies"].gt(1)
    bits[booked & (bits > 0)] |= Paid.BOOKED
    bits[differs.to_numpy() & (bits > 0)] |= Paid.DIFFERS
    return bits


def _told(sources: Sources) -> Iterator[dict[str, Any]]:
    """Every payout that somebody tells of and that may have moved or was refused."""
    yield from _instructed(sources.instructions)
    yield from _settled(sources.settlement)


def _instructed(instructions: pd.DataFrame | None) -> Iterator[dict[str, Any]]:
    if instructions is None:
        return
    payouts = instructions[instructions["kind"].eq(InstructionKind.PAYOUT).to_numpy()]
    at = started_at(payouts)
    answered = _sent_again(payouts, at=at)
    rows = np.flatnonzero(instructions["kind"].eq(InstructionKind.PAYOUT).to_numpy())
    for row, since, cells in zip(rows, at, payouts.to_dict("records"), strict=True):
        standing = next((name for name, states in _STANDINGS if cells["state"] in states), None)
        if standing is None:
            continue
        if _key(cells, cells["instruction_id"]) in answered:
            standing = ANSWERED
        named = tuple(
            cells[name] for name in ("request_id", "transaction_id", "instruction_id", "order_no")
        )
        yield {
            **_place(cells),
            "source": "instructions",
            "row": int(row),
            "amount": cells["amount"],
            "at": int(since),
            "standing": standing,
            "name": cells["request_id"] or cells["instruction_id"],
            "names": [name for name in named if name],
        }


def _sent_again(payouts: pd.DataFrame, *, at: Ints) -> set[Key]:
    """Refused payouts that a later confirmed one stands for, one for one.

    Only where both name the same order number and amount: equal amounts alone may have two payees.
    """
    same = ["merchant_id", "account_id", "order_no", "currency", "amount"]
    named = payouts.assign(_at=at)[payouts["order_no"].ne("").to_numpy()]
    dated = named.sort_values(["_at", "instruction_id"])
    waiting: dict[tuple[Any, ...], list[Key]] = {}
    answered: set[Key] = set()
    for cells in dated.to_dict("records"):
        key = tuple(cells[name] for name in same)
        if cells["state"] in REJECTED_STATES:
            waiting.setdefault(key, []).append(_key(cells, cells["instruction_id"]))
        elif cells["state"] in CONFIRMED_STATES and waiting.get(key):
            answered.add(waiting[key].pop(0))
    return answered


def _settled(settlement: pd.DataFrame | None) -> Iterator[dict[str, Any]]:
    if settlement is None:
        return
    mine = pay_outs(settlement)
    for row, cells in zip(np.flatnonzero(mine), settlement[mine].to_dict("records"), strict=True):
        yield {
            **_place(cells),
            "source": "settlement",
            "row": int(row),
            "amount": cells["net"],
            "at": int(pd.Timestamp(cells["settled_on"], tz="UTC").as_unit("us").value // 1000),
            "standing": "confirmed",
            "name": f"{cells['batch_id']}/{cells['currency']}",
            "names": [f"{cells['batch_id']}/{cells['currency']}", cells["batch_id"]],
        }


def _booked(
    ledger: pd.DataFrame | None,
    *,
    judged: Bools,
    numbers: dict[Key, int],
    names: Mapping[Key, int],
) -> Rows:
    """The set of every judged entry; entries that name no payout get sets of their own."""
    found = np.full(_length(ledger), -1, dtype=np.intp)
    if ledger is None:
        return found
    entries = ledger[judged].assign(_row=np.flatnonzero(judged)).to_dict("records")
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
        found[cells["_row"]] = number
    return found


def _named(cells: Mapping[Any, Any], *, names: Mapping[Key, int]) -> int | None:
    """The payout that an entry names; of a batch with several currencies, that of its own."""
    words: Sequence[str] = [cells[name] for name in _NAMED_BY if cells[name]]
    tried = (word for name in words for word in (f"{name}/{cells['currency']}", name))
    return next((names[key] for word in tried if (key := _key(cells, word)) in names), None)


def _items(told: list[dict[str, Any]]) -> pd.DataFrame:
    columns = ("set", "row", "currency", "amount", "at", "standing")
    frame = pd.DataFrame({name: [row[name] for row in told] for name in columns})
    frame = frame.astype(
        {"set": "int64", "row": "int64", "currency": "str"}
        | {"amount": "int64", "at": "int64", "standing": "str"}
    )
    sure = frame["standing"].eq("confirmed").to_numpy()
    frame["net"] = np.where(sure, -frame["amount"].to_numpy(dtype=np.int64), 0).astype(np.int64)
    frame["row"] = np.arange(len(frame))
    return frame


def _place(cells: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: cells[name] for name in ("merchant_id", "account_id", "currency")}


def _key(row: Mapping[Any, Any], name: str) -> Key:
    return row["merchant_id"], row["account_id"], name


def _length(frame: pd.DataFrame | None) -> int:
    return 0 if frame is None else len(frame)
