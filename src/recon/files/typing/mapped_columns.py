"""From the columns of a merchant to ours: names, constants, words, decimal signs, units, dates.

What comes out has the standard form, which the readers of cells then judge as strictly as if the
file had been written so. A cell that the layout does not explain is a problem of its own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import TIME_PARTS, FileLayout
from recon.files.formats.raw_table import RawTable, filled
from recon.files.typing.table_schema import Cell, TableSchema
from recon.model.errors import AmountError
from recon.model.money import exponent

_ISO_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].*)?\z"
_PART = re.compile("%.")
_WORDS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class MappedColumns:
    """Every column of a table by our names."""

    cells: Mapping[str, pa.Array]
    """In the standard form; "" where the layout does not explain what stands there."""
    shown: Mapping[str, pa.Array]
    """As the file has them."""
    theirs: Mapping[str, str]
    """Our name -> the name in the file; without the constants."""
    problems: dict[str, dict[int, str]] = field(default_factory=dict)
    """Our name -> row number -> what the layout does not explain."""


def names_of(schema: TableSchema, *, layout: FileLayout) -> dict[str, str]:
    """Our column name -> theirs, of columns that a file is asked for."""
    return {
        name: layout.columns.get(name, name)
        for name in schema.names
        if name not in layout.constants
    }


def needed_of(schema: TableSchema, *, layout: FileLayout) -> tuple[str, ...]:
    """Their names of the columns without which a file is refused."""
    theirs = names_of(schema, layout=layout)
    needed = [theirs[name] for name in schema.required if name in theirs]
    needed += [their for name, their in theirs.items() if their != name]
    return tuple(dict.fromkeys(needed))


def mapped_columns(raw: RawTable, *, schema: TableSchema, layout: FileLayout) -> MappedColumns:
    """The columns of a file in the standard form."""
    theirs = names_of(schema, layout=layout)
    rows = len(raw.lines)
    blank = filled("", rows=rows)
    shown = {
        name: raw.columns.get(theirs[name], blank)
        if name in theirs
        else filled(layout.constants[name], rows=rows)
        for name in schema.names
    }
    mapped = MappedColumns(dict(shown), shown, theirs)
    cells: dict[str, pa.Array] = dict(shown)
    for name, words in layout.words.items():
        if name in theirs:
            cells[name] = _worded(cells[name], words=words, problems=_of(mapped, name))
    for column in schema.columns:
        if column.name not in theirs:
            continue
        numbers = raw.numbers.get(theirs[column.name])
        problems = _of(mapped, column.name)
        if column.cell is Cell.INSTANT and layout.times:
            cells[column.name] = _dated(
                cells[column.name], layout=layout, typed=raw.typed_dates, problems=problems
            )
        if column.cell is Cell.AMOUNT and (layout.decimal_sign == "," or layout.thousands_sign):
            cells[column.name] = _pointed(
                cells[column.name], layout=layout, numbers=numbers, problems=problems
            )
        if column.cell is Cell.AMOUNT and layout.units == "minor":
            cells[column.name] = _in_major_units(
                cells[column.name], currencies=cells[column.currency], problems=problems
            )
    return MappedColumns(cells, shown, theirs, mapped.problems)


def _of(mapped: MappedColumns, name: str) -> dict[int, str]:
    return mapped.problems.setdefault(name, {})


def _worded(cells: pa.Array, *, words: Mapping[str, str], problems: dict[int, str]) -> pa.Array:
    known = pa.array(["", *words], pa.large_string())
    ours = pa.array(["", *words.values()], pa.large_string())
    places: Any = pc.index_in(cells, value_set=known)
    shown = ", ".join(sorted(words)[:_WORDS_SHOWN_MAX])
    _note(problems, pc.is_null(places), why=f"is none of {shown}")
    return pc.fill_null(pc.take(ours, places), "")


def _dated(
    cells: pa.Array, *, layout: FileLayout, typed: bool, problems: dict[int, str]
) -> pa.Array:
    pattern, written = _time_pattern(layout.times)
    fits = pc.match_substring_regex(cells, pattern)
    fine = pc.or_(fits, pc.equal(cells, ""))
    if typed:  # cells that were dates, not text, come in the standard form
        fine = pc.or_(fine, pc.match_substring_regex(cells, _ISO_DATE))
    _note(problems, pc.invert(fine), why=f"is not a time written as {layout.times}")
    dated = pc.if_else(fits, pc.replace_substring_regex(cells, pattern, written), cells)
    return pc.if_else(fine, dated, "")


def _time_pattern(times: str) -> tuple[str, str]:
    """A pattern of the whole cell, and the standard form in its groups."""
    parts = _PART.findall(times)
    literals = _PART.split(times)
    pattern = re.escape(literals[0]) + "".join(
        TIME_PARTS[part] + re.escape(text) for part, text in zip(parts, literals[1:], strict=True)
    )
    group = {part: rf"\{group}" for group, part in enumerate(parts, start=1)}
    clock = ":".join(group.get(part, "00") for part in ("%H", "%M", "%S"))
    fraction = f".{group['%f']}" if "%f" in group else ""
    date = "-".join(group[part] for part in ("%Y", "%m", "%d"))
    return rf"\A{pattern}\z", f"{date}T{clock}{fraction}{group.get('%z', '')}"


def plain_amount(text: str, *, layout: FileLayout) -> str | None:
    """One amount with a point and without signs between its thousands; None: not so written."""
    if re.fullmatch(_amount_pattern(layout), text, re.ASCII) is None:
        return None
    if layout.thousands_sign:
        text = text.replace(layout.thousands_sign, "")
    return text.replace(layout.decimal_sign, ".")


def _amount_pattern(layout: FileLayout) -> str:
    sign, thousands = re.escape(layout.decimal_sign), re.escape(layout.thousands_sign)
    grouped = rf"|[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+" if thousands else ""
    return rf"-?(?:[0-9]+{grouped})(?:{sign}[0-9]+)?"


def _pointed(
    cells: pa.Array, *, layout: FileLayout, numbers: pa.Array | None, problems: dict[int, str]
) -> pa.Array:
    """As `plain_amount`, every cell."""
    pattern = rf"\A(?:{_amount_pattern(layout)})?\z"
    wrong = pc.invert(pc.match_substring_regex(cells, pattern))
    why = f"is not an amount with the decimal sign {layout.decimal_sign!r}"
    plain = cells
    if layout.thousands_sign:
        why += f" and {layout.thousands_sign!r} between all its thousands or none"
        plain = pc.replace_substring(plain, layout.thousands_sign, "")
    if layout.decimal_sign != ".":
        plain = pc.replace_substring(plain, layout.decimal_sign, ".")
    if numbers is not None:  # exact numbers have no signs of any writer
        wrong = pc.and_(wrong, pc.invert(numbers))
        plain = pc.if_else(numbers, cells, plain)
    _note(problems, wrong, why=why)
    return pc.if_else(wrong, "", plain)


def _in_major_units(cells: pa.Array, *, currencies: pa.Array, problems: dict[int, str]) -> pa.Array:
    wrong = pc.invert(pc.match_substring_regex(cells, r"\A(?:-?(?:0|[1-9][0-9]*))?\z"))
    _note(problems, wrong, why="is not a whole number of the smallest unit of its currency")
    cells = pc.if_else(wrong, "", cells)
    for code in pc.unique(currencies).to_pylist():
        try:
            decimals = exponent(code)
        except AmountError:
            continue  # the currency is a problem of its own
        if decimals:
            written = _with_point(cells, decimals=decimals)
            cells = pc.if_else(pc.equal(currencies, code), written, cells)
    return cells


def _with_point(cells: pa.Array, *, decimals: int) -> pa.Array:
    short = rf"\A(-?)([0-9]{{1,{decimals}}})\z"
    padded = pc.replace_substring_regex(cells, short, rf"\1{'0' * decimals}\2")
    pointed = pc.replace_substring_regex(
        padded, rf"\A(-?)([0-9]+)([0-9]{{{decimals}}})\z", r"\1\2.\3"
    )
    return pc.replace_substring_regex(pointed, r"\A(-?)0+([0-9]+\.)", r"\1\2")


def _note(problems: dict[int, str], wrong: Any, *, why: str) -> None:
    rows = np.flatnonzero(np.array(wrong, dtype=bool)).tolist()
    problems.update({row: why for row in rows if row not in problems})
