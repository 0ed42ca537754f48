"""Every figure that a night states, on page one and in words, is one that its sealed folder has.

DuckDB counts it again from the night's Parquet files, for each line on its own; a line with a
figure that no statement below speaks of is red, and so is a statement that no line fits.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import openpyxl
import pytest

from recon.model.terms import BreakCode
from reports.sheets.breaks_sheet import AREAS
from reports.sheets.labels import label_of

STATUS = """
import os
from flows.artifacts import status_lines
from recon.steps.runtime.environment import environment_of, system_clock
from recon.store.nights import runs
with environment_of(os.environ, clock=system_clock, signs=False) as environment:
    with environment.store.reading() as connection:
        run = runs.finished(connection)[-1]
    print(*status_lines(run.run_id, environment=environment), sep="\\n")
"""
"""What Prefect shows of a night beside the sentences of its steps, without a server."""
ORDERS = 900
"""Enough that the demo plants every kind of break."""
NO_FIGURES = (
    r"(?<!\w)'[^']*'|\([^()]*\.(?:csv|xml|sta)[^()]*\)",  # words of a file, and places in files
    r"[\w.-]+\.csv line \d+|\d{8}-[0-9a-f]{8}",
    r"^The sandbox gateway answers.*|^[A-Z ]+ in [\d.]+ seconds\.|^ +\d\. ",  # of the demo
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?(?: UTC)?)?",
    r"\d\d? [A-Z][a-z]{2}(?: \d{4})?(?: \d\d:\d\d)?",
    r"\[?\b\w*[A-Za-z_]\w*-?\d[\w.-]*\]?|\[[0-9a-f]+\]",  # ids and names
)
STATEMENTS = tomllib.loads(Path(__file__).with_name("stated_figures.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Stated:
    """Lines of one form, and the SQL whose cells are their figures, in their order."""

    line: str
    """A regular expression; its named groups are parameters of the SQL."""
    sql: str
    often: bool = False
    """Whether there may be none, or many."""


def statements(where):
    """Those of the page, of what was told, or of the status."""
    return [Stated(**table) for table in STATEMENTS[where]]


class Night:
    """What a night of the demo sealed, as tables, and what it told people."""

    def __init__(self, folder, *, told, status, standing):
        (sealed,) = (folder / "archive" / "nights").glob("*/*/*/*")
        self.told, self.status = told.splitlines(), status.splitlines()
        self.standing = standing.replace("\n|  |  |  |", " and").splitlines()
        self._tables = duckdb.connect()
        for path in sealed.glob("results/*.parquet"):
            self._view(path.stem, path)
        for name in ("orders", "ledger", "settlement", "files", "rejects"):
            self._view(name, sealed / "inputs" / f"{name}.parquet")
        self._view("instructions", sealed / "compared" / "instructions.parquet")
        self._view("replies", sealed / "answers-*" / "replies-*.parquet")
        run = json.loads((sealed / "results" / "manifest.json").read_text())
        areas = [(code.value, AREAS[label_of(code).area]) for code in BreakCode]
        self._tables.execute("CREATE TABLE run (merchant_id INT, account_id INT, day DATE)")
        ids = [run["merchant_id"], run["account_id"], run["business_date"]]
        self._tables.execute("INSERT INTO run VALUES (?, ?, ?)", ids)
        self._tables.execute("CREATE TABLE codes (code TEXT, area TEXT)")
        self._tables.executemany("INSERT INTO codes VALUES (?, ?)", areas)
        self._tables.execute(STATEMENTS["views"])
        (workbook,) = (folder / "reports").glob("reconciliation-*.xlsx")
        sheet = openpyxl.load_workbook(workbook)["Summary"]
        self.page = list(joined_lines(sheet.iter_rows(values_only=True)))

    def _view(self, name, path):
        self._tables.read_parquet(str(path)).create(name)

    def counted(self, stated, *, line, lines):
        """The figures that the sealed files have for a line."""
        given = {**line.groupdict(), "lines": "\n".join(lines)}
        cells: list[Decimal] = []
        for sql in stated.sql.split(";"):
            own = {name: value for name, value in given.items() if f"${name}" in sql}
            for row in self._tables.execute(sql, own).fetchall():
                cells += [plain(Decimal(str(cell))) for cell in row if cell is not None]
        return cells


def joined_lines(rows):
    """The page's lines, cells between bars; a sentence that goes on below is one line."""
    line = ""
    for row in rows:
        text = " | ".join(str(cell) for cell in row if cell is not None)
        if re.match("[a-z](?!nd )", text) and " | " not in text and line:
            line += f" {text}"
            continue
        yield line
        line = text
    yield line


def figures_of(line):
    """The amounts and counts of a line, in their order; dates, ids and places are none.

    >>> figures_of("2 more of 1,234.50 EUR since 2026-11-20 in SO1000")
    [Decimal('2'), Decimal('1234.5')]
    """
    for pattern in NO_FIGURES:
        line = re.sub(pattern, "", line)
    found = re.findall(r"(?<![\w.])[-\N{MINUS SIGN}]?\d[\d,]*(?:\.\d+)?", line)
    return [plain(Decimal(text.replace(",", "").replace("\N{MINUS SIGN}", "-"))) for text in found]


def plain(figure):
    """Without what a float leaves behind the last decimal of any currency."""
    return figure.quantize(Decimal("0.0001")).normalize() + 0


def line_differs(night, line, *, stated, lines):
    """What is wrong with a line's figures, "" for nothing, and the statement that it fits."""
    if not (figures := figures_of(line)):
        return "", None
    fitting = [(one, match) for one in stated if (match := re.match(one.line, line.strip()))]
    if not fitting:
        return f"nobody counts {[*map(str, figures)]} again: {line}", None
    one, match = fitting[0]
    if figures == (own := night.counted(one, line=match, lines=lines)):
        return "", one
    return f"{line}: states {[*map(str, figures)]}, sealed {[*map(str, own)]}", one


def differing(night, lines, *, stated):
    """Lines whose figures are not those of the sealed files, or that nothing speaks of."""
    each = [line_differs(night, line, stated=stated, lines=lines) for line in lines]
    found = [wrong for wrong, _ in each if wrong]
    spoken = {one.line for _, one in each if one}
    unused = [one.line for one in stated if not one.often and one.line not in spoken]
    return found + [f"no line is {line!r}" for line in unused]


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """A demo, played as people play it."""
    folder = tmp_path_factory.mktemp("stated") / "demo"
    recon = [sys.executable, "-c", "import sys; from recon.cli import main; sys.exit(main())"]
    told = subprocess.run(
        [*recon, "demo", "--dir", str(folder), "--orders", str(ORDERS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout
    given = (line.partition("=") for line in (folder / ".env").read_text().splitlines())
    env = {name.removeprefix("export "): value.strip("'\"") for name, _, value in given}
    status, standing = (
        subprocess.run(
            labels, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}, check=False
        ).stdout
        for labels in ([*recon, "status"], [sys.executable, "-c", STATUS])
    )
    return Night(folder, told=told, status=status, standing=standing)


@pytest.mark.parametrize("where", ["page", "told", "status", "standing"])
def test_every_stated_figure_is_one_of_the_sealed_folder(night, where):
    """Page one, what the night said, `recon status`, Prefect's page: no figure is only theirs."""
    lines, stated = getattr(night, where), statements(where)

    assert sum(len(figures_of(line)) for line in lines) > len(stated)
    assert differing(night, lines, stated=stated) == []
