"""The index of an evidence folder: runs, totals, closes, purged folders, people and statements."""

from dataclasses import asdict
from datetime import datetime, time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recon.steps.admin.evidence import EvidenceIndex, NightOfEvidence
from reports.drawing.blocks import Column, Workbook, list_sheet
from reports.drawing.look import CellLink
from reports.sheets.labels import figure_text

SIDES_OF_T4 = "T4"
"""The control total that covers every item and its money."""
NIGHTS = (
    Column("Night", 12, "business_date", "date"),
    Column("Merchant", 12, "merchant_id"),
    Column("Account", 14, "account_id"),
    Column("Mode", 9, "mode"),
    Column("Newest", 9, "newest"),
    Column("Verdict", 16, "verdict"),
    Column("Totals by currency", 44, "sums", wrap=True),
    Column("Totals", 9, "totals", "count"),
    Column("Agree", 9, "agree", "count"),
    Column("Signed", 44, "signed", wrap=True),
    Column("Fault", 60, "fault", wrap=True),
    Column("Workbook", 24, "workbook"),
    Column("Run", 26, "run_id"),
    Column("Rules", 68, "rules"),
    Column("Manifests (SHA-256)", 90, "manifests", wrap=True),
)
TOTALS = (
    Column("Night", 12, "business_date", "date"),
    Column("Run", 26, "run_id"),
    Column("Total", 9, "id"),
    Column("Name", 54, "name"),
    Column("Currency", 10, "currency"),
    Column("Measure", 10, "measure"),
    Column("Left", 20, "left"),
    Column("Right", 20, "right"),
    Column("Agrees", 9, "agrees"),
)
CLOSES = (
    Column("Month", 12, "month"),
    Column("Account", 28, "account"),
    Column("Close", 9, "number", "count"),
    Column("Closed by", 60, "by", wrap=True),
    Column("At", 20, "at"),
    Column("Folder", 50, "folder"),
    Column("Fault", 60, "fault", wrap=True),
    Column("Manifest (SHA-256)", 68, "manifest"),
)
PURGED = (
    Column("Night", 12, "business_date", "date"),
    Column("Run", 26, "run_id"),
    Column("Let go at", 20, "at"),
    Column("By", 30, "by"),
    Column("Files", 9, "files", "count"),
    Column("Bytes", 14, "size_bytes", "count"),
    Column("List (SHA-256)", 68, "list_sha256"),
)
PEOPLE = (
    Column("Name", 34, "name"),
    Column("Short", 14, "short"),
    Column("Role", 14, "role"),
    Column("Limits", 34, "limits"),
    Column("Known by", 18, "known_by"),
)
LABELS = (
    Column("Link", 10, "sequence", "count"),
    Column("At", 34, "at"),
    Column("Who", 40, "by"),
    Column("What", 26, "event"),
    Column("Of", 16, "entity"),
    Column("Which", 40, "entity_id"),
    Column("Why", 60, "reason", wrap=True),
)


def evidence_index(index: EvidenceIndex) -> bytes:
    """Render the XLSX file; its links are relative, so it can be moved with the folder."""
    span = f"{index.span.first} to {index.span.last}"
    about = (
        f"{len(index.nights)} runs, {len(index.faults)} faults. Head "
        f"{index.head.sequence}:{index.head.hash}"
    )
    closes = [
        asdict(closed)
        | {"account": "/".join(closed.account), "at": f"{closed.at:%Y-%m-%d %H:%M} UTC"}
        | {"fault": "; ".join(copy.faults)}
        for closed, copy in index.closes
    ]
    purged = [asdict(each) | {"at": f"{each.at:%Y-%m-%d %H:%M} UTC"} for each in index.purged]
    people = [
        {**each, "limits": ", ".join(f"{name} {most}" for name, most in each["limit"].items())}
        for each in index.people
    ]
    totals = [
        {"business_date": night.run.business_date, "run_id": night.run.run_id}
        | asdict(total)
        | {"left": figure_text(total.left, of=total), "right": figure_text(total.right, of=total)}
        | {"agrees": "yes" if total.passed else "NO"}
        for night in index.nights
        for total in night.totals
    ]
    sheets = [
        list_sheet(
            "Nights",
            NIGHTS,
            [*map(_night, index.nights)],
            heading=f"Evidence, {span}",
            about=about,
        ),
        list_sheet(
            "Totals",
            TOTALS,
            totals,
            about="Every control total of every night, as the night sealed it.",
        ),
        list_sheet(
            "Closes",
            CLOSES,
            closes,
            heading="Closed months",
            about="Months that two people closed; a month that was reopened has several.",
        ),
        list_sheet(
            "Let go",
            PURGED,
            purged,
            heading="Let go by retention",
            about="Folders that went under retention; breaks, totals, decisions and manifests "
            "stay.",
        ),
        list_sheet(
            "People",
            PEOPLE,
            people,
            about="Who may decide by approvers.toml today, and who decided by the history.",
        ),
        list_sheet(
            "Words",
            LABELS,
            index.statements,
            about="What people said, by the links of the history in history.jsonl.",
        ),
    ]
    written = datetime.combine(index.span.last, time())
    return Workbook(f"Evidence {span}", sheets, written).content()


def _night(night: NightOfEvidence) -> dict[str, Any]:
    run, book = night.run, night.workbook
    return asdict(run) | {
        "mode": run.mode.value,
        "newest": "yes" if night.is_newest else "replaced",
        "verdict": str(run.verdict),
        "sums": "; ".join(
            f"{total.name} {figure_text(total.left, of=total)} {total.currency}"
            for total in night.totals
            if total.id == SIDES_OF_T4 and total.measure != "count" and total.left
        ),
        "totals": len(night.totals),
        "agree": sum(total.passed for total in night.totals),
        "signed": night.signed or "not signed",
        "fault": "; ".join(night.copy.faults) or "none",
        "workbook": CellLink(Path(book).name, quote(book), is_file=True) if book else "none",
        "rules": night.rules_digest,
        "manifests": "\n".join(f"{step} {sha}" for step, sha in night.copy.manifests.items()),
    }
