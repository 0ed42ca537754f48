"""A copy of a signed workbook: who signed which file on page one, on which answers on Breaks.

The signed file itself can never name its signatures: a signature binds its SHA-256. The copy is the
same file, part by part, but for the lines of the sign-off and the cells of the answers.
"""

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from openpyxl.utils import get_column_letter
from python_calamine import CalamineWorkbook

from recon.model.errors import OutputError
from recon.model.resolutions import KeptAnswer
from recon.store.nights.sign_off_rows import Signature
from reports.drawing.in_place import put_in_place
from reports.drawing.package import PART_DATE
from reports.drawing.plain_text import cell_text, local_instant
from reports.sheets.breaks_sheet import ANSWERS, COLUMNS, HEADER_ROW
from reports.summary.summary_page import RIGHT
from reports.summary.summary_tonight import SIGNED_FILE, SIGNED_NAMES

PAGE_ONE = "xl/worksheets/sheet1.xml"
BREAKS_PAGE = "xl/worksheets/sheet3.xml"
NAMES = "xl/workbook.xml"
BREAKS_TITLE = "Breaks"
FILLED_IN = frozenset({*ANSWERS, "Answered by"})
ENDINGS = {
    ("reviewer",): "reviewed",
    ("approver",): "awaits-review",
    ("reviewer", "approver"): "approved",
}
"""Roles that signed -> how the copy is called."""


def write_signed_copy(
    path: Path,
    *,
    signatures: Sequence[Signature],
    answers: Mapping[str, KeptAnswer],
    timezone: str,
) -> Path:
    """Write the copy beside the workbook, with the answers by break key; its path.

    Raises:
        OutputError: it cannot be written, or the workbook is not the one that was signed.
    """
    kept = "the signature is kept (`recon nights` shows it)"
    try:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if {signature.workbook_sha256 for signature in signatures} != {digest}:
            msg = f"{path} is not the file that was signed, so no signed copy was written; {kept}"
            raise OutputError(msg)
        roles = tuple(signature.role for signature in signatures)
        target = path.with_stem(f"{path.stem}-{ENDINGS[roles]}")
        stamped = signed_bytes(content, signatures=signatures, answers=answers, timezone=timezone)
        return put_in_place(stamped, path=target)
    except OSError as error:
        msg = f"no signed copy of {path} could be written ({error.strerror}); {kept}"
        raise OutputError(msg) from error


def remove_signed_copies(path: Path) -> list[Path]:
    """Remove what names one person beside a workbook, because they took their name back."""
    halves = [ending for roles, ending in ENDINGS.items() if len(roles) == 1]
    gone = [
        copy for half in halves for copy in path.parent.glob(f"{path.stem}-{half}*{path.suffix}")
    ]
    for copy in gone:
        copy.unlink(missing_ok=True)
    return gone


def signed_bytes(
    content: bytes,
    *,
    signatures: Sequence[Signature],
    answers: Mapping[str, KeptAnswer],
    timezone: str,
) -> bytes:
    """The workbook with its signatures and its answers; all other parts as they are."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as signed, zipfile.ZipFile(target, "w") as copy:
        rows = _rows_of(signed.read(NAMES).decode())
        texts = {
            PAGE_ONE: _texts(signatures, rows=rows, timezone=timezone),
            BREAKS_PAGE: _answers(content, answers=answers),
        }
        for name in signed.namelist():
            data = signed.read(name)
            if texts.get(name):
                data = _replaced(data.decode(), texts=texts[name]).encode()
            part = zipfile.ZipInfo(name, PART_DATE)
            part.compress_type = zipfile.ZIP_DEFLATED
            copy.writestr(part, data)
    return target.getvalue()


def _rows_of(names: str) -> dict[str, int]:
    """Name of a line of the sign-off -> its row on page one."""
    wanted = (*SIGNED_NAMES.values(), *SIGNED_FILE)
    rows = {name: re.search(rf'name="{name}"[^>]*>[^<]*?\$(\d+)', names) for name in wanted}
    if not all(rows.values()):
        msg = (
            "this workbook has no lines for signatures: write the report again, then sign that one"
        )
        raise OutputError(msg)
    return {name: int(match[1]) for name, match in rows.items() if match}


def _texts(
    signatures: Sequence[Signature], *, rows: Mapping[str, int], timezone: str
) -> dict[str, str]:
    """Cell -> what it says in the copy."""
    who, when = get_column_letter(RIGHT + 1), get_column_letter(RIGHT + 2)
    first = get_column_letter(RIGHT)
    texts = {
        f"{first}{rows['signFile']}": "Signed was the file whose SHA-256 is",
        f"{first}{rows['signDigest']}": signatures[0].workbook_sha256,
    }
    for signature in signatures:
        row = rows[SIGNED_NAMES[signature.role]]
        texts[f"{who}{row}"] = signature.by
        texts[f"{when}{row}"] = f"{local_instant(signature.at, timezone=timezone):%Y-%m-%d %H:%M}"
    return texts


def _answers(content: bytes, *, answers: Mapping[str, KeptAnswer]) -> dict[str, str]:
    """Cell of Breaks -> what people had answered; cells without an answer are left alone."""
    sheet = CalamineWorkbook.from_filelike(io.BytesIO(content)).get_sheet_by_name(BREAKS_TITLE)
    keys = [row[0] if row else "" for row in sheet.to_python(skip_empty_area=False)]
    texts = {}
    for number, key in enumerate(keys[HEADER_ROW:], HEADER_ROW + 1):
        row = {"kept": answers.get(str(key))}
        for column, answer_column in enumerate(COLUMNS, 1):
            answer = (
                answer_column.value(row)
                if row["kept"] and answer_column.title in FILLED_IN
                else None
            )
            if answer not in {None, ""}:
                texts[f"{get_column_letter(column)}{number}"] = str(answer)
    return texts


_CELL = re.compile(r'(<c r="([A-Z]+[0-9]+)" s="[0-9]+")[^>]*?(?:/>|>.*?</c>)')


def _replaced(page: str, *, texts: Mapping[str, str]) -> str:
    """The sheet with these cells saying these texts."""
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
