"""T4 to T7, T9 and T10: where items and money went, and the bounds they keep.

What is in scope is counted from the rows of the sources. What the flags of matches leave of their
effects is worked out once more for T5 and T10, from the matches as they are shown and these rows:
it shares nothing with the judgement but the sets.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.places import Stand
from recon.matching.breaks.result_rows import Frames
from recon.matching.frames.arrays import Arrays, among, texts
from recon.matching.frames.coding import Columns, by_word, combined, is_word, placed, sums_of
from recon.matching.frames.grouping import Bools, Ints, Rows, amounts_of, total
from recon.matching.frames.sources import Sources
from recon.matching.frames.tolerance import tolerance_of
from recon.matching.frames.total_rows import (
    ACCOUNT,
    ACCOUNT_CURRENCY,
    Place,
    Tally,
    added,
    as_places,
    compared_rows,
    less,
    paired,
    sums,
    sums_of_columns,
)
from recon.matching.frames.versions import CONFLICT, NEW
from recon.matching.judging.facts import BOUNDED
from recon.matching.sets.joined_sets import NO_SET, Joined
from recon.matching.sets.residuals import MONEY_STATES
from recon.matching.sides.gateway_side import NUMBER, shown
from recon.matching.sides.ledger_side import booked, is_base_type
from recon.matching.sides.orders_side import expected
from recon.matching.sides.settlement_side import lines_of_rows, of_payments, pay_outs
from recon.model.words import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    REVERSAL_SUFFIX,
    BreakCode,
    ControlTotal,
    EntryType,
    Flag,
    InstructionKind,
    KeyAnswer,
    OrderStatus,
    SetState,
)
from recon.proof.totals_of_settlement import paid_items

IN_SCOPE = ("orders", "gateway", "ledger", "settlement", "fees", "reserves", "payouts")
"""Sources of items, in the order in which they are told."""
COUNTED = (NEW, CONFLICT)
"""Versions of rows in scope: neither repeats nor superseded."""


@dataclass(frozen=True, slots=True)
class Scoped:
    """The rows of one source (grain: source row)."""

    source: str
    groups: Rows
    """The place of each row, by number."""
    places: list[tuple[str, ...]]
    """Merchant, account and currency."""
    net: Ints
    kept: Bools
    """Rows in scope."""
    items: Ints | None = None
    """How many items each row is; None: one."""

    def tally(self, *, rows: Bools) -> Tally:
        """How many items of these rows each place has, and their net."""
        groups, size = self.groups[rows], len(self.places)
        if self.items is None:
            counts = np.bincount(groups, minlength=size).tolist()
        else:
            counts = sums_of(self.items[rows], groups=groups, size=size).tolist()
        net = sums_of(self.net[rows], groups=groups, size=size).tolist()
        there = [number for number, count in enumerate(counts) if count]
        named = as_places(self.places)
        return Tally(
            {named[number]: counts[number] for number in there},
            {named[number]: net[number] for number in there},
        )


def scoped_items(
    sources: Sources, *, joined: Joined, places: Arrays, rules: Rules
) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """By source, the items in scope, and those that have a place.

    What every row nets is held of one source at a time.

    Args:
        sources: the rows.
        joined: the same in sets.
        places: where every item went.
        rules: how they were judged.
    """
    scope, claimed = {}, {}
    for scoped in _given(sources, joined=joined, rules=rules):
        name = scoped.source
        has_place = np.zeros(len(scoped.kept), dtype=np.bool_)
        has_place[places["row"][places["source"] == name]] = True
        scope[name] = scoped.tally(rows=scoped.kept)
        claimed[name] = scoped.tally(rows=has_place)
    return scope, claimed


def _given(sources: Sources, *, joined: Joined, rules: Rules) -> Iterator[Scoped]:
    orders, gateway, ledger = sources.orders, sources.gateway, sources.ledger
    kept = np.isin(joined.orders.versions, COUNTED)
    yield _scoped(
        "orders", orders, currency=orders["currency"], net=expected(orders).net, kept=kept
    )
    kept = np.isin(joined.gateway.versions, COUNTED)
    kept &= is_word(gateway["answer"], KeyAnswer.FOUND)
    net = shown(gateway, rules=rules).net
    yield _scoped("gateway", gateway, currency=gateway["currency"], net=net, kept=kept)
    if ledger is not None:
        kept = np.isin(joined.ledger.versions, COUNTED)
        currency, _, net = booked(ledger)
        net[joined.ledger.versions == CONFLICT] = 0
        yield _scoped("ledger", ledger, currency=currency, net=net, kept=kept)
    if sources.settlement is not None:
        lines, kept = sources.settlement, of_payments(sources.settlement)
        net = lines["gross"].to_numpy(dtype=np.int64)
        yield _scoped("settlement", lines, currency=lines["currency"], net=net, kept=kept)
        if not sources.is_part:
            yield from _kept_of(lines)
    places, net = paid_items(sources)
    groups, known = combined(places)
    yield Scoped("payouts", groups, known, net, np.ones(len(net), dtype=np.bool_))


def _kept_of(lines: pd.DataFrame) -> Iterator[Scoped]:
    """What the gateway kept of lines: their fees, and reserves."""
    own = ~pay_outs(lines)
    fees = own & (lines["fee"] != 0).to_numpy()
    reserves = own & is_base_type(lines["entry_type"], EntryType.RESERVE)
    reserves &= (lines["gross"] != 0).to_numpy()
    for source, rows, name, sign in (("fees", fees, "fee", -1), ("reserves", reserves, "gross", 1)):
        at = np.flatnonzero(rows)
        mine = {column: lines[column].take(at) for column in ACCOUNT_CURRENCY}
        net = sign * lines[name].to_numpy(dtype=np.int64)[at]
        kept = np.ones(len(at), dtype=np.bool_)
        scoped = _scoped(source, mine, currency=mine["currency"], net=net, kept=kept)
        yield replace(scoped, items=lines_of_rows(lines)[at])


def _scoped(
    source: str, frame: Columns, *, currency: "pd.Series[str]", net: Ints, kept: Bools
) -> Scoped:
    columns = {name: frame[name] for name in ACCOUNT} | {"currency": currency}
    groups, places = placed(columns, by=ACCOUNT_CURRENCY)
    return Scoped(source, groups, places, net, kept)


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
        matches: of sets and of what is no set.
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
    # Of what is no set nothing is explained: its facts are 0.
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
        effects = {
            leg: sums(frames.effects[frames.effects["leg"].eq(leg)]) for leg in ("orders", "ledger")
        }
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
        added(effects, shown.calm[f"effect_{leg}"]) for leg, effects in shown.effects.items()
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
    """T6: no item in two places.

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
    instructions: pd.DataFrame | None,
    frames: Frames,
    places: Arrays,
    ids: Mapping[str, int],
) -> Iterator[ControlTotal]:
    """T9: sets beyond refunds <= captured <= authorised, in doubt counted = those shown.

    Shown is what stands among the breaks, or among the matches as written off. The gateway names
    no chargeback amount, so a chargeback is bounded by its own code, not here.

    Args:
        joined: the sets.
        instructions: our moves.
        frames: the result.
        places: where every item went.
        ids: the set of each id.
    """
    name = "sets beyond refunds <= captured <= authorised = those shown"
    beyond = _beyond_bounds(joined, instructions=instructions)
    left = _judged_payments(joined, places=places, among=beyond)
    if not left:
        # None beyond a bound is said, not left out: this total is a gate before money.
        known = (
            combined([each[name] for name in ACCOUNT]).places for each in (places, joined.sets)
        )
        for merchant, account in sorted({account for accounts in known for account in accounts}):
            yield ControlTotal("T9", name, merchant, account, "", "count", 0, 0)
        return
    outside, closed = _told_beyond(frames.breaks), _written_off(frames.matches, ids=ids)
    right = [number for number, breaks in left.items() if breaks & outside or number in closed]
    mine, other = (_counted(numbers, sets=joined.sets) for numbers in (left, right))
    yield from paired("T9", name, left=mine, right=other, measure="count")


def _judged_payments(joined: Joined, *, places: Arrays, among: set[int]) -> dict[int, set[str]]:
    """Of some sets those with a payment that is not unverified, and the breaks of its items."""
    judged: dict[int, set[str]] = {}
    if not among:
        return judged
    items = joined.gateway.items
    items = items.take(np.isin(items["set"], [*among]))
    rows = items["row"]
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
