"""Order files, as orders, actions and rejects."""

from recon.order_file.inbox import Inbox, inbox
from recon.order_file.instruction_file import (
    InstructionFile,
    is_instruction_file,
    read_instruction_file,
)
from recon.order_file.reader import ACTION_COLUMNS, OrderFile, read_order_file

__all__ = [
    "ACTION_COLUMNS",
    "Inbox",
    "InstructionFile",
    "OrderFile",
    "inbox",
    "is_instruction_file",
    "read_instruction_file",
    "read_order_file",
]
