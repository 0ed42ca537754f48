"""How far the history was walked before: beside the reports, so that a night walks what is new.

One small JSON file per account. It can save work, never a finding about what came after it: it
counts only while the database has that very link, and one that cannot be read means a whole walk.
"""

import json
from contextlib import suppress
from pathlib import Path

from recon.privacy.own_files import replace_result
from recon.store.database.history import GENESIS, Head

FILE_NAME = "history-verified.json"
FILE_BYTES_MAX = 1_000
NOTHING = Head(0, GENESIS)


def verified(folder: Path) -> Head:
    """The newest link up to which the chain was found closed; the genesis when none is known."""
    try:
        document = json.loads((folder / FILE_NAME).read_bytes()[:FILE_BYTES_MAX])
        return Head(int(document["sequence"]), str(document["hash"]))
    except (OSError, ValueError, KeyError, TypeError):
        return NOTHING


def keep_verified(folder: Path, head: Head) -> None:
    """Note that the chain closes up to here; where that fails, the next night walks more."""
    document = json.dumps({"sequence": head.sequence, "hash": head.hash})
    with suppress(OSError):
        replace_result(folder / FILE_NAME, document)
