"""A copy of a signed workbook with its signatures and answers on page one and on Breaks.

The signed file cannot contain its own signatures, because a signature covers its SHA-256. The copy
is identical, part by part, except for the sign-off lines, the answer cells, and the text of page
one about them.
"""

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from openpyxl.utils import get_column_letter

from recon.model.errors import OutputError
from recon.model.resolutions import StoredAnswer, answered_text
from recon.store.nights.sign_off_rows import Signature
from reports.drawing.blocks import put_in_place
from reports.drawing.look import cell_text, local_instant
from reports.reading.workbook_check import opened, rows_in
from reports.sheets.breaks_sheet import (
    ANSWERED_BY,
    ANSWERS,
    CODE,
    COLUMNS,
    HEADER_ROW,
    break_of,
)
from reports.sheets.breaks_sheet import TITLE as BREAKS
from reports.sheets.labels import label_of
from reports.sheets.page_one import (
    ATTENTION_AT,
    NEXT,
    NO_OWNER,
    NOT_SIGNED,
    SEVERE_LINE,
    SIGN_OFF,
    SIGNED_FILE,
)
from reports.sheets.page_one import TITLE as SUMMARY

PAGES = {SUMMARY: "xl/worksheets/sheet1.xml", BREAKS: "xl/worksheets/sheet2.xml"}
ENDINGS = {
    ("reviewer",): "reviewed",
    ("approver",): "awaits-review",
    ("reviewer", "approver"): "approved",
}
"""Roles that signed -> suffix of the copy's name."""
FILLED_IN = [
    (number, column)
    for number, column in enumerate(COLUMNS)
    if column.title in {*ANSWERS, ANSWERED_BY}
]
CODE_AT = next(number for number, column in enumerate(COLUMNS) if column.title == CODE)
_DUE = re.compile(r"(, (?:due \d\d \w{3}|answered on .+, still there)): ")
_CELL = re.compile(r'(<c r="([A-Z]+[0-9]+)" s="[0-9]+")[^>]*?(?:/>|>.*?</c>)')


def write_signed_copy(
    path: Path,
    *,
    signatures: Sequence[Signature],
    answers: Mapping[str, StoredAnswer],
    timezone: str,
) -> Path:
    """Write the copy next to the workbook, with the answers by break key; return its path.

    Raises:
        OutputError: it cannot be written, or the workbook is not the one that was signed.
    """
    stored = "the signature is kept (`recon nights` shows it)"
    try:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if {signature.workbook_sha256 for signature in signatures} != {digest}:
            msg = f"{path} is not the file that was signed, so no signed copy was written; {stored}"
            raise OutputError(msg)
        roles = tuple(signature.role for signature in signatures)
        target = path.with_stem(f"{path.stem}-{ENDINGS[roles]}")
        stamped = signed_bytes(content, signatures=signatures, answers=answers, timezone=timezone)
        return put_in_place(stamped, path=target)
    except OSError as error:
        msg = f"no signed copy of {path} could be written ({error.strerror}); {stored}"
        raise OutputError(msg) from error


def remove_signed_copies(path: Path) -> list[Path]:
    """Remove copies with only one signature next to a workbook, after it was withdrawn."""
    halves = [ending for roles, ending in ENDINGS.items() if len(roles) == 1]
    outdated = [
        copy for half in halves for copy in path.parent.glob(f"{path.stem}-{half}*{path.suffix}")
    ]
    for copy in outdated:
        copy.unlink(missing_ok=True)
    return outdated


def signed_bytes(
    content: bytes,
    *,
    signatures: Sequence[Signature],
    answers: Mapping[str, StoredAnswer],
    timezone: str,
) -> bytes:
    """The bytes of the workbook with signatures and answers; its other parts unchanged."""
    with opened(io.BytesIO(content)) as book:
        breaks = [*rows_in(book, BREAKS)]
        texts = {
            PAGES[SUMMARY]: _names(book, signatures=signatures, timezone=timezone)
            | _page_one(book, breaks=breaks, answers=answers),
            PAGES[BREAKS]: _answers(breaks, answers=answers),
        }
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as signed, zipfile.ZipFile(target, "w") as copy:
        for part in signed.infolist():
            data = signed.read(part)
            if texts.get(part.filename):
                data = _replaced(data.decode(), texts=texts[part.filename]).encode()
            copy.writestr(part, data, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _names(book: Any, *, signatures: Sequence[Signature], timezone: str) -> dict[str, str]:
    """Cell of page one -> its text in the copy, for the sign-off."""
    lines = {
        SIGNED_FILE[0]: "Signed was the file whose SHA-256 is",
        SIGNED_FILE[1]: signatures[0].workbook_sha256,
    }
    by_role = {SIGN_OFF[signature.role]: signature for signature in signatures}
    texts, left = {}, {*lines, *by_role}
    for number, cells in enumerate(rows_in(book, SUMMARY), 1):
        for column, cell in enumerate(cells, 1):
            if cell in lines:
                texts[_place(column, number)] = lines[cell]
            elif cell in by_role and NOT_SIGNED in cells:
                who = cells.index(NOT_SIGNED) + 1
                at = local_instant(by_role[cell].at, timezone=timezone)
                texts[_place(who, number)] = by_role[cell].by
                # The name takes two columns.
                texts[_place(who + 2, number)] = f"{at:%Y-%m-%d %H:%M}"
            else:
                continue
            left.discard(str(cell))
    if left:
        msg = "this workbook has no lines for signatures: write the report again, then sign that"
        raise OutputError(msg)
    return texts


def _page_one(
    book: Any, *, breaks: Sequence[Sequence[Any]], answers: Mapping[str, StoredAnswer]
) -> dict[str, str]:
    """Cell of page one -> its text with these answers: their number, and the owners of breaks.

    Empty when there are no answers.
    """
    if not answers:
        return {}
    codes = {break_of(row): str(row[CODE_AT]).split(" · ") for row in breaks[HEADER_ROW:]}
    severities = {key: labels[1] for key, labels in codes.items() if key}
    owners = {
        (row[0], label_of(codes[key][0]).title.lower()): (answers[key].answer.owner, codes[key][0])
        for row in breaks
        if (key := break_of(row)) in answers
    }
    texts = {}
    for number, cells in enumerate(rows_in(book, SUMMARY), 1):
        what, about, to_do = (str(cells[column]) for column in ATTENTION_AT)
        if what.startswith(NEXT):
            texts[_place(1, number)] = f"As signed: {answered_text(severities, answers)}."
        if SEVERE_LINE.match(what) and (known := owners.get((about, what.partition(": ")[2]))):
            owner, code = known
            due = _DUE.search(to_do)
            whose = f"{owner or NO_OWNER}{due[1] if due else ''}: {label_of(code).to_do}"
            texts[_place(ATTENTION_AT[-1] + 1, number)] = whose
    return texts


def _answers(
    breaks: Sequence[Sequence[Any]], *, answers: Mapping[str, StoredAnswer]
) -> dict[str, str]:
    """Cell of Breaks -> its answer; cells without an answer are not included."""
    texts = {}
    for number, cells in enumerate(breaks, 1):
        if stored := answers.get(break_of(cells)):
            for column, declared in FILLED_IN:
                value = declared.value
                text = value({"stored": stored}) if callable(value) else None
                if text not in {None, ""}:
                    texts[_place(column + 1, number)] = str(text)
    return texts


def _place(column: int, row: int) -> str:
    return f"{get_column_letter(column)}{row}"


def _replaced(page: str, *, texts: Mapping[str, str]) -> str:
    """The XML of a sheet with these texts in these cells."""
    left = dict(texts)

    def written(cell: re.Match[str]) -> str:
        text = left.pop(cell[2], None)
        if text is None:
            return cell[0]
        return cell[1] + f' t="inlineStr"><is><t>{escape(cell_text(text)[0])}</t></is></c>'

    whole = _CELL.sub(written, page)
    if left:
        msg = f"the workbook has no cell {min(left)} for it: write the report again"
        raise OutputError(msg)
    return whole
