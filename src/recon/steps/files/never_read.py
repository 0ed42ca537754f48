"""What stands for a file that was never read: it did not arrive, or could not be read at all."""

import hashlib

WHOLE_FILE = "(whole file)"
"""Column of a reject that stands for something which could not be read at all."""
ABSENT = "00000000"
"""How the hash of something that was never read begins."""


def absent_sha256(*identity: str) -> str:
    """What stands as the hash of something that was never read."""
    return ABSENT + hashlib.sha256("\x1f".join(identity).encode()).hexdigest()[len(ABSENT) :]
