"""The answers that a night compared, written once: as they came, less the rows passed over.

The files of the answers are sealed as they come, and nearly every row of them is compared as it is.
So `passed_over` names those that are not (asked again after money, another account's), and the file
`answers` has only the rows that no file of the answers has in these words.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.answer_schemas import REPLIES
from recon.archive.fields import BY_KEY
from recon.archive.schemas import SCHEMAS

ANSWERS, PASSED_OVER = "answers", "passed_over"
_COLUMNS = SCHEMAS[ANSWERS].columns
CONSTANT: Mapping[str, str | int] = {"source": "gateway", "line": 0}
"""What every answer of the gateway says beside what it was."""
SHARED = tuple(name for name in _COLUMNS.names if name in REPLIES.columns.names)
"""The columns that both files have."""
KEY_BUT_ORDER = BY_KEY[:-1]
Rows = npt.NDArray[np.intp]
NamedReplies = tuple[str, pa.Table]
"""A file of answers by its name from the night's folder, and its rows (SHARED at least)."""
Wanted = Callable[[pa.Table], pa.Array | pa.ChunkedArray]
"""Of rows of a file, which."""


def as_answers(replies: pa.Table, *, schema: pa.Schema = _COLUMNS) -> pa.Table:
    """Rows of a file of answers with columns of the file `answers`."""
    return pa.table([_column(replies, field=field) for field in schema], schema=schema)


def every_row(rows: pa.Table) -> pa.Array:
    """Says that all rows of a file are wanted."""
    return pa.repeat(pa.scalar(True), len(rows))


def compared_once(
    compared: pa.Table, *, replies: Iterable[NamedReplies], wanted: Wanted = every_row
) -> tuple[pa.Table, pa.Table]:
    """Which rows of the files are not compared, and what is compared that none of them has.

    Args:
        compared: all rows that are compared, by their key.
        replies: the files, the newest first.
        wanted: says of rows of a file which may be compared here; nothing is said of the others.
    """
    is_left = np.ones(len(compared), dtype=np.bool_)
    passed = [SCHEMAS[PASSED_OVER].columns.empty_table()]
    for file, table in replies:
        numbers = np.flatnonzero(wanted(table).to_numpy(zero_copy_only=False))
        given = as_answers(table.take(pa.array(numbers)))
        rows = _candidates(compared, given=given, is_left=is_left)
        at = _found(compared.take(pa.array(rows)), given=given)
        is_left[rows[at >= 0]] = False
        others = np.ones(len(given), dtype=np.bool_)
        others[at[at >= 0]] = False
        passed.append(_passed(numbers[others], file=file))
    return pa.concat_tables(passed).unify_dictionaries(), compared.filter(pa.array(is_left))


def whole_answers(
    own: pa.Table,
    *,
    passed_over: pa.Table,
    replies: Iterable[NamedReplies],
    columns: Sequence[str] | None = None,
    wanted: Wanted = every_row,
) -> pa.Table:
    """The way back: all rows that were compared, in no order; some columns, or all.

    `wanted`: as for `compared_once`.
    """
    schema = pa.schema([_COLUMNS.field(name) for name in columns or _COLUMNS.names])
    without = _by_file(passed_over)
    parts = [own.select(schema.names).cast(schema)]
    for file, table in replies:
        kept = np.ones(len(table), dtype=np.bool_)
        kept[without.get(file, [])] = False
        rows = table.filter(pa.array(kept))
        parts.append(as_answers(rows.filter(wanted(rows)), schema=schema))
    return pa.concat_tables(parts).unify_dictionaries()


def _column(replies: pa.Table, *, field: pa.Field) -> pa.ChunkedArray:
    if field.name in SHARED:
        return replies[field.name].cast(field.type)
    if field.name in CONSTANT:
        return _repeated(CONSTANT[field.name], rows=len(replies), kind=field.type)
    return pa.chunked_array([pa.nulls(len(replies), field.type)])


def _repeated(cell: str | int, *, rows: int, kind: pa.DataType) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(kind):
        return pa.chunked_array([pa.repeat(pa.scalar(cell, kind), rows)])
    words = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), pa.array([cell]))
    return pa.chunked_array([words])


def _candidates(compared: pa.Table, *, given: pa.Table, is_left: npt.NDArray[np.bool_]) -> Rows:
    """The rows that name an order of a file, and that no newer file has."""
    order_nos = given["order_no"]
    first, last = _between(compared, order_nos)
    near = first + np.flatnonzero(is_left[first:last])
    own = compared["order_no"].slice(first, last - first).filter(pa.array(is_left[first:last]))
    named: Rows = near[pc.is_in(own, value_set=order_nos.combine_chunks()).to_numpy()]
    return named


def _between(compared: pa.Table, order_nos: pa.ChunkedArray) -> tuple[int, int]:
    """Where rows of these orders stand: of one account they are sorted by their number."""
    own, bounds = compared["order_no"], pc.min_max(order_nos).as_py()
    ends = [
        compared[name].take([0, len(own) - 1]).to_pylist() for name in KEY_BUT_ORDER if len(own)
    ]
    if not (ends and len(order_nos)) or any(head != tail for head, tail in ends):
        return 0, len(own)

    def order_no(row: int) -> str:
        return str(own[row])

    rows = range(len(own))
    first = bisect_left(rows, bounds["min"], key=order_no)
    return first, bisect_right(rows, bounds["max"], key=order_no)


def _found(rows: pa.Table, *, given: pa.Table) -> Rows:
    """For each row the one that says the very same in a file, -1: none does."""
    at = pc.index_in(_named(rows), value_set=_named(given).combine_chunks())
    matching: Rows = at.fill_null(-1).to_numpy().astype(np.intp)
    _, first = np.unique(matching, return_index=True)
    is_first = np.zeros(len(matching), dtype=np.bool_)
    is_first[first] = True
    matching[~is_first] = -1
    hits = np.flatnonzero(matching >= 0)
    same = _are_same(rows.take(pa.array(hits)), given.take(pa.array(matching[hits])))
    matching[hits[~same]] = -1
    return matching


def _named(rows: pa.Table) -> pa.ChunkedArray:
    """By which a row is looked for; equal ones are compared in every column."""
    return pc.binary_join_element_wise(rows["order_no"], rows["transaction_id"], "\x1f")


def _are_same(ours: pa.Table, others: pa.Table) -> npt.NDArray[np.bool_]:
    same = np.ones(len(ours), dtype=np.bool_)
    for field in _COLUMNS:
        is_word = pa.types.is_dictionary(field.type)
        own, other = (
            table[field.name].cast(pa.string()) if is_word else table[field.name]
            for table in (ours, others)
        )
        if own.equals(other):
            continue  # nearly always
        equal = pc.if_else(pc.is_null(own), pc.is_null(other), pc.equal(own, other))
        same &= equal.fill_null(False).to_numpy()
    return same


def _passed(rows: Rows, *, file: str) -> pa.Table:
    schema = SCHEMAS[PASSED_OVER].columns
    named = _repeated(file, rows=len(rows), kind=schema.field("file").type)
    return pa.table([named, pa.array(rows, pa.int64())], schema=schema)


def _by_file(passed_over: pa.Table) -> dict[str, Sequence[int]]:
    files = passed_over["file"].cast(pa.string())
    return {
        name: passed_over["row"].filter(pc.equal(files, name)).to_pylist()
        for name in pc.unique(files).to_pylist()
    }
