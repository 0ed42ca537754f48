"""One settlement file of the gateway: what it settled, took as a fee and pays out."""

from dataclasses import dataclass, replace

import pandas as pd

from recon.files.typing.table_schema import schema_of
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
