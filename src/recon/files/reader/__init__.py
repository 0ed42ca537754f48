"""The door of foreign files: each is read in a process of its own, within bounds, or refused.

A file that breaks its bounds or its reader takes nothing with it but that process. What it held
comes back as Arrow and JSON through files without a name; nothing is ever unpickled here.
"""

from recon.files.reader.files import (
    OrderRead,
    SpooledRows,
    bank_file,
    instruction_file,
    layout_proposal,
    ledger_file,
    order_file,
    plain_table,
    rows_to_mend,
    settlement_file,
)
from recon.files.reader.reader_process import Bounds, FileReader, bounds_of, file_reader

__all__ = [
    "Bounds",
    "FileReader",
    "OrderRead",
    "SpooledRows",
    "bank_file",
    "bounds_of",
    "file_reader",
    "instruction_file",
    "layout_proposal",
    "ledger_file",
    "order_file",
    "plain_table",
    "rows_to_mend",
    "settlement_file",
]
