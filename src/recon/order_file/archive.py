"""What was read, kept by its hash: the same content lies there once, for its owner only.

A file with a card number in any column is not kept, and neither is one with payees' bank details,
which rest nowhere in clear.
"""

import os
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from recon.errors import OutputError
from recon.file_layouts import FileLayout
from recon.foreign_bytes.card_numbers import holds_card_numbers, scrubbed
from recon.foreign_bytes.opening import FileBytes
from recon.foreign_bytes.raw_reader import raw_of
from recon.order_file.payout_columns import PAYOUT_COLUMNS

KEPT_MODE = 0o600
FOLDER_MODE = 0o700


class _EveryColumn(Container[str]):
    """Asks a reader for all columns, also those that recon does not know."""

    def __contains__(self, name: object) -> bool:
        return True


def keep(file: FileBytes, *, archive: Path, layout: FileLayout) -> str:
    """Keep a file that could be read; why it was not kept, or "".

    Raises:
        OutputError: the archive cannot be written.
    """
    place = kept_place(archive, sha256=file.sha256, name=file.path.name)
    if place.is_file():
        return ""
    why = _private_content(file, layout=layout)
    if why:
        return why
    part = place.with_name(f".{place.name}.part")
    try:
        place.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, KEPT_MODE)
        with os.fdopen(descriptor, "wb") as out:
            out.write(file.content)
            out.flush()
            os.fsync(out.fileno())
        part.replace(place)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        msg = f"the archive {archive} cannot be written: {error.strerror}; nothing was taken"
        raise OutputError(msg) from error
    return ""


def kept_place(archive: Path, *, sha256: str, name: str) -> Path:
    """Where content of this hash lies."""
    return archive / sha256[:2] / f"{sha256}{Path(name).suffix.lower()}"


def _private_content(file: FileBytes, *, layout: FileLayout) -> str:
    raw = raw_of(file, wanted=_EveryColumn(), layout=layout)
    payees = [name for name in PAYOUT_COLUMNS if name in raw.header]
    if payees:
        return "it has columns of payees' bank details, which rest nowhere in clear"
    found = [name for name, cells in raw.columns.items() if holds_card_numbers(cells)]
    if found:
        return (
            f"it holds card numbers in column {scrubbed(found[0])}; remove it and ask for another"
        )
    if holds_card_numbers(pa.array([row.text for row in raw.bad_rows], pa.large_string())):
        return "it holds card numbers in a row that cannot be read; remove it and ask for another"
    return ""
