"""Order files, as orders, actions and rejects."""

from recon.order_file.archive import is_kept, keep, keep_read, private_content
from recon.order_file.inbox import WAITS_FOR, Inbox, inbox, not_taken
from recon.order_file.instruction_file import (
    InstructionFile,
    instruction_file_of,
    is_instruction_file,
    read_instruction_file,
)
from recon.order_file.layouts import refuse_wrong_layouts, refuse_wrong_settlement_layouts
from recon.order_file.mendable_file import refused_instructions, refused_rows
from recon.order_file.settlement_file import SETTLEMENT_FILE, SettlementFile, settlement_file_of
from recon.order_file.spooled_file import ACTION_COLUMNS, SpooledFile, spool_file, spooled_file

__all__ = [
    "ACTION_COLUMNS",
    "SETTLEMENT_FILE",
    "WAITS_FOR",
    "Inbox",
    "InstructionFile",
    "SettlementFile",
    "SpooledFile",
    "inbox",
    "instruction_file_of",
    "is_instruction_file",
    "is_kept",
    "keep",
    "keep_read",
    "not_taken",
    "private_content",
    "read_instruction_file",
    "refuse_wrong_layouts",
    "refuse_wrong_settlement_layouts",
    "refused_instructions",
    "refused_rows",
    "settlement_file_of",
    "spool_file",
    "spooled_file",
]
