"""How often Python looks for objects that hold only each other.

It counts what is made, and a program that loads pandas or draws a workbook makes much that stays:
looking through it again and again cost half a CPU second of a reconciliation of a million orders,
and found a thousand objects.
"""

import atexit
import gc

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
