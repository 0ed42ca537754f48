"""The hidden `_run` sheet: which run this is, and what a workbook that comes back is checked by."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from recon.model.errors import OutputError
from recon.model.figures import MATCHES, NightFigures
from reports.drawing.blocks import Column, Listing, Sheet
from reports.sheets.totals import Rows

TITLE = "_run"
BESIDE = "matched_file_"
_BESIDE = re.compile(r"([0-9]{1,12}) ([0-9a-f]{64}) ((?!\.)[^/\\\x00]+)")
SCHEMA_VERSION = 4
COLUMNS = (Column("Fact", 20, "name"), Column("Value", 70, "value"))


def run_sheet(figures: NightFigures, rows: Rows) -> Sheet:
    """Facts of the run, among them the verdict."""
    facts = {**facts_of(figures, rows=rows), **beside_facts(figures)}
    listed = [{"name": name, "value": value} for name, value in facts.items()]
    return Sheet(TITLE, [Listing(COLUMNS, listed)], frozen=(1, 0), is_hidden=True)


def facts_of(figures: NightFigures, *, rows: Rows) -> dict[str, str]:
    """What identifies the run, as text."""
    return {
        "schema_version": str(SCHEMA_VERSION),
        "run_id": figures.run_id,
        "merchant_id": figures.merchant_id,
        "account_id": figures.account_id,
        "business_date": figures.business_date.isoformat(),
        "verdict": figures.verdict.value,
        "breaks": str(len(rows.breaks)),
        "keys_sha256": keys_digest(str(row["break_id"]) for row in rows.breaks),
        "rules_digest": figures.rules_digest,
        "history_head": figures.history_head,
    }


def beside_facts(figures: NightFigures) -> dict[str, str]:
    """The file of matches beside a workbook of plain files: BESIDE1 -> rows, SHA-256 and name."""
    file = figures.files_named().get(MATCHES)
    if file is None or "/" in file.name:
        return {}
    return {f"{BESIDE}1": f"{file.rows} {file.sha256} {file.name}"}


def beside_of(facts: Mapping[str, str]) -> list[tuple[int, str, str]]:
    """Rows, SHA-256 and name of every file that stands beside a workbook.

    Raises:
        OutputError: what stands there is no name of a file of the same folder.
    """
    values = [value for name, value in facts.items() if name.startswith(BESIDE)]
    named = [_BESIDE.fullmatch(value) for value in values]
    if None in named:
        msg = "the workbook's hidden sheet does not name files beside it: it is not one of ours"
        raise OutputError(msg)
    return [(int(each[1]), each[2], each[3]) for each in named if each is not None]


def keys_digest(keys: Any) -> str:
    """SHA-256 over the sorted break keys: no row was added or lost."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()
