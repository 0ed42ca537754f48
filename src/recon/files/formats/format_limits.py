"""Size limits of external files; a file beyond any of them is refused."""

FILE_BYTES_MAX = 200 * 1024 * 1024
"""Maximum size of one file, which is read as a whole."""

ROWS_MAX = 1_000_000
"""Maximum number of rows in one file."""

COLUMNS_MAX = 256
"""Maximum number of columns in one file, known and unknown."""

CELL_CHARACTERS_MAX = 32_767
"""Maximum length of one cell; Excel's own limit."""

ARCHIVE_ENTRIES_MAX = 1_000
"""Maximum number of parts in a workbook."""

ARCHIVE_BYTES_MAX = 200 * 1024 * 1024
"""Maximum unpacked size of a whole workbook."""

ARCHIVE_RATIO_MAX = 100
"""Maximum unpacked bytes per packed byte of one part; spreadsheets pack to about 1:15."""

ARCHIVE_RATIO_FREE_BYTES = 1024 * 1024
"""Parts below this unpacked size are accepted whatever their ratio."""

SHEET_CHARACTERS_MAX = 64 * 1024 * 1024
"""Maximum total text of a sheet's cells; a shared string counts for each cell that uses it."""

PARQUET_BYTES_MAX = 1024 * 1024 * 1024
"""Maximum unpacked size that a Parquet file may declare."""

PARQUET_RATIO_MAX = 32
"""Maximum bytes of text per byte of a Parquet file; about 1:7 is usual."""

PARQUET_RATIO_FREE_BYTES = 128 * 1024 * 1024
"""Files with less text than this are accepted whatever their ratio."""

REJECTED_ROWS_MAX = 100_000
"""Maximum number of rows rejected one by one; beyond it the file is refused as a whole."""

REJECTED_CHARACTERS_MAX = 32 * 1024 * 1024
"""Maximum total text of these rows, which is stored so that they can be corrected."""

JSON_LINE_BYTES_MAX = 1024 * 1024
"""Maximum size of one line of JSON lines."""

JSON_DEPTH_MAX = 8
"""Maximum nesting of objects in one line."""

XML_DEPTH_MAX = 32
"""Maximum nesting of elements."""

NUMBER_DIGITS_MAX = 15
"""Number of digits that a spreadsheet number holds exactly."""
