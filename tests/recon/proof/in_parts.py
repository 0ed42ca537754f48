"""A night in memory, compared in buckets of its order numbers."""

from datetime import datetime
from typing import Any

import pytest

from recon.config.rules import Rules
from recon.matching.frames.sources import Basis, Previous, Sources
from recon.proof import engine
from recon.proof.buckets import ROWS


def reconciled_in_buckets(
    night: Sources, *, buckets: int, rules: Rules, as_of: datetime, previous: Previous | None
) -> engine.InBuckets:
    """Compare a night in about so many buckets."""
    kept: list[engine.InBuckets] = []

    def keep(*given: Any, **named: Any) -> engine.InBuckets:
        kept.append(in_buckets(*given, **named))
        return kept[0]

    in_buckets = engine.in_buckets
    rows = sum(len(frame) for name in ROWS if (frame := getattr(night, name)) is not None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "in_buckets", keep)
        basis = Basis(rules, as_of, previous)
        engine.in_memory(night, rows_per_bucket=-(-rows // buckets), basis=basis)
    return kept[0]
