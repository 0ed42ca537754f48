from pathlib import Path

import pytest

from recon.files.formats import format_limits
from recon.files.formats.raw_reader import read_raw
from recon.files.formats.raw_table import RawTable
from recon.model.errors import SourceUnreadableError


def read(tmp_path: Path, text: str, *wanted: str) -> RawTable:
    """These columns of a JSON lines file."""
    path = tmp_path / "o.jsonl"
    path.write_text(text)
    return read_raw(path, wanted=frozenset(wanted))


def test_leaves_are_columns_and_numbers_keep_their_digits(tmp_path: Path) -> None:
    """Deeper objects are reached by a point; blank lines count as lines; null is blank."""
    text = (
        '{"id":"A","amount":{"value":10.50}}\n\n{"id":null,"other":true,"amount":{"value":"1"}}\n'
    )
    table = read(tmp_path, text, "id", "amount.value")
    assert table.header == ("id", "amount.value", "other")
    assert table.columns["id"].to_pylist() == ["A", ""]
    assert table.columns["amount.value"].to_pylist() == ["10.50", "1"]
    assert table.numbers["amount.value"].to_pylist() == [True, False]
    assert table.lines.tolist() == [1, 3]


@pytest.mark.parametrize("key", ["", " a", "a.b"])
def test_a_key_that_could_be_another_is_refused(tmp_path: Path, key: str) -> None:
    """A point in a key would look like a deeper one."""
    table = read(tmp_path, f'{{"id":1}}\n{{"{key}":1}}\n', "id")
    (bad,) = table.bad_rows
    assert (bad.line, bad.text) == (2, f'{{"{key}":1}}')


def test_a_line_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line, a value and the number of keys are bounded."""
    monkeypatch.setattr("recon.files.formats.json_text.JSON_LINE_BYTES_MAX", 40_000)
    long = "x" * (format_limits.CELL_CHARACTERS_MAX + 1)
    table = read(tmp_path, f'{{"id":1}}\n{{"id":"{long}"}}\n{{"id":"{long * 2}"}}\n', "id")
    assert [bad.reason for bad in table.bad_rows] == [
        f"has a value of more than {format_limits.CELL_CHARACTERS_MAX} characters",
        "has more than 40000 bytes",
    ]
    keys = ",".join(f'"k{n}":1' for n in range(format_limits.COLUMNS_MAX + 1))
    with pytest.raises(SourceUnreadableError, match="different names"):
        read(tmp_path, f"{{{keys}}}\n", "id")
