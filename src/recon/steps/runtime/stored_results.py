"""The result of a run, read from the files that its night sealed (see night_folder)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.archive.rows_file import row_batches
from recon.matching.breaks.result import BANK_TABLES, BANKED, Deferred, Reconciliation
from recon.model.figures import LISTS_IN_FILES, ListFile
from recon.proof.night_tables import frame_of_table
from recon.proof.totals_in_sql import BY_RULE
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import SealedNight, sealed_night
from recon.store import Connection
from recon.store.nights import results, runs
from recon.store.nights.results import SECTIONS


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
        kept = Reconciliation(
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
        return replace(kept, held=night.frame("held")) if night.has("held") else kept

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

    def section_sums(self) -> dict[str, tuple[int, dict[str, int]]]:
        """Section -> its rows, and the sum of effect_orders by currency: the other side of T13.

        Of matches once more by their rule.
        """
        sums: dict[str, tuple[int, dict[str, int]]] = {}
        for section, name in SECTIONS.items():
            by_rule = ("rule",) if section == "match" else ()
            columns = ["currency", "effect_orders", *by_rule]
            of_batches = [*map(_summed, self._night.batches(name, columns=columns))]
            sums[section] = _added(of_batches)
            for rule in sorted({row["rule"] for rows in of_batches for row in rows if by_rule}):
                of_rule = ([row for row in rows if row["rule"] == rule] for rows in of_batches)
                sums[f"{BY_RULE}{rule}"] = _added(of_rule)
        return sums


def _in_pairs(journals: pd.DataFrame) -> pd.DataFrame:
    """Lines of journals by break, each debit with its credit, as they are proposed."""
    if journals.empty:
        return journals
    amount = journals["debit"] + journals["credit"]
    by = ["merchant_id", "account_id", "break_id", "currency", "_amount", "credit"]
    ordered = journals.assign(_amount=amount).sort_values(by, kind="stable", ignore_index=True)
    return ordered.drop(columns="_amount")


def _summed(table: pa.Table) -> list[dict[str, Any]]:
    """Rows and sum of effect_orders of some rows, by all their other columns."""
    by = [name for name in table.column_names if name != "effect_orders"]
    plain = {name: table[name].cast(pa.string()) for name in by}
    grouped = pa.table({**plain, "effect_orders": table["effect_orders"]})
    summed = grouped.group_by(by).aggregate([("effect_orders", "sum"), ([], "count_all")])
    return list(summed.to_pylist())


def _added(parts: Iterable[Iterable[Mapping[str, Any]]]) -> tuple[int, dict[str, int]]:
    """Rows and sums by currency of what was summed part by part; exact, for Python adds."""
    rows, sums = 0, Counter[str]()
    for row in chain.from_iterable(parts):
        rows += row["count_all"]
        sums[row["currency"]] += row["effect_orders_sum"] or 0
    return rows, dict(sums)
