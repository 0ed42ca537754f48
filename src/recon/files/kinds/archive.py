"""Archive of files that were read: one copy per SHA-256, readable by its owner only.

A file with a card number in any column is not stored, and neither is one with payees' bank details,
which are never stored in clear text.
"""

from pathlib import Path

import pyarrow as pa

from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_table import RawTable, refuse
from recon.files.kinds.instruction_file import PAYOUT_COLUMNS
from recon.files.typing.text_cells import holds_card_numbers
from recon.model.errors import OutputError
from recon.privacy.displayed_text import redacted
from recon.privacy.own_files import OWNER, make_folder, replace_result

FOLDER_MODE = 0o700


def is_stored(path: Path, *, sha256: str, archive: Path) -> bool:
    """Return whether content with this hash is in the archive."""
    return stored_place(archive, sha256=sha256, name=path.name).is_file()


def save(
    path: Path, *, sha256: str, private: str, archive: Path, content: bytes | None = None
) -> str:
    """Store a file that was read; return why it was not stored, or "".

    Args:
        path: The file.
        sha256: SHA-256 of the content that was read.
        private: Why it must not be stored, or "".
        archive: Folder of the archive.
        content: Its bytes, if they cannot be read again from `path`.

    Raises:
        SourceUnreadableError: it changed after it was read.
        OutputError: the archive cannot be written.
    """
    if is_stored(path, sha256=sha256, archive=archive):
        return ""
    if private:
        return private
    if content is None:
        file = read_bytes(path)
        if file.sha256 != sha256:
            refuse(path.name, "changed after it was read; wait until it is complete and run again")
        content = file.content
    target = stored_place(archive, sha256=sha256, name=path.name)
    try:
        make_folder(target.parent, mode=FOLDER_MODE)
        replace_result(target, content, mode=OWNER, is_flushed=True)
    except OSError as error:
        msg = f"the archive {archive} cannot be written: {error.strerror}; nothing was taken"
        raise OutputError(msg) from error
    return ""


def stored_place(archive: Path, *, sha256: str, name: str) -> Path:
    """Return the path in the archive of content with this hash."""
    return archive / sha256[:2] / f"{sha256}{Path(name).suffix.lower()}"


def private_content(raw: RawTable) -> str:
    """Return why a file must not be stored, or ""; expects all of its columns to be read."""
    payees = [name for name in PAYOUT_COLUMNS if name in raw.header]
    if payees:
        return "it has columns of payees' bank details, which rest nowhere in clear"
    names = [name for name, cells in raw.columns.items() if holds_card_numbers(cells)]
    if names:
        return (
            f"it holds card numbers in column {redacted(names[0])}; remove it and ask for another"
        )
    if holds_card_numbers(pa.array([row.text for row in raw.bad_rows], pa.large_string())):
        return "it holds card numbers in a row that cannot be read; remove it and ask for another"
    return ""
