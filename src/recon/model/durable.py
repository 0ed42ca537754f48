"""Making file system changes survive a loss of power."""

import os
from pathlib import Path


def flush_folder(folder: Path) -> None:
    """Flush a folder's entries to disk: a new or renamed file is safe only then.

    Raises:
        OSError: the folder is gone or its disk fails.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
