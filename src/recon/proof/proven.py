"""Compares rows at once and proves the result with control totals over its files."""

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from recon.archive.schemas import SCHEMAS
from recon.config.rules import Rules
from recon.matching.bank.bookings import banked_frame
from recon.matching.bank.result import bank_frames
from recon.matching.breaks.movements import Disposition, movements
from recon.matching.breaks.result import Deferred, Reconciliation
from recon.matching.breaks.result_rows import (
    OPEN_SORTED_BY,
    Frames,
    dispositions_of_found,
)
from recon.matching.cash.result import gateway_holds, listed_frame
from recon.matching.causes.proposed_journals import propose
from recon.matching.classifying.outcomes import Strict
from recon.matching.codes import TABLE
from recon.matching.engine import Classified, classify, prepared
from recon.matching.frames.arrays import columns_in_order
from recon.matching.frames.digest import digest_of
from recon.matching.frames.sources import Basis, Previous, Sources
from recon.matching.sides.ledger_side import unrated_entries
from recon.model.step_progress import WorkProgress
from recon.model.terms import SetState
from recon.model.uptime import give_back
from recon.privacy.own_files import folder_for_now, make_folder
from recon.proof.buckets import SECTIONS, BucketFigures, BucketRows, ComparedBucket, counted
from recon.proof.exact_sums import refuse_beyond_sums
from recon.proof.items import items_table, sides_of
from recon.proof.ledger_bridge import ledger_steps
from recon.proof.night_tables import compared_tables, input_tables, result_tables
from recon.proof.totals_in_sql import control_totals
from recon.proof.verdict import (
    OpenCounts,
    added_codes,
    bank_lacks,
    bank_not_covered,
    bank_scope,
    not_covered,
    scope_of_assurance,
    unmapped_codes,
    verdict_of,
    with_totals,
)

PASSES = 2
"""Passes over the rows that progress counts: classification, then the result."""


def compared(
    sources: Sources,
    *,
    basis: Basis,
    buckets: Sequence[ComparedBucket] = (),
    strict: Strict | None = None,
) -> Reconciliation:
    """Compare rows at once and return the result; its control totals are computed from files later.

    Args:
        sources: typed frames, one row per accepted source row.
        basis: the rules, the instant, and what an earlier run left open.
        buckets: the results of all buckets that were compared before; `strict` may replace some.
        strict: see outcomes.classify_sets.
    """
    refuse_beyond_sums(sources, counted_sums=counted(each.figures.sums for each in buckets))
    progress = WorkProgress("passes over the rows done", of=PASSES)
    sources = prepared(sources, rules=basis.rules)
    broken = (each.figures.broken for each in buckets)
    classified = classify(sources, basis=basis, buckets=broken, strict=strict)
    give_back()
    progress.advance()
    result = _result_of(classified, sources=sources, buckets=buckets, basis=basis)
    give_back()
    progress.advance()
    return result


def _result_of(
    classified: Classified,
    *,
    sources: Sources,
    basis: Basis,
    buckets: Sequence[ComparedBucket],
) -> Reconciliation:
    """Return the result with its verdict, without control totals."""
    rules = basis.rules
    bank, cash, broken = classified.bank, classified.cash, classified.broken
    figures = [each.figures for each in buckets]
    rows = [each.read() for each in buckets]
    frames = _with_rows(classified.frames, buckets=rows)
    sides = _every_side(classified, sources=sources, figures=figures)
    lacks = bank_lacks(bank)
    counts = _open_counts(frames, sides=sides)
    held = listed_frame(() if cash is None else cash.listed)
    unrated = unrated_entries(sources.ledger, rules=rules)
    items = items_table(classified, sources=sources)
    return Reconciliation(
        as_of=basis.as_of,
        verdict=verdict_of(counts, sources=sources, rules=rules, lacks=lacks),
        breaks=frames.breaks,
        effects=frames.effects,
        every_match=Deferred(lambda: frames.matches),
        pending=frames.pending,
        unverified=frames.unverified,
        control_totals=(),
        sides=sides,
        unmapped_codes=added_codes(
            [unmapped_codes(sources, rules=rules), *(each.unmapped for each in figures)]
        ),
        not_covered=(
            *lacks,
            *not_covered(
                sources,
                rules=rules,
                unpriced=counted([sources.unpriced, *(each.unpriced for each in figures)]),
                unrated=counted([unrated, *(each.unrated for each in figures)]),
                cash=cash,
            ),
            *bank_not_covered(bank),
        ),
        scope_of_assurance=(
            *scope_of_assurance(frames, sources=sources),
            *bank_scope(sources.bank, result=bank),
        ),
        rules_digest=rules.digest,
        words_digest=TABLE.words,
        digest=digest_of(getattr(frames, each.name) for each in fields(frames)),
        movements=movements(
            frames.breaks,
            dispositions=_every_disposition(classified),
            previous=basis.previous,
            reopens=classified.reopens,
            has_ledger=sources.ledger is not None,
        ),
        journals=propose(
            frames.breaks,
            effects=frames.effects,
            bookings=[*broken.bookings, *classified.bookable],
            rules=rules,
            date=basis.today.isoformat(),
            sources=sources,
        ),
        bank={
            **bank_frames(sources.bank, result=bank, settlement=sources.settlement),
            **banked_frame(classified.bookings),
        },
        items=pa.concat_tables([items, *(each.items for each in rows)]),
        held=held,
        gateway_holds=gateway_holds(held, sources=sources, cash=cash),
        bank_lacks=lacks,
    )


def _open_counts(frames: Frames, *, sides: pd.DataFrame) -> OpenCounts:
    """Count what keeps a verdict from RECONCILED."""
    unverified = sides.loc[sides["state"].eq(SetState.UNVERIFIED.value), "count"]
    return OpenCounts(len(frames.breaks), len(frames.unverified), int(unverified.sum()))


def _with_rows(frames: Frames, *, buckets: Sequence[BucketRows]) -> Frames:
    """Merge and sort the rows of all buckets; each column is released once it is taken."""
    if not buckets:
        return frames
    merged: dict[str, pd.DataFrame] = {}
    for section in SECTIONS:
        others, counted_sums = (
            getattr(frames, section),
            [each.frames.pop(section) for each in buckets],
        )
        columns: dict[str, Any] = {
            name: pd.concat(
                [others[name], *(piece.pop(name) for piece in counted_sums)], ignore_index=True
            )
            for name in map(str, others.columns)
        }
        merged[section] = columns_in_order(columns, by=OPEN_SORTED_BY)
    return replace(frames, **merged)


def _every_side(
    classified: Classified, *, sources: Sources, figures: Sequence[BucketFigures]
) -> pd.DataFrame:
    """Sum count and amount by source, account, currency and state, of all buckets."""
    joined, outcomes = classified.joined, classified.outcomes
    own = sides_of(joined, outcomes=outcomes, ledger=sources.ledger, cash=classified.cash)
    if not figures:
        return own
    every = pd.concat([own, *(each.sides for each in figures)], ignore_index=True)
    by = [*own.columns.drop(["count", "amount"])]
    return every.groupby(by)[["count", "amount"]].sum().reset_index()[[*own.columns]]


def _every_disposition(classified: Classified) -> dict[str, Disposition]:
    """Return the disposition of every id; one shared by ledger and bank is a break if either is."""
    cash, bank, booked = (
        {} if result is None else dispositions_of_found(result.found)
        for result in (classified.cash, classified.bank, classified.bookings)
    )
    known = {**booked, **classified.broken.dispositions, **cash}
    broken = {
        identity: disposition
        for every in (booked, known)
        for identity, disposition in every.items()
        if disposition.state == SetState.BREAK
    }
    return {**known, **bank, **broken}


def proven(
    result: Reconciliation,
    *,
    sources: Sources,
    rules: Rules,
    previous: Previous | None = None,
    account: tuple[str, str] = ("", ""),
) -> Reconciliation:
    """Prove a result in memory: write its files to a temporary folder and compute the totals there.

    Args:
        result: of the sources.
        sources: the compared sources.
        rules: the rules of the comparison.
        previous: what an earlier run left open.
        account: merchant and account; blank where there may be several.
    """
    steps = ledger_steps(sources, rules=rules)
    small = compared_tables(
        sources, rules=rules, previous=previous, ledger_sums=steps, account=account
    )
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
        return with_totals(result, totals=control_totals(folder, account=account))
