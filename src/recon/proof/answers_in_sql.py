"""The answers that nights compared as one SELECT: as they came, less what was passed over."""

from collections.abc import Sequence

from recon.archive.answers_once import CONSTANT, SHARED

_PASSED = (
    "SELECT regexp_replace(filename, '[^/]+/[^/]+$', '') || file AS filename, "
    '"row" AS file_row_number'
)
"""The file of a row that was passed over, by its place beside the file that says so."""


def answers_view(replies: Sequence[str]) -> str:
    """What `rows.sql` begins with: `answers`, from the files of a night by their names in it."""
    own, passed_over = "'inputs/answers.parquet'", "'compared/passed_over.parquet'"
    select = f"FROM {own}"
    if replies:
        files = [f"'{file}'" for file in replies]
        select = answers_once([own], replies=files, passed_over=[passed_over])
    return f"CREATE OR REPLACE TEMP VIEW answers AS\n{select};\n"


def answers_once(
    own: Sequence[str], *, replies: Sequence[str], passed_over: Sequence[str], named: bool = False
) -> str:
    """The rows of some nights; all files are quoted, by their place or from the night's folder.

    `named`: with the column `filename`.
    """
    left_out = ["file_row_number", *([] if named else ["filename"])]
    columns = "*" if named else "* EXCLUDE (filename)"
    constant = ", ".join(f"{_cell(cell)} AS {name}" for name, cell in CONSTANT.items())
    # Names of our own columns; files are quoted by whoever gives them.
    return f"""SELECT {columns} FROM {files_read(own)}
UNION ALL BY NAME
SELECT * EXCLUDE ({", ".join(left_out)}) FROM (
    SELECT {", ".join(SHARED)}, {constant}, filename, file_row_number
    FROM {files_read(replies, more=", file_row_number = true")}
) ANTI JOIN (
    {_PASSED} FROM {files_read(passed_over)}
) USING (filename, file_row_number)"""  # noqa: S608


def _cell(cell: str | int) -> str:
    return f"'{cell}'" if isinstance(cell, str) else f"{cell}::BIGINT"


def files_read(files: Sequence[str], *, more: str = "") -> str:
    """Some files read as one, each row with its `filename`; `more` is what else is asked for."""
    listed = ",\n    ".join(files)
    return f"read_parquet([\n    {listed}], filename = true, union_by_name = true{more})"
