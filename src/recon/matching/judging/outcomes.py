"""The judgement of every set: patterns judged once, the night's budget of rounding kept."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recon.config.rules import Rules
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.coding import combined
from recon.matching.frames.grouping import NO_INSTANT, Bools, Ints, Rows, total
from recon.matching.judging.facts import (
    beyond_doubt,
    late_bits,
    our_moves,
    plain_facts,
    unverified_reasons,
)
from recon.matching.judging.grace import due_columns, with_unproven, without_ahead
from recon.matching.judging.judgement import Judgement, distinct_patterns, judge
from recon.matching.sets.joined_sets import Joined
from recon.matching.sets.residuals import Ours, legs
from recon.matching.sets.wrong_account import brought_together, wrong_accounts
from recon.model.words import Flag, GatewayState, SetState

REFUND_STATES = (GatewayState.PARTIALLY_REFUNDED, GatewayState.REFUNDED)
ACCOUNT = ["merchant_id", "account_id", "currency"]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What every set came to."""

    patterns: Rows
    """Number of each set's pattern."""
    judgements: tuple[Judgement, ...]
    """By pattern number."""
    host: Rows
    """The set whose break explains this one (another account), else -1."""
    due_at: Ints
    """When a PENDING set becomes late."""
    sets: Arrays
    """The sets as they were judged: a host has the rows of the set that it stands for."""
    ours: Ours
    """What our moves did beyond what the query shows."""
    rounded: Ints
    """What is called rounding, both legs together, unsigned minor units."""

    def states(self) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
        """The state of each set; a set explained elsewhere has its host's."""
        words = np.array([j.state for j in self.judgements] or [""], dtype=object)
        own: np.ndarray[tuple[int], np.dtype[np.object_]] = words[self.patterns]
        own[self.host >= 0] = SetState.BREAK.value
        return own


def judge_sets(joined: Joined, *, rules: Rules, as_of: int) -> Outcomes:
    """Judge every set; a second time without rounding where the budget is spent."""
    joined.sets.columns |= without_ahead(joined.sets, as_of=as_of)
    moved = wrong_accounts(joined.sets, judged=unverified_reasons(joined.sets) == 0)
    joined.sets.columns["wrong_account"] = moved.wrong
    joined.sets.columns["account_ambiguous"] = moved.ambiguous
    sets = brought_together(joined.sets, host=moved.host)
    due = with_unproven(due_columns(sets, rules=rules), sets=sets, as_of=as_of)
    moves, ours = our_moves(sets, refund_late=due["refund_confirmed"] <= as_of, rules=rules)
    joined.sets.columns |= {
        "uncaptured": np.maximum(ours.uncaptured, beyond_doubt(sets)),
        "refund_hidden": np.full(len(sets), not all(map(rules.shows, REFUND_STATES))),
    }
    fixed = {
        **plain_facts(sets, ours=ours, covered=joined.covered),
        **moves,
        "unverified": unverified_reasons(sets),
        "orders_lack": (sets["orders_lack"] & (sets["order_state"] == 0)).astype(np.int64),
        "late": late_bits(due, as_of=as_of),
    }
    sums = _Sums(sets, ours, joined.covered, rules)
    strict = np.zeros(len(sets), dtype=np.bool_)
    outcomes = _judged(sums, fixed=fixed, due=due, host=moved.host, strict=strict)
    strict = _over_budget(sets, outcomes=outcomes, rules=rules)
    if strict.any():
        outcomes = _judged(sums, fixed=fixed, due=due, host=moved.host, strict=strict)
    return outcomes


class _Sums(NamedTuple):
    """What the legs are added up from."""

    sets: Arrays
    ours: Ours
    covered: bool
    rules: Rules


def _judged(
    sums: _Sums, *, fixed: dict[str, Ints], due: dict[str, Ints], host: Rows, strict: Bools
) -> Outcomes:
    both = legs(sums.sets, ours=sums.ours, rules=sums.rules, strict=strict, covered=sums.covered)
    numbers, patterns = distinct_patterns({**fixed, **both.facts})
    judgements = judge(patterns)
    due_at = _due_at(numbers, judgements=judgements, due=due)
    return Outcomes(numbers, judgements, host, due_at, sums.sets, sums.ours, both.rounded)


def _due_at(numbers: Rows, *, judgements: tuple[Judgement, ...], due: dict[str, Ints]) -> Ints:
    """The first of the instants a pending set waits for."""
    ends = np.full(len(numbers), NO_INSTANT, dtype=np.int64)
    for clock, end in due.items():
        waiting = np.array([clock in j.clocks for j in judgements], np.bool_)
        if not waiting.any():
            continue
        rows = waiting[numbers]
        sooner = rows & ((ends == NO_INSTANT) | (end < ends))
        ends[sooner] = end[sooner]
    return ends


def _over_budget(sets: Arrays, *, outcomes: Outcomes, rules: Rules) -> Bools:
    """Sets of an account and currency whose rounding sums to more than its night budget."""
    budgets = {
        currency: tolerance.night_budget_minor_units
        for currency, tolerance in rules.tolerance.items()
        if tolerance.night_budget_minor_units is not None
    }
    if not budgets:
        return np.zeros(len(sets), dtype=np.bool_)
    flagged = [
        Flag.ROUNDING in j.flags and j.state == SetState.MATCHED for j in outcomes.judgements
    ]
    matched = np.array(flagged, dtype=np.bool_)[outcomes.patterns]
    groups, places = combined([sets[name] for name in ACCOUNT])
    spent = total(np.where(matched, outcomes.rounded, 0), groups=groups, size=len(places))
    over = [
        currency in budgets and amount > budgets[currency]
        for (_, _, currency), amount in zip(places, spent.tolist(), strict=True)
    ]
    return np.array(over, dtype=np.bool_)[groups]
