"""A night compared as a whole and then in parts of a few orders: nothing of it may differ."""

from dataclasses import fields
from itertools import zip_longest
from typing import Any

import pandas as pd
import pytest

from recon.archive.step_folder import MANIFEST
from recon.proof import engine
from recon.steps.compare import in_buckets, reconcile
from recon.steps.compare.sealed_inputs import write_compared
from recon.steps.compare.stored_sources import small_of_night
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import BUCKETS, COMPARED, RESULTS, folder_of, storage_of
from recon.store.nights.runs import Run

ORDERS_PER_PART = 3
"""Of a merchant's 29 orders some ten parts."""
GONE = {"every_match"}
"""Of a result without its rows: what the digest and the files are held by."""


def with_orders(monkeypatch: pytest.MonkeyPatch, orders: int) -> None:
    """Let a bucket have about so many orders."""
    for module in (in_buckets, engine):
        monkeypatch.setattr(module, "ORDERS_PER_BUCKET", orders)


def compared_twice(
    monkeypatch: pytest.MonkeyPatch, *, orders_per_part: int = ORDERS_PER_PART
) -> list[str]:
    """Let every comparison be made as a whole first, then in parts; the runs where both were."""
    ours: list[str] = []
    once = reconcile._compared

    def twice(run: Run, *, progress: Any, environment: Environment) -> Any:
        with_orders(monkeypatch, 250_000)
        whole = once(run, progress=progress, environment=environment)
        with_orders(monkeypatch, orders_per_part)
        night = write_compared(run, environment=environment).night
        small, previous = small_of_night(night)
        told = {"small": small, "previous": previous, "environment": environment}
        if in_buckets.cut_night(run, night, **told) is None:
            return whole
        before = files_of(run, environment=environment)
        for step in (COMPARED, RESULTS):
            storage_of(run, environment=environment).clear(f"{folder_of(run)}/{step}")
        cut = once(run, progress=progress, environment=environment)
        assert files_of(run, environment=environment) == before
        assert_same(cut, whole)
        ours.append(run.run_id)
        return cut

    monkeypatch.setattr(reconcile, "_compared", twice)
    return ours


def files_of(run: Run, *, environment: Environment) -> dict[str, bytes]:
    """The files of both steps byte for byte, and that of parts nothing stays."""
    storage, night = storage_of(run, environment=environment), folder_of(run)
    assert storage.names(f"{night}/{BUCKETS}") == []
    assert f"{night}/{BUCKETS}" not in storage.folders(night)
    names = [*storage.names(f"{night}/{COMPARED}"), *storage.names(f"{night}/{RESULTS}")]
    return {name: storage.read(name) for name in names if not name.endswith(MANIFEST)}


def assert_same(cut: Any, whole: Any) -> None:
    """Everything of both but the rows, which their files have."""
    for each in ("previous_run", "lacking", "moved", "exported", "agreed"):
        assert getattr(cut, each) == getattr(whole, each), each
    one, other = cut.result, whole.result
    assert one.digest == other.digest
    mine, theirs = one.control_totals, other.control_totals
    assert [*mine] == [*theirs], [(a, b) for a, b in zip_longest(mine, theirs) if a != b]
    for section in ("matches", "pending", "unverified", "breaks"):
        assert one.rows_of(section) == other.rows_of(section), section
    for each in fields(one):
        if each.name in GONE:
            continue
        mine, theirs = getattr(one, each.name), getattr(other, each.name)
        assert_equal(mine, theirs, what=each.name)


def assert_equal(mine: Any, theirs: Any, *, what: str) -> None:
    """Frames, tables of frames, or values."""
    if isinstance(mine, pd.DataFrame):
        pd.testing.assert_frame_equal(mine, theirs, check_dtype=False)
    elif isinstance(mine, dict):
        assert [*mine] == [*theirs], what
        for name in mine:
            assert_equal(mine[name], theirs[name], what=name)
    else:
        assert mine == theirs, what
