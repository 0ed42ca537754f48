"""One settlement file of the gateway: what it settled, took as a fee and pays out."""

from dataclasses import dataclass, replace

import pandas as pd

from recon.config.file_layouts import STANDARD, FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.kinds.whole_file import refuse_unproven
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.table_schema import schema_of
from recon.files.typing.typed_table import type_table
from recon.matching.frames.sources import SETTLEMENT_COLUMNS
from recon.model.words import Reject, SourceFile, SourceKind

SETTLEMENT_FILE = replace(schema_of(SourceKind.SETTLEMENT), needs_line_end=True)
"""The file of a night: one that was cut off is noticed."""


@dataclass(frozen=True, slots=True)
class SettlementFile:
    """One settlement file, read."""

    lines: pd.DataFrame
    """SETTLEMENT_COLUMNS."""
    rejects: tuple[Reject, ...]
    source_file: SourceFile
    ignored_columns: tuple[str, ...] = ()


def settlement_file_of(
    file: FileBytes, *, rules: Rules, layout: FileLayout = STANDARD
) -> SettlementFile:
    """Lines and rejects of a CSV, XLSX, Parquet, JSON lines or XML file.

    Raises:
        SourceUnreadableError: it is not what its name says, columns are missing, its control
            figures differ, or a row is bad where all or nothing holds.
    """
    wanted = read_of(SETTLEMENT_FILE, layout=layout)
    raw = raw_of(file, wanted=wanted, layout=layout)
    table = type_table(raw, schema=SETTLEMENT_FILE, rules=rules, layout=layout)
    refuse_unproven(
        file.path,
        declared=raw.declared,
        counted=table.counted,
        rejects=table.rejects,
        layout=layout,
    )
    return SettlementFile(
        lines=table.frame[list(SETTLEMENT_COLUMNS)],
        rejects=table.rejects,
        source_file=table.source_file,
        ignored_columns=table.ignored_columns,
    )
