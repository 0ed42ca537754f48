"""Reading a workbook of ours back: what do its sheets really say? For T13, sheets = database.

Reads the values that stand in the file, row by row, with another library than the one that wrote
them, and adds them up in minor units.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook

from recon.model.errors import OutputError
from recon.proof.held_against import BY_RULE, in_file
from recon.steps.compare.sheets_proven import CHECKS, SheetTotals
from reports.drawing.highlight import CHECK
from reports.drawing.look import decimals_of
from reports.reading.beside_files import sha256_of, totals_in
from reports.sheets.named_files import named_in
from reports.sheets.open_rows import NOT_VERIFIED, WAITING
from reports.sheets.open_sheet import SETS
from reports.sheets.run_sheet import TITLE as RUN_TITLE
from reports.sheets.run_sheet import beside_of
from reports.sheets.state_words import rule_of

EFFECT = "Gateway − orders"  # noqa: RUF001 - the column's title has a minus
MATCHES = "match"
MATCHED = "Matched"
LISTS: Mapping[str, tuple[str, str, str]] = {
    "break": ("Breaks", "Break key", EFFECT),
    "instruction": ("Instructions", "Instruction", "Amount"),
}
"""Section -> sheet, the column that every row fills, the column that is added up."""
RULE = "How it was matched"
TOTALS_TITLE = "Control totals"
SOURCES = "Sources"
PIVOT_ROWS = "Matched rows"
CURRENCY = "Ccy"
COUNTED = (CURRENCY, EFFECT, "Amount", "Result", SETS, PIVOT_ROWS)
"""Columns that anything is made of, where a list has them; a break has thirty others."""
RESULTS = {WAITING: "pending", NOT_VERIFIED: "unverified"}
"""Result of a row of the sheet Pending -> its section."""


def sheet_totals(path: Path, *, beside: Mapping[str, Path] | None = None) -> SheetTotals:
    """Rows and sums of each list as they stand in the file.

    Args:
        path: The workbook.
        beside: Where files lie that it names and that have not their names yet.

    Raises:
        OutputError: the file cannot be read, or a list is not where it should be.
    """
    try:
        workbook = CalamineWorkbook.from_path(str(path))
        facts = workbook_facts(workbook)
        named = beside_of(facts)
        files = {name: path.with_name(name) for _, _, name in named} | dict(beside or {})
        totals = {name: _totals(workbook, name) for name in LISTS} | _open_totals(workbook)
        totals |= _match_totals(list_rows(workbook, title=MATCHED, key=RULE))
        totals |= _named_totals(workbook)
        for _, _, name in named:
            totals |= _unlike(totals, beside=files[name])
        return {**totals, CHECKS: (_failing_checks(workbook), {})}
    except (CalamineError, OSError, ValueError) as error:
        msg = f"{path} cannot be read back ({error}); the result is kept: write the report again"
        raise OutputError(msg) from error


def _failing_checks(workbook: Any) -> int:
    """How many cells of Control totals say CHECK: what page one calls NOT PROVEN."""
    rows = workbook.get_sheet_by_name(TOTALS_TITLE).iter_rows()
    return sum(cell == CHECK for cells in rows for cell in cells)


def list_rows(workbook: Any, *, title: str, key: str) -> Iterator[dict[str, Any]]:
    """What is counted of the rows of a list: from its header to the first row without a key."""
    places: dict[str, int] = {}
    for cells in workbook.get_sheet_by_name(title).iter_rows():
        if not places:
            if key in cells and CURRENCY in cells:
                places = {name: cells.index(name) for name in (key, *COUNTED) if name in cells}
            continue
        if cells[places[key]] == "":
            return
        yield {name: cells[column] for name, column in places.items()}
    if not places:
        msg = f"the sheet {title} has no list with a column {key!r}; write the report again"
        raise OutputError(msg)


def _totals(workbook: Any, section: str) -> tuple[int, Mapping[str, int]]:
    title, key, summed = LISTS[section]
    return _summed(list_rows(workbook, title=title, key=key), summed=summed)


def _open_totals(workbook: Any) -> dict[str, tuple[int, Mapping[str, int]]]:
    """Both sections of the sheet Pending, read once: its rows, or the sums of more rows."""
    rows: dict[str, list[dict[str, Any]]] = {section: [] for section in RESULTS.values()}
    for row in list_rows(workbook, title="Pending", key="Result"):
        if section := RESULTS.get(row["Result"]):
            rows[section].append(row)
    return {section: _summed(mine, summed=EFFECT) for section, mine in rows.items()}


def _named_totals(workbook: Any) -> dict[str, tuple[int, Mapping[str, int]]]:
    """The files that Sources names in place of rows, each with the rows that it says of them."""
    rows = workbook.get_sheet_by_name(SOURCES).iter_rows()
    return {
        in_file(section, sha256=digest): (count, {}) for section, count, digest in named_in(rows)
    }


def _summed(rows: Iterable[Mapping[str, Any]], *, summed: str) -> tuple[int, Mapping[str, int]]:
    count, sums = 0, Counter[str]()
    for row in rows:
        count += int(row.get(SETS, 1))
        sums[str(row[CURRENCY])] += minor_units_of(row[summed], currency=str(row[CURRENCY]))
    return count, dict(sums)


def _match_totals(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, Mapping[str, int]]]:
    """Of all matches, and by the rule that matched them: of rows, or of the sums of more rows."""
    counts: Counter[str] = Counter({MATCHES: 0})
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        currency = str(row[CURRENCY])
        effect = minor_units_of(row[EFFECT], currency=currency)
        for section in (MATCHES, f"{BY_RULE}{rule_of(str(row[RULE]))}"):
            counts[section] += int(row.get(PIVOT_ROWS, 1))
            sums[section][currency] += effect
    return {section: (count, dict(sums[section])) for section, count in counts.items()}


def _unlike(totals: SheetTotals, *, beside: Path) -> SheetTotals:
    """What a file of all matches comes to, where that is not what the sheet says."""
    rows, majors = totals_in(beside)
    minor_units = {
        currency: int(sum_.scaleb(decimals_of(currency))) for currency, sum_ in majors.items()
    }
    return {} if (rows, minor_units) == totals[MATCHES] else {MATCHES: (rows, minor_units)}


def beside_problems(path: Path) -> Iterator[str]:
    """What is the matter with the files that a workbook names beside itself, in words.

    Raises:
        OutputError: the workbook cannot be read.
    """
    try:
        facts = workbook_facts(CalamineWorkbook.from_path(str(path)))
    except (CalamineError, OSError) as error:
        msg = f"{path} cannot be read ({error}): it is not a workbook of ours"
        raise OutputError(msg) from error
    for rows, digest, name in beside_of(facts):
        file = path.with_name(name)
        again = "`recon workbook` writes it again"
        if not file.is_file():
            yield f"{file}, which holds the {rows} matched rows of {path.name}, is gone; {again}"
        elif sha256_of(file) != digest:
            yield f"{file} is not the file that {path.name} names: it was changed since; {again}"


def workbook_facts(workbook: Any) -> dict[str, str]:
    """What the hidden sheet says of the run."""
    rows = workbook.get_sheet_by_name(RUN_TITLE).iter_rows()
    return {str(cells[0]): str(cells[1]) for cells in rows if len(cells) > 1 and cells[0]}


def minor_units_of(cell: Any, *, currency: str) -> int:
    """A cell's amount in minor units; blank is 0. Exact: a sheet's 15 digits are decimal digits.

    Raises:
        OutputError: the cell holds no amount of the currency.
    """
    if cell == "":
        return 0
    try:
        # repr of the number read is the shortest text that means it: the digits that were written.
        amount = Decimal(repr(cell) if not isinstance(cell, str) else cell)
    except InvalidOperation:
        msg = f"{cell!r} is not an amount; the workbook was changed: write the report again"
        raise OutputError(msg) from None
    minor_units = amount.scaleb(decimals_of(currency))
    if minor_units != minor_units.to_integral_value():
        msg = f"{cell!r} is not an amount of {currency}; the workbook was changed"
        raise OutputError(msg)
    return int(minor_units)
