from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.archive.merged_rows import TableRows
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Rows
from recon.archive.storage import LocalStorage
from recon.matching.breaks.result import MATCH_COLUMNS, PENDING_COLUMNS, UNVERIFIED_COLUMNS
from recon.matching.breaks.result_frames import OPEN_SORTED_BY
from recon.matching.breaks.result_rows import identity_of
from recon.matching.frames.arrays import text_column
from recon.matching.frames.digest import digest_of
from recon.matching.frames.sorting import in_order
from recon.proof.night_parts import Merged
from recon.proof.night_tables import (
    ID,
    MATCHES,
    NAMED_BY,
    frame_of_table,
    table_of,
    without_first_ids,
)
from tests.recon.archive.test_merged_rows import (
    ORDER_NOS,
    by_stretch,
    file_of,
    file_rows,
    rows_of,
    small_groups,
)
from tests.recon.archive.test_merged_rows import (
    table_of as table_of_rows,
)

FRAMES = {
    "matches": MATCH_COLUMNS,
    "pending": PENDING_COLUMNS,
    "unverified": UNVERIFIED_COLUMNS,
}


def frame_of(rows: Sequence[dict[str, Any]], *, name: str) -> pd.DataFrame:
    """The frame of a result; every other match has the first id of its order number."""
    frame = frame_of_table(table_of_rows(rows, name=name))
    if name == MATCHES:
        first = identity_of(*(text_column(frame[each].tolist()) for each in NAMED_BY))
        frame[ID] = text_column(
            [
                one if row["flags"] else f"other-{other}"
                for row, one, other in zip(rows, first, frame[ID], strict=True)
            ]
        )
    return in_order(frame[[*FRAMES[name]]], by=OPEN_SORTED_BY)


def written(frame: pd.DataFrame, *, name: str) -> pa.Table:
    """The rows as files have them."""
    table = table_of(frame, name=name)
    return without_first_ids(table) if name == MATCHES else table


@pytest.mark.parametrize("name", FRAMES)
@settings(max_examples=30)
@given(data=st.data())
def test_the_digest_and_the_file_of_parts_and_rest_are_those_of_the_whole(
    name: str, data: st.DataObject
) -> None:
    """Column after column as one frame would have it, ids that files leave out among them."""
    drawn = data.draw(rows_of(name))
    rows = [*{tuple(row[each] for each in OPEN_SORTED_BY): row for row in drawn}.values()]
    ends = data.draw(st.lists(st.sampled_from(ORDER_NOS), max_size=3))
    parts: list[list[dict[str, Any]]] = [[] for _ in range(len(ends) + 1)]
    for row in rows:
        if row["place"] == "part":
            parts[by_stretch(row, ends=ends)].append(row)
    whole = frame_of(rows, name=name)
    rest = frame_of([row for row in rows if row["place"] == "rest"], name=name)
    with small_groups(), TemporaryDirectory() as folder:
        files = [
            file_rows(
                written(frame_of(part, name=name), name=name),
                name=name,
                folder=Path(folder),
                number=number,
            ).sealed
            for number, part in enumerate(parts)
        ]
        merged = Merged.of(files, storage=LocalStorage(Path(folder)))
        columns = merged.columns(name, rest=rest)
        file = merged.file(name, rest=written(rest, name=name))
        expected = Rows.of(written(whole, name=name), schema=SCHEMAS[name])

        assert merged.rows(name) == len(rows) - len(rest)
        assert [*columns.columns] == [*whole.columns]
        assert digest_of([columns]) == digest_of([whole])
        assert file.content == expected.content
        assert file_of(file.rows, name=name) == file_of(expected.rows, name=name)


def test_without_parts_the_rest_is_all() -> None:
    """A night in whose parts nothing is aside says what its rest says."""
    rest = frame_of([], name="pending")
    for merged in (Merged({}), Merged({"pending": [TableRows(written(rest, name="pending"))]})):
        assert len(merged.columns("pending", rest=rest)) == merged.rows("pending") == 0
        assert digest_of([merged.columns("pending", rest=rest)]) == digest_of([rest])
        file = merged.file("pending", rest=written(rest, name="pending"))
        assert file.content == Rows.of(written(rest, name="pending"), schema=file.schema).content
