"""What became of a returned workbook, as a workbook: what was taken, what was not, and why."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from recon.model.resolutions import Import
from reports.drawing.blocks import Column, Listing, Row, Sheet, Workbook
from reports.drawing.in_place import put_in_place

DIGEST_SHOWN = 8
TAKEN = (
    Column("Row", 8, "row", "count"),
    Column("Break key", 20, "break_id"),
    Column("Order no", 26, "order_no"),
    Column("Resolution", 24, lambda row: row["answer"].resolution),
    Column("Owner", 20, lambda row: row["answer"].owner),
    Column("Comment", 60, lambda row: row["answer"].comment, wrap=True),
    Column("Answer", 9, "version", "count"),
    Column("State", 30, lambda row: "waits for a second person" if row["waits"] else "kept"),
)
NOT_TAKEN = (
    Column("Cell", 26, "cell"),
    Column("What stands there", 40, "value", wrap=True),
    Column("Why it was not taken", 80, "reason", wrap=True),
)
WRITTEN = datetime(2000, 1, 1)  # noqa: DTZ001 - the same import gives the same bytes
"""In place of the moment of writing."""


def write_import(done: Import, *, beside: Path) -> Path:
    """Write the result beside the returned file; the path that was written.

    Raises:
        OSError: the folder cannot be written.
    """
    name = f"{beside.stem}-result-{done.sha256[:DIGEST_SHOWN]}.xlsx"
    taken = [{name: getattr(each, name) for name in each.__slots__} for each in done.taken]
    refused = [{name: getattr(each, name) for name in each.__slots__} for each in done.refusals]
    sheets = [
        _sheet("Not taken", NOT_TAKEN, refused, done=done),
        _sheet("Taken", TAKEN, taken, done=done),
    ]
    book = Workbook(f"Import of {done.name}", sheets, WRITTEN, footer=f"Run {done.run_id}")
    return put_in_place(book.content(), path=beside.with_name(name))


def _sheet(title: str, columns: Sequence[Column], rows: Sequence[Row], *, done: Import) -> Sheet:
    return Sheet(
        title,
        [Listing(columns, rows, nothing="")],
        heading=title,
        about=f"{len(rows)} of {done.name}, run {done.run_id}, answered by {done.by}.",
    )
