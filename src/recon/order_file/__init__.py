"""Order files, as orders, actions and rejects."""

from recon.order_file.archive import keep, keep_spooled
from recon.order_file.inbox import WAITS_FOR, Inbox, inbox
from recon.order_file.instruction_file import (
    InstructionFile,
    instruction_file_of,
    is_instruction_file,
    read_instruction_file,
)
from recon.order_file.layouts import refuse_wrong_layouts, refuse_wrong_settlement_layouts
from recon.order_file.reader import ACTION_COLUMNS, OrderFile, order_file_of, read_order_file
from recon.order_file.settlement_file import SETTLEMENT_FILE, SettlementFile, settlement_file_of
from recon.order_file.spooled_file import SpooledFile, spooled_file

__all__ = [
    "ACTION_COLUMNS",
    "SETTLEMENT_FILE",
    "WAITS_FOR",
    "Inbox",
    "InstructionFile",
    "OrderFile",
    "SettlementFile",
    "SpooledFile",
    "inbox",
    "instruction_file_of",
    "is_instruction_file",
    "keep",
    "keep_spooled",
    "order_file_of",
    "read_instruction_file",
    "read_order_file",
    "refuse_wrong_layouts",
    "refuse_wrong_settlement_layouts",
    "settlement_file_of",
    "spooled_file",
]
