import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.config.rules import Rules
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import RawTable
from recon.files.formats.xlsx_book import refuse_unfit_archive
from recon.files.typing.typed_table import read_table
from recon.model.errors import SourceUnreadableError
from recon.model.words import SourceKind

ABC = frozenset("abc")
SHEET = "xl/worksheets/sheet1.xml"
RELATIONS = "xl/_rels/workbook.xml.rels"


def workbook(rows: Sequence[Sequence[Any]], **more_sheets: Sequence[Sequence[Any]]) -> bytes:
    """An .xlsx of one sheet of rows, and more if named."""
    book = openpyxl.Workbook()
    sheets = {"orders": rows, **more_sheets}
    book.remove(book.worksheets[0])
    for title, cells in sheets.items():
        sheet = book.create_sheet(title)
        for row in cells:
            sheet.append(list(row))
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def repacked(
    content: bytes,
    *,
    add: Mapping[str, bytes] | None = None,
    edit: Callable[[str, bytes], bytes] | None = None,
) -> bytes:
    """The same archive with parts added or edited."""
    result = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for entry in old.infolist():
            text = old.read(entry)
            new.writestr(entry.filename, edit(entry.filename, text) if edit else text)
        for name, text in (add or {}).items():
            new.writestr(name, text)
    return result.getvalue()


def edited(pattern: bytes, replacement: bytes, *, rows: Sequence[Sequence[Any]]) -> bytes:
    """A workbook whose sheet XML was edited by hand."""

    def edit(name: str, text: bytes) -> bytes:
        return re.sub(pattern, replacement, text, count=1) if name == SHEET else text

    return repacked(workbook(rows), edit=edit)


def far_off(column: str) -> bytes:
    """A last row of one cell, and the end of the sheet."""
    place = f"{column}1048576".encode()
    return b'<row r="1048576"><c r="' + place + b'"><v>1</v></c></row></sheetData>'


def workbook_part(rows: str) -> bytes:
    """The XML of one more sheet."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    text = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return text.encode()


def with_strings(strings: str, *, cell: bytes, at: str = "xl/sharedStrings.xml") -> bytes:
    """A workbook with shared strings, and a first cell of the second row."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    relation = f'<Relationship Id="rS" Type="{kind}" Target="/{at}"/></Relationships>'

    def edit(name: str, text: bytes) -> bytes:
        if name == RELATIONS:
            return text.replace(b"</Relationships>", relation.encode())
        return re.sub(rb'<c r="A2".*?</c>', lambda _: cell, text) if name == SHEET else text

    text = f'<sst xmlns="{space}">{strings}</sst>'
    return repacked(PLAIN, add={at: text.encode()}, edit=edit)


def read(content: bytes) -> RawTable:
    """Read a workbook of this content."""
    return raw_of(FileBytes(Path("orders.xlsx"), content, ""), wanted=ABC)


ROWS = [["a", "b", "c"], ["1", "2", "3"]]
PLAIN = workbook(ROWS)
PLAIN_CELL = b'<c r="A2"><v>1</v></c>'
REFUSED = {
    "csv by another name": (b"a,b,c\n1,2,3\n", "is not an .xlsx workbook"),
    "encrypted or old": (b"\xd0\xcf\x11\xe0" + b"\0" * 600, "is encrypted or an old .xls"),
    "cut in half": (PLAIN[: len(PLAIN) // 2], "is a damaged workbook"),
    "damaged inside": (PLAIN[:200] + b"\xff" * 40 + PLAIN[240:], "damaged workbook|parts|zip"),
    "a zip of something else": (
        repacked(b"PK\x05\x06" + b"\0" * 18, add={"readme.txt": b"hello"}),
        "is a zip but not an .xlsx workbook",
    ),
    "macros": (repacked(PLAIN, add={"xl/vbaProject.bin": b"x"}), "holds macros"),
    "links to files": (
        repacked(PLAIN, add={"xl/externalLinks/externalLink1.xml": b"<a/>"}),
        "holds links to other files",
    ),
    "embedded file": (repacked(PLAIN, add={"xl/embeddings/a.bin": b"x"}), "holds embedded files"),
    "connection": (repacked(PLAIN, add={"xl/connections.xml": b"<a/>"}), "connections to other"),
    "document type": (
        edited(rb"<worksheet", b"<!DOCTYPE worksheet><worksheet", rows=ROWS),
        "with a document type",
    ),
    "part in utf-16": (
        repacked(PLAIN, add={"xl/extra.xml": "<a/>".encode("utf-16")}),
        "that is not UTF-8",
    ),
    "bomb in one part": (repacked(PLAIN, add={"xl/x.xml": b" " * 3_000_000}), "more than 1:100"),
    "too many parts": (
        repacked(PLAIN, add={f"xl/p{number}.xml": b"" for number in range(1_001)}),
        "parts; at most 1000",
    ),
    "far-off cell": (
        edited(b"</sheetData>", far_off("XFD"), rows=ROWS),
        "of 1048576 rows and 16384 columns",
    ),
    "too many cells": (
        edited(b"</sheetData>", far_off("IV"), rows=ROWS),
        "of 1048576 rows and 256 columns",
    ),
    "formula never calculated": (
        workbook([*ROWS, ["1", "=1+1", "3"]]),
        "formula that was never calculated in cell B3",
    ),
    "error value": (
        workbook([*ROWS, ["1", "#N/A", "3"]]),
        "an error such as #N/A in cell B3",
    ),
    "cell twice": (
        edited(rb'r="C2"', b'r="B2"', rows=ROWS),
        "cell B2 stands at the wrong place of row 2; save it again",
    ),
    "type that does not exist": (
        edited(rb't="inlineStr"|t="s"', b't="nlineStr"', rows=ROWS),
        "cell A1 has the type 'nlineStr', which does not exist",
    ),
    "sheet where nobody looked": (
        repacked(
            PLAIN,
            add={"xl/data.xml": b"<a/>"},
            edit=lambda name, text: (
                text.replace(b"worksheets/sheet1.xml", b"data.xml") if name == RELATIONS else text
            ),
        ),
        "xl/data.xml holds 'a' and no sheet",
    ),
    "sheet by another kind of relation": (
        repacked(
            PLAIN,
            add={"xl/data.xml": b"<a/>"},
            edit=lambda name, text: (
                text.replace(b"worksheets/sheet1.xml", b"data.xml").replace(
                    b"relationships/worksheet", b"relationships/sheet"
                )
                if name == RELATIONS
                else text
            ),
        ),
        "xl/data.xml holds 'a' and no sheet",
    ),
    "strings in strings": (
        with_strings("<si><si/></si>", cell=PLAIN_CELL),
        "has a string inside another element",
    ),
    "index behind the last string": (
        with_strings("<si><t>a</t></si>", cell=b'<c r="A2" t="s"><v>1</v></c>'),
        "cell A2 holds the shared string '1', which there is not",
    ),
    "sheet cut": (edited(rb"</worksheet>", b"", rows=ROWS), "is not well-formed XML"),
    "no cells at all": (workbook([]), "no sheet has even a header"),
    "two sheets with content": (workbook(ROWS, second=ROWS), "2 sheets with content"),
    "column twice": (workbook([["a", "b", "a"]]), "one name for columns 1 and 3"),
    "nameless column": (workbook([["a", None, "c"]]), "no name for column 2"),
}


@pytest.mark.parametrize(("content", "told"), REFUSED.values(), ids=REFUSED)
def test_a_workbook_that_is_not_plain_is_refused(content: bytes, told: str) -> None:
    """Bombs, macros, links, far-off cells and files of another kind never reach a reader."""
    with pytest.raises(SourceUnreadableError, match=told):
        read(content)


def test_a_part_twice_is_refused() -> None:
    """Two parts of one name could show one table to a person and another to a machine."""
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        pytest.raises(SourceUnreadableError, match="two parts of one name"),
    ):
        read(repacked(PLAIN, add={SHEET: b"<a/>"}))


@given(st.integers(0, len(PLAIN) - 1), st.binary(min_size=1, max_size=8))
@settings(max_examples=150)
def test_damaged_bytes_end_in_a_sentence(place: int, noise: bytes) -> None:
    """Whatever is wrong with its bytes, a workbook is read or refused, never a crash."""
    content = PLAIN[:place] + noise + PLAIN[place + len(noise) :]
    try:
        table = read(content)
    except SourceUnreadableError as error:
        assert str(error).startswith("orders.xlsx ")  # noqa: PT017 - both ways are right
    else:
        assert table.rows_read <= 1


def test_a_declared_size_is_bounded_before_anything_is_unpacked() -> None:
    """What a zip declares of itself is enough to refuse it."""
    content = bytearray(repacked(PLAIN, add={"xl/x.xml": b"x"}))
    place = content.rfind(b"PK\x01\x02")
    content[place + 24 : place + 28] = (300 * 1024 * 1024).to_bytes(4, "little")
    with pytest.raises(SourceUnreadableError, match="unpacks to 3145"):
        refuse_unfit_archive(bytes(content), name="orders.xlsx")


def test_cells_become_text_and_numbers_stay_marked() -> None:
    """Text keeps its zeros, numbers show their shortest decimal text, dates are ISO."""
    table = read(
        workbook(
            [
                ["a", "b", "c"],
                ["000123", 10.5, datetime(2026, 1, 5, 10, 30)],  # noqa: DTZ001 - as Excel has it
                [" x ", 100, date(2026, 1, 5)],
                [None, 1234567.89, True],
            ]
        )
    )
    assert table.columns["a"].to_pylist() == ["000123", "x", ""]
    assert table.columns["b"].to_pylist() == ["10.5", "100", "1234567.89"]
    assert table.columns["c"].to_pylist() == ["2026-01-05T10:30:00", "2026-01-05", "TRUE"]
    assert table.numbers["b"].to_pylist() == [True, True, True]
    assert "a" not in table.numbers


def test_rows_are_numbered_as_excel_shows_them() -> None:
    """Empty rows count, an empty sheet beside the full one does not matter."""
    table = read(workbook([[], ["a", "b", "c"], ["1", "2", "3"], [], ["4", "5", "6"]], empty=[]))
    assert table.lines.tolist() == [3, 5]


def test_a_cell_beside_the_named_columns_makes_a_bad_row() -> None:
    """What stands outside the table is named, not dropped; a zero is content, too."""
    table = read(workbook([["a", "b", "c"], ["1", "2", "3", 0], ["4", "5", "6"]]))
    assert [(bad.line, bad.reason) for bad in table.bad_rows] == [
        (2, "has a cell beside the 3 named columns")
    ]
    assert table.columns["a"].to_pylist() == ["4"]


def test_orders_in_excel_read_like_orders_in_csv(tmp_path: Path) -> None:
    """Number cells complete their decimals exactly; what no currency can hold is a reject."""
    names = ["merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"]
    moment = datetime(2026, 1, 5, 10, 30)  # noqa: DTZ001 - as Excel has it
    amounts = [("EUR", 10.5), ("EUR", 10), ("JPY", 1200), ("KWD", 1.2), ("EUR", "7.25")]
    bad: list[tuple[str, Any]] = [("EUR", 0.125), ("JPY", 1.5), ("EUR", -1), ("EUR", 1e16)]
    rows = [
        [100042, 100042001, f"A-{place}", currency, amount, "paid", moment]
        for place, (currency, amount) in enumerate([*amounts, *bad])
    ]
    path = tmp_path / "orders.xlsx"
    path.write_bytes(workbook([names, *rows, [100042, 1.5, 7, "EUR", 1, "paid", moment]]))
    table = read_table(path, kind=SourceKind.ORDERS, rules=Rules())
    assert table.frame["amount"].tolist() == [1050, 1000, 1200, 1200, 725]
    assert set(table.frame["merchant_id"]) == {"100042"}
    assert [(reject.line, reject.column) for reject in table.rejects] == [
        *((line, "amount") for line in (7, 8, 9, 10)),
        (11, "account_id"),
    ]


WRITTEN = {
    "90071992547409.93": [],
    "90071992547409.94": [],
    "123456789012345.67": [],
    "9999999999999.99": [999999999999999],
    "0.10000000000000001": [10],
    "1.005E2": [10050],
    "12.500000000000002": [],
}
"""What stands in the sheet's XML -> the amount in minor units, where it is certain."""


@pytest.mark.parametrize(("written", "amounts"), WRITTEN.items())
def test_an_amount_of_more_digits_than_a_number_holds_is_refused(
    written: str, amounts: list[int], tmp_path: Path
) -> None:
    """Two texts of 16 digits are one number in a workbook: no cent of it is guessed."""
    names = ["merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"]
    row = ["1", "2", "A-1", "EUR", 77777, "paid", "2026-01-05T10:00:00Z"]
    path = tmp_path / "orders.xlsx"
    path.write_bytes(edited(b"<v>77777</v>", f"<v>{written}</v>".encode(), rows=[names, row]))
    table = read_table(path, kind=SourceKind.ORDERS, rules=Rules())

    assert table.frame["amount"].tolist() == amounts
    assert [reject.column for reject in table.rejects] == ["amount"] * (1 - len(amounts))
