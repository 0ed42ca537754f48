"""Sheets are proven by SQL over the results: each engine finds what is wrong in the other."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.archive.schemas import SCHEMAS
from recon.model.words import ControlTotal
from recon.proof import totals_in_sql
from recon.proof.totals_in_sql import SHEETS_IN_SQL, sheets_in_sql, sql_files

PLACE = ("M", "1")
RESULTS: dict[str, list[tuple[str, str, int | None]]] = {
    "matches": [("exact", "EUR", 0), ("exact", "JPY", 0), ("rounding", "EUR", 2)],
    "breaks": [("", "EUR", 300), ("", "EUR", -100)],
    "pending": [],
    "unverified": [("", "", None)],
}
"""File -> rule, currency and effect of each row."""
TOLD: list[tuple[str, str, str, int]] = [
    ("break", "", "count", 2),
    ("break", "EUR", "amount", 200),
    ("match", "", "count", 3),
    ("match", "EUR", "amount", 2),
    ("match", "JPY", "amount", 0),
    (f"match in the file with SHA-256 {'ab' * 32}", "", "count", 3),
    ("match by exact", "", "count", 2),
    ("match by exact", "EUR", "amount", 0),
    ("match by exact", "JPY", "amount", 0),
    ("match by rounding", "", "count", 1),
    ("match by rounding", "EUR", "amount", 2),
    ("pending", "", "count", 0),
    ("unverified", "", "count", 1),
]
"""What the sheets of that night say: section, currency, measure and number."""
TOTALS = [
    ControlTotal("T13", f"sheet = database, {section}", *PLACE, currency, measure, number, number)
    for section, currency, measure, number in TOLD
]


def table_of(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """A file of a night of which only these cells are filled."""
    columns = []
    for field in SCHEMAS[name].columns:
        blank: Any = "" if pa.types.is_string(_plain(field.type)) else None
        cells = [row.get(field.name, blank) for row in rows]
        columns.append(pa.array(cells, _plain(field.type)))
    return pa.table(columns, names=SCHEMAS[name].columns.names)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def sealed(folder: Path, **changed: list[tuple[str, str, int | None]]) -> Path:
    """The results of the night, on the disk."""
    results = folder / "results"
    results.mkdir(parents=True)
    for name, rows in {**RESULTS, **changed}.items():
        cells = [dict(zip(("rule", "currency", "effect_orders"), row, strict=True)) for row in rows]
        pq.write_table(table_of(name, cells), results / f"{name}.parquet")
    return results


def read_back(folder: Path, told: list[tuple[str, str, str, int]]) -> Path:
    """What was read back from the workbook, on the disk."""
    names = ("section", "currency", "measure", "number")
    place = {"merchant_id": PLACE[0], "account_id": PLACE[1]}
    rows = [{**place, **dict(zip(names, row, strict=True))} for row in told]
    path = folder / "sheets.parquet"
    pq.write_table(table_of("sheets", rows), path)
    return path


def asked(
    folder: Path,
    *,
    totals: list[ControlTotal],
    told: list[tuple[str, str, str, int]] | None = None,
    **changed: list[tuple[str, str, int | None]],
) -> tuple[ControlTotal, set[tuple[str, int, int]]]:
    """The line that counts the figures, and name, first and second figure of each that differs."""
    results = sealed(folder, **changed)
    sheets = read_back(folder, TOLD if told is None else told)
    line, *unlike = sheets_in_sql(results, sheets=sheets, totals=totals, account=PLACE)
    assert {one.id for one in unlike} <= {"T13"}
    return line, {(one.name, one.left, one.right) for one in unlike}


def test_sheets_that_hold_the_results_agree_in_both_engines(tmp_path: Path) -> None:
    """Every figure of every list is told by both, and one line counts them."""
    line, unlike = asked(tmp_path, totals=TOTALS)

    assert (line.id, line.name) == ("T14", SHEETS_IN_SQL)
    assert (line.left, line.right, unlike) == (len(TOLD), len(TOLD), set())


@pytest.mark.parametrize("number", range(len(TOLD)))
def test_each_figure_that_is_wrong_on_both_its_sides_is_found_by_sql(
    tmp_path: Path, number: int
) -> None:
    """A cent that is too much on the sheet and in what it is held against passes T13, not SQL."""
    section, currency, measure, figure = TOLD[number]
    told = [*TOLD[:number], (section, currency, measure, figure + 1), *TOLD[number + 1 :]]
    wrong = replace(TOTALS[number], left=figure + 1, right=figure + 1)
    totals = [*TOTALS[:number], wrong, *TOTALS[number + 1 :]]
    assert wrong.passed

    line, unlike = asked(tmp_path, totals=totals, told=told)

    name = f"sheet = database, {section}: right = right by SQL"
    assert unlike == {(name, figure + 1, figure)}
    assert not line.passed


@pytest.mark.parametrize(
    ("kept", "spoiled"),
    [
        ("count(*) AS items", "count(*) + 1 AS items"),
        ("sum(effect_orders) AS effect", "sum(effect_orders) + 1 AS effect"),
        ("'break', currency, 1,", "'break', currency, 2,"),
        ("'unverified', currency, 1,", "'unverified', currency, 0,"),
        ("number AS on_sheet", "number + 1 AS on_sheet"),
        ("sum(effect) FROM lists", "sum(effect) + 1 FROM lists"),
        ("'match by ' || rule", "'match by ' || upper(rule)"),
        ("0, sum(items) FROM named", "0, sum(items) + 1 FROM named"),
    ],
)
def test_each_part_of_the_statement_that_is_wrong_is_found_by_the_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str, spoiled: str
) -> None:
    """A statement that says another figure than the night does is not believed."""
    text = sql_files()[totals_in_sql.OF_SHEETS]
    assert kept in text
    monkeypatch.setattr(totals_in_sql, "_text", lambda _: text.replace(kept, spoiled))

    line, unlike = asked(tmp_path, totals=TOTALS)

    assert unlike
    assert not line.passed


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("matches", RESULTS["matches"][1:]),
        ("matches", [*RESULTS["matches"][:2], ("rounding", "EUR", 3)]),
        ("matches", [*RESULTS["matches"][:2], ("exact", "EUR", 2)]),
        ("breaks", RESULTS["breaks"][:1]),
        ("pending", [("", "EUR", 0)]),
        ("unverified", []),
    ],
)
def test_results_that_are_not_what_the_sheets_show_are_found(
    tmp_path: Path, name: str, rows: list[tuple[str, str, int | None]]
) -> None:
    """A row less, a cent more or another rule in the file that the sheet adds up is named."""
    _, unlike = asked(tmp_path, totals=TOTALS, **{name: rows})

    section = {"matches": "match", "breaks": "break"}.get(name, name)
    assert unlike
    assert all(told.startswith(f"sheet = database, {section}") for told, _, _ in unlike)


def test_sheets_that_sql_cannot_read_prove_nothing(tmp_path: Path) -> None:
    """A file that is cut fails the line with what DuckDB says."""
    results, sheets = sealed(tmp_path), read_back(tmp_path, TOLD)
    (results / "matches.parquet").write_bytes(b"PAR1 cut")

    (failed,) = sheets_in_sql(results, sheets=sheets, totals=TOTALS, account=PLACE)

    assert not failed.passed
    assert failed.name.startswith(SHEETS_IN_SQL)
    assert "matches.parquet" in failed.name


def test_a_proof_of_sheets_that_died_is_not_passed(
    tmp_path: Path, killed_at: Callable[[str], list[int]]
) -> None:
    """The line fails and says what was asked, what ended it and what to do."""
    results, sheets = sealed(tmp_path), read_back(tmp_path, TOLD)
    killed = killed_at(sql_files()[totals_in_sql.OF_SHEETS].partition("\n")[0])

    (failed,) = sheets_in_sql(results, sheets=sheets, totals=TOTALS, account=PLACE)

    assert len(killed) == 1
    assert not failed.passed
    assert ": T13_sheets.sql: the process that asks DuckDB ended (SIGKILL); what" in failed.name
