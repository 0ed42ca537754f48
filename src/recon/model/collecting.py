"""How often Python looks for objects that hold only each other.

It counts what is made, and a program that loads pandas or draws a workbook makes much that stays:
looking through it again and again cost half a CPU second of a reconciliation of a million orders,
and found a thousand objects.
"""

import gc

OBJECTS_BETWEEN = 100_000
"""More objects made than dropped since it last looked; Python's own bound is 700."""


def collect_seldom() -> None:
    """Let this process look no more often than that."""
    gc.set_threshold(OBJECTS_BETWEEN)
