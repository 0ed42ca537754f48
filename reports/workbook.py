"""The reconciliation workbook: `write_workbook` draws one night and puts it in its place.

Sheets: Summary, Control totals, Breaks, Pending, Instructions, Matched, Sources, Guide and the
hidden _run. The same figures give the same bytes. A workbook that is open or already there with
other content is never overwritten: the next one is called -v2.
"""

import os
import tempfile
from datetime import UTC
from pathlib import Path
from typing import Any

from openpyxl.packaging.custom import StringProperty

from recon.durable import flush_folder
from recon.errors import OutputError
from recon.figures import NightFigures
from reports.breaks_sheet import draw_breaks
from reports.draft import Draft
from reports.guide_sheet import draw_guide
from reports.instructions_sheet import draw_instructions
from reports.matched_sheet import draw_matched
from reports.open_sheet import draw_open
from reports.run_sheet import TITLE as RUN_TITLE
from reports.run_sheet import draw_run, facts_of
from reports.sources_sheet import draw_sources
from reports.summary_page import Page
from reports.summary_sheet import draw_summary
from reports.totals import Rows, rows_on_sheets, totals_of
from reports.totals_sheet import draw_totals

SHEETS = (
    "Summary",
    "Control totals",
    "Breaks",
    "Pending",
    "Instructions",
    "Matched",
    "Sources",
    "Guide",
    RUN_TITLE,
)
TAB_COLOURS = {"Summary": "1F3864", "Control totals": "1F3864", "Breaks": "C00000"}
VERSIONS_MAX = 99


def write_workbook(figures: NightFigures, path: Path) -> Path:
    """Write the workbook of a night; the path that was really written.

    An equal file that is already there stays as it is.

    Raises:
        OutputError: a list does not fit on a sheet, or too many versions stand there already.
        OSError: the folder cannot be written.
    """
    return put_in_place(workbook_bytes(figures), path=path)


def workbook_bytes(figures: NightFigures) -> bytes:
    """The XLSX file of a night."""
    draft = Draft(timezone=figures.timezone)
    sheets = {title: draft.sheet(title) for title in SHEETS}
    for title, colour in TAB_COLOURS.items():
        sheets[title].sheet_properties.tabColor = colour
    rows = rows_on_sheets(figures)
    totals = totals_of(rows, ledger_covered=figures.ledger_covered)
    draw_run(draft, sheets[RUN_TITLE], figures=figures, rows=rows)
    draw_breaks(draft, sheets["Breaks"], figures=figures, rows=rows)
    draw_open(draft, sheets["Pending"], figures=figures, rows=rows)
    draw_instructions(draft, sheets["Instructions"], figures=figures, rows=rows)
    draw_matched(draft, sheets["Matched"], figures=figures, rows=rows)
    places = draw_totals(draft, sheets["Control totals"], figures=figures, rows=rows, totals=totals)
    draw_guide(draft, sheets["Guide"], figures=figures)
    draw_summary(Page(draft, sheets["Summary"], figures, rows, totals, places))
    draw_sources(draft, sheets["Sources"], figures=figures)
    _describe(draft.workbook, figures=figures, rows=rows)
    return draft.content()


def put_in_place(content: bytes, *, path: Path) -> Path:
    """Under the wanted name, or -v2, -v3 ... when that is open or holds something else."""
    for version in range(1, VERSIONS_MAX + 1):
        target = path if version == 1 else path.with_stem(f"{path.stem}-v{version}")
        if _is_open(target):
            continue
        if not target.exists():
            _write_whole(content, target=target)
            return target
        if target.read_bytes() == content:
            return target
    msg = (
        f"{path.name} and {VERSIONS_MAX - 1} later versions stand in {path.parent} already; the "
        "result is kept in the database: move old workbooks away, then write the report again"
    )
    raise OutputError(msg)


def _is_open(path: Path) -> bool:
    """Whether Excel (~$name) or LibreOffice (.~lock.name#) has the file open."""
    locks = (path.with_name(f"~${path.name}"), path.with_name(f".~lock.{path.name}#"))
    return any(lock.exists() for lock in locks)


def _write_whole(content: bytes, *, target: Path) -> None:
    """All or nothing: under another name, flushed to the disk, then renamed."""
    number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=".part")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o640)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    flush_folder(target.parent)


def _describe(workbook: Any, *, figures: NightFigures, rows: Rows) -> None:
    """Document properties: what the file is, of which run, written when."""
    written = figures.generated_at.astimezone(UTC).replace(tzinfo=None, microsecond=0)
    properties = workbook.properties
    properties.title = f"Reconciliation {figures.merchant_id} {figures.business_date}"
    properties.subject, properties.creator = figures.run_id, "recon"
    properties.created = properties.modified = written
    facts = facts_of(figures, rows=rows)
    for name in ("run_id", "keys_sha256"):
        workbook.custom_doc_props.append(StringProperty(name=f"recon.{name}", value=facts[name]))
    workbook.active = 0
    workbook.security.lockStructure = True
