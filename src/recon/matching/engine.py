"""Sources in, judged sets out as the frames of a result; what proves them is made of these."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from recon.config.rules import Rules
from recon.matching.bank.bookings import Bookings, judge_bookings, with_bookings
from recon.matching.bank.result import BankResult, judge_bank, with_bank
from recon.matching.breaks.movements import Ids, sequenced
from recon.matching.breaks.result_rows import (
    Frames,
    breaks_of,
    effects_of,
    identities,
    judged_rows,
    matches_of,
    name_entries,
    not_compared_rows,
    pending_of,
    unverified_of,
)
from recon.matching.cash.result import (
    CashResult,
    judge_cash,
    with_cash,
    with_groups_marked,
)
from recon.matching.causes.reasons import with_reasons
from recon.matching.causes.shared_causes import (
    NO_EVIDENCE,
    AsideEvidence,
    CauseEvidence,
    with_causes,
)
from recon.matching.causes.suggestions import with_suggestions
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.sources import LEDGER_COLUMNS, Previous, Sources, frame_of
from recon.matching.judging.outcomes import Outcomes, judge_sets
from recon.matching.judging.severity import microseconds
from recon.matching.sets.joined_sets import Joined, join_sides
from recon.matching.sides.agreed_fees import with_fees_priced
from recon.matching.sides.gateway_side import with_refunds_settled
from recon.matching.sides.instruction_side import with_each_instruction_once
from recon.matching.sides.ledger_side import JUDGED
from recon.matching.sides.payouts import judged_entries
from recon.model.words import SetState


@dataclass(frozen=True, slots=True)
class Judged:
    """The sets of a night or of a part of it, judged."""

    joined: Joined
    outcomes: Outcomes
    rows: Arrays
    reopens: Mapping[str, str]
    frames: Frames
    break_sets: Mapping[int, str]
    bank: BankResult | None = None
    """What banks say of pay-outs; its rows stand among the frames."""
    cash: CashResult | None = None
    """Fees, reserves, pay-outs and what is held back; its rows stand among the frames."""
    bookings: Bookings | None = None
    """What the books have of what arrived at the bank; its rows stand among the frames."""


def judge(
    sources: Sources,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
    parts: AsideEvidence = NO_EVIDENCE,
) -> Judged:
    """The sets of some rows (see `prepared`), judged: the frames of the result.

    `parts`: what was judged before, in parts, and says something about causes.
    """
    joined, outcomes, rows = judged_alone(sources, rules=rules, as_of=as_of, previous=previous)
    ids, reopens = _identities(joined, states=outcomes, previous=previous)
    rows.columns["identity"] = ids[rows["set"]]
    breaks = breaks_of(
        rows, joined=joined, outcomes=outcomes, as_of=as_of, rules=rules, previous=previous
    )
    breaks = with_reasons(breaks, joined=joined, sources=sources, outcomes=outcomes)
    evidence = CauseEvidence(joined, sources, rules, outcomes.host, parts)
    breaks = with_suggestions(with_causes(breaks, evidence=evidence), sets=joined.sets, rules=rules)
    break_sets = dict(zip(breaks["set"].tolist(), breaks["break_id"].tolist(), strict=True))
    ledger = sources.ledger
    ledger = frame_of([], columns=LEDGER_COLUMNS) if ledger is None else ledger
    alone = not_compared_rows(ledger, versions=joined.ledger.versions)
    frames = Frames(
        breaks=breaks.drop(columns="set"),
        effects=effects_of(joined, outcomes=outcomes, break_sets=break_sets),
        matches=matches_of(rows, outcomes=outcomes, alone=alone),
        pending=pending_of(rows, outcomes=outcomes),
        unverified=unverified_of(rows, outcomes=outcomes),
    )
    beside = _with_cash_and_banks(frames, sources, rules=rules, as_of=as_of, previous=previous)
    for other in (beside.cash, beside.bank, beside.bookings):
        reopens = reopens if other is None else {**reopens, **other.reopens}
    return Judged(joined, outcomes, rows, reopens, beside.frames, break_sets, *beside[1:])


def judged_alone(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> tuple[Joined, Outcomes, Arrays]:
    """The sets, what they came to, and what each shows; no row of a result is made yet."""
    joined = join_sides(sources, rules=rules, previous=previous)
    name_entries(joined)
    outcomes = judge_sets(joined, rules=rules, as_of=microseconds(as_of))
    rows = judged_rows(joined, outcomes=outcomes, sources=sources, rules=rules, as_of=as_of)
    return joined, outcomes, rows


class _Beside(NamedTuple):
    """The frames with the rows of what is no set, and what these came to."""

    frames: Frames
    bank: BankResult | None
    cash: CashResult | None
    bookings: Bookings | None


def _with_cash_and_banks(
    frames: Frames,
    sources: Sources,
    *,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> _Beside:
    cash = judge_cash(
        sources,
        rules=rules,
        as_of=as_of,
        previous=previous,
        taken=frames.breaks["break_id"].tolist(),
    )
    frames = with_cash(frames, cash, rules=rules, as_of=as_of, previous=previous)
    bank = judge_bank(sources, rules=rules, as_of=as_of, previous=previous)
    books = sources.ledger is not None
    frames = with_bank(frames, bank, rules=rules, as_of=as_of, previous=previous, books=books)
    bookings = judge_bookings(sources, bank=bank, rules=rules, as_of=as_of, previous=previous)
    frames = with_bookings(frames, bookings, rules=rules, as_of=as_of, previous=previous)
    return _Beside(frames, bank, cash, bookings)


def prepared(sources: Sources, *, rules: Rules) -> Sources:
    """The sources as they are compared.

    Each instruction once, with the refunds that only the settlement tells, each line of it with
    what its fee differs by, and the ledger saying of each entry whether a payout of ours judges it
    or a group of the settlement.
    """
    sources = with_refunds_settled(with_each_instruction_once(sources), rules=rules)
    sources = with_fees_priced(sources, rules=rules)
    if sources.ledger is None:
        return sources
    ledger = sources.ledger.assign(**{JUDGED: judged_entries(sources)})
    return with_groups_marked(replace(sources, ledger=ledger), rules=rules)


def _identities(
    joined: Joined, *, states: Outcomes, previous: Previous | None
) -> tuple[Ids, Mapping[str, str]]:
    """The id of each set, and which closed break an id opens again."""
    broken = states.states() == SetState.BREAK.value
    first = identities(joined.sets)
    return sequenced(first, sets=joined.sets, broken=broken, previous=previous)
