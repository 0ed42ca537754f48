"""T13: what the sheets of a workbook come to, held against the results they were drawn from."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pandas as pd
import pyarrow as pa

from recon.matching.breaks.result import Reconciliation
from recon.model.figures import ListFile
from recon.model.words import ControlTotal, Verdict
from recon.proof.night_tables import table_of_rows
from recon.proof.totals_in_sql import BY_RULE, IN_FILE, SHEETS, SHEETS_IN_SQL, in_file

SheetTotals = Mapping[str, tuple[int, Mapping[str, int]]]
"""Section (break, match, pending, unverified, BY_RULE with each rule of matches, and a section and
IN_FILE with the SHA-256 of its file) -> rows, and the sum of `effect_orders` by currency in minor
units, as read back from the file."""
CHECKS = "checks that fail"
"""Section of SheetTotals: the workbook's own checks, counted; page one is never alone with one."""
NAME = "sheet = database, "


def sheets_of(result: Reconciliation, *, files: Mapping[str, ListFile]) -> SheetTotals:
    """What the workbook of a result in memory must come to; `files` are those that it must name."""
    named = with_files(totals_of(result), files=files)
    return with_checks(named, verdict=result.verdict)


def totals_of(result: Reconciliation) -> SheetTotals:
    """What the lists of a result in memory come to."""
    matches = result.matches[["rule", "currency", "effect_orders"]]  # of a million the rest weighs
    sections = {
        "break": result.breaks,
        "match": matches,
        "pending": result.pending,
        "unverified": result.unverified,
    }
    totals = {section: (len(frame), _sums(frame)) for section, frame in sections.items()}
    by_rule = matches.groupby("rule", observed=True)
    return totals | {f"{BY_RULE}{rule}": (len(rows), _sums(rows)) for rule, rows in by_rule}


def with_files(expected: SheetTotals, *, files: Mapping[str, ListFile]) -> SheetTotals:
    """With the files that the workbook must name: section -> its file, which has so many rows."""
    named = {in_file(section, sha256=file.sha256): file for section, file in files.items()}
    return {**expected, **{section: (file.rows, {}) for section, file in named.items()}}


def with_checks(expected: SheetTotals, *, verdict: Verdict) -> SheetTotals:
    """Of a night that is proven, no check of the workbook itself may fail either."""
    return expected if verdict is Verdict.NOT_PROVEN else {**expected, CHECKS: (0, {})}


def t13(
    *, account: tuple[str, str], expected: SheetTotals, totals: SheetTotals
) -> tuple[ControlTotal, ...]:
    """Sheets = results, by count and by amount per currency.

    Args:
        account: Merchant and account; blank where several are in one workbook.
        expected: Of the results.
        totals: As read back.
    """
    return tuple(
        ControlTotal(
            id=SHEETS,
            name=f"{NAME}{section}",
            merchant_id=account[0],
            account_id=account[1],
            currency=currency,
            measure="amount" if currency else "count",
            left=seen,
            right=wanted,
        )
        for section in (*expected, *_unknown(expected, totals=totals))
        for currency, seen, wanted in _pairs(
            expected.get(section, (0, {})), totals.get(section, (0, {}))
        )
    )


def sheets_table(
    totals: SheetTotals, *, expected: SheetTotals, account: tuple[str, str]
) -> pa.Table:
    """What was read back of each section that is held against the results, as a file's rows."""
    account_cells = {"merchant_id": account[0], "account_id": account[1]}
    sections = (*expected, *_unknown(expected, totals=totals))
    rows = [
        {
            **account_cells,
            "section": section,
            "currency": currency,
            "measure": measure,
            "number": number,
        }
        for section in sections
        for measure, numbers in _figures(totals.get(section, (0, {})))
        for currency, number in numbers.items()
    ]
    return table_of_rows(rows, name="sheets")


def _figures(listed: tuple[int, Mapping[str, int]]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Of one section: measure, and its numbers by currency."""
    count, sums = listed
    yield "count", {"": count}
    yield "amount", {currency: total for currency, total in sums.items() if currency}


def with_t13(result: Reconciliation, *, totals: tuple[ControlTotal, ...]) -> Reconciliation:
    """The result with these in place of earlier ones; NOT PROVEN where one does not tie."""
    others = tuple(
        total
        for total in result.control_totals
        if total.id != SHEETS and not total.name.startswith(SHEETS_IN_SQL)
    )
    failed = any(not total.passed for total in totals)
    verdict = Verdict.NOT_PROVEN if failed else result.verdict
    return replace(result, control_totals=(*others, *totals), verdict=verdict)


def _unknown(expected: SheetTotals, *, totals: SheetTotals) -> list[str]:
    """Rules and files that only the workbook knows."""
    named = [each for each in totals if each.startswith(BY_RULE) or IN_FILE in each]
    return [each for each in named if each not in expected]


def _pairs(
    expected: tuple[int, Mapping[str, int]], counted: tuple[int, Mapping[str, int]]
) -> Iterator[tuple[str, int, int]]:
    """Currency ("" for the count), what stands there, what must."""
    yield "", counted[0], expected[0]
    # Sets that hold only a rejected row have no currency, and no amount to compare.
    for currency in sorted({*expected[1], *counted[1]} - {""}):
        yield currency, counted[1].get(currency, 0), expected[1].get(currency, 0)


def _sums(frame: pd.DataFrame) -> dict[str, int]:
    money = frame.groupby(frame["currency"].astype(str))["effect_orders"].sum()
    return {str(currency): int(total) for currency, total in money.items()}
