"""Order files, as orders, actions and rejects."""

from recon.order_file.inbox import Inbox, inbox
from recon.order_file.reader import ACTION_COLUMNS, OrderFile, read_order_file

__all__ = ["ACTION_COLUMNS", "Inbox", "OrderFile", "inbox", "read_order_file"]
