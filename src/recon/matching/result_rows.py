"""From judged sets to the rows of matches, pending, breaks and unverified."""

import hashlib

import numpy as np
import pandas as pd

from recon.matching.gateway_side import GATEWAY_STATES, NUMBER
from recon.matching.grouping import Bools, Ints
from recon.matching.joined_sets import Joined
from recon.matching.ledger_side import compared, entry_versions, ledger_items
from recon.matching.orders_side import ORDER_STATES
from recon.matching.outcomes import Outcomes
from recon.matching.result import MATCH_COLUMNS
from recon.matching.sets import BY_PAYOUT
from recon.matching.versions import NEW
from recon.model import Flag

ID_DIGITS = 16
"""Hexadecimal digits of a break_id and a match_id."""

SORTED_BY = ["merchant_id", "account_id", "order_no", "transaction_id"]


def shown_rows(joined: Joined, *, outcomes: Outcomes) -> pd.DataFrame:
    """What every set shows of itself (grain: set and currency, the set's own currency first).

    Columns: set, own (the set's own currency), and MATCH_COLUMNS without match_id, flags, rule.
    """
    sets = joined.sets
    rows = _of_sets(_with_explained(sets, outcomes=outcomes))
    rows.insert(0, "set", np.arange(len(sets)))
    rows.insert(1, "own", np.ones(len(sets), dtype=np.bool_))
    nets = {side: sets[f"{side}_net"].to_numpy(dtype=np.int64).copy() for side in _SIDES}
    away = np.flatnonzero(outcomes.host >= 0)
    for side in _SIDES:
        np.add.at(nets[side], outcomes.host[away], nets[side][away].copy())
    presence = _presence(sets, outcomes=outcomes)
    _put_amounts(rows, nets=nets, presence=presence, covered=joined.covered)
    return pd.concat([rows, _other_currencies(joined, rows=rows)], ignore_index=True)


_SIDES = ("order", "gateway", "ledger", "payout")


def _with_explained(sets: pd.DataFrame, *, outcomes: Outcomes) -> pd.DataFrame:
    """A host shows the payment of the set in the other account that it stands for."""
    away = np.flatnonzero(outcomes.host >= 0)
    if not away.size:
        return sets
    shown = {}
    for name, nothing in (("gateway_state", 0), ("gateway_transaction", "")):
        values = sets[name].to_numpy(dtype=object).copy()
        hosts = outcomes.host[away]
        blank = values[hosts] == nothing
        values[hosts[blank]] = values[away[blank]]
        shown[name] = pd.Series(values).astype(sets[name].dtype)
    return sets.assign(**shown)


def _of_sets(sets: pd.DataFrame) -> pd.DataFrame:
    transaction = sets["gateway_transaction"]
    for other in ("order_transaction", "ledger_transaction_id", "settled_transaction"):
        transaction = transaction.where(transaction.ne(""), sets[other])
    transaction = transaction.where(sets["kind"].ne(BY_PAYOUT), sets["key"])
    return pd.DataFrame(
        {
            "merchant_id": sets["merchant_id"],
            "account_id": sets["account_id"],
            "order_no": sets["order_no"],
            "transaction_id": transaction,
            "entry_id": sets["entry_ids"],
            "state_orders": _words(ORDER_STATES, numbers=sets["order_state"].to_numpy()),
            "state_gateway": _words(GATEWAY_STATES, numbers=sets["gateway_state"].to_numpy()),
            "currency": sets["currency"],
        }
    )


def _words(words: tuple[str, ...], *, numbers: Ints) -> "pd.Series[str]":
    return pd.Series(np.asarray(words, dtype=object)[numbers], dtype="str")


def _presence(sets: pd.DataFrame, *, outcomes: Outcomes) -> dict[str, Bools]:
    """Which sides a set has; a host has those of the set that it explains."""
    silent = [NUMBER["none"], NUMBER["unverified"]]
    presence = {
        "order": sets["order_state"].ne(0).to_numpy(),
        "gateway": ~np.isin(sets["gateway_state"], silent) | sets["payout_net"].ne(0).to_numpy(),
        "ledger": sets["ledger_present"].to_numpy(),
    }
    away = np.flatnonzero(outcomes.host >= 0)
    for side, mask in presence.items():
        presence[side] = mask.copy()
        presence[side][outcomes.host[away]] |= mask[away]
    return presence


def _put_amounts(
    rows: pd.DataFrame, *, nets: dict[str, Ints], presence: dict[str, Bools], covered: bool
) -> None:
    shown = {**nets, "gateway": nets["gateway"] + nets["payout"]}
    for side, given in presence.items():
        rows[f"{side}_amount"] = nullable(shown[side], given=given)
    everywhere = np.ones(len(rows), dtype=np.bool_)
    rows["effect_orders"] = nullable(nets["gateway"] - nets["order"], given=everywhere)
    rows["effect_ledger"] = nullable(
        shown["gateway"] - nets["ledger"], given=everywhere & np.bool_(covered)
    )


def nullable(values: Ints, *, given: Bools) -> "pd.Series[int]":
    """Int64 minor units, blank where not given."""
    array = pd.arrays.IntegerArray(np.where(given, values, 0).astype(np.int64), ~given)
    return pd.Series(array)


def _other_currencies(joined: Joined, *, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows for the second currencies of a set."""
    own = joined.sets["currency"].to_numpy()[joined.nets["set"].to_numpy()]
    other = joined.nets[joined.nets["currency"].to_numpy() != own].reset_index(drop=True)
    extra: pd.DataFrame = rows.iloc[other["set"].to_numpy()].reset_index(drop=True)
    extra["own"] = False
    extra["currency"] = other["currency"]
    nets = {side: other[f"{side}_net"].to_numpy(dtype=np.int64) for side in _SIDES}
    presence = {side: nets[side] != 0 for side in ("order", "gateway", "ledger")}
    presence["gateway"] |= nets["payout"] != 0
    _put_amounts(extra, nets=nets, presence=presence, covered=joined.covered)
    return extra


def identities(sets: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
    """The id of each set: digest of merchant, account, key and sequence, never of a code."""
    sequence = np.ones(len(sets), dtype=np.int64)
    keyed = ["merchant_id", "account_id", "key"]
    if sets["kind"].ne(0).any():
        twins = sets[sets.duplicated(keyed, keep=False)].sort_values("kind", kind="stable")
        sequence[twins.index.to_numpy()] = twins.groupby(keyed).cumcount().to_numpy() + 1
    columns = [sets[name] for name in keyed]
    return identity_of(*columns, sequence=sequence).to_numpy(dtype=object)


def identity_of(
    merchant: "pd.Series[str]",
    account: "pd.Series[str]",
    key: "pd.Series[str]",
    *,
    sequence: Ints | None = None,
) -> "pd.Series[str]":
    """The id of each set from its columns; without a sequence it is the first of its key."""
    # Joined column by column: a million rows are too many to join one by one.
    last = "1" if sequence is None else pd.Series(sequence.astype("str"), index=key.index)
    texts = (merchant + "\x1f" + account + "\x1f" + key + "\x1f" + last).tolist()
    return pd.Series([*map(id_of_text, texts)], dtype="str")


def id_of_text(text: str) -> str:
    """The id of a text that names a set."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def entry_ids(items: pd.DataFrame, *, size: int, only: "pd.Series[str]") -> "pd.Series[str]":
    """The entries of each set joined by `;`, sorted (`only`: the id where there is one)."""
    joined = only.to_numpy(dtype=object).copy()
    crowded = items[items.duplicated("set", keep=False)]
    if len(crowded):
        several = crowded.sort_values(["set", "entry_id"]).groupby("set")["entry_id"]
        texts = several.agg(";".join)
        joined[texts.index.to_numpy()] = texts.to_numpy(dtype=object)
    return pd.Series(joined[:size], dtype="str")


def not_compared_rows(ledger: pd.DataFrame) -> pd.DataFrame:
    """Matches for entries that have nothing to be compared with (grain: entry)."""
    alone = ~compared(ledger) & (entry_versions(ledger) == NEW)
    rows = ledger[alone].reset_index(drop=True)
    items = ledger_items(rows)
    shown = rows[["merchant_id", "account_id", "order_no", "transaction_id", "entry_id"]].copy()
    shown["match_id"] = [
        id_of_text("\x1f".join(text))
        for text in zip(rows["merchant_id"], rows["account_id"], rows["entry_id"], strict=True)
    ]
    shown["match_id"] = shown["match_id"].astype("str")
    words = {"flags": Flag.NOT_COMPARED.value, "rule": "not_compared"}
    for name, word in {**words, "state_orders": "none", "state_gateway": "none"}.items():
        shown[name] = pd.Series([word] * len(rows), dtype="str")
    shown["currency"] = items["currency"]
    nothing = np.zeros(len(rows), dtype=np.int64)
    given = np.ones(len(rows), dtype=np.bool_)
    for name in ("order_amount", "gateway_amount"):
        shown[name] = nullable(nothing, given=~given)
    for name in ("ledger_amount", "effect_orders", "effect_ledger"):
        shown[name] = nullable(nothing, given=given)
    matched: pd.DataFrame = shown[[*MATCH_COLUMNS]]
    return matched
