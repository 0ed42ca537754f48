"""The workbook of a what-if: runs under candidate rules, what changes, and why."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from recon.steps.compare.what_if import WhatIf, moved
from reports.drawing.blocks import Column, Workbook, list_sheet, saved
from reports.sheets.labels import label_of

SETS_DISPLAYED_MAX = 50_000
"""Maximum number of rows of the sheet; the digest covers all."""
NIGHTS = (
    Column("Night", 12, "business_date", "date"),
    Column("Verdict then", 18, "verdict_then"),
    Column("Under these rules", 18, "verdict"),
    Column("Breaks then", 12, "breaks_then", "count"),
    Column("Breaks", 12, "breaks", "count"),
    Column("High then", 12, "severe_then", "count"),
    Column("High", 12, "severe", "count"),
    Column("Judged otherwise", 12, "changed", "count"),
    Column("Not verified then", 12, "unverified_then", "count"),
    Column("Not verified", 12, "unverified", "count"),
    Column("Run", 26, "run_id"),
    Column("Digest of the result", 68, "digest"),
)
MOVED = (
    Column("Night", 12, "business_date", "date"),
    Column("Was", 34, "before"),
    Column("Would be", 34, "after"),
    Column("Sets", 10, "count", "count"),
    Column("Currency", 10, "currency"),
    Column("Money", 18, "exposure", "money"),
)
SETS = (
    Column("Night", 12, "business_date", "date"),
    Column("Order, payment or entry", 30, "name"),
    Column("Was", 34, "before"),
    Column("Would be", 34, "after"),
    Column("Currency", 10, "currency"),
    Column("Money", 18, "exposure", "money"),
    Column("Why", 60, "why", wrap=True),
)
NEVER = (
    Column("Night", 12, "business_date", "date"),
    Column("Break", 20, "break_id"),
    Column("What was wrong", 34, lambda row: label_of(row["code"]).title),
    Column("Order no", 24, "order_no"),
    Column("Currency", 10, "currency"),
    Column("Money", 18, "exposure", "money"),
    Column("Answered by", 24, "answered_by"),
)
RULES = (
    Column("Rule", 44, "key"),
    Column("Then", 30, "before"),
    Column("Candidate", 30, "after"),
    Column("", 60, "note", wrap=True),
)
OF_NIGHT = (
    *("run_id", "business_date", "breaks_then", "breaks", "severe_then", "severe", "digest"),
    *("unverified_then", "unverified"),
)
NOT_PLAYED = "decides what a night reads: its change is not in these figures"


def write_what_if(answer: WhatIf, *, path: Path, at: datetime) -> Path:
    """Write the workbook, or -v2 if a different one exists; return the path.

    Raises:
        OutputError: the folder cannot be written.
    """
    first, last = answer.nights[0].business_date, answer.nights[-1].business_date
    nights = [
        {name: getattr(night, name) for name in OF_NIGHT}
        | {"changed": len(night.changes), "verdict": night.verdict.value}
        | {"verdict_then": night.verdict_then.value}
        for night in answer.nights
    ]
    unplayed = {rule.key for rule in answer.not_played}
    rules = [
        {"key": rule.key, "before": rule.before, "after": rule.after}
        | {"note": NOT_PLAYED if rule.key in unplayed else ""}
        for rule in answer.rules
    ]
    sets = [
        {"business_date": night.business_date, "name": change.key[2], "currency": change.key[3]}
        | {"before": change.before, "after": change.after}
        | {"exposure": change.exposure, "why": change.why}
        for night in answer.nights
        for change in night.changes
    ]
    text = "Each set that is classified differently."
    if len(sets) > SETS_DISPLAYED_MAX:
        of = f"{SETS_DISPLAYED_MAX:,} of {len(sets):,}"
        text = f"The first {of} sets that are classified differently."
    same = sum(night.is_same for night in answer.nights)
    about = (
        f"{same} of {len(answer.nights)} nights the same to the byte. Nothing was moved or signed. "
        f"Digest {answer.digest}"
    )
    title, changes = f"What if: {first} to {last}", [asdict(each) for each in moved(answer.nights)]
    never = "Breaks that people answered and that these rules would not have raised."
    sheets = [
        list_sheet("Nights", NIGHTS, nights, heading=title, about=about),
        list_sheet("Rules", RULES, rules, about="What the candidate changes."),
        list_sheet("Changes", MOVED, changes, about="By what sets were and would be."),
        list_sheet("Sets", SETS, sets[:SETS_DISPLAYED_MAX], about=text),
        list_sheet("Never raised", NEVER, [asdict(e) for e in answer.never_raised], about=never),
    ]
    book = Workbook(f"What if {first} to {last}", sheets, at.replace(tzinfo=None))
    advice = ": name a file in a folder that exists and can be written"
    return saved(book, path=path, what="the what-if", advice=advice)
