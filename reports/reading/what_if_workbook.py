"""The workbook of a what-if: nights under candidate rules, what they judge otherwise, and why."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from recon.model.errors import OutputError
from recon.steps.compare.what_if import WhatIf, moved
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.in_place import put_in_place
from reports.drawing.listing import Column, Row, field, put_list
from reports.drawing.page import print_on, protect, put_heading
from reports.sheets.words import words_of

TOP = 5
SETS_SHOWN_MAX = 50_000
"""Rows of one sheet; the digest covers all."""
NIGHTS = (
    Column("Night", 12, "day", field("business_date")),
    Column("Verdict then", 18, "text", field("verdict_then")),
    Column("Under these rules", 18, "text", field("verdict")),
    Column("Breaks then", 12, "count", field("breaks_then")),
    Column("Breaks", 12, "count", field("breaks")),
    Column("High then", 12, "count", field("grave_then")),
    Column("High", 12, "count", field("grave")),
    Column("Judged otherwise", 12, "count", field("changed")),
    Column("Not verified then", 12, "count", field("unverified_then")),
    Column("Not verified", 12, "count", field("unverified")),
    Column("Run", 26, "text", field("run_id")),
    Column("Digest of the result", 68, "text", field("digest")),
)
MOVED = (
    Column("Night", 12, "day", field("business_date")),
    Column("Was", 34, "text", field("before")),
    Column("Would be", 34, "text", field("after")),
    Column("Sets", 10, "count", field("count")),
    Column("Currency", 10, "text", field("currency")),
    Column("Money", 18, "amount", field("exposure")),
)
SETS = (
    Column("Night", 12, "day", field("business_date")),
    Column("Order, payment or entry", 30, "text", field("name")),
    Column("Was", 34, "text", field("before")),
    Column("Would be", 34, "text", field("after")),
    Column("Currency", 10, "text", field("currency")),
    Column("Money", 18, "amount", field("exposure")),
    Column("Why", 60, "text", field("why"), wrap=True),
)
NEVER = (
    Column("Night", 12, "day", field("business_date")),
    Column("Break", 20, "text", field("break_id")),
    Column("What was wrong", 34, "text", lambda row: words_of(row["code"]).title),
    Column("Order no", 24, "text", field("order_no")),
    Column("Currency", 10, "text", field("currency")),
    Column("Money", 18, "amount", field("exposure")),
    Column("Answered by", 24, "text", field("answered_by")),
)
RULES = (
    Column("Rule", 44, "text", field("key")),
    Column("Then", 30, "text", field("before")),
    Column("Candidate", 30, "text", field("after")),
    Column("", 60, "text", field("note"), wrap=True),
)
NOT_PLAYED = "decides what a night reads: its change is not in these figures"


def write_what_if(answer: WhatIf, *, path: Path, at: datetime) -> Path:
    """Write the workbook, or -v2 beside one with other content; gives the path.

    Raises:
        OutputError: the folder cannot be written.
    """
    try:
        return put_in_place(what_if_bytes(answer, at=at), path=path)
    except OSError as error:
        msg = (
            f"the what-if cannot be written to {path} ({error.strerror}): name a file in a folder "
            "that exists and can be written"
        )
        raise OutputError(msg) from error


def what_if_bytes(answer: WhatIf, *, at: datetime) -> bytes:
    """The XLSX file."""
    draft = Draft(timezone="UTC")
    first, last = answer.nights[0].business_date, answer.nights[-1].business_date
    nights = [
        {**_cells(night), "changed": len(night.changes), "verdict": night.verdict.value}
        | {"verdict_then": night.verdict_then.value}
        for night in answer.nights
    ]
    never = [asdict(broken) for broken in answer.never_raised]
    _sheet(
        draft,
        "Nights",
        (f"What if: {first} to {last}", _about(answer)),
        columns=NIGHTS,
        rows=nights,
    )
    unplayed = {rule.key for rule in answer.not_played}
    rules = [
        {"key": rule.key, "before": rule.before, "after": rule.after}
        | {"note": NOT_PLAYED if rule.key in unplayed else ""}
        for rule in answer.rules
    ]
    _sheet(draft, "Rules", ("Rules", "What the candidate changes."), columns=RULES, rows=rules)
    kinds = [asdict(kind) for kind in moved(answer.nights)]
    _sheet(
        draft, "Changes", ("Changes", "By what sets were and would be."), columns=MOVED, rows=kinds
    )
    sets = [
        {"business_date": night.business_date, "name": change.key[2], "currency": change.key[3]}
        | {"before": change.before, "after": change.after}
        | {"exposure": change.exposure, "why": change.why}
        for night in answer.nights
        for change in night.changes
    ]
    sentence = "Each set that is judged otherwise."
    if len(sets) > SETS_SHOWN_MAX:
        sentence = f"The first {SETS_SHOWN_MAX:,} of {len(sets):,} sets that are judged otherwise."
    _sheet(draft, "Sets", ("Sets", sentence), columns=SETS, rows=sets[:SETS_SHOWN_MAX])
    sentence = "Breaks that people answered and that these rules would not have raised."
    _sheet(draft, "Never raised", ("Never raised", sentence), columns=NEVER, rows=never)
    properties: Any = draft.workbook.properties
    properties.title, properties.creator = f"What if {first} to {last}", "recon"
    properties.created = properties.modified = at.replace(tzinfo=None)
    return draft.content()


def _cells(night: Any) -> dict[str, Any]:
    names = (
        *("run_id", "business_date", "breaks_then", "breaks", "grave_then", "grave", "digest"),
        *("unverified_then", "unverified"),
    )
    return {name: getattr(night, name) for name in names}


def _about(answer: WhatIf) -> str:
    same = sum(night.is_same for night in answer.nights)
    return (
        f"{same} of {len(answer.nights)} nights the same to the byte. Nothing was moved or signed. "
        f"Digest {answer.digest}"
    )


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
