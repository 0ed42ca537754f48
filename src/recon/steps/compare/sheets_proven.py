"""T13: the totals of a workbook's sheets, compared in SQL with the results they show."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from recon.archive.rows_file import Ordered, write_ordered
from recon.archive.schemas import SCHEMAS
from recon.matching.breaks.result import SECTIONS, Reconciliation
from recon.model.figures import ListFile
from recon.model.terms import ControlTotal, Verdict
from recon.privacy.own_files import folder_for_now, for_owner
from recon.proof.night_tables import table_of_rows
from recon.proof.totals_in_sql import (
    BY_RULE,
    IN_FILE,
    SHEETS,
    SHEETS_IN_SQL,
    SHEETS_READ,
    in_file,
    sheets_in_sql,
)

SheetTotals = Mapping[str, tuple[int, Mapping[str, int]]]
"""Section (break, match, pending, unverified, BY_RULE with each rule of matches, and a section and
IN_FILE with the SHA-256 of its file) -> rows, and the sum of `effect_orders` by currency in minor
units, as read back from the file."""
CHECKS = "checks that fail"
"""Section of SheetTotals: failing checks on the assurance sheet; none fails on page one alone."""
FOREIGN = "files that are none of these results"


def held_against(
    totals: SheetTotals,
    *,
    results: Path,
    files: Mapping[str, ListFile],
    verdict: Verdict,
    account: tuple[str, str],
) -> tuple[pa.Table, tuple[ControlTotal, ...]]:
    """The totals that were read back as rows of a table, and T13 over them.

    Args:
        totals: As read back; empty: T13 has the required figures on its right side.
        results: The step `results`, on this machine.
        files: Those that the workbook must name, by section.
        verdict: Where it is NOT PROVEN, checks of the workbook itself may fail.
        account: Merchant and account; blank where several are in one workbook.
    """
    named = {in_file(section, sha256=file.sha256) for section, file in files.items()}
    wanted = [*SECTIONS, *sorted(named), *(each for each in totals if each.startswith(BY_RULE))]
    read = {section: totals.get(section, (0, {})) for section in wanted}
    if verdict is not Verdict.NOT_PROVEN:
        read[CHECKS] = totals.get(CHECKS, (0, {}))
    if foreign := {section for section in totals if IN_FILE in section} - named:
        read[FOREIGN] = len(foreign), {}
    cells = {"merchant_id": account[0], "account_id": account[1]}
    rows = [
        {**cells, "section": section, "currency": currency, "measure": measure, "number": number}
        for section, (count, sums) in read.items()
        for measure, numbers in (("count", {"": count}), ("amount", sums))
        for currency, number in numbers.items()
        # Sets that hold only a rejected row have no currency, and no amount to compare.
        if currency or measure == "count"
    ]
    sheets = table_of_rows(rows, name="sheets")
    with folder_for_now("recon-sheets-") as folder:
        file = folder / Path(SHEETS_READ).name
        with open(file, "wb", opener=for_owner) as target:
            write_ordered(target, Ordered(sheets), schema=SCHEMAS["sheets"])
        return sheets, sheets_in_sql(results, sheets=file, account=account)


def with_t13(result: Reconciliation, *, totals: tuple[ControlTotal, ...]) -> Reconciliation:
    """The result with these totals in place of earlier ones; NOT PROVEN where one does not tie."""
    others = tuple(
        total
        for total in result.control_totals
        if total.id != SHEETS and not total.name.startswith(SHEETS_IN_SQL)
    )
    failed = any(not total.passed for total in totals)
    verdict = Verdict.NOT_PROVEN if failed else result.verdict
    return replace(result, control_totals=(*others, *totals), verdict=verdict)
