import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.archive import merged_rows, rows_file
from recon.archive.merged_rows import FileRows, MergedRows, SortedRows, TableRows
from recon.archive.rows_file import write_ordered
from recon.archive.schemas import SCHEMAS, FileSchema
from recon.archive.step_folder import Rows, write_step
from recon.archive.storage import LocalStorage
from recon.model.errors import ArchiveBrokenError, Defect
from tests.recon.archive.planted import about
from tests.recon.steps.large_nights import in_groups_of, many, peak_bytes

NAMES = ("matches", "pending", "unverified", "items")
ORDER_NOS = ["", "A", "A1", "B", "b", "é", "\U0001f4b6", "\uffff"]
"""Blank ones, those of which one begins another, and bytes whose order no alphabet has."""
SMALL_GROUP = 5
"""Rows of a row group, so that few rows are several."""
PART = 40_000
"""Rows of a part in the test of memory."""


def rows_of(name: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of a schema, of few words each, so that keys are alike now and then."""
    return st.lists(
        st.fixed_dictionaries(
            {field.name: _cells(field) for field in SCHEMAS[name].columns}
            | {"place": st.sampled_from(["rest", "part", "part"])}
        ),
        max_size=24,
    )


def _cells(field: pa.Field) -> st.SearchStrategy[Any]:
    if field.name == "order_no":
        return st.sampled_from(ORDER_NOS)
    if pa.types.is_timestamp(field.type):
        return st.sampled_from([None, 0, 1_000, 1_001])
    if pa.types.is_integer(field.type):
        return st.sampled_from([None, 0, 7] if field.nullable else [0, 7])
    return st.sampled_from(["", "x", "y"])


def table_of(rows: Sequence[dict[str, Any]], *, name: str) -> pa.Table:
    """As a table of the schema; its words are numbered as they come."""
    schema = SCHEMAS[name].columns
    cells = [{name: row[name] for name in schema.names} for row in rows]
    return pa.Table.from_pylist(cells, schema=schema)


def file_rows(table: pa.Table, *, name: str, folder: Path, number: int = 0) -> FileRows:
    """The rows as a part writes them."""
    storage, schema = LocalStorage(folder), SCHEMAS[name]
    parts = [Rows.of(table, schema=schema)]
    sealed = write_step(storage, night="night", about=about(f"{number:05}"), parts=parts)
    return FileRows(storage, sealed, name)


def file_of(rows: rows_file.InOrder, *, name: str) -> bytes:
    """The bytes of a file."""
    file = io.BytesIO()
    write_ordered(file, rows, schema=SCHEMAS[name])
    return file.getvalue()


@contextmanager
def small_groups() -> Iterator[None]:
    """Few rows are several groups, batches and samples."""
    with pytest.MonkeyPatch.context() as patch:
        in_groups_of(SMALL_GROUP, patch=patch)
        for module in (rows_file, merged_rows):
            patch.setattr(module, "ROWS_PER_BATCH", 3)
        patch.setattr(merged_rows, "ROWS_PER_BATCH_MIN", 2)
        yield


def by_stretch(row: dict[str, Any], *, ends: Sequence[str]) -> int:
    """The stretch that a row's order number is in."""
    return sum(str(row["order_no"]).encode() >= end.encode() for end in ends)


def anywhere(row: dict[str, Any], *, ends: Sequence[str]) -> int:
    """Some part, whatever the order number."""
    return sum(map(ord, "".join(map(str, row.values())))) % (len(ends) + 1)


@pytest.mark.parametrize(
    ("name", "part_of"),
    [*((name, by_stretch) for name in NAMES), ("matches", anywhere), ("items", anywhere)],
)
@settings(max_examples=30)
@given(data=st.data())
def test_parts_and_rest_make_the_file_that_the_whole_makes(
    name: str, part_of: Callable[..., int], data: st.DataObject
) -> None:
    """Whatever is cut where: the same content and the same bytes, of several accounts, too."""
    rows = data.draw(rows_of(name))
    ends = data.draw(st.lists(st.sampled_from(ORDER_NOS), max_size=3))
    parts: list[list[dict[str, Any]]] = [[] for _ in range(len(ends) + 1)]
    rest = [row for row in rows if row["place"] == "rest"]
    for row in rows:
        if row["place"] == "part":
            parts[part_of(row, ends=ends)].append(row)
    schema = SCHEMAS[name]
    with small_groups(), TemporaryDirectory() as folder:
        whole = Rows.of(table_of(rows, name=name), schema=schema)
        files = [
            file_rows(table_of(part, name=name), name=name, folder=Path(folder), number=number)
            for number, part in enumerate(parts)
        ]
        merged = MergedRows.of(files, rest=table_of(rest, name=name), schema=schema)
        found = Rows.in_order(merged, schema=schema)

        assert merged.num_rows == len(rows)
        assert found.content == whole.content
        assert file_of(found.rows, name=name) == file_of(whole.rows, name=name)


@pytest.mark.parametrize("turned", [False, True])
def test_words_of_a_file_are_numbered_as_its_rows_come(*, turned: bool) -> None:
    """However tables came together, and whatever words others of their rows have: the same file."""
    matches = many("matches", rows=3, currency="EUR")
    more = many("matches", rows=3, currency="GBP").slice(1)
    both = pa.concat_tables([more, matches] if turned else [matches, more])
    schema = SCHEMAS["matches"]
    rows = Rows.of(both.unify_dictionaries().slice(1), schema=schema)
    plain = both.to_pylist()[1:]
    assert file_of(rows.rows, name="matches") == file_of(
        Rows.of(pa.Table.from_pylist(plain, schema=schema.columns), schema=schema).rows,
        name="matches",
    )


def test_a_part_whose_rows_are_others_than_it_says_is_refused() -> None:
    """No row is lost: fewer or more than were counted, or in another order, are an error."""
    schema, rows = SCHEMAS["matches"], many("matches", rows=3)
    none = schema.columns.empty_table()
    for count in (2, 4):
        with pytest.raises(Defect, match=f"has 3 rows and says {count}"):
            MergedRows.of([Miscounted(rows, count)], rest=none, schema=schema)
    turned = TableRows(rows.take(pa.array([0, 2, 1])))
    with pytest.raises(Defect, match="order of their key"):
        MergedRows.of([turned], rest=none, schema=schema)
    by_line = FileSchema("strange", "results", schema.columns, key=("order_no",))
    with pytest.raises(Defect, match="cannot be merged"):
        MergedRows.of([TableRows(rows)], rest=none, schema=by_line)


@dataclass(frozen=True, slots=True)
class Miscounted:
    """Rows that say to be so many."""

    table: pa.Table
    num_rows: int

    def batches(self, columns: Sequence[str], *, rows_max: int) -> Iterator[pa.Table]:
        """All that there are."""
        return TableRows(self.table).batches(columns, rows_max=rows_max)


@dataclass
class Watched:
    """Rows that tell who has them open."""

    rows: TableRows
    opened: list["Watched"]

    @property
    def num_rows(self) -> int:
        """How many."""
        return self.rows.num_rows

    def batches(self, columns: Sequence[str], *, rows_max: int) -> Iterator[pa.Table]:
        """See SortedRows."""
        self.opened.append(self)
        try:
            yield from self.rows.batches(columns, rows_max=rows_max)
        finally:
            self.opened.remove(self)


def test_a_part_is_closed_when_its_last_row_was_read() -> None:
    """Parts come one after another: at most two are open at once, whatever their number."""
    schema, opened = SCHEMAS["universe"], list[Watched]()
    place = {"merchant_id": "m", "account_id": "a"}
    names = [f"{number:02}" for number in range(40)]
    tables = [
        pa.Table.from_pylist([{**place, "order_no": name} for name in some], schema=schema.columns)
        for some in (names[at : at + 4] for at in range(0, 40, 4))
    ]
    parts = [Watched(TableRows(table), opened) for table in tables]
    with small_groups():
        merged = MergedRows.of(parts, rest=tables[0][:0], schema=schema)
        held = [len(opened) for _ in merged.groups()]
        numbers = merged.in_order("order_no").to_pylist()

    assert max(held) == 1
    assert numbers == names
    assert opened == []


def test_a_part_whose_file_was_changed_is_refused_by_its_name(tmp_path: Path) -> None:
    """Nobody merges rows that are not those that the part wrote."""
    schema = SCHEMAS["matches"]
    part = file_rows(many("matches", rows=3), name="matches", folder=tmp_path)
    path = tmp_path / part.sealed.folder / "matches.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ArchiveBrokenError, match=r"00000/matches\.parquet is not the file"):
        MergedRows.of([part], rest=schema.columns.empty_table(), schema=schema)


def test_memory_grows_with_the_keys_and_not_with_the_table(tmp_path: Path) -> None:
    """Of four times as many parts Arrow holds their keys more: less than a third of all."""
    few, all_rows = (_merging(tmp_path, parts=number) for number in (2, 8))
    grown, column = all_rows[0] - few[0], 6 * PART * (20 + 4)
    assert grown < 3 * column
    assert grown < (all_rows[1] - few[1]) / 3


def _merging(folder: Path, *, parts: int) -> tuple[int, int]:
    """What Arrow held at most while parts were merged and written, and what all their rows take."""
    rows, schema = many("matches", rows=parts * PART), SCHEMAS["matches"]
    rest = rows.take(pa.array(range(0, len(rows), 100)))
    files: list[SortedRows] = []
    for number in range(parts):
        part, own = rows.slice(number * PART, PART), folder / f"{parts}"
        files.append(file_rows(part, name="matches", folder=own, number=number))
    size = rows.nbytes
    del rows, part

    def merge() -> None:
        merged = MergedRows.of(files, rest=rest, schema=schema)
        with (folder / "merged.parquet").open("wb") as file:
            write_ordered(file, Rows.in_order(merged, schema=schema).rows, schema=schema)

    with pytest.MonkeyPatch.context() as patch:
        in_groups_of(PART // 2, patch=patch)
        return peak_bytes(merge), size
