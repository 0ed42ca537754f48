"""The Sources sheet: every input with its digest and counts, every rejected row, unknown codes."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from recon.model.figures import NightFigures
from reports.drawing.blocks import Column, Listing, Part, Sheet, TextLine, check_of
from reports.drawing.look import REPLACEMENT, CellLink
from reports.sheets.control_totals import TOTALS_AT, bridge_sentence
from reports.sheets.named_files import named_block

WIDTHS = (15, 66, 12, 20, 12, 12, 12, 12, 10, 70)
REJECTS_MAX = 10_000
"""More rejected rows than this say one thing: the file is not what it should be."""
FILES = (
    Column("Kind", 15, "kind"),
    Column("Name", 66, "name"),
    Column("Bytes", 12, "size_bytes", "count"),
    Column("Rows read", 20, "rows_read", "count"),
    Column("Accepted", 12, "rows_accepted", "count"),
    Column("Rejected", 12, "rows_rejected", "count"),
    Column("Skipped", 12, "rows_skipped", "count"),
    Column("Difference", 12, "left", "count"),
    Column("Check", 10, "check", "check"),
    Column("SHA-256", 70, "sha256"),
)
REJECTS = (
    Column("Kind", 15, "kind"),
    Column("File", 66, "source"),
    Column("Line", 12, "line", "count"),
    Column("Column", 20, "column"),
    Column("Order no", 24, "order_no", span=2),
    Column("Value", 34, "value", span=3),
    Column("Reason", 70, "reason", wrap=True),
)
STANDING = (
    Column("Row", 15, "reject_id", "count"),
    *REJECTS[1:4],
    Column("Order no", 58, "order_no", span=5),
    REJECTS[-1],
)
UNMAPPED = (
    Column("Field", 15, "field"),
    Column("Code", 66, "code"),
    Column("Times", 12, "count", "count"),
    Column("An order", 20, "sample"),
)
SCOPE = (
    Column("Currency", 15, "currency"),
    Column("What", 66, "statement"),
    Column("Count", 12, "count", "count"),
    Column("Amount", 20, "amount", "money"),
)
DISMISS = "Have these orders delivered, or decide: `recon file dismiss-row ROW`."


def sources_sheet(figures: NightFigures) -> Sheet:
    """Files, rejected rows, codes without a rule, replaced characters."""
    return Sheet(
        "Sources",
        [*_blocks(figures)],
        heading="Sources",
        about="What was read. Rows read must be accepted, rejected or skipped by a rule that "
        "has a name (identical repeats).",
        widths=WIDTHS,
    )


def _blocks(figures: NightFigures) -> Iterator[Part]:
    yield _files(figures)
    for file in figures.files:
        if file.skipped_by:
            yield TextLine(f"Skipped by the layout of {file.name}: {file.skipped_by}.")
    for kind in figures.bridge if figures.files else ():
        yield TextLine(CellLink(bridge_sentence(figures, kind=kind), TOTALS_AT))
    yield TextLine()
    if named := figures.files_named():
        yield named_block(named)
        yield TextLine()
    yield from _rejects(figures)
    if figures.unmapped_codes:
        sampled = ("sample order_no", "order_no", "sample")
        codes = [
            {"field": "", "code": "", "count": 0, **each}
            | {"sample": str(next((each[name] for name in sampled if name in each), ""))}
            for each in figures.unmapped_codes
        ]
        yield Listing(UNMAPPED, codes, title="Gateway codes that no rule explains")
        yield TextLine()
    if figures.scope_of_assurance:
        scope = [
            {"currency": str(line.get("currency", "") or ""), "statement": line.get("statement")}
            | {name: whole(line.get(name)) for name in ("count", "amount")}
            for line in figures.scope_of_assurance
        ]
        yield Listing(SCOPE, scope, title="Scope of assurance")
        yield TextLine()
    yield TextLine(_replaced, "note")


def _replaced(count: int) -> str:
    return f"{count} unprintable characters of foreign text were shown as {REPLACEMENT}."


def _files(figures: NightFigures) -> Listing:
    names = ("rows_read", "rows_accepted", "rows_rejected", "rows_skipped")
    rows = []
    for file in figures.files:
        left = file.rows_read - file.rows_accepted - file.rows_rejected - file.rows_skipped
        rows.append(asdict(file) | {"left": left, "check": check_of(holds=not left)})
    sums = {name: sum(row[name] for row in rows) for name in names}
    total: dict[str, Any] = {**dict.fromkeys(("name", "size_bytes", "left", "check", "sha256"))}
    return Listing(
        FILES,
        rows,
        title="Files and answers",
        total={**total, "kind": "All", **sums} if rows else None,
        nothing="No file was read.",
    )


def _rejects(figures: NightFigures) -> Iterator[Part]:
    """Of tonight, then of earlier nights whose rows still stand for their orders."""
    count = len(figures.rejects)
    rows = [asdict(reject) for reject in figures.rejects[:REJECTS_MAX]]
    yield Listing(REJECTS, rows, title=f"Rejected rows ({count})")
    if count > REJECTS_MAX:
        yield TextLine(f"{count - REJECTS_MAX} more are in the database.", "note")
    yield TextLine()
    tonight = {(reject.source, reject.line) for reject in figures.rejects}
    left = [each for each in figures.quarantined if (each.source, each.line) not in tonight]
    if left:
        title = f"Rejected on earlier nights, and not delivered again since ({len(left)})"
        yield Listing(STANDING, [asdict(each) for each in left[:REJECTS_MAX]], title=title)
        yield TextLine(DISMISS, "note")
        yield TextLine()


def whole(value: object) -> int | None:
    """A count as it stands in a mapping of figures; None when it is not given."""
    return None if value in {None, ""} else int(str(value))
