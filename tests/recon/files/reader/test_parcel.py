"""What a reader hands back: checked when it is taken out, and never code."""

import io
import json
import pickle
import tempfile
from collections.abc import Iterator
from typing import IO

import pandas as pd
import pytest

from recon.files.reader import door
from recon.files.reader.door import BrokenParcelError
from recon.files.reader.files import TableFacts, table
from recon.model.errors import ConfigurationError, SourceUnreadableError
from recon.model.words import Reject, SourceFile, SourceKind

FACTS = TableFacts(
    (Reject(SourceKind.ORDERS, "o.csv", 3, "amount", "is “blank”", "\\udcff", "100042"),),
    SourceFile(SourceKind.ORDERS, "o.csv", "a" * 64, 10, 2, 1, 1, 0, 2**53 + 1),
    ("note",),
    "",
)


@pytest.fixture
def file() -> Iterator[IO[bytes]]:
    """A file without a name."""
    with tempfile.TemporaryFile() as file:
        yield file


def test_facts_come_back_as_they_were(file: IO[bytes]) -> None:
    """Every value in its type, whole numbers of any size."""
    door.write_facts(FACTS, of=table, into=file)
    assert door.read_facts(file, of=table) == FACTS


def test_a_refusal_comes_back_in_place_of_facts(file: IO[bytes]) -> None:
    """In its own kind where that is one that a reader may raise, else as an unreadable file."""
    door.write_facts(FACTS, of=table, into=file)
    door.write_refusal(ConfigurationError("no such column"), into=file)
    with pytest.raises(ConfigurationError, match=r"^no such column$"):
        door.read_facts(file, of=table)


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"=",
        b"=[]",
        b"?{}",
        b"=" + json.dumps([[], "no file", [], ""]).encode(),
        b"!not json",
        b"=" + pickle.dumps(FACTS),
        b"\x80\x04.",
    ],
)
def test_what_no_reader_writes_is_not_taken(file: IO[bytes], told: bytes) -> None:
    """A reader that its file broke may have written anything."""
    file.write(told)
    with pytest.raises(BrokenParcelError):
        door.read_facts(file, of=table)


def test_a_strange_refusal_is_an_unreadable_file(file: IO[bytes]) -> None:
    """No name that comes back chooses a class of ours but those of the list."""
    file.write(b"!" + json.dumps(["SystemExit", "bye"]).encode())
    with pytest.raises(SourceUnreadableError, match=r"^bye$"):
        door.read_facts(file, of=table)


def test_frames_come_back_one_behind_the_other() -> None:
    """The same types and values; behind the last one there is nothing."""
    first = pd.DataFrame(
        {
            "line": pd.Series([2, 3], dtype="int64"),
            "amount": pd.Series([1, None], dtype="Int64"),
            "order_no": pd.Series(["A", ""], dtype="str"),
            "at": pd.to_datetime(["2026-01-05T10:00Z", None]).as_unit("us"),
        }
    )
    with tempfile.TemporaryFile() as rows:
        door.write_frame(first, into=rows)
        door.write_frame(first[:0], into=rows)
        rows.seek(0)
        frame = door.read_frame(rows)
        pd.testing.assert_frame_equal(door.read_frame(rows), first[:0])
        with pytest.raises(BrokenParcelError):
            door.read_frame(rows)
    # What was read stays when its file is gone.
    pd.testing.assert_frame_equal(frame, first)


def test_a_file_without_a_byte_holds_no_frame() -> None:
    """A reader that laid nothing aside broke."""
    with tempfile.TemporaryFile() as rows, pytest.raises(BrokenParcelError):
        door.read_frame(rows)


def test_a_frame_whose_text_points_outside_is_not_taken() -> None:
    """Offsets and texts of every column are checked before anything is read by them."""
    rows = io.BytesIO()
    door.write_frame(
        pd.DataFrame({"order_no": pd.Series(["ABCDEFGH"] * 4, dtype="str")}), into=rows
    )
    content = bytearray(rows.getvalue())
    content[content.index(b"ABCDEFGH") :][:1] = b"\xff"
    at = content.index(b"ABCDEFGH")
    content[at : at + 2] = b"\xff\xff"
    with tempfile.TemporaryFile() as file:
        file.write(bytes(content))
        file.seek(0)
        with pytest.raises(BrokenParcelError):
            door.read_frame(file)
