"""Files of the run that hold all rows of a list which is too long for its sheet: as it names them.

The sheet has the sums, the first rows and the names; Sources has bytes, rows and SHA-256 of each.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recon.model.figures import ListFile
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.page import put_header

KINDS: Mapping[str, str] = {
    "match": "matched",
    "unverified": "not verified",
    "pending": "waiting",
}
"""Section -> the word for it on Sources."""
TITLE = "Lists that are too long for their sheets, in files of the run"
TITLES = ("Kind", "Name", ">Bytes", ">Rows", "", "", "", "", "", "SHA-256")
NAME_COLUMN, BYTES_COLUMN, ROWS_COLUMN, HASH_COLUMN = 2, 3, 4, 10


def added_up(sets: str, *, named: Iterable[ListFile], where: str = "on Sources") -> str:
    """The sentence of a sheet that has sums in place of `sets`; `where` their files are told."""
    files = " and ".join(file.name for file in named) or "the files of the run"
    return f"{sets}, added up; each row stands in {files} (rows and SHA-256 {where})."


def put_named(draft: Draft, sheet: Any, *, files: Mapping[str, ListFile], top: int) -> int:
    """Each file in a row of Sources; the next free row."""
    if not files:
        return top
    draft.text(sheet, (top, 1), TITLE, looks.HEADING)
    put_header(draft, sheet, row=top + 1, titles=TITLES)
    grey = looks.NUMBER.but(fill=looks.ENGINE_FILL)
    for row, (section, file) in enumerate(files.items(), top + 2):
        draft.text(sheet, (row, 1), KINDS[section], looks.BODY_TEXT)
        draft.text(sheet, (row, NAME_COLUMN), file.name, looks.BODY_TEXT)
        draft.number(sheet, (row, BYTES_COLUMN), file.size_bytes, grey)
        draft.number(sheet, (row, ROWS_COLUMN), file.rows, grey)
        draft.text(sheet, (row, HASH_COLUMN), file.sha256, looks.BODY_TEXT)
    return top + 3 + len(files)


def named_in(rows: Iterable[list[Any]]) -> Iterator[tuple[str, int, str]]:
    """Section, rows and SHA-256 of each file, as they stand in the rows of Sources."""
    sections = {kind: section for section, kind in KINDS.items()}
    is_below = False
    for cells in rows:
        kind = str(cells[0]) if cells else ""
        if is_below and not kind:
            return
        if is_below and kind != "Kind":
            yield sections.get(kind, kind), int(cells[ROWS_COLUMN - 1]), str(cells[HASH_COLUMN - 1])
        is_below = is_below or kind == TITLE
