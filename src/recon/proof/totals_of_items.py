"""T4 to T7, T9 and T10: where items and money went, and the bounds they keep."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.places import Stand
from recon.matching.breaks.result_frames import Frames
from recon.matching.calm.calm_sets import CalmAndLeft
from recon.matching.frames.arrays import Arrays, among, records, texts
from recon.matching.frames.coding import by_word, combined, is_word
from recon.matching.frames.grouping import Bools, amounts_of, amounts_or, given, total
from recon.matching.frames.sources import Sources
from recon.matching.frames.total_rows import (
    ACCOUNT,
    ACCOUNT_CURRENCY,
    Place,
    Tally,
    added,
    compared_rows,
    less,
    paired,
    sums,
    sums_of_columns,
)
from recon.matching.judging.facts import BOUNDED
from recon.matching.sets.joined_sets import Joined
from recon.matching.sides.gateway_side import authorised_amounts
from recon.model.words import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    BreakCode,
    ControlTotal,
    Flag,
    InstructionKind,
    SetState,
)
from recon.proof.explained_effects import Remainders, explained

KEPT = ("payouts", "fees", "reserves")
"""Sources of the gateway that no order has; the books do."""
SOURCES_OF = {"order": ("orders",), "gateway": ("gateway", *KEPT), "ledger": ("ledger",)}
"""Column of the result -> the sources whose items it shows; a payout is money of the gateway."""
SOURCES = ("orders", "gateway", "ledger", *KEPT, "settlement")


@dataclass(frozen=True, slots=True)
class ResultSums:
    """The frames of the result added up, place by place: every one is looked at once."""

    calm: Mapping[str, Mapping[Place, int]]
    """Matches, pending and unverified together, by column of amounts."""
    effects: Mapping[str, Mapping[Place, int]]
    """Effects of breaks, by leg."""

    @classmethod
    def of(cls, frames: Frames) -> "ResultSums":
        """Add up the frames of a result."""
        columns = (*(f"{side}_amount" for side in SOURCES_OF), "effect_orders", "effect_ledger")
        calm = [
            sums_of_columns(frame, columns=columns)
            for frame in (frames.matches, frames.pending, frames.unverified)
        ]
        effects: dict[str, dict[Place, int]] = {}
        cells = (texts(frames.effects[name]).tolist() for name in ("leg", *ACCOUNT_CURRENCY))
        amounts = amounts_of(frames.effects["amount"]).tolist()
        for leg, *sum_key, amount in zip(*cells, amounts, strict=True):
            of_leg, (merchant, account, currency) = effects.setdefault(leg, {}), sum_key
            key = merchant, account, currency
            of_leg[key] = of_leg.get(key, 0) + amount
        return cls({name: added(*(row[name] for row in calm)) for name in columns}, effects)


def conservation_totals(
    scope: Mapping[str, Tally],
    *,
    shown: ResultSums,
    stands: list[Stand],
    covered: bool,
) -> Iterator[ControlTotal]:
    """T4 per side: in scope = matched + pending + broken + unverified.

    Args:
        scope: the items in scope (see scope_items), by source.
        shown: the result.
        stands: where every item that is shown went.
        covered: whether a ledger was given; without one nothing is said of it.
    """
    nothing = Tally({}, {})
    for source in SOURCES:
        name = f"{source}: in scope = matched + pending + broken + unverified"
        left = scope.get(source, nothing).counts
        right = added(*({stand.group: stand.items} for stand in stands if stand.source == source))
        yield from paired("T4", name, left=left, right=right, measure="count")
    for side, sources in SOURCES_OF.items():
        if side == "ledger" and not covered:
            continue
        name = f"{sources[0]}: in scope = matched + pending + broken + unverified"
        broken = (
            {stand.group: stand.net}
            for stand in stands
            if stand.source in sources and stand.state == SetState.BREAK
        )
        left = added(*(scope.get(source, nothing).sums for source in sources))
        right = added(*broken, shown.calm[f"{side}_amount"])
        yield from paired("T4", name, left=left, right=right, measure="amount")


def shown_rows(places: Arrays, *, breaks: pd.DataFrame) -> Bools:
    """Items in a known state; broken ones only where their break is in the frame of breaks."""
    state, break_ids = places["state"], {*breaks["break_id"].tolist()}
    broken = state == SetState.BREAK.value
    known = among(state, {member.value for member in SetState})
    known[broken] = among(places["break_id"][broken], break_ids)
    return known


def leg_totals(
    scope: Mapping[str, Tally],
    *,
    shown: ResultSums,
    left_over: Remainders,
    covered: bool,
    apart: tuple[Mapping[Place, int], Mapping[Place, int]],
) -> Iterator[ControlTotal]:
    """T5: the difference of two sides = their effects over breaks, pending, unverified, matches.

    And of no match is anything left that its flags do not explain to the minor unit (`left_over`).
    The groups of fees, reserves and pay-outs (`apart`: their difference, and their effects) are
    part of B; orders know nothing of them, so C goes without.
    """
    nets: dict[str, Mapping[Place, int]] = {source: {} for source in SOURCES}
    nets |= {source: tally.sums for source, tally in scope.items()}
    nets["orders and payouts"] = added(nets["orders"], *(nets[name] for name in KEPT))
    nets["gateway and payouts"] = added(nets["gateway"], *(nets[name] for name in KEPT))
    legs = {
        "A": ("gateway", "orders"),
        "B": ("gateway and payouts", "ledger"),
        "C": ("orders and payouts", "ledger"),
    }
    shown_sum, other = (
        added(shown.effects.get(leg, {}), shown.calm[f"effect_{leg}"])
        for leg in ("orders", "ledger")
    )
    effects = {"A": shown_sum, "B": other, "C": less(other, shown_sum)}
    for leg, (plus, minus) in legs.items():
        if leg != "A" and not covered:
            continue
        left, right = less(nets[plus], nets[minus]), effects[leg]
        if leg == "C":
            left, right = (less(side, gap) for side, gap in zip((left, right), apart, strict=True))
        name = f"{plus} - {minus} = effects"
        yield from paired(f"T5{leg}", name, left=left, right=right, measure="amount")
    name = "matches with an effect = those whose flag explains it"
    yield from compared_rows("T5A", name, left=left_over.matches, right=explained(left_over))


def exclusivity_totals(
    claimed: Mapping[str, Tally], *, stands: list[Stand]
) -> Iterator[ControlTotal]:
    """T6: no item in two places, and none both classified and set aside.

    Args:
        claimed: the items that have a place, each counted once (see scope_items), by source.
        stands: the same, place by place.
    """
    for source, tally in claimed.items():
        left = added(*({stand.group: stand.items} for stand in stands if stand.source == source))
        name = f"{source}: places = items"
        yield from paired("T6", name, left=left, right=tally.counts, measure="count")


def bounds_totals(
    joined: Joined,
    *,
    aside: CalmAndLeft,
    beyond_aside: Mapping[Place, int],
    frames: Frames,
    places: Arrays,
    ids: Mapping[str, int],
) -> Iterator[ControlTotal]:
    """T9: sets beyond refunds <= captured <= authorised, in doubt counted = those shown.

    Shown is what stands among the breaks, or among the matches as written off. The gateway names
    no chargeback amount, so a chargeback is bounded by its own code, not here.

    Args:
        joined: what was left for judgement, in sets.
        aside: what was set aside.
        beyond_aside: how many of it are beyond a bound (see aside_beyond_bounds).
        frames: the result.
        places: where every item went.
        ids: the set of each id.
    """
    name = "sets beyond refunds <= captured <= authorised = those shown"
    beyond = _beyond_bounds(joined, instructions=aside.sources.instructions)
    left = _judged_payments(joined, aside=aside, places=places, among=beyond)
    if not left and not beyond_aside:
        # None beyond a bound is said, not left out: this total is a gate before money.
        for merchant, account in sorted(_accounts(places, joined=joined)):
            yield ControlTotal("T9", name, merchant, account, "", "count", 0, 0)
        return
    outside, closed = _told_beyond(frames.breaks), _written_off(frames.matches, ids=ids)
    right = [number for number, breaks in left.items() if breaks & outside or number in closed]
    counts = (_counted(numbers, sets=joined.sets) for numbers in (left, right))
    mine, other = counts
    yield from paired("T9", name, left=added(mine, beyond_aside), right=other, measure="count")


def _judged_payments(
    joined: Joined, *, aside: CalmAndLeft, places: Arrays, among: set[int]
) -> dict[int, set[str]]:
    """Of some sets those with a payment that is not unverified, and the breaks of its items."""
    judged: dict[int, set[str]] = {}
    if not among:
        return judged
    items = joined.gateway.items
    items = items.take(np.isin(items["set"], [*among]))
    rows = aside.left["gateway"][items["row"]]
    sets = dict(zip(rows.tolist(), items["set"].tolist(), strict=True))
    mine = (places["source"] == "gateway") & (places["state"] != SetState.UNVERIFIED.value)
    mine &= np.isin(places["row"], rows)
    for row, break_id in places.take(mine).rows("row", "break_id"):
        judged.setdefault(sets[row], set()).add(break_id)
    return judged


def _told_beyond(breaks: pd.DataFrame) -> set[str]:
    """The breaks that tell of something beyond a bound."""
    codes = {BreakCode.OVER_REFUND.value, BreakCode.OVER_CAPTURE.value}
    cells = (breaks[name].tolist() for name in ("break_id", "code", "flags"))
    return {
        identity
        for identity, code, flags in zip(*cells, strict=True)
        if code in codes or not codes.isdisjoint(flags.split(";"))
    }


def _written_off(matches: pd.DataFrame, *, ids: Mapping[str, int]) -> set[int]:
    """The sets of the matches that a write-off closed."""
    flagged = by_word(matches["flags"], of=lambda text: Flag.WRITTEN_OFF.value in text)
    named = texts(matches["match_id"])[flagged.astype(np.bool_)].tolist()
    return {ids[identity] for identity in named if identity in ids}


def _counted(numbers: Collection[int], *, sets: Arrays) -> Counter[Place]:
    """How many of some sets each place has."""
    rows = sets.take(np.array([*numbers], dtype=np.intp)).rows(*ACCOUNT_CURRENCY)
    return Counter((merchant, account, currency) for merchant, account, currency in rows)


def _accounts(places: Arrays, *, joined: Joined) -> set[tuple[str, ...]]:
    accounts = (
        combined([table[name] for name in ACCOUNT]).places for table in (places, joined.sets)
    )
    return {account_key for known in accounts for account_key in known}


def aside_beyond_bounds(sources: Sources, *, aside: CalmAndLeft, rules: Rules) -> Counter[Place]:
    """Payments that were set aside although they are beyond a bound: there must be none."""
    gateway, rows = sources.gateway, aside.calm.rows("gateway")
    refunded = amounts_of(gateway["refunded_amount"])[rows]
    known = authorised_amounts(gateway, rules=rules)
    authorised, bounded = amounts_of(known)[rows], given(known)[rows]
    captured = amounts_or(gateway["captured_amount"], otherwise=gateway["amount"])[rows]
    beyond = (refunded > captured) | (bounded & (captured > authorised))
    cells = records(gateway, rows=rows[beyond], names=ACCOUNT_CURRENCY)
    return Counter((cell["merchant_id"], cell["account_id"], cell["currency"]) for cell in cells)


def _beyond_bounds(joined: Joined, *, instructions: pd.DataFrame | None) -> set[int]:
    """Sets whose payments, with our confirmed and doubtful refunds, exceed a bound."""
    size, items = joined.keys.size, joined.gateway.items
    items = items.take(np.isin(joined.sets["gateway_state"][items["set"]], BOUNDED))
    sets, captured = items["set"], items["captured"]
    known = items["authorised_known"] & items["captured_known"] & (captured > 0)
    over = items["refunded"] > captured
    over |= known & (captured > items["authorised"])
    beyond = {*sets[over].tolist()}
    if instructions is None:
        return beyond
    ours = is_word(instructions["kind"], InstructionKind.REFUND)
    ours &= is_word(instructions["state"], *CONFIRMED_STATES, *DOUBTFUL_STATES)
    moved = np.where(ours, amounts_of(instructions["amount"]), 0)
    refunds = total(moved, groups=joined.keys.of["instructions"], size=size)
    taken = total(captured, groups=sets, size=size)
    return beyond | {*sets[refunds[sets] > taken[sets]].tolist()}


def tolerance_totals(left_over: Remainders, *, rules: Rules) -> Iterator[ControlTotal]:
    """T10: rounding beyond the night's budget = 0, where a budget is set."""
    left = np.abs(left_over.orders) + np.abs(left_over.ledger)
    rounded = left_over.matches[left_over.rounded] if left_over.rounded.any() else None
    spent = {} if rounded is None else sums(rounded.assign(amount=left[left_over.rounded]))
    for key, amount in sorted(spent.items()):
        tolerance = rules.tolerance.get(key[2])
        budget = None if tolerance is None else tolerance.night_budget_minor_units
        excess = 0 if budget is None else max(0, amount - budget)
        yield ControlTotal("T10", "rounding beyond the budget", *key, "amount", excess, 0)
