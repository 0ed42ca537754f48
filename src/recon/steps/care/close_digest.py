"""What is signed of a close: one digest of all that its two people look at, and what moved in it.

Months are signed by what they say, not by the bytes of a workbook: a night that ran since and
moved nothing of the month leaves the digest as it was.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recon.model.money import format_minor_units
from recon.period.statement_rows import DIFFERENCES, ITEMS, MOVEMENTS, RESERVE_MOVED, TRANSIT
from recon.steps.care.close_files import close_files
from recon.steps.care.month_closes import PreparedClose
from recon.steps.care.month_files import in_order

LISTS = (
    *("opening-items.csv", "closing-items.csv", "facts.csv", "in-transit.csv", "books.csv"),
    *("journals.csv", "nights.csv", "open-breaks.csv", "blockers.csv", "open-at-close.csv"),
)
"""Files of a close that are signed beside its figures; the others say the same, or how it was
proven by the nights that are known."""
_NAMES: Mapping[str, str] = {
    **MOVEMENTS,
    **ITEMS,
    **TRANSIT,
    **DIFFERENCES,
    "in_transit": "In transit",
    "reserve": RESERVE_MOVED,
}
_KEY = 4
"""Cells of a figure that name it: currency, of, at, name."""


@dataclass(frozen=True, slots=True)
class SeenClose:
    """What somebody looks at who signs."""

    digest: str
    figures: Sequence[Sequence[Any]]
    """currency, of, at, name, count, amount in minor units."""
    lists: Mapping[str, str]
    """File -> SHA-256."""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Name -> content of all files of the close: they are made once."""

    @property
    def document(self) -> dict[str, Any]:
        """As the history keeps it."""
        return {"figures": [[*figure] for figure in self.figures], "lists": dict(self.lists)}


def seen_close(close: PreparedClose) -> SeenClose:
    """The digest of a close, with what it is made of."""
    statement = close.stated.statement
    figures = [
        (each.currency, each.of, each.at, each.name, each.count, each.amount)
        for each in in_order(statement.figures)
    ]
    files = close_files(close)
    lists = {
        name: hashlib.sha256(files[name].encode()).hexdigest() for name in LISTS if name in files
    }
    which = (statement.account, statement.month.name, len(close.state.closes) + 1)
    whole = (which, close.prepared_verdict.value, figures, lists)
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    return SeenClose(digest, figures, lists, files)


def moved_since(seen: Mapping[str, Any], *, now: SeenClose) -> list[str]:
    """Which figures are others than when somebody looked, then which lists; each as a sentence."""
    figures = [*_figures_moved(_by_name(seen["figures"]), _by_name(now.figures))]
    before = seen["lists"]
    lists = [
        f"{name} is another list"
        for name in sorted({*before, *now.lists})
        if before.get(name) != now.lists.get(name)
    ]
    return [*figures, *lists]


def _by_name(figures: Sequence[Sequence[Any]]) -> dict[tuple[str, ...], tuple[int, int]]:
    return {tuple(each[:_KEY]): (int(each[_KEY]), int(each[_KEY + 1])) for each in figures}


def _figures_moved(
    then: Mapping[tuple[str, ...], tuple[int, int]], now: Mapping[tuple[str, ...], tuple[int, int]]
) -> Iterator[str]:
    for key in sorted({*then, *now}):
        before, after = then.get(key, (0, 0)), now.get(key, (0, 0))
        if before != after:
            currency, of, at, name = key
            named = _NAMES.get(name, name.replace("_", " "))
            yield (
                f"{of}, {at}, {named}: {_shown(before, currency)} then, "
                f"{_shown(after, currency)} now"
            )


def _shown(figure: tuple[int, int], currency: str) -> str:
    count, amount = figure
    return f"{format_minor_units(amount, currency=currency)} {currency} ({count})"
