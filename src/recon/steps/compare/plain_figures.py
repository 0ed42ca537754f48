"""The figures of a reconciliation of plain files, for the same workbook that a night has."""

from datetime import date, datetime
from typing import Any

import pandas as pd

from recon.config.rules import Rules
from recon.matching.breaks.reopened import with_reopened
from recon.matching.breaks.result import Reconciliation
from recon.matching.cash.fees_charged import charged_fees
from recon.matching.frames.sources import INSTANT, MINOR_UNITS, TEXT, Sources
from recon.model.figures import (
    BANK_DAYS_AHEAD,
    BATCH_COLUMNS,
    INSTRUCTION_SHEET_COLUMNS,
    PLAIN_FILES,
    Attention,
    NightFigures,
    matched_of,
)
from recon.model.words import DOUBTFUL_STATES, Clock
from recon.proof.bridge import bridge_of
from recon.steps.compare.grave_breaks import grave_breaks

SEVERAL = "several"
"""Stands for the merchant or account where the files hold more than one."""

_INSTANTS = frozenset({"sent_at", "outcome_at", "in_doubt_since"})
_COUNTS = frozenset({"amount", "attempt"})


def plain_figures(
    result: Reconciliation, *, sources: Sources, business_date: date, clock: Clock, rules: Rules
) -> NightFigures:
    """Everything the workbook shows of plain files; no database knows this run."""
    matches = result.matches  # before the digest, which is of the same rows
    doubtful = _attention(sources.instructions, as_of=result.as_of)
    grave = grave_breaks(result.breaks, answers={}, calendar=rules.business_calendar)
    return NightFigures(
        merchant_id=_only(sources, "merchant_id"),
        account_id=_only(sources, "account_id"),
        merchant_name="",
        business_date=business_date,
        run_id=result.digest[:12],
        mode=PLAIN_FILES,
        as_of=result.as_of,
        generated_at=clock(),
        timezone=rules.calendar.timezone,
        bank_until=rules.bank_calendar.business_day_after(business_date, days=BANK_DAYS_AHEAD),
        verdict=result.verdict,
        breaks=with_reopened(result),
        effects=result.effects,
        matches=matched_of(matches),
        pending=result.pending,
        unverified=result.unverified,
        sides=result.sides,
        movements=result.movements,
        journals=result.journals,
        bank=result.bank,
        gateway_holds=result.gateway_holds,
        fees=charged_fees(sources, contract=rules.fee_contract),
        control_totals=result.control_totals,
        instructions=_instructions(sources.instructions),
        batches=pd.DataFrame({name: pd.Series(dtype=TEXT) for name in BATCH_COLUMNS}),
        files=sources.files,
        rejects=sources.rejects,
        bridge=bridge_of(sources),
        attention=(*doubtful, *grave),
        not_covered=result.not_covered,
        unmapped_codes=result.unmapped_codes,
        scope_of_assurance=result.scope_of_assurance,
        rules_digest=result.rules_digest,
        ledger_covered=sources.ledger is not None,
    )


def _only(sources: Sources, name: str) -> str:
    names = sorted({*sources.orders[name].unique(), *sources.gateway[name].unique()} - {""})
    if len(names) > 1:
        return SEVERAL
    return names[0] if names else ""


def _instructions(frame: pd.DataFrame | None) -> pd.DataFrame:
    """INSTRUCTION_SHEET_COLUMNS; what a file cannot say stays blank."""
    rows = 0 if frame is None else len(frame)
    known = set() if frame is None else set(frame.columns)
    return pd.DataFrame(
        {
            name: frame[name].reset_index(drop=True)
            if frame is not None and name in known
            else _blank(name, rows=rows)
            for name in INSTRUCTION_SHEET_COLUMNS
        }
    )


def _blank(name: str, *, rows: int) -> "pd.Series[Any]":
    if name in _INSTANTS:
        return pd.Series([pd.NaT] * rows, dtype=INSTANT)
    if name in _COUNTS:
        return pd.Series([0] * rows, dtype=MINOR_UNITS)
    return pd.Series([""] * rows, dtype=TEXT)


def _attention(frame: pd.DataFrame | None, *, as_of: datetime) -> tuple[Attention, ...]:
    """Every instruction whose money may or may not have moved."""
    if frame is None:
        return ()
    doubtful = frame[frame["state"].isin([str(state) for state in DOUBTFUL_STATES])]
    return tuple(
        Attention(
            what=f"{row['kind']} in doubt",
            order_no=row["order_no"],
            transaction_id=row["transaction_id"],
            currency=row["currency"],
            amount=int(row["amount"]),
            since=as_of if pd.isna(row["sent_at"]) else row["sent_at"].to_pydatetime(),
            next_step="Look the payment up at the gateway and settle the instruction by hand.",
            is_urgent=True,
        )
        for row in doubtful.to_dict("records")
    )
