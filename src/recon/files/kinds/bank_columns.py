"""The entries of one statement as columns: raw texts in, minor units and words out.

Arrow reads what plainly is an amount; every other text goes one by one to the reader that says what
is wrong with it. Of an entry that says more than most (charges, another currency, payments in it)
the rest is looked at by itself.

T15 is asked of each statement as it is read: opening and booked entries come to its closing. Some
banks turn the mark of a reversed entry and others leave it as it was, so a statement with reversals
is read both ways: the one that its balances prove holds, and where neither does nothing of the file
counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recon.files.formats.bank_records import EntryBlock, RawEntry, block_of, is_odd
from recon.files.formats.raw_table import refuse
from recon.matching.frames.grouping import Bools, Ints
from recon.model.errors import AmountError
from recon.model.money import exponent, format_minor_units, parse_minor_units
from recon.privacy.shown_text import scrubbed

ASK_AGAIN = "nothing of the file counts: ask the bank for the statement again"
_NUMBER = re.compile(r"(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """How a statement is named in a sentence."""

    name: str
    account: str
    number: str

    def __str__(self) -> str:
        number = scrubbed(self.number) or "without a number"
        return f"statement {number} of account {scrubbed(self.account)}"

    def refuse(self, problem: str) -> NoReturn:
        """Give up on the whole file.

        Raises:
            SourceUnreadableError: always.
        """
        refuse(self.name, f"({self}): {problem}; {ASK_AGAIN}")


def units_of(text: str, *, currency: str, statement: StatementPlace) -> int:
    """Minor units of an amount as banks write it: zeros behind its last digit may be left out.

    Raises:
        SourceUnreadableError: it is no amount of the currency.
    """
    known = _NUMBER.fullmatch(text)
    if known is None:
        statement.refuse(f"{scrubbed(text)!r} is no amount")
    try:
        fraction = (known["fraction"] or "").ljust(exponent(currency), "0")
        exact = f"{known['whole']}.{fraction}" if fraction else known["whole"]
        return parse_minor_units(exact, currency=currency)
    except AmountError as error:
        statement.refuse(scrubbed(str(error)))


def signs_turned(
    *,
    opening: int | None,
    closing: int | None,
    plain: int,
    reversals: int,
    statement: StatementPlace,
    currency: str,
) -> bool:
    """Whether the reversals of a statement stand with the mark that they reverse.

    Args:
        opening: the balance before, signed minor units; None where there is none.
        closing: the balance behind.
        plain: the sum of the entries that reverse nothing.
        reversals: the sum of the others as they are marked.
        statement: whose file.
        currency: of all of them.

    Raises:
        SourceUnreadableError: the balances prove neither way.
    """
    if opening is None or closing is None or opening + plain + reversals == closing:
        return False
    if not reversals or opening + plain - reversals != closing:
        refuse_unbalanced(
            opening, plain + reversals, closing, statement=statement, currency=currency
        )
    return True


def refuse_unbalanced(
    opening: int, booked: int, closing: int, *, statement: StatementPlace, currency: str
) -> NoReturn:
    """Refuse a statement that does not add up, with its figures.

    Raises:
        SourceUnreadableError: always.
    """

    def shown(amount: int) -> str:
        return f"{format_minor_units(amount, currency=currency)} {currency}"

    statement.refuse(
        f"opening {shown(opening)} and booked entries of {shown(booked)} come to "
        f"{shown(opening + booked)}, but its closing balance is {shown(closing)}: the two are "
        f"{shown(abs(opening + booked - closing))} apart"
    )


DIGITS_MAX = 14
"""Before the point, in an amount that Arrow reads."""


@dataclass(frozen=True, slots=True)
class EntryColumns:
    """All entries of a statement, in its order."""

    blocks: tuple[EntryBlock, ...]
    credit: Bools
    reversal: Bools
    booked: Bools
    odd: dict[int, RawEntry]
    """Row -> entry, of those that say more than the columns do."""

    def __len__(self) -> int:
        """How many entries."""
        return len(self.credit)

    def texts(self, name: str, /) -> pa.ChunkedArray:
        """One of BLOCK_TEXTS, of all entries."""
        return pa.chunked_array([block.texts[name] for block in self.blocks])

    def starts(self) -> Iterator[tuple[int, EntryBlock]]:
        """The row of the first entry of each block."""
        row = 0
        for block in self.blocks:
            yield row, block
            row += len(block)


def columns_of(entries: list[RawEntry | EntryBlock]) -> EntryColumns:
    """Entries, some of which are columns already, as columns."""
    blocks: list[EntryBlock] = []
    odd: dict[int, RawEntry] = {}
    row = 0
    for is_block, several in groupby(entries, key=lambda entry: isinstance(entry, EntryBlock)):
        if is_block:
            ready = [block for block in several if isinstance(block, EntryBlock)]
        else:
            singles = [entry for entry in several if isinstance(entry, RawEntry)]
            odd |= {at: entry for at, entry in enumerate(singles, start=row) if is_odd(entry)}
            ready = [block_of(singles)]
        blocks += ready
        row += sum(map(len, ready))
    blocks = blocks or [block_of([])]
    return EntryColumns(
        tuple(blocks),
        np.concatenate([block.credit for block in blocks]),
        np.concatenate([block.reversal for block in blocks]),
        np.concatenate([block.booked for block in blocks]),
        odd,
    )


def amounts_of(columns: EntryColumns, *, currency: str, where: StatementPlace) -> Ints:
    """Minor units with the sign of the mark.

    Raises:
        SourceUnreadableError: one of them is no amount of the currency.
    """
    amounts = [
        _amounts(block.texts["amount"], currency=currency, where=where) for block in columns.blocks
    ]
    unsigned = np.concatenate(amounts)
    signed: Ints = np.where(columns.credit, unsigned, -unsigned)
    return signed


def _amounts(texts: pa.Array, *, currency: str, where: StatementPlace) -> Ints:
    decimals = exponent(currency)
    fraction = rf"\.[0-9]{{{decimals}}}" if decimals else ""
    plain = pc.match_substring_regex(texts, rf"\A[0-9]{{1,{DIGITS_MAX}}}{fraction}\z")
    is_plain = plain.to_numpy(zero_copy_only=False)
    amounts = np.zeros(len(texts), dtype=np.int64)
    digits: Any = pc.replace_substring(texts.filter(plain), ".", "")
    amounts[is_plain] = digits.cast(pa.int64()).to_numpy()
    for row in np.flatnonzero(~is_plain).tolist():
        amounts[row] = units_of(texts[row].as_py(), currency=currency, statement=where)
    return amounts


def refuse_unfit(columns: EntryColumns, *, currency: str, where: StatementPlace) -> None:
    """Refuse entries of another currency, and booked ones without a day.

    Raises:
        SourceUnreadableError: there is one.
    """
    for block in columns.blocks:
        texts = block.texts["currency"]
        for row in np.flatnonzero(~_is(texts, currency))[:1].tolist():
            own = texts[row].as_py()
            where.refuse(
                f"line {block.lines[row]} is an entry in {scrubbed(own) or 'no currency'}, "
                f"its account is in {currency}"
            )
    for block in columns.blocks:
        timeless = _is(block.texts["booked_on"], "") & block.booked
        for row in np.flatnonzero(timeless)[:1].tolist():
            where.refuse(f"line {block.lines[row]} is a booked entry without a day of booking")


def _is(texts: pa.DictionaryArray, word: str) -> Bools:
    """Which of REPEATED are this word."""
    codes = [code for code, own in enumerate(texts.dictionary.to_pylist()) if own == word]
    known: Bools = np.isin(texts.indices.to_numpy(), codes)
    return known


def different(columns: EntryColumns, name: str, /, *, among: Bools | None = None) -> list[str]:
    """Every different text of one of REPEATED in the order in which they come first."""
    words: dict[str, None] = {}
    for row, block in columns.starts():
        texts = block.texts[name]
        mine = slice(row, row + len(block))
        codes = texts.indices.to_numpy()[slice(None) if among is None else among[mine]]
        own, first = np.unique(codes, return_index=True)
        dictionary = texts.dictionary.to_pylist()
        words |= dict.fromkeys(dictionary[code] for code in own[np.argsort(first)].tolist())
    return [*words]


def numbers_of(columns: EntryColumns) -> pa.ChunkedArray:
    """The number of each entry: its place where it has none, and `#2` where one stands before."""
    if _is_each_its_own(columns):
        return columns.texts("entry_no")
    times: dict[str, int] = {}
    numbers: list[pa.Array] = []
    for row, block in columns.starts():
        own = []
        for at, number in enumerate(block.texts["entry_no"].to_pylist(), start=row + 1):
            name = number or str(at)
            times[name] = time = times.get(name, 0) + 1
            own.append(name if time == 1 else f"{name}#{time}")
        numbers.append(pa.array(own, pa.string()))
    return pa.chunked_array(numbers)


def _is_each_its_own(columns: EntryColumns) -> bool:
    """Whether surely no two entries have one number: their hashes differ, which take 8 bytes."""
    hashes = np.zeros(len(columns), dtype=np.int64)
    for row, block in columns.starts():
        numbers = block.texts["entry_no"].to_pylist()
        hashes[row : row + len(block)] = [hash(number) for number in numbers]
    hashes.sort()
    return hash("") not in hashes and bool(np.all(hashes[1:] != hashes[:-1]))


def days_of(columns: EntryColumns) -> Iterator[str]:
    """Every different day that the entries name."""
    for name in ("booked_on", "value_on"):
        yield from different(columns, name)


def longest_number(columns: EntryColumns) -> int:
    """Characters of the longest number of an entry."""
    lengths = (pc.max(pc.utf8_length(block.texts["entry_no"])) for block in columns.blocks)
    return max(length.as_py() or 0 for length in lengths)
