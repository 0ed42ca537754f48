"""What a row of each source must be like to agree with others without any further question."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.coding import by_word, coded, is_word, placed
from recon.matching.frames.fingerprints import are_distinct, maybe_repeated
from recon.matching.frames.grouping import Bools, Ints, Rows, amounts_of, amounts_or
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.sides.gateway_side import authorised_amounts
from recon.matching.sides.ledger_side import JUDGED, compared, marked_as
from recon.matching.sides.settlement_side import fee_gaps, of_payments
from recon.model.words import EntryType, GatewayState, KeyAnswer, OrderStatus

ALONE = "entry_id_alone"
"""No other entry of the whole ledger has its id (boolean)."""
SHARED = "transaction_maybe_shared"
"""Another answer may name the same transaction (boolean)."""
FIRST_SETTLED = "first_settled"
"""The line that says where the settled days of its account begin (boolean)."""


@dataclass(frozen=True, slots=True)
class Leg:
    """The rows of one source (grain: source row)."""

    frame: pd.DataFrame
    belongs: Bools
    """Rows that make up sets; the others stand outside them."""
    fits: Bools
    """Rows that move a positive amount in one plain step, with nothing left to be explained."""
    amount: Ints
    """What such a row moves, minor units of its `currency`."""


def marked(sources: Sources) -> Sources:
    """The sources with what only all rows of a source can tell of one of them."""
    ledger, lines = sources.ledger, sources.settlement
    if ledger is not None:
        ledger = ledger.assign(**{ALONE: _alone(ledger["entry_id"])})
    if lines is not None:
        first = np.zeros(len(lines), dtype=np.bool_)
        first[_first_days(lines, belongs=of_payments(lines))] = True
        lines = lines.assign(**{FIRST_SETTLED: first})
    gateway = sources.gateway.assign(**{SHARED: maybe_repeated(sources.gateway["transaction_id"])})
    return replace(sources, gateway=gateway, ledger=ledger, settlement=lines)


def belonging(sources: Sources) -> dict[str, Bools]:
    """For each leg, the rows that make up sets (see Leg.belongs) of marked sources."""
    frames = {"orders": sources.orders, "gateway": sources.gateway}
    belongs = {name: np.ones(len(frame), dtype=np.bool_) for name, frame in frames.items()}
    if sources.ledger is not None:
        belongs["ledger"] = _in_sets(sources.ledger)
    if sources.settlement is not None:
        belongs["settlement"] = of_payments(sources.settlement)
    return belongs


def legs_of(sources: Sources, *, rules: Rules) -> dict[str, Leg]:
    """The legs of marked sources that are there; a set must agree in each of them."""
    legs = {"orders": _orders(sources.orders), "gateway": _gateway(sources.gateway, rules=rules)}
    if sources.ledger is not None:
        legs["ledger"] = _ledger(sources.ledger)
    if sources.settlement is not None:
        legs["settlement"] = _settlement(sources.settlement, rules=rules)
    return legs


def _orders(orders: pd.DataFrame) -> Leg:
    """Paid, and captured for more than nothing."""
    ordered = amounts_of(orders["amount"])
    amount = amounts_or(orders["expected_captured_amount"], otherwise=orders["amount"])
    fits = is_word(orders["status"], OrderStatus.PAID) & (ordered > 0) & (amount > 0)
    return Leg(orders, np.ones(len(orders), dtype=np.bool_), fits, amount)


def _gateway(gateway: pd.DataFrame, *, rules: Rules) -> Leg:
    """Found, paid, nothing refunded, not above what was authorised, in no other answer."""
    amount = amounts_or(gateway["captured_amount"], otherwise=gateway["amount"])
    authorised = authorised_amounts(gateway, rules=rules)
    beyond = authorised.notna().to_numpy() & (amount > amounts_of(authorised))
    paid = by_word(
        gateway["payment_status"], of=lambda code: rules.state_of(code) is GatewayState.PAID
    )
    fits = is_word(gateway["answer"], KeyAnswer.FOUND) & paid.astype(np.bool_)
    fits &= ~gateway[SHARED].to_numpy(dtype=np.bool_)
    fits &= (amount > 0) & ~beyond & (amounts_of(gateway["refunded_amount"]) == 0)
    return Leg(gateway, np.ones(len(gateway), dtype=np.bool_), fits, amount)


def _ledger(ledger: pd.DataFrame) -> Leg:
    """A capture in its own currency, under an id that no other entry has."""
    fits = is_word(ledger["entry_type"], EntryType.CAPTURE)
    fits &= ledger[ALONE].to_numpy(dtype=np.bool_)
    fits &= ledger["transaction_amount"].isna().to_numpy()
    return Leg(ledger, _in_sets(ledger), fits, amounts_of(ledger["amount"]))


def _in_sets(ledger: pd.DataFrame) -> Bools:
    belongs: Bools = compared(ledger) | ~ledger[ALONE].to_numpy(dtype=np.bool_)
    return belongs & ~marked_as(ledger, JUDGED)


def _alone(ids: "pd.Series[str]") -> Bools:
    """The rows whose id no other row has."""
    if are_distinct(ids):
        return np.ones(len(ids), dtype=np.bool_)
    (codes,), words = coded([ids])
    alone: Bools = np.bincount(codes, minlength=len(words))[codes] == 1
    return alone


def _settlement(lines: pd.DataFrame, *, rules: Rules) -> Leg:
    """A capture at the agreed fee."""
    fits = is_word(lines["entry_type"], EntryType.CAPTURE) & (fee_gaps(lines, rules=rules) == 0)
    fits &= ~lines[FIRST_SETTLED].to_numpy(dtype=np.bool_)
    return Leg(lines, of_payments(lines), fits, amounts_of(lines["gross"]))


def _first_days(lines: pd.DataFrame, *, belongs: Bools) -> Rows:
    """A line of the first day of each account: it stays, to say where the settled days begin."""
    rows = np.flatnonzero(belongs)
    accounts = placed(lines.iloc[rows], by=ACCOUNT).rows
    days = lines["settled_on"].iloc[rows].reset_index(drop=True)
    at_first = days.eq(days.groupby(accounts).transform("min")).to_numpy()
    _, first = np.unique(accounts[at_first], return_index=True)
    return rows[at_first][first]
