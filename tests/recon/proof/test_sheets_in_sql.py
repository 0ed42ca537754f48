"""Sheets are proven by SQL over the results."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recon.archive.schemas import SCHEMAS
from recon.model.figures import ListFile
from recon.model.terms import Verdict
from recon.proof import totals_in_sql
from recon.proof.totals_in_sql import SHEETS_IN_SQL, in_file, sql_files
from recon.steps.compare.sheets_proven import CHECKS, FOREIGN, held_against

PLACE = ("M", "1")
RESULTS: dict[str, list[tuple[str, str, int | None]]] = {
    "matches": [("exact", "EUR", 0), ("exact", "JPY", 0), ("rounding", "EUR", 2)],
    "breaks": [("", "EUR", 300), ("", "EUR", -100)],
    "pending": [],
    "unverified": [("", "", None)],
}
"""File -> rule, currency and effect of each row."""
FILE = ListFile("results/matches.parquet", 3, 4711, "ab" * 32)
NAMED = in_file("match", sha256=FILE.sha256)
NOTIFIED: dict[str, tuple[int, dict[str, int]]] = {
    "break": (2, {"EUR": 200}),
    "match": (3, {"EUR": 2, "JPY": 0}),
    NAMED: (3, {}),
    "match by exact": (2, {"EUR": 0, "JPY": 0}),
    "match by rounding": (1, {"EUR": 2}),
    "pending": (0, {}),
    "unverified": (1, {"": 0}),
    CHECKS: (0, {}),
}
"""What the sheets of that night come to, read back."""
FIGURES = [
    (section, currency)
    for section, (_, sums) in NOTIFIED.items()
    for currency in ("", *filter(None, sums))
]


def table_of(name, rows):
    columns = []
    for field in SCHEMAS[name].columns:
        blank: Any = "" if pa.types.is_string(_plain(field.type)) else None
        cells = [row.get(field.name, blank) for row in rows]
        columns.append(pa.array(cells, _plain(field.type)))
    return pa.table(columns, names=SCHEMAS[name].columns.names)


def _plain(kind):
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def sealed(folder, **changed):
    results = folder / "results"
    results.mkdir(parents=True)
    for name, rows in {**RESULTS, **changed}.items():
        cells = [dict(zip(("rule", "currency", "effect_orders"), row, strict=True)) for row in rows]
        pq.write_table(table_of(name, cells), results / f"{name}.parquet")
    return results


def asked(folder, *, told=NOTIFIED, verdict=Verdict.BREAKS_OPEN, **changed):
    """Section and currency -> both sides, where they differ; and how many figures there are."""
    results = sealed(folder, **changed)
    how: dict[str, Any] = {"files": {"match": FILE}, "verdict": verdict, "account": PLACE}
    _, totals = held_against(told, results=results, **how)
    assert {(one.id, one.merchant_id, one.account_id) for one in totals} == {("T13", *PLACE)}
    unlike = {
        (one.name.removeprefix("sheet = database, "), one.currency): (one.left, one.right)
        for one in totals
        if not one.passed
    }
    return unlike, len(totals)


def test_sheets_that_hold_the_results_agree(tmp_path):
    """Every figure of every list is told by both."""
    assert asked(tmp_path) == ({}, len(FIGURES))


@pytest.mark.parametrize("figure", FIGURES)
def test_each_figure_that_is_wrong_on_the_sheet_is_found(tmp_path, figure):
    """A row or a cent too much."""
    section, currency = figure
    count, sums = NOTIFIED[section]
    wrong = (count, {**sums, currency: sums[currency] + 1}) if currency else (count + 1, sums)
    before = sums[currency] if currency else count

    unlike, _ = asked(tmp_path, told={**NOTIFIED, section: wrong})

    assert unlike == {figure: (before + 1, before)}


OTHER = in_file("match", sha256="cd" * 32)
LESS = {section: told for section, told in NOTIFIED.items() if section != NAMED}


@pytest.mark.parametrize(
    ("told", "unlike"),
    [
        (LESS, {NAMED: (0, 3)}),
        ({**LESS, OTHER: (3, {})}, {NAMED: (0, 3), FOREIGN: (1, 0)}),
        ({**NOTIFIED, OTHER: (3, {})}, {FOREIGN: (1, 0)}),
        ({**NOTIFIED, "match by hand": (1, {})}, {"match by hand": (1, 0)}),
        (
            {section: each for section, each in NOTIFIED.items() if section != "match by rounding"},
            {"match by rounding": (0, 1)},
        ),
    ],
)
def test_files_and_rules_are_those_of_the_results(tmp_path, told, unlike):
    """Another hash, no file and one too many fail, each by its name; a rule likewise."""
    found, _ = asked(tmp_path, told=told)

    assert {
        section: sides for (section, currency), sides in found.items() if not currency
    } == unlike


def test_a_proven_night_has_no_failing_check_on_its_sheets(tmp_path):
    """A night that is NOT PROVEN already may show its failing checks."""
    failing = {**NOTIFIED, CHECKS: (2, {})}

    assert asked(tmp_path / "proven", told=failing)[0] == {(CHECKS, ""): (2, 0)}
    assert asked(tmp_path, told=failing, verdict=Verdict.NOT_PROVEN)[0] == {}


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
def test_each_part_of_the_statement_that_is_wrong_is_found_by_true_sheets(
    tmp_path, monkeypatch, kept, spoiled
):
    """A statement that says another figure than the sheets is not believed."""
    text = sql_files()[totals_in_sql.OF_SHEETS]
    assert kept in text
    monkeypatch.setattr(totals_in_sql, "_text", lambda _: text.replace(kept, spoiled))

    assert asked(tmp_path)[0]


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
def test_results_that_are_not_what_the_sheets_show_are_found(tmp_path, name, rows):
    """A row less, a cent more or another rule in the file that the sheet adds up is named."""
    unlike, _ = asked(tmp_path, **{name: rows})

    section = {"matches": "match", "breaks": "break"}.get(name, name)
    assert unlike
    assert all(told.startswith(section) for told, _ in unlike)


def test_a_proof_of_sheets_that_sql_does_not_end_is_not_passed(tmp_path, killed_at):
    """A file that is cut, a process that dies: the line fails and says what was asked and why."""
    killed = killed_at(sql_files()[totals_in_sql.OF_SHEETS].partition("\n")[0])
    how: dict[str, Any] = {"files": {}, "verdict": Verdict.BREAKS_OPEN, "account": PLACE}
    results = sealed(tmp_path)
    _, (died,) = held_against(NOTIFIED, results=results, **how)
    (results / "matches.parquet").write_bytes(b"PAR1 cut")
    _, (cut,) = held_against(NOTIFIED, results=results, **how)

    assert len(killed) == 1
    assert [one.passed for one in (died, cut)] == [False, False]
    assert ": T13_sheets.sql: the process that asks DuckDB ended (SIGKILL); what" in died.name
    assert cut.name.startswith(SHEETS_IN_SQL)
    assert "matches.parquet" in cut.name
