"""Handing proposed journals out: once each, as a file that a ledger can import."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recon.errors import UsageError
from recon.steps.environment import Environment
from recon.steps.result_files import journals_csv, output_folder, publish, stage
from recon.store import journal_rows, results, runs
from recon.store.runs import Run


@dataclass(frozen=True, slots=True)
class Handed:
    """What was handed out."""

    path: Path | None
    """None: there was nothing to hand out."""
    journals: int
    handed_before: int
    """Of the run's proposals, those that were handed out earlier; they are not in the file."""


def export_journals(run_id: str, *, out: Path, environment: Environment) -> Handed:
    """Write the journals that the newest run of a night proposes, and remember that they left.

    A journal is noted as handed out before its file takes its place: after a crash between the two
    it is missing from a file rather than in two.

    Raises:
        UsageError: the run has no result, or a later one of its account replaces its proposals.
        OutputError: the file cannot be written; nothing was handed out.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        result = results.load(connection, run_id)
        newest = _newest(connection, run)
    if result is None or newest != run_id:
        because = "has no result" if result is None else f"is not the newest: run {newest} is"
        msg = f"run {run_id} {because}; journals are handed out of the newest finished run only"
        raise UsageError(msg)
    place = out / f"journals-{run_id}.csv"
    with output_folder(out):
        with environment.store.writing() as connection:
            known = journal_rows.states(connection, result.journals["journal_id"])
            fresh = result.journals[~result.journals["journal_id"].isin(known)]
            staged = stage(out, files={place.name: journals_csv(fresh)}) if len(fresh) else {}
            rows = fresh[["journal_id", "break_id", "currency"]].drop_duplicates()
            if len(fresh):
                journal_rows.note_exported(
                    connection,
                    run,
                    journals=list(rows.itertuples(index=False, name=None)),
                    at=environment.clock(),
                )
        publish(staged)
    return Handed(place if len(fresh) else None, len(rows), len(known))


def _newest(connection: Any, run: Run) -> str:
    nights = runs.last_finished(connection, merchant_id=run.merchant_id, account_id=run.account_id)
    return nights[max(nights)].run_id if nights else ""
