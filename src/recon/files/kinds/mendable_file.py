"""The refused rows of a file, as a night refuses them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_reader import raw_of, read_raw
from recon.files.kinds.instruction_file import INSTRUCTION_FILE, NO_TABLES, instruction_file_of
from recon.files.kinds.payout_columns import PAYOUT_COLUMNS
from recon.files.typing.mapped_columns import read_of
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
    raw = read_raw(path, wanted=read_of(ORDER_FILE, layout=layout), layout=layout)
    reading = reading_of(raw, schema=ORDER_FILE, rules=rules, layout=layout)
    refused = {row: (column, reading.reason(row)) for row, (column, _) in reading.problems.items()}
    return mendable_rows(reading, schema=ORDER_FILE, refused=refused)


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
