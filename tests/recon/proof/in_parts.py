"""A night in memory, compared in buckets of its order numbers."""

from datetime import datetime
from typing import Any, NamedTuple

import pytest

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.sources import Previous, Sources
from recon.proof import engine
from recon.proof.night_parts import ClassifiedPart, classified_part


class InParts(NamedTuple):
    """A night in buckets."""

    result: Reconciliation
    parts: list[ClassifiedPart]
    """What was judged of each bucket; none where the night was compared at once."""


def reconciled_in_parts(
    night: Sources, *, buckets: int, rules: Rules, as_of: datetime, previous: Previous | None
) -> InParts:
    """Compare a night in so many buckets."""
    parts: list[ClassifiedPart] = []

    def kept(rows: Sources, **terms: Any) -> ClassifiedPart:
        parts.append(classified_part(rows, **terms))
        return parts[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "classified_part", kept)
        result = engine.in_buckets(
            night, buckets=buckets, rules=rules, as_of=as_of, previous=previous
        )
    return InParts(result, parts)
