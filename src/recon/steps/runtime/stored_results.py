"""The result of a run, read from the files that its night sealed (see night_folder)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from recon.archive.rows_file import row_batches
from recon.matching.breaks.result import (
    BANK_TABLES,
    BANKED,
    SECTIONS,
    Deferred,
    Reconciliation,
)
from recon.model.figures import LISTS_IN_FILES, ListFile
from recon.proof.night_tables import frame_of_table
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import SealedNight, sealed_night
from recon.store import Connection
from recon.store.nights import results, runs


@dataclass(frozen=True)
class StoredResult:
    """What a run came to.

    What is asked of it raises ArchiveError where the night's folder cannot be reached, or is not as
    it was sealed.
    """

    connection: Connection
    run_id: str
    environment: Environment

    @cached_property
    def _night(self) -> SealedNight:
        run = runs.get(self.connection, self.run_id)
        return sealed_night(self.connection, run, environment=self.environment)

    @property
    def _is_there(self) -> bool:
        return results.load_summary(self.connection, self.run_id) is not None

    def whole(self) -> Reconciliation | None:
        """All of it; None when the run never got that far.

        Its matches are read when they are first asked for; `match_batches` reads them in parts.
        """
        summary = results.load_summary(self.connection, self.run_id)
        if summary is None:
            return None
        night = self._night
        saved = Reconciliation(
            as_of=summary.as_of,
            verdict=summary.verdict,
            breaks=night.frame("breaks"),
            effects=night.frame("effects"),
            every_match=Deferred(lambda: night.frame("matches")),
            pending=night.frame("pending"),
            unverified=night.frame("unverified"),
            control_totals=results.load_totals(self.connection, self.run_id),
            sides=night.frame("sides"),
            unmapped_codes=summary.unmapped_codes,
            not_covered=summary.not_covered,
            scope_of_assurance=summary.scope_of_assurance,
            rules_digest=summary.rules_digest,
            digest_of_all=Deferred(lambda: summary.digest),
            movements=night.frame("movements"),
            journals=_in_pairs(night.frame("journals")),
            bank={name: night.frame(name) for name in (*BANK_TABLES, BANKED) if night.has(name)},
        )
        return replace(saved, held=night.frame("held")) if night.has("held") else saved

    def frames(self, *names: str) -> dict[str, pd.DataFrame]:
        """Some of its files, by name."""
        return {name: self._night.frame(name) for name in names}

    def list_files(self) -> dict[str, ListFile]:
        """Each of LISTS_IN_FILES -> its file, as the manifest has it."""
        entries = ((section, self._night.entry(SECTIONS[section])) for section in LISTS_IN_FILES)
        return {
            section: ListFile(f"{step}/{entry.name}", entry.rows, entry.bytes, entry.sha256)
            for section, (step, entry) in entries
        }

    def open_breaks(self) -> pd.DataFrame | None:
        """The open breaks of the run, BREAK_COLUMNS; None when it never came to a result."""
        return self._night.frame("breaks") if self._is_there else None

    def orders_left_open(self) -> set[str]:
        """The orders of the run's open breaks and of what waits within grace."""
        names = ("breaks", "pending") if self._is_there else ()
        return {
            order_no
            for name in names
            for order_no in self._night.table(name)["order_no"].to_pylist()
        }

    def match_batches(self, *, rows_max: int) -> Iterator[pd.DataFrame]:
        """The matches of the run in order, so many at a time."""
        content, name = self._night.content("matches")
        for table in row_batches(content, name=name, rows_max=rows_max):
            yield frame_of_table(table)


def _in_pairs(journals: pd.DataFrame) -> pd.DataFrame:
    """Lines of journals by break, each debit with its credit, as they are proposed."""
    if journals.empty:
        return journals
    amount = journals["debit"] + journals["credit"]
    by = ["merchant_id", "account_id", "break_id", "currency", "_amount", "credit"]
    ordered = journals.assign(_amount=amount).sort_values(by, kind="stable", ignore_index=True)
    return ordered.drop(columns="_amount")
