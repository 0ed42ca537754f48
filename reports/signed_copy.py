"""A copy of a signed workbook whose page one says who signed which file.

The signed file itself can never name its signatures: a signature binds its SHA-256. The copy is the
same file, part by part, but for the lines of the sign-off on page one.
"""

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from openpyxl.utils import get_column_letter

from recon.errors import OutputError
from recon.store.sign_off_rows import Signature
from reports.in_place import put_in_place
from reports.package import PART_DATE
from reports.plain_text import cell_text, local_instant
from reports.summary_page import RIGHT
from reports.summary_tonight import SIGNED_FILE, SIGNED_NAMES

PAGE_ONE = "xl/worksheets/sheet1.xml"
NAMES = "xl/workbook.xml"
ENDINGS = {1: "reviewed", 2: "approved"}
"""Signatures -> how the copy is called."""


def write_signed_copy(path: Path, *, signatures: Sequence[Signature], timezone: str) -> Path:
    """Write the copy beside the workbook; its path.

    Raises:
        OutputError: it cannot be written, or the workbook is not the one that was signed.
    """
    kept = "the signature is kept (`recon nights` shows it)"
    try:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if {one.workbook_sha256 for one in signatures} != {digest}:
            msg = f"{path} is not the file that was signed, so no signed copy was written; {kept}"
            raise OutputError(msg)
        target = path.with_stem(f"{path.stem}-{ENDINGS[len(signatures)]}")
        stamped = signed_bytes(content, signatures=signatures, timezone=timezone)
        return put_in_place(stamped, path=target)
    except OSError as error:
        msg = f"no signed copy of {path} could be written ({error.strerror}); {kept}"
        raise OutputError(msg) from error


def signed_bytes(content: bytes, *, signatures: Sequence[Signature], timezone: str) -> bytes:
    """The workbook with its signatures on page one; all other parts as they are."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as signed, zipfile.ZipFile(target, "w") as copy:
        rows = _rows_of(signed.read(NAMES).decode())
        texts = _texts(signatures, rows=rows, timezone=timezone)
        for name in signed.namelist():
            data = signed.read(name)
            if name == PAGE_ONE:
                data = _replaced(data.decode(), texts=texts).encode()
            part = zipfile.ZipInfo(name, PART_DATE)
            part.compress_type = zipfile.ZIP_DEFLATED
            copy.writestr(part, data)
    return target.getvalue()


def _rows_of(names: str) -> dict[str, int]:
    """Name of a line of the sign-off -> its row on page one."""
    wanted = (*SIGNED_NAMES.values(), *SIGNED_FILE)
    found = {name: re.search(rf'name="{name}"[^>]*>[^<]*?\$(\d+)', names) for name in wanted}
    if not all(found.values()):
        msg = (
            "this workbook has no lines for signatures: write the report again, then sign that one"
        )
        raise OutputError(msg)
    return {name: int(match[1]) for name, match in found.items() if match}


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
    for one in signatures:
        row = rows[SIGNED_NAMES[one.role]]
        texts[f"{who}{row}"] = one.by
        texts[f"{when}{row}"] = f"{local_instant(one.at, timezone=timezone):%Y-%m-%d %H:%M}"
    return texts


def _replaced(page: str, *, texts: Mapping[str, str]) -> str:
    for place, text in texts.items():
        cell = re.search(rf'(<c r="{place}" s="\d+")[^>]*?(?:/>|>.*?</c>)', page)
        if cell is None:
            msg = f"page one has no cell {place} for a signature: write the report again"
            raise OutputError(msg)
        written = f' t="inlineStr"><is><t>{escape(cell_text(text)[0])}</t></is></c>'
        page = page[: cell.start()] + cell[1] + written + page[cell.end() :]
    return page
