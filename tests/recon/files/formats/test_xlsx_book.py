import io
import re
import zipfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl import Workbook

from recon.config.rules import Rules
from recon.files.formats.format_limits import CELL_CHARACTERS_MAX
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.xlsx_book import (
    CELL_TYPES,
    FormCell,
    read_form,
    refuse_unfit_form,
    sheet_texts,
)
from recon.model.errors import SourceUnreadableError
from recon.model.terms import SourceKind
from tests.recon.files.kind_cases import SPACE, book_of
from tests.recon.files.strict_reader import SHEET
from tests.recon.files.whole_read import read_table

ABC = frozenset("abc")
RELATIONS = "xl/_rels/workbook.xml.rels"


def workbook(rows, **more_sheets):
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


def repacked(content, *, add=None, edit=None):
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


def edited(pattern, replacement, *, rows):
    """A workbook whose sheet XML was edited by hand."""

    def edit(name, text):
        return re.sub(pattern, replacement, text, count=1) if name == SHEET else text

    return repacked(workbook(rows), edit=edit)


def far_off(column):
    """A last row of one cell, and the end of the sheet."""
    place = f"{column}1048576".encode()
    return b'<row r="1048576"><c r="' + place + b'"><v>1</v></c></row></sheetData>'


def with_strings(strings, *, cell, at="xl/sharedStrings.xml"):
    """A workbook with shared strings, and a first cell of the second row."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    relation = f'<Relationship Id="rS" Type="{kind}" Target="/{at}"/></Relationships>'

    def edit(name, text):
        if name == RELATIONS:
            return text.replace(b"</Relationships>", relation.encode())
        return re.sub(rb'<c r="A2".*?</c>', lambda _: cell, text) if name == SHEET else text

    text = f'<sst xmlns="{SPACE}">{strings}</sst>'
    return repacked(PLAIN, add={at: text.encode()}, edit=edit)


def read(content):
    return raw_of(FileBytes(Path("orders.xlsx"), content, ""), columns_read=ABC)


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
def test_a_workbook_that_is_not_plain_is_refused(content, told):
    with pytest.raises(SourceUnreadableError, match=told):
        read(content)


def test_a_part_twice_is_refused():
    """Two parts of one name could show one table to a person and another to a machine."""
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        pytest.raises(SourceUnreadableError, match="two parts of one name"),
    ):
        read(repacked(PLAIN, add={SHEET: b"<a/>"}))


def test_a_declared_size_is_bounded_before_anything_is_unpacked():
    content = bytearray(repacked(PLAIN, add={"xl/x.xml": b"x"}))
    place = content.rfind(b"PK\x01\x02")
    content[place + 24 : place + 28] = (300 * 1024 * 1024).to_bytes(4, "little")
    with pytest.raises(SourceUnreadableError, match="unpacks to 3145"):
        read(bytes(content))


def test_cells_become_text_and_numbers_stay_marked():
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


def test_a_cell_beside_the_named_columns_makes_a_bad_row():
    table = read(workbook([["a", "b", "c"], ["1", "2", "3", 0], ["4", "5", "6"]]))
    assert [(bad.line, bad.reason) for bad in table.bad_rows] == [
        (2, "has a cell beside the 3 named columns")
    ]
    assert table.columns["a"].to_pylist() == ["4"]


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
def test_an_amount_of_more_digits_than_a_number_holds_is_refused(written, amounts, tmp_path):
    """Two texts of 16 digits are one number in a workbook: no cent of it is guessed."""
    names = ["merchant_id", "account_id", "order_no", "currency", "amount", "status", "ordered_at"]
    row = ["1", "2", "A-1", "EUR", 77777, "paid", "2026-01-05T10:00:00Z"]
    path = tmp_path / "orders.xlsx"
    path.write_bytes(edited(b"<v>77777</v>", f"<v>{written}</v>".encode(), rows=[names, row]))
    table = read_table(path, kind=SourceKind.ORDERS, rules=Rules())

    assert table.frame["amount"].tolist() == amounts
    assert [reject.column for reject in table.rejects] == ["amount"] * (1 - len(amounts))


XLSX_CELLS_ROWS = (
    '<row r="1" spans="1:3"><c r="A1" t="s"><v>0</v></c><c r="B1" s="0"><v>1</v></c></row>'
    '<row r="7"><c r="C7" t="inlineStr"><is><t>a &gt; b</t></is></c><c r="AB7" t="b"/></row>'
)
STATED = [(1, ["zero", "1"]), (7, ["", "", "a > b"])]


def sheet(rows=XLSX_CELLS_ROWS, prefix=""):
    """The XML of a sheet."""
    space = f'xmlns{":" if prefix else ""}{prefix.rstrip(":")}="{SPACE}"'
    text = f'<cols><col min="1"/></cols><sheetData>{rows}</sheetData></worksheet>'
    text = re.sub(r"<(/?)(?=[A-Za-z])", rf"<\1{prefix}", text)
    return f"<{prefix}worksheet {space}>{text}".encode()


def said(text, *, strings="<si><t>zero</t></si>"):
    """Number and cells of every row with content."""
    file = FileBytes(Path("o.xlsx"), book_of(text, strings=strings), "")
    return sheet_texts(file, rows_max=10_000)


def test_a_plain_sheet_says_what_its_cells_say():
    assert said(sheet()) == STATED
    assert said(sheet(prefix="x:")) == STATED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('r="C7"', "r = 'C7'"),
        ('r="C7" t="inlineStr"', 't="inlineStr" r="C7"'),
        ("<row r", "<!-- <c --><row r"),
        ('<row r="7">', "<row>"),
    ],
)
def test_a_sheet_that_is_written_otherwise_is_read_as_well(old, new):
    rows = XLSX_CELLS_ROWS.replace(old, new, 1)
    assert rows != XLSX_CELLS_ROWS
    rows = rows.replace("7", "2") if "<row>" in new else rows
    assert said(sheet(rows)) == ([STATED[0], (2, STATED[1][1])] if "<row>" in new else STATED)


def test_cells_may_all_leave_out_their_places():
    rows = "<row><c><v>1</v></c><c/></row><row><c/><c><v>2</v></c></row>"
    assert said(sheet(rows)) == [(1, ["1"]), (2, ["", "2"])]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"AB7"', '"C7"', "cell C7 stands at the wrong place of row 7"),
        ('"AB7"', '"B7"', "cell B7 stands at the wrong place of row 7"),
        ('"AB7"', '"AB8"', "cell AB8 stands at the wrong place of row 7"),
        ('<c r="AB7" t', "<c t", "a cell of row 7 does not say where it stands"),
        ('t="inlineStr"', 'u="inlineStr"', "cell C7 has 'u', which no cell has"),
        ("</t></is>", "</t>9</is>", "text stands between the cells' elements at row 7 ('9')"),
        ("</is></c>", "</is>9</c>", "text stands between the cells' elements at row 7 ('9')"),
        ("<is><t>", "<is>9<t>", "text stands between the cells' elements at row 7 ('9')"),
        ("<v>1</v></c>", "9<v>1</v></c>", "text stands between the cells' elements at row 1"),
        ('t="b"/>', 't="b"/>9', "text stands between the cells' elements at row 7 ('9')"),
        ('<row r="7">', '<row r="7">9', "text stands between the cells' elements at row 7"),
        ("</is></c>", "</is> 9</c>", "text stands between the cells' elements at row 7 (' 9')"),
        ('t="b"/>', 't="b"/>\n9 ', "text stands between the cells' elements at row 7"),
        ('"AB7"', '"A0B7"', "a cell of row 7 does not say where it stands"),
        ('"AB7"', '"AB7777777777777"', "a cell of row 7 does not say where it stands"),
        ('"AB7"', '"7"', "a cell of row 7 does not say where it stands"),
        ('<row r="7">', '<row r2="7">', "row 2 has 'r2', which no row has"),
        ('<row r="7">', '<row r="A7">', "row 'A7' stands behind row 1"),
        ('"AB7"', '"A\u00e47"', "a cell of row 7 does not say where it stands"),
        ('<row r="7">', '<row r="1">', "row '1' stands behind row 1"),
        ('<row r="7">', '<row r="x">', "row 'x' stands behind row 1"),
        ('<row r="7">', '<row r="7"></row><row r="7">', "row '7' stands behind row 7"),
        ('t="b"', 't="B"', "cell AB7 has the type 'B', which does not exist"),
        ('t="inlineStr"', "t = 'nlineStr'", "cell C7 has the type 'nlineStr'"),
    ],
)
def test_a_cell_that_stands_nowhere_is_refused(old, new, told):
    rows = XLSX_CELLS_ROWS.replace(old, new, 1)
    assert rows != XLSX_CELLS_ROWS
    with pytest.raises(SourceUnreadableError) as refused:
        said(sheet(rows))
    assert str(refused.value).startswith(f"o.xlsx is a damaged workbook: in {SHEET}, {told}")
    assert str(refused.value).endswith("; save it again")


def test_a_sheet_of_another_name_space_is_refused():
    strict = sheet().replace(SPACE.encode(), b"http://purl.oclc.org/ooxml/spreadsheetml/main")
    assert said(strict) == STATED
    with pytest.raises(SourceUnreadableError, match=r"holds 'http://sch3mas.* and no sheet"):
        said(sheet().replace(b"schemas", b"sch3mas"))


def form_of(content, folder):
    """A workbook that somebody sent back."""
    path = folder / "o.xlsx"
    path.write_bytes(content)
    return path


def test_every_type_of_the_format_is_known(tmp_path):
    cells = "".join(f'<c r="{chr(65 + at)}1" t="{t}"/>' for at, t in enumerate(sorted(CELL_TYPES)))
    assert len(CELL_TYPES) == 7
    refuse_unfit_form(form_of(book_of(sheet(f'<row r="1">{cells}</row>')), tmp_path))


@pytest.mark.parametrize("text", [b"", b"<a>", b"<a>\x01</a>", b"<a>\xff</a>", b"<a/><b/>"])
def test_a_part_that_is_no_xml_is_refused(text, tmp_path):
    for read in (said, lambda content: refuse_unfit_form(form_of(book_of(content), tmp_path))):
        with pytest.raises(SourceUnreadableError, match=r"is not well-formed XML \("):
            read(text)


CELL = '<row r="1"><c r="A1"{}</c></row>'
TWO_FACED = {
    "a comment": ("><v>12<!--x-->3.45</v>", "a comment or an instruction"),
    "an instruction": ("><v>12<?x y?>3.45</v>", "a comment or an instruction"),
    "an empty value behind a text": (' t="inlineStr"><is><t>1.00</t></is><v/>', "'is' and 'v'"),
    "an empty value before a text": (' t="inlineStr"><v/><is><t>1.00</t></is>', "'v' and 'is'"),
    "a value under a text's type": (' t="inlineStr"><v>9</v>', "'v' under type 'inlineStr'"),
    "a text under a number's type": ("><is><t>5</t></is>", "'is' under type 'n'"),
    "two values": ("><v>1</v><v>2</v>", "more than one 'v'"),
    "two texts": (' t="inlineStr"><is><t>1</t></is><is><t>2</t></is>', "more than one 'is'"),
    "a value in a value": ("><v>1<v>2</v></v>", "'v' stands inside 'v'"),
    "a value of another name space": ('><z:v xmlns:z="urn:x">3</z:v>', "'v' stands inside 'c'"),
    "a value in an extension": ("><extLst><ext><v>3</v></ext></extLst>", "inside 'extLst'"),
    "a cell in a cell": ('><c r="B1"><v>3</v></c>', "'c' stands inside 'c'"),
    "spaces around a number": ("><v> 12.5 </v>", "the value ' 12.5 ', which there is not"),
    "a number in hex": ("><v>0x10</v>", "the value '0x10', which there is not"),
    "a word as number": ("><v>NaN</v>", "the value 'NaN', which there is not"),
    "a number with a comma": ("><v>1,5</v>", "the value '1,5', which there is not"),
    "a third truth": (' t="b"><v>2</v>', "the value '2', which there is not under type 'b'"),
    "a negative index": (' t="s"><v>-1</v>', "the shared string '-1', which there is not"),
    "an index that is a word": (' t="s"><v>x</v>', "the shared string 'x', which there is not"),
    "half an index": (' t="s"><v>0.5</v>', "the shared string '0.5', which there is not"),
    "an index with a zero": (' t="s"><v>00</v>', "the shared string '00', which there is not"),
    "an index of none": (' t="s"><v>1</v>', "the shared string '1', which there is not"),
    "an empty index": (' t="s"><v/>', "the shared string '', which there is not"),
}


@pytest.mark.parametrize("case", TWO_FACED)
def test_a_cell_that_readers_understand_differently_is_refused(case):
    inside, told = TWO_FACED[case]
    with pytest.raises(SourceUnreadableError) as refused:
        said(sheet(CELL.format(inside)))
    assert told in str(refused.value)
    assert ("cell A1 holds" in str(refused.value)) == (
        "stands inside" not in told and told != "inside 'extLst'"
    )


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("><v>123.45</v>", "123.45"),
        ("><v>-1.0E-2</v>", "-0.01"),
        ("><v>1e3</v>", "1000"),
        ("><v>12&#51;.45</v>", "123.45"),
        ("><v><![CDATA[123.45]]></v>", "123.45"),
        (' t="s"><v>0</v>', "zero"),
        (' t="b"><v>1</v>', "TRUE"),
        (' t="str"><f>A1&amp;B1</f><v>A &amp; B</v>', "A & B"),
        ("><f>1+1</f><v>2</v>", "2"),
        (' t="inlineStr"><is><r><rPr><b/></rPr><t>1</t></r><r><t>2</t></r></is>', "12"),
        (' t="inlineStr"><is><t> a &lt; b </t><rPh sb="0" eb="1"><t>x</t></rPh></is>', " a < b "),
    ],
)
def test_what_the_common_writers_write_is_read_to_the_last_character(inside, text):
    assert said(sheet(CELL.format(inside))) == [(1, [text])]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (sheet().replace(b"</sheetData>", b"</sheetData><sheetData/>"), "in more than one place"),
        (sheet().replace(b"<cols>", b"<x><sheetData/></x><cols>"), "in more than one place"),
        (sheet().replace(b"</worksheet>", b"<row r='8'/></worksheet>"), "outside the data"),
    ],
)
def test_rows_that_no_reader_would_count_are_refused(text, told):
    with pytest.raises(SourceUnreadableError, match=told):
        said(text)


def test_a_formula_in_a_form_needs_no_value(tmp_path):
    text = sheet(CELL.format("><f>1+1</f>"))
    (row,) = read_form(form_of(book_of(text), tmp_path), titles=("orders",)).sheets["orders"]
    assert row == (FormCell("=1+1", is_formula=True),)
    with pytest.raises(SourceUnreadableError, match="never calculated in cell A1"):
        said(text)


def test_runs_of_a_shared_string_count_together():
    strings = "<si><t>zero</t></si><si/><si><r><t>x</t></r><r><t>yz</t></r></si>"
    rows = '<row r="1"><c r="A1" t="s"><v>2</v></c><c r="B1" t="s"><v>1</v></c></row>'
    assert said(sheet(rows), strings=strings) == [(1, ["xyz"])]


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("<si><si><t>a</t></si></si>", "has a string inside another element"),
        ("<x><si><t>a</t></si></x>", "has a string inside another element"),
        ('<si xmlns="urn:x"><t>a</t></si>', "has a string inside another element"),
        (f"<si><t>{'a' * (CELL_CHARACTERS_MAX + 1)}</t></si>", "string 0 of xl/sharedStrings.xml"),
    ],
)
def test_shared_strings_of_another_shape_are_refused(inside, told):
    """Where readers would count them differently, an index would name another string."""
    with pytest.raises(SourceUnreadableError, match=told):
        said(sheet(), strings=inside)


STYLES = f"""<styleSheet xmlns="{SPACE}"><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/>
<numFmt numFmtId="165" formatCode='#,##0.00 "days"'/><numFmt numFmtId="166" formatCode="dd/mm/yy"/>
</numFmts><cellXfs><xf/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/>
<xf numFmtId="166"/><xf numFmtId="46"/></cellXfs></styleSheet>"""


@pytest.mark.parametrize(
    ("style", "value", "text"),
    [
        (0, "46027", "46027"),
        (1, "46027", "2026-01-05"),
        (1, "46027.4375", "2026-01-05T10:30:00"),
        (4, "46027", "2026-01-05"),
        (1, "0.4375", "10:30:00"),
        (1, "1", "1900-01-01"),
        (2, "46027", "46027"),
        (3, "46027", "46027"),
        (5, "46027", "46027"),
        (1, "-1", "-1"),
        (1, "2958466", "2958466"),
    ],
)
def test_a_number_is_a_date_where_its_format_says_so(style, value, text):
    """A format of hours that go on, or a letter in quotes, makes no date."""
    cell = f'<row r="1"><c r="A1" s="{style}"><v>{value}</v></c></row>'
    file = FileBytes(Path("o.xlsx"), book_of(sheet(cell), styles=STYLES), "")
    assert sheet_texts(file, rows_max=1) == [(1, [text])]


def saved(path, *rows):
    """A workbook with one sheet `Form`."""
    book: Any = Workbook()
    book.active.title = "Form"
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_a_form_says_what_people_wrote(tmp_path):
    path = saved(tmp_path / "f.xlsx", ["x", 7, date(2026, 11, 21), True, "=1+1"], [], [None, -0.5])
    row, nothing, last = read_form(path, titles=("Form",)).sheets["Form"]
    assert [cell.value for cell in row[:4]] == ["x", 7, "2026-11-21", True]
    assert row[4] == FormCell("=1+1", is_formula=True)
    assert (nothing, [cell.value for cell in last]) == ((), [None, -0.5])
    with pytest.raises(SourceUnreadableError, match="'Breaks'"):
        read_form(path, titles=("Breaks",))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (repacked(PLAIN, add={"xl/vbaProject.bin": b"x"}), "macros"),
        (repacked(PLAIN, add={"xl/more.xml": b"<!DOCTYPE a><a/>"}), "document type"),
        *((content, r"f\.xlsx") for content in (b"", b"PK\x03\x04 no zip", b"name,amount\n")),
    ],
    # A ZIP has the time at which it was made, and workers that start apart would name it apart.
    ids=["macros", "document type", "empty", "no ZIP", "CSV"],
)
def test_a_form_that_is_no_plain_workbook_is_refused(content, told, tmp_path):
    path = tmp_path / "f.xlsx"
    path.write_bytes(content)
    with pytest.raises(SourceUnreadableError, match=told):
        read_form(path, titles=("Form",))
