"""Whether the layouts of an account name columns that exist, before a file is read."""

from collections.abc import Iterable

from recon.errors import ConfigurationError
from recon.file_layouts import FileLayout
from recon.foreign_bytes import ORDER_FILE
from recon.order_file.instruction_file import INSTRUCTION_FILE

KNOWN_COLUMNS = tuple(dict.fromkeys((*ORDER_FILE.names, *INSTRUCTION_FILE.names)))
"""Of order files and of instruction files."""


def refuse_unknown_columns(layouts: Iterable[FileLayout]) -> None:
    """A misspelt column in a layout would be a setting that silently does not hold.

    Raises:
        ConfigurationError: naming the layout, the key, the column, and the columns there are.
    """
    for layout in layouts:
        for key in ("columns", "constants", "words"):
            unknown = sorted(set(getattr(layout, key)) - set(KNOWN_COLUMNS))
            if unknown:
                msg = (
                    f'merchants.toml: the layout of "{layout.files}": {key}.{unknown[0]} is none '
                    f"of the columns {', '.join(KNOWN_COLUMNS)}"
                )
                raise ConfigurationError(msg)
