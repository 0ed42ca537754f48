"""What became of a returned workbook, as a workbook: what was taken, what was not, and why."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from recon.model.resolutions import Import, Taken, WorkbookRefusal
from reports.drawing.draft import Draft
from reports.drawing.in_place import put_in_place
from reports.drawing.page import print_on, protect, put_header, put_heading, set_widths

DIGEST_SHOWN = 8
HEADER_ROW = 4

Cells = Callable[[Any], tuple[str, ...]]
TAKEN = ("Row", "Break key", "Order no", "Resolution", "Owner", "Comment", "Answer", "State")
NOT_TAKEN = ("Cell", "What stands there", "Why it was not taken")
ALTERED = ("Cell", "What stands there", "What is true")


def write_import(done: Import, *, beside: Path) -> Path:
    """Write the result beside the returned file; the path that was written.

    Raises:
        OSError: the folder cannot be written.
    """
    name = f"{beside.stem}-result-{done.sha256[:DIGEST_SHOWN]}.xlsx"
    return put_in_place(import_bytes(done), path=beside.with_name(name))


def import_bytes(done: Import) -> bytes:
    """The XLSX file of an import."""
    draft = Draft(timezone="UTC")
    _put(draft, "Not taken", NOT_TAKEN, done.refusals, _refusal, done, (26, 40, 80))
    _put(draft, "Taken", TAKEN, done.taken, _taken, done, (8, 20, 26, 24, 20, 60, 9, 30))
    _put(draft, "Changed elsewhere", ALTERED, done.altered, _refusal, done, (40, 40, 60))
    draft.workbook.properties.title = f"Import of {done.name}"
    draft.workbook.properties.creator = "recon"
    draft.workbook.active = 0
    return draft.content()


def _put(  # noqa: PLR0917 - one call per sheet, each with its own columns
    draft: Draft,
    title: str,
    titles: Sequence[str],
    rows: Sequence[Any],
    cells: Cells,
    done: Import,
    widths: Sequence[int],
) -> None:
    sheet = draft.sheet(title)
    sentence = f"{len(rows)} of {done.name}, run {done.run_id}, answered by {done.by}."
    put_heading(draft, sheet, title=title, sentence=sentence)
    put_header(draft, sheet, row=HEADER_ROW, titles=titles)
    set_widths(sheet, widths)
    for number, row in enumerate(rows, HEADER_ROW + 1):
        for column, text in enumerate(cells(row), 1):
            draft.text(sheet, (number, column), text)
    print_on(sheet, run_id=done.run_id, title_rows=f"{HEADER_ROW}:{HEADER_ROW}")
    protect(sheet)


def _refusal(refusal: WorkbookRefusal) -> tuple[str, ...]:
    return refusal.cell, refusal.value, refusal.reason


def _taken(taken: Taken) -> tuple[str, ...]:
    answer = taken.answer
    state = "waits for a second person" if taken.waits else "kept"
    number = f"{taken.version}"
    words = (answer.resolution, answer.owner, answer.comment)
    return (str(taken.row), taken.break_id, taken.order_no, *words, number, state)
