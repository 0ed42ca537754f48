from pathlib import Path

import pytest

from recon.files.formats.named_bytes import FileBytes
from recon.files.proposing.sample import sample_of
from recon.model.errors import SourceUnreadableError

KNOWN = frozenset({"no", "date", "amount", "wahrung"})


def sample(text: str | bytes) -> tuple[dict[str, object], int, tuple[str, ...]]:
    """Keys, rows and trailer of a file."""
    content = text.encode() if isinstance(text, str) else text
    read = sample_of(FileBytes(Path("a.csv"), content, ""), known=KNOWN)
    return read.keys, len(read.rows), read.trailer


def test_a_last_row_is_a_total_only_by_its_word() -> None:
    """A number in the first cell counts rows of goods, not the file's."""
    rows = "".join(f"{number},2026-01-01,1.00\n" for number in range(90, 100))
    assert sample(f"no,date,amount\n{rows}")[1:] == (10, ())
    assert sample(f"no,date,amount\n{rows}Total,,10.00\n")[1:] == (10, ("Total", "", "10.00"))
    assert sample(f"no,date,amount\n{rows},Total,10.00\n")[1:] == (10, ("", "Total", "10.00"))
    assert sample(f"no,date,amount\n{rows}7,Total,10.00\n")[1:] == (11, ())


@pytest.mark.parametrize(
    ("encoding", "named"), [("utf-8", "utf-8"), ("utf-16", "utf-16"), ("cp1252", "windows-1252")]
)
def test_an_encoding_is_told_by_its_bytes(encoding: str, named: str) -> None:
    """The header reads the same in each."""
    keys, rows, _ = sample("no;date;W\u00e4hrung\n1;2;EUR\n".encode(encoding))
    assert (keys["encoding"], keys["delimiter"], rows) == (named, ";", 1)


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_a_file_without_a_word_is_called_empty(text: str) -> None:
    """Nobody looks for its header."""
    with pytest.raises(SourceUnreadableError, match=r"^a\.csv is empty: give a sample with rows"):
        sample(text)


@pytest.mark.parametrize(
    "text", ["", "a\x00b,c\n", '"never closed,no,date,amount\n', "1,2,3\n4,5,6\n"]
)
def test_what_is_no_table_with_a_header_is_refused(text: str) -> None:
    """Not one byte of it is repeated."""
    with pytest.raises(SourceUnreadableError, match=r"^a\.csv (is|has) "):
        sample(text)
