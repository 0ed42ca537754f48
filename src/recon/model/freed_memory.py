"""Memory that nothing holds any more, given back to the machine before the next piece of work."""

import ctypes
import sys
from contextlib import suppress


def give_back() -> None:
    """Give back what Arrow and the C library keep for themselves after large tables are gone."""
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
    # Only the C library of GNU has it; where there is none, nothing is lost.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
