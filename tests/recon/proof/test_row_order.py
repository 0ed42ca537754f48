"""No result hangs on the order of rows, on memory or on the time of a call.

A night is compared once: that its rows might have come in another order is held here.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recon.proof.engine import reconcile
from recon.steps.compare.stored_sources import opened_night, sources_of_night
from tests.injected import planted
from tests.recon.matching.turned import turned
from tests.recon.steps.compare.written_night import written


@pytest.fixture(scope="module")
def files():
    return planted(size=60, broken=12, seed=5, settled=False)


@pytest.fixture
def engine(files):
    return partial(reconcile, rules=files.rules, as_of=files.as_of)


def is_same_either_way(sources, *, engine):
    return engine(sources).digest == engine(turned(sources)).digest


def test_the_digest_is_the_same_once_somebody_has_seen_the_matches(files, engine):
    """Of rows that were made and of columns that were made for it alone there is one digest."""
    seen, unseen = engine(files.sources), engine(files.sources)

    assert len(seen.matches) > len(seen.breaks) > 0
    assert seen.digest == unseen.digest


@given(
    seed=st.integers(min_value=0, max_value=10_000),
    size=st.integers(min_value=1, max_value=60),
    settled=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_the_files_of_any_night_give_the_digest_of_its_rows(seed, size, *, settled):
    """Read back from its files or held, in whatever order the rows were, there is one digest."""
    night = planted(size=size, broken=size // 3, seed=seed, settled=settled)
    mixed = {
        name: frame.sample(frac=1, random_state=seed).reset_index(drop=True)
        for name in ("orders", "gateway", "ledger", "settlement")
        if (frame := getattr(night.sources, name)) is not None
    }
    compare = partial(reconcile, rules=night.rules, as_of=night.as_of)
    with TemporaryDirectory() as folder:
        handed = written(Path(folder), sources=replace(night.sources, **mixed), rules=night.rules)
        kept, previous = sources_of_night(opened_night(handed, variables={}))

    assert compare(kept, previous=previous).digest == compare(night.sources).digest
    assert is_same_either_way(night.sources, engine=compare)
