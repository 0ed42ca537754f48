"""Run one SELECT over the folders of all nights, for `recon sql`."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa

from recon.archive.schemas import SCHEMAS
from recon.proof.night_views import DECISION_COLUMNS, VIEWS, Answered, NightFolder, ask
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    DECISIONS,
    PROOF,
    folder_of,
    is_stored,
    sealed_night,
    storage_of,
    stored_decisions,
)
from recon.store.nights import runs
from recon.store.nights.runs import Run, all_purged


def answer(statement: str, *, environment: Environment) -> Answered:
    """Run a statement over all finished nights; of a purged night only what is still stored.

    Raises:
        UsageError: it is not a single SELECT, or DuckDB cannot run it.
        ArchiveError: the archive cannot be reached.
    """
    with environment.store.reading() as connection:
        replaced = {each.run_id: each.replaced for each in runs.finished(connection)}
        finished = [runs.get(connection, run_id) for run_id in replaced]
        purged = {each.run_id: each for each in all_purged(connection)}
    with ExitStack() as held:
        nights = tuple(
            _night(
                run,
                is_newest=not replaced[run.run_id],
                is_whole=run.run_id not in purged,
                held=held,
                environment=environment,
            )
            for run in finished
        )
        decisions = [
            cells for run in finished for cells in _decisions(run, environment=environment)
        ]
        schema = pa.schema([(name, pa.string()) for name in DECISION_COLUMNS])
        table = pa.Table.from_pylist(decisions, schema=schema)
        answered = ask(statement, nights=nights, decisions=table)
    sentences = tuple(str(purged[run.run_id]) for run in finished if run.run_id in purged)
    return replace(answered, purged=sentences)


def _night(
    run: Run, *, is_newest: bool, is_whole: bool, held: ExitStack, environment: Environment
) -> NightFolder:
    with environment.store.reading() as connection:
        night = sealed_night(connection, run, environment=environment)
    folder = held.enter_context(night.storage.local(folder_of(run)))
    moved, every = night.moved, {name: SCHEMAS[name].path for name in VIEWS}
    paths = {name: path for name, path in every.items() if is_whole or is_stored(path)}
    about = {**_about(run), "mode": run.mode.value, "verdict": str(run.verdict or "")}
    files = {name: folder / moved.get(path, path) for name, path in paths.items()}
    return NightFolder({**about, "is_newest": is_newest}, folder, files)


def _about(run: Run) -> dict[str, str]:
    return {
        "run_id": run.run_id,
        "merchant_id": run.merchant_id,
        "account_id": run.account_id,
        "business_date": run.business_date.isoformat(),
    }


def _decisions(run: Run, *, environment: Environment) -> Iterator[dict[str, Any]]:
    """Yield the decisions of people that a night shows, each as its kind and as JSON."""
    storage, proof = storage_of(run, environment=environment), f"{folder_of(run)}/{PROOF}"
    for line in stored_decisions(storage.read(f"{proof}/{DECISIONS}")):
        kind = str(json.loads(line)["decision"])
        yield {**_about(run), "decision": kind, "what": line}
