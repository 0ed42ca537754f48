"""A night in memory, written as a night writes it, and the night that finished last."""

import json
from datetime import UTC, datetime
from pathlib import Path

from recon.archive.step_folder import About, rows_of, write_step
from recon.archive.storage import LocalStorage
from recon.config.night_archive import ArchiveSettings
from recon.config.rules import Rules
from recon.matching.frames.sources import Previous, Sources
from recon.proof.night_tables import absent_of, compared_tables, input_tables
from recon.steps.compare.stored_sources import NightJob
from recon.steps.runtime.night_folder import COMPARED, INPUTS
from recon.store.nights import runs
from recon.store.nights.runs import Run
from tests.recon.steps.conftest import Merchant

AS_OF = datetime(2026, 11, 21, tzinfo=UTC)


def written(
    folder: Path, *, sources: Sources, rules: Rules, previous: Previous | None = None
) -> NightJob:
    """Sources as a night writes them, and what another process is told of them."""
    storage = LocalStorage(folder)
    empty = {"predecessor": "", "rules_digest": rules.digest, "product_version": "0"}
    small = compared_tables(sources, rules=rules, previous=previous, ledger_sums={})
    steps = []
    for step, tables in ((INPUTS, input_tables(sources)), (COMPARED, small.items())):
        about = About(
            run_id="R",
            merchant_id="M",
            account_id="1",
            business_date="2026-11-20",
            mode="live",
            step=step,
            history_before="",
            absent=absent_of(sources),
            **empty,
        )
        steps.append(write_step(storage, night="nights/R", about=about, files=rows_of(tables)))
    places = tuple((sealed.folder, sealed.sha256) for sealed in steps)
    archive = ArchiveSettings(path=str(folder))
    return NightJob("R", AS_OF, json.dumps(rules.document), archive, places)


def newest(merchant: Merchant) -> Run:
    """The run that finished last."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        return runs.finished(connection)[-1]
