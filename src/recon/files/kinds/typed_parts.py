"""The parts of a file as typed rows, and what adds up over them."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.mended_cells import as_before
from recon.files.formats.raw_table import Declared, EveryColumn, RawTable
from recon.files.typing.card_columns import CardTally, card_runs
from recon.files.typing.control_figures import Counted
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.table_schema import ORDER_FILE, TableSchema
from recon.files.typing.typed_table import type_table
from recon.model.words import Reject

BAD_ROWS = "a row that cannot be read"


@dataclass(frozen=True, slots=True)
class HowToRead:
    """What decides how the bytes of one file become rows."""

    rules: Rules
    layout: FileLayout
    keep: bool
    """It may be archived, so every column is looked through for cards."""
    schema: TableSchema = ORDER_FILE
    decided: Mapping[str, bool] = field(default_factory=dict)
    """Column -> whether it holds cards, by an earlier reading of the same file."""

    @property
    def wanted(self) -> Container[str]:
        """The columns that a reader must bring."""
        read = read_of(self.schema, layout=self.layout)
        return EveryColumn(read) if self.keep else read


@dataclass(frozen=True, slots=True)
class TypedPart:
    """Some rows of a file, and what adds up over its parts."""

    rows: pa.Table
    rejects: tuple[Reject, ...]
    accepted: int
    counted: Counted
    cards: CardTally
    runs: Mapping[str, tuple[int, int]]
    """Column -> runs of digits that are cards, and that only look so."""
    header: tuple[str, ...]
    declared: Declared | None
    ignored_columns: tuple[str, ...]


def typed_part(part: RawTable, *, how: HowToRead) -> TypedPart:
    """What becomes of one part.

    Raises:
        SourceUnreadableError: a required column is missing.
    """
    raw, cards = as_before(part), CardTally(how.decided)
    table = type_table(raw, schema=how.schema, rules=how.rules, layout=how.layout, cards=cards)
    return TypedPart(
        rows=pa.Table.from_pandas(table.frame, preserve_index=False, nthreads=1),
        rejects=table.rejects,
        accepted=table.source_file.rows_accepted,
        counted=table.counted,
        cards=cards,
        runs=_card_runs(raw) if how.keep else {},
        header=raw.header,
        declared=raw.declared,
        ignored_columns=table.ignored_columns,
    )


def _card_runs(raw: RawTable) -> dict[str, tuple[int, int]]:
    """What looks like a card number, in any column and in rows that cannot be read."""
    bad = pa.array([row.text for row in raw.bad_rows], pa.large_string())
    return {name: card_runs(cells) for name, cells in {**raw.columns, BAD_ROWS: bad}.items()}
