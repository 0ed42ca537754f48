"""This process and this machine: clocks that nobody can set, memory given back."""

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
"""More objects made than dropped since it last looked; Python's own bound is 700."""


def collect_seldom() -> None:
    """Let this process look no more often than that, and not at its end, when all goes anyway."""
    gc.set_threshold(OBJECTS_BETWEEN)
    atexit.register(look_past_loaded)


def look_past_loaded() -> None:
    """Never look at what is there now: modules and all that they hold stay to the end.

    For a process whose work begins, after everything is loaded: each look, of which a large night
    takes dozens to give memory back, costs a tenth of a second less.
    """
    gc.freeze()


LARGE_BYTES = 64 * 2**20
"""Of tables, above which it is worth a twentieth of a second to look for those nobody has."""

LOOKED_FROM_BYTES = 512 * 2**20
"""Of the whole process, from which on it is worth that time for frames; a small month has half."""

POOL_VARIABLE, POOL = "ARROW_DEFAULT_MEMORY_POOL", "jemalloc"
"""Of Arrow's pools the one that keeps least for itself: a tenth less at the peak of a night."""


def pool_of(variables: Mapping[str, str]) -> dict[str, str]:
    """What is to be said of the pool before Arrow is loaded; nothing where somebody named one."""
    # Machines of another kind may have no pool of that name.
    is_open = sys.platform == "linux" and POOL_VARIABLE not in variables
    return {POOL_VARIABLE: POOL} if is_open else {}


STORED_FREED = {-1: 64 * 2**20, -3: 32 * 2**20}
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of the C library of GNU: bytes to which it raises both by
itself, unless somebody names one of them."""

YOUNG, OLD = 1, 2
"""Generations of objects as Python counts them: what was made of late, or all there is."""


def give_back(*, frames: bool = False, generation: int = OLD) -> None:
    """Give back what Arrow and the C library keep for themselves after large tables are gone.

    Frames that hold each other go only when Python looks for them: until then the sources of a
    large night stood there twice. It looks where Arrow has much, or, where `frames` says so, where
    the process has: of numbers, and of what was grouped, Arrow knows nothing. It looks among the
    objects of one generation and of younger ones.
    """
    if frames and _held_bytes() >= LOOKED_FROM_BYTES:
        gc.collect(generation)
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        if not frames and pa.total_allocated_bytes() > LARGE_BYTES:
            gc.collect(generation)
        pa.default_memory_pool().release_unused()
    # Only the C library of GNU has it; where there is none, nothing is lost.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _held_bytes() -> int:
    """Memory that the process has; where no kernel says it, as much as makes it worth a look."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return LOOKED_FROM_BYTES
    return int(pages) * resource.getpagesize()


def reuse_freed_memory() -> None:
    """Let the C library keep what is freed until it is given back, whatever the environment says.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_: each column that is let go leaves the
    process, and the next one comes page by page, which cost a third of a part's time.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for parameter, size in STORED_FREED.items():
            library.mallopt(parameter, size)


UNKNOWN_BOOT = "unknown"


@dataclass(frozen=True, slots=True)
class Uptime:
    """One reading."""

    boot_id: str = UNKNOWN_BOOT
    milliseconds: int = 0
    """Since that boot, sleep included."""
    gateway_at: datetime | None = None
    """The Date of the gateway's reply, where there was one."""


NEVER_READ = Uptime()


def between(earlier: Uptime, later: Uptime) -> timedelta | None:
    """How much time passed from one reading to another; None when no clock ties them.

    Of one boot its uptime decides. After another boot, or on another machine, only the gateway's
    Date does.
    """
    if earlier.boot_id == later.boot_id != UNKNOWN_BOOT:
        return timedelta(milliseconds=later.milliseconds - earlier.milliseconds)
    if earlier.gateway_at is None or later.gateway_at is None:
        return None
    return later.gateway_at - earlier.gateway_at


def uptime_of(clock: Clock) -> Uptime:
    """A reading from a clock that is passed in; for nights that are replayed."""
    return Uptime("replayed", int(clock().timestamp() * 1000))
