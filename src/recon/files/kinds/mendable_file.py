"""The refused rows of a file, as a night refuses them; order files are read a part at a time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.mended_cells import as_before
from recon.files.formats.named_bytes import CHANGED, ReadSoFar, read_bytes
from recon.files.formats.raw_reader import raw_of, raw_parts
from recon.files.formats.raw_table import refuse
from recon.files.kinds.instruction_file import INSTRUCTION_FILE, NO_TABLES, instruction_file_of
from recon.files.kinds.payout_columns import PAYOUT_COLUMNS
from recon.files.typing.card_columns import CardTally
from recon.files.typing.mapped_columns import needed_of, read_of
from recon.files.typing.mending import MendableRow, mendable_rows
from recon.files.typing.table_schema import ORDER_FILE
from recon.files.typing.typed_table import reading_of
from recon.privacy.shown_text import scrubbed


def refused_rows(path: Path, *, rules: Rules, layout: FileLayout) -> list[MendableRow]:
    """Every refused row of an order file, in the order of its lines.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it cannot be read row by row, or changed meanwhile.
    """
    first, cards = ReadSoFar(), CardTally()
    rows = _rows(path, rules=rules, layout=layout, cards=cards, seen=first)
    if cards.agrees:
        return rows
    # What looks like cards in one part is how the whole column is numbered, or the other way.
    again = ReadSoFar()
    rows = _rows(path, rules=rules, layout=layout, cards=CardTally(cards.whole), seen=again)
    if first.sha256 != again.sha256:
        refuse(path.name, CHANGED)
    return rows


def _rows(
    path: Path, *, rules: Rules, layout: FileLayout, cards: CardTally, seen: ReadSoFar
) -> list[MendableRow]:
    wanted = read_of(ORDER_FILE, layout=layout)
    needed = needed_of(ORDER_FILE, layout=layout)
    rows = []
    for part in raw_parts(path, wanted=wanted, needed=needed, layout=layout, seen=seen):
        raw = as_before(part)
        reading = reading_of(raw, schema=ORDER_FILE, rules=rules, layout=layout, cards=cards)
        refused = {row: (at, reading.reason(row)) for row, (at, _) in reading.problems.items()}
        rows += mendable_rows(reading, schema=ORDER_FILE, refused=refused)
    return rows


def refused_instructions(
    path: Path,
    *,
    rules: Rules,
    review_flags: frozenset[str],
    layout: FileLayout,
    interface: Mapping[str, Any] = NO_TABLES,
) -> list[MendableRow]:
    """Every refused row of an instruction file, in the order of its lines.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: it cannot be read row by row.
    """
    file, schema = read_bytes(path), INSTRUCTION_FILE
    wanted = read_of(schema, layout=layout) | frozenset(PAYOUT_COLUMNS)
    raw = raw_of(file, wanted=wanted, layout=layout)
    reading = reading_of(raw, schema=schema, rules=rules, layout=layout)
    refused = {row: (column, reading.reason(row)) for row, (column, _) in reading.problems.items()}
    judged = instruction_file_of(
        file, rules=rules, review_flags=review_flags, interface=interface, layout=layout
    )
    refused |= {row: (column, scrubbed(why)) for row, (column, why) in judged.refused.items()}
    return mendable_rows(reading, schema=schema, refused=refused, also=PAYOUT_COLUMNS)
