"""Counts what Arrow takes while something is done."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

_POOLS: list[pa.MemoryPool] = []
"""Every pool that ever counted. A table that outlives its pool is given back to freed memory,
and the process ends with it, later and elsewhere."""


@contextmanager
def counted() -> Iterator[pa.MemoryPool]:
    """A pool that counts, the default of all of Arrow meanwhile."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    _POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(before)
