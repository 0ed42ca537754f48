"""How much of a foreign file is read before it is refused; nothing is without a bound."""

FILE_BYTES_MAX = 200 * 1024 * 1024
"""One file, which is read as a whole."""

ROWS_MAX = 1_000_000
"""Rows of one file."""

COLUMNS_MAX = 256
"""Columns of one file, known and unknown."""

CELL_CHARACTERS_MAX = 32_767
"""Characters of one cell; what Excel holds."""

ARCHIVE_ENTRIES_MAX = 1_000
"""Parts of a workbook."""

ARCHIVE_BYTES_MAX = 200 * 1024 * 1024
"""Unpacked bytes of a whole workbook."""

ARCHIVE_RATIO_MAX = 100
"""Unpacked bytes per packed byte of one part; spreadsheets pack to about 1:15."""

ARCHIVE_RATIO_FREE_BYTES = 1024 * 1024
"""Parts below this unpacked size are harmless whatever their ratio."""

SHEET_CHARACTERS_MAX = 64 * 1024 * 1024
"""Characters that the cells of a sheet say, a shared string once for each of them."""

PARQUET_BYTES_MAX = 1024 * 1024 * 1024
"""Unpacked bytes that a Parquet file declares."""

PARQUET_RATIO_MAX = 32
"""Bytes of text per byte of a Parquet file; usual ones come to about 1:7."""

PARQUET_RATIO_FREE_BYTES = 128 * 1024 * 1024
"""Files that say less text than this are harmless whatever their ratio."""

REJECTED_ROWS_MAX = 100_000
"""Refused rows of one file that are told one by one; of more the file itself is wrong."""

REJECTED_CHARACTERS_MAX = 32 * 1024 * 1024
"""Characters of these rows together, which are kept so that they can be mended."""

JSON_LINE_BYTES_MAX = 1024 * 1024
"""One line of JSON lines."""

JSON_DEPTH_MAX = 8
"""Objects inside objects, of one line."""

XML_DEPTH_MAX = 32
"""Elements inside elements."""

NUMBER_DIGITS_MAX = 15
"""Digits that a spreadsheet's number holds exactly."""
