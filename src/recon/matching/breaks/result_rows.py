"""From judged sets to the rows of matches, pending, breaks and unverified."""

import hashlib
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.frames.arrays import (
    Arrays,
    Column,
    among,
    filled,
    stacked,
    text_array,
    text_column,
    texts,
)
from recon.matching.frames.coding import pieces
from recon.matching.frames.grouping import Bools, Ints
from recon.matching.frames.sources import Sources
from recon.matching.frames.versions import NEW, Versions
from recon.matching.judging.marks import set_flags
from recon.matching.judging.outcomes import Outcomes
from recon.matching.sets.joined_sets import Joined
from recon.matching.sets.sets import BY_ENTRY, BY_PAYOUT, BY_TRANSACTION
from recon.matching.sides.gateway_side import GATEWAY_STATES, NUMBER
from recon.matching.sides.ledger_side import booked, not_compared
from recon.matching.sides.orders_side import ORDER_STATES
from recon.model.words import Flag

ID_DIGITS = 16
"""Hexadecimal digits of a break_id and a match_id."""
NO_AMOUNT = int(np.iinfo(np.int64).min)
"""A side that is absent, in columns of amounts that become blank cells."""

HEXADECIMAL = np.array([f"{byte:02x}" for byte in range(256)], dtype="S2")
"""The two digits of a byte."""
TEXT, BYTES = pa.large_string(), pa.large_binary()
ROWS_AT_ONCE = 8_192
"""Texts that become bytes of Python together: those of a million would each take a new place."""
_FIRST, _BETWEEN = pa.scalar("1", TEXT), pa.scalar("\x1f", TEXT)

SORTED_BY = ["merchant_id", "account_id", "order_no", "transaction_id"]


def judged_rows(
    joined: Joined, *, outcomes: Outcomes, sources: Sources, rules: Rules, as_of: datetime
) -> Arrays:
    """What every set shows, with its state and flags (see shown_rows)."""
    rows = shown_rows(joined, outcomes=outcomes)
    numbers = rows["set"]
    flags = set_flags(
        joined.sets,
        outcomes=outcomes,
        instructed=sources.instructions is not None,
        as_of=as_of,
        rules=rules,
    )
    return rows.assign(state=outcomes.states()[numbers], flags=flags[numbers])


def shown_rows(joined: Joined, *, outcomes: Outcomes) -> Arrays:
    """What every set shows of itself (grain: set and currency, the set's own currency first).

    Columns: set, own (the set's own currency), and MATCH_COLUMNS without match_id, flags, rule;
    NO_AMOUNT for amounts of sides that are absent.
    """
    sets = joined.sets
    rows = _of_sets(_with_explained(sets, outcomes=outcomes))
    nets = {side: sets[f"{side}_net"].copy() for side in _SIDES}
    away = np.flatnonzero(outcomes.host >= 0)
    for side in _SIDES:
        np.add.at(nets[side], outcomes.host[away], nets[side][away].copy())
    presence = _presence(sets, outcomes=outcomes)
    rows.columns |= _amounts(nets, presence=presence, covered=joined.covered)
    other = _other_currencies(joined, rows=rows)
    return stacked([rows, other], names=(*rows.columns,)) if len(other) else rows


_SIDES = ("order", "gateway", "ledger", "payout")


def _with_explained(sets: Arrays, *, outcomes: Outcomes) -> Arrays:
    """A host shows the payment of the set in the other account that it stands for."""
    away = np.flatnonzero(outcomes.host >= 0)
    if not away.size:
        return sets
    shown = {}
    for name, nothing in (("gateway_state", 0), ("gateway_transaction", "")):
        values = sets[name].copy()
        hosts = outcomes.host[away]
        blank = values[hosts] == nothing
        values[hosts[blank]] = values[away[blank]]
        shown[name] = values
    return sets.assign(**shown)


def _of_sets(sets: Arrays) -> Arrays:
    transaction = sets["gateway_transaction"]
    for other in ("order_transaction", "ledger_transaction_id", "settled_transaction"):
        transaction = np.where(transaction != "", transaction, sets[other])
    columns = {
        "set": np.arange(len(sets)),
        "own": np.ones(len(sets), dtype=np.bool_),
        "merchant_id": sets["merchant_id"],
        "account_id": sets["account_id"],
        "order_no": sets["order_no"],
        "transaction_id": np.where(_is_named_by_us(sets), sets["key"], transaction),
        "entry_id": sets["entry_ids"],
        "state_orders": _words(ORDER_STATES, numbers=sets["order_state"]),
        "state_gateway": _words(GATEWAY_STATES, numbers=sets["gateway_state"]),
        "currency": sets["currency"],
    }
    return Arrays(columns, size=len(sets))


def _is_named_by_us(sets: Arrays) -> Bools:
    """Sets that are called by what we instructed: of a payout, of a subscription."""
    alone = (sets["kind"] == BY_TRANSACTION) | (sets["kind"] == BY_ENTRY)
    others = (sets["gateway_transaction"] != "") | sets["ledger_present"] | sets["settled_any"]
    instructed = (sets["instruction_currency"] != "") & ~others
    return np.asarray((sets["kind"] == BY_PAYOUT) | (alone & instructed), dtype=np.bool_)


def _words(words: tuple[str, ...], *, numbers: Ints) -> Column:
    return np.asarray(words, dtype=object)[numbers]


def _presence(sets: Arrays, *, outcomes: Outcomes) -> dict[str, Bools]:
    """Which sides a set has; a host has those of the set that it explains."""
    silent = [NUMBER["none"], NUMBER["unverified"]]
    presence = {
        "order": sets["order_state"] != 0,
        "gateway": ~np.isin(sets["gateway_state"], silent) | (sets["payout_net"] != 0),
        "ledger": sets["ledger_present"],
    }
    away = np.flatnonzero(outcomes.host >= 0)
    for side, mask in presence.items():
        presence[side] = mask.copy()
        presence[side][outcomes.host[away]] |= mask[away]
    return presence


def _amounts(
    nets: dict[str, Ints], *, presence: dict[str, Bools], covered: bool
) -> dict[str, Column]:
    shown = {**nets, "gateway": nets["gateway"] + nets["payout"]}
    amounts = {
        f"{side}_amount": np.where(given, shown[side], NO_AMOUNT)
        for side, given in presence.items()
    }
    of_ledger = shown["gateway"] - nets["ledger"]
    return {
        **amounts,
        "effect_orders": nets["gateway"] - nets["order"],
        "effect_ledger": of_ledger if covered else np.full(len(of_ledger), NO_AMOUNT),
    }


def nullable(values: Ints, *, given: Bools) -> "pd.Series[int]":
    """Int64 minor units, blank where not given."""
    return pd.Series(_blanked(values, given=given), copy=False)


def _blanked(values: Ints, *, given: Bools) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(np.where(given, values, 0).astype(np.int64), ~given)


def frame_of_rows(
    rows: Arrays, *, names: tuple[str, ...], amounts: tuple[str, ...]
) -> pd.DataFrame:
    """Some columns as a frame.

    Args:
        rows: texts, numbers and amounts.
        names: the columns, in this order.
        amounts: those that become blank where NO_AMOUNT stands.
    """
    columns: dict[str, object] = {}
    for name in names:
        column = rows[name]
        if name in amounts:
            columns[name] = _blanked(column, given=column != NO_AMOUNT)
        else:
            columns[name] = text_array(column) if column.dtype == object else column
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows)))


def _other_currencies(joined: Joined, *, rows: Arrays) -> Arrays:
    """Rows for the second currencies of a set."""
    nets = joined.nets
    other = nets.take(nets["currency"] != joined.sets["currency"][nets["set"]])
    extra = rows.take(other["set"]).assign(own=False, currency=other["currency"])
    sums = {side: other[f"{side}_net"] for side in _SIDES}
    presence = {side: sums[side] != 0 for side in ("order", "gateway", "ledger")}
    presence["gateway"] = presence["gateway"] | (sums["payout"] != 0)
    return extra.assign(**_amounts(sums, presence=presence, covered=joined.covered))


def identities(sets: Arrays) -> Column:
    """The id of each set: digest of merchant, account, key and sequence, never of a code."""
    ids = first_identities(sets).to_numpy(dtype=object)
    if sets["kind"].any():
        times: dict[tuple[int, str], int] = {}
        # Only a set of another kind has the key of one before it.
        rows = np.flatnonzero(among(sets["key"], {*sets["key"][sets["kind"] != 0]}))
        for row in rows[np.argsort(sets["kind"][rows], kind="stable")].tolist():
            place = sets["account"][row], sets["key"][row]
            number = times[place] = times.get(place, 0) + 1
            if number > 1:
                named = (sets[name][row] for name in _KEY)
                ids[row] = id_of_text("\x1f".join((*named, str(number))))
    return ids


def first_identities(sets: Arrays) -> "pd.Series[str]":
    """The id of each set, were it the first of its key."""
    return identity_of(*(text_column(sets[name]) for name in _KEY))


_KEY = ("merchant_id", "account_id", "key")


def identity_of(
    merchant: "pd.Series[str]", account: "pd.Series[str]", key: "pd.Series[str]"
) -> "pd.Series[str]":
    """The id of each set from its columns, the first of its key: `id_of_text` of a million."""
    columns = (merchant, account, key)
    first = np.empty((len(key), ID_DIGITS // 2), np.uint8)
    for start in range(0, len(key), ROWS_AT_ONCE):
        at = slice(start, start + ROWS_AT_ONCE)
        parts = [pa.concat_arrays(pieces(column.iloc[at])) for column in columns]
        joined = pc.binary_join_element_wise(*parts, _FIRST, _BETWEEN)
        first[at] = _first_bytes(joined)
    starts = np.arange(0, ID_DIGITS * len(first) + 1, ID_DIGITS)
    ids = pa.LargeStringArray.from_buffers(
        len(first), pa.py_buffer(starts), pa.py_buffer(HEXADECIMAL[first])
    )
    return text_column(ids)


def _first_bytes(texts: pa.Array) -> "npt.NDArray[np.uint8]":
    """The first bytes of the digest of each text."""
    unused, digests = hashlib.sha256(), bytearray()
    for text in texts.cast(BYTES).to_pylist():
        digest = unused.copy()  # in 0.6 of the time of a new one
        digest.update(text)
        digests += digest.digest()
    return np.frombuffer(digests, np.uint8).reshape(-1, unused.digest_size)[:, : ID_DIGITS // 2]


def id_of_text(text: str) -> str:
    """The id of a text that names a set."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def name_entries(joined: Joined) -> None:
    """Let every set know the entries that it shows."""
    joined.sets.columns["entry_ids"] = entry_ids(
        joined.ledger.items, size=joined.keys.size, only=joined.sets["ledger_entry_id"]
    )


def entry_ids(items: Arrays, *, size: int, only: Column) -> Column:
    """The entries of each set joined by `;`, sorted (`only`: the id where there is one)."""
    joined = only.copy()
    crowded = np.bincount(items["set"], minlength=size)[items["set"]] > 1
    several: dict[int, list[str]] = {}
    for number, entry in items.take(crowded).rows("set", "entry_id"):
        several.setdefault(number, []).append(entry)
    for number, entries in several.items():
        joined[number] = ";".join(sorted(entries))
    return joined[:size]


def not_compared_rows(ledger: pd.DataFrame, *, versions: Versions) -> Arrays:
    """Matches for entries that have nothing to be compared with (grain: entry)."""
    alone = np.flatnonzero(not_compared(ledger) & (versions == NEW))
    size = len(alone)
    named = {
        name: texts(ledger[name])[alone]
        for name in ("merchant_id", "account_id", "order_no", "transaction_id", "entry_id")
    }
    key = ("merchant_id", "account_id", "entry_id")
    keys = zip(*(named[name].tolist() for name in key), strict=True)
    words = {"flags": Flag.NOT_COMPARED.value, "rule": "not_compared"}
    words |= {"state_orders": "none", "state_gateway": "none"}
    amounts = dict.fromkeys(("order_amount", "gateway_amount"), NO_AMOUNT)
    amounts |= dict.fromkeys(("ledger_amount", "effect_orders", "effect_ledger"), 0)
    columns = {
        **named,
        "match_id": np.array([id_of_text("\x1f".join(key)) for key in keys], dtype=object),
        **{name: filled(word, size=size) for name, word in words.items()},
        "currency": texts(booked(ledger).currency)[alone],
        **{name: np.full(size, amount) for name, amount in amounts.items()},
    }
    return Arrays(columns, size=size)
