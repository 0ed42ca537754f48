"""Memory that nothing holds any more, given back to the machine before the next piece of work."""

import ctypes
import gc
import sys
from contextlib import suppress

LARGE_BYTES = 64 * 2**20
"""Of tables, above which it is worth a twentieth of a second to look for those nobody has."""


def give_back(*, frames: bool = False) -> None:
    """Give back what Arrow and the C library keep for themselves after large tables are gone.

    Frames that hold each other go only when Python looks for them: until then the sources of a
    large night stood there twice. It looks where Arrow has much, or where `frames` says so: of
    numbers, and of what was grouped, Arrow knows nothing.
    """
    if frames:
        gc.collect()
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        if not frames and pa.total_allocated_bytes() > LARGE_BYTES:
            gc.collect()
        pa.default_memory_pool().release_unused()
    # Only the C library of GNU has it; where there is none, nothing is lost.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
