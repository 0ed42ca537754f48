"""What the flags of matches leave of their effects: worked out once more, for T5 and T10.

Starts from the matches as they are shown and from the rows of the sources, and shares nothing with
the judgement but the sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.frames.arrays import texts
from recon.matching.frames.coding import by_word, is_word
from recon.matching.frames.grouping import Bools, Ints, Rows, amounts_of, total
from recon.matching.frames.sources import Sources
from recon.matching.frames.tolerance import tolerance_of
from recon.matching.frames.versions import NEW
from recon.matching.sets.joined_sets import Joined
from recon.matching.sets.residuals import MONEY_STATES
from recon.matching.sets.sets import NO_SET
from recon.matching.sides.gateway_side import NUMBER
from recon.matching.sides.ledger_side import booked
from recon.model.words import CONFIRMED_STATES, REVERSAL_SUFFIX, EntryType, Flag, OrderStatus

EXPLAINS_EFFECT = (
    Flag.ROUNDING,
    Flag.INSTRUCTED,
    Flag.REPLY_ONLY,
    Flag.CHARGEBACK_BOOKED,
    Flag.WRITTEN_OFF,
)
"""Only under one of these may a match carry an effect."""
OF_NO_SET = ("not_compared", "group", "bank")
"""Rules of matches that are of no set of orders: other totals hold their effects."""


@dataclass(frozen=True, slots=True)
class Remainders:
    """Matches that carry an effect or a flag that may explain one, and what is left of it."""

    matches: pd.DataFrame
    orders: Ints
    """Before rounding, minor units (grain: match)."""
    ledger: Ints
    rounded: Bools
    """Matches that call what is left rounding."""
    within: Bools
    """And their tolerance allows it on both legs."""


def remainders(
    matches: pd.DataFrame, *, ids: Mapping[str, int], joined: Joined, sources: Sources, rules: Rules
) -> Remainders:
    """What each flag explains, taken off the effects of its match.

    Args:
        matches: the matches that were classified, and those that were judged by themselves.
        ids: the set of each match_id of the first.
        joined: the sets.
        sources: what they were made of.
        rules: the tolerances.
    """
    effects = [amounts_of(matches[f"effect_{leg}"]) for leg in ("orders", "ledger")]
    carries = (effects[0] != 0) | (effects[1] != 0) | (texts(matches["flags"]) != "")
    carries &= ~is_word(matches["rule"], *OF_NO_SET)
    rows = matches[carries].reset_index(drop=True) if carries.any() else matches.iloc[:0]
    if rows.empty:
        nothing = np.zeros(0, dtype=np.int64)
        return Remainders(rows, nothing, nothing, nothing != 0, nothing != 0)
    # Of a set that was judged by itself no row explains anything: the facts of no set are 0.
    numbers = [ids.get(match_id, NO_SET) for match_id in rows["match_id"].tolist()]
    sets = np.array(numbers, dtype=np.intp)
    orders, ledger = (effect[carries] for effect in effects)
    flagged = {
        flag: by_word(rows["flags"], of=partial(_holds, flag.value)).astype(np.bool_)
        for flag in EXPLAINS_EFFECT
    }
    facts = _facts(joined, sources=sources)
    at = {name: np.append(column, 0)[sets] for name, column in facts.items()}
    hidden = flagged[Flag.REPLY_ONLY] * np.maximum(at["refunds"] - at["refunded"], 0)
    instructed = flagged[Flag.INSTRUCTED] & _as_instructed(at)
    uncaptured = np.where(
        instructed & (at["captures"] > 0) & (at["guessed"] > 0), at["captured"] - at["captures"], 0
    )
    at["lines_charged"] = at["lines_charged"] * flagged[Flag.CHARGEBACK_BOOKED]
    orders = np.where(instructed, 0, orders - hidden * (at["tells"] > 0))
    orders = orders + (flagged[Flag.CHARGEBACK_BOOKED] & (orders < 0)) * at["charged"]
    ledger = (ledger - hidden - uncaptured - _by_lines(at, hidden=hidden)) * joined.covered
    written = np.where(flagged[Flag.WRITTEN_OFF], at["written"], 0)
    orders, ledger = (
        np.where((np.abs(left) == written) & (written > 0), 0, left) for left in (orders, ledger)
    )
    small = [
        np.abs(left)
        <= tolerance_of(amounts_of(rows[base]), currency=texts(rows["currency"]), rules=rules)
        for left, base in ((orders, "order_amount"), (ledger, "gateway_amount"))
    ]
    rounded = flagged[Flag.ROUNDING]
    return Remainders(rows, orders, ledger, rounded, rounded & small[0] & small[1])


def _by_lines(at: Mapping[str, Ints], *, hidden: Ints) -> Ints:
    """What lines took back beyond what the query shows of a payment that it shows with money."""
    charged = at["lines_charged"] - at["charged"]
    beyond = charged + at["lines_refunded"] - at["refunded"] - hidden
    return np.where(at["money"] > 0, np.minimum(charged, beyond).clip(min=0), 0)


def _holds(flag: str, flags: str) -> bool:
    return flag in flags


def explained(left: Remainders) -> pd.DataFrame:
    """The matches of which nothing is left."""
    nothing = (left.orders == 0) & (left.ledger == 0)
    whole: pd.DataFrame = left.matches[nothing | left.within]
    return whole


def _as_instructed(at: dict[str, Ints]) -> Bools:
    """Our confirmed moves come to what the gateway shows."""
    captured = (at["captures"] > 0) & (
        (at["captures"] == at["captured"])
        | ((at["guessed"] > 0) & (at["captures"] <= at["captured"]))
    )
    refunded = (at["refunds"] > 0) & (at["refunds"] == at["refunded"])
    cancelled = (at["cancels"] > 0) & (at["captured"] == 0)
    return np.asarray(captured | refunded | cancelled, dtype=np.bool_)


def _facts(joined: Joined, *, sources: Sources) -> dict[str, Ints]:
    """Sums of the rows of every set, minor units; marks as counts."""
    size = joined.keys.size
    payments, orders = joined.gateway.items, joined.orders.items
    paid = payments["set"]
    hidden = (OrderStatus.PARTIALLY_REFUNDED, OrderStatus.REFUNDED)
    tells = is_word(sources.orders["status"], *hidden)[orders["row"]]
    charged = payments["state"] == NUMBER["chargeback"]
    left = payments["captured"] - payments["refunded"]
    guessed = ~payments["captured_known"]
    money = np.isin(payments["state"], MONEY_STATES).astype(np.int64)
    lines, of_lines = joined.settled, joined.settled["set"]
    base, back = lines["kind"].astype("str"), -lines["amount"]
    is_charge = base == EntryType.CHARGEBACK.value
    is_refund = np.isin(base, (EntryType.REFUND.value, EntryType.REFUND.value + REVERSAL_SUFFIX))
    return {
        **_moved(sources.instructions, sets=joined.keys.of["instructions"], size=size),
        "written": _written(sources.ledger, joined=joined, size=size),
        "tells": total(tells.astype(np.int64), groups=orders["set"], size=size),
        "captured": total(payments["captured"], groups=paid, size=size),
        "refunded": total(payments["refunded"], groups=paid, size=size),
        "charged": total(np.where(charged, left, 0), groups=paid, size=size),
        "guessed": total(guessed.astype(np.int64), groups=paid, size=size),
        "money": total(money, groups=paid, size=size),
        "lines_charged": total(back * is_charge, groups=of_lines, size=size),
        "lines_refunded": total(back * is_refund, groups=of_lines, size=size),
    }


def _moved(instructions: pd.DataFrame | None, *, sets: Rows, size: int) -> dict[str, Ints]:
    """What we captured, refunded and cancelled, as confirmed."""
    kinds = ("capture", "refund", "cancel")
    if instructions is None:
        return {f"{kind}s": np.zeros(size, dtype=np.int64) for kind in kinds}
    sure = is_word(instructions["state"], *CONFIRMED_STATES)
    amount = amounts_of(instructions["amount"])
    moves = {}
    for kind in kinds:
        mine = sure & is_word(instructions["kind"], kind)
        moved = mine.astype(np.int64) if kind == "cancel" else np.where(mine, amount, 0)
        moves[f"{kind}s"] = total(moved, groups=sets, size=size)
    return moves


def _written(ledger: pd.DataFrame | None, *, joined: Joined, size: int) -> Ints:
    """Write-offs less their reversals."""
    if ledger is None:
        return np.zeros(size, dtype=np.int64)
    kind, once = ledger["entry_type"], joined.ledger.versions == NEW
    amount = booked(ledger).amount
    off = is_word(kind, EntryType.WRITE_OFF) & once
    back = is_word(kind, EntryType.WRITE_OFF + REVERSAL_SUFFIX) & once
    moved = np.where(off, amount, 0) - np.where(back, amount, 0)
    return total(moved, groups=joined.keys.of["ledger"], size=size)
