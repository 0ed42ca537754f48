"""Files of the run that hold all rows of a list which is too long for its sheet: as it names them.

The sheet has the sums, the first rows and the names; Sources has bytes, rows and SHA-256 of each.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from recon.model.figures import ListFile
from reports.drawing.blocks import Column, Listing

KINDS: Mapping[str, str] = {
    "match": "matched",
    "unverified": "not verified",
    "pending": "waiting",
}
"""Section -> the word for it on Sources."""
TITLE = "Lists that are too long for their sheets, in files of the run"
COLUMNS = (
    Column("Kind", 15, "kind"),
    Column("Name", 66, "name"),
    Column("Bytes", 12, "size_bytes", "count"),
    Column("Rows", 20, "rows", "count"),
    Column("SHA-256", 70, "sha256", span=6),
)


def added_up(sets: str, *, named: Iterable[ListFile], where: str = "on Sources") -> str:
    """The sentence of a sheet that has sums in place of `sets`; `where` their files are told."""
    files = " and ".join(file.name for file in named) or "the files of the run"
    return f"{sets}, added up; each row stands in {files} (rows and SHA-256 {where})."


def named_block(files: Mapping[str, ListFile]) -> Listing:
    """Each file in a row of Sources."""
    rows = [{**asdict(file), "kind": KINDS[section]} for section, file in files.items()]
    return Listing(COLUMNS, rows, title=TITLE)


def named_in(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int, str]]:
    """Section, rows and SHA-256 of each file, as they stand in the rows of Sources."""
    sections = {kind: section for section, kind in KINDS.items()}
    for row in rows:
        kind = str(row["Kind"])
        yield sections.get(kind, kind), int(row["Rows"]), str(row["SHA-256"])
