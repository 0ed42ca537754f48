"""All that rests below folders, as somebody reads it who looks for what should not be there."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile, is_zipfile

import pyarrow.parquet as pq


def resting(*folders: Path) -> Iterator[tuple[str, bytes]]:
    """Every file with its name, every part of those that are packed, the cells of Parquet."""
    for path in sorted(found for folder in folders for found in folder.rglob("*")):
        if not path.is_file():
            yield str(path), os.fsencode(path)
            continue
        yield str(path), os.fsencode(path) + path.read_bytes()
        if is_zipfile(path):
            with ZipFile(path) as archive:
                for name in archive.namelist():
                    yield f"{path}:{name}", archive.read(name)
        elif path.suffix == ".gz":
            yield f"{path}:lines", gzip.decompress(path.read_bytes())
        elif path.suffix == ".parquet":
            # Packed: what a cell says stands nowhere in the bytes.
            table = pq.read_table(path)
            cells = [str(cell) for column in table.columns for cell in column.unique().to_pylist()]
            yield f"{path}:cells", "\n".join([*table.column_names, *cells]).encode()
