"""What a workbook shows of what its night compared, without holding the rows that it compared.

It names files, rejected rows, settlement lines and sums. Of orders and books it asks only how many
rows stand behind another row, and of answers whether there was a usable one: so of these the rows
in question are read, found by a hash of their key, and the steps of the books as they were sealed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.schemas import ANSWERS, SCHEMAS
from recon.config.fee_contract import FeeContract
from recon.matching.cash.fees_charged import charged_by_pieces
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    SETTLEMENT_COLUMNS,
    Sources,
    frame_of,
)
from recon.matching.sides.fee_volumes import volumes_of
from recon.matching.sides.settlement_side import of_payments
from recon.matching.sides.summed_lines import summed_lines, with_summed
from recon.model.charged_fees import ChargedFees
from recon.model.words import REVERSAL_SUFFIX, EntryType, KeyAnswer
from recon.proof.books_bridge import BOOK_STEPS, Books
from recon.proof.compared_tables import sources_of_tables, vanished_of
from recon.proof.night_tables import FRAMES, TARIFFS, frame_of_table, with_tariffs
from recon.steps.ground.night_folder import COMPARED, INPUTS
from recon.steps.ground.sealed_night import SealedNight
from recon.store.nights.order_keys import Hashes, hashes_of

_PLACE = ("merchant_id", "account_id")
_FEES = (EntryType.FEE.value, EntryType.FEE.value + REVERSAL_SUFFIX)
_NEVER_WHOLE = {*FRAMES, TARIFFS}
"""Files with a row an order: each would be wider than all else that a workbook shows."""
_SETTLEMENT = "settlement"
_SETTLED = {"name": "given", "key": "settlement"}
"""The term that says that there are settlement lines."""


@dataclass(frozen=True, slots=True)
class ShownSources:
    """What is shown of the sources of a night."""

    sources: Sources
    """Whole but for its frames: of orders the rows whose key stands twice, of the ledger those and,
    where there are settlement lines, the fees; of answers one row of each word; settlement lines of
    payments summed up; no instructions and no universe."""
    books: Books
    vanished: pd.DataFrame
    """VANISHED_COLUMNS."""
    night: SealedNight
    """Where all rows of the frames are."""

    def fees(self, contract: FeeContract | None) -> ChargedFees | None:
        """What was charged beside what was agreed; None without a settlement or a contract.

        Raises:
            ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
        """
        sources = self.sources
        if contract is None or sources.settlement is None:
            return None
        pieces = _with_brands(self.night)
        return charged_by_pieces(pieces, contract=contract, volumes=volumes_of(sources))


def shown_sources(night: SealedNight) -> ShownSources:
    """What a workbook shows of a night that sealed what it compared.

    Raises:
        ArchiveError: the night's folder cannot be reached, or is not as it was sealed.
    """
    names = [name for name, schema in SCHEMAS.items() if schema.folder in {INPUTS, COMPARED}]
    tables = {name: SCHEMAS[name].columns.empty_table() for name in FRAMES}
    small = (name for name in names if name not in _NEVER_WHOLE and night.has(name))
    tables |= {name: night.table(name) for name in small}
    tables["orders"] = _rows_of_shared_keys(night, "orders", key="order_no")
    is_settled = any(row == _SETTLED for row in tables["terms"].select([*_SETTLED]).to_pylist())
    fees = _FEES if is_settled else ()
    tables["ledger"] = _rows_of_shared_keys(night, "ledger", key="entry_id", types=fees)
    words = [{"answer": word, "line": 0} for word in _answer_words(night)]
    sources = sources_of_tables(tables)
    lines = sources.settlement
    shown = replace(
        sources,
        gateway=frame_of(words, columns=GATEWAY_COLUMNS),
        settlement=None if lines is None else _summed(night, of=lines),
    )
    vanished = vanished_of(tables["known"])
    return ShownSources(shown, _books_of(tables["steps"]), vanished, night)


def _with_brands(night: SealedNight) -> Iterator[pd.DataFrame]:
    """SETTLEMENT_COLUMNS of all lines, some at a time; all at once where they tell of brands."""
    if night.has(TARIFFS) and len(tariffs := night.table(TARIFFS)):
        lines = frame_of_table(night.table(_SETTLEMENT))
        yield with_tariffs(lines, table=tariffs)[[*SETTLEMENT_COLUMNS]]
        return
    yield frame_of((), columns=SETTLEMENT_COLUMNS)
    for lines in _settled(night):
        yield with_tariffs(lines, table=None)[[*SETTLEMENT_COLUMNS]]


def _settled(night: SealedNight) -> Iterator[pd.DataFrame]:
    """The settlement lines of a night, some at a time, without what tells of brands."""
    columns = SCHEMAS[_SETTLEMENT].columns
    for rows in night.batches(_SETTLEMENT, columns=columns.names):
        yield frame_of_table(rows.cast(columns))


def _summed(night: SealedNight, *, of: pd.DataFrame) -> pd.DataFrame:
    """The lines of no payment, and what those of payments come to.

    `of`: what has the columns of both.
    """
    others, sums = [of.iloc[:0]], []
    for lines in _settled(night) if night.has(_SETTLEMENT) else ():
        of_sets = of_payments(lines)
        sums.append(summed_lines(lines[of_sets]))
        others.append(lines[~of_sets])
    return with_summed(pd.concat(others, ignore_index=True), parts=sums)


def _rows_of_shared_keys(
    night: SealedNight, name: str, *, key: str, types: Sequence[str] = ()
) -> pa.Table:
    """The rows of a file whose key another row has, or one of these entry types."""
    named = [*_PLACE, key, *(["entry_type"] if types else [])]
    hashes, chosen = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
    for rows in night.batches(name, columns=named):
        hashes.append(_hashes(rows, key=key))
        chosen.append(_are_of(rows, types=types))
    each, of_type = np.concatenate(hashes), np.concatenate(chosen)
    ordered = np.sort(each)
    wanted = np.union1d(ordered[1:][ordered[1:] == ordered[:-1]], each[of_type])
    columns = SCHEMAS[name].columns
    chosen_rows, at = [columns.empty_table()], 0
    for rows in night.batches(name, columns=columns.names) if len(wanted) else ():
        is_wanted = np.isin(each[at : at + len(rows)], wanted)
        chosen_rows.append(rows.filter(pa.array(is_wanted)).cast(columns))
        at += len(rows)
    return pa.concat_tables(chosen_rows)


def _hashes(rows: pa.Table, *, key: str) -> Hashes:
    return hashes_of(rows.select([*_PLACE, key]).rename_columns([*_PLACE, "order_no"]))


def _are_of(rows: pa.Table, *, types: Sequence[str]) -> npt.NDArray[np.bool_]:
    if not types:
        return np.zeros(len(rows), np.bool_)
    words = rows["entry_type"].cast(pa.string())
    return np.asarray(pc.is_in(words, value_set=pa.array(types)), np.bool_)


def _answer_words(night: SealedNight) -> list[str]:
    """What the compared answers say; read no further than to the first usable one."""
    words: set[str] = set()
    for rows in night.batches(ANSWERS, columns=["answer"]):
        words.update(pc.unique(rows["answer"].cast(pa.string())).to_pylist())
        if words - {KeyAnswer.FAILED.value}:
            break
    return sorted(words)


def _books_of(steps: pa.Table) -> Books:
    """Every step of the money of the books, as the comparison sealed it."""
    rows = [row for row in steps.to_pylist() if row["way"] == "books"]
    books: dict[str, dict[str, int]] = {row["currency"]: {} for row in rows}
    for row in sorted(rows, key=lambda row: BOOK_STEPS.index(row["step"])):
        books[row["currency"]][row["step"]] = row["number"]
    return dict(sorted(books.items()))
