import pytest

from recon.config.file_layouts import FileLayout, WrittenNumbers
from recon.files.kinds.layouts import refuse_wrong_layouts
from recon.model.errors import ConfigurationError


def layout(**columns: str) -> FileLayout:
    """A layout of all CSV files with these columns."""
    return FileLayout(files="*.csv", columns=columns)


def test_a_column_of_either_kind_of_file_is_taken() -> None:
    """An inbox has order files and instruction files: each kind's own columns may be named."""
    refuse_wrong_layouts([layout(order_no="Order"), layout(recurring_id="Contract")])
    with pytest.raises(
        ConfigurationError, match=r'the layout of "\*\.csv": columns\.gross is none'
    ):
        refuse_wrong_layouts([layout(order_no="Order"), layout(gross="Gross")])


def test_a_settlement_layout_knows_the_columns_of_settlement_files() -> None:
    """A column of theirs is taken, one of order files is refused by name."""
    refuse_wrong_layouts([layout(gross="Gross")], of="settlement")
    with pytest.raises(ConfigurationError, match=r"settlement layout .* columns\.ordered_at is no"):
        refuse_wrong_layouts([layout(ordered_at="When")], of="settlement")


def test_only_files_with_order_numbers_may_say_how_theirs_are_written() -> None:
    """A bank's statement has none: there the setting would silently not hold."""
    shop = FileLayout(order_numbers=WrittenNumbers(prefix="#"))
    refuse_wrong_layouts([shop])
    refuse_wrong_layouts([shop], of="settlement")
    with pytest.raises(ConfigurationError, match="order_numbers: these files have no column"):
        refuse_wrong_layouts([shop], of="bank")
