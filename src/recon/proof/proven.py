"""Some rows compared at once: judged sets, and all that proves them, as one result."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from recon.archive.schemas import SCHEMAS
from recon.config.rules import Rules
from recon.matching.bank.bookings import Bookings, banked_frame
from recon.matching.bank.result import BankResult, bank_frames
from recon.matching.breaks.movements import Disposition, movements
from recon.matching.breaks.placements import (
    PLACE_NAMES,
    place_items,
    placements_of,
    reported_by_match,
    sides_of,
)
from recon.matching.breaks.result import Deferred, Reconciliation
from recon.matching.breaks.result_rows import (
    BREAKS_SORTED_BY,
    EFFECTS_SORTED_BY,
    Frames,
    business_date,
    dispositions_of_found,
)
from recon.matching.breaks.write_offs import refuse_beyond_sums
from recon.matching.cash.fees_charged import unpriced_lines
from recon.matching.cash.result import (
    CashResult,
    gateway_holds,
    listed_frame,
    placed_cash,
)
from recon.matching.causes.proposed_journals import propose
from recon.matching.engine import Broken, Classified, classify, prepared
from recon.matching.frames.arrays import Arrays, Column, stacked
from recon.matching.frames.digest import digest_of
from recon.matching.frames.grouping import Bools, Rows
from recon.matching.frames.sorting import in_order
from recon.matching.frames.sources import Previous, Sources
from recon.matching.sets.joined_sets import Joined
from recon.model.step_progress import Way
from recon.model.terms import SetState
from recon.model.uptime import give_back
from recon.privacy.own_files import folder_for_now, make_folder
from recon.proof.books_bridge import Books, books_of
from recon.proof.items import group_items, items_of, named_alone
from recon.proof.night_tables import compared_tables, input_tables, result_tables
from recon.proof.totals_in_sql import control_totals
from recon.proof.verdict import (
    OpenCounts,
    bank_lacks,
    bank_not_covered,
    bank_scope,
    not_covered,
    scope_of_assurance,
    unmapped_codes,
    verdict_of,
    with_totals,
)


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything a result is made of."""

    sources: Sources
    rules: Rules
    joined: Joined
    """The sources in sets."""
    frames: Frames
    """Of these sources."""
    breaks: pd.DataFrame
    """Of the result, with those of sets that were judged before; so are the next ones."""
    effects: pd.DataFrame
    places: Arrays
    """See places.place_items."""
    states: Column
    """What each set came to."""
    ids: Mapping[str, int]
    """The set of each match_id and break_id."""
    moved: pd.DataFrame
    """See movements.movements."""
    journals: pd.DataFrame
    """See journals.propose."""
    hosts: Rows
    """For each set the one whose break explains it, else -1."""
    reported_by_match: Bools
    """Which sets need no items (see places.told_by_match)."""
    bank: BankResult | None = None
    """What banks say; None where no statements were given."""
    cash: CashResult | None = None
    """What the gateway keeps and holds; None where no settlement was given."""
    unpriced: Counter[str] = field(default_factory=Counter)
    """See fees_charged.unpriced_lines."""
    bookings: Bookings | None = None
    """What the books have of what arrived at the bank; None where it is not compared."""


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
    """The frames of the result with all that it is made of.

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
    classified = classify(sources, rules=rules, as_of=as_of, previous=previous, buckets=buckets)
    give_back()
    way.more()
    proof = proof_of(classified, sources=sources, rules=rules, as_of=as_of, previous=previous)
    give_back()
    way.more()
    return proof


def concluded(proof: Proof, *, as_of: datetime) -> Reconciliation:
    """The result with its verdict and what it is worth; what proves it is asked of its files."""
    frames, sources, rules = proof.frames, proof.sources, proof.rules
    placements = placements_of(proof.places)
    lacks = bank_lacks(proof.bank)
    unverified = sum(
        placement.items for placement in placements if placement.state == SetState.UNVERIFIED
    )
    classified = OpenCounts(len(proof.breaks), len(frames.unverified), unverified)
    held = listed_frame(() if proof.cash is None else proof.cash.listed)
    # Until items are wanted no more of the proof is kept than they need.
    of_sets = partial(
        items_of,
        sources,
        joined=named_alone(proof.joined),
        states=proof.states,
        hosts=proof.hosts,
        ids=proof.ids,
        by_match=proof.reported_by_match,
    )
    ledger = None if proof.cash is None else sources.ledger
    of_groups = partial(group_items, proof.cash, ledger=ledger)
    return Reconciliation(
        as_of=as_of,
        verdict=verdict_of(classified, sources=sources, rules=rules, lacks=lacks),
        breaks=proof.breaks,
        effects=proof.effects,
        every_match=Deferred(lambda: frames.matches),
        pending=frames.pending,
        unverified=frames.unverified,
        control_totals=(),
        sides=sides_of(placements),
        unmapped_codes=unmapped_codes(sources, rules=rules),
        not_covered=(
            *lacks,
            *not_covered(sources, rules=rules, unpriced=proof.unpriced, cash=proof.cash),
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
        every_item=Deferred(lambda: pa.concat_tables([of_sets(), of_groups()])),
        held=held,
        gateway_holds=gateway_holds(held, sources=sources, cash=proof.cash),
        bank_lacks=lacks,
    )


def proof_of(
    classified: Classified,
    *,
    sources: Sources,
    rules: Rules,
    as_of: datetime,
    previous: Previous | None,
) -> Proof:
    """The frames with all that the result is made of (`sources`: what was judged)."""
    joined, outcomes, frames = classified.joined, classified.outcomes, classified.frames
    places = place_items(
        joined, outcomes=outcomes, break_sets=classified.break_sets, ledger=sources.ledger
    )
    more = placed_cash(classified.cash, ledger=sources.ledger, payouts=len(joined.payouts))
    places = stacked([places, *more], names=PLACE_NAMES) if more else places
    named = classified.rows.take(classified.rows["own"])
    breaks, effects = (
        in_order(pd.concat([own, others], ignore_index=True), by=by) if len(others) else own
        for own, others, by in (
            (frames.breaks, classified.others.breaks, BREAKS_SORTED_BY),
            (frames.effects, classified.others.effects, EFFECTS_SORTED_BY),
        )
    )
    dispositions = _with_others(
        {**classified.others.dispositions, **classified.broken.dispositions}, classified
    )
    moved = movements(
        breaks,
        dispositions=dispositions,
        previous=previous,
        reopens=classified.reopens,
        books=sources.ledger is not None,
    )
    # Of a bucket nothing is proposed: what two people agreed on and what was handed out is of all.
    parts = [
        *classified.others.bookings,
        *(() if sources.is_part else classified.broken.bookings),
        *classified.bookable,
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
        outcomes.states(),
        dict(named.rows("identity", "set")),
        moved,
        journals,
        outcomes.host,
        reported_by_match(
            joined,
            outcomes=outcomes,
            flags=classified.rows["flags"][: joined.keys.size],
            sources=sources,
        ),
        classified.bank,
        classified.cash,
        unpriced_lines(sources, contract=rules.fee_contract),
        classified.bookings,
    )


def _with_others(
    dispositions: dict[str, Disposition], classified: Classified
) -> dict[str, Disposition]:
    """What became of every id: of one that the books and the bank have, a break by either."""
    cash, bank, booked = (
        {} if result is None else dispositions_of_found(result.found)
        for result in (classified.cash, classified.bank, classified.bookings)
    )
    known = {**booked, **dispositions, **cash}
    broken = {
        identity: disposition
        for every in (booked, known)
        for identity, disposition in every.items()
        if disposition.state == SetState.BREAK
    }
    return {**known, **bank, **broken}


def proven_by_files(
    result: Reconciliation,
    *,
    folder: Path,
    account: tuple[str, str],
    moved: Mapping[str, str] | None = None,
) -> Reconciliation:
    """The result with its control totals, as SQL finds them in the files of a folder.

    NOT PROVEN where one fails, or where SQL does not come to its end.

    Args:
        result: what they are of.
        folder: sealed inputs and results, on this machine.
        account: merchant and account of the night.
        moved: see `totals_in_sql.sql_totals`.
    """
    totals = control_totals(folder, account=account, moved=moved)
    return with_totals(result, totals=totals)


def proven(
    result: Reconciliation,
    *,
    sources: Sources,
    rules: Rules,
    previous: Previous | None = None,
    books: Books | None = None,
    account: tuple[str, str] = ("", ""),
) -> Reconciliation:
    """The same of a result in memory: its files are written, asked and go again.

    Args:
        result: of the sources.
        sources: what was compared.
        rules: by which.
        previous: what an earlier run left open.
        books: every step of the ledger's money; None: that of the sources.
        account: merchant and account; blank where there may be several.
    """
    steps = books_of(sources, rules=rules) if books is None else books
    small = compared_tables(sources, rules=rules, previous=previous, books=steps, account=account)
    with folder_for_now("recon-proof-") as folder:

        def write(name: str, table: pa.Table) -> None:
            file = folder / SCHEMAS[name].path
            make_folder(file.parent)
            pq.write_table(table, file, compression="lz4")

        absent = {*SCHEMAS}
        for name, table in chain(input_tables(sources), small.items(), result_tables(result)):
            write(name, table)
            absent.discard(name)
        for name in absent:
            write(name, SCHEMAS[name].columns.empty_table())
        return proven_by_files(result, folder=folder, account=account)
