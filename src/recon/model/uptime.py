"""Properties of this process and machine: clocks that cannot be set, and releasing memory."""

import atexit
import ctypes
import gc
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from recon.model.terms import Clock

OBJECTS_BETWEEN = 100_000
"""Net number of new objects that triggers a garbage collection; Python's own default is 700."""


def collect_seldom() -> None:
    """Collect garbage less often, and not at exit, when the process ends anyway."""
    gc.set_threshold(OBJECTS_BETWEEN)
    atexit.register(look_past_loaded)


def look_past_loaded() -> None:
    """Exclude all existing objects from garbage collection: loaded modules stay to the end.

    Call it before work begins, after everything is loaded: each collection, of which a large run
    needs dozens to release memory, takes a tenth of a second less.
    """
    gc.freeze()


LARGE_BYTES = 64 * 2**20
"""Size of Arrow tables above which a collection, a twentieth of a second, is worth its time."""

LOOKED_FROM_BYTES = 512 * 2**20
"""Process size from which a collection of frames is worth its time; a small month has half."""

POOL_VARIABLE, POOL = "ARROW_DEFAULT_MEMORY_POOL", "jemalloc"
"""Arrow's memory pool that retains the least: a tenth less at the peak of a run."""


def pool_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables to set before Arrow is loaded; empty where a pool is configured already."""
    # Other platforms may lack a pool of this name.
    is_open = sys.platform == "linux" and POOL_VARIABLE not in variables
    return {POOL_VARIABLE: POOL} if is_open else {}


STORED_FREED = {-1: 64 * 2**20, -3: 32 * 2**20}
"""glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD: bytes to which it raises both by itself, unless
one of them is set."""

YOUNG, OLD = 1, 2
"""Generations of Python's garbage collector: recent objects, or all."""


def give_back(*, frames: bool = False, generation: int = OLD) -> None:
    """Return memory that Arrow and the C library retain after large tables are deleted.

    Frames in reference cycles are freed only by a collection: without one, the sources of a large
    run were in memory twice. It collects where Arrow holds much or, with `frames`, where the
    process does: Arrow does not account for numbers and grouped data. It collects one generation
    and the younger ones.
    """
    if frames and _held_bytes() >= LOOKED_FROM_BYTES:
        gc.collect(generation)
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        if not frames and pa.total_allocated_bytes() > LARGE_BYTES:
            gc.collect(generation)
        pa.default_memory_pool().release_unused()
    # Only glibc has it; elsewhere nothing is lost.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _held_bytes() -> int:
    """Resident memory of the process; where the kernel does not report it, LOOKED_FROM_BYTES."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return LOOKED_FROM_BYTES
    return int(pages) * resource.getpagesize()


def reuse_freed_memory() -> None:
    """Let the C library keep freed memory until it is released, whatever the environment says.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_: each freed column would be returned to the
    system and the next one allocated page by page, which took a third of a part's time.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for parameter, size in STORED_FREED.items():
            library.mallopt(parameter, size)


UNKNOWN_BOOT = "unknown"


@dataclass(frozen=True, slots=True)
class Uptime:
    """One reading of the clocks."""

    boot_id: str = UNKNOWN_BOOT
    milliseconds: int = 0
    """Since that boot, sleep included."""
    gateway_at: datetime | None = None
    """The Date header of the gateway's reply, where there was one."""


NEVER_READ = Uptime()


def between(earlier: Uptime, later: Uptime) -> timedelta | None:
    """Time between two readings; None when they have no clock in common.

    Within one boot its uptime is used. After a reboot, or on another machine, only the gateway's
    Date is.
    """
    if earlier.boot_id == later.boot_id != UNKNOWN_BOOT:
        return timedelta(milliseconds=later.milliseconds - earlier.milliseconds)
    if earlier.gateway_at is None or later.gateway_at is None:
        return None
    return later.gateway_at - earlier.gateway_at


def uptime_of(clock: Clock) -> Uptime:
    """A reading from a clock argument, for replayed runs."""
    return Uptime("replayed", int(clock().timestamp() * 1000))
