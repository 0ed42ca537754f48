from pathlib import Path

import pytest

from recon.config.file_layouts import FileLayout
from recon.files.formats import format_limits
from recon.files.formats.raw_reader import read_raw
from recon.files.formats.raw_table import RawTable
from recon.model.errors import SourceUnreadableError


def read(tmp_path: Path, text: str, *wanted: str, record: str = "") -> RawTable:
    """These columns of an XML file."""
    path = tmp_path / "o.xml"
    path.write_text(text)
    return read_raw(path, wanted=frozenset(wanted), layout=FileLayout(record=record))


def test_leaves_and_attributes_are_columns(tmp_path: Path) -> None:
    """Paths lead down by a slash, attributes have an @, namespaces and comments do not count."""
    text = (
        '<o xmlns="urn:x">\n<order id="7"><!-- c --><sum><amount currency="EUR">1.00</amount></sum>'
        "<note><![CDATA[<b>]]></note></order>\n</o>"
    )
    table = read(tmp_path, text, "@id", "sum/amount", "sum/amount/@currency", "note")
    assert {name: cells.to_pylist() for name, cells in table.columns.items()} == {
        "@id": ["7"],
        "sum/amount": ["1.00"],
        "sum/amount/@currency": ["EUR"],
        "note": ["<b>"],
    }
    assert table.lines.tolist() == [2]


def test_only_records_count_where_one_is_named(tmp_path: Path) -> None:
    """What stands around the records is not a row, however deep they stand."""
    orders = "<order><id>1</id></order>\n<order><id>2</id></order>"
    text = f"<f><head><id>0</id></head>\n<b>{orders}</b></f>"
    table = read(tmp_path, text, "id", record="order")
    assert table.columns["id"].to_pylist() == ["1", "2"]
    assert table.lines.tolist() == [2, 3]


def test_lines_are_right_far_down(tmp_path: Path) -> None:
    """Line numbers do not end where 16 bits do."""
    text = "<f>" + "\n" * 70_000 + "<o><id>1</id></o></f>"
    assert read(tmp_path, text, "id").lines[-1] == 70_001


@pytest.mark.parametrize("text", ["<f>x</f>", "<f><o></f>", "<f></f><f></f>", "<f>&e;</f>", "\x01"])
def test_what_is_not_well_formed_is_refused(tmp_path: Path, text: str) -> None:
    """No repair is tried, and an entity that nobody declared is not dropped."""
    with pytest.raises(SourceUnreadableError, match=r"o\.xml (is not well-formed|has no element)"):
        read(tmp_path, text, "id")


def test_an_element_has_a_bound(tmp_path: Path) -> None:
    """Text and different names are bounded."""
    long = "x" * (format_limits.CELL_CHARACTERS_MAX + 1)
    table = read(tmp_path, f"<f><o><id>1</id></o><o><id>{long}</id></o><o/></f>", "id")
    assert [bad.reason for bad in table.bad_rows] == [
        f"has more than {format_limits.CELL_CHARACTERS_MAX} characters in id",
        "has nothing in it",
    ]
    many = "".join(f"<k{n}>1</k{n}>" for n in range(format_limits.COLUMNS_MAX + 1))
    with pytest.raises(SourceUnreadableError, match="different names"):
        read(tmp_path, f"<f><o>{many}</o></f>", "id")
