"""Files of a sealed step read from any place: what is asked for is read, not all of a file.

A process holds a file against its hash once, and again where it was written since: whoever reads a
night in many stretches would else read all of it for each of them.
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from recon.archive.step_folder import Sealed, entry_of, refuse_changed
from recon.archive.storage import Storage

BLOCK_BYTES = 4 * 2**20
"""So much is hashed at once."""
FILES_MAX = 10_000
"""So many files are known as they were sealed; behind them all are looked at once more."""
_known: set[tuple[str, str, str, str]] = set()
"""Archive, path, stamp and hash of files that this process has held against their manifest."""


@contextmanager
def opened_file(storage: Storage, sealed: Sealed, *, name: str) -> Iterator[BinaryIO]:
    """A file of a sealed step, exactly as it was sealed, to be read from any place.

    Raises:
        ArchiveBrokenError: it is gone, or is not the file that was sealed.
    """
    entry, path = entry_of(sealed, name=name), f"{sealed.folder}/{name}"
    with ExitStack() as stack:
        try:
            file, stamp = stack.enter_context(storage.reading(path))
        except FileNotFoundError:
            refuse_changed(path, entry=entry, size=None, sha256="")
            raise
        held = (storage.shown, path, stamp, "" if entry is None else entry.sha256)
        if held not in _known:
            size, sha256 = _hashed(file)
            refuse_changed(path, entry=entry, size=size, sha256=sha256)
            if len(_known) >= FILES_MAX:
                _known.clear()
            _known.add(held)
        file.seek(0)
        yield file


def _hashed(file: BinaryIO) -> tuple[int, str]:
    """The size of a file in bytes, and its hash."""
    digest, size = hashlib.sha256(), 0
    while block := file.read(BLOCK_BYTES):
        digest.update(block)
        size += len(block)
    return size, digest.hexdigest()
