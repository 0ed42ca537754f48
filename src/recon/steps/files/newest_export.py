"""Which of two exports is the newer one, where a layout says that the newest file counts.

What arrives later need not be newer: a file may be delayed, come with others of one night, or have
a name with the day before the month. Names and contents must confirm it; otherwise each file counts
by itself, and differing rows of an order are a break.
"""

import re
from datetime import date, datetime
from typing import NamedTuple


class Export(NamedTuple):
    """A file whose rows have no time of their own."""

    name: str
    reach: datetime | None
    """When the newest of its orders was placed; None where that is not known."""
    night: date | None = None
    """The business date that took it; None: all files came at once."""


def is_newer(one: Export, *, than: Export) -> bool:
    """Whether a file that came after another one is newer, too.

    Of a later night, unless its name and its orders are both older; of the same night, or of an
    earlier one, only where neither is. Numbers in names count as numbers.

    >>> orders = datetime(2026, 11, 30)
    >>> is_newer(Export("export-10.csv", orders), than=Export("export-9.csv", orders))
    True
    >>> is_newer(Export("01-12-2026.csv", orders), than=Export("30-11-2026.csv", orders))
    False
    """
    by_name = name_key(one.name) >= name_key(than.name)
    by_reach = bool(one.reach and than.reach and one.reach >= than.reach)
    is_later = one.night is not None and than.night is not None and one.night > than.night
    return by_name or by_reach if is_later else by_name and by_reach


def name_key(name: str) -> list[tuple[int, str]]:
    """A name, its numbers as numbers: `export-9` comes before `export-10`."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"([0-9]+)", name)]
