"""What people decided, as nights have it."""

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pytest

from recon.steps.ground.kept_decisions import DECISIONS, kept_decisions, packed_lines

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


def test_decisions_are_read_packed_line_by_line() -> None:
    """What was packed says what it said."""
    assert _kept({DECISIONS: packed_lines(TEXT)}) == LINES


def test_a_night_without_the_file_is_no_night_without_decisions() -> None:
    """Where it does not lie there, nobody is told that nobody decided anything."""
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
