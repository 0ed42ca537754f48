"""Columns of amounts: text and a currency per row into int64 minor units.

Arrow reads what plainly is an amount; every other cell goes to `recon.model.money` one by one,
which decides and says why. So there is one grammar, and the quick way can only be narrower.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.typing.distinct import Distinct
from recon.model.errors import AmountError
from recon.model.money import exponent, parse_minor_units, parse_signed_minor_units

_PLAIN_DIGITS_MAX = 17
"""Digits of minor units that the quick way takes; 18 could pass the product's bound."""

_HALF = 1 << 32
"""Amounts are added up in two halves: each half's sum fits in 64 bits for any file."""

_NUMBER = r"\A(?P<whole>-?[0-9]+)(?:\.(?P<fraction>[0-9]+))?\z"


@dataclass(slots=True)
class AmountColumn:
    """Minor units per row, 0 where there is none, and what is wrong with the others."""

    minor_units: npt.NDArray[np.int64]
    given: npt.NDArray[np.bool_]
    problems: dict[int, str] = field(default_factory=dict)


def exact_sum(minor_units: npt.NDArray[np.int64]) -> int:
    """The sum, which may pass what 64 bits hold."""
    high, low = minor_units >> 32, minor_units & (_HALF - 1)
    return int(high.sum()) * _HALF + int(low.sum())


def known_currencies(cells: pa.Array) -> dict[str, str]:
    """Every different code, with what is wrong with it; "" for a currency of ISO 4217."""
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
    """Minor units of trimmed text; "" is not given.

    `signed` marks rows that may carry a minus, `numbers` cells that were exact numbers and so may
    lack decimals. Rows whose currency is unknown are left out without a problem of their own.
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
    plain = np.array(pc.match_substring_regex(texts, _plain_pattern(currency)), dtype=bool)
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


def _plain_pattern(currency: str) -> str:
    decimals = exponent(currency)
    whole = rf"[0-9]{{1,{_PLAIN_DIGITS_MAX - max(2, decimals)}}}"
    return rf"\A{whole}\.[0-9]{{{decimals}}}\z" if decimals else rf"\A{whole}\z"


def with_decimals(texts: pa.Array, *, numbers: pa.Array | pa.Scalar, currency: str) -> pa.Array:
    """Number cells with the decimals of their currency: what an exact number leaves out is 0."""
    parts: Any = pc.extract_regex(texts, _NUMBER)
    whole = pc.struct_field(parts, "whole")
    fraction: Any = pc.utf8_rtrim(pc.struct_field(parts, "fraction"), characters="0")
    padded = pc.utf8_rpad(fraction, width=exponent(currency), padding="0")
    joined = pc.binary_join_element_wise(whole, padded, pa.scalar(".", whole.type))
    completed = pc.if_else(pc.equal(pc.utf8_length(padded), 0), whole, joined)
    usable = pc.and_(numbers, pc.is_valid(completed))
    return pc.if_else(usable, completed, texts)
