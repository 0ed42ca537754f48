"""T4 to T7, T9 and T10: where items and money went, and the bounds they keep."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from recon.matching.exact import Exact
from recon.matching.explained_effects import Remainders, explained
from recon.matching.facts import BOUNDED
from recon.matching.gateway_side import authorised_amounts
from recon.matching.grouping import Rows, amounts_of
from recon.matching.joined_sets import Joined
from recon.matching.result_frames import Frames
from recon.matching.scope_items import Scoped
from recon.matching.sources import Sources
from recon.matching.total_rows import (
    ACCOUNT,
    ACCOUNT_CURRENCY,
    Place,
    compared_rows,
    paired,
    sums,
)
from recon.model import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    BreakCode,
    ControlTotal,
    Flag,
    InstructionKind,
    SetState,
)
from recon.rules import Rules

SOURCES_OF = {"order": ("orders",), "gateway": ("gateway", "payouts"), "ledger": ("ledger",)}
"""Column of the result -> the sources whose items it shows; a payout is money of the gateway."""
SOURCES = ("orders", "gateway", "ledger", "payouts", "settlement")


def conservation_totals(
    scope: pd.DataFrame,
    *,
    frames: Frames,
    places: pd.DataFrame,
    tallies: pd.DataFrame,
    covered: bool,
) -> Iterator[ControlTotal]:
    """T4 per side: in scope = matched (tallies: without questions) + pending + broken + unverified.

    Args:
        scope: the items in scope (see scope_items).
        frames: the result.
        places: where every item went.
        tallies: what was set aside.
        covered: whether a ledger was given; without one nothing is said of it.
    """
    shown = places[_is_shown(places, frames=frames)]
    for source in SOURCES:
        name = f"{source}: in scope = matched + pending + broken + unverified"
        left, right = scope[scope["source"].eq(source)], shown[shown["source"].eq(source)]
        yield from compared_rows("T4", name, left=left, right=right)
    for side, sources in SOURCES_OF.items():
        if side == "ledger" and not covered:
            continue
        name = f"{sources[0]}: in scope = matched + pending + broken + unverified"
        left, right = (frame[frame["source"].isin(sources)] for frame in (scope, shown))
        broken = right[right["state"].eq(SetState.BREAK)]
        open_rows = [sums(frame, column=f"{side}_amount") for frame in _calm(frames)]
        aside = tallies[tallies["source"].isin(sources)]
        together = _added(sums(broken, column="net"), sums(aside), *open_rows)
        yield from paired("T4", name, left=sums(left), right=together, measure="amount")


def _is_shown(places: pd.DataFrame, *, frames: Frames) -> "pd.Series[bool]":
    """Items in a known state; broken ones only where their break is in the frame of breaks."""
    known = places["state"].isin([state.value for state in SetState])
    broken = places["state"].eq(SetState.BREAK)
    return known & (~broken | places["break_id"].isin(frames.breaks["break_id"]))


def _calm(frames: Frames) -> tuple[pd.DataFrame, ...]:
    return frames.matches, frames.pending, frames.unverified


def _added(*parts: Mapping[Place, int]) -> dict[Place, int]:
    together: dict[Place, int] = {}
    for part in parts:
        for place, amount in part.items():
            together[place] = together.get(place, 0) + amount
    return together


def leg_totals(
    scope: pd.DataFrame, *, frames: Frames, left_over: Remainders, covered: bool
) -> Iterator[ControlTotal]:
    """T5: the difference of two sides = their effects over breaks, pending, unverified, matches.

    And of no match is anything left that its flags do not explain to the minor unit (`left_over`).
    """
    nets = {source: sums(scope[scope["source"].eq(source)]) for source in SOURCES}
    nets["orders and payouts"] = _added(nets["orders"], nets["payouts"])
    nets["gateway and payouts"] = _added(nets["gateway"], nets["payouts"])
    legs = {
        "A": ("gateway", "orders"),
        "B": ("gateway and payouts", "ledger"),
        "C": ("orders and payouts", "ledger"),
    }
    effects = {"A": _effects(frames, leg="orders"), "B": _effects(frames, leg="ledger")}
    effects["C"] = _added(effects["B"], {p: -amount for p, amount in effects["A"].items()})
    for leg, (plus, minus) in legs.items():
        if leg != "A" and not covered:
            continue
        left = _added(nets[plus], {place: -amount for place, amount in nets[minus].items()})
        name = f"{plus} - {minus} = effects"
        yield from paired(f"T5{leg}", name, left=left, right=effects[leg], measure="amount")
    name = "matches with an effect = those whose flag explains it"
    yield from compared_rows("T5A", name, left=left_over.matches, right=explained(left_over))


def _effects(frames: Frames, *, leg: str) -> dict[Place, int]:
    open_effects = [sums(frame, column=f"effect_{leg}") for frame in _calm(frames)]
    return _added(sums(frames.effects[frames.effects["leg"].eq(leg)]), *open_effects)


def exclusivity_totals(
    scoped: Mapping[str, Scoped], *, exact: Exact, places: pd.DataFrame
) -> Iterator[ControlTotal]:
    """T6: no item in two places, and none both classified and set aside."""
    for source, whole in scoped.items():
        mine = places[places["source"].eq(source)]
        placed_rows = mine["row"].to_numpy(dtype=np.int64)
        claimed = np.zeros(len(whole.kept), dtype=np.bool_)
        claimed[placed_rows[placed_rows >= 0]] = True
        claimed[exact.rows.get(source, [])] = True
        right = whole.tally(rows=claimed)
        yield from compared_rows("T6", f"{source}: places = items", left=mine, right=right)


def bounds_totals(
    joined: Joined,
    *,
    exact: Exact,
    aside: pd.DataFrame,
    frames: Frames,
    places: pd.DataFrame,
    ids: "pd.Series[int]",
) -> Iterator[ControlTotal]:
    """T9: sets beyond refunds <= captured <= authorised, in doubt counted = those shown.

    Shown is what stands among the breaks, or among the matches as written off. The gateway names
    no chargeback amount, so a chargeback is bounded by its own code, not here.

    Args:
        joined: what was left for judgement, in sets.
        exact: what was set aside.
        aside: what of it is beyond a bound (see aside_beyond_bounds).
        frames: the result.
        places: where every item went.
        ids: the set of each id.
    """
    beyond = _beyond_bounds(joined, instructions=exact.sources.instructions)
    sets = joined.sets.assign(set=np.arange(len(joined.sets)))
    judged = ~places["state"].eq(SetState.UNVERIFIED)
    gateway = places[places["source"].eq("gateway") & judged]
    payments = joined.gateway.items["set"].to_numpy()
    rows = exact.left["gateway"][joined.gateway.items["row"].to_numpy()]
    named = gateway.merge(pd.DataFrame({"row": rows, "set": payments}), on="row")
    left = sets[sets["set"].isin(beyond) & sets["set"].isin(named["set"])]
    codes = {BreakCode.OVER_REFUND.value, BreakCode.OVER_CAPTURE.value}
    words = frames.breaks["flags"].str.split(";")
    open_ = frames.breaks["code"].isin(codes) | words.map(lambda w: bool(codes.intersection(w)))
    told = frames.breaks[open_.to_numpy(dtype=np.bool_)]["break_id"]
    shown = named[named["break_id"].isin(told)]["set"]
    written_off = frames.matches["flags"].str.contains(Flag.WRITTEN_OFF.value)
    closed = ids.reindex(frames.matches.loc[written_off, "match_id"])
    right = left[left["set"].isin(shown) | left["set"].isin(closed)]
    name = "sets beyond refunds <= captured <= authorised = those shown"
    left = pd.concat([left[ACCOUNT_CURRENCY], aside])
    if left.empty:
        # None beyond a bound is said, not left out: this total is a gate before money.
        for merchant, account in sorted(_accounts(places, joined=joined)):
            yield ControlTotal("T9", name, merchant, account, "", "count", 0, 0)
        return
    yield from compared_rows("T9", name, left=left, right=right)


def _accounts(places: pd.DataFrame, *, joined: Joined) -> set[tuple[str, str]]:
    accounts = pd.concat([places[ACCOUNT], joined.sets[ACCOUNT]]).drop_duplicates()
    return {(str(merchant), str(account)) for merchant, account in accounts.itertuples(index=False)}


def aside_beyond_bounds(sources: Sources, *, exact: Exact, rules: Rules) -> pd.DataFrame:
    """Payments that were set aside although they are beyond a bound: there must be none."""
    gateway, rows = sources.gateway, exact.rows["gateway"]
    amount, captured, refunded = (
        amounts_of(gateway[name])[rows] for name in ("amount", "captured_amount", "refunded_amount")
    )
    authorised = authorised_amounts(gateway, rules=rules).iloc[rows]
    captured = np.where(gateway["captured_amount"].notna().to_numpy()[rows], captured, amount)
    bounded = authorised.notna().to_numpy()
    beyond = (refunded > captured) | (bounded & (captured > amounts_of(authorised)))
    return gateway[ACCOUNT_CURRENCY].iloc[rows[beyond]]


def _beyond_bounds(joined: Joined, *, instructions: pd.DataFrame | None) -> Rows:
    """Sets whose payments, with our confirmed and doubtful refunds, exceed a bound."""
    items = joined.gateway.items
    states = joined.sets["gateway_state"].to_numpy()[items["set"].to_numpy()]
    items = items[np.isin(states, BOUNDED)]
    known = items["authorised_known"] & items["captured_known"] & items["captured"].gt(0)
    over = items["refunded"].gt(items["captured"])
    over |= known & items["captured"].gt(items["authorised"])
    captured = items.groupby("set")["captured"].sum()
    if instructions is None:
        return items.loc[over, "set"].unique()
    ours = instructions["kind"].eq(InstructionKind.REFUND)
    ours &= instructions["state"].isin(CONFIRMED_STATES | DOUBTFUL_STATES)
    rows = instructions[ours].assign(set=joined.keys.of["instructions"][ours.to_numpy()])
    refunds = rows.groupby("set")["amount"].sum().reindex(captured.index, fill_value=0)
    beyond = captured.index[refunds.gt(captured)]
    return np.union1d(beyond.to_numpy(), items.loc[over, "set"].unique())


def tolerance_totals(left_over: Remainders, *, rules: Rules) -> Iterator[ControlTotal]:
    """T10: rounding beyond the night's budget = 0, where a budget is set."""
    left = np.abs(left_over.orders) + np.abs(left_over.ledger)
    spent = sums(left_over.matches.assign(amount=left)[left_over.rounded])
    for place, amount in sorted(spent.items()):
        tolerance = rules.tolerance.get(place[2])
        budget = None if tolerance is None else tolerance.night_budget_minor_units
        excess = 0 if budget is None else max(0, amount - budget)
        yield ControlTotal("T10", "rounding beyond the budget", *place, "amount", excess, 0)
