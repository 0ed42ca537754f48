"""Nights as folders, written as anybody would write Parquet, and what spoils their files."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recon.archive.schemas import SCHEMAS
from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Basis, Previous, Sources
from recon.proof.ledger_bridge import ledger_steps
from recon.proof.night_tables import compared_tables, input_tables, result_tables
from recon.proof.proven import compared
from recon.proof.totals_in_sql import control_totals, sql_files
from recon.proof.verdict import with_totals

PLACE = ("M", "1")
Tables = Mapping[str, pa.Table]
Change = Callable[[pa.Table], pa.Table]


class Night(NamedTuple):
    sources: Sources
    rules: Rules
    result: Reconciliation

    def with_result(self, **changed: Any) -> "Night":
        return self._replace(result=replace(self.result, **changed))

    def with_sources(self, **changed: Any) -> "Night":
        return self._replace(sources=replace(self.sources, **changed))


def compared_night(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None = None
) -> Night:
    result = compared(sources, basis=Basis(rules, as_of, previous))
    return Night(sources, rules, result)


def night_of(night: Night, *, previous: Previous | None = None) -> Tables:
    sources, carried = night.sources, None
    if previous is not None:
        exposed = previous.breaks.groupby("currency")["exposure"].sum()
        carried = len(previous.breaks), {str(name): int(each) for name, each in exposed.items()}
    small = compared_tables(
        sources,
        rules=night.rules,
        previous=previous,
        ledger_sums=ledger_steps(sources, rules=night.rules),
        account=PLACE,
        carried=carried,
    )
    return {**dict(input_tables(sources)), **small, **dict(result_tables(night.result))}


def proven_in(folder: Path, night: Night, *, previous: Previous | None = None) -> Reconciliation:
    """A night with its totals, its files written into a folder."""
    written(folder, tables=night_of(night, previous=previous))
    return with_totals(night.result, totals=control_totals(folder, account=PLACE))


def written(folder: Path, *, tables: Tables) -> Path:
    for name, schema in SCHEMAS.items():
        place = folder / schema.path
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(tables.get(name, schema.columns.empty_table()), place)
    return folder


def changed(folder: Path, *, to: Path, name: str, table: pa.Table) -> Path:
    """The folder with other rows in one file; the others, which nobody writes, are its own."""
    for schema in SCHEMAS.values():
        place = to / schema.path
        place.parent.mkdir(parents=True, exist_ok=True)
        if schema is not SCHEMAS[name]:
            place.hardlink_to(folder / schema.path)
    pq.write_table(table, to / SCHEMAS[name].path)
    return to


def statements_of(numbers: Iterable[str]) -> dict[str, str]:
    """Name -> text of the statements of some totals, which SQL is asked in the place of all."""
    own = {f"T{int(number[1:].rstrip('ABC')):02}" for number in numbers}
    return {name: text for name, text in sql_files().items() if name.partition("_")[0] in own}


def first_off(column: str) -> Change:
    """The first row says one cent or one row more."""

    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(column)
        cells = table.column(column).to_pylist()
        row = next(number for number, cell in enumerate(cells) if cell is not None)
        cells[row] += 1
        return table.set_column(at, table.field(at), pa.array(cells, table.field(at).type))

    return change


def without(column: str, word: str) -> Change:
    return lambda table: table.filter(pc.not_equal(table.column(column).cast(pa.string()), word))


def without_first(table: pa.Table) -> pa.Table:
    return table.slice(1)


def emptied(table: pa.Table) -> pa.Table:
    return table.slice(0, 0)


def doubled(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(0, 1)])


def all_says(column: str, word: str) -> Change:
    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(column)
        words = pa.array([word] * table.num_rows).cast(table.field(at).type)
        return table.set_column(at, table.field(at), words)

    return change
