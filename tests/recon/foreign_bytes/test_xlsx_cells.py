import pytest

from recon.errors import SourceUnreadableError
from recon.foreign_bytes import xlsx_cells
from recon.foreign_bytes.xlsx_cells import CELL_TYPES, Span, refuse_malformed, span_of

PART = "xl/worksheets/sheet1.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ROWS = (
    '<row r="1" spans="1:3"><c r="A1" t="s"><v>0</v></c><c r="B1" s="1"><v>1</v></c></row>'
    '<row r="7"><c r="C7" t="inlineStr"><is><t>a &gt; b</t></is></c><c r="AB7" t="b"/></row>'
)
SPAN = Span(7, 28, frozenset({"s", "inlineStr", "b"}), formulas=False)


def sheet(rows: str = ROWS, prefix: str = "") -> bytes:
    """The XML of a sheet."""
    for name in ("row", "c") if prefix else ():
        for mark in (" ", ">"):
            rows = rows.replace(f"<{name}{mark}", f"<{prefix}{name}{mark}")
            rows = rows.replace(f"</{name}{mark}", f"</{prefix}{name}{mark}")
    space = f'xmlns{":" if prefix else ""}{prefix.rstrip(":")}="{MAIN}"'
    root = f"{prefix}worksheet"
    return f'<{root} {space}><cols><col min="1"/></cols>{rows}</{root}>'.encode()


@pytest.fixture(params=[60, 8 * 1024 * 1024], autouse=True)
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sheets are judged a window at a time: some cells, or all of them."""
    monkeypatch.setattr(xlsx_cells, "_WINDOW_BYTES", request.param)


@pytest.mark.parametrize("prefix", ["", "x:"])
def test_a_plain_sheet_is_never_walked(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its span and types are found without looking at one element after the other."""
    monkeypatch.setattr(xlsx_cells, "_Walk", None)
    assert span_of(PART, sheet(prefix=prefix), name="o.xlsx") == SPAN


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('r="C7"', "r = 'C7'"),
        ('r="C7" t="inlineStr"', 't="inlineStr" r="C7"'),
        ("<row r", "<!-- <c --><row r"),
        ('<row r="7">', "<row>"),
        ('<row r="7">', '<row r="7"></row><row r="7">'),
    ],
)
def test_a_sheet_that_is_written_otherwise_is_walked(old: str, new: str) -> None:
    """Other quotes, other orders of attributes and comments change nothing of what is found."""
    rows = ROWS.replace(old, new, 1)
    assert rows != ROWS
    rows = rows.replace("7", "2") if "<row>" in new else rows
    expected = SPAN._replace(rows=2) if "<row>" in new else SPAN
    found = span_of(PART, sheet(rows), name="o.xlsx")
    assert found._replace(types=found.types - {"n"}) == expected


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize("prefix", ["", "x:"])
def test_a_formula_is_noticed(prefix: str, quote: str) -> None:
    """Plain sheets and walked ones alike say that one is there."""
    rows = f"<row r={quote}1{quote}><c r={quote}A1{quote}><{prefix}f>1+1</{prefix}f></c></row>"
    assert span_of(PART, sheet(rows, prefix=prefix), name="o.xlsx").formulas


def test_cells_may_all_leave_out_their_places() -> None:
    """Then each stands behind the one before."""
    rows = "<row><c><v>1</v></c><c/></row><row><c/></row>"
    assert span_of(PART, sheet(rows), name="o.xlsx")[:2] == (2, 2)


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
        ('t="b"', 't="B"', "cell AB7 has the type 'B', which does not exist"),
        ('t="inlineStr"', "t = 'nlineStr'", "cell C7 has the type 'nlineStr'"),
    ],
)
def test_a_cell_that_stands_nowhere_is_refused(old: str, new: str, told: str) -> None:
    """The message names the part and the cell; two cells never share a place."""
    rows = ROWS.replace(old, new, 1)
    assert rows != ROWS
    with pytest.raises(SourceUnreadableError) as refused:
        span_of(PART, sheet(rows), name="o.xlsx")
    assert str(refused.value).startswith(f"o.xlsx is a damaged workbook: in {PART}, {told}")
    assert str(refused.value).endswith("; save it again")


def test_a_sheet_of_another_name_space_is_refused() -> None:
    """What only looks like a sheet is none, and both name spaces of the format are."""
    strict = sheet().replace(MAIN.encode(), b"http://purl.oclc.org/ooxml/spreadsheetml/main")
    assert span_of(PART, strict, name="o.xlsx") == SPAN
    with pytest.raises(SourceUnreadableError, match=r"holds 'http://sch3mas.* and no sheet"):
        span_of(PART, sheet().replace(b"schemas", b"sch3mas"), name="o.xlsx")


def test_every_type_of_the_format_is_known() -> None:
    """ECMA-376 names seven types of cells."""
    cells = "".join(f'<c r="{chr(65 + at)}1" t="{t}"/>' for at, t in enumerate(sorted(CELL_TYPES)))
    found = span_of(PART, sheet(f'<row r="1">{cells}</row>'), name="o.xlsx")
    kinds = frozenset({"b", "d", "e", "inlineStr", "n", "s", "str"})
    assert found == Span(1, 7, kinds, formulas=False)


@pytest.mark.parametrize("text", [b"", b"<a>", b"<a>\x01</a>", b"<a>\xff</a>", b"<a/><b/>"])
def test_a_part_that_is_no_xml_is_refused(text: bytes) -> None:
    """Cut parts, control characters and bytes that are no UTF-8 are told with their place."""
    refuse_malformed(PART, sheet(), name="o.xlsx")
    with pytest.raises(SourceUnreadableError, match=r"is not well-formed XML \(.*line 1"):
        refuse_malformed(PART, text, name="o.xlsx")
