"""The proof with all sets beside each other: slow, and never another result."""

import sys
from datetime import datetime

import pytest

from recon.config.rules import Rules
from recon.matching.calm import calm_sets
from recon.matching.frames.sources import Previous, Sources
from recon.proof.control_totals import Proof
from recon.proof.engine import prove


def prove_all_classified(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> Proof:
    """What `prove` must come to as well: no set is judged by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calm_sets, "SETS_MIN", sys.maxsize)
        return prove(sources, rules=rules, as_of=as_of, previous=previous)
