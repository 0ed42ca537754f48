import io
import re
import zipfile
from pathlib import Path

import pytest

from recon.files.formats.format_limits import CELL_CHARACTERS_MAX
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import EveryColumn
from recon.files.formats.xlsx_book import CELL_TYPES, refuse_unfit_archive, sheet_texts
from recon.model.errors import SourceUnreadableError

PART = "xl/worksheets/sheet1.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ROWS = (
    '<row r="1" spans="1:3"><c r="A1" t="s"><v>0</v></c><c r="B1" s="1"><v>1</v></c></row>'
    '<row r="7"><c r="C7" t="inlineStr"><is><t>a &gt; b</t></is></c><c r="AB7" t="b"/></row>'
)
SAID = [(1, ["zero", "1"]), (7, ["", "", "a > b"])]
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def sheet(rows: str = ROWS, prefix: str = "") -> bytes:
    """The XML of a sheet."""
    space = f'xmlns{":" if prefix else ""}{prefix.rstrip(":")}="{MAIN}"'
    text = f'<cols><col min="1"/></cols><sheetData>{rows}</sheetData></worksheet>'
    text = re.sub(r"<(/?)(?=[A-Za-z])", rf"<\1{prefix}", text)
    return f"<{prefix}worksheet {space}>{text}".encode()


def book(text: bytes, *, strings: str = "<si><t>zero</t></si>") -> bytes:
    """A workbook of one sheet."""
    kinds = {"worksheet": "worksheets/sheet1.xml", "sharedStrings": "sharedStrings.xml"}
    relations = "".join(
        f'<Relationship Id="r{at}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(kinds.items())
    )
    parts = {
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATION}"><sheets>'
        '<sheet name="o" sheetId="1" r:id="r0"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f"<Relationships xmlns='urn:p'>{relations}</Relationships>",
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{strings}</sst>',
        PART: text,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


def said(text: bytes, *, strings: str = "<si><t>zero</t></si>") -> list[tuple[int, list[str]]]:
    """Number and cells of every row with content."""
    file = FileBytes(Path("o.xlsx"), book(text, strings=strings), "")
    return sheet_texts(file, rows_max=10_000)


def test_a_plain_sheet_says_what_its_cells_say() -> None:
    """With and without a prefix of the name space."""
    assert said(sheet()) == SAID
    assert said(sheet(prefix="x:")) == SAID


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('r="C7"', "r = 'C7'"),
        ('r="C7" t="inlineStr"', 't="inlineStr" r="C7"'),
        ("<row r", "<!-- <c --><row r"),
        ('<row r="7">', "<row>"),
    ],
)
def test_a_sheet_that_is_written_otherwise_is_read_as_well(old: str, new: str) -> None:
    """Other quotes, other orders of attributes and comments between cells change nothing."""
    rows = ROWS.replace(old, new, 1)
    assert rows != ROWS
    rows = rows.replace("7", "2") if "<row>" in new else rows
    assert said(sheet(rows)) == ([SAID[0], (2, SAID[1][1])] if "<row>" in new else SAID)


def test_cells_may_all_leave_out_their_places() -> None:
    """Then each stands behind the one before."""
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
def test_a_cell_that_stands_nowhere_is_refused(old: str, new: str, told: str) -> None:
    """The message names the part and the cell; two cells never share a place."""
    rows = ROWS.replace(old, new, 1)
    assert rows != ROWS
    with pytest.raises(SourceUnreadableError) as refused:
        said(sheet(rows))
    assert str(refused.value).startswith(f"o.xlsx is a damaged workbook: in {PART}, {told}")
    assert str(refused.value).endswith("; save it again")


def test_a_sheet_of_another_name_space_is_refused() -> None:
    """What only looks like a sheet is none, and both name spaces of the format are."""
    strict = sheet().replace(MAIN.encode(), b"http://purl.oclc.org/ooxml/spreadsheetml/main")
    assert said(strict) == SAID
    with pytest.raises(SourceUnreadableError, match=r"holds 'http://sch3mas.* and no sheet"):
        said(sheet().replace(b"schemas", b"sch3mas"))


def test_every_type_of_the_format_is_known() -> None:
    """ECMA-376 names seven types of cells."""
    cells = "".join(f'<c r="{chr(65 + at)}1" t="{t}"/>' for at, t in enumerate(sorted(CELL_TYPES)))
    assert len(CELL_TYPES) == 7
    refuse_unfit_archive(book(sheet(f'<row r="1">{cells}</row>')), name="o.xlsx")


@pytest.mark.parametrize("text", [b"", b"<a>", b"<a>\x01</a>", b"<a>\xff</a>", b"<a/><b/>"])
def test_a_part_that_is_no_xml_is_refused(text: bytes) -> None:
    """Cut parts, control characters and bytes that are no UTF-8 are told."""
    for read in (said, lambda content: refuse_unfit_archive(book(content), name="o.xlsx")):
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
def test_a_cell_that_readers_understand_differently_is_refused(case: str) -> None:
    """One plain text of the grammar of its type, or the cell is told by its name."""
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
def test_what_the_common_writers_write_is_read_to_the_last_character(
    inside: str, text: str
) -> None:
    """Numbers, indexes, texts of several runs, formulas with their values; not how it sounds."""
    assert said(sheet(CELL.format(inside))) == [(1, [text])]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (sheet().replace(b"</sheetData>", b"</sheetData><sheetData/>"), "in more than one place"),
        (sheet().replace(b"<cols>", b"<x><sheetData/></x><cols>"), "in more than one place"),
        (sheet().replace(b"</worksheet>", b"<row r='8'/></worksheet>"), "outside the data"),
    ],
)
def test_rows_that_no_reader_would_count_are_refused(text: bytes, told: str) -> None:
    """The data of a sheet stand once; rows elsewhere would be lost without a word."""
    with pytest.raises(SourceUnreadableError, match=told):
        said(text)


def test_a_formula_in_a_form_needs_no_value() -> None:
    """A workbook that people fill in is read for its formulas; all others need their values."""
    text = sheet(CELL.format("><f>1+1</f>"))
    refuse_unfit_archive(book(text), name="o.xlsx")
    with pytest.raises(SourceUnreadableError, match="never calculated in cell A1"):
        said(text)


def test_runs_of_a_shared_string_count_together() -> None:
    """And an index names the string at its place, blank ones among them."""
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
def test_shared_strings_of_another_shape_are_refused(inside: str, told: str) -> None:
    """Where readers would count them differently, an index would name another string."""
    with pytest.raises(SourceUnreadableError, match=told):
        said(sheet(), strings=inside)


def test_a_sheet_that_says_one_string_too_often_is_refused() -> None:
    """A short file may stand for gigabytes of text."""
    cells = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, 2_051))
    content = book(sheet(cells), strings=f"<si><t>{'a' * CELL_CHARACTERS_MAX}</t></si>")
    with pytest.raises(SourceUnreadableError, match="more than 67108864 characters"):
        raw_of(FileBytes(Path("o.xlsx"), content, ""), wanted=EveryColumn())


STYLES = f"""<styleSheet xmlns="{MAIN}"><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/>
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
def test_a_number_is_a_date_where_its_format_says_so(style: int, value: str, text: str) -> None:
    """A format of hours that go on, or a letter in quotes, makes no date."""
    out = io.BytesIO(book(sheet(f'<row r="1"><c r="A1" s="{style}"><v>{value}</v></c></row>')))
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("xl/styles.xml", STYLES)
    file = FileBytes(Path("o.xlsx"), out.getvalue(), "")
    assert sheet_texts(file, rows_max=1) == [(1, [text])]
