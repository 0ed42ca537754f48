"""Some rows compared at once: judged sets, and all that proves them, as one result."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import pandas as pd
import pyarrow as pa

from recon.config.rules import Rules
from recon.matching.bank.bank_frames import bank_frames
from recon.matching.bank.bookings import banked_frame
from recon.matching.breaks.found_rows import fates_of_found
from recon.matching.breaks.movements import Fate, movements
from recon.matching.breaks.places import (
    PLACE_NAMES,
    place_items,
    sides_of,
    stands_of,
    told_by_match,
)
from recon.matching.breaks.result import Deferred, Reconciliation
from recon.matching.breaks.result_rows import (
    BREAKS_SORTED_BY,
    EFFECTS_SORTED_BY,
    business_date,
)
from recon.matching.breaks.write_offs import refuse_beyond_sums
from recon.matching.cash.fees_charged import listed_fees
from recon.matching.cash.holdings import gateway_holds
from recon.matching.cash.result import listed_frame, placed_cash
from recon.matching.causes.proposed_journals import propose
from recon.matching.engine import Broken, Judged, judge, prepared
from recon.matching.frames.arrays import stacked
from recon.matching.frames.digest import digest_of
from recon.matching.frames.sorting import in_order
from recon.matching.frames.sources import Previous, Sources
from recon.model.headway import Way
from recon.model.uptime import give_back
from recon.model.words import SetState
from recon.proof.items import group_items, items_of, named_alone
from recon.proof.totals_of_bank import bank_lacks, bank_not_covered, bank_scope
from recon.proof.verdict import (
    OpenCounts,
    Proof,
    control_totals,
    not_covered,
    scope_of_assurance,
    unmapped_codes,
    verdict_of,
)

PASSES = 2
"""Over the rows: the sets, then what proves them."""


def prove(
    sources: Sources,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
    buckets: Sequence[Broken] = (),
) -> Proof:
    """The frames of the result with all that the control totals are computed from.

    Args:
        sources: typed frames, one row per accepted source row.
        rules: tolerance, grace, calendar, status map.
        as_of: the instant that closes the business date; the only time this knows.
        previous: what an earlier run left open, for ids, first seen and the roll-forward.
        buckets: see matching.engine.judge.
    """
    refuse_beyond_sums(sources)
    way = Way("passes over the rows done", of=PASSES)
    sources = prepared(sources, rules=rules)
    judged = judge(sources, rules=rules, as_of=as_of, previous=previous, buckets=buckets)
    give_back()
    way.more()
    proof = proof_of(judged, sources=sources, rules=rules, as_of=as_of, previous=previous)
    give_back()
    way.more()
    return proof


def concluded(proof: Proof, *, as_of: datetime) -> Reconciliation:
    """The result with its control totals, its verdict and what it is worth."""
    frames, totals, sources, rules = proof.frames, control_totals(proof), proof.sources, proof.rules
    stands = stands_of(proof.places)
    lacks = bank_lacks(proof.bank)
    unverified = sum(stand.items for stand in stands if stand.state == SetState.UNVERIFIED)
    judged = OpenCounts(len(proof.breaks), len(frames.unverified), unverified)
    held = listed_frame(() if proof.cash is None else proof.cash.listed)
    return Reconciliation(
        as_of=as_of,
        verdict=verdict_of(totals, judged=judged, sources=sources, rules=rules, lacks=lacks),
        breaks=proof.breaks,
        effects=proof.effects,
        every_match=Deferred(lambda: frames.matches),
        pending=frames.pending,
        unverified=frames.unverified,
        control_totals=totals,
        sides=sides_of(stands),
        unmapped_codes=unmapped_codes(sources, rules=rules),
        not_covered=(
            *lacks,
            *not_covered(sources, rules=rules, unpriced=proof.fees.not_covered, cash=proof.cash),
            *bank_not_covered(proof.bank),
        ),
        scope_of_assurance=(
            *scope_of_assurance(frames, sources=sources),
            *bank_scope(sources.bank, result=proof.bank),
        ),
        rules_digest=rules.digest,
        digest_of_all=Deferred(
            lambda: digest_of(
                [proof.breaks, proof.effects, frames.matches, frames.pending, frames.unverified]
            )
        ),
        movements=proof.moved,
        journals=proof.journals,
        bank={
            **bank_frames(sources.bank, result=proof.bank, settlement=sources.settlement),
            **banked_frame(proof.bookings),
        },
        every_item=_every_item(proof),
        held=held,
        gateway_holds=gateway_holds(held, sources=sources, cash=proof.cash),
        bank_lacks=lacks,
    )


def _every_item(proof: Proof) -> Deferred[pa.Table]:
    """The items once they are wanted; until then no more of the proof is kept than they need."""
    of_sets = partial(
        items_of,
        proof.sources,
        joined=named_alone(proof.joined),
        states=proof.states,
        hosts=proof.hosts,
        ids=proof.ids,
        by_match=proof.told_by_match,
    )
    of_groups = partial(
        group_items, proof.cash, ledger=None if proof.cash is None else proof.sources.ledger
    )
    return Deferred(lambda: pa.concat_tables([of_sets(), of_groups()]))


def proof_of(
    judged: Judged,
    *,
    sources: Sources,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> Proof:
    """The frames with all that the totals are computed from (`sources`: what was judged)."""
    joined, outcomes, frames = judged.joined, judged.outcomes, judged.frames
    places = place_items(
        joined, outcomes=outcomes, break_sets=judged.break_sets, ledger=sources.ledger
    )
    more = placed_cash(judged.cash, ledger=sources.ledger, payouts=len(joined.payouts))
    places = stacked([places, *more], names=PLACE_NAMES) if more else places
    own = judged.rows.take(judged.rows["own"])
    breaks, effects = (
        _in_one(getattr(frames, name), getattr(judged.others, name), by=by)
        for name, by in (("breaks", BREAKS_SORTED_BY), ("effects", EFFECTS_SORTED_BY))
    )
    fates = _with_others({**judged.others.fates, **judged.broken.fates}, judged)
    moved = movements(
        breaks,
        fates=fates,
        previous=previous,
        reopens=judged.reopens,
        books=sources.ledger is not None,
    )
    # Of a bucket nothing is proposed: what two people agreed on and what was handed out is of all.
    parts = [
        *judged.others.bookings,
        *(() if sources.is_part else judged.broken.bookings),
        *judged.bookable,
    ]
    journals = propose(
        breaks,
        effects=effects,
        parts=parts,
        rules=rules,
        date=business_date(as_of, rules=rules).isoformat(),
        sources=sources,
    )
    return Proof(
        sources,
        rules,
        joined,
        frames,
        breaks,
        effects,
        places,
        previous,
        outcomes.states(),
        dict(own.rows("identity", "set")),
        moved,
        journals,
        outcomes.host,
        told_by_match(
            joined,
            outcomes=outcomes,
            flags=judged.rows["flags"][: joined.keys.size],
            sources=sources,
        ),
        judged.bank,
        judged.cash,
        listed_fees(sources, contract=rules.fee_contract),
        judged.bookings,
    )


def _in_one(own: pd.DataFrame, others: pd.DataFrame, *, by: Sequence[str]) -> pd.DataFrame:
    return in_order(pd.concat([own, others], ignore_index=True), by=by) if len(others) else own


def _with_others(fates: dict[str, Fate], judged: Judged) -> dict[str, Fate]:
    """What became of every id: of one that the books and the bank have, a break by either."""
    cash, bank, booked = (
        {} if result is None else fates_of_found(result.found)
        for result in (judged.cash, judged.bank, judged.bookings)
    )
    known = {**booked, **fates, **cash}
    broken = {
        identity: fate
        for every in (booked, known)
        for identity, fate in every.items()
        if fate.state == SetState.BREAK
    }
    return {**known, **bank, **broken}
