"""Whether the layouts of an account fit order files or instruction files, before one is read."""

from collections.abc import Iterable

from recon.config.file_layouts import FileLayout
from recon.files.kinds.instruction_file import INSTRUCTION_FILE
from recon.files.kinds.settlement_file import SETTLEMENT_FILE
from recon.files.typing.layout_check import refuse_wrong_layout
from recon.files.typing.table_schema import BANK, ORDER_FILE


def refuse_wrong_layouts(layouts: Iterable[FileLayout]) -> None:
    """Refuse a layout that names what neither kind of file has.

    Raises:
        ConfigurationError: naming the layout and the key.
    """
    for layout in layouts:
        where = f'merchants.toml: the layout of "{layout.files}": '
        refuse_wrong_layout(layout, schemas=(ORDER_FILE, INSTRUCTION_FILE), where=where)


def refuse_wrong_settlement_layouts(layouts: Iterable[FileLayout]) -> None:
    """As `refuse_wrong_layouts`, of settlement files."""
    for layout in layouts:
        where = f'merchants.toml: the settlement layout of "{layout.files}": '
        refuse_wrong_layout(layout, schemas=(SETTLEMENT_FILE,), where=where)


def refuse_wrong_bank_layouts(layouts: Iterable[FileLayout]) -> None:
    """As `refuse_wrong_layouts`, of tables of a bank."""
    for layout in layouts:
        where = f'merchants.toml: the bank layout of "{layout.files}": '
        refuse_wrong_layout(layout, schemas=(BANK,), where=where)
