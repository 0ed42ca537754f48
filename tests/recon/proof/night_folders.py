"""Nights as folders, written as anybody would write Parquet, for the second engine to read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recon.archive.schemas import SCHEMAS
from recon.matching.frames.sources import Previous
from recon.model.words import ControlTotal
from recon.proof.books_bridge import books_of, books_totals
from recon.proof.night_tables import compared_tables, input_tables, result_tables, totals_table
from recon.proof.proven import concluded
from recon.proof.second_engine import sql_files
from recon.proof.verdict import Proof

PLACE = ("M", "1")


@dataclass(frozen=True)
class Night:
    """The tables of a night and its own figures."""

    tables: Mapping[str, pa.Table]
    totals: tuple[ControlTotal, ...]


def night_of(proof: Proof, *, as_of: object, is_carried: bool = False) -> Night:
    """A night as it would be sealed."""
    result = concluded(proof, as_of=as_of)  # type: ignore[arg-type]  # the case's own instant
    sources, books = proof.sources, books_of(proof.sources, rules=proof.rules)
    totals = (
        *result.control_totals,
        *books_totals(books, sides=result.sides, account=PLACE),
        *(_carried(proof.previous) if is_carried and proof.previous else ()),
    )
    small = compared_tables(
        sources,
        rules=proof.rules,
        previous=proof.previous,
        books=books,
        account=PLACE,
        is_carried=is_carried,
    )
    tables = {**dict(input_tables(sources)), **small, **dict(result_tables(result))}
    return Night({**tables, "totals": totals_table(totals)}, totals)


def _carried(previous: Previous) -> tuple[ControlTotal, ...]:
    name = "breaks open on the night before, as stored = carried forward"
    breaks = previous.breaks
    money = breaks.groupby("currency")["exposure"].sum().to_dict()
    return (
        ControlTotal("T7", name, *PLACE, "", "count", len(breaks), len(breaks)),
        *(
            ControlTotal("T7", name, *PLACE, str(currency), "amount", int(total), int(total))
            for currency, total in money.items()
        ),
    )


def written(folder: Path, *, tables: Mapping[str, pa.Table]) -> Path:
    """The folder, with every file of a night; one that is not among the tables has no row."""
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
