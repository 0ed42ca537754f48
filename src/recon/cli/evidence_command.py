"""`recon evidence`: what an auditor takes away."""

import os
from pathlib import Path
from typing import Annotated

import typer

from recon.cli.night_choices import First, Last, days_of
from recon.cli.speaking import complain, say

FAULTS_SHOWN_MAX = 20
"""Sentences on the terminal; the index has them all."""


def evidence(
    *,
    out: Annotated[Path, typer.Option(help="An empty folder, or one that is not there yet.")],
    first: First = "",
    last: Last = "",
    account: Annotated[
        str, typer.Option(help="Only this account, as merchant/account; without it every one.")
    ] = "",
) -> None:
    """Copy nights, closes, decisions, rules, people and history of a span into one folder.

    Every hash is verified while it is copied; README.txt says how to verify the folder with
    sha256sum and duckdb alone. Nothing else is changed. Ends with 1 when a folder is not as it was
    sealed: it is copied with its fault named.
    """
    from recon.model.errors import UsageError
    from recon.steps.care.evidence import Span, accounts_of, write_evidence
    from recon.steps.ground.environment import environment_of, system_clock
    from reports.reading.evidence_workbook import evidence_index

    days = days_of(first, last)
    if days[0] > days[1]:
        msg = f"{days[0]} is after {days[1]}: nothing was written"
        raise UsageError(msg)
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        span = Span(*days, accounts_of(environment, name=account))
        written = write_evidence(span, out=out, drawn=evidence_index, environment=environment)
    index = written.index
    say(f"{len(index.nights)} runs and {len(index.closes)} closes were copied to {out}.")
    for going in index.let_go[:FAULTS_SHOWN_MAX]:
        say(f"Let go: {going}.")
    say(f"History up to {index.head.sequence}:{index.head.hash}")
    say(f"manifest.json: {written.manifest}")
    for fault in index.faults[:FAULTS_SHOWN_MAX]:
        complain(fault)
    if index.faults:
        complain(f"{len(index.faults)} fault(s); all of them stand in index.xlsx.")
        raise typer.Exit(1)
