"""The proof: equations whose two sides are computed apart, each of which can fail.

Left sides come from the source frames, right sides from the frames of the result or from the places
of the items. What a night stores, sends or draws (T11 to T14) is proven where it happens.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from recon.config.rules import Rules
from recon.matching.bank.bookings import Bookings
from recon.matching.bank.result import BankResult
from recon.matching.breaks.movements import roll_forward
from recon.matching.breaks.places import stands_of
from recon.matching.breaks.result_frames import Frames
from recon.matching.breaks.write_offs import write_off_totals
from recon.matching.cash.fees_charged import NO_FEES, ListedFees
from recon.matching.cash.result import CashResult
from recon.matching.causes.proposed_journals import journal_totals
from recon.matching.frames.arrays import Arrays
from recon.matching.frames.grouping import Bools, Rows
from recon.matching.frames.sources import Previous, Sources
from recon.matching.sets.joined_sets import Joined
from recon.model.words import ControlTotal
from recon.proof.totals_of_bank import bank_totals, booking_totals
from recon.proof.totals_of_inputs import (
    Words,
    file_totals,
    instruction_totals,
    load_totals,
    query_totals,
)
from recon.proof.totals_of_items import (
    ResultSums,
    bounds_totals,
    conservation_totals,
    exclusivity_totals,
    leg_totals,
    remainders,
    scoped_items,
    shown_rows,
    tolerance_totals,
)
from recon.proof.totals_of_settlement import (
    GroupSides,
    contract_totals,
    settlement_totals,
)


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything the totals are computed from."""

    sources: Sources
    rules: Rules
    joined: Joined
    """The sources in sets."""
    frames: Frames
    """The result."""
    places: Arrays
    """See places.place_items."""
    previous: Previous | None
    states: Words
    """What each set came to."""
    ids: Mapping[str, int]
    """The set of each match_id and break_id."""
    moved: pd.DataFrame
    """See movements.movements."""
    journals: pd.DataFrame
    """See journals.propose."""
    hosts: Rows
    """For each set the one whose break explains it, else -1."""
    told_by_match: Bools
    """Which sets need no items (see places.told_by_match)."""
    bank: BankResult | None = None
    """What banks say; None where no statements were given."""
    cash: CashResult | None = None
    """What the gateway keeps and holds; None where no settlement was given."""
    fees: ListedFees = NO_FEES
    """What the fee contract lists."""
    bookings: Bookings | None = None
    """What the books have of what arrived at the bank; None where it is not compared."""


def control_totals(proof: Proof) -> tuple[ControlTotal, ...]:
    """All totals that the given sources allow, in order of their numbers."""
    sources, joined, frames = proof.sources, proof.joined, proof.frames
    places = proof.places
    scope, claimed = scoped_items(sources, joined=joined, places=places, rules=proof.rules)
    shown, stands = ResultSums.of(frames), stands_of(places)
    groups = GroupSides.of(sources, cash=proof.cash, frames=frames)
    left_over = remainders(
        frames.matches, ids=proof.ids, joined=joined, sources=sources, rules=proof.rules
    )
    return (
        *file_totals(sources),
        *load_totals(sources, joined=joined),
        *query_totals(sources, joined=joined),
        *conservation_totals(
            scope,
            shown=shown,
            stands=stands_of(places, rows=shown_rows(places, breaks=frames.breaks)),
            covered=joined.covered,
        ),
        *leg_totals(
            scope, shown=shown, left_over=left_over, covered=joined.covered, apart=groups.together()
        ),
        *exclusivity_totals(claimed, stands=stands),
        *roll_forward(frames.breaks, moved=proof.moved, previous=proof.previous),
        *instruction_totals(
            sources.instructions, sets=joined.keys.of["instructions"], states=proof.states
        ),
        *settlement_totals(sources, cash=proof.cash, groups=groups, rules=proof.rules),
        *contract_totals(sources.settlement, shown=proof.fees.by_currency),
        *booking_totals(sources, bank=proof.bank, bookings=proof.bookings, frames=frames),
        *bank_totals(sources, result=proof.bank, frames=frames, rules=proof.rules),
        *journal_totals(proof.journals, effects=frames.effects, rules=proof.rules),
        *bounds_totals(
            joined,
            instructions=sources.instructions,
            frames=frames,
            places=places,
            ids=proof.ids,
        ),
        *tolerance_totals(left_over, rules=proof.rules),
        *write_off_totals(sources, joined=joined, previous=proof.previous),
    )
