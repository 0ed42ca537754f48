"""The judgement of every set: patterns judged once, the night's budget of rounding kept."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from recon.matching.facts import (
    closed_by_write_off,
    comparisons,
    late_bits,
    our_moves,
    plain_facts,
    unverified_reasons,
)
from recon.matching.grace import due_columns, with_unproven
from recon.matching.grouping import NO_INSTANT, Bools, Ints, Rows
from recon.matching.joined_sets import Joined
from recon.matching.judgement import Judgement, judge
from recon.matching.pattern import distinct_patterns
from recon.matching.state_table import Due
from recon.matching.wrong_account import wrong_accounts
from recon.model import Flag, SetState
from recon.rules import Rules

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

    def states(self) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
        """The state of each set; a set explained elsewhere has its host's."""
        words = np.array([j.state for j in self.judgements] or [""], dtype=object)
        own: np.ndarray[tuple[int], np.dtype[np.object_]] = words[self.patterns]
        own[self.host >= 0] = SetState.BREAK.value
        return own


def judge_sets(joined: Joined, *, rules: Rules, as_of: int) -> Outcomes:
    """Judge every set; a second time without rounding where the budget is spent."""
    sets = joined.sets
    reasons = unverified_reasons(sets)
    plain = ~(sets["over_authorised"] | sets["refund_excess"]).to_numpy()
    plain &= sets["refund_confirmed"].add(sets["refund_doubtful"]).eq(0).to_numpy()
    moved = wrong_accounts(sets, judged=(reasons == 0) & plain)
    sets["wrong_account"], sets["account_ambiguous"] = moved.wrong, moved.ambiguous
    due = with_unproven(due_columns(sets, rules=rules), sets=sets, as_of=as_of)
    fixed = {
        **plain_facts(sets, covered=joined.covered),
        **our_moves(sets, rules=rules),
        **closed_by_write_off(sets, covered=joined.covered),
        "unverified": reasons,
        "late": late_bits(due, as_of=as_of),
    }
    strict = np.zeros(len(sets), dtype=np.bool_)
    outcomes = _judged(sets, fixed=fixed, due=due, host=moved.host, strict=strict, rules=rules)
    strict = _over_budget(sets, outcomes=outcomes, rules=rules)
    if strict.any():
        outcomes = _judged(sets, fixed=fixed, due=due, host=moved.host, strict=strict, rules=rules)
    return outcomes


def _judged(
    sets: pd.DataFrame,
    *,
    fixed: dict[str, Ints],
    due: dict[Due, Ints],
    host: Rows,
    strict: Bools,
    rules: Rules,
) -> Outcomes:
    facts = {**fixed, **comparisons(sets, rules=rules, strict=strict)}
    numbers, patterns = distinct_patterns(facts)
    judgements = tuple(judge(pattern) for pattern in patterns)
    return Outcomes(numbers, judgements, host, _due_at(numbers, judgements=judgements, due=due))


def _due_at(numbers: Rows, *, judgements: tuple[Judgement, ...], due: dict[Due, Ints]) -> Ints:
    """The first of the instants a pending set waits for."""
    ends = np.full(len(numbers), NO_INSTANT, dtype=np.int64)
    for clock, end in due.items():
        waiting = np.array([any(w.due is clock for w in j.waits) for j in judgements], np.bool_)
        if not waiting.any():
            continue
        rows = waiting[numbers]
        sooner = rows & ((ends == NO_INSTANT) | (end < ends))
        ends[sooner] = end[sooner]
    return ends


def _over_budget(sets: pd.DataFrame, *, outcomes: Outcomes, rules: Rules) -> Bools:
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
    rounded = np.array(flagged, dtype=np.bool_)[outcomes.patterns]
    effect = (sets["gateway_net"] - sets["order_net"]).abs()
    effect += (sets["gateway_net"] - sets["ledger_net"]).abs() * sets["ledger_present"]
    spent = effect.where(rounded, 0).groupby([sets[name] for name in ACCOUNT]).transform("sum")
    budget = sets["currency"].map(budgets)
    limited = budget.notna()
    over = np.zeros(len(sets), dtype=np.bool_)
    over[limited.to_numpy()] = (spent[limited] > budget[limited].astype("int64")).to_numpy()
    return over
