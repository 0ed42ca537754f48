"""Sets of which a row of another set may speak: such sets do not stand by themselves."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.rules import Rules
from recon.matching.exact.exact_search import ALONE, NAMED, SHARED, Question, belonging
from recon.matching.frames.coding import NO_KEY, Codes, by_word, coded, is_word
from recon.matching.frames.grouping import Bools, Rows, amounts_of, amounts_or, given
from recon.matching.frames.numbering import WholeKeys
from recon.matching.frames.sources import Sources
from recon.matching.sides.closing_entries import CLOSERS
from recon.matching.sides.gateway_side import authorised_amounts
from recon.matching.sides.ledger_side import is_base_type
from recon.matching.sides.settled_refunds import refunds_of_others
from recon.model.words import GatewayState, KeyAnswer


def named(numbers: Codes) -> Codes:
    """The numbers that are of a key."""
    there: Codes = numbers[numbers != NO_KEY]
    return there


def spoken_of(question: Question, *, keys: WholeKeys) -> Bools:
    """The keys of which a row of another set may speak (grain: key)."""
    whole, rules = question.sources, question.rules
    spoken = np.zeros(keys.size, dtype=np.bool_)
    for name, spoken_for in _spoken_for(question, rules=rules).items():
        spoken[named(keys.of[name][spoken_for])] = True
    if len({merchant for merchant, _ in keys.accounts}) < len(keys.accounts):
        # An order of one account may have its payment in another one of the merchant.
        spoken[_in_several_accounts(whole, keys=keys)] = True
    return spoken


def _spoken_for(question: Question, *, rules: Rules) -> dict[str, Bools]:
    """For each leg, the rows whose set other rows may speak of, or that say nothing usable."""
    whole = question.sources
    frames = {name: getattr(whole, name) for name in belonging(whole)}
    spoken = {name: _by_loose(frame, words=question.words) for name, frame in frames.items()}
    gateway = whole.gateway
    unmapped = by_word(
        gateway["payment_status"], of=lambda code: rules.state_of(code) is GatewayState.UNMAPPED
    )
    spoken["gateway"] |= ~is_word(gateway["answer"], KeyAnswer.FOUND) | unmapped.astype(np.bool_)
    spoken["gateway"] |= gateway[SHARED].to_numpy(dtype=np.bool_)
    spoken["gateway"] |= _beyond_bounds(gateway, rules=rules)
    if whole.ledger is not None:
        spoken["ledger"] |= ~whole.ledger[ALONE].to_numpy(dtype=np.bool_)
    if question.elsewhere is not None and whole.settlement is not None:
        spoken["settlement"] |= refunds_of_others(whole.settlement, gateway=gateway)
        if whole.ledger is not None:
            # What such an entry closes is a group of all lines, or it is of its order.
            spoken["ledger"] |= is_base_type(whole.ledger["entry_type"], *CLOSERS)
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


def _in_several_accounts(whole: Sources, *, keys: WholeKeys) -> Rows:
    """The keys whose order number another account has as well."""
    frames = {name: getattr(whole, name) for name in belonging(whole)}
    codes, words = coded([frame["order_no"] for frame in frames.values()])
    word_of = np.zeros(keys.size, dtype=np.intp)
    for name, code in zip(frames, codes, strict=True):
        inside = keys.of[name] != NO_KEY
        word_of[keys.of[name][inside]] = code[inside]
    there = np.zeros(keys.size, dtype=np.bool_)
    for name in frames:
        there[named(keys.of[name])] = True
    several = np.bincount(word_of[there], minlength=len(words)) > 1
    return np.flatnonzero(there & several[word_of])
