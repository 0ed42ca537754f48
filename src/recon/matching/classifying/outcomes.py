"""Classifies every set: each distinct pattern of facts once, within the rounding budget."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd

from recon.config.rules import Rules
from recon.matching.classifying.facts import (
    PAYOUT_FACTS,
    beyond_doubt,
    our_moves,
    plain_facts,
    unverified_reasons,
)
from recon.matching.classifying.grace import (
    CLOCKS,
    DATES,
    DAY_MICROSECONDS,
    NEVER,
    NO_LIMIT,
    business_days,
    due_columns,
    without_ahead,
)
from recon.matching.classifying.table import (
    LEGS,
    Classification,
    Classifications,
    TableRow,
    Unverified,
    classifications_of,
    distinct_patterns,
    is_late,
    ready,
    rows_of,
    where_holds,
)
from recon.matching.codes import TABLE, CodeTable, Condition, condition_of
from recon.matching.frames.arrays import Arrays, Column
from recon.matching.frames.coding import keyed
from recon.matching.frames.grouping import (
    NO_INSTANT,
    Bools,
    Ints,
    Rows,
    microseconds,
    total,
)
from recon.matching.frames.sources import Basis
from recon.matching.frames.total_rows import ACCOUNT_KEY, AccountKey
from recon.matching.sets.joined_sets import Joined
from recon.matching.sets.residuals import LegFacts, Ours, bits, leg_facts
from recon.matching.sides.gateway_side import GATEWAY_STATES, NUMBER
from recon.matching.sides.orders_side import ORDER_STATES
from recon.model.business_date import BusinessCalendar, midnight
from recon.model.errors import Defect
from recon.model.terms import BreakCode, Flag, SetState

PATTERN: Mapping[str, type] = {
    "order_state": int,
    "gateway_state": int,
    "unverified": int,
    "orders_lack": bool,  # no order, and a missing order file may contain it
    "anything": bool,  # any order, payment or compared entry
    "wrong_account": bool,
    "ambiguous": bool,
    "order_duplicate": bool,
    "currency_mismatch": bool,
    "foreign_payment": bool,  # the gateway holds nothing in the set's currency
    "unmapped": bool,
    "several_payments": bool,
    # Signs of gateway less order, with refunds known by our replies if the order states refunds.
    "net_sign": int,
    "captured_sign": int,
    "refunded_sign": int,
    "rounded": bool,
    "residual_orders": int,  # sign of the unexplained difference between gateway and order
    "both_known": bool,  # both the authorised and the captured amount
    "over_authorised": bool,
    "over_refund": bool,
    "order_net": bool,
    "gateway_net": bool,
    "explained": bool,  # a confirmed instruction explains exactly what the gateway shows
    "captured": bool,
    "refunded": bool,  # including our refunds known only by their replies
    "refund_unknown": bool,
    "covered": bool,  # a ledger was given
    "ledger_net": bool,
    "ledger_captured": bool,
    # Signs; below 0 a reversal has no original.
    "ledger_refunded": int,
    "ledger_chargeback": int,
    "ledger_capture_differs": bool,
    "ledger_refund_differs": bool,
    "ledger_rounded": bool,
    "residual_ledger": int,  # sign of the unexplained difference between gateway and ledger
    "booked_twice": bool,
    "refund_evidence": bool,
    "chargeback_before": bool,
    "closed_orders": bool,  # by a write-off, as the next one
    "closed_ledger": bool,
    "capture_confirmed": bool,
    "capture_rejected": bool,
    "capture_doubtful": bool,
    "capture_waiting": bool,
    "cancel_confirmed": bool,
    "cancel_rejected": bool,
    "cancel_doubtful": bool,
    "cancel_waiting": bool,
    # Refunds without a visible effect.
    "refund_confirmed": bool,
    "refund_rejected": bool,
    "refund_doubtful": bool,
    "refund_waiting": bool,
    "refund_failed_later": bool,
    "refund_doubt_shown": int,  # 1: ours come to what is shown refunded; 2: more is shown
    "reply_only": bool,  # a confirmed refund that the query cannot show
    "refund_running": bool,  # one that it does not show yet, within its grace
    "tells_refund": bool,  # the order states the amount that it expects refunded
    # Our review instructions on payments that the gateway still shows as in review.
    "review_confirmed": bool,
    "review_rejected": bool,
    "review_doubtful": bool,
    "subscription_stands": bool,  # we asked to end one, and nothing confirms that it ended
    "exchange_differs": bool,
    "settled": bool,  # any line of a settlement file
    "settled_capture": bool,
    "settled_differs": bool,
    # Charged back by settlement lines although the gateway shows the money; 2: booked exactly so.
    "charged_by_lines": int,
    "settlement_owed": bool,  # a settlement file of its days exists
    "fee_differs": bool,
    **dict.fromkeys(PAYOUT_FACTS, bool),
    **{f"late_{clock}": bool for clock in (*CLOCKS, NO_LIMIT)},  # it has run out
}
"""Facts of a set without its amounts, by type. Signs are -1, 0, 1 after tolerance."""
FACTS: Mapping[str, type] = {
    **PATTERN,
    **dict.fromkeys(("order", "gateway", "cell"), str),
    # Signs of what neither a code nor a pending finding covers; only for rows with `last`.
    **dict.fromkeys(("open_orders", "open_ledger"), int),
}
"""Facts that conditions of the table may name, in addition to its own `[facts]`."""


def table_rows_of_sets(table: CodeTable) -> tuple[tuple[TableRow, ...], Mapping[str, Condition]]:
    """Compile the table's conditions for sets, and its own facts in their order.

    Raises:
        Defect: a condition, cell or clock is unknown; the message names its code or fact.
    """
    known, facts = dict(FACTS), {}
    for name, text in table.facts.items():
        facts[name] = ready(text, facts=known, of=name)
        known[name] = bool
    for state, cells in table.cells.items():
        if unknown := {*cells} - _CELLS - {*BreakCode}:
            msg = f"codes.toml, states, {state}: there is no cell {min(unknown)!r}"
            raise Defect(msg)
    sets = rows_of(table, of="sets", facts=known, given="not payout")
    return (*sets, *rows_of(table, of="payouts", facts=known, given="payout")), facts


_CELLS = frozenset({"=", "amounts", "waits", "never", "by_void", "given_back"})
_COLUMNS = {
    state: at
    for at, states in enumerate(
        [
            *("none", "pending in_review", "authorised", "paid", "partially_refunded", "refunded"),
            *("cancelled", "expired", "failed"),
        ]
    )
    for state in states.split()
}
"""Gateway state -> its column of cells; other states decide nothing by themselves."""
ROWS, DERIVED = table_rows_of_sets(TABLE)
_MATCHED = [(each.rule, condition_of(each.holds, facts=FACTS)) for each in TABLE.matched]
_BOTH_LEGS = frozenset(code for code, row in TABLE.codes.items() if row.both_legs)


def classify(patterns: Mapping[str, Ints]) -> tuple[Classification, ...]:
    """Return the judgement of each pattern.

    Args:
        patterns: columns of PATTERN (grain: pattern).
    """
    known = _facts(patterns)
    found = [(row, where_holds(row, known=known)) for row in ROWS if not row.when.last]
    _open_legs(known, found=found)
    found += [(row, where_holds(row, known=known)) for row in ROWS if row.when.last]
    rules, agree = zip(*_MATCHED, strict=True)
    known.agreed = np.select([holds(known) for holds in agree], rules, default="")
    return classifications_of(found, known=known)


def _facts(patterns: Mapping[str, Ints]) -> SimpleNamespace:
    """Return the facts of the patterns under the names that conditions use."""
    known = SimpleNamespace(**{n: patterns[n].astype(FACTS[n]) for n in PATTERN})
    known.order = np.array(ORDER_STATES, dtype=object)[patterns["order_state"]]
    known.gateway = np.array(GATEWAY_STATES, dtype=object)[patterns["gateway_state"]]
    pairs = zip(known.order.tolist(), known.gateway.tolist(), strict=True)
    known.cell = np.array([_cell(*pair) for pair in pairs], dtype=object)
    for name, holds in DERIVED.items():
        setattr(known, name, holds(known))
    return known


def _cell(order: str, gateway: str) -> str:
    """Return the cell of a pair of states, "=" for gateway states without a column."""
    return TABLE.cells[order][_COLUMNS[gateway]] if gateway in _COLUMNS else "="


def _open_legs(known: SimpleNamespace, *, found: list[tuple[TableRow, Bools]]) -> None:
    """Set open_orders and open_ledger: differences that no code and no pending finding covers.

    Every difference should have a finding of its own; this safeguard ensures that no set is MATCHED
    or PENDING with money that does not add up.
    """
    claimed = {leg: np.zeros_like(known.payout) for leg in ("", *LEGS)}
    for row, holds in found:
        if row.code is not None or row.when.grace:
            claimed[row.when.leg] |= holds
        if row.code is not None:
            claimed[""] |= holds & is_late(row, known=known)
        if row.code in _BOTH_LEGS:
            claimed["orders"] |= holds
    of_orders = claimed["orders"] | claimed["instructions"] | claimed[""]
    known.open_orders = np.where(of_orders, 0, known.residual_orders)
    known.open_ledger = np.where(claimed["ledger"] | claimed[""], 0, known.residual_ledger)


_LIVE_ORDERS = [
    ORDER_STATES.index(w) for w in ("paid", "partially_refunded", "refunded", "authorised")
]
_LIVE_PAYMENTS = [
    NUMBER[w] for w in ("paid", "partially_refunded", "refunded", "authorised", "chargeback")
]
NO_PRIMARY = -1


class MovedSets(NamedTuple):
    """Sets whose missing side is in another account of the merchant."""

    primary: Rows
    """For a set that belongs to another one, that set; else NO_PRIMARY."""
    wrong: Bools
    """Sets that represent such a pair."""
    ambiguous: Bools
    """Sets with several candidates."""


def wrong_accounts(sets: Arrays, *, classified: Bools) -> MovedSets:
    """Pair one-sided sets across accounts of a merchant; only `classified` sets take part."""
    size = len(sets)
    moved = MovedSets(
        np.full(size, NO_PRIMARY, dtype=np.intp),
        np.zeros(size, dtype=np.bool_),
        np.zeros(size, dtype=np.bool_),
    )
    _, first = np.unique(sets["account"], return_index=True)
    if len({*sets["merchant_id"][first].tolist()}) == len(first):
        return moved
    sides = {
        "order": (np.isin(sets["order_state"], _LIVE_ORDERS), sets["order_captured"]),
        "gateway": (np.isin(sets["gateway_state"], _LIVE_PAYMENTS), sets["gateway_amount_shown"]),
        "ledger": (sets["ledger_capture"] != 0, sets["ledger_capture"]),
    }
    has = {side: there for side, (there, _) in sides.items()}
    of_one = np.select([*has.values()], [amount for _, amount in sides.values()], default=0)
    agree = [~there | (amount == of_one) for there, amount in sides.values()]
    count = np.sum([*has.values()], axis=0)
    strays = (sets["gateway_state"] != NUMBER["none"]) & ~has["gateway"]
    partial = (
        (count > 0) & (count < len(sides)) & ~strays & np.logical_and.reduce(agree) & classified
    )
    partial = np.asarray(partial & (sets["order_no"] != ""), dtype=np.bool_)
    by = ["merchant_id", "order_no", "currency"]
    rows = pd.DataFrame(
        {name: sets[name][partial] for name in (*by, "account_id")}
        | {side: there[partial] for side, there in has.items()}
        | {"amount": of_one[partial], "set": np.flatnonzero(partial)}
    )
    rows = rows[rows.duplicated(["merchant_id", "order_no"], keep=False)]
    pairs = rows.merge(rows, on=[*by, "amount"], suffixes=("", "_other"))
    fits = pairs["account_id"] != pairs["account_id_other"]
    fits &= pairs["gateway"] | pairs["gateway_other"]
    for side in sides:
        fits &= ~(pairs[side] & pairs[f"{side}_other"])
    pairs = pairs[fits]
    pairs["times"] = pairs.groupby("set")["set"].transform("size")
    pairs["times_other"] = pairs.groupby("set_other")["set_other"].transform("size")
    single = pairs["times"].eq(1) & pairs["times_other"].eq(1)
    # The order's account stands for the break; without an order the gateway's.
    is_primary = pairs["account_id"] < pairs["account_id_other"]
    for side in ("gateway", "order"):
        is_primary = is_primary.where(pairs[side] == pairs[f"{side}_other"], pairs[side])
    own, others = pairs["set"].to_numpy(), pairs["set_other"].to_numpy()
    moved.wrong[own[single & is_primary]] = True
    moved.primary[own[single & ~is_primary]] = others[single & ~is_primary]
    unclear = ~single & (pairs["order"] | pairs["times"].gt(1))
    moved.ambiguous[own[unclear]] = True
    return moved


def brought_together(sets: Arrays, *, primary: Rows) -> Arrays:
    """Merge sets of another account into the primary sets that they belong to.

    A primary set is classified as if its records were in one account, so that any other problem is
    reported on its break. Sets that are not primary stay as they are.
    """
    away = np.flatnonzero(primary >= 0)
    if not away.size:
        return sets
    primaries = primary[away]
    together: dict[str, Column] = {}
    for name, column in sets.columns.items():
        if name in _TEXTS or (column.dtype.kind in _NUMBERS and name not in _OF_ITS_ACCOUNT):
            values = column.copy()
            values[primaries] = _merged(name, values[primaries], values[away])
            together[name] = values
    return sets.assign(**together)


_NUMBERS = "bi"
_OF_ITS_ACCOUNT = frozenset({"account", "kind", "currencies", "primary"})
_TEXTS = ("gateway_currency", "settled_currency")
"""Texts that classification reads in addition to the set's own currency, which both sets share."""
_WHERE_BOTH_ARE = frozenset({"both_known", "captured_known"})
_GREATER = frozenset(
    {"order_state", "gateway_state", "payout", "ledger_any", "instruction_amount"}
    | {*DATES, "settled_from", "settled_until"}
)


def _merged(name: str, column: Column, other: Column) -> Column:
    """Combine two columns: the given text, the later date, either mask, the sum of amounts."""
    if column.dtype == object:
        return np.where(column == "", other, column)
    if name in _WHERE_BOTH_ARE:
        return column & other
    if column.dtype == np.bool_:
        return column | other
    if name in _GREATER:
        return np.maximum(column, other)
    return column + other


Strict = Callable[[Mapping[AccountKey, int]], Collection[AccountKey]]
"""From the rounding of some sets (see Outcomes.spent) to the budgets that are spent."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The classification of every set."""

    classified: Classifications
    primary: Rows
    """The set in another account whose break explains this one, else -1."""
    due_at: Ints
    """When a PENDING set becomes late."""
    sets: Arrays
    """The sets as classified: a primary set includes the rows of the set that it represents."""
    ours: Ours
    """Effects of our instructions beyond what the query shows."""
    uncaptured: Ints
    """What our capture, confirmed or in doubt, left of the payment, minor units."""
    rounded: Ints
    """Amount that counts as rounding against orders and ledger together, unsigned minor units."""
    spent: Mapping[AccountKey, int]
    """Rounding of the matched sets, unsigned minor units, by merchant, account and currency: of all
    that have a set whose outcome changes once their budget is spent."""

    def states(self) -> Column:
        """Return the state of each set; a set explained by a primary set is part of its break."""
        own = self.classified.of_each("state")
        own[self.primary >= 0] = SetState.BREAK.value
        return own


class SetFacts(NamedTuple):
    """Everything known of each set, except what depends on the rounding budget."""

    sets: Arrays
    """As they are classified; see Outcomes."""
    ours: Ours
    due: dict[str, Ints]
    """Clock -> when it runs out."""
    facts: dict[str, Ints]


def with_linked_sets(joined: Joined, *, now: int) -> Joined:
    """Return the sets without dates too far ahead, and with those that belong to another account.

    Adds columns date_ahead; wrong_account, account_ambiguous and primary (see MovedSets).
    """
    sets = without_ahead(joined.sets, now=now)
    moved = wrong_accounts(sets, classified=unverified_reasons(sets) == Unverified.NO)
    columns = {"wrong_account": moved.wrong, "account_ambiguous": moved.ambiguous}
    return replace(joined, sets=sets.assign(**columns, primary=moved.primary))


def facts_of_sets(joined: Joined, *, basis: Basis) -> SetFacts:
    """Return facts, clocks and our instructions per set, merged across accounts."""
    rules, now = basis.rules, basis.now
    sets = brought_together(joined.sets, primary=joined.sets["primary"])
    due = due_columns(sets, basis=basis)
    moves, ours = our_moves(sets, refund_late=due["refund_confirmed"] <= now, rules=rules)
    facts = {
        **plain_facts(sets, ours=ours, covered=joined.covered),
        **moves,
        "unverified": unverified_reasons(sets),
        "orders_lack": bits(sets["orders_lack"] & (sets["order_state"] == 0)),
        # Due exactly at as-of is late.
        **{f"late_{clock}": bits(ends <= now) for clock, ends in due.items()},
    }
    return SetFacts(sets, ours, due, facts)


def classify_sets(joined: Joined, *, basis: Basis, strict: Strict | None = None) -> Outcomes:
    """Classify every set, without rounding where the run's rounding budget is spent.

    `joined`: see `with_linked_sets`; `strict`: None: these sets alone decide.
    """
    known, rules = facts_of_sets(joined, basis=basis), basis.rules
    sets, ours = known.sets, known.ours

    def legs(without: Bools) -> LegFacts:
        return leg_facts(sets, ours=ours, rules=rules, strict=without, covered=joined.covered)

    def classified(both: LegFacts) -> Outcomes:
        facts = {**known.facts, **both.facts}
        numbers, patterns = distinct_patterns({name: facts[name] for name in PATTERN})
        outcomes = Classifications(numbers, classify(patterns))
        due_at = _due_at(outcomes, due=known.due)
        left = np.maximum(ours.uncaptured, beyond_doubt(sets))
        primary = joined.sets["primary"]
        return Outcomes(outcomes, primary, due_at, sets, ours, left, both.rounded, spent={})

    nothing = np.zeros(len(sets), dtype=np.bool_)
    free = legs(nothing)
    outcomes = classified(free)
    if not budgets_of(rules):
        return outcomes
    hard = legs(~nothing)
    differs = np.any([fact != hard.facts[name] for name, fact in free.facts.items()], axis=0)
    groups, keys = keyed(sets.frame(*ACCOUNT_KEY), by=ACCOUNT_KEY)
    rounded = total(_rounded(outcomes), groups=groups, size=len(keys)).tolist()
    spent = {keys[group]: rounded[group] for group in np.unique(groups[differs]).tolist()}
    over = over_budget(spent, rules=rules) if strict is None else strict(spent)
    without = np.array([key in over for key in keys], dtype=np.bool_)[groups]
    if without.any():
        outcomes = classified(legs(without))
    return replace(outcomes, spent=spent)


def _rounded(outcomes: Outcomes) -> Ints:
    """Return the rounding of each set that matches with it, else 0."""
    flagged = [
        Flag.ROUNDING in j.flags and j.state == SetState.MATCHED
        for j in outcomes.classified.by_pattern
    ]
    matched = np.array(flagged, dtype=np.bool_)[outcomes.classified.patterns]
    return np.where(matched, outcomes.rounded, 0)


def budgets_of(rules: Rules) -> Mapping[str, int]:
    """Return currency -> the rounding that a night may have, minor units."""
    every = rules.tolerance.items()
    known = ((currency, tolerance.night_budget_minor_units) for currency, tolerance in every)
    return {currency: budget for currency, budget in known if budget is not None}


def over_budget(spent: Mapping[AccountKey, int], *, rules: Rules) -> frozenset[AccountKey]:
    """Return the merchants, accounts and currencies whose rounding exceeds its budget."""
    budgets = budgets_of(rules)
    return frozenset(
        place for place, amount in spent.items() if amount > budgets.get(place[2], amount)
    )


def _due_at(classified: Classifications, *, due: dict[str, Ints]) -> Ints:
    """Return the earliest instant that each pending set waits for; NO_INSTANT without a limit."""
    ends = np.full(len(classified.patterns), NO_INSTANT, dtype=np.int64)
    for clock, end in due.items():
        waiting = np.array([clock in each.clocks for each in classified.by_pattern], np.bool_)
        if waiting.any():
            rows = waiting[classified.patterns]
            sooner = rows & ((ends == NO_INSTANT) | (end < ends))
            ends[sooner] = end[sooner]
    return np.where(ends == NEVER, NO_INSTANT, ends)


_PAIR = [NUMBER[label] for label in ("paid", "partially_refunded", "refunded")]


def set_flags(sets: Arrays, *, outcomes: Outcomes, instructed: bool, basis: Basis) -> Column:
    """Return the flags of every set as text: secondary codes by precedence, then labels sorted."""
    matched = outcomes.states() == SetState.MATCHED.value
    flags_of = {
        Flag.REFERENCE_CONFLICT: _reference_conflict(sets),
        Flag.ZERO_AMOUNT: _zero_amount(sets),
        Flag.EXPIRING: _expiring(sets, basis=basis),
        Flag.DATE_AHEAD: sets["date_ahead"],
        Flag.ENTRY_VANISHED: sets["entry_vanished"],
        Flag.PORTAL_ACTION: _portal_action(sets, instructed=instructed, rules=basis.rules),
        Flag.REFUND_FROM_SETTLEMENT: sets["refund_settled"],
        Flag.CUT_OFF_DIFFERENCE: matched & _cut_off_difference(sets, calendar=basis.calendar),
    }
    return outcomes.classified.flags(flags_of)


def _reference_conflict(sets: Arrays) -> Bools:
    ours, theirs = sets["order_transaction"], sets["gateway_transaction"]
    return np.asarray((ours != "") & (theirs != "") & (ours != theirs), dtype=np.bool_)


def _zero_amount(sets: Arrays) -> Bools:
    ordered = (sets["order_state"] != 0) & (sets["order_amount"] == 0)
    is_zero = np.isin(sets["gateway_state"], _PAIR) & (sets["gateway_captured"] == 0)
    return np.asarray(ordered | is_zero, dtype=np.bool_)


def _expiring(sets: Arrays, *, basis: Basis) -> Bools:
    """Mark authorised payments whose validity ends within the warning days."""
    authorisation = basis.rules.authorisation
    days = authorisation.valid_days - authorisation.warn_days
    warned = sets["transaction_date"] + days * DAY_MICROSECONDS <= basis.now
    dated = sets["transaction_date"] != NO_INSTANT
    held = sets["gateway_state"] == NUMBER["authorised"]
    return np.asarray(held & dated & warned, dtype=np.bool_)


def _portal_action(sets: Arrays, *, instructed: bool, rules: Rules) -> Bools:
    """Mark movements after the opening date that no instruction of ours explains."""
    opening = rules.window.opening_date
    if not instructed or rules.account.capture_mode != "manual" or opening is None:
        return np.zeros(len(sets), dtype=np.bool_)
    start = microseconds(midnight(opening, zone=rules.business_calendar.zone))
    ours = {
        kind: sets[f"{kind}_confirmed_any"] | sets[f"{kind}_doubtful_any"]
        for kind in ("capture", "refund", "cancel")
    }
    moved = (sets["gateway_captured"] > 0) & ~ours["capture"]
    moved |= (sets["gateway_refunded"] > 0) & ~ours["refund"]
    moved |= (sets["gateway_state"] == NUMBER["cancelled"]) & ~ours["cancel"]
    since = (sets["transaction_date"] >= start) | sets["date_ahead"]
    return np.asarray(moved & since, dtype=np.bool_)


def _cut_off_difference(sets: Arrays, *, calendar: BusinessCalendar) -> Bools:
    """Mark sets whose order and payment fall on different business dates."""
    sold = business_days(sets["ordered_at"], calendar=calendar)
    paid = business_days(sets["transaction_date"], calendar=calendar)
    money = np.isin(sets["gateway_state"], _PAIR)
    return np.asarray(money & (sold != paid) & (sold != NO_INSTANT) & (paid != NO_INSTANT))
