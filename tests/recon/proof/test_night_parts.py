"""A night that is judged in parts of its order numbers comes to the same as one that is not."""

import os
from dataclasses import replace
from typing import Any

import pytest

from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Sources
from recon.proof.books_bridge import books_of
from recon.proof.engine import concluded, prove
from tests.planted import planted
from tests.planted.planted_files import AS_OF
from tests.recon.matching.exact.test_aside import (
    FRAMES,
    RULES_OF_NIGHTS,
    assert_same,
    random_night,
)
from tests.recon.matching.exact.test_calm_sets import with_open_sets
from tests.recon.proof.in_parts import parts_of, reconciled_in_parts

SEEDS = int(os.environ.get("PARTS_SEEDS", "12"))
"""Nights whose rows are spoilt at random; `make test-truths` plays more."""
_ = FRAMES


def items_of(result: Reconciliation) -> list[dict[str, Any]]:
    """The items of a result in one order."""
    rows = result.items.to_pylist()
    return sorted(rows, key=lambda row: [str(row[name]) for name in sorted(row)])


def assert_same_in_parts(night: Sources, *, size: int, previous: Any = None) -> int:
    """Hold the night in parts against the whole one; how many rows of it were aside."""
    told: dict[str, Any] = {"rules": RULES_OF_NIGHTS, "as_of": AS_OF, "previous": previous}
    whole = concluded(prove(night, **told), as_of=AS_OF)
    ours, parts = reconciled_in_parts(night, size=size, **told)
    assert_same(ours, whole)
    _, gathering, turned = parts_of(night, size=size, **told)
    assert gathering.books() == books_of(night, rules=RULES_OF_NIGHTS)
    assert turned == [part.figures.digest for part in parts]
    return sum(part.figures.aside["orders"] for part in parts)


@pytest.mark.parametrize("size", [16, 64, 1_000])
@pytest.mark.parametrize("ledger", [True, False])
def test_planted_nights_in_parts_come_to_the_same(size: int, *, ledger: bool) -> None:
    """All codes among agreeing and open sets: nothing of the result differs."""
    night = replace(with_open_sets(planted(size=120, broken=60).sources), settlement=None)
    aside = assert_same_in_parts(night if ledger else replace(night, ledger=None), size=size)

    assert aside > 50


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_nights_in_parts_come_to_the_same(seed: int) -> None:
    """Repeats, lost and changed rows, keyless rows, an earlier night: nothing differs."""
    night, previous = random_night(seed)
    night = replace(night, settlement=None)

    for size in (9, 30):
        assert_same_in_parts(night, size=size, previous=previous)
