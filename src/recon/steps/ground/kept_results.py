"""The result of a run, read from the files that its night sealed (see sealed_night)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.archive.rows_file import row_batches
from recon.matching.bank.bank_frames import BANK_TABLES
from recon.matching.bank.bookings import BANKED
from recon.matching.breaks.result import Deferred, Reconciliation
from recon.model.figures import LISTS_IN_FILES, ListFile
from recon.proof.night_tables import frame_of_table, plain_table
from recon.proof.second_engine import BY_RULE
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import SealedNight, sealed_night
from recon.store import Connection
from recon.store.nights import results, runs
from recon.store.nights.results import SECTIONS


def load(connection: Connection, run_id: str, *, environment: Environment) -> Reconciliation | None:
    """The result of a run; None when it never got that far.

    Its matches are read when they are first asked for; `match_batches` reads them in parts.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    summary = results.load_summary(connection, run_id)
    if summary is None:
        return None
    night = _night(connection, run_id, environment=environment)
    journals = _in_pairs(night.frame("journals"))
    kept = Reconciliation(
        as_of=summary.as_of,
        verdict=summary.verdict,
        breaks=night.frame("breaks"),
        effects=night.frame("effects"),
        every_match=Deferred(lambda: night.frame("matches")),
        pending=night.frame("pending"),
        unverified=night.frame("unverified"),
        control_totals=results.load_totals(connection, run_id),
        sides=night.frame("sides"),
        unmapped_codes=summary.unmapped_codes,
        not_covered=summary.not_covered,
        scope_of_assurance=summary.scope_of_assurance,
        rules_digest=summary.rules_digest,
        digest_of_all=Deferred(lambda: summary.digest),
        movements=night.frame("movements"),
        journals=journals,
        bank={name: night.frame(name) for name in (*BANK_TABLES, BANKED) if night.has(name)},
    )
    return replace(kept, held=night.frame("held")) if night.has("held") else kept


def frames(
    connection: Connection, run_id: str, *, names: Iterable[str], environment: Environment
) -> dict[str, pd.DataFrame]:
    """Some files of a run's results, by name.

    Raises:
        ArchiveError: see `load`.
    """
    night = _night(connection, run_id, environment=environment)
    return {name: night.frame(name) for name in names}


def list_files(
    connection: Connection, run_id: str, *, environment: Environment
) -> dict[str, ListFile]:
    """Each of LISTS_IN_FILES -> its file, as the manifest has it.

    Raises:
        ArchiveError: see `load`.
    """
    night = _night(connection, run_id, environment=environment)
    entries = ((section, night.entry(SECTIONS[section])) for section in LISTS_IN_FILES)
    return {
        section: ListFile(f"{step}/{entry.name}", entry.rows, entry.bytes, entry.sha256)
        for section, (step, entry) in entries
    }


def open_breaks(
    connection: Connection, run_id: str, *, environment: Environment
) -> pd.DataFrame | None:
    """The open breaks of a run, BREAK_COLUMNS; None when it never came to a result.

    Raises:
        ArchiveError: see `load`.
    """
    if results.load_summary(connection, run_id) is None:
        return None
    return _night(connection, run_id, environment=environment).frame("breaks")


def orders_left_open(connection: Connection, run_id: str, *, environment: Environment) -> set[str]:
    """The orders of a run's open breaks and of what waits within grace.

    Raises:
        ArchiveError: see `load`.
    """
    if results.load_summary(connection, run_id) is None:
        return set()
    night = _night(connection, run_id, environment=environment)
    return {
        order_no
        for name in ("breaks", "pending")
        for order_no in night.table(name)["order_no"].to_pylist()
    }


def match_batches(
    connection: Connection, run_id: str, *, rows_max: int, environment: Environment
) -> Iterator[pd.DataFrame]:
    """The matches of a run in order, so many at a time.

    Raises:
        ArchiveError: see `load`.
    """
    content, name = _night(connection, run_id, environment=environment).content("matches")
    for table in row_batches(content, name=name, rows_max=rows_max):
        yield frame_of_table(plain_table(table, name="matches"))


def section_sums(
    connection: Connection, run_id: str, *, environment: Environment
) -> dict[str, tuple[int, dict[str, int]]]:
    """Section -> its rows, and the sum of effect_orders by currency: the independent side of T13.

    Of matches once more by their rule.

    Raises:
        ArchiveError: see `load`.
    """
    night = _night(connection, run_id, environment=environment)
    sums: dict[str, tuple[int, dict[str, int]]] = {}
    for section, name in SECTIONS.items():
        by_rule = ("rule",) if section == "match" else ()
        of_batches = [
            *map(_summed, night.batches(name, columns=["currency", "effect_orders", *by_rule]))
        ]
        sums[section] = _added(of_batches)
        for rule in sorted({row["rule"] for rows in of_batches for row in rows if by_rule}):
            of_rule = ([row for row in rows if row["rule"] == rule] for rows in of_batches)
            sums[f"{BY_RULE}{rule}"] = _added(of_rule)
    return sums


def _night(connection: Connection, run_id: str, *, environment: Environment) -> SealedNight:
    return sealed_night(connection, runs.get(connection, run_id), environment=environment)


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
