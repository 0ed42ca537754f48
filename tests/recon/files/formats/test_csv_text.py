import csv
import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recon.config.file_layouts import STANDARD, FileLayout, Trailer
from recon.files.formats import format_limits
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.model.errors import SourceUnreadableError
from tests.recon.files.strict_reader import rows_of

ABC = frozenset("abc")


def read(content, *, columns_read=ABC):
    raw = content.encode() if isinstance(content, str) else content
    return raw_of(FileBytes(Path("orders.csv"), raw, ""), columns_read=columns_read)


def cells(table, column):
    return table.columns[column].to_pylist()


REFUSED_FILES = {
    "utf-16 with a mark": ("a,b\n1,2\n".encode("utf-16"), "is UTF-16"),
    "utf-16 without a mark": ("a,b\n".encode("utf-16-le"), "has a NUL at byte 1"),
    "latin-1": (b"a,b\n1,\xe9\n", "byte 6 on line 2 is 0xe9"),
    "latin-1 behind a mark": (b"\xef\xbb\xbfa,b\n1,\xe9\n", "byte 9 on line 2 is 0xe9"),
    "cut inside a letter": (b"a,b\n1,\xc3", "is not UTF-8: byte 6"),
    "overlong utf-8": (b"a,b\n1,\xc0\xaf\n", "is not UTF-8"),
    "nul in a cell": (b"a,b\n1,2\x003\n", "has a NUL at byte 7"),
    "nul before all": (b"\x00a,b\n1,2\n", "has a NUL at byte 0"),
    "carriage returns only": (b"a,b\r1,2\r", "carriage return without a line feed on line 1"),
    "two carriage returns": (b"a,b\n1,2\r\r\n", "carriage return without a line feed on line 2"),
    "one lone carriage return": (b"a,b\n1,2\r3,4\n", "carriage return without a line feed"),
    "lone carriage return in a quoted record": (
        b'a,b\n"1",2\r3\n',
        "without a line feed on line 2",
    ),
    "quote never closed": (b'a,b\n"1,2\n3,4\n', "quote on line 2 that is never closed"),
    "quote closed by a later row's": (b'a,b\n"1,2\n"3",4\n', "behind a closing quote on line 3"),
    "text behind a quote": (b'a,b\n"1"x,2\n', "behind a closing quote on line 2"),
    "space behind a quote": (b'a,b\n"1" ,2\n', "behind a closing quote on line 2"),
    "column twice": (b"a,b,a\n1,2,3\n", "has one name for columns 1 and 3"),
    "column twice but for spaces": (b"a, a\n1,2\n", "has one name for columns 1 and 2"),
    "nameless column": (b"a,,c\n1,2,3\n", "no name for column 2"),
    "a cell behind the last name": (
        b"a,b,\n1,2,\n3,4,5\n",
        "has a cell on line 3 in column 3, without a name",
    ),
    "quote inside a column name": (b'a,b"c\n1,2\n', "quote inside a column name on line 1"),
    "semicolons": (b"a;b\n1;2\n", "separates its columns by ';'"),
    "tabs": (b"a\tb\n1\t2\n", r"separates its columns by '\\t'"),
    "nothing but empty lines": (b"\n\n\n", "not even a header"),
    "nothing but a mark": (b"\xef\xbb\xbf", "not even a header"),
    "too many columns": (",".join(f"c{n}" for n in range(300)).encode(), "has 300 columns"),
}


@pytest.mark.parametrize(("content", "told"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_a_csv_that_is_not_one_is_refused_with_its_place(content, told):
    with pytest.raises(SourceUnreadableError, match=told):
        read(content)


BAD_ROWS = {
    "short": ("a,b,c\n1,2,3\n4,5\n", 3, "has 2 cells where the header has 3"),
    "long": ("a,b,c\n1,2,3\n4,5,6,7\n", 3, "has 4 cells where the header has 3"),
    "an unquoted comma in an amount": ("a,b,c\n1,2,3\n4,1,000.00,6\n", 3, "has 4 cells"),
    "trailing comma": ("a,b,c\n1,2,3\n4,5,6,\n", 3, "has 4 cells"),
    "only commas": ("a,b,c\n1,2,3\n,\n", 3, "has 2 cells"),
    "quote inside a cell": ('a,b,c\n1,2,3\n4,5" pipe,6\n', 3, "has a quote inside a cell"),
    "behind a quoted line feed": ('a,b,c\n"1\n1",2,3\n4,5\n', 4, "has 2 cells"),
    "behind an empty line": ("a,b,c\n1,2,3\n\n4,5\n", 4, "has 2 cells"),
    "with line ends of windows": ("a,b,c\r\n1,2,3\r\n4,5\r\n", 3, "has 2 cells"),
    "a cell too long": (f"a,b,c\n1,2,3\n4,{'x' * 40_000},6\n", 3, "more than 32767 characters"),
}


@pytest.mark.parametrize(("text", "line", "told"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_bad_row_is_named_by_its_line_and_shifts_nothing(text, line, told):
    table = read(text)
    assert [bad.line for bad in table.bad_rows] == [line]
    assert told in table.bad_rows[0].reason
    assert cells(table, "b") == ["2"]
    assert table.rows_read == 2


OPEN_ENDS = {
    "of every line": "a,b,c,\n1,2,3,\n4,5,,\n",
    "of the rows": "a,b,c\n1,2,3,\n4,5,,\n",
    "of rows in quotes": 'a,b,c\r\n"1","2","3",\r\n"4","5","",\r\n',
}


@pytest.mark.parametrize("text", OPEN_ENDS.values(), ids=OPEN_ENDS)
def test_a_delimiter_at_the_end_of_lines_begins_no_column(text):
    table = read(text + "7,8,9\n")

    assert [cells(table, name) for name in "abc"] == [["1", "4"], ["2", "5"], ["3", ""]]
    assert table.header == ("a", "b", "c")
    assert [bad.line for bad in table.bad_rows] == [4]


def test_a_column_that_nobody_reads_may_come_again():
    table = read("a,b,c,item,item\n1,2,3,4,5\n")

    assert table.header == ("a", "b", "c", "item", "item (column 5)")
    assert cells(table, "c") == ["3"]


def test_digits_that_a_spreadsheet_keeps_as_text_are_that_text():
    """="00123" is 00123; any other quote within a cell is none of a row."""
    table = read('a,b,c\n="00123",2,="x"\n="1"2,5,6\n7,8,9\n')

    assert [cells(table, name) for name in "ac"] == [["00123", "7"], ["x", "9"]]
    assert [bad.line for bad in table.bad_rows] == [3]


def test_text_stays_what_it_was():
    table = read("a,b,c\n000123,NA,inf\nnull,nan,true\n,1e5,#N/A\n")
    assert cells(table, "a") == ["000123", "null", ""]
    assert cells(table, "b") == ["NA", "nan", "1e5"]
    assert cells(table, "c") == ["inf", "true", "#N/A"]


def test_a_mark_quotes_and_spaces_around_cells_are_no_content():
    table = read(b'\xef\xbb\xbf a ,b,"c"\n 1 ,"say ""x""",\t3\n')
    assert (cells(table, "a"), cells(table, "b"), cells(table, "c")) == (["1"], ['say "x"'], ["3"])


@pytest.mark.parametrize("text", ["a,b,c", "a,b,c\n", "a,b,c\n\n"])
def test_a_header_alone_is_a_table_without_rows(text):
    assert read(text).rows_read == 0


def test_more_rows_than_the_bound_are_refused(monkeypatch):
    monkeypatch.setattr("recon.files.formats.raw_table.ROWS_MAX", 3)
    with pytest.raises(SourceUnreadableError, match="more than 3 rows"):
        read("a,b\n" + "1,2\n" * 5)
    assert format_limits.ROWS_MAX == 1_000_000


@given(st.text(alphabet='ab1,"\n\r \u00e9', max_size=60), st.sampled_from(["a,b", '"a",b']))
@example('1,2\n3,4"', "a,b")
@example('1,"2\n",3\n', "a,b")
@example('1\r\n,"\r\n",\n', '"a",b')
@example('x,y\n1,"2""', "a,b")
def test_no_row_is_accepted_that_a_strict_reader_reads_differently(text, header):
    content = f"{header}\n{text}".encode()
    try:
        table = read(content)
    except SourceUnreadableError:
        return
    strict = rows_of("orders.csv", content, needed="ab", may_be_open=True)
    assert list(zip(table.lines.tolist(), cells(table, "a"), cells(table, "b"), strict=True)) == [
        (line, row["a"][0], row["b"][0]) for line, row in strict
    ]


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
        ),
        max_size=8,
    )
)
def test_what_a_writer_of_csv_wrote_is_read_back_whole(rows):
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(("a", "b"))
    writer.writerows(rows)
    table = read(text.getvalue())
    assert list(zip(cells(table, "a"), cells(table, "b"), strict=True)) == [
        (first.strip(), second.strip()) for first, second in rows
    ]
    starts, line = [], 2
    for first, second in rows:
        starts.append(line)
        line += 1 + first.count("\n") + second.count("\n")
    assert table.lines.tolist() == starts


TAILS = st.sampled_from(["", "\n", '"', "\r", '1,"2\n', 'x"', "9,9,9", "1,2\n\n"])


def told(content, *, layout):
    """All that is read of a file, or why it is refused."""
    try:
        table = raw_of(FileBytes(Path("o.csv"), content, ""), columns_read=ABC, layout=layout)
    except SourceUnreadableError as error:
        return str(error)
    columns = {name: cells.to_pylist() for name, cells in table.columns.items()}
    rows = (columns, table.lines.tolist(), table.bad_rows)
    return (*rows, table.header, table.last_line_open, table.declared)


@given(
    st.text('a,"\r\n 1é', max_size=60), TAILS, st.integers(1, 9), st.sampled_from(["", "\nEND,1"])
)
@example('1,"2\n3",4\n"5', "", 1, "")
@example("1,2,3\nEND,1\n\n", "", 3, "\nEND,1")
@example("1,2,3\n\ufeff4,5,6\n", "", 1, "")
def test_the_windows_of_a_file_do_not_matter(body, tail, at_once, ending):
    layout = FileLayout(trailer=Trailer(word="END", rows=2)) if ending else STANDARD
    content = ("a,b,c\n" + body + tail + ending).encode()
    whole = told(content, layout=layout)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("recon.files.formats.csv_text.WINDOW_CHARACTERS", at_once)
        assert told(content, layout=layout) == whole
