"""Whether the layouts of an account fit their files, before one is read."""

from collections.abc import Iterable
from typing import Literal

from recon.config.file_layouts import FileLayout
from recon.files.kinds.instruction_file import INSTRUCTION_FILE
from recon.files.kinds.settlement_file import SETTLEMENT_FILE
from recon.files.typing.layout_check import refuse_wrong_layout
from recon.files.typing.table_schema import BANK, ORDER_FILE

_SCHEMAS = {"": (ORDER_FILE, INSTRUCTION_FILE), "settlement": (SETTLEMENT_FILE,), "bank": (BANK,)}


def refuse_wrong_layouts(
    layouts: Iterable[FileLayout], *, of: Literal["", "settlement", "bank"] = ""
) -> None:
    """Refuse a layout that names what no file of its kind has; "" is orders and instructions.

    Raises:
        ConfigurationError: naming the layout and the key.
    """
    for layout in layouts:
        where = f'merchants.toml: the {f"{of} " if of else ""}layout of "{layout.files}": '
        refuse_wrong_layout(layout, schemas=_SCHEMAS[of], where=where)
