"""Rows that may speak of sets of other rows: a set that one of them names is not calm."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.calm.elsewhere import Elsewhere
from recon.matching.frames.coding import NO_KEY, Codes, by_word, coded, is_word
from recon.matching.frames.fingerprints import are_distinct, are_repeated
from recon.matching.frames.grouping import Bools, Rows, amounts_of, amounts_or, given
from recon.matching.frames.numbering import WholeKeys
from recon.matching.frames.sources import Sources
from recon.matching.sides.closing_entries import CLOSERS
from recon.matching.sides.gateway_side import authorised_amounts
from recon.matching.sides.ledger_side import JUDGED, compared, is_base_type, marked_as
from recon.matching.sides.settled_refunds import refunds_of_others
from recon.matching.sides.settlement_side import of_payments
from recon.model.words import GatewayState, InstructionKind, KeyAnswer

NAMED = ("transaction_id", "reference_no", "order_no")
"""Columns by which a row without an order key may mean a set."""
ALONE = "entry_id_alone"
"""No other entry of the whole ledger has its id (boolean)."""
SHARED = "transaction_maybe_shared"
"""Another answer names the same transaction; in a part, may name it (boolean)."""
_IDS = (
    *("order_no", "transaction_id", "reference_no", "entry_id"),
    *("request_id", "instruction_id", "batch_id"),
)


def marked(sources: Sources, *, elsewhere: Elsewhere | None = None) -> Sources:
    """The sources with what only all rows of a source can tell of one of them.

    `elsewhere`: what is known of all rows where these are a part of them.
    """
    if elsewhere is not None:
        return elsewhere.marked(sources, alone=ALONE, shared=SHARED)
    ledger = sources.ledger
    if ledger is not None:
        ledger = ledger.assign(**{ALONE: _of_own_id(ledger["entry_id"])})
    gateway = sources.gateway.assign(**{SHARED: are_repeated(sources.gateway["transaction_id"])})
    return replace(sources, gateway=gateway, ledger=ledger)


def _of_own_id(ids: "pd.Series[str]") -> Bools:
    """The rows whose id no other row has."""
    if are_distinct(ids):
        return np.ones(len(ids), dtype=np.bool_)
    (codes,), words = coded([ids])
    alone: Bools = np.bincount(codes, minlength=len(words))[codes] == 1
    return alone


def belonging(sources: Sources) -> dict[str, Bools]:
    """For each leg, the rows that make up sets; the others stand outside them (marked sources)."""
    frames = {"orders": sources.orders, "gateway": sources.gateway}
    belongs = {name: np.ones(len(frame), dtype=np.bool_) for name, frame in frames.items()}
    if sources.ledger is not None:
        alone = sources.ledger[ALONE].to_numpy(dtype=np.bool_)
        in_sets = (compared(sources.ledger) | ~alone) & ~marked_as(sources.ledger, JUDGED)
        belongs["ledger"] = in_sets
    if sources.settlement is not None:
        belongs["settlement"] = of_payments(sources.settlement)
    return belongs


def loose_words(sources: Sources, *, belongs: Mapping[str, Bools]) -> frozenset[str]:
    """Every id of every row that is no row of an order.

    Args:
        sources: the whole sources.
        belongs: for each leg, the rows that make up sets.
    """
    words = (word for rows in _loose_rows(sources, belongs=belongs) for word in _words(rows))
    return frozenset(words) - {""}


def _loose_rows(sources: Sources, *, belongs: Mapping[str, Bools]) -> Iterator[pd.DataFrame]:
    for name, inside in belongs.items():
        frame: pd.DataFrame = getattr(sources, name)
        loose = inside & frame["order_no"].eq("").to_numpy()
        if name == "settlement":
            loose |= ~inside
        if name == "ledger":
            loose |= marked_as(frame, JUDGED)
        if loose.any():
            yield frame[loose]
    if sources.instructions is not None:
        moves = sources.instructions
        yield moves[moves["order_no"].eq("") | moves["kind"].eq(InstructionKind.PAYOUT)]


def _words(rows: pd.DataFrame) -> Iterator[str]:
    for name in _IDS:
        if name in rows.columns:
            yield from rows[name].unique()
    if "batch_id" in rows.columns:
        yield from (rows["batch_id"] + "/" + rows["currency"]).unique()


def named(numbers: Codes) -> Codes:
    """The numbers that are of a key."""
    there: Codes = numbers[numbers != NO_KEY]
    return there


def spoken_of(
    legs: Mapping[str, pd.DataFrame],
    *,
    keys: WholeKeys,
    words: frozenset[str],
    rules: Rules,
    is_part: bool,
) -> Bools:
    """The keys of which a row of another set may speak, or that say nothing usable (grain: key).

    Args:
        legs: their frames in marked sources, by name.
        keys: the numbers of their rows.
        words: see `loose_words`; of all rows there are.
        rules: how they are judged.
        is_part: whether these are some of the rows of a night.
    """
    spoken = np.zeros(keys.size, dtype=np.bool_)
    for name, of_rows in _spoken_for(legs, words=words, rules=rules, is_part=is_part).items():
        spoken[named(keys.of[name][of_rows])] = True
    if len({merchant for merchant, _ in keys.accounts}) < len(keys.accounts):
        # An order of one account may have its payment in another one of the merchant.
        spoken[_in_several_accounts(legs, keys=keys)] = True
    return spoken


def _spoken_for(
    legs: Mapping[str, pd.DataFrame], *, words: frozenset[str], rules: Rules, is_part: bool
) -> dict[str, Bools]:
    """The same for each leg (grain: row)."""
    spoken = {name: _by_loose(frame, words=words) for name, frame in legs.items()}
    gateway, ledger = legs["gateway"], legs.get("ledger")
    unmapped = by_word(
        gateway["payment_status"], of=lambda code: rules.state_of(code) is GatewayState.UNMAPPED
    )
    spoken["gateway"] |= ~is_word(gateway["answer"], KeyAnswer.FOUND) | unmapped.astype(np.bool_)
    spoken["gateway"] |= gateway[SHARED].to_numpy(dtype=np.bool_)
    spoken["gateway"] |= _beyond_bounds(gateway, rules=rules)
    if ledger is not None:
        spoken["ledger"] |= ~ledger[ALONE].to_numpy(dtype=np.bool_)
    if is_part and "settlement" in legs:
        spoken["settlement"] |= refunds_of_others(legs["settlement"], gateway=gateway)
        if ledger is not None:
            # What such an entry closes is a group of all lines, or it is of its order.
            spoken["ledger"] |= is_base_type(ledger["entry_type"], *CLOSERS)
    return spoken


def _beyond_bounds(gateway: pd.DataFrame, *, rules: Rules) -> Bools:
    """Answers with more captured than authorised, or more refunded than captured."""
    known = authorised_amounts(gateway, rules=rules)
    captured = amounts_or(gateway["captured_amount"], otherwise=gateway["amount"])
    beyond: Bools = given(known) & (captured > amounts_of(known))
    return beyond | (amounts_of(gateway["refunded_amount"]) > captured)


def _by_loose(frame: pd.DataFrame, *, words: frozenset[str]) -> Bools:
    """Rows that one without an order key may mean."""
    meant = np.zeros(len(frame), dtype=np.bool_)
    if words:
        wanted = pa.array(sorted(words), pa.large_string())
        for column in NAMED:
            if column in frame.columns:
                meant |= np.asarray(pc.is_in(pa.array(frame[column]), value_set=wanted))
    return meant


def _in_several_accounts(legs: Mapping[str, pd.DataFrame], *, keys: WholeKeys) -> Rows:
    """The keys whose order number another account has as well."""
    codes, words = coded([frame["order_no"] for frame in legs.values()])
    word_of = np.zeros(keys.size, dtype=np.intp)
    for name, code in zip(legs, codes, strict=True):
        inside = keys.of[name] != NO_KEY
        word_of[keys.of[name][inside]] = code[inside]
    there = np.zeros(keys.size, dtype=np.bool_)
    for name in legs:
        there[named(keys.of[name])] = True
    several = np.bincount(word_of[there], minlength=len(words)) > 1
    return np.flatnonzero(there & several[word_of])
