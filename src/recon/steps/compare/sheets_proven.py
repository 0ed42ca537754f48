"""T13: the totals of a workbook's sheets, compared in SQL with the results they show.

Also what the step `proof` of a run holds once T13 is known.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from recon.archive.rows_file import write_ordered
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Document, StepFile, rows_of
from recon.matching.breaks.result import SECTIONS, Reconciliation
from recon.model.figures import ListFile
from recon.model.terms import ControlTotal, Verdict
from recon.model.uptime import give_back
from recon.privacy.own_files import folder_for_now, for_owner
from recon.proof.night_tables import table_of_rows, totals_table
from recon.proof.totals_in_sql import (
    BY_RULE,
    IN_FILE,
    SHEETS,
    SHEETS_IN_SQL,
    SHEETS_READ,
    in_file,
    sheets_in_sql,
)
from recon.steps.runtime.night_folder import RULES

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
    expected = [*SECTIONS, *sorted(named), *(each for each in totals if each.startswith(BY_RULE))]
    read = {section: totals.get(section, (0, {})) for section in expected}
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
            write_ordered(target, sheets, schema=SCHEMAS["sheets"])
        return sheets, sheets_in_sql(results, sheets=file, account=account)


def proven_by_sheets(
    result: Reconciliation,
    *,
    results: Path,
    files: Mapping[str, ListFile],
    account: tuple[str, str],
    draw: Callable[[Reconciliation], Path],
    read: Callable[[Path], SheetTotals],
) -> tuple[Reconciliation, Path, pa.Table]:
    """Draw the workbook of a result, read it back, and return the result with T13, and its sheets.

    A workbook whose sheets differ is drawn again, to say so.

    Args:
        result: The result, with all totals but T13.
        results: See `held_against`.
        files: See `held_against`.
        account: See `held_against`.
        draw: Writes the workbook of a result and returns its path.
        read: Reads the totals of its sheets back.
    """
    of_run: dict[str, Any] = {"results": results, "files": files, "account": account}
    _, expected = held_against({}, **of_run, verdict=result.verdict)
    # Until it is read back, the workbook assumes that all sheets agree.
    agreeing = (replace(one, left=one.right) if one.id == SHEETS else one for one in expected)
    proven = with_t13(result, totals=(*agreeing,))
    path = draw(proven)
    give_back()
    sheets, checked = held_against(read(path), **of_run, verdict=proven.verdict)
    if not all(total.passed for total in checked):
        proven = with_t13(result, totals=checked)
        path = draw(proven)
    return proven, path, sheets


def rules_document(document: Mapping[str, Any]) -> Document:
    """The rules of a comparison, with every default, as a file of its proof."""
    return Document(RULES, json.dumps(document, indent=2).encode())


def proof_parts(
    result: Reconciliation,
    *,
    sheets: pa.Table,
    documents: Iterable[Document],
    statements: Mapping[str, str],
) -> list[StepFile]:
    """Files of the step `proof`: totals, what was read back, documents, and the SQL by name."""
    return [
        *rows_of([("totals", totals_table(result.control_totals)), ("sheets", sheets)]),
        *documents,
        *(Document(name, text.encode()) for name, text in statements.items()),
    ]


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
