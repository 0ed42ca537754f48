"""What people decided, as nights have it and as nights of before had it."""

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

from recon.steps.ground.kept_decisions import (
    DECISIONS,
    DECISIONS_BEFORE,
    kept_decisions,
    packed_lines,
)

LINES = [
    json.dumps({"decision": "answer", "text": "café \N{RIGHTWARDS ARROW} paid"}),
    json.dumps({"decision": "approval", "amount": 1200}, ensure_ascii=False),
]
TEXT = "".join(f"{line}\n" for line in LINES)


def _kept(files: Mapping[str, bytes]) -> list[str]:
    def read(name: str) -> bytes:
        if name not in files:
            raise FileNotFoundError(name)
        return files[name]

    return kept_decisions(read)


@pytest.mark.parametrize(
    "files", [{DECISIONS: packed_lines(TEXT)}, {DECISIONS_BEFORE: TEXT.encode()}]
)
def test_decisions_are_read_packed_and_as_nights_of_before_have_them(
    files: Mapping[str, bytes],
) -> None:
    """Both files say the same, line by line."""
    assert _kept(files) == LINES


def test_a_night_without_the_file_is_no_night_without_decisions() -> None:
    """Where neither lies there, nobody is told that nobody decided anything."""
    with pytest.raises(FileNotFoundError):
        _kept({})


def test_the_same_decisions_are_the_same_bytes() -> None:
    """A step that is written again is the one that was sealed, whenever that is."""
    assert packed_lines(TEXT) == packed_lines(TEXT)
    assert packed_lines(TEXT)[4:8] == bytes(4)  # RFC 1952: the time of packing, none


def test_duckdb_reads_the_packed_file_itself(tmp_path: Path) -> None:
    """An auditor who has the folder and DuckDB asks it as it lies there."""
    path = tmp_path / DECISIONS
    path.write_bytes(packed_lines(TEXT))
    rows = duckdb.read_json(str(path)).select("decision", "amount").order("ALL").fetchall()
    assert rows == [("answer", None), ("approval", 1200)]
