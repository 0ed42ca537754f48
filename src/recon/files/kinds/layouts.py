"""Whether the layouts of an account fit their files, before one is read."""

from collections.abc import Iterable
from typing import Literal

from recon.config.file_layouts import FileLayout, GivenLayouts
from recon.files.kinds.instruction_file import INSTRUCTION_FILE
from recon.files.typing.layout_check import refuse_wrong_layout
from recon.files.typing.table_schema import BANK, GATEWAY, LEDGER, ORDER_FILE, SETTLEMENT_FILE
from recon.model.words import SourceKind

_OF_KIND = {
    SourceKind.ORDERS: ORDER_FILE,
    SourceKind.GATEWAY: GATEWAY,
    SourceKind.LEDGER: LEDGER,
    SourceKind.SETTLEMENT: SETTLEMENT_FILE,
    SourceKind.BANK: BANK,
}
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


def refuse_wrong_given(layouts: GivenLayouts) -> None:
    """Refuse a layout of plain files that names what no file of its kind has.

    Raises:
        ConfigurationError: naming the file of the layout and the key.
    """
    for each in layouts.given:
        where = f'{each.source}: the {each.kind} layout of "{each.layout.files}": '
        refuse_wrong_layout(each.layout, schemas=(_OF_KIND[each.kind],), where=where)
