"""Numbers for text columns: each distinct label is processed once, each row costs one look-up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.frames.arrays import Column
from recon.matching.frames.grouping import Bools, Rows

Codes = npt.NDArray[np.int32]
NO_KEY = -1
Columns = pd.DataFrame | Mapping[str, "pd.Series[str]"]
"""A table whose rows are numbered by some of its columns."""


class Coded(NamedTuple):
    """Columns encoded with one shared dictionary."""

    codes: tuple[Codes, ...]
    """For each column, the number of the label in each of its rows."""
    labels: pa.Array
    """The distinct labels, by number."""


class Keyed(NamedTuple):
    """The number of each row's combination of cells, and the distinct combinations by number."""

    rows: Rows
    keys: list[tuple[str, ...]]


def coded(columns: "Sequence[pd.Series[str]]") -> Coded:
    """Number the labels of several columns together, in order of first appearance."""
    chunks = [pieces(column) for column in columns]
    together = [chunk for part in chunks for chunk in part]
    if not together:
        return Coded((np.zeros(0, dtype=np.int32),) * len(columns), pa.array([], pa.large_string()))
    numbered = pa.chunked_array(together, pa.large_string()).dictionary_encode()
    codes = iter([np.asarray(chunk.indices) for chunk in numbered.chunks])
    coded_of = tuple(_joined([*islice(codes, len(part))]) for part in chunks)
    return Coded(coded_of, numbered.chunk(0).dictionary)


def numbered(column: "pd.Series[str]") -> Rows:
    """Return for each row the number of its label among the labels of the column."""
    return coded([column]).codes[0].astype(np.intp)


def _joined(parts: list[Codes]) -> Codes:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)


def pieces(column: "pd.Series[str]") -> list[pa.Array]:
    """Return the texts of a column as Arrow chunks, with nulls replaced by ""."""
    text: Any = pa.array(column)
    chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    return [
        pc.fill_null(chunk, "") if chunk.null_count else chunk
        for chunk in (chunk.cast(pa.large_string()) for chunk in chunks)
        if len(chunk)
    ]


def by_label(
    column: "pd.Series[str]", *, of: Callable[[str], int | bool]
) -> "np.ndarray[Any, np.dtype[Any]]":
    """Return `of(label)` for each row; `of` is called once per distinct label."""
    (codes,), labels = coded([column])
    values = [of(label) for label in labels.to_pylist()]
    return np.array(values or [0])[codes]


def label_of(column: "pd.Series[str]") -> Column:
    """Return a column of few distinct labels as an array of `str`; equal rows share one object."""
    (codes,), labels = coded([column])
    return np.array([*labels.to_pylist(), ""], dtype=object)[codes]


def equals(column: "pd.Series[str]", *labels: str) -> Bools:
    """Mark the rows that hold one of the labels."""
    return np.asarray(by_label(column, of=lambda label: label in labels), dtype=np.bool_)


def keyed(frame: Columns, *, by: Sequence[str]) -> Keyed:
    """Number the distinct combinations of columns that have few distinct labels each."""
    (rows,), keys = keyed_together([frame], by=by)
    return Keyed(rows, keys)


def keyed_together(
    frames: Sequence[Columns], *, by: Sequence[str]
) -> tuple[list[Rows], list[tuple[str, ...]]]:
    """Number combinations of several frames together; return numbers per frame and the list."""
    sizes = [len(frame[by[0]]) for frame in frames]
    ends = np.cumsum(sizes)
    rows = np.zeros(ends[-1], dtype=np.intp)
    keys: list[tuple[str, ...]] = [()] if len(rows) else []
    for name in by:
        codes, labels = coded([frame[name] for frame in frames])
        texts = labels.to_pylist()
        if len(texts) == 1:
            keys = [(*code, texts[0]) for code in keys]
        elif texts:
            rows, known = pd.factorize(rows * len(texts) + np.concatenate(codes))
            split = (divmod(int(coded), len(texts)) for coded in known)
            keys = [(*keys[code], texts[label]) for code, label in split]
    return np.split(rows, ends[:-1]), keys


def combined(columns: "Sequence[npt.NDArray[Any]]") -> Keyed:
    """Number the distinct combinations of text columns, in order of first appearance."""
    rows = np.zeros(len(columns[0]), dtype=np.intp)
    keys: list[tuple[str, ...]] = [()]
    for column in columns:
        codes, labels = pd.factorize(column)
        rows, pairs = pd.factorize(rows * len(labels) + codes)
        split = (divmod(int(pair), len(labels)) for pair in pairs)
        keys = [(*keys[code], labels[label]) for code, label in split]
    return Keyed(rows, keys)


MANY_MORE = 4
"""If `wanted` has more than this many times the rows of the column, it is first reduced to the
column's texts: the look-up table takes 70 bytes for each text."""


def is_among(column: "pd.Series[str]", wanted: Iterable[str]) -> "pd.Series[bool]":
    """Return whether each text is one of `wanted`, with the column's own index.

    `Series.isin` takes the wanted texts one by one through Python, which for a million orders costs
    more than comparing them.
    """
    names = wanted.array if isinstance(wanted, pd.Series) else [*wanted]
    known: pa.Array = pa.array(names, pa.large_string())
    texts: pa.Array = pa.array(column, pa.large_string())
    if len(known) > MANY_MORE * len(texts):
        known = known.filter(pc.is_in(known, value_set=texts))
    is_known: pa.Array = pc.is_in(texts, value_set=known)
    return pd.Series(np.asarray(is_known, dtype=bool), index=column.index)
