"""The index of a folder of evidence: nights, totals, closes, what was let go, people and words."""

from collections.abc import Sequence
from datetime import datetime, time
from typing import Any
from urllib.parse import quote

from openpyxl.worksheet.hyperlink import Hyperlink

from recon.model.money import format_minor_units
from recon.steps.care.evidence import EvidenceIndex, NightOfEvidence
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.listing import Column, Row, field, put_list
from reports.drawing.page import print_on, protect, put_header, put_heading, set_widths

TOP = 5
SIDES_OF_T4 = "T4"
"""The totals that every item and its money is in."""
NIGHTS = (
    Column("Night", 12, "day", field("business_date")),
    Column("Merchant", 12, "text", field("merchant_id")),
    Column("Account", 14, "text", field("account_id")),
    Column("Mode", 9, "text", field("mode")),
    Column("Newest", 9, "text", field("newest")),
    Column("Verdict", 16, "text", field("verdict")),
    Column("Totals by currency", 44, "text", field("sums"), wrap=True),
    Column("Totals", 9, "count", field("totals")),
    Column("Agree", 9, "count", field("agree")),
    Column("Signed", 44, "text", field("signed"), wrap=True),
    Column("Fault", 60, "text", field("fault"), wrap=True),
    Column("Workbook", 24, "text", field("workbook")),
    Column("Run", 26, "text", field("run_id")),
    Column("Rules", 68, "text", field("rules")),
    Column("Manifests (SHA-256)", 90, "text", field("manifests"), wrap=True),
)
WORKBOOK_COLUMN = 12
TOTALS = (
    Column("Night", 12, "day", field("business_date")),
    Column("Run", 26, "text", field("run_id")),
    Column("Total", 9, "text", field("id")),
    Column("Name", 54, "text", field("name")),
    Column("Currency", 10, "text", field("currency")),
    Column("Measure", 10, "text", field("measure")),
    Column("Left", 20, "text", field("left")),
    Column("Right", 20, "text", field("right")),
    Column("Agrees", 9, "text", field("agrees")),
)
CLOSES = (
    Column("Month", 12, "text", field("month")),
    Column("Account", 28, "text", field("account")),
    Column("Close", 9, "count", field("number")),
    Column("Closed by", 60, "text", field("by"), wrap=True),
    Column("At", 20, "text", field("at")),
    Column("Folder", 50, "text", field("folder")),
    Column("Fault", 60, "text", field("fault"), wrap=True),
    Column("Manifest (SHA-256)", 68, "text", field("manifest")),
)
LET_GO = (
    Column("Night", 12, "day", field("business_date")),
    Column("Run", 26, "text", field("run_id")),
    Column("Let go at", 20, "text", field("at")),
    Column("By", 30, "text", field("by")),
    Column("Files", 9, "count", field("files")),
    Column("Bytes", 14, "count", field("size_bytes")),
    Column("List (SHA-256)", 68, "text", field("list_sha256")),
)
PEOPLE = (
    Column("Name", 34, "text", field("name")),
    Column("Short", 14, "text", field("short")),
    Column("Role", 14, "text", field("role")),
    Column("Limits", 34, "text", field("limits")),
    Column("Known by", 18, "text", field("known_by")),
)
WORDS = (
    Column("Link", 10, "count", field("sequence")),
    Column("At", 34, "text", field("at")),
    Column("Who", 40, "text", field("by")),
    Column("What", 26, "text", field("event")),
    Column("Of", 16, "text", field("entity")),
    Column("Which", 40, "text", field("entity_id")),
    Column("Why", 60, "text", field("reason"), wrap=True),
)


def evidence_index(index: EvidenceIndex) -> bytes:
    """The XLSX file; its links are relative, so it moves with the folder."""
    draft = Draft(timezone="UTC")
    span = f"{index.span.first} to {index.span.last}"
    faults = len(index.faults)
    about = (
        f"{len(index.nights)} runs, {faults} faults. Head {index.head.sequence}:{index.head.hash}"
    )
    _nights(draft, index, heading=(f"Evidence, {span}", about))
    totals = [row for night in index.nights for row in _totals(night)]
    sentence = "Every control total of every night, as the night sealed it."
    _sheet(draft, "Totals", ("Totals", sentence), columns=TOTALS, rows=totals)
    closes = [
        {"month": closed.month, "account": "/".join(closed.account), "number": closed.number}
        | {"by": closed.by, "at": f"{closed.at:%Y-%m-%d %H:%M} UTC", "folder": closed.folder}
        | {"fault": "; ".join(copy.faults), "manifest": closed.manifest}
        for closed, copy in index.closes
    ]
    sentence = "Months that two people closed; a month that was reopened has several."
    _sheet(draft, "Closes", ("Closed months", sentence), columns=CLOSES, rows=closes)
    gone = [
        {name: getattr(each, name) for name in ("business_date", "run_id", "by", "files")}
        | {"size_bytes": each.size_bytes, "list_sha256": each.list_sha256}
        | {"at": f"{each.at:%Y-%m-%d %H:%M} UTC"}
        for each in index.let_go
    ]
    sentence = "Folders that went under retention; breaks, totals, decisions and manifests stay."
    _sheet(draft, "Let go", ("Let go by retention", sentence), columns=LET_GO, rows=gone)
    people = [
        {**each, "limits": ", ".join(f"{name} {most}" for name, most in each["limit"].items())}
        for each in index.people
    ]
    sentence = "Who may speak by approvers.toml today, and who spoke by the history."
    _sheet(draft, "People", ("People", sentence), columns=PEOPLE, rows=people)
    sentence = "What people said, by the links of the history in history.jsonl."
    _sheet(draft, "Words", ("Words", sentence), columns=WORDS, rows=index.words)
    properties: Any = draft.workbook.properties
    properties.title, properties.creator = f"Evidence {span}", "recon"
    properties.created = properties.modified = datetime.combine(index.span.last, time())
    return draft.content()


def _nights(draft: Draft, index: EvidenceIndex, *, heading: tuple[str, str]) -> None:
    """One row a run, cell by cell: a row with a link is not streamed."""
    sheet = draft.sheet("Nights")
    put_heading(draft, sheet, title=heading[0], sentence=heading[1])
    titles = [f">{each.title}" if each.kind == "count" else each.title for each in NIGHTS]
    put_header(draft, sheet, row=TOP, titles=titles)
    set_widths(sheet, [each.width for each in NIGHTS])
    for row, night in enumerate(index.nights, TOP + 1):
        cells = _night(night)
        for number, column in enumerate(NIGHTS, 1):
            if column.kind == "count":
                draft.number(sheet, (row, number), column.value(cells))
            elif column.kind == "day":
                draft.day(sheet, (row, number), column.value(cells))
            else:
                look = looks.BODY_TEXT.but(wrap=column.wrap)
                draft.text(sheet, (row, number), column.value(cells), look)
        if night.workbook:
            _link(draft, sheet, row, target=night.workbook)
    sheet.freeze_panes = f"B{TOP + 1}"
    print_on(sheet, about=heading[0], title_rows=f"{TOP}:{TOP}")
    protect(sheet)


def _link(draft: Draft, sheet: Any, row: int, *, target: str) -> None:
    """To the workbook of a night, from where the index lies."""
    name = target.rpartition("/")[2]
    draft.text(sheet, (row, WORKBOOK_COLUMN), name, looks.LINK)
    cell = sheet.cell(row=row, column=WORKBOOK_COLUMN)
    cell.hyperlink = Hyperlink(ref=cell.coordinate, target=quote(target), display=name)
    # The library sets a style of its own for links.
    cell._style = draft.style(looks.LINK)  # noqa: SLF001


def _night(night: NightOfEvidence) -> dict[str, Any]:
    run = night.run
    return {
        "business_date": run.business_date,
        "merchant_id": run.merchant_id,
        "account_id": run.account_id,
        "mode": run.mode.value,
        "newest": "yes" if night.is_newest else "replaced",
        "verdict": str(run.verdict),
        "sums": _sums(night),
        "totals": len(night.totals),
        "agree": sum(total.passed for total in night.totals),
        "signed": night.signed or "not signed",
        "fault": "; ".join(night.copy.faults) or "none",
        "workbook": "workbook.xlsx" if night.workbook else "none",
        "run_id": run.run_id,
        "rules": night.rules_digest,
        "manifests": "\n".join(f"{step} {sha}" for step, sha in night.copy.manifests.items()),
    }


def _sums(night: NightOfEvidence) -> str:
    """The money of T4, by what it is of, in every currency."""
    return "; ".join(
        f"{total.name} {_shown(total.left, total)} {total.currency}"
        for total in night.totals
        if total.id == SIDES_OF_T4 and total.measure != "count" and total.left
    )


def _totals(night: NightOfEvidence) -> list[dict[str, Any]]:
    return [
        {"business_date": night.run.business_date, "run_id": night.run.run_id}
        | {name: getattr(total, name) for name in ("id", "name", "currency", "measure")}
        | {"left": _shown(total.left, total), "right": _shown(total.right, total)}
        | {"agrees": "yes" if total.passed else "NO"}
        for total in night.totals
    ]


def _shown(figure: int, total: Any) -> str:
    if total.measure == "count" or not total.currency:
        return str(figure)
    return format_minor_units(figure, currency=total.currency)


def _sheet(
    draft: Draft,
    title: str,
    heading: tuple[str, str],
    *,
    columns: Sequence[Column],
    rows: Sequence[Row],
) -> None:
    sheet = draft.sheet(title)
    put_heading(draft, sheet, title=heading[0], sentence=heading[1])
    if not rows:
        draft.text(sheet, (3, 1), "None.", looks.NOTE)
    put_list(draft, sheet, columns=columns, rows=rows, top=TOP)
    sheet.freeze_panes = f"A{TOP + 1}"
    print_on(sheet, about=heading[0], title_rows=f"{TOP}:{TOP}")
    protect(sheet)
