"""Entry point of the matching engine: classifies the sets of the sources into result frames."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.bookings import Bookings, classify_bookings
from recon.matching.bank.result import BankResult, classify_bank
from recon.matching.breaks.movements import Disposition, dispositions_of, sequenced
from recon.matching.breaks.result import BREAK_COLUMNS
from recon.matching.breaks.result_rows import (
    BREAKS_SORTED_BY,
    EFFECTS_SORTED_BY,
    Frames,
    breaks_of,
    classified_rows,
    effects_of,
    first_identities,
    frames_of,
    identities,
    not_compared_rows,
    rows_without_breaks,
)
from recon.matching.cash.result import CashResult, classify_cash, with_groups_marked
from recon.matching.causes.proposed_journals import (
    BookingLine,
    booking_lines,
    booking_lines_of_found,
)
from recon.matching.causes.reasons import with_reasons
from recon.matching.causes.shared_causes import (
    ALIKE_MIN,
    Breaks,
    Evidence,
    added_evidence,
    evidence_of,
    with_causes,
    with_facts,
    with_suggestions,
)
from recon.matching.classifying.outcomes import (
    Outcomes,
    Strict,
    classify_sets,
    with_linked_sets,
)
from recon.matching.frames.arrays import Arrays, Column, in_order
from recon.matching.frames.sources import LEDGER_COLUMNS, Basis, Sources, frame_of
from recon.matching.sets.joined_sets import Joined, join_sides
from recon.matching.sides.agreed_fees import with_fees_priced
from recon.matching.sides.gateway_side import with_refunds_settled
from recon.matching.sides.instruction_side import with_each_instruction_once
from recon.matching.sides.ledger_side import CLASSIFIED
from recon.matching.sides.payouts import classified_entries
from recon.model.terms import SetState


@dataclass(frozen=True, slots=True)
class Broken:
    """The breaks of one or several buckets, with what is needed to find causes across buckets."""

    breaks: Breaks
    """BREAK_COLUMNS and, until causes are assigned, columns of facts."""
    effects: pd.DataFrame
    dispositions: Mapping[str, Disposition]
    """See movements.dispositions_of."""
    bookings: tuple[BookingLine, ...]
    """See proposed_journals.parts_of."""
    evidence: Evidence | None
    """Counts over all sets; None where there are too few breaks to look for causes."""
    reopens: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Classified:
    """The classified sets of a run, or of one bucket of it."""

    joined: Joined
    outcomes: Outcomes
    rows: Arrays
    first_ids: Column
    """See `first_identities`."""
    reopens: Mapping[str, str]
    frames: Frames
    broken: Broken
    """The breaks of its own sets and of the buckets that were classified before."""
    bank: BankResult | None = None
    """Payouts compared with bank statements; its rows are included in the frames."""
    cash: CashResult | None = None
    """Fees, reserves, payouts and held-back money; its rows are included in the frames."""
    bookings: Bookings | None = None
    """Bank receipts compared with the ledger; its rows are included in the frames."""

    @property
    def bookable(self) -> list[BookingLine]:
        """Journal parts to propose for findings that are not sets (cash and bank)."""
        legs = (leg for leg in (self.cash, self.bookings) if leg is not None)
        return [part for leg in legs for part in booking_lines_of_found(leg.found)]


def classify(
    sources: Sources,
    *,
    basis: Basis,
    buckets: Iterable[Broken] = (),
    strict: Strict | None = None,
) -> Classified:
    """Classify the sets of some rows (see `prepared`) and build the frames of the result.

    The last of several buckets is classified with the results of the others (`buckets`, read once
    its own sets are classified) and assigns the causes that breaks share; no other bucket assigns
    causes. `strict`: see `classify_sets`.
    """
    calendar, previous = basis.calendar, basis.previous
    joined = join_sides(sources, rules=basis.rules, previous=previous)
    joined = with_linked_sets(joined, now=basis.now)
    outcomes = classify_sets(joined, basis=basis, strict=strict)
    buckets = [*buckets]
    instructed = sources.instructions is not None
    rows = classified_rows(joined, outcomes=outcomes, instructed=instructed, basis=basis)
    broken_sets = outcomes.states() == SetState.BREAK.value
    first_ids = first_identities(joined.sets)
    ids, reopens = sequenced(
        identities(joined.sets, first=first_ids),
        sets=joined.sets,
        broken=broken_sets,
        previous=previous,
    )
    rows.columns["identity"] = ids[rows["set"]]
    breaks = breaks_of(rows, joined=joined, outcomes=outcomes, basis=basis)
    breaks = with_reasons(
        breaks, joined=joined, sources=sources, outcomes=outcomes, rules=basis.rules
    )
    break_sets = dict(zip(breaks["set"].tolist(), breaks["break_id"].tolist(), strict=True))
    count = sum(len(each.breaks) for each in buckets) + len(breaks)
    has_causes = sources.is_bucket or count >= ALIKE_MIN
    if has_causes:
        breaks = with_facts(
            breaks, joined=joined, outcomes=outcomes, sources=sources, calendar=calendar
        )
    broken = Broken(
        breaks,
        effects_of(joined, outcomes=outcomes, break_sets=break_sets),
        dispositions_of(rows, primaries=outcomes.primary, previous=previous),
        (*booking_lines(joined, break_sets=break_sets),),
        evidence_of(joined, sources=sources, calendar=calendar) if has_causes else None,
        reopens,
    )
    broken = _together([broken, *buckets])
    every = broken.breaks
    if has_causes and broken.evidence is not None and not sources.is_bucket:
        every = with_causes(every, evidence=broken.evidence, calendar=calendar)
        every = with_suggestions(every)
    cash = classify_cash(sources, used={*every["break_id"]}, basis=basis)
    bank = classify_bank(sources, basis=basis)
    bookings = classify_bookings(sources, bank=bank, basis=basis)
    ledger = sources.ledger
    ledger = frame_of([], columns=LEDGER_COLUMNS) if ledger is None else ledger
    alone = not_compared_rows(
        ledger,
        versions=joined.ledger.versions,
        at_bank=() if bookings is None else bookings.compared,
    )
    legs = [leg for leg in (cash, bank, bookings) if leg is not None]
    frames = frames_of(
        every[[*BREAK_COLUMNS]],
        effects=broken.effects,
        sets=rows_without_breaks(rows, outcomes=outcomes, alone=alone),
        legs=[leg.found for leg in legs],
        basis=basis,
    )
    reopens = {**broken.reopens, **{own: last for leg in legs for own, last in leg.reopens.items()}}
    return Classified(
        joined, outcomes, rows, first_ids, reopens, frames, broken, bank, cash, bookings
    )


def _together(buckets: Sequence[Broken]) -> Broken:
    """Combine the breaks of several buckets into one, in the order of a result."""
    if len(buckets) == 1:
        return buckets[0]
    breaks, effects = (
        in_order(pd.concat([getattr(each, name) for each in buckets]), by=by)
        for name, by in (("breaks", BREAKS_SORTED_BY), ("effects", EFFECTS_SORTED_BY))
    )
    evidence = [each.evidence for each in buckets if each.evidence is not None]
    return Broken(
        breaks,
        effects,
        {name: disposition for each in buckets for name, disposition in each.dispositions.items()},
        tuple(part for each in buckets for part in each.bookings),
        added_evidence(evidence) if evidence else None,
        {own: last for each in buckets for own, last in each.reopens.items()},
    )


def prepared(sources: Sources, *, rules: Rules) -> Sources:
    """Return the sources as they are compared.

    Each instruction occurs once, refunded amounts known only from the settlement are filled in,
    each settlement line has its fee difference, and each ledger entry is marked where it is
    compared with a payout of ours or in a settlement group.
    """
    sources = with_refunds_settled(with_each_instruction_once(sources), rules=rules)
    sources = with_fees_priced(sources, rules=rules)
    if sources.ledger is None:
        return sources
    ledger = sources.ledger.assign(**{CLASSIFIED: classified_entries(sources)})
    return with_groups_marked(replace(sources, ledger=ledger), rules=rules)
