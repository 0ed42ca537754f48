"""Amount columns: from a program's own notation to the form `-1234.50` and int64 minor units.

A cell that does not follow its layout is a problem; nothing is corrected. Arrow parses plain
amounts; other cells go one by one to `recon.model.money`, which decides and gives the reason, so
there is a single grammar and the fast path can only accept less.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.config.file_layouts import FileLayout, SignColumn
from recon.files.typing.table_schema import DIRECTIONS, SIGNED_ENTRY_TYPES
from recon.files.typing.text_cells import CellProblems, Distinct, note_cells
from recon.model.errors import AmountError
from recon.model.money import (
    exponent,
    parse_minor_units,
    parse_signed_minor_units,
)

_PLAIN_DIGITS_MAX = 17
"""Number of digits that the fast path accepts; 18 could exceed the product's maximum."""

_HALF = 1 << 32
"""Amounts are summed in two halves, as each half's sum fits in 64 bits for any file."""

_NUMBER = r"\A(?P<whole>-?[0-9]+)(?:\.(?P<fraction>[0-9]+))?\z"


@dataclass(slots=True)
class AmountColumn:
    """Minor units per row, 0 where there are none, and the problems of other rows."""

    minor_units: npt.NDArray[np.int64]
    given: npt.NDArray[np.bool_]
    problems: dict[int, str] = field(default_factory=dict)


def exact_sum(minor_units: npt.NDArray[np.int64]) -> int:
    """Sum the amounts exactly; the result may exceed 64 bits."""
    high, low = minor_units >> 32, minor_units & (_HALF - 1)
    return int(high.sum()) * _HALF + int(low.sum())


def known_currencies(cells: pa.Array) -> dict[str, str]:
    """Return each distinct code -> its problem; "" for a currency of ISO 4217."""
    problems = {}
    for code in pc.unique(cells).to_pylist():
        try:
            exponent(code)
        except AmountError as error:
            problems[code] = str(error)
        else:
            problems[code] = ""
    return problems


def read_amounts(
    cells: pa.Array,
    *,
    currencies: Distinct,
    signed: npt.NDArray[np.bool_] | None = None,
    numbers: pa.Array | None = None,
) -> AmountColumn:
    """Parse trimmed text into minor units; "" is not given.

    `signed` marks rows that may have a minus, `numbers` cells that were exact numbers and may lack
    decimals. Rows with an unknown currency are left out, without a problem of their own.
    """
    given = np.array(pc.not_equal(cells, ""), dtype=bool)
    column = AmountColumn(np.zeros(len(cells), dtype=np.int64), given)
    if not given.any():
        return column
    for number, (code, problem) in enumerate(known_currencies(currencies.texts).items()):
        rows = np.flatnonzero((currencies.codes == number) & given)
        if problem:
            given[rows] = False
            continue
        if not len(rows):
            continue
        whole = len(rows) == len(cells)
        texts = cells if whole else cells.take(pa.array(rows))
        if numbers is not None:
            exact = numbers if whole else numbers.take(pa.array(rows))
            texts = with_decimals(texts, numbers=exact, currency=code)
        _read_one_currency(column, rows, texts, currency=code, signed=signed)
    return column


def _read_one_currency(
    column: AmountColumn,
    rows: npt.NDArray[np.int64],
    texts: pa.Array,
    *,
    currency: str,
    signed: npt.NDArray[np.bool_] | None,
) -> None:
    decimals = exponent(currency)
    pattern = rf"\A[0-9]{{1,{_PLAIN_DIGITS_MAX - max(2, decimals)}}}"
    pattern += rf"\.[0-9]{{{decimals}}}\z" if decimals else r"\z"
    plain = np.array(pc.match_substring_regex(texts, pattern), dtype=bool)
    digits: Any = pc.replace_substring(texts.filter(pa.array(plain)), ".", "")
    column.minor_units[rows[plain]] = np.array(digits.cast(pa.int64()))
    for index in np.flatnonzero(~plain).tolist():
        row = int(rows[index])
        parse = parse_minor_units if signed is None or not signed[row] else parse_signed_minor_units
        try:
            column.minor_units[row] = parse(texts[index].as_py(), currency=currency)
        except AmountError as error:
            column.problems[row] = str(error)
            column.given[row] = False


def with_decimals(texts: pa.Array, *, numbers: pa.Array | pa.Scalar, currency: str) -> pa.Array:
    """Pad number cells to their currency's decimals; what an exact number omits is 0."""
    parts: Any = pc.extract_regex(texts, _NUMBER)
    whole = pc.struct_field(parts, "whole")
    fraction: Any = pc.utf8_rtrim(pc.struct_field(parts, "fraction"), characters="0")
    padded = pc.utf8_rpad(fraction, width=exponent(currency), padding="0")
    joined = pc.binary_join_element_wise(whole, padded, pa.scalar(".", whole.type))
    completed = pc.if_else(pc.equal(pc.utf8_length(padded), 0), whole, joined)
    usable = pc.and_(numbers, pc.is_valid(completed))
    return pc.if_else(usable, completed, texts)


_WHOLE = r"\A(?:-?(?:0|[1-9][0-9]*))?\z"
MINUS_SIGN = "\u2212"
"""The typographic minus sign, which has no other meaning."""
_GAP = "[ \u00a0\u202f]?"
"""Allowed between an amount and its currency sign."""
_PLUS = rf"{_GAP}CR\z"
_NEGATIVE = {
    "before": ("-?(?:{0})|{1}-(?:{2})", r"\A-(.*)\z"),
    "behind": ("(?:{0})-?|(?:{2})-{1}", r"\A(.*)-\z"),
    "DR": (rf"(?:{{0}})(?:{_GAP}[CD]R)?", rf"\A(.*?){_GAP}DR\z"),
    "brackets": (r"(?:{0})|\((?:{0})\)|{1}\((?:{2})\)|\((?:{2})\){1}", r"\A\((.*)\)\z"),
}
"""Position of the minus -> (pattern of numbers, pattern of negative ones). In the first, {0} is the
number with or without currency sign, {1} the currency sign, {2} the number without it."""


def written_amounts(
    cells: pa.Array,
    *,
    layout: FileLayout,
    currencies: Distinct,
    signed: npt.NDArray[np.bool_] | None = None,
    numbers: pa.Array | None = None,
    problems: CellProblems,
) -> tuple[pa.Array, AmountColumn]:
    """Parse cells written as the layout says; return them in standard form, and the amounts.

    Other arguments as in `read_amounts`; cells against the layout are added to `problems`.
    """
    texts = amounts_in_standard_form(cells, layout=layout, numbers=numbers, problems=problems)
    if layout.units == "minor":
        texts = in_major_units(texts, currencies=currencies.by_cell, problems=problems)
    elif layout.decimals == "as_written":
        texts = with_short_decimals(texts, currencies=currencies.by_cell)
    return texts, read_amounts(texts, currencies=currencies, signed=signed, numbers=numbers)


def amounts_in_standard_form(
    cells: pa.Array, *, layout: FileLayout, numbers: pa.Array | None, problems: CellProblems
) -> pa.Array:
    """Rewrite cells in standard form, invalid ones as ""; `numbers` are left as they are."""
    cells = pc.replace_substring(cells, MINUS_SIGN, "-")
    standard = (layout.decimal_sign, layout.thousands_sign, layout.minus, layout.currency_sign)
    if standard == (".", "", "before", ""):
        return cells
    wrong = pc.invert(pc.match_substring_regex(cells, rf"\A(?:{_amount_pattern(layout)})?\z"))
    why = f"is not an amount with the decimal sign {layout.decimal_sign!r}"
    plain = cells
    if layout.currency_sign:
        why += f", {layout.currency_sign!r} before or behind it or nothing"
        plain = pc.replace_substring_regex(plain, _sign_pattern(layout), "")
    if layout.thousands_sign:
        why += f" and {layout.thousands_sign!r} between all its thousands or none"
        plain = pc.replace_substring(plain, layout.thousands_sign, "")
    if layout.decimal_sign != ".":
        plain = pc.replace_substring(plain, layout.decimal_sign, ".")
    if layout.minus != "before":
        why += f", its minus {_MINUS_DISPLAYED[layout.minus]}"
        plain = pc.replace_substring_regex(plain, _NEGATIVE[layout.minus][1], r"-\1")
        plain = pc.replace_substring_regex(plain, _PLUS, "") if layout.minus == "DR" else plain
    if numbers is not None:
        wrong = pc.and_(wrong, pc.invert(numbers))
        plain = pc.if_else(numbers, cells, plain)
    note_cells(problems, wrong, why=why)
    return pc.if_else(wrong, "", plain)


_MINUS_DISPLAYED = {
    "behind": "behind it",
    "brackets": "written as brackets",
    "DR": "written as DR behind it, CR for plus",
}


def refuse_where(amounts: AmountColumn, wrong: Any, *, why: str, problems: CellProblems) -> None:
    """Remove the amounts where `wrong` holds, giving the reason."""
    note_cells(problems, wrong, why=why)
    amounts.given &= ~wrong
    amounts.minor_units[wrong] = 0


def sum_of(
    parts: Mapping[str, AmountColumn],
    *,
    filled: Mapping[str, npt.NDArray[np.bool_]],
    unknown: npt.NDArray[np.bool_],
    proven: bool,
    problems: CellProblems,
) -> AmountColumn:
    """Add up several columns, each of which must hold amounts by itself.

    Args:
        parts: Column name -> amounts read from it; each may be negative.
        filled: Column name -> rows where it is not blank.
        unknown: Rows with an unknown currency.
        proven: Another figure of the row proves the sum, so that a blank adds nothing. Otherwise a
            row has all of them, or none (a blank amount).
        problems: Receives the rows where a part is not an amount, naming the column.
    """
    total = AmountColumn(np.zeros(len(unknown), dtype=np.int64), np.full(len(unknown), proven))
    for their, part in parts.items():
        for row, why in part.problems.items():
            problems.setdefault(row, f"{their} {why}")
        total.minor_units += part.minor_units
        total.given |= part.given
    for their, there in () if proven else filled.items():
        note_cells(problems, total.given & ~there, why=f"{their} is blank beside other summands")
    unread = unknown & np.any([*filled.values()], axis=0)
    note_cells(problems, unread, why="cannot be added up in a currency that is none")
    wrong = np.isin(np.arange(len(unknown)), [*problems]) | unknown
    total.given &= ~wrong
    total.minor_units[wrong] = 0
    return total


def less_debits(
    added: AmountColumn, *, debits: AmountColumn, own_minus: bool, problems: CellProblems
) -> AmountColumn:
    """Merge two columns, credits and debits, into one signed column.

    `own_minus`: each debit is written with a minus.
    """
    debited, credited = debits.minor_units, added.minor_units
    bare = (debited > 0) & own_minus
    note_cells(problems, bare, why="has no minus in a column of debits that have one")
    debited = -debited if own_minus else debited
    both = (debited != 0) & (credited != 0)
    note_cells(problems, both, why="is filled on both sides, debit and credit")
    signed = (debited < 0) | (credited < 0)
    note_cells(problems, signed, why="has a minus in a column of debits or credits")
    for row, why in debits.problems.items():
        problems.setdefault(row, why)
    merged = AmountColumn(credited - debited, added.given | debits.given, added.problems)
    wrong = np.isin(np.arange(len(debited)), [*problems])
    merged.given &= ~wrong
    merged.minor_units[wrong] = 0
    return merged


def take_signs(
    amounts: AmountColumn, *, signs: pa.Array, sign: SignColumn, problems: CellProblems
) -> None:
    """Apply the sign given in another column; the amounts must not have one themselves."""
    minus, plus = (np.array(pc.equal(signs, each), dtype=bool) for each in (sign.minus, sign.plus))
    unknown = amounts.given & ~(minus | plus)
    why = f"has neither {sign.plus!r} nor {sign.minus!r} as its sign"
    refuse_where(amounts, unknown, why=why, problems=problems)
    why = "has a minus beside the column with its sign"
    refuse_where(amounts, amounts.minor_units < 0, why=why, problems=problems)
    amounts.minor_units[minus] *= -1


def take_directions(
    amounts: AmountColumn, *, entry_types: Distinct, captures: str, problems: CellProblems
) -> None:
    """Remove the sign that a ledger's entry type implies; adjustments keep theirs."""
    signed_rows = np.zeros(len(amounts.given), dtype=bool)
    side = -1 if captures == "minus" else 1
    for code, entry_type in enumerate(entry_types.texts.to_pylist()):
        rows = entry_types.codes == code
        if entry_type in SIGNED_ENTRY_TYPES:
            signed_rows |= rows
        if way := DIRECTIONS.get(entry_type, 0) * side:
            seen, due = ("minus", "plus") if way > 0 else ("plus", "minus")
            why = (
                f"is {seen}, but {entry_type} must be {due} in ledgers with captures in {captures}"
            )
            wrong = rows & (amounts.minor_units * way < 0)
            refuse_where(amounts, wrong, why=why, problems=problems)
    units = amounts.minor_units
    amounts.minor_units = np.where(signed_rows, units * side, np.abs(units))


def take_sign_of(
    stated: AmountColumn,
    *,
    amounts: AmountColumn,
    unsigned: AmountColumn,
    problems: CellProblems,
) -> None:
    """Give a ledger's amount in transaction currency the sign of the entry's amount.

    Args:
        stated: With the sign of the entry's amount, or with none.
        amounts: The entries' amounts as written.
        unsigned: The same without the sign that the entry type implies.
        problems: Receives rows where the two signs differ.
    """
    other = (stated.minor_units < 0) & (amounts.minor_units >= 0) & amounts.given
    why = "is minus, but the amount of its entry is plus"
    refuse_where(stated, other, why=why, problems=problems)
    units = np.abs(stated.minor_units)
    stated.minor_units = np.where(unsigned.minor_units < 0, -units, units)


def refuse_other_currency(
    amounts: AmountColumn, *, stated: pa.Array, currencies: pa.Array, problems: CellProblems
) -> None:
    """Refuse amounts whose own currency differs from that of their row."""
    other = np.array(pc.not_equal(stated, currencies), dtype=bool)
    nothing = np.array(pc.equal(stated, ""), dtype=bool) & (amounts.minor_units == 0)
    why = "is in another currency than its row, or in none"
    refuse_where(amounts, other & ~nothing, why=why, problems=problems)


def in_major_units(cells: pa.Array, *, currencies: pa.Array, problems: CellProblems) -> pa.Array:
    """Convert whole numbers of minor units to major units with decimals."""
    wrong = pc.invert(pc.match_substring_regex(cells, _WHOLE))
    note_cells(problems, wrong, why="is not a whole number of the smallest unit of its currency")
    cells = pc.if_else(wrong, "", cells)
    for code in pc.unique(currencies).to_pylist():
        try:
            decimals = exponent(code)
        except AmountError:
            continue  # reported as a problem of the currency column
        if decimals:
            written = _with_point(cells, decimals=decimals)
            cells = pc.if_else(pc.equal(currencies, code), written, cells)
    return cells


def with_short_decimals(cells: pa.Array, *, currencies: pa.Array) -> pa.Array:
    """Pad amounts whose trailing zeros may be left out to their currency's decimals."""
    for code in pc.unique(currencies).to_pylist():
        with suppress(AmountError):  # reported as a problem of the currency column
            whole = with_decimals(cells, numbers=pa.scalar(True), currency=code)
            cells = pc.if_else(pc.equal(currencies, code), whole, cells)
    return cells


def _with_point(cells: pa.Array, *, decimals: int) -> Any:
    short = rf"\A(-?)([0-9]{{1,{decimals}}})\z"
    padded = pc.replace_substring_regex(cells, short, rf"\1{'0' * decimals}\2")
    pointed = pc.replace_substring_regex(
        padded, rf"\A(-?)([0-9]+)([0-9]{{{decimals}}})\z", r"\1\2.\3"
    )
    return pc.replace_substring_regex(pointed, r"\A(-?)0+([0-9]+\.)", r"\1\2")


def _amount_pattern(layout: FileLayout) -> str:
    sign, thousands = re.escape(layout.decimal_sign), re.escape(layout.thousands_sign)
    grouped = rf"|[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+" if thousands else ""
    bare = rf"(?:[0-9]+{grouped})(?:{sign}[0-9]+)?"
    currency = _sign_pattern(layout) if layout.currency_sign else ""
    signed = f"{currency}{bare}|{bare}{currency}|{bare}" if currency else bare
    return _NEGATIVE[layout.minus][0].format(signed, currency, bare)


def _sign_pattern(layout: FileLayout) -> str:
    return f"{_GAP}{re.escape(layout.currency_sign)}{_GAP}"
