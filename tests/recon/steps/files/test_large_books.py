"""Books of any size are sealed in the room of their table, and of little beside it."""

import gc
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from recon.steps.ground.kept_books import LEDGER, write_books
from tests.recon.steps.conftest import Merchant
from tests.recon.steps.files.test_keep_ledger import ROW, csv_file, kept
from tests.recon.steps.ground.test_kept_answers import Asking, begun
from tests.recon.steps.large_nights import in_groups_of, many, peak_bytes

FEW, MORE = 20_000, 80_000
BYTES_AN_ENTRY = 100
"""More beside the table; a second copy of it in order takes 200, counting all texts at once 310."""
ROWS_AT_ONCE = 65_536


def test_books_are_put_in_order_without_a_second_copy(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What four times the entries take more beside their table is less than the table itself."""
    in_groups_of(5_000, patch=monkeypatch)
    with begun(merchant) as asking:
        few, more = (_beside(asking, entries=entries) for entries in (FEW, MORE))
    assert more - few < BYTES_AN_ENTRY * (MORE - FEW)


def _beside(asking: Asking, *, entries: int) -> int:
    """What Arrow holds at most beside the table of so many entries while they are sealed."""
    table = many(LEDGER, rows=entries).take(pa.array(range(entries - 1, -1, -1)))
    run = replace(asking.run, run_id=f"R{entries}")
    return peak_bytes(lambda: write_books(run, entries=table, environment=asking.environment))


def test_no_frame_of_all_entries_stands_beside_their_table(merchant: Merchant) -> None:
    """When books are sealed, of what their reader gave back no more is held than a part."""
    held: list[int] = []

    def look(place: str) -> None:
        if place == "archived the books":
            frames: list[Any] = [each for each in gc.get_objects() if type(each) is pd.DataFrame]
            held.append(sum(len(frame) for frame in frames if "entry_id" in frame.columns))

    rows = [(f"E-{number}", *ROW[1:6], "10.50", ROW[7]) for number in range(ROWS_AT_ONCE + 1)]
    _, books = kept(merchant, csv_file(merchant, *rows), crash_point=look)

    assert len(books[0]) == len(rows)
    assert len(held) == 1
    assert held[0] <= ROWS_AT_ONCE
