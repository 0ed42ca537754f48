"""The hand-over to the workbook is plain values: its columns are stated once."""

import subprocess
import sys

from recon.model.figures import BATCH_COLUMNS, INSTRUCTION_SHEET_COLUMNS


def test_columns_of_a_sheet_are_named_once() -> None:
    """A column that stands twice would show one value under two headings."""
    for columns in (INSTRUCTION_SHEET_COLUMNS, BATCH_COLUMNS):
        assert len(columns) == len(set(columns))


def test_figures_settings_and_a_signer_bring_no_frames() -> None:
    """Nor do they load a workbook or a database; a fresh interpreter shows it."""
    heavy = {"openpyxl", "sqlalchemy", "pandas", "pyarrow", "numpy"}
    code = (
        "import sys, recon.model.figures, recon.config.settings, recon.signer.server; "
        f"print({heavy!r} & set(sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert shown.strip() == "set()"
