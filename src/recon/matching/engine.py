"""The reconciliation itself: sources in, matches, pending, breaks and proof out. Pure, no clock."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import pandas as pd

from recon.config.cluster import IN_PROCESS, Workers
from recon.config.rules import Rules
from recon.matching.breaks.broken_sets import breaks_of, business_date
from recon.matching.breaks.movements import fates_of, movements
from recon.matching.breaks.places import place_items, sides_of, stands_of, with_exact
from recon.matching.breaks.reopened import Ids, sequenced
from recon.matching.breaks.result import Deferred, Reconciliation
from recon.matching.breaks.result_frames import (
    OPEN_SORTED_BY,
    Frames,
    effects_of,
    matches_of,
    pending_of,
    unverified_of,
)
from recon.matching.breaks.result_rows import entry_ids, identities, not_compared_rows, shown_rows
from recon.matching.breaks.sum_bounds import refuse_beyond_sums
from recon.matching.causes.cause_evidence import Evidence
from recon.matching.causes.journal_parts import parts_of
from recon.matching.causes.journals import propose
from recon.matching.causes.reasons import with_reasons
from recon.matching.causes.shared_causes import with_causes
from recon.matching.causes.suggestions import with_suggestions
from recon.matching.exact.aside import Exact, nothing_aside, set_aside
from recon.matching.exact.exact_rows import exact_matches, exact_tallies
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.digest import digest_of
from recon.matching.frames.sorting import in_order
from recon.matching.frames.sources import LEDGER_COLUMNS, Previous, Sources, frame_of
from recon.matching.judging.grace import microseconds
from recon.matching.judging.marks import set_flags
from recon.matching.judging.outcomes import Outcomes, judge_sets
from recon.matching.sets.joined_sets import Joined, join_sides
from recon.matching.sides.instruction_versions import with_each_instruction_once
from recon.matching.sides.ledger_side import JUDGED
from recon.matching.sides.payouts import judged_entries
from recon.model.words import SetState
from recon.proof.control_totals import Proof, control_totals
from recon.proof.scope import not_covered, scope_of_assurance, unmapped_codes
from recon.proof.verdict import verdict_of


def reconcile(
    sources: Sources,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None = None,
    workers: Workers = IN_PROCESS,
) -> Reconciliation:
    """Compare orders, gateway, ledger and instructions as they stood at `as_of`.

    Args:
        sources: typed frames, one row per accepted source row.
        rules: tolerance, grace, calendar, status map.
        as_of: the instant that closes the business date; the only time this knows.
        previous: what an earlier run left open, for ids, first seen and the roll-forward.
        workers: who looks for the sets that agree in every leg, and in how many partitions.
    """
    proof = prove(sources, rules=rules, as_of=as_of, previous=previous, workers=workers)
    return concluded(proof, as_of=as_of)


def prove(
    sources: Sources,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
    workers: Workers = IN_PROCESS,
) -> Proof:
    """The frames of the result with all that the control totals are computed from."""
    refuse_beyond_sums(sources)
    sources = _with_judged_payouts(with_each_instruction_once(sources))
    exact = set_aside(sources, rules=rules, previous=previous, workers=workers)
    return classified(sources, exact=exact, rules=rules, as_of=as_of, previous=previous)


def prove_all_classified(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> Proof:
    """The same without setting exact sets aside: slow, and never another result."""
    refuse_beyond_sums(sources)
    sources = _with_judged_payouts(with_each_instruction_once(sources))
    exact = nothing_aside(sources, rules=rules, previous=previous)
    return classified(sources, exact=exact, rules=rules, as_of=as_of, previous=previous)


def concluded(proof: Proof, *, as_of: datetime) -> Reconciliation:
    """The result with its control totals, its verdict and what it is worth."""
    frames, totals, sources, rules = proof.frames, control_totals(proof), proof.sources, proof.rules
    stands = stands_of(proof.places)
    matches = Deferred(lambda: _every_match(frames, exact=proof.exact, sources=sources))
    return Reconciliation(
        as_of=as_of,
        verdict=verdict_of(totals, frames=frames, stands=stands, sources=sources, rules=rules),
        breaks=frames.breaks,
        effects=frames.effects,
        every_match=matches,
        pending=frames.pending,
        unverified=frames.unverified,
        control_totals=totals,
        sides=sides_of(stands),
        unmapped_codes=unmapped_codes(proof.exact.sources, rules=rules),
        not_covered=not_covered(sources, rules=rules),
        scope_of_assurance=scope_of_assurance(frames, tallies=proof.exact_tallies, sources=sources),
        rules_digest=rules.digest,
        digest_of_all=Deferred(lambda: _digest(frames, matches=matches.get())),
        movements=proof.moved,
        journals=proof.journals,
    )


def _digest(frames: Frames, *, matches: pd.DataFrame) -> str:
    return digest_of([frames.breaks, frames.effects, matches, frames.pending, frames.unverified])


def _every_match(frames: Frames, *, exact: Exact, sources: Sources) -> pd.DataFrame:
    """The matches that were classified, and those that were set aside."""
    if not exact.size:
        return frames.matches
    aside = exact_matches(exact, sources=sources)
    frame = pd.concat([frames.matches, aside], ignore_index=True)
    return in_order(frame, by=OPEN_SORTED_BY)


def digest_alone(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None = None
) -> str:
    """The digest that `reconcile` gives, made without the totals and what only they need."""
    refuse_beyond_sums(sources)
    sources = _with_judged_payouts(with_each_instruction_once(sources))
    exact = set_aside(sources, rules=rules, previous=previous)
    found = _judged(sources, exact=exact, rules=rules, as_of=as_of, previous=previous)
    return _digest(found.frames, matches=_every_match(found.frames, exact=exact, sources=sources))


@dataclass(frozen=True, slots=True)
class Judged:
    """What was not set aside, judged: all that the digest is made of."""

    joined: Joined
    outcomes: Outcomes
    rows: Arrays
    reopens: Mapping[str, str]
    frames: Frames
    break_sets: Mapping[int, str]


def classified(
    sources: Sources,
    *,
    exact: Exact,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> Proof:
    """Judge what was not set aside (`sources`: the whole, for the totals)."""
    found = _judged(sources, exact=exact, rules=rules, as_of=as_of, previous=previous)
    joined, outcomes, frames = found.joined, found.outcomes, found.frames
    places = place_items(
        joined, outcomes=outcomes, break_sets=found.break_sets, ledger=exact.sources.ledger
    )
    tallies = exact_tallies(exact, sources=sources)
    places = with_exact(places, left=exact.item_rows(), tallies=tallies)
    fates = fates_of(found.rows, hosts=outcomes.host, previous=previous)
    moved = movements(
        frames.breaks,
        fates=fates,
        previous=previous,
        reopens=found.reopens,
        books=sources.ledger is not None,
    )
    journals = propose(
        frames.breaks,
        effects=frames.effects,
        parts=parts_of(joined, break_sets=found.break_sets),
        rules=rules,
        date=business_date(as_of, rules=rules).isoformat(),
        sources=sources,
    )
    states = outcomes.states()
    return Proof(
        sources,
        rules,
        exact,
        tallies,
        joined,
        frames,
        places,
        previous,
        states,
        _sets_of(found.rows),
        moved,
        journals,
    )


def _sets_of(rows: Arrays) -> dict[str, int]:
    """The set of each id."""
    own = rows.take(rows["own"])
    return dict(own.rows("identity", "set"))


def _judged(
    sources: Sources,
    *,
    exact: Exact,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> Judged:
    rest = exact.sources
    joined = join_sides(rest, numbers=exact.left_keys, rules=rules, previous=previous)
    joined.sets.columns["entry_ids"] = entry_ids(
        joined.ledger.items, size=joined.keys.size, only=joined.sets["ledger_entry_id"]
    )
    outcomes = judge_sets(joined, rules=rules, as_of=microseconds(as_of))
    rows = _rows(joined, outcomes=outcomes, sources=rest, rules=rules, as_of=as_of)
    ids, reopens = _identities(joined, states=outcomes, previous=previous)
    rows.columns["identity"] = ids[rows["set"]]
    breaks = breaks_of(
        rows, joined=joined, outcomes=outcomes, as_of=as_of, rules=rules, previous=previous
    )
    breaks = with_reasons(breaks, joined=joined, sources=rest, outcomes=outcomes)
    evidence = Evidence(joined, rest, rules, exact, sources, outcomes.host)
    breaks = with_suggestions(with_causes(breaks, evidence=evidence), sets=joined.sets, rules=rules)
    break_sets = dict(zip(breaks["set"].tolist(), breaks["break_id"].tolist(), strict=True))
    ledger = frame_of([], columns=LEDGER_COLUMNS) if rest.ledger is None else rest.ledger
    alone = not_compared_rows(ledger, versions=joined.ledger.versions)
    frames = Frames(
        breaks=breaks.drop(columns="set"),
        effects=effects_of(joined, outcomes=outcomes, break_sets=break_sets),
        matches=matches_of(rows, outcomes=outcomes, alone=alone),
        pending=pending_of(rows, outcomes=outcomes),
        unverified=unverified_of(rows, outcomes=outcomes),
    )
    return Judged(joined, outcomes, rows, reopens, frames, break_sets)


def _with_judged_payouts(sources: Sources) -> Sources:
    if sources.ledger is None:
        return sources
    return replace(sources, ledger=sources.ledger.assign(**{JUDGED: judged_entries(sources)}))


def _rows(
    joined: Joined, *, outcomes: Outcomes, sources: Sources, rules: Rules, as_of: datetime
) -> Arrays:
    """What every set shows, with its state, flags and identity (grain: set and currency)."""
    rows = shown_rows(joined, outcomes=outcomes)
    numbers = rows["set"]
    flags = set_flags(
        joined.sets,
        outcomes=outcomes,
        instructed=sources.instructions is not None,
        as_of=as_of,
        rules=rules,
    )
    return rows.assign(state=outcomes.states()[numbers], flags=flags[numbers])


def _identities(
    joined: Joined, *, states: Outcomes, previous: Previous | None
) -> tuple[Ids, Mapping[str, str]]:
    """The id of each set, and which closed break an id opens again."""
    broken = states.states() == SetState.BREAK.value
    first = identities(joined.sets)
    return sequenced(first, sets=joined.sets, broken=broken, previous=previous)
